//! What other balancers lose at a reload, and this one keeps: each test is one of their users' complaints.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;

use crate::support::evenkeel::{Evenkeel, Launch};
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

/// A listener `front` and a cluster `web`, with these lines of its own and these endpoints, each as a table of the file.
fn config(front: SocketAddr, lines: &str, endpoints: &[String]) -> String {
    format!(
        "[listener.front]\nbind = \"{front}\"\nto = \"web\"\n[cluster.web]\n{lines}\nendpoints = [{}]\n",
        endpoints.join(", ")
    )
}

fn endpoint(name: &str, address: SocketAddr, weight: u32) -> String {
    format!("{{ name = \"{name}\", address = \"{address}\", weight = {weight} }}")
}

fn state(evenkeel: &Evenkeel, name: &str) -> Value {
    evenkeel.endpoint("web", name)["state"].clone()
}

/// An endpoint that probes have found down gets nothing after a reload, not even until its next probe.
#[test]
fn fault_1_an_endpoint_known_to_be_down_gets_nothing_after_a_reload() {
    let (alive, front, nobody) = (Service::named("alive"), ports::free(), ports::free());
    let probed = "health = { check = \"tcp\", every = \"1h\", timeout = \"1s\" }";
    let weighing = |weight| {
        let endpoints = [
            endpoint("dead", nobody, 100),
            endpoint("alive", alive.address(), weight),
        ];
        config(front, probed, &endpoints)
    };
    let evenkeel = Evenkeel::start(weighing(1));
    wait::until_so("both are judged", || {
        (state(&evenkeel, "dead"), state(&evenkeel, "alive")) == ("down".into(), "up".into())
    });

    for weight in 2..7 {
        evenkeel.reloaded(&weighing(weight));
        assert_eq!(state(&evenkeel, "dead"), "down");
        assert_eq!(client::listen(front), "alive");
    }

    assert_eq!(evenkeel.endpoint_number("web", "dead", "sessions"), 0);
}

/// The same of an endpoint that would answer: what is asked about both is another port, and there is nobody at one of the two. The next
/// question is an hour away, so nothing but what was known keeps sessions from it, over all workers and all reloads.
#[test]
fn fault_1_an_endpoint_that_would_answer_gets_nothing_either() {
    let (alive, front, health) = (Service::named("alive"), ports::free(), ports::free());
    let _well = Service::start_on(health, |stream, _| service::stay_silent(stream));
    let ill = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2).into(), ports::free().port());
    let ill = Service::start_on(ill, service::say("ill"));
    let probed = format!(
        "health = {{ check = \"tcp\", port = {}, every = \"1h\", timeout = \"1s\" }}",
        health.port()
    );
    let weighing = |weight| {
        let endpoints = [
            endpoint("ill", ill.address(), 100),
            endpoint("alive", alive.address(), weight),
        ];
        config(front, &probed, &endpoints)
    };
    let evenkeel = Evenkeel::start(weighing(1));
    wait::until_so("both are judged", || {
        (state(&evenkeel, "ill"), state(&evenkeel, "alive")) == ("down".into(), "up".into())
    });

    for weight in 2..12 {
        evenkeel.reloaded(&weighing(weight));
        for _ in 0..10 {
            assert_eq!(client::listen(front), "alive");
        }
    }

    assert_eq!(ill.accepted(), 0);
}

/// Nothing that was kept stands against what the file says now: a new address under an old name is where sessions go.
#[test]
fn fault_2_kept_state_does_not_override_a_changed_address() {
    let (old, new, front) = (Service::named("old"), Service::named("new"), ports::free());
    let at = |service: &Service| config(front, "", &[endpoint("db", service.address(), 1)]);
    let evenkeel = Evenkeel::start(at(&old));
    assert_eq!(client::listen(front), "old");

    evenkeel.reloaded(&at(&new));

    assert_eq!(client::listen(front), "new");
    let address = new.address().to_string();
    assert_eq!(evenkeel.endpoint("web", "db")["address"], *address);
}

/// Reload upon reload, with endpoints and listeners that come and go: no descriptor and no thread is left behind.
#[test]
fn fault_6_reloads_leave_nothing_behind() {
    let (endpoint_service, front) = (Service::echo(), ports::free());
    let address = endpoint_service.address();
    let with = |number: u32| {
        let endpoints = [
            endpoint("a", address, 1),
            endpoint(&format!("b{number}"), address, 1),
        ];
        let extra = format!(
            "[listener.extra{number}]\nbind = \"{}\"\nto = \"web\"\n",
            ports::free()
        );
        config(front, "", &endpoints) + &extra
    };
    let mut evenkeel = Evenkeel::start(with(0));
    let mut reload_twenty_times = |first: u32| {
        for number in first..first + 20 {
            evenkeel.reloaded(&with(number));
            client::ask(front, "hello");
        }
        evenkeel.wait_until_idle("web");
        let process = evenkeel.process();
        (process.descriptors(), process.threads())
    };
    let (descriptors, threads) = reload_twenty_times(1);
    let (_, threads_later) = reload_twenty_times(21);
    assert_eq!(threads, threads_later);
    // A connection to the control socket may be on its way out at either moment.
    wait::until_so("no descriptor is left behind", || {
        evenkeel.process().descriptors() <= descriptors
    });
    let status = evenkeel.status();
    let endpoints = status["clusters"][0]["endpoints"].as_array().map(Vec::len);
    assert_eq!(endpoints, Some(2), "{status:#}");
}

