//! Smooth weighted round robin: weights 5, 1, 1 give a a b a c a a, never a burst.
//!
//! The algorithm is nginx's (2012): every endpoint gains its share, the one with the most is chosen and pays the sum of
//! all shares. It is O(endpoints) per choice, over two dense arrays. One lock per cluster makes the order exact over all
//! workers; a rotation per worker would send the first sessions of all of them to the same endpoint.

use fastrand::Rng;
use parking_lot::Mutex;

use super::{Balancer, polite};
use crate::cluster::ClusterSpec;
use crate::condition::SHARE_SCALE;
use crate::snapshot::Field;

/// See the module's documentation.
pub(crate) struct RoundRobin {
    rotation: Mutex<Rotation>,
}

impl RoundRobin {
    pub(crate) const fn new(rotation: Rotation) -> Self {
        Self {
            rotation: Mutex::new(rotation),
        }
    }
}

impl Balancer for RoundRobin {
    fn pick(&self, field: &Field<'_>, _rng: &mut Rng) -> Option<usize> {
        let mut rotation = polite::lock(&self.rotation);
        loop {
            let next = turn(&mut rotation, field)?;
            if field.reserve(next) {
                return Some(next);
            }
        }
    }

    fn preview(&self, field: &Field<'_>) -> Option<usize> {
        turn(&mut self.rotation.lock().clone(), field)
    }

    fn reason(&self, field: &Field<'_>, position: usize) -> String {
        let credit = self
            .rotation
            .lock()
            .credit(position, |i| field.open_share(i));
        format!("its turn comes when its credit, {credit}, is the largest")
    }

    fn rotation(&self) -> Option<&Mutex<Rotation>> {
        Some(&self.rotation)
    }
}

/// The two cases are loops of their own: in one, the sums no longer stay in registers, and it takes twice as long.
fn turn(rotation: &mut Rotation, field: &Field<'_>) -> Option<usize> {
    if field.is_picky() {
        turn_of_open(rotation, field)
    } else {
        turn_of_all(rotation, field)
    }
}

fn turn_of_open(rotation: &mut Rotation, field: &Field<'_>) -> Option<usize> {
    let mut turn = rotation.begin_turn();
    field.visit_open(|position, _, share| turn.offer(position, share));
    turn.end()
}

fn turn_of_all(rotation: &mut Rotation, field: &Field<'_>) -> Option<usize> {
    let mut turn = rotation.begin_turn();
    field.visit_shares(|position, share| turn.offer(position, share));
    turn.end()
}

/// The credit of every endpoint, by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotation {
    credits: Vec<i64>,
    /// The sum of all shares that the credits are in proportion to; 0 before it is known.
    total: i64,
}

impl Rotation {
    /// The most turns by which a phase shifts the start: one round of the largest cluster with equal weights. At 1,000
    /// endpoints that is a millisecond or so, once.
    const PHASE_TURNS_MAX: u64 = ClusterSpec::ENDPOINTS_MAX as u64;

    /// A rotation over the configured weights that has been turned `phase` times, modulo its period and the bound.
    pub(crate) fn at_phase(spec: &ClusterSpec, phase: u64) -> Self {
        let mut rotation = Self::carried(vec![0; spec.endpoints.len()], 0);
        let share = |position: usize| match &spec.endpoints[position] {
            endpoint if endpoint.disabled || endpoint.backup => 0,
            endpoint => endpoint.weight.get() * SHARE_SCALE,
        };
        let shares = (0..spec.endpoints.len()).map(share);
        let divisor = shares.clone().fold(0, common_divisor).max(1);
        let period = shares.map(|share| u64::from(share / divisor)).sum::<u64>();
        for _ in 0..phase % period.clamp(1, Self::PHASE_TURNS_MAX) {
            rotation.turn(share);
        }
        rotation
    }

    /// A rotation that goes on where another one was.
    pub(crate) fn carried(credits: Vec<i64>, total: i64) -> Self {
        Self { credits, total }
    }

    pub(crate) const fn total(&self) -> i64 {
        self.total
    }

    pub(crate) fn credit_at(&self, position: usize) -> Option<i64> {
        self.credits.get(position).copied()
    }

