//! The balancing algorithms: one small file each, behind one trait.
//!
//! A balancer sees endpoints, what each is worth at this moment, and perhaps a hash key; never a request. Whether an
//! endpoint may be used at all is not decided here: an endpoint that is not open has the share 0.

mod hash;
mod least_connections;
mod logarithm;
mod polite;
mod random;
mod round_robin;
mod slots;
mod two_choices;

use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;

use crate::cluster::{Balance, ClusterSpec};
use crate::snapshot::Field;

pub(crate) use round_robin::Rotation;
pub(crate) use slots::SlotTable;

/// Who gets the next session.
pub(crate) trait Balancer: Send + Sync {
    /// Chooses an open endpoint and counts it ([`Field::reserve`]), in one step; `None` if none is open.
    fn pick(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize>;

    /// Whom [`Balancer::pick`] would choose now, where that is certain. Changes nothing.
    fn preview(&self, field: &Field<'_>) -> Option<usize>;

    /// The same as [`Balancer::pick`] where only endpoints are left that are not preferred: `field` is the fallback. A
    /// draw by weight leaves the common order as it is: in that, these endpoints have no turn.
    #[cold]
    fn pick_fallback(&self, field: &Field<'_>, rng: &mut Rng) -> Option<usize> {
        loop {
            let drawn = random::draw_from_open(field, rng)?;
            if field.reserve(drawn) {
                return Some(drawn);
            }
        }
    }

    /// Whom [`Balancer::pick_fallback`] would choose now, where that is certain.
    fn preview_fallback(&self, field: &Field<'_>) -> Option<usize> {
        only_open(field)
    }

    /// Why an open endpoint of the fallback would or would not be chosen.
    fn fallback_reason(&self, field: &Field<'_>, position: usize) -> String {
        odds(field, position)
    }

    /// Whether an endpoint's part of the work follows its effective weight. Otherwise that says only 0 or not 0.
    fn is_gradual(&self) -> bool {
        true
    }

    /// Whether a choice looks at the in-flight counts of endpoints, so that these are to be kept in one place.
    fn compares_loads(&self) -> bool {
        false
    }

    /// Why an open endpoint would or would not be chosen, in a few words for people.
    fn reason(&self, field: &Field<'_>, position: usize) -> String;

    /// Whether this session may be the trial of the endpoint, as far as this algorithm is concerned.
    fn may_try(&self, _field: &Field<'_>, _position: usize) -> bool {
        true
    }

    /// Whether an open endpoint is passed over because it holds more than its bounded load.
    fn is_over_bound(&self, _field: &Field<'_>, _position: usize) -> bool {
        false
    }

    /// The common order, where the algorithm has one.
    fn rotation(&self) -> Option<&Mutex<Rotation>> {
        None
    }

    /// The slot table, where the algorithm has one.
    fn slots(&self) -> Option<&Arc<SlotTable>> {
        None
    }
}

/// What a balancer takes over from the one before it.
pub(crate) struct Inheritance<'a> {
    pub(crate) rotation: Rotation,
    pub(crate) slots: Option<&'a Arc<SlotTable>>,
}

/// The balancer that `spec` asks for.
pub(crate) fn build(spec: &ClusterSpec, inheritance: Inheritance<'_>) -> Box<dyn Balancer> {
    let Inheritance { rotation, slots } = inheritance;
    match spec.balance {
        Balance::RoundRobin => Box::new(round_robin::RoundRobin::new(rotation)),
        Balance::LeastConnections => Box::new(least_connections::LeastConnections::new(rotation)),
        Balance::Random => Box::new(random::Random::new(spec)),
        Balance::TwoChoices => Box::new(two_choices::TwoChoices::new(spec)),
        Balance::SourceHash(policy) | Balance::Hash(policy) => {
            Box::new(hash::Hash::new(spec, policy, slots))
        }
    }
}

/// The only open endpoint, if there is exactly one.
fn only_open(field: &Field<'_>) -> Option<usize> {
    let mut open = (0..field.len()).filter(|&position| field.is_open(position));
    open.next().filter(|_| open.next().is_none())
}

/// "by weight, 5 of 7": the odds of an endpoint that is drawn at random.
fn odds(field: &Field<'_>, position: usize) -> String {
    let total: u64 = (0..field.len())
        .map(|other| u64::from(field.open_share(other)))
        .sum();
    let share = u64::from(field.open_share(position));
    let percent = (100 * share).checked_div(total).unwrap_or(0);
    format!("one of these by weight: {percent} % of the draws")
}
