//! Weighted rendezvous: for every slot, each endpoint makes a bid from its name, and the best bid for its weight wins.
//!
//! The method is the logarithmic one of Schindelhauer and Schomaker (2005): the bid `−ln(u) / w`, of a hash `u` of name
//! and slot, is smallest with a probability in proportion to the weight. An endpoint that leaves takes only its own bids
//! along, so only its own slots move; an endpoint that is added takes over only what it wins. Nothing depends on the
//! order of the list or on other endpoints' weights.
//!
//! The winners are kept in a table of fixed size, so that the mapping of keys to slots never depends on the number of
//! endpoints, and a choice costs one look.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::logarithm::{FLOOR_SHIFT, negative_log2, negative_log2_floor};
use crate::cluster::{ClusterSpec, EndpointSpec};
use crate::units::{HashKey, Weight};

/// Who owns which slot, by position.
pub(crate) struct SlotTable {
    bidders: Vec<Bidder>,
    owners: Box<[u16]>,
}

/// How many bits of a key choose its slot. 65,536 slots give each of 1,000 equal endpoints 66, give or take an eighth.
const SLOT_BITS: u32 = 16;

/// The slot of nobody, in a cluster without weight.
const NOBODY: u16 = u16::MAX;

impl SlotTable {
    /// The table for `spec`: the one before it if names, weights and order are the same. Otherwise it costs a bid per
    /// slot and endpoint, some 25 ms at 100 endpoints.
    pub(crate) fn build(spec: &ClusterSpec, before: Option<&Arc<Self>>) -> Arc<Self> {
        let bidders: Vec<Bidder> = spec.endpoints.iter().map(Bidder::new).collect();
        match before {
            Some(before) if before.bidders == bidders => Arc::clone(before),
            _ => Arc::new(Self::fill(bidders)),
        }
    }

    fn fill(bidders: Vec<Bidder>) -> Self {
        let owners = (0..1 << SLOT_BITS).map(|slot| {
            let slot = Slot::at(slot);
            slot.winner(&bidders, |position| bidders[position].owns_slots)
                .and_then(|position| u16::try_from(position).ok())
                .unwrap_or(NOBODY)
        });
        Self {
            owners: owners.collect(),
            bidders,
        }
    }

    /// Whose slot it is, usable or not. Disabled endpoints keep theirs, so that disabling and enabling moves no other
    /// key and rebuilds nothing; backups have none.
    #[inline]
    pub(crate) fn owner(&self, slot: Slot) -> Option<usize> {
        let owner = self.owners[slot.index];
        (owner != NOBODY).then(|| usize::from(owner))
    }

    /// The best bid for the slot among the endpoints that `is_candidate`: O(endpoints).
    pub(crate) fn best(&self, slot: Slot, is_candidate: impl Fn(usize) -> bool) -> Option<usize> {
        slot.winner(&self.bidders, |position| {
            self.bidders[position].weight > 0 && is_candidate(position)
        })
    }
}

/// One of the slots, with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    index: usize,
    hash: u64,
}

impl Slot {
    fn at(index: usize) -> Self {
        Self {
            index,
            hash: scatter(index as u64),
        }
    }

    /// The slot that a key falls into.
    #[inline]
    pub(crate) fn of(key: HashKey) -> Self {
        let top = scatter(key.0) >> (u64::BITS - SLOT_BITS);
        Self::at(usize::try_from(top).unwrap_or(0))
    }

    /// Most bidders are far from winning: those are passed over before it is asked whether they are candidates.
    #[inline]
    fn winner(self, bidders: &[Bidder], is_candidate: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, Bid<'_>)> = None;
        for (position, bidder) in bidders.iter().enumerate() {
            let hash = bidder.hash(self);
            if let Some((_, best)) = &best
                && best.is_surely_better_than(bidder, hash)
            {
                continue;
            }
            if !is_candidate(position) {
                continue;
            }
            let bid = bidder.bid(hash);
            if best
                .as_ref()
                .is_none_or(|(_, best)| bid.is_better_than(best))
            {
                best = Some((position, bid));
            }
        }
        best.map(|(position, _)| position)
    }
}

/// An endpoint as the table knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bidder {
    seed: u64,
    weight: u32,
    owns_slots: bool,
    name: Arc<str>,
}

impl Bidder {
    fn new(spec: &EndpointSpec) -> Self {
        Self {
            seed: xxh3_64(spec.name.as_bytes()),
            weight: spec.weight.get(),
            owns_slots: !spec.backup && spec.weight > Weight::ZERO,
            name: Arc::clone(&spec.name),
        }
    }

    #[inline]
    const fn hash(&self, slot: Slot) -> u64 {
        scatter(self.seed ^ slot.hash)
    }

    #[inline]
    fn bid(&self, hash: u64) -> Bid<'_> {
        Bid {
            logarithm: negative_log2(hash),
            hash,
            bidder: self,
        }
    }
}

/// What an endpoint bids for a slot: `logarithm` / weight, the less the better.
struct Bid<'a> {
    logarithm: u64,
    hash: u64,
    bidder: &'a Bidder,
}

