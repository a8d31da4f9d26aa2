//! The client against the bytes of real servers: MariaDB 10.11 where nothing else is said.

use proptest::prelude::*;

use super::greeting::Greeting;
use super::login::Plugin;
use super::packet::append_packet;
use super::{Account, Client, Event, Malformed, PAYLOAD_BYTES_MAX, ROWS_MAX, ServerError};

const GREETING: &[u8] = b"d\x00\x00\x00\n5.5.5-10.11.19-MariaDB-0+deb12u1\x00\x06\x00\x00\x00Fc?PV@zf\x00\xfe\xf7\x08\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00r*t11DAWt`fa\x00mysql_native_password\x00";
const LOGIN_WITH_SESAME: &[u8] = b"N\x00\x00\x01\x05\xa2\x08\x00\x00\x00\x01\x00-\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00pw\x00\x14\xe0\x8e\xab\xb6\x82$\xe4t\x1a^6\xd4P\xb6\xee\xc2\x9c\xa64?mysql_native_password\x00";
const LOGIN_OK: &[u8] = b"\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00";
const PONG: &[u8] = b"\x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00";
const NULL_VALUE: &[u8] = b"\x01\x00\x00\x01\x01\x1a\x00\x00\x02\x03def\x00\x00\x00\x04NULL\x00\x0c?\x00\x00\x00\x00\x00\x06\x80\x00\x00\x00\x00\x05\x00\x00\x03\xfe\x00\x00\x02\x00\x01\x00\x00\x04\xfb\x05\x00\x00\x05\xfe\x00\x00\x02\x00";
const NO_ROW: &[u8] = b"\x01\x00\x00\x01\x01\x17\x00\x00\x02\x03def\x00\x00\x00\x011\x00\x0c?\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00\x05\x00\x00\x03\xfe\x00\x00\x02\x00\x05\x00\x00\x04\xfe\x00\x00\x02\x00";
const TWO_COLUMNS: &[u8] = b"\x01\x00\x00\x01\x02d\x00\x00\x02\x03def\x12information_schema\x11SESSION_VARIABLES\x11SESSION_VARIABLES\rVariable_name\rVARIABLE_NAME\x0c-\x00\x00\x01\x00\x00\xfd\x01\x10\x00\x00\x00]\x00\x00\x03\x03def\x12information_schema\x11SESSION_VARIABLES\x11SESSION_VARIABLES\x05Value\x0eVARIABLE_VALUE\x0c-\x00\x00@\x00\x00\xfd\x01\x10\x00\x00\x00\x05\x00\x00\x04\xfe\x00\x00\"\x00\x0b\x00\x00\x05\x04port\x0534567\x05\x00\x00\x06\xfe\x00\x00\"\x00";
const UNKNOWN_VARIABLE: &[u8] =
    b".\x00\x00\x01\xff\xa9\x04#HY000Unknown system variable 'wsrep_ready'";

fn client(password: &[u8]) -> Client {
    Client::new(Account {
        user: "pw".to_owned(),
        password: password.to_vec(),
    })
}

/// A client that has logged in.
fn logged_in() -> Client {
    let mut client = client(b"sesame");
    client.receive(GREETING).unwrap();
    client.receive(LOGIN_OK).unwrap();
    client.take_outbound();
    assert_eq!(client.next_event(), Some(Event::LoggedIn));
    client
}

/// What a query whose answer is these bytes comes to.
fn answer_to_query(answer: &[u8]) -> Event {
    let mut client = logged_in();
    client.query("SELECT 1");
    client.receive(answer).unwrap();
    client.next_event().unwrap()
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_packet(&mut bytes, sequence, payload);
    bytes
}

/// The login is, byte for byte, the one that the server accepted.
#[test]
fn the_login_proves_the_password_to_that_greeting() {
    let mut client = client(b"sesame");
    assert!(!client.is_greeted());

    client.receive(GREETING).unwrap();

    assert!(client.is_greeted());
    assert_eq!(client.take_outbound(), LOGIN_WITH_SESAME);
}

/// A whole visit, in pieces cut at every byte: login, ping, query, goodbye.
#[test]
fn a_visit_is_the_same_however_it_is_cut() {
    let visit = [GREETING, LOGIN_OK, PONG, TWO_COLUMNS].concat();
    for cut in 0..=visit.len() {
        let mut client = client(b"sesame");
        let mut events = Vec::new();
        for piece in [&visit[..cut], &visit[cut..]] {
            // A server answers in turn: what comes early waits here.
            for byte in piece {
                client.receive(&[*byte]).unwrap();
                while let Some(event) = client.next_event() {
                    match &event {
                        Event::LoggedIn => client.ping(),
                        Event::Pong => client.query("SHOW VARIABLES LIKE 'port'"),
                        _ => client.quit(),
                    }
                    events.push(event);
                }
            }
        }
        let value = Event::Value(Some(Some(b"port".to_vec())));
        assert_eq!(events, [Event::LoggedIn, Event::Pong, value]);
        assert!(client.take_outbound().ends_with(b"\x01\x00\x00\x00\x01"));
    }
}

/// NULL, no row, an error in place of rows: each is told apart.
#[test]
fn results_are_told_apart() {
    assert_eq!(answer_to_query(NULL_VALUE), Event::Value(Some(None)));
    assert_eq!(answer_to_query(NO_ROW), Event::Value(None));
    assert_eq!(answer_to_query(PONG), Event::Value(None));
    let refused = ServerError {
        code: 1193,
        message: "Unknown system variable 'wsrep_ready'".to_owned(),
    };
    assert_eq!(
        answer_to_query(UNKNOWN_VARIABLE),
        Event::CommandRefused(refused)
    );
}

