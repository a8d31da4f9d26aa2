//! Which of a worker's sessions use which endpoint.
//!
//! One index per worker, so that its lock is practically never contended: the worker writes, the control plane reads. It
//! is what lets an endpoint's sessions be found without walking over all of them.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::units::EndpointId;
use evenkeel_reactor::Key;
use parking_lot::Mutex;
use slab::Slab;

/// The sessions of each endpoint, on one worker.
#[derive(Default)]
pub(crate) struct SessionIndex {
    sessions: Mutex<HashMap<EndpointId, Slab<Key>>>,
}

impl SessionIndex {
    /// Enters a session; it leaves when the seat is dropped.
    pub(crate) fn enter(self: &Arc<Self>, endpoint: EndpointId, session: Key) -> Seat {
        let place = self
            .sessions
            .lock()
            .entry(endpoint)
            .or_default()
            .insert(session);
        Seat {
            index: Arc::clone(self),
            endpoint,
            place,
        }
    }

    /// The sessions that use the endpoint.
    pub(crate) fn sessions(&self, endpoint: EndpointId) -> Vec<Key> {
        let sessions = self.sessions.lock();
        let of_endpoint = sessions.get(&endpoint).into_iter().flatten();
        of_endpoint.map(|(_, session)| *session).collect()
    }

    /// How many sessions use the endpoint.
    pub(crate) fn count(&self, endpoint: EndpointId) -> usize {
        self.sessions.lock().get(&endpoint).map_or(0, Slab::len)
    }
}

/// A session's entry.
pub(crate) struct Seat {
    index: Arc<SessionIndex>,
    endpoint: EndpointId,
    place: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut sessions = self.index.sessions.lock();
        if let Some(of_endpoint) = sessions.get_mut(&self.endpoint) {
            of_endpoint.try_remove(self.place);
            if of_endpoint.is_empty() {
                sessions.remove(&self.endpoint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions are counted while they hold their seats, and an endpoint nobody uses takes no memory.
    #[test]
    fn a_seat_counts_until_it_is_dropped() {
        let index = Arc::new(SessionIndex::default());
        let (east, west) = (EndpointId(1), EndpointId(2));
        let first = index.enter(east, Key::from_u64(1));
        let second = index.enter(east, Key::from_u64(2));
        let third = index.enter(west, Key::from_u64(3));
        assert_eq!((index.count(east), index.count(west)), (2, 1));
        assert_eq!(index.sessions(west), [Key::from_u64(3)]);

        drop((first, third));
        assert_eq!((index.count(east), index.count(west)), (1, 0));
        drop(second);
        assert!(index.sessions.lock().is_empty());
    }
}
