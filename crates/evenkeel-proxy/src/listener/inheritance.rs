//! What this process was given at its start: listening sockets, until its listeners have taken theirs, and what was known.
//!
//! They are told apart by address: several on one address are one listener's. Which listener gets which is decided as at a
//! reload, in [`takeover`](super::takeover); a service manager's sockets also go by name.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use evenkeel_core::KeptCluster;
use evenkeel_core::units::Address;
use evenkeel_reactor::{BoundAddress, Inherited, started_with};

use super::takeover::Held;
use crate::settings::ListenerSettings;

/// Who has given a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// The process that this one follows. Its sockets go by address; by name only where the kernel chose the port.
    Predecessor,
    /// A service manager. A listener of the socket's name takes it wherever it is bound: whoever wrote that name meant it.
    ServiceManager,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Inheritance {
    bequests: Vec<Bequest>,
    known: Vec<KeptCluster>,
}

/// The sockets of one address.
#[derive(Debug)]
pub(super) struct Bequest {
    giver: Giver,
    name: Arc<str>,
    pub(super) address: Address,
    pub(super) sockets: Vec<Inherited>,
}

impl Inheritance {
    /// The sockets that a service manager has started this process with, by the names it gave them. To be asked for once.
    pub fn from_service_manager(names: Vec<Option<String>>) -> Self {
        let mut inheritance = Self::default();
        for (descriptor, name) in started_with(names.len()).into_iter().zip(names) {
            let name = name.unwrap_or_default();
            match descriptor {
                Ok(descriptor) => inheritance.add(Giver::ServiceManager, &name, descriptor),
                Err(error) => {
                    tracing::warn!(name, %error, "a socket that LISTEN_FDS announces is not there");
                }
            }
        }
        inheritance
    }

    /// Takes in what the process before knew of endpoints; it is in force before the first connection is accepted.
    pub fn remember(&mut self, clusters: Vec<KeptCluster>) {
        self.known = clusters;
    }

    /// Whether there was a process before, that knew something.
    pub const fn remembers(&self) -> bool {
        !self.known.is_empty()
    }

    pub(crate) fn known(&self) -> &[KeptCluster] {
        &self.known
    }

    /// Takes a socket in, if it can be accepted on; otherwise it is closed.
    pub fn add(&mut self, giver: Giver, name: &str, descriptor: OwnedFd) {
        match Inherited::examine(descriptor) {
            Ok(socket) => self.enter(giver, name, socket),
            Err(unfit) => {
                tracing::warn!(name, %unfit, "a socket that was handed to this process cannot be listened on, and is closed");
            }
        }
    }

    fn enter(&mut self, giver: Giver, name: &str, socket: Inherited) {
        let address = address_of(&socket);
        let known = self.bequests.iter_mut();
        if let Some(bequest) = known.into_iter().find(|known| known.address == address) {
            return bequest.sockets.push(socket);
        }
        self.bequests.push(Bequest {
            giver,
            name: name.into(),
            address,
            sockets: vec![socket],
        });
    }

    /// The socket on that address, for something that is not a listener.
    pub fn take(&mut self, address: &Address) -> Option<Inherited> {
        let mut bequests = self.bequests.iter();
        let position = bequests.position(|bequest| bequest.address == *address)?;
        self.bequests.swap_remove(position).sockets.pop()
    }

    /// The addresses, in the order of [`into_bequests`](Self::into_bequests), as if a configuration before these listeners
    /// had asked for them.
    pub(super) fn held(&self, listeners: &[ListenerSettings]) -> Vec<Held> {
        let bequests = self.bequests.iter();
        bequests.map(|bequest| bequest.held(listeners)).collect()
    }

    pub(super) fn into_bequests(self) -> Vec<Option<Bequest>> {
        self.bequests.into_iter().map(Some).collect()
    }
}

impl Bequest {
    fn held(&self, listeners: &[ListenerSettings]) -> Held {
        Held {
            name: Arc::clone(&self.name),
            layer: None,
            asked_for: self.asked_for(listeners),
            address: self.address.clone(),
            is_reachable: true,
        }
    }

    fn asked_for(&self, listeners: &[ListenerSettings]) -> Address {
        let mut named = listeners.iter();
        let named = named.find(|listener| listener.name == self.name);
        match (self.giver, named, self.address.ip()) {
            (Giver::ServiceManager, Some(listener), _) => listener.bind.clone(),
            (Giver::Predecessor, _, Some(mut address)) => {
                address.set_port(0);
                Address::Ip(address)
            }
            _ => self.address.clone(),
        }
    }
}

fn address_of(socket: &Inherited) -> Address {
    match socket.address() {
        BoundAddress::Ip(address) => Address::Ip(*address),
        BoundAddress::Path(path) => Address::Unix(path.as_path().into()),
    }
}

/// Sockets that no listener wants are closed with this: whoever waits in them is reset, unless somebody else has them too.
pub(super) fn say_unwanted(bequests: Vec<Option<Bequest>>) {
    for bequest in bequests.into_iter().flatten() {
        let (name, address) = (&*bequest.name, &bequest.address);
        match bequest.giver {
            Giver::Predecessor => {
                tracing::info!(name, %address, "no longer listening: the configuration has no such listener any more");
            }
            Giver::ServiceManager => {
                tracing::warn!(name, %address, "the service manager's socket is closed: no listener has this name or address");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    fn socket() -> (SocketAddr, OwnedFd) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (listener.local_addr().unwrap(), listener.into())
    }

    /// Several sockets on one address are one listener's; what is no listening socket is nobody's.
    #[test]
    fn sockets_go_together_by_address() {
        let mut inheritance = Inheritance::default();
        let (address, first) = socket();
        let second = first.try_clone().unwrap();

        inheritance.add(Giver::Predecessor, "web", first);
        inheritance.add(Giver::Predecessor, "web", second);
        inheritance.add(
            Giver::Predecessor,
            "x",
            std::fs::File::open("/dev/null").unwrap().into(),
        );

        let bequests = inheritance.into_bequests();
        let [Some(bequest)] = &bequests[..] else {
            panic!("{bequests:?}");
        };
        assert_eq!(bequest.address, Address::Ip(address));
        assert_eq!(bequest.sockets.len(), 2);
    }
}
