//! Weighted least connections: the smallest ratio of leases to weight wins; among equals, weighted round robin decides.
//!
//! Two passes under one lock: who has the smallest ratio, then a turn of the rotation among those. Ratios are compared
//! by cross-multiplication, so that equal ones are equal exactly.

use std::ops::ControlFlow;

use fastrand::Rng;
use parking_lot::Mutex;

use super::{Balancer, Rotation, polite};
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
        let mut rotation = polite::lock(&self.rotation);
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

    fn compares_loads(&self) -> bool {
        true
    }

    fn reason(&self, field: &Field<'_>, position: usize) -> String {
        let load = Load::at(field, position);
        let weight = f64::from(load.share) / f64::from(SHARE_SCALE);
        let in_flight = load.in_flight;
        let plural = if in_flight == 1 { "" } else { "s" };
        format!("{in_flight} session{plural} for weight {weight}")
    }

    fn rotation(&self) -> Option<&Mutex<Rotation>> {
        Some(&self.rotation)
    }
}

fn turn_among_least(rotation: &mut Rotation, field: &Field<'_>) -> Option<usize> {
    let (first, least) = least(field)?;
    let next = if field.is_picky() {
        turn_of_open(rotation, field, least)
    } else {
        turn_of_all(rotation, field, least)
    };
    // Leases end, and trials are given out, without the rotation's lock: the last of the least may be gone meanwhile.
    next.or(Some(first))
}

/// The smallest ratio of all, and the first who has it.
fn least(field: &Field<'_>) -> Option<(usize, Load)> {
    if field.is_picky() {
        least_of_open(field)
    } else {
        least_of_all(field)
    }
}

// Each of these loops is a function of its own: put together, their sums no longer stay in registers, and the longest
// scan takes twice as long.

#[inline(never)]
fn least_of_open(field: &Field<'_>) -> Option<(usize, Load)> {
    let mut least = (0, Load::NONE);
    field.visit_open(|position, in_flight, share| note(&mut least, position, in_flight, share));
    (least.1.share > 0).then_some(least)
}

/// Nobody is lighter than one who is idle.
#[inline(never)]
fn least_of_all(field: &Field<'_>) -> Option<(usize, Load)> {
    let mut least = (0, Load::NONE);
    field.visit_loads_until(|position, in_flight, share| {
        let load = Load { in_flight, share };
        if load.is_lighter_than(least.1) {
            least = (position, load);
            if in_flight == 0 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    (least.1.share > 0).then_some(least)
}

#[inline]
fn note(least: &mut (usize, Load), position: usize, in_flight: u32, share: u32) {
    let load = Load { in_flight, share };
    if load.is_lighter_than(least.1) {
        *least = (position, load);
    }
}

#[inline(never)]
fn turn_of_open(rotation: &mut Rotation, field: &Field<'_>, least: Load) -> Option<usize> {
    let mut turn = rotation.begin_turn();
    field.visit_open(|position, in_flight, share| {
        if !least.is_lighter_than(Load { in_flight, share }) {
            turn.offer(position, share);
        }
    });
    turn.end()
}

#[inline(never)]
fn turn_of_all(rotation: &mut Rotation, field: &Field<'_>, least: Load) -> Option<usize> {
    let mut turn = rotation.begin_turn();
    field.visit_loads(|position, in_flight, share| {
        if !least.is_lighter_than(Load { in_flight, share }) {
            turn.offer(position, share);
        }
    });
    turn.end()
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
    pub(super) fn is_lighter_than(self, other: Self) -> bool {
        self.against(other) < other.against(self)
    }

    #[inline]
    fn against(self, other: Self) -> u64 {
        u64::from(self.in_flight) * u64::from(other.share)
    }
}