/// An endpoint that has failed keeps the effective weight that it has come down to, and its ejection.
#[test]
fn fault_14_a_reload_keeps_effective_weight_and_ejection() {
    let (alive, front, nobody) = (Service::named("alive"), ports::free(), ports::free());
    let lines = "ejection = { failures = 2, base = \"1h\", max = \"1h\" }";
    let weighing = |weight| {
        let endpoints = [
            endpoint("dead", nobody, 5),
            endpoint("alive", alive.address(), weight),
        ];
        config(front, lines, &endpoints)
    };
    let evenkeel = Evenkeel::start(weighing(1));
    wait::until_so("it is ejected", || {
        client::listen(front);
        state(&evenkeel, "dead") == "ejected"
    });
    let before = evenkeel.endpoint("web", "dead");

    evenkeel.reloaded(&weighing(2));

    let after = evenkeel.endpoint("web", "dead");
    for kept in [
        "state",
        "weight",
        "effective_weight",
        "failures",
        "sessions",
    ] {
        assert_eq!(before[kept], after[kept], "{kept}");
    }
    let left = |status: &Value| status["ejected_for_ms"].as_u64().expect("it is out");
    assert!(left(&after) <= left(&before), "the ejection began anew");
}

/// The rotation goes on: no endpoint is favoured by a reload.
#[test]
fn fault_17_a_reload_does_not_begin_the_rotation_anew() {
    let services = ["a", "b", "c"].map(Service::named);
    let front = ports::free();
    let listed = ["a", "b", "c"].iter().zip(&services);
    let endpoints: Vec<String> = listed
        .map(|(name, service)| endpoint(name, service.address(), 1))
        .collect();
    let lines = |attempts: u32| format!("attempts = {attempts}");
    let evenkeel = Evenkeel::start(config(front, &lines(1), &endpoints));

    let mut served: Vec<String> = Vec::new();
    for attempts in 2..14 {
        served.push(client::listen(front));
        let queue_max = format!("{}\nqueue_max = {attempts}", lines(1));
        evenkeel.reloaded(&config(front, &queue_max, &endpoints));
    }

    for name in ["a", "b", "c"] {
        let count = served.iter().filter(|one| *one == name).count();
        assert_eq!(count, 4, "{served:?}");
    }
}

/// A new endpoint warms up; the reloads that follow neither end that nor begin it anew, and nobody else warms up.
#[test]
fn fault_20_slow_start_goes_on_over_reloads() {
    let (old, new, front) = (Service::named("old"), Service::named("new"), ports::free());
    let with = |weight: u32, more: &[String]| {
        let mut endpoints = vec![endpoint("old", old.address(), weight)];
        endpoints.extend_from_slice(more);
        config(front, "slow_start = \"1h\"", &endpoints)
    };
    let added = [endpoint("new", new.address(), 100)];
    let evenkeel = Evenkeel::start(with(100, &[]));
    assert_eq!(state(&evenkeel, "old"), "up");

    for weight in [100, 101, 102] {
        evenkeel.reloaded(&with(weight, &added));
        assert_eq!(state(&evenkeel, "new"), "slow-start");
        assert_eq!(state(&evenkeel, "old"), "up");
    }

    let served: Vec<String> = (0..33).map(|_| client::listen(front)).collect();
    let on_new = served.iter().filter(|name| *name == "new").count();
    assert!(
        (1..=6).contains(&on_new),
        "{on_new} of 33 at a tenth of its weight"
    );
}

/// An endpoint that a reload has added gets its part, by whichever algorithm.
#[test]
fn fault_21_an_endpoint_added_by_a_reload_gets_traffic() {
    for balance in ["round-robin", "random", "two-choices", "least-connections"] {
        let (old, new, front) = (Service::named("old"), Service::named("new"), ports::free());
        let lines = format!("balance = \"{balance}\"");
        let first = endpoint("old", old.address(), 1);
        let second = endpoint("new", new.address(), 1);
        let evenkeel = Launch::new(config(front, &lines, std::slice::from_ref(&first)))
            .process("workers = 1")
            .start();
        assert_eq!(client::listen(front), "old");

        evenkeel.reloaded(&config(front, &lines, &[first, second]));

        let is_new = |_: &i32| client::listen(front) == "new";
        let on_new = (0..40).filter(is_new).count();
        assert!((5..=35).contains(&on_new), "{balance}: {on_new} of 40");
    }
}
