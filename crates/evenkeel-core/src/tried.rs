//! Which endpoints a session has tried already.

use crate::units::EndpointId;

/// A short list of endpoints, without allocation: the last [`Tried::CAPACITY`] that were pushed.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    endpoints: [Option<EndpointId>; Self::CAPACITY],
    pushed: usize,
}

impl Tried {
    /// How many are remembered; pushing beyond it forgets the oldest.
    pub const CAPACITY: usize = 16;

    /// Remembers `endpoint`.
    pub fn push(&mut self, endpoint: EndpointId) {
        self.endpoints[self.pushed % Self::CAPACITY] = Some(endpoint);
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// Whether `endpoint` is remembered.
    pub fn contains(&self, endpoint: EndpointId) -> bool {
        !self.is_empty() && self.endpoints.contains(&Some(endpoint))
    }

    /// Whether nothing has been tried yet.
    pub const fn is_empty(&self) -> bool {
        self.pushed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seventeenth endpoint takes the place of the first.
    #[test]
    fn the_oldest_is_forgotten_beyond_the_capacity() {
        let mut tried = Tried::default();
        for id in 0..=16 {
            tried.push(EndpointId(id));
        }
        assert!(!tried.contains(EndpointId(0)));
        assert!((1..=16).all(|id| tried.contains(EndpointId(id))));
    }
}
