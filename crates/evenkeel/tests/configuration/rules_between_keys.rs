//! What is right by itself and wrong beside something else.

use evenkeel::config::{self, Diagnostics, Loaded};

use crate::{WEB, only_problem};

/// Two listeners on `one` and `other`.
fn two_binds(one: &str, other: &str) -> Result<Loaded, Diagnostics> {
    let text = format!(
        "[listener.a]\nbind = \"{one}\"\nto = \"web\"\n[listener.b]\nbind = \"{other}\"\nto = \"web\"\n[cluster.web]\nendpoints = [\"10.0.0.1:80\"]\n"
    );
    config::parse_text("binds.toml", &text)
}

/// An address can be listened on once; every address of a family includes each of them; port 0 is a new port each time.
#[test]
fn listeners_do_not_share_an_address() {
    for (one, other) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("0.0.0.0:80", "127.0.0.1:80"),
        ("[::1]:80", "[::]:80"),
    ] {
        let problem = only_problem(two_binds(one, other));
        assert!(
            problem.starts_with("binds.toml:5:8"),
            "{one} and {other}: {problem}"
        );
    }
    for (one, other) in [
        ("127.0.0.1:80", "127.0.0.2:80"),
        ("0.0.0.0:80", "[::]:80"),
        ("127.0.0.1:0", "127.0.0.1:0"),
    ] {
        assert!(two_binds(one, other).is_ok(), "{one} and {other}");
    }
}

/// One table more than is possible: the place of the first that is too many.
#[test]
fn the_first_cluster_too_many_is_pointed_at() {
    const POSSIBLE: usize = 4096;
    let clusters: String = (0..POSSIBLE)
        .map(|number| format!("[cluster.c{number}]\nendpoints = [\"10.0.0.1:80\"]\n"))
        .collect();

    let problem = only_problem(config::parse_text("many.toml", &format!("{clusters}{WEB}")));

    let beyond = format!("many.toml:{}:10: there are 4097 clusters", 2 * POSSIBLE + 6);
    assert!(problem.starts_with(&beyond), "{problem}");
}

/// What only a TCP listener does is refused where requests are served, each with what stands in its place.
#[test]
fn a_listener_of_requests_takes_nothing_that_it_would_ignore() {
    for (line, advice) in [
        (
            "empty_reply = \"what?\"",
            "a client without a request is closed",
        ),
        ("failure_reply = \"mysql-error\"", "502, 503 or 504"),
        ("failure_reply = { text = \"no\" }", "502, 503 or 504"),
        ("splice = \"off\"", "leave it out"),
        (
            "timeouts = { idle = \"1m\" }",
            "`keep_alive`, `body_idle` or `tunnel_idle`",
        ),
        ("timeouts = { half_closed = \"1m\" }", "leave it out"),
    ] {
        let text = WEB.replace(
            "to = \"web\"",
            &format!("to = \"web\"\nprotocol = \"http\"\n{line}"),
        );
        let problem = only_problem(config::parse_text("web.toml", &text));
        assert!(problem.starts_with("web.toml:6:"), "{line}: {problem}");
        assert!(
            problem.contains("does not go with `protocol"),
            "{line}: {problem}"
        );
        assert!(problem.contains(advice), "{line}: {problem}");
    }
}

/// A listener that is its own endpoint would feed itself until the descriptors run out.
#[test]
fn a_circle_is_refused() {
    let text = WEB.replace("10.0.0.1:80", "127.0.0.1:8080");
    let problem = only_problem(config::parse_text("web.toml", &text));
    assert!(
        problem.starts_with("web.toml:7:14: `127.0.0.1:8080` is the listener `web` itself"),
        "{problem}"
    );
}

/// A mistyped balancer is one mistake: what depends on it is not blamed as well.
#[test]
fn one_mistake_is_reported_once() {
    let text = format!("{WEB}balance = \"hsh\"\nkey = \"first-line\"\nbounded_load = \"125%\"\n");
    let problem = only_problem(config::parse_text("web.toml", &text));
    assert!(problem.ends_with("(did you mean \"hash\"?)"), "{problem}");
}

