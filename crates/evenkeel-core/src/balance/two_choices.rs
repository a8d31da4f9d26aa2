//! Power of two choices: two endpoints are drawn by weight, and the one with less load for its weight is used.
//!
//! Nearly as even as looking at all of them, at a constant cost and without a lock (Mitzenmacher, 1996). Workers that
//! decide at the same moment do not all rush to the same idle endpoint.

use fastrand::Rng;

use super::least_connections::Load;
use super::random::Urn;
use super::{Balancer, odds, only_open};
use crate::cluster::ClusterSpec;
use crate::snapshot::Field;

/// See the module's documentation.
pub(crate) struct TwoChoices {
    urn: Urn,
}

impl TwoChoices {
    /// Draws for a second endpoint that is not the first one again.
    const SECOND_DRAWS_MAX: usize = 4;

    pub(crate) fn new(spec: &ClusterSpec) -> Self {
        Self {
            urn: Urn::new(spec),
        }
    }

    fn lighter_of_two(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        let first = self.urn.draw(field, rng)?;
        let second = (0..Self::SECOND_DRAWS_MAX).find_map(|_| {
            let drawn = self.urn.draw_once(field, rng);
            drawn.filter(|&drawn| drawn != first)
        });
        let lighter = second
            .filter(|&second| Load::at(field, second).is_lighter_than(Load::at(field, first)));
        lighter.or(Some(first))
    }
}

impl Balancer for TwoChoices {
    fn pick(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        loop {
            let drawn = self.lighter_of_two(field, rng)?;
            if field.reserve(drawn) {
                return Some(drawn);
            }
        }
    }

    fn preview(&self, field: &Field<'_>) -> Option<usize> {
        only_open(field)
    }

    fn compares_loads(&self) -> bool {
        true
    }

    fn reason(&self, field: &Field<'_>, position: usize) -> String {
        let in_flight = Load::at(field, position).in_flight();
        format!(
            "{}, the less loaded of two; sessions: {in_flight}",
            odds(field, position)
        )
    }
}
