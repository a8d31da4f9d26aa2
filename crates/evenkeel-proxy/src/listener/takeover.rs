//! Whose sockets a listener gets when a configuration is reloaded. Pure.
//!
//! Sockets go by their address, whatever the listener is called: an address that stays is never closed, and nobody who waits
//! in its backlog is lost.

use std::sync::Arc;

use evenkeel_core::units::Address;

use super::Neighbours;
use crate::settings::{Layer, ListenerSettings};

/// An address that this process listens on.
#[derive(Clone)]
pub(crate) struct Held {
    /// The listener's.
    pub(crate) name: Arc<str>,
    /// Whose workers have its sockets; `None` if nobody's have them yet.
    pub(crate) layer: Option<Layer>,
    /// As configured; with port 0, the kernel has chosen another one.
    pub(crate) asked_for: Address,
    /// Where it really listens.
    pub(crate) address: Address,
    /// Whether anybody can connect there: the file of a Unix socket may have been removed.
    pub(crate) is_reachable: bool,
}

/// Where a listener's sockets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From the listener at that position among those before.
    TakenOver(usize),
    /// They are to be bound.
    Bound(Neighbours),
}

/// For each listener of the new configuration, where its sockets come from. No sockets go to two.
pub(crate) fn sources(
    before: impl Iterator<Item = Held>,
    after: &[ListenerSettings],
) -> Vec<Source> {
    let mut left: Vec<Option<Held>> = before.map(Some).collect();
    let mut taken: Vec<Option<usize>> = vec![None; after.len()];
    // By name and address first: where several ask the kernel for a port, each keeps its own.
    for may_be in [
        Held::is_same as fn(&Held, &ListenerSettings) -> bool,
        Held::is_at,
    ] {
        for (settings, taken) in after.iter().zip(&mut taken) {
            if taken.is_none() {
                *taken = take_first(&mut left, |held| may_be(held, settings));
            }
        }
    }
    let leaving: Vec<Held> = left.into_iter().flatten().collect();
    let source = |(settings, taken): (&ListenerSettings, Option<usize>)| match taken {
        Some(position) => Source::TakenOver(position),
        None => Source::Bound(neighbours(&settings.bind, &leaving)),
    };
    after.iter().zip(taken).map(source).collect()
}

impl Held {
    fn is_at(&self, settings: &ListenerSettings) -> bool {
        let is_address = settings.bind == self.asked_for || settings.bind == self.address;
        let layer = settings.protocol.layer();
        self.is_reachable && is_address && self.layer.is_none_or(|held| held == layer)
    }

    fn is_same(&self, settings: &ListenerSettings) -> bool {
        self.is_at(settings) && self.name == settings.name
    }
}

fn take_first(left: &mut [Option<Held>], wanted: impl Fn(&Held) -> bool) -> Option<usize> {
    let position = left
        .iter()
        .position(|held| held.as_ref().is_some_and(&wanted))?;
    left[position] = None;
    Some(position)
}

/// A wildcard address and one of its parts cannot be told apart by a claim, which would fail on our own listener; nor can an
/// address whose sockets go over to the workers of another layer, which have sockets of their own.
fn neighbours(bind: &Address, leaving: &[Held]) -> Neighbours {
    let overlaps = |held: &Held| match (&held.address, bind) {
        (Address::Ip(address), Address::Ip(bind)) => {
            address.port() == bind.port()
                && address.is_ipv4() == bind.is_ipv4()
                && (address.ip() == bind.ip()
                    || address.ip().is_unspecified()
                    || bind.ip().is_unspecified())
        }
        _ => false,
    };
    if leaving.iter().any(overlaps) {
        Neighbours::Leaving
    } else {
        Neighbours::Strangers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::listener;

    fn held(name: &str, asked_for: &str, address: &str) -> Held {
        Held {
            name: name.into(),
            layer: Some(Layer::Transport),
            asked_for: Address::Ip(asked_for.parse().unwrap()),
            address: Address::Ip(address.parse().unwrap()),
            is_reachable: true,
        }
    }

    fn wanted(name: &str, bind: &str) -> ListenerSettings {
        ListenerSettings {
            bind: Address::Ip(bind.parse().unwrap()),
            ..listener(name, 0)
        }
    }

    fn decide(before: &[Held], after: &[ListenerSettings]) -> Vec<Source> {
        sources(before.iter().cloned(), after)
    }

    const BOUND: Source = Source::Bound(Neighbours::Strangers);

    /// Two listeners swap their names: the sockets stay with the addresses.
    #[test]
    fn sockets_go_by_their_address() {
        let before = ["a", "b"].map(|name| {
            let address = format!("127.0.0.1:{}", if name == "a" { 1 } else { 2 });
            held(name, &address, &address)
        });
        let after = [wanted("b", "127.0.0.1:1"), wanted("a", "127.0.0.1:2")];

        assert_eq!(
            decide(&before, &after),
            [Source::TakenOver(0), Source::TakenOver(1)]
        );
    }

    /// Each of two listeners that leave the port to the kernel keeps its own; a third one is bound.
    #[test]
    fn a_port_of_the_kernels_choice_stays_with_its_name() {
        let before = [
            held("a", "127.0.0.1:0", "127.0.0.1:4000"),
            held("b", "127.0.0.1:0", "127.0.0.1:4001"),
        ];
        let after = ["new", "b", "a"].map(|name| wanted(name, "127.0.0.1:0"));

        let sources = decide(&before, &after);

        assert_eq!(sources, [BOUND, Source::TakenOver(1), Source::TakenOver(0)]);
    }

    /// The kernel's choice, written down, is the same address.
    #[test]
    fn an_address_may_be_written_down_later() {
        let before = [held("a", "127.0.0.1:0", "127.0.0.1:4000")];

        let sources = decide(&before, &[wanted("a", "127.0.0.1:4000")]);

        assert_eq!(sources, [Source::TakenOver(0)]);
    }

    /// A socket that nobody can reach is made anew.
    #[test]
    fn a_socket_without_its_file_is_not_taken_over() {
        let before = [Held {
            is_reachable: false,
            ..held("a", "127.0.0.1:80", "127.0.0.1:80")
        }];
        let after = [wanted("a", "127.0.0.1:80")];

        assert!(matches!(decide(&before, &after)[..], [Source::Bound(_)]));
    }

    /// From one address to all, on the same port: the old listener would fail the claim, and is the only one that could.
    #[test]
    fn a_wildcard_may_follow_one_of_its_addresses() {
        let before = [held("a", "127.0.0.1:80", "127.0.0.1:80")];
        let leaving = Source::Bound(Neighbours::Leaving);

        assert_eq!(decide(&before, &[wanted("a", "0.0.0.0:80")]), [leaving]);
        assert_eq!(decide(&before, &[wanted("a", "[::]:80")]), [BOUND]);
        assert_eq!(decide(&before, &[wanted("a", "0.0.0.0:81")]), [BOUND]);
        let both = [wanted("a", "127.0.0.1:80"), wanted("b", "0.0.0.0:80")];
        assert_eq!(decide(&before, &both), [Source::TakenOver(0), BOUND]);
    }
}
