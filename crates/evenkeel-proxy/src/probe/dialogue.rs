//! What a probe and an endpoint say to each other: bytes in, bytes out, a verdict. No IO.
//!
//! One file for each kind. Whatever an endpoint says, what is kept of it is bounded.

use evenkeel_core::units::Address;

use super::http::Http;
use super::mysql::Mysql;
use super::redis::Redis;
use super::send_expect::SendExpect;
use super::verdict::Verdict;
use crate::settings::Check;

/// What to do with a connection whose answer did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLate {
    /// Close it: the endpoint does not mind.
    Leave,
    /// Keep it until the endpoint has answered after all: it would count a conversation that is broken off.
    Stay,
}

/// One conversation.
pub trait Dialogue: Send {
    /// What has to be sent now, in the beginning and after each piece that was heard.
    fn take_outbound(&mut self) -> Vec<u8>;

    /// Takes a piece of what the endpoint says; the verdict, as soon as there is one. Nothing is to be heard after it.
    fn hear(&mut self, bytes: &[u8]) -> Option<Verdict>;

    /// The endpoint has ended its stream, and there is no verdict yet.
    fn hear_end(&mut self) -> Verdict;

    /// What it waits for, as the end of "no …".
    fn waiting_for(&self) -> &'static str;

    /// What to do when that does not come.
    fn when_late(&self) -> WhenLate {
        WhenLate::Leave
    }
}

/// The conversation that a check asks for; `None` if it only knocks. `password` is what the check's secret came to.
pub fn dialogue(
    check: &Check,
    password: Option<&str>,
    asked: &Address,
) -> Option<Box<dyn Dialogue>> {
    Some(match check {
        Check::Tcp => return None,
        Check::Http(check) => Box::new(Http::new(check, asked)),
        Check::Mysql(check) => Box::new(Mysql::new(check, password.unwrap_or_default())),
        Check::Redis(check) => Box::new(Redis::new(check, password)),
        Check::SendExpect(check) => Box::new(SendExpect::new(check)),
    })
}
