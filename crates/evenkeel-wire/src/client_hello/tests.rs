//! Messages of real clients, split wherever they can be, and what is not quite such a message.

use proptest::prelude::*;

use super::*;

/// What real clients send, byte for byte.
macro_rules! captured {
    ($name:literal) => {
        include_bytes!(concat!("../../../../fuzz/corpus/client_hello/", $name))
    };
}

const OPENSSL: &[u8] = captured!("openssl");
const OPENSSL_IN_THREE_RECORDS: &[u8] = captured!("openssl_fragments");

fn whole(bytes: &[u8]) -> ClientHello {
    match parse(bytes) {
        Ok(Parsed::Whole(hello)) => hello,
        other => panic!("not a whole message: {other:?}"),
    }
}

fn protocols(hello: &ClientHello) -> Vec<String> {
    let offered = hello.protocols();
    offered
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Every shorter part of the bytes is the beginning of the message, and what follows it is not looked at.
#[track_caller]
fn assert_read_at_any_split(bytes: &[u8], name: Option<&str>, offered: &[&str]) {
    for split in 0..bytes.len() {
        assert_eq!(parse(&bytes[..split]), Ok(Parsed::Partial), "{split}");
    }
    let hello = whole(bytes);
    assert_eq!(hello.server_name.as_deref(), name);
    assert_eq!(protocols(&hello), offered);
    assert_eq!(whole(&[bytes, b"\x17\x03\x03\0\x01x"].concat()), hello);
}

/// The same message cut into records of so many bytes.
fn in_records(bytes: &[u8], size: usize) -> Vec<u8> {
    let message = &bytes[5..];
    let record = |part: &[u8]| {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[22, 3, 1], &length[..], part].concat()
    };
    message.chunks(size).flat_map(record).collect()
}

/// A message with these extensions, in one record.
fn hello_with(extensions: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let fixed = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let body = [&fixed[..], &length(extensions), extensions].concat();
    let message = [&[1, 0], &length(&body)[..], &body].concat();
    [&[22, 3, 1], &length(&message)[..], &message].concat()
}

/// An extension, or anything else with its length in two bytes, behind these first bytes.
fn prefixed(first: &[u8], content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [first, &length, content].concat()
}

fn name_extension(name: &[u8]) -> Vec<u8> {
    prefixed(&[0, 0], &prefixed(&[], &prefixed(&[0], name)))
}

/// What OpenSSL's and curl's and Python's clients send is understood, wherever the network splits it.
#[test]
fn messages_of_real_clients_are_read_at_any_split() {
    assert_read_at_any_split(OPENSSL, Some("db.example.com"), &[]);
    assert_read_at_any_split(captured!("openssl_without_name"), None, &[]);
    assert_read_at_any_split(captured!("openssl_tls12"), Some("db.example.com"), &[]);
    let offered = ["h2", "http/1.1"];
    assert_read_at_any_split(captured!("openssl_alpn"), Some("db.example.com"), &offered);
    assert_read_at_any_split(captured!("curl"), Some("shop.example.com"), &offered);
    assert_read_at_any_split(captured!("python"), Some("api.example.com"), &[]);
}

/// A client may cut its message into records as it likes: OpenSSL does so when it is told to.
#[test]
fn a_message_in_several_records_is_read_at_any_split() {
    let offered: Vec<String> = (0..60)
        .map(|number| format!("protocol-number-{number:03}"))
        .collect();
    let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
    assert_read_at_any_split(OPENSSL_IN_THREE_RECORDS, Some("db.example.com"), &offered);
    for size in [1, 2, 5, 100] {
        assert_read_at_any_split(&in_records(OPENSSL, size), Some("db.example.com"), &[]);
    }
}

/// What other protocols begin with is known to be no TLS by its first bytes: nobody waits for more.
#[test]
fn other_protocols_are_told_at_once() {
    for bytes in [
        &b"G"[..],
        b"SSH-2.0-x\r\n",
        b"PROXY TCP4",
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"\x16\x02",
        b"\x80\x2e\x01\x03",
    ] {
        assert_eq!(parse(bytes), Err(Refused::NotTls), "{bytes:?}");
    }
    assert_eq!(
        parse(b"\x16\x03\x01\0\x04\x02"),
        Err(Refused::NotClientHello)
    );
    assert_eq!(parse(b"\x16\x03\x01\0\0"), Err(Refused::Record));
    assert_eq!(parse(b"\x16\x03\x01\x40\x01"), Err(Refused::Record));
}

