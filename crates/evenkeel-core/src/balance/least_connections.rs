//! Weighted least connections: the smallest ratio of leases to weight wins; among equals, weighted round robin decides.
//!
//! Two passes under one lock: the smallest ratio, then a turn of the rotation among those who have it. Ratios are
//! compared by cross-multiplication, so that equal ones are equal exactly.

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
    let least = least_load(field)?;
    rotation.turn(|position| {
        let load = Load::at(field, position);
        if load.share > 0 && load.is_as_light_as(least) {
            load.share
        } else {
            0
        }
    })
}

fn least_load(field: &Field<'_>) -> Option<Load> {
    let mut least: Option<Load> = None;
    for position in 0..field.len() {
        let load = Load::at(field, position);
        if load.share > 0 && least.is_none_or(|least| load.is_lighter_than(least)) {
            least = Some(load);
        }
    }
    least
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

    /// Whether its ratio of leases to share is smaller. Below 2^59: a share has 27 bits.
    #[inline]
    pub(super) fn is_lighter_than(self, other: Self) -> bool {
        self.against(other) < other.against(self)
    }

    #[inline]
    fn is_as_light_as(self, other: Self) -> bool {
        self.against(other) <= other.against(self)
    }

    #[inline]
    fn against(self, other: Self) -> u64 {
        u64::from(self.in_flight) * u64::from(other.share)
    }
}