impl Bid<'_> {
    /// A total order over bid, hash and name, so that the winner does not depend on who is asked first.
    #[inline]
    fn is_better_than(&self, other: &Self) -> bool {
        let order = other.scaled_by(self).cmp(&self.scaled_by(other));
        order
            .then_with(|| self.hash.cmp(&other.hash))
            .then_with(|| other.bidder.name.cmp(&self.bidder.name))
            .is_gt()
    }

    /// Whether it is better than anything that this hash can become, by a bound that needs no logarithm. The products
    /// are below 2^63: a weight has 20 bits.
    #[inline]
    fn is_surely_better_than(&self, bidder: &Bidder, hash: u64) -> bool {
        let ceiling = (self.logarithm >> FLOOR_SHIFT) + 1;
        negative_log2_floor(hash) * u64::from(self.bidder.weight)
            > ceiling * u64::from(bidder.weight)
    }

    /// Cross-multiplied: `a / v < b / w` is `a * w < b * v`. Below 2^76, since a logarithm has 55 bits.
    #[inline]
    fn scaled_by(&self, other: &Self) -> u128 {
        u128::from(self.logarithm) * u128::from(other.bidder.weight)
    }
}

/// A bijection that spreads every bit over all 64 (the finaliser of SplitMix64).
#[inline]
pub(super) const fn scatter(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::world::{cluster_spec, endpoint};

    fn table(endpoints: &[(&str, u32)]) -> SlotTable {
        let endpoints = endpoints
            .iter()
            .map(|&(name, weight)| endpoint(name, weight));
        let spec = cluster_spec(endpoints.collect());
        SlotTable::fill(spec.endpoints.iter().map(Bidder::new).collect())
    }

    /// The names of the slots' owners, every 16th slot (a debug build is slow).
    fn owners(table: &SlotTable) -> Vec<&str> {
        let slots = (0..1 << SLOT_BITS).step_by(16);
        slots
            .map(|slot| &*table.bidders[table.owner(Slot::at(slot)).unwrap()].name)
            .collect()
    }

    /// The mapping is the same on every machine and in every release. If this fails, every cache behind every balancer
    /// goes cold on upgrade: do not adjust the numbers.
    #[test]
    fn the_mapping_never_changes() {
        let table = table(&[("alpha", 1), ("beta", 2), ("gamma", 5)]);
        let keys = [
            "",
            "a",
            "user-1",
            "user-2",
            "user-3",
            "10.0.0.1",
            "Ünïcode",
            "zz",
        ];
        let names = keys.map(|key| {
            let slot = Slot::of(HashKey::of_bytes(key.as_bytes()));
            &*table.bidders[table.owner(slot).unwrap()].name
        });
        assert_eq!(names, GOLDEN_OWNERS);
        let bytes: Vec<u8> = table
            .owners
            .iter()
            .flat_map(|owner| owner.to_le_bytes())
            .collect();
        assert_eq!(xxh3_64(&bytes), GOLDEN_TABLE);
    }

    const GOLDEN_OWNERS: [&str; 8] = [
        "gamma", "gamma", "beta", "gamma", "gamma", "gamma", "beta", "beta",
    ];
    const GOLDEN_TABLE: u64 = 4_047_914_429_131_982_194;

    /// Weights 1, 2, 5: an eighth, a quarter, five eighths of the slots, within 3 %.
    #[test]
    fn slots_follow_the_weights() {
        let table = table(&[("alpha", 1), ("beta", 2), ("gamma", 5)]);
        for (position, eighths) in [(0, 1), (1, 2), (2, 5)] {
            let owned = table
                .owners
                .iter()
                .filter(|&&owner| owner == position)
                .count();
            let due = (eighths << SLOT_BITS) / 8;
            assert!(owned.abs_diff(due) * 100 < due * 3, "{owned} of {due}");
        }
    }

    /// A million to one: the small one has few slots or none, and nothing overflows.
    #[test]
    fn extreme_weights_are_in_proportion_too() {
        let table = table(&[
            ("small", 1),
            ("large", Weight::MAX.get()),
            ("half", 500_000),
        ]);
        let owned = |position| {
            table
                .owners
                .iter()
                .filter(|&&owner| owner == position)
                .count()
        };
        assert!(owned(0) <= 3);
        let due = (2 << SLOT_BITS) / 3_usize;
        assert!(owned(1).abs_diff(due) * 100 < due * 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Fault #27: when one endpoint leaves, no slot of another one moves.
        #[test]
        fn only_the_slots_of_a_removed_endpoint_move(weights in prop::collection::vec(1_u32..50, 2..6), leaver: prop::sample::Index) {
            let names: Vec<String> = (0..weights.len()).map(|i| format!("endpoint-{i}")).collect();
            let all: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(weights).collect();
            let leaver = leaver.index(all.len());
            let mut rest = all.clone();
            let (gone, _) = rest.remove(leaver);
            let (before, after) = (table(&all), table(&rest));
            for (before, after) in owners(&before).into_iter().zip(owners(&after)) {
                prop_assert!(before == after || before == gone);
            }
        }

        /// Fault #27: the list's order means nothing.
        #[test]
        fn the_order_of_the_list_does_not_matter(weights in prop::collection::vec(1_u32..50, 2..6)) {
            let names: Vec<String> = (0..weights.len()).map(|i| format!("endpoint-{i}")).collect();
            let forward: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(weights).collect();
            let backward: Vec<(&str, u32)> = forward.iter().rev().copied().collect();
            let (forward, backward) = (table(&forward), table(&backward));
            prop_assert_eq!(owners(&forward), owners(&backward));
        }
    }
}