/// An endpoint may be named by its own address, as the dump does it, and by no other.
#[test]
fn an_address_is_a_name_for_its_own_endpoint_alone() {
    let named = |name: &str| {
        let endpoint = format!("{{ name = \"{name}\", address = \"10.0.0.1:80\" }}");
        config::parse_text("web.toml", &WEB.replace("\"10.0.0.1:80\"", &endpoint))
    };
    assert!(named("10.0.0.1:80").is_ok());
    let problem = only_problem(named("10.0.0.2:80"));
    assert!(
        problem.contains("`10.0.0.2:80` is no name for an endpoint"),
        "{problem}"
    );
}

/// What comes over from other formats and other programs is told how it is written here.
#[test]
fn habits_from_elsewhere_are_answered() {
    let listener = "[listener.web]\nbind = \"127.0.0.1:80\"\n";
    let cluster = "[cluster.web]\nendpoints = [\"10.0.0.1:80\"]\n";
    for (text, expected) in [
        (
            format!("{listener}to: \"web\"\n{cluster}"),
            "main.toml:3:3: this is not TOML: invalid unquoted key, expected letters, numbers, `-`, `_` (write `to = …`)",
        ),
        (
            format!(
                "{listener}to = \"web\"\n[cluster.web]\nendpoints = [\n  \"10.0.0.1:80\"\n  \"10.0.0.2:80\",\n]\n"
            ),
            "main.toml:6:16: this is not TOML: a comma is missing between two items (put a comma here)",
        ),
        (
            format!("{listener}to = \"web\"\n{cluster}connect_timeout = \"5s\"\n"),
            "main.toml:6:1: unknown key `connect_timeout` (write `timeouts = { connect = … }`)",
        ),
    ] {
        assert_eq!(
            only_problem(config::parse_text("main.toml", &text)),
            expected
        );
    }
}

/// Keys of `health`: what each rule between them refuses, its words, and what is right instead.
const HEALTH: &[(&str, &str, &str)] = &[
    (
        r#"check = "tcp", every = "1s", timeout = "2s""#,
        "`timeout` is longer than `every`",
        r#"check = "tcp", every = "2s", timeout = "2s""#,
    ),
    (
        r#"check = "tcp", timeout = "1m""#,
        "`timeout` is longer than `every`",
        r#"check = "tcp", every = "200ms""#,
    ),
    (
        r#"check = "tcp", port = 81, address = "10.0.0.1:82""#,
        "`port` and `address` exclude each other",
        r#"check = "tcp", address = "10.0.0.1:82""#,
    ),
    (
        r#"check = "tcp", path = "/""#,
        "`path` goes with the check",
        r#"check = "http", path = "/""#,
    ),
    (
        r#"check = "mysql""#,
        "needs `user`",
        r#"check = "mysql", user = "u""#,
    ),
    (
        r#"check = "redis", password = "a", password_file = "/b""#,
        "`password` and `password_file` exclude each other",
        r#"check = "redis", password_file = "/b""#,
    ),
    (
        r#"check = "redis", user = "u""#,
        "a `user` of Redis logs in by a password",
        r#"check = "redis", user = "u", password = "p""#,
    ),
    (
        r#"check = "tcp", rise = 0"#,
        "rise",
        r#"check = "tcp", rise = 1, fall = 1"#,
    ),
    (
        r#"check = "tcp", fall = 0"#,
        "fall",
        r#"check = "tcp", rise = 5, fall = 1"#,
    ),
];

/// Keys of `health` have to fit each other.
#[test]
fn keys_of_health_fit_each_other() {
    let config = |health: &str| {
        let text = format!("{WEB}health = {{ {health} }}\n");
        config::parse_text("web.toml", &text)
    };
    for (wrong, words, right) in HEALTH {
        let problem = only_problem(config(wrong));
        assert!(problem.contains(words), "{wrong}: {problem}");
        assert!(config(right).is_ok(), "{right}");
    }
}

/// A state file is put into its place by a rename: what is there and is no file would be gone for everybody on the machine.
#[test]
fn a_device_is_no_state_file() {
    let text = format!("[process]\nstate_file = \"/dev/null\"\n{WEB}");
    let problem = only_problem(config::parse_text("state.toml", &text));
    assert!(problem.starts_with("state.toml:2:14"), "{problem}");
    assert!(problem.contains("a device"), "{problem}");
}
