#![no_main]
//! Any answer to a probe, in pieces of any size: the verdict is the one that the whole answer leads to, and its reason stays short.
//!
//! The first byte says what is asked, the second how long the pieces are.

use std::sync::Arc;

use evenkeel_core::units::Address;
use evenkeel_proxy::probe::dialogue::{Dialogue, dialogue};
use evenkeel_proxy::probe::{REASON_CHARACTERS_MAX, Verdict};
use evenkeel_proxy::settings::{
    Check, ExpectAt, HttpCheck, HttpMethod, MysqlCheck, RedisCheck, RedisRole, SendExpectCheck,
    StatusRange,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [kind, piece_bytes, answer @ ..] = bytes else {
        return;
    };
    let whole = verdict(begin(*kind), answer, answer.len());
    let pieces = verdict(begin(*kind), answer, usize::from(*piece_bytes));
    assert_eq!(
        std::mem::discriminant(&whole),
        std::mem::discriminant(&pieces),
        "{whole:?}, in pieces {pieces:?}"
    );
    for verdict in [whole, pieces] {
        let reason = verdict.reason().map(ToString::to_string);
        let characters = reason.unwrap_or_default().chars().count();
        assert!(characters <= REASON_CHARACTERS_MAX + 1, "{verdict:?}");
    }
});

/// The endpoint says this, in pieces, and then ends its stream.
fn verdict(mut dialogue: Box<dyn Dialogue>, answer: &[u8], piece_bytes: usize) -> Verdict {
    dialogue.take_outbound();
    for piece in answer.chunks(piece_bytes.max(1)) {
        assert!(!dialogue.waiting_for().is_empty());
        let verdict = dialogue.hear(piece);
        dialogue.take_outbound();
        if let Some(verdict) = verdict {
            return verdict;
        }
    }
    dialogue.hear_end()
}

fn begin(kind: u8) -> Box<dyn Dialogue> {
    let asked = Address::Ip(([127, 0, 0, 1], 80).into());
    let password = (kind & 8 != 0).then_some("sesame");
    dialogue(&check(kind), password, &asked).expect("none of them only knocks")
}

fn check(kind: u8) -> Check {
    match kind & 7 {
        0 | 1 => Check::Http(HttpCheck {
            method: HttpMethod::Get,
            path: Arc::from("/"),
            host: None,
            status: vec![StatusRange {
                first: 200,
                last: 399,
            }],
        }),
        2 => redis(None),
        3 => redis(Some(RedisRole::Master)),
        4 => redis(Some(RedisRole::Replica)),
        5 => send_expect(ExpectAt::Start),
        6 => send_expect(ExpectAt::Anywhere),
        _ => Check::Mysql(MysqlCheck {
            user: Arc::from("check"),
            password: None,
            query: Some(Arc::from("SELECT 1")),
        }),
    }
}

fn redis(role: Option<RedisRole>) -> Check {
    Check::Redis(RedisCheck {
        user: None,
        password: None,
        role,
    })
}

fn send_expect(at: ExpectAt) -> Check {
    Check::SendExpect(SendExpectCheck {
        send: None,
        expect: Arc::from(*b"220 ready"),
        at,
    })
}
