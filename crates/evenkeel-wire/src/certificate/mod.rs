//! What a certificate says of itself: for whom it is, and from when to when. Read, not verified: whether to believe it is the
//! TLS library's part.
//!
//! Sources: RFC 5280 §4.1 and §4.2.1.6, X.690 (DER), RFC 4514 for names as text.

mod der;
mod name;
#[cfg(test)]
mod tests;
mod time;

use std::fmt;

use der::Reader;

/// What is read of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The first second at which it is valid, since 1970.
    pub not_before: i64,
    /// The last one.
    pub not_after: i64,
    /// Whose it is, as RFC 4514 writes it: `CN=alice,O=Example`. Empty if only its other names say so.
    pub subject: String,
    /// The names of hosts that it is for, as they are written in it, with wildcards.
    pub dns_names: Vec<String>,
}

/// Why bytes are no certificate that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A value is longer than what it is in, or not the one that must come.
    Structure,
    /// A moment is not written as it must be.
    Time,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Structure => "it is no X.509 certificate",
            Self::Time => "its dates cannot be read",
        })
    }
}

const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// The extensions' place in what is signed.
const EXTENSIONS: u8 = 0xa3;
/// A host's name among the other names.
const DNS_NAME: u8 = 0x82;

/// Reads a certificate in DER.
///
/// # Errors
///
/// See [`Unreadable`].
pub fn read(certificate: &[u8]) -> Result<Facts, Unreadable> {
    let signed = signed_part(certificate).ok_or(Unreadable::Structure)?;
    let Signed {
        validity,
        subject,
        extensions,
    } = Signed::read(signed).ok_or(Unreadable::Structure)?;
    let (not_before, not_after) = time::validity(validity).ok_or(Unreadable::Time)?;
    Ok(Facts {
        not_before,
        not_after,
        subject: name::text(subject).ok_or(Unreadable::Structure)?,
        dns_names: match extensions {
            Some(extensions) => dns_names(extensions).ok_or(Unreadable::Structure)?,
            None => Vec::new(),
        },
    })
}

fn signed_part(certificate: &[u8]) -> Option<&[u8]> {
    let outer = Reader::new(certificate).value(der::SEQUENCE)?;
    Reader::new(outer).value(der::SEQUENCE)
}

/// The fields of what is signed, as far as they are read.
struct Signed<'a> {
    validity: &'a [u8],
    subject: &'a [u8],
    extensions: Option<&'a [u8]>,
}

impl<'a> Signed<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes);
        fields.value_if(der::VERSION);
        fields.value(der::INTEGER)?; // the serial number
        fields.value(der::SEQUENCE)?; // the algorithm
        fields.value(der::SEQUENCE)?; // the issuer
        let validity = fields.value(der::SEQUENCE)?;
        let subject = fields.value(der::SEQUENCE)?;
        fields.value(der::SEQUENCE)?; // the key
        let mut extensions = None;
        while !fields.is_empty() {
            let (tag, value) = fields.any()?;
            if tag == EXTENSIONS {
                extensions = Some(Reader::new(value).value(der::SEQUENCE)?);
            }
        }
        Some(Self {
            validity,
            subject,
            extensions,
        })
    }
}

fn dns_names(extensions: &[u8]) -> Option<Vec<String>> {
    let mut extensions = Reader::new(extensions);
    let mut names = Vec::new();
    while !extensions.is_empty() {
        let mut extension = Reader::new(extensions.value(der::SEQUENCE)?);
        let kind = extension.value(der::OBJECT_IDENTIFIER)?;
        extension.value_if(der::BOOLEAN); // whether it is critical
        let content = extension.value(der::OCTET_STRING)?;
        if kind == SUBJECT_ALTERNATIVE_NAME {
            add_names(Reader::new(content).value(der::SEQUENCE)?, &mut names)?;
        }
    }
    Some(names)
}

fn add_names(listed: &[u8], names: &mut Vec<String>) -> Option<()> {
    let mut listed = Reader::new(listed);
    while !listed.is_empty() {
        let (tag, value) = listed.any()?;
        if tag == DNS_NAME && value.is_ascii() {
            names.push(String::from_utf8_lossy(value).into_owned());
        }
    }
    Some(())
}