/// A message, or what should be its records, is read up to a limit and no further.
#[test]
fn what_is_too_long_is_refused() {
    assert_eq!(
        parse(b"\x16\x03\x01\x40\0\x01\0\x40\0"),
        Err(Refused::TooLong)
    );
    let filled = hello_with(&prefixed(&[0, 21], &[0; HELLO_BYTES_MAX - 200]));
    assert_eq!(whole(&filled).server_name, None);
    let endless = in_records(&filled, 1);
    assert_eq!(parse(&endless), Err(Refused::TooLong));
    assert_eq!(parse(&endless[..HELLO_BYTES_MAX - 1]), Ok(Parsed::Partial));
}

/// A name is compared as DNS compares names, and an address is none.
#[test]
fn names_are_brought_into_one_form() {
    let named = |name: &[u8]| whole(&hello_with(&name_extension(name))).server_name;
    assert_eq!(named(b"DB.Example.COM.").as_deref(), Some("db.example.com"));
    assert_eq!(named(b"my_db").as_deref(), Some("my_db"));
    assert_eq!(named(b"192.0.2.1"), None);
    assert_eq!(named(b"2001:db8::1"), None);
}

/// What could be no host's name reaches no route, nor a log.
#[test]
fn what_is_no_name_is_refused() {
    let long = ["a.".repeat(127), "a".to_owned()].concat();
    let names: [&[u8]; 10] = [
        b"",
        b".",
        b"a..b",
        b".a",
        b"a b",
        b"a\0b",
        b"*.example.com",
        b"b\xc3\xbccher.example",
        b"\xff",
        long.as_bytes(),
    ];
    for name in names {
        let hello = hello_with(&name_extension(name));
        assert_eq!(parse(&hello), Err(Refused::ServerName), "{name:?}");
    }
    assert_eq!(normal_name(&"a".repeat(64)), None);
}

/// Fields that do not fit into each other are refused, and so is what comes twice.
#[test]
fn what_does_not_fit_is_refused() {
    let name = name_extension(b"a");
    let two_names = prefixed(
        &[0, 0],
        &prefixed(&[], &[prefixed(&[0], b"a"), prefixed(&[0], b"b")].concat()),
    );
    for (extensions, refused) in [
        (vec![0], Refused::Structure),
        (vec![0, 0, 0, 9, 0], Refused::Structure),
        (prefixed(&[0, 0], &[]), Refused::Structure),
        (prefixed(&[0, 0], &[0, 0]), Refused::Structure),
        (prefixed(&[0, 0], &[0, 1, 0, 9]), Refused::Structure),
        (prefixed(&[0, 16], &[0, 0]), Refused::Structure),
        (prefixed(&[0, 16], &[0, 1, 0]), Refused::Structure),
        (prefixed(&[0, 16], &[0, 2, 9, b'h']), Refused::Structure),
        ([&name[..], &name].concat(), Refused::Twice),
        (two_names, Refused::Twice),
    ] {
        assert_eq!(
            parse(&hello_with(&extensions)),
            Err(refused),
            "{extensions:?}"
        );
    }
}

/// A client older than extensions names nobody.
#[test]
fn a_message_without_extensions_names_nobody() {
    let mut bytes = hello_with(&[]);
    bytes.truncate(bytes.len() - 2);
    bytes[4] -= 2;
    bytes[8] -= 2;
    let hello = whole(&bytes);
    assert_eq!(
        (hello.server_name.as_deref(), protocols(&hello).len()),
        (None, 0)
    );
}

proptest! {
    /// Any bytes are read without a panic, and nothing is decided too early.
    #[test]
    fn a_beginning_never_decides_otherwise_than_the_whole(bytes in damaged()) {
        let verdict = parse(&bytes);
        for split in 0..bytes.len() {
            let early = parse(&bytes[..split]);
            prop_assert!(early == Ok(Parsed::Partial) || early == verdict, "{split}");
        }
    }
}

/// A real message with some bytes changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (
        prop::sample::select(vec![OPENSSL, OPENSSL_IN_THREE_RECORDS]),
        changes,
    )
        .prop_map(|(bytes, changes)| {
            let mut bytes = bytes.to_vec();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        })
}