    /// One choice: everybody who takes part is offered, then the turn ends.
    #[inline]
    pub(crate) fn begin_turn(&mut self) -> Turn<'_> {
        Turn {
            credits: &mut self.credits,
            total: 0,
            best: 0,
            best_credit: i64::MIN,
        }
    }

    /// One choice among all with a share; `None` if there is none.
    fn turn(&mut self, share: impl Fn(usize) -> u32) -> Option<usize> {
        let positions = 0..self.credits.len();
        let mut turn = self.begin_turn();
        for position in positions.filter(|&position| share(position) > 0) {
            turn.offer(position, share(position));
        }
        turn.end()
    }

    /// Keeps every endpoint as many turns ahead or behind as it was, now that the sum of all shares is `total`. Without
    /// this, a weight that shrinks from a million to one would leave a debt of a million turns behind.
    pub(crate) fn rescale(&mut self, total: i64) {
        if total == 0 || total == self.total {
            return;
        }
        if self.total != 0 {
            for credit in &mut self.credits {
                let scaled = i128::from(*credit) * i128::from(total) / i128::from(self.total);
                *credit = i64::try_from(scaled).unwrap_or(0);
            }
        }
        self.total = total;
    }

    /// In units of weight, with the share of the coming turn.
    fn credit(&self, position: usize, share: impl Fn(usize) -> u32) -> i64 {
        let credit = self.credits.get(position).copied().unwrap_or(0);
        (credit + i64::from(share(position))) / i64::from(SHARE_SCALE)
    }
}

/// A choice that is being made.
pub(crate) struct Turn<'a> {
    credits: &'a mut [i64],
    total: i64,
    best: usize,
    best_credit: i64,
}

impl Turn<'_> {
    /// An endpoint with a share takes part.
    #[inline]
    pub(crate) fn offer(&mut self, position: usize, share: u32) {
        let share = i64::from(share);
        self.total += share;
        let credit = &mut self.credits[position];
        *credit += share;
        if *credit > self.best_credit {
            self.best_credit = *credit;
            self.best = position;
        }
    }

    /// The one with the most credit pays the sum of all shares; `None` if nobody took part.
    #[inline]
    pub(crate) fn end(self) -> Option<usize> {
        if self.best_credit == i64::MIN {
            return None;
        }
        self.credits[self.best] -= self.total;
        Some(self.best)
    }
}

/// Euclid's; of 0 and n it is n.
const fn common_divisor(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turns(weights: &[u32], count: usize) -> Vec<usize> {
        let mut rotation = Rotation::carried(vec![0; weights.len()], 0);
        (0..count)
            .map(|_| rotation.turn(|position| weights[position]).unwrap())
            .collect()
    }

    /// A2, and again in the next round.
    #[test]
    fn five_one_one_is_never_a_burst() {
        let (a, b, c) = (0, 1, 2);
        assert_eq!(
            turns(&[5, 1, 1], 14),
            [a, a, b, a, c, a, a, a, a, b, a, c, a, a]
        );
    }

    /// The turn is refused, not spent, when nobody has a share.
    #[test]
    fn nobody_has_a_share_nobody_is_chosen() {
        let mut rotation = Rotation::carried(vec![0; 3], 0);
        assert_eq!(rotation.turn(|_| 0), None);
        assert_eq!(rotation.credits, [0, 0, 0]);
    }

    proptest! {
        /// After k turns an endpoint has had k·w/W turns, give or take the backlog of a cup game that always empties
        /// the fullest cup (1 + the harmonic number of the endpoints); after W turns exactly w.
        #[test]
        fn smooth_round_robin_is_fair_at_every_moment(weights in prop::collection::vec(0_u32..20, 1..12)) {
            let total: u32 = weights.iter().sum();
            prop_assume!(total > 0);
            let backlog = 1.0 + (1..=weights.len()).map(|n| 1.0 / n as f64).sum::<f64>();
            let mut had = vec![0_u32; weights.len()];
            for (turn, position) in turns(&weights, total as usize).into_iter().enumerate() {
                had[position] += 1;
                for (&had, &weight) in had.iter().zip(&weights) {
                    let due = (turn + 1) as f64 * f64::from(weight) / f64::from(total);
                    prop_assert!((f64::from(had) - due).abs() <= backlog);
                }
            }
            prop_assert_eq!(had, weights);
        }

        /// Nobody is ever more than one turn ahead, so nobody waits long after a change of weights.
        #[test]
        fn no_debt_is_larger_than_one_turn(weights in prop::collection::vec(1_u32..1000, 1..12)) {
            let total: u32 = weights.iter().sum();
            let mut rotation = Rotation::carried(vec![0; weights.len()], 0);
            for _ in 0..500 {
                rotation.turn(|position| weights[position]);
                prop_assert!(rotation.credits.iter().all(|&credit| credit >= -i64::from(total)));
            }
        }
    }
}
