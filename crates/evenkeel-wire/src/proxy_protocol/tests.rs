//! Both versions from both ends: what is written is read again, however it is split, and what is not the protocol is refused.

use proptest::prelude::*;

use super::*;

fn tcp(source: &str, destination: &str) -> Header {
    Header::Tcp(Ends {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    })
}

fn path(text: &str) -> UnixPath {
    let mut path = [0; UNIX_PATH_BYTES];
    path[..text.len()].copy_from_slice(text.as_bytes());
    path
}

/// A header of version 2, byte for byte.
fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    bytes.extend_from_slice(&[command, family]);
    bytes.extend_from_slice(&u16::try_from(rest.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

const IPV4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0xc4, 0x88, 0x0c, 0xea];

/// Every shorter part of the bytes is the beginning of a header, and what follows a header is not looked at.
#[track_caller]
fn assert_read_at_any_split(bytes: &[u8], header: &Header) {
    for split in 0..bytes.len() {
        assert_eq!(parse(&bytes[..split]), Ok(Parsed::Partial), "{split}");
    }
    let whole = Ok(Parsed::Whole(header.clone(), bytes.len()));
    assert_eq!(parse(bytes), whole);
    let with_payload = [bytes, b"\r\nPROXY\xff\0"].concat();
    assert_eq!(parse(&with_payload), whole);
}

/// The line of the specification's example, byte for byte, in both directions.
#[test]
fn a_line_is_written_and_read_as_specified() {
    let header = tcp("192.168.0.1:56324", "192.168.0.11:443");
    let line = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n";
    assert_eq!(encode(Version::V1, &header), line);
    assert_read_at_any_split(line, &header);
}

/// The binary form, byte for byte, in both directions.
#[test]
fn a_binary_header_is_written_and_read_as_specified() {
    let header = tcp("192.0.2.7:50312", "10.0.0.1:3306");
    let bytes = binary(0x21, 0x11, &IPV4);
    assert_eq!(encode(Version::V2, &header), bytes);
    assert_read_at_any_split(&bytes, &header);
}

/// The longest of what the specification allows is read, and so is whatever stands behind `UNKNOWN`.
#[test]
fn the_longest_lines_are_read() {
    let ip = ["ffff"; 8].join(":");
    let line = format!("PROXY TCP6 {ip} {ip} 65535 65535\r\n");
    let end = format!("[{ip}]:65535");
    assert_read_at_any_split(line.as_bytes(), &tcp(&end, &end));

    let unknown = format!("PROXY UNKNOWN {ip} {ip} 65535 65535\r\n");
    assert_eq!(unknown.len(), 107);
    assert_read_at_any_split(unknown.as_bytes(), &Header::Local);
    assert_read_at_any_split(b"PROXY UNKNOWN\r\n", &Header::Local);
    assert_read_at_any_split(b"PROXY UNKNOWN  \xff\0 x\r\n", &Header::Local);
}

/// Each deviation from a line of version 1 is refused, for what it is.
#[test]
fn what_is_not_quite_a_line_is_refused() {
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(107 - 15));
    for (line, malformed) in [
        ("GET / HTTP/1.1\r\n", Malformed::NoHeader),
        ("proxy TCP4 1.2.3.4 5.6.7.8 1 2\r\n", Malformed::NoHeader),
        ("PROXY\r\n", Malformed::NoHeader),
        ("PROXYTCP4", Malformed::NoHeader),
        (" PROXY UNKNOWN\r\n", Malformed::NoHeader),
        ("PROXY UNKNOWN\n", Malformed::Line),
        ("PROXY UNKNOWN\rx", Malformed::Line),
        ("PROXY UNKNOWN\n\r", Malformed::Line),
        (&long, Malformed::Line),
        (&long[..107], Malformed::Line),
        ("PROXY \r\n", Malformed::Words),
        ("PROXY UNKNOWNS\r\n", Malformed::Words),
        ("PROXY TCP4\r\n", Malformed::Words),
        ("PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n", Malformed::Words),
        ("PROXY tcp4 1.2.3.4 5.6.7.8 1 2\r\n", Malformed::Words),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", Malformed::Words),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n", Malformed::Words),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n", Malformed::Words),
        ("PROXY  TCP4 1.2.3.4 5.6.7.8 1 2\r\n", Malformed::Words),
        ("PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n", Malformed::Words),
        ("PROXY TCP4\t1.2.3.4 5.6.7.8 1 2\r\n", Malformed::Words),
        ("PROXY TCP4 1.2.3.04 5.6.7.8 1 2\r\n", Malformed::Address),
        ("PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n", Malformed::Address),
        ("PROXY TCP4 1.2.3.256 5.6.7.8 1 2\r\n", Malformed::Address),
        ("PROXY TCP4 ::1 ::1 1 2\r\n", Malformed::Address),
        ("PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n", Malformed::Address),
        ("PROXY TCP6 [::1] ::1 1 2\r\n", Malformed::Address),
        ("PROXY TCP6 fe80::1%lo ::1 1 2\r\n", Malformed::Address),
        ("PROXY TCP6 1::2::3 ::1 1 2\r\n", Malformed::Address),
        ("PROXY TCP6 12345:: ::1 1 2\r\n", Malformed::Address),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n", Malformed::Port),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n", Malformed::Port),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n", Malformed::Port),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n", Malformed::Port),
        ("PROXY TCP4 1.2.3.4 5.6.7.8 1 0x2\r\n", Malformed::Port),
    ] {
        assert_eq!(parse(line.as_bytes()), Err(malformed), "{line:?}");
    }
    assert_eq!(parse(b"PROXY TCP4 \xff\r\n"), Err(Malformed::Words));
}

