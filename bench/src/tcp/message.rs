//! The 64 bytes of an exchange: no two are alike, so that an answer that belongs to another exchange is noticed.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};

/// Bytes of a message, and of its answer.
pub(super) const LENGTH: usize = 64;

/// An odd number without a pattern (2^64 over the golden ratio): neighbouring exchanges differ in every word.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// An exchange: the message that was sent, and how much of its answer has come.
pub(super) struct Exchange {
    message: [u8; LENGTH],
    answer: [u8; LENGTH],
    received: usize,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Complete,
    Incomplete,
}

impl Exchange {
    /// `number` is unique within the load.
    pub(super) fn new(number: u64) -> Self {
        let mut message = [0; LENGTH];
        for (word, bytes) in (1..).zip(message.chunks_exact_mut(size_of::<u64>())) {
            bytes.copy_from_slice(&number.wrapping_mul(word).wrapping_mul(SPREAD).to_ne_bytes());
        }
        Self {
            message,
            answer: [0; LENGTH],
            received: 0,
        }
    }

    /// Sends the message. It is so short that a socket without room for it is a fault.
    pub(super) fn send(&self, mut stream: &TcpStream) -> Result<()> {
        let sent = stream.write(&self.message).context("cannot send")?;
        if sent != LENGTH {
            bail!("only {sent} of {LENGTH} bytes could be sent");
        }
        Ok(())
    }

    /// Takes what has come of the answer, and checks it when it is whole.
    pub(super) fn receive(&mut self, mut stream: &TcpStream) -> Result<Progress> {
        match stream.read(&mut self.answer[self.received..]) {
            Ok(0) => bail!("the connection was closed before the answer was complete"),
            Ok(count) => self.received += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("cannot receive"),
        }
        if self.received < LENGTH {
            return Ok(Progress::Incomplete);
        }
        if self.answer != self.message {
            bail!(
                "a wrong answer: {:?} instead of {:?}",
                self.answer,
                self.message
            );
        }
        Ok(Progress::Complete)
    }

    /// Sends, and waits for the whole answer.
    pub(super) fn complete(mut self, mut stream: &TcpStream) -> Result<()> {
        stream.write_all(&self.message).context("cannot send")?;
        stream.read_exact(&mut self.answer).context("no answer")?;
        if self.answer != self.message {
            bail!("a wrong answer");
        }
        Ok(())
    }
}
