//! The greeting: the first packet of a server, protocol version 10.
//!
//! Source: MySQL Internals, "Protocol::HandshakeV10".

use super::capability::{PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION};
use super::packet::{Fields, Malformed};

/// The bytes of a scramble that go into a hash of the password.
pub(super) const SCRAMBLE_BYTES: usize = 20;
const FIRST_PART_BYTES: usize = 8;
const SECOND_PART_BYTES: usize = SCRAMBLE_BYTES - FIRST_PART_BYTES;
const PROTOCOL_VERSION: u8 = 10;

/// What the server wants hashed together with the password.
pub(super) type Scramble = [u8; SCRAMBLE_BYTES];

/// What a server says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) capabilities: u32,
    pub(super) scramble: Scramble,
    /// The authentication that the server expects unless the account has another one.
    pub(super) plugin: Vec<u8>,
}

impl Greeting {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(payload);
        if fields.byte() != Some(PROTOCOL_VERSION) {
            return Err(Malformed::Payload("a greeting of an unknown version"));
        }
        Self::after_version(&mut fields).ok_or(Malformed::Payload("a greeting that ends early"))
    }

    fn after_version(fields: &mut Fields<'_>) -> Option<Self> {
        fields.until_nul();
        let _connection: [u8; 4] = fields.chunk()?;
        let first: [u8; FIRST_PART_BYTES] = fields.chunk()?;
        fields.byte()?;
        let low = fields.two_bytes()?;
        let _character_set_and_status: [u8; 3] = fields.chunk()?;
        let high = fields.two_bytes()?;
        let _scramble_bytes_and_reserved: [u8; 11] = fields.chunk()?;
        let second: [u8; SECOND_PART_BYTES] = fields.chunk()?;
        fields.byte();
        let capabilities = u32::from(high) << 16 | u32::from(low);
        let required = PROTOCOL_41 | SECURE_CONNECTION;
        let plugin = match capabilities & PLUGIN_AUTH {
            0 => Vec::new(),
            _ => fields.until_nul().to_vec(),
        };
        (capabilities & required == required).then(|| Self {
            capabilities,
            scramble: joined(first, second),
            plugin,
        })
    }
}

fn joined(first: [u8; FIRST_PART_BYTES], second: [u8; SECOND_PART_BYTES]) -> Scramble {
    let mut scramble = [0; SCRAMBLE_BYTES];
    let (head, tail) = scramble.split_at_mut(FIRST_PART_BYTES);
    head.copy_from_slice(&first);
    tail.copy_from_slice(&second);
    scramble
}