/// Each deviation from a header of version 2 is refused, for what it is, as soon as it has been seen.
#[test]
fn what_is_not_quite_a_binary_header_is_refused() {
    let tlv = |bytes: &[u8]| [&IPV4[..], bytes].concat();
    for (bytes, malformed) in [
        (b"\r\n\r\nQUIT".to_vec(), Malformed::NoHeader),
        (binary(0x11, 0x11, &IPV4), Malformed::Version),
        (binary(0x31, 0x11, &IPV4)[..13].to_vec(), Malformed::Version),
        (binary(0x22, 0x11, &IPV4), Malformed::Command),
        (binary(0x2f, 0x11, &IPV4)[..13].to_vec(), Malformed::Command),
        (binary(0x21, 0x41, &IPV4), Malformed::Family),
        (binary(0x21, 0x13, &IPV4), Malformed::Family),
        (binary(0x21, 0x11, &IPV4[..11]), Malformed::Length),
        (binary(0x21, 0x21, &[0; 35]), Malformed::Length),
        (
            binary(0x21, 0x31, &[0; 215])[..16].to_vec(),
            Malformed::Length,
        ),
        (
            binary(0x21, 0x11, &[0; HEADER_BYTES_MAX - 15])[..16].to_vec(),
            Malformed::Length,
        ),
        (
            binary(0x20, 0x00, &[0; HEADER_BYTES_MAX - 15]),
            Malformed::Length,
        ),
        (binary(0x21, 0x11, &tlv(&[4])), Malformed::Tlv),
        (binary(0x21, 0x11, &tlv(&[4, 0])), Malformed::Tlv),
        (binary(0x21, 0x11, &tlv(&[4, 0, 2, 0])), Malformed::Tlv),
        (
            binary(0x21, 0x11, &tlv(&[4, 0xff, 0xff, 0])),
            Malformed::Tlv,
        ),
        (
            binary(0x21, 0x11, &tlv(&[3, 0, 4, 1, 2, 3, 4])),
            Malformed::Checksum,
        ),
        (
            binary(0x21, 0x11, &tlv(&[3, 0, 3, 1, 2, 3])),
            Malformed::Checksum,
        ),
    ] {
        assert_eq!(parse(&bytes), Err(malformed), "{bytes:x?}");
    }
}

/// A sender that speaks for itself, or of something that is no stream, is believed to say nothing, whatever else it says.
#[test]
fn what_says_nothing_of_a_stream_is_local() {
    let rest = [0xff; 300];
    for (command, family, rest) in [
        (0x20, 0x00, &rest[..0]),
        (0x20, 0x00, &rest),
        (0x20, 0xff, &rest),
        (0x21, 0x00, &rest[..0]),
        (0x21, 0x00, &rest),
        (0x21, 0x01, &rest),
        (0x21, 0x10, &rest),
        (0x21, 0x12, &rest),
        (0x21, 0x32, &rest),
    ] {
        assert_read_at_any_split(&binary(command, family, rest), &Header::Local);
    }
    assert_eq!(encode(Version::V2, &Header::Local), binary(0x20, 0, b""));
}

