//! Weighted least connections: the smallest ratio of leases to weight wins; among equals, weighted round robin decides.
//!
//! Two passes under one lock: who has the smallest ratio, then a turn of the rotation among those. Ratios are compared
//! by cross-multiplication, so that equal ones are equal exactly.

use std::cmp::Ordering;

use fastrand::Rng;
use parking_lot::Mutex;

use super::{Balancer, Rotation};
use crate::condition::SHARE_SCALE;
use crate::snapshot::Field;

/// See the module's documentation.
pub(crate) struct LeastConnections {
    rotation: Mutex<Rotation>,
}

impl LeastConnections {
    pub(crate) const fn new(rotation: Rotation) -> Self {
        Self {
            rotation: Mutex::new(rotation),
        }
    }
}

impl Balancer for LeastConnections {
    fn pick(&self, field: &Field<'_>, _rng: &mut Rng) -> Option<usize> {
        let mut rotation = self.rotation.lock();
        loop {
            let next = turn_among_least(&mut rotation, field)?;
            if field.reserve(next) {
                return Some(next);
            }
        }
    }

    fn preview(&self, field: &Field<'_>) -> Option<usize> {
        turn_among_least(&mut self.rotation.lock().clone(), field)
    }

    fn reason(&self, field: &Field<'_>, position: usize) -> String {
        let load = Load::at(field, position);
        let weight = f64::from(load.share) / f64::from(SHARE_SCALE);
        format!("{} leases at weight {weight}", load.in_flight)
    }

    fn rotation(&self) -> Option<&Mutex<Rotation>> {
        Some(&self.rotation)
    }
}

fn turn_among_least(rotation: &mut Rotation, field: &Field<'_>) -> Option<usize> {
    let mut positions = rotation.take_contenders();
    let count = note_least(&mut positions, field);
    let least = &positions[..count];
    let next = match *least {
        [] => None,
        [only] => Some(only), // whose turn would change no credit
        _ => {
            let mut turn = rotation.begin_turn();
            for &position in least {
                turn.offer(position, field.share(position));
            }
            turn.end()
        }
    };
    rotation.return_contenders(positions);
    next
}

/// Notes the positions of all who have the smallest ratio, and returns their number.
fn note_least(positions: &mut [usize], field: &Field<'_>) -> usize {
    let mut count = 0;
    let mut least = Load::NONE;
    field.visit_open(|position, in_flight, share| {
        let load = Load { in_flight, share };
        let order = load.compare(least);
        if order.is_gt() {
            return;
        }
        if order.is_lt() {
            count = 0;
            least = load;
        }
        positions[count] = position;
        count += 1;
    });
    count
}

/// How much an open endpoint holds, and what it is worth.
#[derive(Clone, Copy)]
pub(super) struct Load {
    in_flight: u32,
    share: u32,
}

impl Load {
    #[inline]
    pub(super) fn at(field: &Field<'_>, position: usize) -> Self {
        Self {
            in_flight: field.in_flight(position),
            share: field.open_share(position),
        }
    }

    pub(super) const fn in_flight(self) -> u32 {
        self.in_flight
    }

    /// Heavier than every load of an open endpoint.
    const NONE: Self = Self {
        in_flight: 1,
        share: 0,
    };

    /// By the ratio of leases to share. The products are below 2^59: a share has 27 bits.
    #[inline]
    fn compare(self, other: Self) -> Ordering {
        self.against(other).cmp(&other.against(self))
    }

    pub(super) fn is_lighter_than(self, other: Self) -> bool {
        self.compare(other).is_lt()
    }

    #[inline]
    fn against(self, other: Self) -> u64 {
        u64::from(self.in_flight) * u64::from(other.share)
    }
}
