//! A client: logs in, asks, and leaves as a client should. Bytes in, bytes out, events.
//!
//! It does no more than a check of a server's health needs: no TLS, no database, no prepared statements. What it is told it
//! believes only within bounds: see [`PAYLOAD_BYTES_MAX`], [`COLUMNS_MAX`] and [`ROWS_MAX`].

use std::collections::VecDeque;

use super::answer::{ERROR, LoginAnswer, QueryAnswer, Row, ServerError, is_end, plain_answer};
use super::greeting::{Greeting, Scramble};
use super::login::{Account, Plugin, login, proof_of_nothing};
use super::packet::{Malformed, append_packet, split_packet};

/// The most columns of a result.
pub const COLUMNS_MAX: u64 = 64;
/// The most rows that are read through to the end of a result.
pub const ROWS_MAX: usize = 1000;
/// How often a server may ask for another authentication: once is what the protocol knows.
const SWITCHES_MAX: u32 = 1;

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PING: u8 = 0x0e;

/// What has become known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server has accepted the account; commands may follow.
    LoggedIn,
    /// It does not accept it, or refuses everybody.
    LoginRefused(ServerError),
    /// It asks for a proof of the password that this client cannot give. The answer to what is sent instead may still come.
    UnknownAuthentication(String),
    /// The answer to a ping.
    Pong,
    /// The first value of the first row of a query; the outer `None` means that there is no row, the inner one NULL.
    Value(Option<Option<Vec<u8>>>),
    /// The answer to a command.
    CommandRefused(ServerError),
}

/// What the next packet is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Awaits {
    Greeting,
    LoginAnswer {
        scramble: Scramble,
        switches: u32,
    },
    /// Whatever it says, nothing follows from it.
    Dismissal,
    Command,
    Pong,
    QueryAnswer,
    /// Descriptions of columns, and the end of them.
    Columns {
        left: u64,
    },
    Rows {
        seen: usize,
        first: Option<Option<Vec<u8>>>,
    },
    /// Nothing: it has been told that this is the end.
    Nothing,
}

/// See the module's documentation.
#[derive(Clone)]
pub struct Client {
    account: Account,
    awaits: Awaits,
    /// The number that the next packet has, whoever sends it.
    sequence: u8,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
    events: VecDeque<Event>,
}

impl Client {
    /// A client that waits for the server's greeting.
    pub fn new(account: Account) -> Self {
        Self {
            account,
            awaits: Awaits::Greeting,
            sequence: 0,
            inbound: Vec::new(),
            outbound: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes what the server has sent, in pieces of any size, and keeps at most one incomplete packet of it.
    ///
    /// # Errors
    ///
    /// It is not MySQL, or beyond the bounds; nothing more must be given then.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut inbound = std::mem::take(&mut self.inbound);
        inbound.extend_from_slice(bytes);
        let mut rest: &[u8] = &inbound;
        while let Some((packet, after)) = split_packet(rest)? {
            self.take(packet.sequence, packet.payload)?;
            rest = after;
        }
        self.inbound = rest.to_vec();
        Ok(())
    }

    /// What has become known since, the oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What has to be sent to the server now.
    pub fn take_outbound(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outbound)
    }

    /// Whether the server has begun to speak.
    pub const fn is_greeted(&self) -> bool {
        !matches!(self.awaits, Awaits::Greeting)
    }

    /// Asks whether the server is alive. To be called when it owes no answer.
    pub fn ping(&mut self) {
        self.command(PING, &[], Awaits::Pong);
    }

    /// Runs a statement. To be called when the server owes no answer.
    pub fn query(&mut self, statement: &str) {
        self.command(QUERY, statement.as_bytes(), Awaits::QueryAnswer);
    }

    /// Says goodbye; the server then closes the connection.
    pub fn quit(&mut self) {
        self.command(QUIT, &[], Awaits::Nothing);
    }

    fn command(&mut self, command: u8, argument: &[u8], awaits: Awaits) {
        let mut payload = vec![command];
        payload.extend_from_slice(argument);
        self.sequence = 0;
        self.send(&payload);
        self.awaits = awaits;
    }

