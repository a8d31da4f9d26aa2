//! Properties that hold for any text: nothing panics, and what is accepted can be written down and read again.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::diagnostics::{Problems, Sources};
use super::document::text_of;
use super::tables::TABLES;
use super::{Appearance, dump, parse_text};

/// Pieces that configurations are made of, so that a random text comes close to one.
fn pieces() -> Vec<String> {
    let keys = TABLES
        .iter()
        .flat_map(|table| table.keys)
        .map(|key| format!("{} = ", key.name));
    let values = [
        "\"off\"",
        "\"2s\"",
        "\"64KiB\"",
        "\"50%\"",
        "\"10.0.0.1:80\"",
        "\"db.internal:80\"",
        "\"web\"",
        "\"hash\"",
        "\"first-line\"",
        "1",
        "-1",
        "1.5",
        "true",
        "1979-05-27",
        "[",
        "]",
        "{ ",
        " }",
        ", ",
        "\n",
        "\"",
        "'''",
        "\\",
        "#",
        "ä",
        "\0",
        "\u{feff}",
        "\r\n",
        "=",
        ".",
    ];
    let headers = [
        "[listener.web]\n",
        "[cluster.web]\n",
        "[[cluster.web.endpoints]]\n",
        "[process]\n",
        "[log]\n",
        "[dns]\n",
        "[defaults]\n",
    ];
    keys.chain(values.map(str::to_owned))
        .chain(headers.map(str::to_owned))
        .collect()
}

fn judge(text: &str) {
    match parse_text("any.toml", text) {
        Ok(loaded) => assert_eq!(
            parse_text("dump", &dump(&loaded)).expect("a dump is valid"),
            loaded
        ),
        Err(diagnostics) => {
            assert!(diagnostics.count() > 0, "a refusal has a reason");
            diagnostics.render(Appearance::Coloured);
            diagnostics.records();
        }
    }
}

const OFF_OR_DURATION: [&str; 5] = ["\"off\"", "\"1ms\"", "\"2s\"", "\"1h30m\"", "\"365d\""];

/// A line `key = value` with one of the values, or none.
fn line(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::option::of(select(values))
        .prop_map(move |value| value.map_or_else(String::new, |value| format!("{key} = {value}\n")))
}

fn listener() -> impl Strategy<Value = String> {
    let timeouts = (
        line("timeouts.idle", &OFF_OR_DURATION),
        line("timeouts.dead_peer", &["\"off\"", "\"1s\"", "\"1d\""]),
    );
    let replies = (
        line(
            "failure_reply",
            &[
                "\"mysql-error\"",
                "{ text = \"no\\n\" }",
                "{ text = \"\\u0000\\\"\\\\ ä\" }",
            ],
        ),
        line("empty_reply", &["\"what?\"", "'''\na\tb\r\n'''"]),
    );
    (timeouts, replies).prop_map(|((idle, dead_peer), (failure, empty))| {
        format!("[listener.web]\nbind = \"127.0.0.1:0\"\nto = \"web\"\n{idle}{dead_peer}{failure}{empty}")
    })
}

fn endpoints() -> impl Strategy<Value = String> {
    let weight = select(
        &[
            "",
            ", weight = 1",
            ", weight = 1_000_000",
            ", weight = 0x10",
        ][..],
    );
    let rest = select(&["", ", backup = true", ", max_connections = 7"][..]);
    vec((weight, rest), 1..20).prop_map(|endpoints| {
        let item = |(index, (weight, rest)): (usize, &(&str, &str))| {
            let place = match index % 4 {
                1 => format!("address = \"db{index}.internal:80\""),
                2 => format!("srv = \"_a._tcp.db{index}\", family = \"any\""),
                3 => format!("address = \"db:{index}\""),
                _ => format!("address = \"10.0.0.{index}:80\""),
            };
            format!("{{ {place}{weight}{rest} }}")
        };
        format!(
            "endpoints = [{}]\n",
            endpoints
                .iter()
                .enumerate()
                .map(item)
                .collect::<Vec<_>>()
                .join(", ")
        )
    })
}

fn cluster() -> impl Strategy<Value = String> {
    let balance = select(
        &[
            "",
            "balance = \"random\"\n",
            "balance = \"source-hash\"\nbounded_load = \"125%\"\n",
            "balance = \"hash\"\nkey = \"first-line\"\n",
        ][..],
    );
    let limits = (
        line("queue_max", &["0", "1_000_000"]),
        line("attempts", &["1", "16"]),
        line("replay", &["\"off\"", "\"1B\"", "\"1MiB\""]),
    );
    let policies = (
        line("slow_start", &OFF_OR_DURATION),
        line(
            "ejection",
            &[
                "\"off\"",
                "{ failures = 1 }",
                "{ base = \"1s\", max = \"1s\", share_max = \"100%\" }",
            ],
        ),
        line("when_none", &["\"fail\"", "\"use-all\""]),
        line("failback", &["\"auto\"", "\"manual\""]),
        line("timeouts.first_byte", &OFF_OR_DURATION),
    );
    (balance, endpoints(), limits, policies).prop_map(|(balance, endpoints, (queue, attempts, replay), (slow, ejection, none, failback, first))| {
        format!("[cluster.web]\n{balance}{endpoints}{queue}{attempts}{replay}{slow}{ejection}{none}{failback}{first}")
    })
}

proptest! {
    /// Any characters at all.
    #[test]
    fn any_characters_are_judged(text in any::<String>()) {
        judge(&text);
    }

    /// Any bytes at all: what is no text has a place that can be shown.
    #[test]
    fn any_bytes_are_judged(bytes in vec(prop_oneof![Just(0), Just(0xff), Just(0xc3), any::<u8>()], 0..40)) {
        if let Err(not_text) = text_of(bytes) {
            let mut sources = Sources::default();
            let file = sources.add("any.toml".to_owned(), not_text.text.clone());
            let problems = Problems::default();
            problems.report(not_text.problem(file));
            problems.into_diagnostics(sources).render(Appearance::Plain);
        }
    }

    /// Any order of what configurations are made of.
    #[test]
    fn any_pieces_are_judged(text in vec(select(pieces()), 0..60)) {
        judge(&text.concat());
    }

    /// Any configuration that is right reads back the same after a dump.
    #[test]
    fn any_right_configuration_survives_a_dump(listener in listener(), cluster in cluster()) {
        let text = listener + &cluster;
        prop_assert!(parse_text("right.toml", &text).is_ok(), "{}", parse_text("right.toml", &text).unwrap_err());
        judge(&text);
    }
}
