//! What a server answers: OK, an error, a request to authenticate otherwise, the rows of a query.
//!
//! Source: MySQL Internals, "Generic Response Packets", "Protocol::AuthSwitchRequest", "Text Resultset".

use super::greeting::{SCRAMBLE_BYTES, Scramble};
use super::packet::{Fields, Malformed};

/// The most bytes of a server's message that are kept; MySQL's own limit.
const MESSAGE_BYTES_MAX: usize = 512;
const SQL_STATE_BYTES: usize = 6;
/// A packet that begins as an EOF does, but is longer, is a row whose first value is huge.
const EOF_BYTES_MAX: usize = 8;

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const FAST_PROOF_ACCEPTED: u8 = 0x03;
const LOCAL_INFILE: u8 = 0xfb;
const EOF_OR_SWITCH: u8 = 0xfe;
pub(super) const ERROR: u8 = 0xff;

/// An ERR packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// The number, such as 1040 for "Too many connections".
    pub code: u16,
    /// The server's own words.
    pub message: String,
}

impl ServerError {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(payload);
        let code = fields.byte().and_then(|_mark| fields.two_bytes());
        let code = code.ok_or(Malformed::Payload("an error that ends early"))?;
        let text = match fields.0 {
            [b'#', ..] => fields.0.get(SQL_STATE_BYTES..).unwrap_or_default(),
            text => text,
        };
        let text = &text[..text.len().min(MESSAGE_BYTES_MAX)];
        Ok(Self {
            code,
            message: String::from_utf8_lossy(text).into_owned(),
        })
    }
}

/// An answer to a login, or to what followed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoginAnswer {
    Accepted,
    /// The proof is accepted; another packet says so too.
    ProofAccepted,
    /// The server wants the password itself, encrypted.
    PasswordWanted,
    Switch {
        plugin: Vec<u8>,
        scramble: Option<Scramble>,
    },
    Refused(ServerError),
}

impl LoginAnswer {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        match payload {
            [OK, ..] => Ok(Self::Accepted),
            [MORE_DATA, FAST_PROOF_ACCEPTED] => Ok(Self::ProofAccepted),
            [MORE_DATA, ..] => Ok(Self::PasswordWanted),
            [EOF_OR_SWITCH, request @ ..] => Ok(Self::switch(request)),
            [ERROR, ..] => ServerError::parse(payload).map(Self::Refused),
            _ => Err(Malformed::Payload("no answer to a login")),
        }
    }

    /// A request without a name asks for the passwords of servers before 4.1.
    fn switch(request: &[u8]) -> Self {
        let mut fields = Fields(request);
        let plugin = fields.until_nul().to_vec();
        let scramble = fields.0.first_chunk::<SCRAMBLE_BYTES>().copied();
        Self::Switch { plugin, scramble }
    }
}

/// An answer to a command that has no rows.
pub(super) fn plain_answer(payload: &[u8]) -> Result<Result<(), ServerError>, Malformed> {
    match payload {
        [OK, ..] => Ok(Ok(())),
        [ERROR, ..] => ServerError::parse(payload).map(Err),
        _ => Err(Malformed::Payload("no answer to a ping")),
    }
}

/// The first packet of the answer to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueryAnswer {
    /// The statement has no rows.
    NoResult,
    /// That many columns are described next.
    Columns(u64),
    /// The server wants a file of ours, and will not get it.
    FileWanted,
    Refused(ServerError),
}

impl QueryAnswer {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        match payload {
            [OK, ..] => Ok(Self::NoResult),
            [LOCAL_INFILE, ..] => Ok(Self::FileWanted),
            [ERROR, ..] => ServerError::parse(payload).map(Self::Refused),
            _ => Fields(payload)
                .number()
                .map(Self::Columns)
                .ok_or(Malformed::Payload("no answer to a query")),
        }
    }
}

/// A packet of a result after the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// With its first value; `None` is NULL.
    First(Option<Vec<u8>>),
    End,
    Refused(ServerError),
}

impl Row {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        match payload {
            [ERROR, ..] => ServerError::parse(payload).map(Self::Refused),
            _ if is_end(payload) => Ok(Self::End),
            _ => Fields(payload)
                .value()
                .map(|value| Self::First(value.map(<[u8]>::to_vec)))
                .ok_or(Malformed::Payload("a row that ends early")),
        }
    }
}

/// The packet that stands between columns and rows, and after them.
pub(super) fn is_end(payload: &[u8]) -> bool {
    payload.first() == Some(&EOF_OR_SWITCH) && payload.len() <= EOF_BYTES_MAX
}