    fn send(&mut self, payload: &[u8]) {
        append_packet(&mut self.outbound, self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn take(&mut self, sequence: u8, payload: &[u8]) -> Result<(), Malformed> {
        if !self.is_in_turn(sequence, payload) {
            return Err(Malformed::OutOfSequence);
        }
        self.sequence = sequence.wrapping_add(1);
        match std::mem::replace(&mut self.awaits, Awaits::Nothing) {
            Awaits::Greeting => self.greeted(payload),
            Awaits::LoginAnswer { scramble, switches } => {
                self.login_answered(payload, scramble, switches)
            }
            Awaits::Pong => self.ponged(payload),
            Awaits::QueryAnswer => self.query_answered(payload),
            Awaits::Columns { left } => self.column(payload, left),
            Awaits::Rows { seen, first } => self.row(payload, seen, first),
            Awaits::Command => self.spoken_to(payload),
            Awaits::Dismissal | Awaits::Nothing => Ok(()),
        }
    }

    /// A server that shuts down, or ends an idle session, says so without being asked, under the number 0.
    fn is_in_turn(&self, sequence: u8, payload: &[u8]) -> bool {
        sequence == self.sequence || payload.first() == Some(&ERROR)
    }

    fn greeted(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if payload.first() == Some(&ERROR) {
            return self.refuse_login(ServerError::parse(payload)?);
        }
        let greeting = Greeting::parse(payload)?;
        let login = login(&greeting, &self.account);
        self.send(&login);
        self.awaits = Awaits::LoginAnswer {
            scramble: greeting.scramble,
            switches: 0,
        };
        Ok(())
    }

    fn login_answered(
        &mut self,
        payload: &[u8],
        scramble: Scramble,
        switches: u32,
    ) -> Result<(), Malformed> {
        match LoginAnswer::parse(payload)? {
            LoginAnswer::Accepted => {
                self.awaits = Awaits::Command;
                self.events.push_back(Event::LoggedIn);
            }
            LoginAnswer::ProofAccepted => {
                self.awaits = Awaits::LoginAnswer { scramble, switches };
            }
            LoginAnswer::PasswordWanted => self.give_up_login(
                "caching_sha2_password, full authentication: it needs TLS, or a cached password",
                &[],
            ),
            LoginAnswer::Switch { plugin, .. } if switches == SWITCHES_MAX => {
                self.give_up_login(&String::from_utf8_lossy(&plugin), &plugin);
            }
            LoginAnswer::Switch {
                plugin,
                scramble: new,
            } => self.switch(&plugin, new.unwrap_or(scramble), switches),
            LoginAnswer::Refused(error) => return self.refuse_login(error),
        }
        Ok(())
    }

    fn switch(&mut self, name: &[u8], scramble: Scramble, switches: u32) {
        let plugin = Plugin::of(name);
        if plugin == Plugin::Unknown {
            return self.give_up_login(&String::from_utf8_lossy(name), name);
        }
        let proof = plugin.proof(&self.account.password, &scramble);
        self.send(&proof);
        self.awaits = Awaits::LoginAnswer {
            scramble,
            switches: switches + 1,
        };
    }

    /// The handshake is gone through to its end all the same: a server counts those that are broken off.
    fn give_up_login(&mut self, asked_for: &str, plugin: &[u8]) {
        self.send(&proof_of_nothing(plugin));
        self.awaits = Awaits::Dismissal;
        let asked_for = asked_for.to_owned();
        self.events
            .push_back(Event::UnknownAuthentication(asked_for));
    }

    fn refuse_login(&mut self, error: ServerError) -> Result<(), Malformed> {
        self.events.push_back(Event::LoginRefused(error));
        Ok(())
    }

    fn ponged(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        match plain_answer(payload)? {
            Ok(()) => self.finish_command(Event::Pong),
            Err(error) => self.finish_command(Event::CommandRefused(error)),
        }
        Ok(())
    }

    fn query_answered(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        match QueryAnswer::parse(payload)? {
            QueryAnswer::NoResult => self.finish_command(Event::Value(None)),
            QueryAnswer::Refused(error) => self.finish_command(Event::CommandRefused(error)),
            // An empty packet in place of the file, which the server answers as it likes.
            QueryAnswer::FileWanted => {
                self.send(&[]);
                self.awaits = Awaits::QueryAnswer;
            }
            QueryAnswer::Columns(columns @ 1..=COLUMNS_MAX) => {
                self.awaits = Awaits::Columns { left: columns };
            }
            QueryAnswer::Columns(_) => {
                return Err(Malformed::Payload("a result of too many columns"));
            }
        }
        Ok(())
    }

    fn column(&mut self, payload: &[u8], left: u64) -> Result<(), Malformed> {
        match left {
            0 if is_end(payload) => {
                self.awaits = Awaits::Rows {
                    seen: 0,
                    first: None,
                };
                Ok(())
            }
            0 => Err(Malformed::Payload("columns without an end")),
            _ => {
                self.awaits = Awaits::Columns { left: left - 1 };
                Ok(())
            }
        }
    }

    fn row(
        &mut self,
        payload: &[u8],
        seen: usize,
        first: Option<Option<Vec<u8>>>,
    ) -> Result<(), Malformed> {
        match Row::parse(payload)? {
            Row::End => self.finish_command(Event::Value(first)),
            Row::Refused(error) => self.finish_command(Event::CommandRefused(error)),
            Row::First(_) if seen == ROWS_MAX => {
                return Err(Malformed::Payload("a result of too many rows"));
            }
            Row::First(value) => {
                self.awaits = Awaits::Rows {
                    seen: seen + 1,
                    first: first.or(Some(value)),
                };
            }
        }
        Ok(())
    }

    /// Nothing was asked. A server says so much only to end the session.
    fn spoken_to(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let error = ServerError::parse(payload)?;
        self.events.push_back(Event::CommandRefused(error));
        Ok(())
    }

    fn finish_command(&mut self, event: Event) {
        self.awaits = Awaits::Command;
        self.events.push_back(event);
    }
}
