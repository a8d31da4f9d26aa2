//! Weighted random, without a lock.
//!
//! A draw is by configured weight, from a table made once per snapshot, and is accepted with the probability
//! `share / full share`: so draws follow the shares exactly as they are at that moment, and no table has to be
//! rebuilt when an endpoint fades, warms up or fills. After a few refused draws the shares are summed up instead.

use fastrand::Rng;

use super::{Balancer, odds, only_open};
use crate::cluster::ClusterSpec;
use crate::condition::SHARE_SCALE;
use crate::snapshot::Field;

/// See the module's documentation.
pub(crate) struct Random {
    urn: Urn,
}

impl Random {
    pub(crate) fn new(spec: &ClusterSpec) -> Self {
        Self {
            urn: Urn::new(spec),
        }
    }
}

impl Balancer for Random {
    fn pick(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        loop {
            let drawn = self.urn.draw(field, rng)?;
            if field.reserve(drawn) {
                return Some(drawn);
            }
        }
    }

    fn preview(&self, field: &Field<'_>) -> Option<usize> {
        only_open(field)
    }

    fn reason(&self, field: &Field<'_>, position: usize) -> String {
        odds(field, position)
    }
}

/// What weighted draws are made from.
pub(super) struct Urn {
    /// The sum of the full shares up to and including each position. One number per endpoint, whatever its weight.
    sums: Vec<u64>,
}

impl Urn {
    /// Refused draws before the shares are summed up. With half of the weight unusable, 1 in 256 draws gets there.
    const DRAWS_MAX: usize = 8;

    pub(super) fn new(spec: &ClusterSpec) -> Self {
        let full_shares = spec.endpoints.iter().map(|endpoint| match endpoint {
            endpoint if endpoint.disabled => 0,
            endpoint => u64::from(endpoint.weight.get()) * u64::from(SHARE_SCALE),
        });
        let sums = full_shares.scan(0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// An open endpoint, by share; `None` if none is open.
    pub(super) fn draw(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        (0..Self::DRAWS_MAX)
            .find_map(|_| self.draw_once(field, rng))
            .or_else(|| draw_from_open(field, rng))
    }

    /// One draw by full share; `None` if it is not accepted. The place within the endpoint's stretch decides that.
    #[inline]
    pub(super) fn draw_once(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        let total = *self.sums.last()?;
        if total == 0 {
            return None;
        }
        let point = rng.u64(..total);
        let position = self.sums.partition_point(|&sum| sum <= point);
        let to_the_end = self.sums.get(position)? - point;
        (to_the_end <= u64::from(field.open_share(position))).then_some(position)
    }
}

/// The same by summing up: O(endpoints).
#[cold]
pub(super) fn draw_from_open(field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
    let share = |position| u64::from(field.open_share(position));
    let total: u64 = (0..field.len()).map(share).sum();
    if total == 0 {
        return None;
    }
    let mut point = rng.u64(..total);
    let mut last_open = None;
    for position in 0..field.len() {
        let share = share(position);
        if share > point {
            return Some(position);
        }
        point -= share;
        last_open = if share > 0 { Some(position) } else { last_open };
    }
    // Another thread has lowered a share between the sum and the walk.
    last_open
}