/// TLVs up to the limit are skipped, and a right checksum is accepted.
#[test]
fn tlvs_are_skipped_and_checksums_verified() {
    let header = tcp("192.0.2.7:50312", "10.0.0.1:3306");
    let padding = vec![0; HEADER_BYTES_MAX - 16 - 12 - 3];
    let length = u16::try_from(padding.len()).unwrap().to_be_bytes();
    let padded = [&IPV4[..], &[4, length[0], length[1]], &padding].concat();
    assert_read_at_any_split(&binary(0x21, 0x11, &padded), &header);

    let unsummed = [&IPV4[..], &[0xea, 0, 2, 1, 2, 3, 0, 4, 0, 0, 0, 0]].concat();
    let sum = crc32c::crc32c([&binary(0x21, 0x11, &unsummed)]).to_be_bytes();
    let summed = [&unsummed[..unsummed.len() - 4], &sum].concat();
    assert_read_at_any_split(&binary(0x21, 0x11, &summed), &header);
}

/// A Unix client has its paths in version 2 and no words in version 1.
#[test]
fn a_unix_client_is_unknown_to_version_1() {
    let header = Header::Unix(Box::new(Ends {
        source: path(""),
        destination: path("/run/app.sock"),
    }));
    let bytes = encode(Version::V2, &header);
    assert_eq!(bytes[12..16], [0x21, 0x31, 0, 216]);
    assert_read_at_any_split(&bytes, &header);
    assert_eq!(encode(Version::V1, &header), b"PROXY UNKNOWN\r\n");
}

/// A header has one family: an end of another one is written in IPv6's clothes.
#[test]
fn ends_of_two_families_become_one() {
    let mixed = tcp("192.0.2.7:50312", "[2001:db8::1]:3306");
    let same = tcp("[::ffff:192.0.2.7]:50312", "[2001:db8::1]:3306");
    for version in [Version::V1, Version::V2] {
        let bytes = encode(version, &mixed);
        assert_eq!(parse(&bytes), Ok(Parsed::Whole(same.clone(), bytes.len())));
    }
}

/// A connection of one's own is said to be one where there are words for it.
#[test]
fn a_probe_speaks_for_itself() {
    let Header::Tcp(ends) = tcp("127.0.0.1:50312", "127.0.0.1:3306") else {
        unreachable!("it is TCP")
    };
    let line = b"PROXY TCP4 127.0.0.1 127.0.0.1 50312 3306\r\n";
    assert_eq!(encode_own(Version::V1, Some(ends)), line);
    assert_eq!(encode_own(Version::V1, None), b"PROXY UNKNOWN\r\n");
    assert_eq!(encode_own(Version::V2, Some(ends)), binary(0x20, 0, b""));
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
    let v6 = any::<([u8; 16], u16)>().prop_map(SocketAddr::from);
    prop_oneof![v4, v6]
}

fn header() -> impl Strategy<Value = Header> {
    let tcp = (address(), address()).prop_filter_map("one family", |(source, destination)| {
        let ends = Ends {
            source,
            destination,
        };
        (source.is_ipv4() == destination.is_ipv4()).then_some(Header::Tcp(ends))
    });
    let bytes = || prop::collection::vec(any::<u8>(), UNIX_PATH_BYTES);
    let unix = (bytes(), bytes()).prop_map(|(source, destination)| {
        Header::Unix(Box::new(Ends {
            source: source.try_into().unwrap(),
            destination: destination.try_into().unwrap(),
        }))
    });
    prop_oneof![Just(Header::Local), tcp, unix]
}

proptest! {
    /// What is written is read again, whatever follows, and every beginning of it is the beginning of a header.
    #[test]
    fn a_header_survives_the_way(header in header(), payload: Vec<u8>) {
        let bytes = encode(Version::V2, &header);
        assert_read_at_any_split(&bytes, &header);
        let whole = Parsed::Whole(header.clone(), bytes.len());
        prop_assert_eq!(parse(&[bytes, payload].concat()), Ok(whole));
        let known_to_version_1 = match header {
            Header::Unix(_) => Header::Local,
            header => header,
        };
        assert_read_at_any_split(&encode(Version::V1, &known_to_version_1), &known_to_version_1);
    }

    /// More bytes never change what has been read or refused.
    #[test]
    fn a_verdict_is_final(start in 0..3_usize, bytes: Vec<u8>, more: Vec<u8>) {
        let signature = [&b""[..], b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n\x21"][start];
        let bytes = [signature, &bytes].concat();
        let verdict = parse(&bytes);
        if verdict != Ok(Parsed::Partial) {
            prop_assert_eq!(parse(&[bytes, more].concat()), verdict);
        }
    }
}
