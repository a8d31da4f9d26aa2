//! The login: who one is, and the proof, which is never the password itself.
//!
//! Source: MySQL Internals, "Protocol::HandshakeResponse41", "Secure Password Authentication", "Caching SHA-2 authentication".

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::capability::{LONG_PASSWORD, PLUGIN_AUTH, WANTED};
use super::greeting::{Greeting, Scramble};

/// utf8mb4, which every server since 5.5.3 knows; for an older one it is as good as any.
const CHARACTER_SET: u8 = 45;
/// The longest packet that the server may send; a hint, and no more.
const LONGEST_ANSWER: u32 = 1 << 16;
const RESERVED_BYTES: usize = 23;
/// What `client_ed25519` of MariaDB expects: a signature.
const SIGNATURE_BYTES: usize = 64;

/// Who logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name, without NUL.
    pub user: String,
    /// Empty for an account without one.
    pub password: Vec<u8>,
}

/// A way to prove that one knows the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    Native,
    CachingSha2,
    /// One that this client cannot do.
    Unknown,
}

impl Plugin {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"mysql_native_password" => Self::Native,
            b"caching_sha2_password" => Self::CachingSha2,
            _ => Self::Unknown,
        }
    }

    fn name(self) -> &'static [u8] {
        match self {
            Self::Native | Self::Unknown => b"mysql_native_password",
            Self::CachingSha2 => b"caching_sha2_password",
        }
    }

    /// What proves the password to the server that sent the scramble.
    pub(super) fn proof(self, password: &[u8], scramble: &Scramble) -> Vec<u8> {
        match self {
            _ if password.is_empty() => Vec::new(),
            Self::Native | Self::Unknown => native(password, scramble).to_vec(),
            Self::CachingSha2 => caching_sha2(password, scramble).to_vec(),
        }
    }
}

/// The packet that answers a greeting. With a server whose usual authentication is unknown here, the account may still have one
/// that is known: the server then asks for it.
pub(super) fn login(greeting: &Greeting, account: &Account) -> Vec<u8> {
    let plugin = Plugin::of(&greeting.plugin);
    let proof = plugin.proof(&account.password, &greeting.scramble);
    let capabilities = LONG_PASSWORD | WANTED & greeting.capabilities;
    let mut payload = Vec::with_capacity(128);
    payload.extend_from_slice(&capabilities.to_le_bytes());
    payload.extend_from_slice(&LONGEST_ANSWER.to_le_bytes());
    payload.push(CHARACTER_SET);
    payload.extend_from_slice(&[0; RESERVED_BYTES]);
    payload.extend_from_slice(account.user.as_bytes());
    payload.push(0);
    // A proof has 0, 20 or 32 bytes.
    payload.push(u8::try_from(proof.len()).unwrap_or(0));
    payload.extend_from_slice(&proof);
    if capabilities & PLUGIN_AUTH != 0 {
        payload.extend_from_slice(plugin.name());
        payload.push(0);
    }
    payload
}

/// What to send to a server that asks for an authentication this client cannot do: something of the size it expects. So it
/// refuses the password. A packet of another size would be a broken handshake to it, and those it counts until it blocks the
/// address.
pub(super) fn proof_of_nothing(plugin: &[u8]) -> Vec<u8> {
    match plugin {
        b"client_ed25519" => vec![0; SIGNATURE_BYTES],
        _ => vec![0],
    }
}

/// `SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password)))`.
fn native(password: &[u8], scramble: &Scramble) -> [u8; 20] {
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let salted = Sha1::new().chain_update(scramble).chain_update(twice);
    xor(once.into(), salted.finalize().into())
}

/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble)`.
fn caching_sha2(password: &[u8], scramble: &Scramble) -> [u8; 32] {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let salted = Sha256::new().chain_update(twice).chain_update(scramble);
    xor(once.into(), salted.finalize().into())
}

fn xor<const N: usize>(mut one: [u8; N], other: [u8; N]) -> [u8; N] {
    one.iter_mut()
        .zip(other)
        .for_each(|(byte, other)| *byte ^= other);
    one
}
