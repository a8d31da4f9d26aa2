//! Figures of each listener: who came, who is there, how sessions ended.

use std::sync::Arc;

use evenkeel_proxy::telemetry::counters::{ListenerTally, StatusClass};
use evenkeel_proxy::telemetry::reason::Reason;
use evenkeel_proxy::{ListenerStatus, PauseCause};

use super::family;
use super::text::Page;
use crate::desk::Desk;

pub(super) fn write(desk: &Desk, page: &mut Page) {
    let listeners = desk.proxy.listeners();
    let mut sessions = page.family(&family::LISTENER_SESSIONS);
    for listener in &listeners {
        sessions.put(&[&listener.name], listener.sessions);
    }
    let mut most = page.family(&family::LISTENER_MAX_CONNECTIONS);
    for listener in &listeners {
        if let Some(limit) = listener.max_connections {
            most.put(&[&listener.name], limit);
        }
    }
    let mut accepted = page.family(&family::LISTENER_CONNECTIONS);
    for listener in &listeners {
        accepted.put(&[&listener.name], listener.accepted);
    }
    write_ends(desk, &listeners, page);
    write_pauses(&listeners, page);
}

fn write_pauses(listeners: &[ListenerStatus], page: &mut Page) {
    let mut begun = page.family(&family::LISTENER_PAUSES);
    for listener in listeners {
        for (cause, count) in PauseCause::ALL.into_iter().zip(listener.pauses.begun) {
            begun.put(&[&listener.name, cause.code()], count);
        }
    }
    let mut workers = page.family(&family::LISTENER_PAUSED_WORKERS);
    for listener in listeners {
        workers.put(&[&listener.name], listener.pauses.workers);
    }
    let mut seconds = page.family(&family::LISTENER_PAUSED_SECONDS);
    for listener in listeners {
        let paused = listener.pauses.paused.as_secs_f64();
        seconds.put(&[&listener.name], paused);
    }
}

fn write_ends(desk: &Desk, listeners: &[ListenerStatus], page: &mut Page) {
    let counters = desk.telemetry.counters();
    let counted: Vec<(&str, Arc<ListenerTally>)> = listeners
        .iter()
        .filter_map(|listener| Some((&*listener.name, counters.listener(&listener.name)?)))
        .collect();
    let mut ended = page.family(&family::LISTENER_ENDED);
    for (name, tally) in &counted {
        for reason in Reason::ALL {
            ended.put(&[name, reason.code()], tally.sessions.ended(*reason));
        }
    }
    let mut bytes = page.family(&family::LISTENER_BYTES);
    for (name, tally) in &counted {
        bytes.put(&[name, "up"], tally.sessions.bytes_up());
        bytes.put(&[name, "down"], tally.sessions.bytes_down());
    }
    let mut lives = page.family(&family::LISTENER_LIVES);
    for (name, tally) in &counted {
        lives.put_histogram(&[name], &tally.lives);
    }
    write_exchanges(&counted, page);
}

fn write_exchanges(counted: &[(&str, Arc<ListenerTally>)], page: &mut Page) {
    let mut answered = page.family(&family::LISTENER_EXCHANGES);
    for (name, tally) in counted {
        for class in StatusClass::ALL {
            answered.put(&[name, class.code()], tally.exchanges.answered(class));
        }
    }
    let mut ended = page.family(&family::LISTENER_EXCHANGES_ENDED);
    for (name, tally) in counted {
        for reason in Reason::ALL {
            ended.put(&[name, reason.code()], tally.exchanges.ended(*reason));
        }
    }
}