/// The server that takes no more says so instead of greeting, without an SQL state.
#[test]
fn an_error_in_place_of_a_greeting_is_a_refusal() {
    let mut client = client(b"");
    let full = super::error_instead_of_greeting(1040, "Too many connections");

    client.receive(&full).unwrap();

    let refused = ServerError {
        code: 1040,
        message: "Too many connections".to_owned(),
    };
    assert_eq!(client.next_event(), Some(Event::LoginRefused(refused)));
    assert!(client.take_outbound().is_empty());
}

/// An account without a password proves nothing.
#[test]
fn an_empty_password_has_an_empty_proof() {
    let greeting = Greeting::parse(&GREETING[4..]).unwrap();
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        assert!(plugin.proof(b"", &greeting.scramble).is_empty());
    }
}

/// The hash of MySQL 8, against values that its own client makes.
#[test]
fn the_cached_sha2_proof_is_mysqls() {
    let scramble = [
        10, 47, 74, 111, 75, 73, 34, 48, 88, 76, 114, 74, 37, 13, 3, 80, 82, 2, 23, 21,
    ];
    let proof = Plugin::CachingSha2.proof(b"secret", &scramble);
    let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "f490e76f66d9d86665ce54d98c78d0acfe2fb0b08b423da807144873d30b312c"
    );
}

/// An account with another authentication than the server's usual one: the server asks, the client proves it so.
#[test]
fn a_switch_is_followed_once() {
    let mut client = client(b"sesame");
    client.receive(GREETING).unwrap();
    client.take_outbound();
    let request = packet(2, b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0");

    client.receive(&request).unwrap();
    let proof = Plugin::CachingSha2.proof(b"sesame", b"abcdefghijklmnopqrst");
    assert_eq!(client.take_outbound(), packet(3, &proof));

    client.receive(&packet(4, b"\x01\x03")).unwrap();
    client.receive(&packet(5, &LOGIN_OK[4..])).unwrap();
    assert_eq!(client.next_event(), Some(Event::LoggedIn));
}

/// An authentication that is not known here is named, and the handshake still goes to its end: a packet is sent.
#[test]
fn an_unknown_authentication_is_declined_in_form() {
    let asked = |request: &[u8]| {
        let mut client = client(b"sesame");
        client.receive(GREETING).unwrap();
        client.take_outbound();
        client.receive(&packet(2, request)).unwrap();
        let Some(Event::UnknownAuthentication(name)) = client.next_event() else {
            panic!("the request was not declined");
        };
        let sent = client.take_outbound();
        // The server refuses, and says more than once what it thinks of it.
        client.receive(&packet(4, b"\xff\x15\x04no")).unwrap();
        client.receive(&packet(5, b"\xff\x15\x04no")).unwrap();
        assert_eq!(client.next_event(), None);
        (name, sent)
    };
    let (name, sent) = asked(b"\xfeclient_ed25519\0abcdefghijklmnopqrstuvwxyz012345");
    assert_eq!((&*name, sent.len()), ("client_ed25519", 4 + 64));
    let (name, sent) = asked(b"\x01\x04");
    assert!(name.starts_with("caching_sha2_password"));
    assert_eq!(sent, packet(3, &[0]));
}

/// Bytes of another protocol, a packet out of turn, a result without end: refused, not waited for.
#[test]
fn what_is_not_mysql_is_refused() {
    let http = client(b"").receive(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(matches!(http, Err(Malformed::PayloadTooLong(bytes)) if bytes > PAYLOAD_BYTES_MAX));
    let ssh = client(b"").receive(&packet(0, b"SSH-2.0-OpenSSH_9.2"));
    assert!(matches!(ssh, Err(Malformed::Payload(_))));
    let out_of_turn = client(b"").receive(&packet(9, &GREETING[4..]));
    assert_eq!(out_of_turn, Err(Malformed::OutOfSequence));

    let mut endless = logged_in();
    endless.query("SELECT seq FROM seq_1_to_1000000");
    let columns = &NULL_VALUE[..NULL_VALUE.len() - 14];
    endless.receive(columns).unwrap();
    let row = |number: usize| packet(u8::try_from((4 + number) % 256).unwrap(), &[1, b'1']);
    let rows: Vec<u8> = (0..=ROWS_MAX).flat_map(row).collect();
    assert!(endless.receive(&rows).is_err());
}

/// A server that is shutting down says goodbye without having been asked.
#[test]
fn a_server_may_end_the_session_by_itself() {
    let mut client = logged_in();
    client
        .receive(&packet(0, b"\xff\x1d\x04#08S01Server shutdown in progress"))
        .unwrap();
    assert!(
        matches!(client.next_event(), Some(Event::CommandRefused(error)) if error.code == 1053)
    );
}

proptest! {
    /// Any bytes, in any pieces, at any point of a visit: an event, a refusal or nothing, never a panic.
    #[test]
    fn any_bytes_are_survived(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8), start in 0..4) {
        let mut client = if start == 0 { client(b"x") } else { logged_in() };
        match start {
            2 => client.ping(),
            3 => client.query("SELECT 1"),
            _ => {}
        }
        for piece in pieces {
            if client.receive(&piece).is_err() {
                break;
            }
            while client.next_event().is_some() {}
        }
    }
}
