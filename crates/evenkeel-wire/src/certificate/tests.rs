//! Certificates that OpenSSL has made, whole and damaged.

use proptest::prelude::*;

use super::*;

/// `openssl req -x509` with names, a comma in its subject, and a date beyond 2049.
const CERTIFICATE: &[u8] = include_bytes!("../../../../fuzz/corpus/certificate/openssl");
/// Of version 1, without extensions.
const OLD: &[u8] = include_bytes!("../../../../fuzz/corpus/certificate/openssl_v1");

/// Dates, names and the subject are those that OpenSSL was given.
#[test]
fn a_certificate_is_read() {
    let facts = read(CERTIFICATE).unwrap();
    assert_eq!(facts.subject, "CN=al\\,ice nX,OU=People,O=Exämple,C=DE");
    assert_eq!(facts.dns_names, ["db.example.com", "*.example.org"]);
    assert!(facts.not_before < facts.not_after);
    assert_eq!(facts.not_after - facts.not_before, 20_000 * 86_400);
}

/// A subject cannot end the line that it is written in.
#[test]
fn controls_in_a_subject_are_escaped() {
    let mut bytes = CERTIFICATE.to_vec();
    let place = bytes.windows(2).rposition(|pair| pair == b"nX").unwrap();
    bytes[place] = b'\n';
    assert!(
        read(&bytes)
            .unwrap()
            .subject
            .starts_with("CN=al\\,ice \\0AX,")
    );
}

/// A certificate without extensions has no names beside its subject.
#[test]
fn an_old_certificate_is_read() {
    let facts = read(OLD).unwrap();
    assert_eq!(facts.subject, "CN=old");
    assert!(facts.dns_names.is_empty());
}

/// The calendar of both forms.
#[test]
fn moments_are_counted_from_1970() {
    let validity = |from: &[u8], to: &[u8]| {
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
        let bytes = [&[0x17, length(from)], from, &[0x18, length(to)], to].concat();
        time::validity(&bytes)
    };
    assert_eq!(
        validity(b"700101000000Z", b"20500301000000Z"),
        Some((0, 2_529_705_600))
    );
    assert_eq!(
        validity(b"491231235959Z", b"99991231235959Z"),
        Some((2_524_607_999, 253_402_300_799))
    );
    for wrong in [
        &b"701301000000Z"[..],
        b"7001010000Z",
        b"700101000000",
        b"70010100000xZ",
    ] {
        assert_eq!(validity(wrong, b"20500301000000Z"), None);
    }
}

/// Every shorter part of a certificate is refused.
#[test]
fn a_part_of_a_certificate_is_refused() {
    for length in 0..CERTIFICATE.len() {
        assert_eq!(read(&CERTIFICATE[..length]), Err(Unreadable::Structure));
    }
}

proptest! {
    /// Any damage is survived, and no name can end a line.
    #[test]
    fn damage_is_survived(place in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = CERTIFICATE.to_vec();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(facts) = read(&bytes) {
            prop_assert!(!facts.subject.chars().any(char::is_control));
        }
    }
}
