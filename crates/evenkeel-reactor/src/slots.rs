//! A table of connections whose places are named by keys that go stale.
//!
//! A place that was freed is not used again before the worker recycles it, after a whole batch of events: an event of the
//! batch that was meant for the old connection must not reach a new one. Generations are the second belt, for mail and timers
//! that arrive later. Nothing here knows what a connection is.

/// Names one connection of one worker. Two connections in the same place have different keys.
///
/// The generation has 24 bits, so a key comes back after the same place was used 16,777,216 times; what is compared by
/// key (an event of this batch, a grant in the mailbox) never lives that long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Bits of the number that [`Key::to_u64`] makes; those above are anybody's.
    pub const BITS: u32 = Self::INDEX_BITS + Self::GENERATION_BITS;
    pub(crate) const INDEX_BITS: u32 = 30;
    pub(crate) const GENERATION_BITS: u32 = 24;
    const GENERATION_MASK: u32 = (1 << Self::GENERATION_BITS) - 1;

    /// The key as one number, for whoever keeps it as an opaque token.
    pub const fn to_u64(self) -> u64 {
        (self.index as u64) << Self::GENERATION_BITS | self.generation as u64
    }

    /// The key that [`Key::to_u64`] made a number of, whatever has been put above it.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the masks and the shift leave fewer than 32 bits"
    )]
    pub const fn from_u64(token: u64) -> Self {
        Self {
            index: (token >> Self::GENERATION_BITS) as u32 & ((1 << Self::INDEX_BITS) - 1),
            generation: token as u32 & Self::GENERATION_MASK,
        }
    }

    /// The place, which other tables may be indexed by.
    pub(crate) const fn index(self) -> usize {
        self.index as usize
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// The connections of one worker.
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Places ready for use.
    vacant: Vec<u32>,
    /// Places freed in this batch.
    freed: Vec<u32>,
    len: usize,
    /// The generation of a new place: later than any that a place given back has had.
    first_generation: u32,
}

impl<T> Slots<T> {
    /// The most connections one table may hold: what fits into a key.
    pub const CAPACITY_MAX: usize = 1 << Key::INDEX_BITS;

    /// The most places an empty table keeps ready.
    const KEPT_WHEN_EMPTY: usize = 1024;

    /// An empty table.
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            freed: Vec::new(),
            len: 0,
            first_generation: 0,
        }
    }

    /// How many connections there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts in the connection that `make` makes, told its own key.
    ///
    /// # Errors
    ///
    /// What `make` fails with; the table is then as before.
    pub fn insert_with<E>(&mut self, make: impl FnOnce(Key) -> Result<T, E>) -> Result<Key, E> {
        let index = self.vacant.pop().unwrap_or_else(|| self.grow());
        let generation = self.slots[index as usize].generation;
        let key = Key { index, generation };
        match make(key) {
            Ok(value) => {
                self.slots[key.index()].value = Some(value);
                self.len += 1;
                Ok(key)
            }
            Err(error) => {
                self.freed.push(index);
                Err(error)
            }
        }
    }

    /// The connection of that key, unless it has gone.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index())?;
        if slot.generation == key.generation {
            slot.value.as_mut()
        } else {
            None
        }
    }

    /// Takes the connection of that key out. Its place stays unused until this batch of events is over.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index())?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = (slot.generation + 1) & Key::GENERATION_MASK;
        self.freed.push(key.index);
        self.len -= 1;
        Some(value)
    }

    /// The keys of all connections, in the order of their places.
    pub fn keys(&self) -> Vec<Key> {
        let occupied = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.value.is_some());
        occupied
            .map(|(index, slot)| Key {
                index: place(index),
                generation: slot.generation,
            })
            .collect()
    }

    /// Makes the places freed since the last call usable again, telling `freed` about each.
    pub(crate) fn recycle(&mut self, mut freed: impl FnMut(usize)) {
        for index in self.freed.drain(..) {
            freed(index as usize);
            self.vacant.push(index);
        }
        if self.len == 0 && self.slots.len() > Self::KEPT_WHEN_EMPTY {
            self.give_back();
        }
    }

    /// Gives the memory of a crowd back when the last of it has gone.
    fn give_back(&mut self) {
        let latest = self
            .slots
            .iter()
            .map(|slot| slot.generation)
            .max()
            .unwrap_or(0);
        *self = Self {
            first_generation: (latest + 1) & Key::GENERATION_MASK,
            ..Self::new()
        };
    }

    fn grow(&mut self) -> u32 {
        let index = place(self.slots.len());
        assert!(
            self.slots.len() < Self::CAPACITY_MAX,
            "descriptors run out long before 2^30 connections"
        );
        self.slots.push(Slot {
            generation: self.first_generation,
            value: None,
        });
        index
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "an index is below CAPACITY_MAX, 2^30"
)]
const fn place(index: usize) -> u32 {
    index as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert<T>(slots: &mut Slots<T>, value: T) -> Key {
        slots.insert_with(|_| Ok::<_, ()>(value)).unwrap()
    }

    /// Within one batch of events a freed place is not given to a newcomer, so that a late event of the batch finds nobody.
    #[test]
    fn a_freed_place_rests_until_the_batch_is_over() {
        let mut slots = Slots::new();
        let old = insert(&mut slots, "old");
        slots.remove(old);

        let next = insert(&mut slots, "next");
        assert_ne!(next.index(), old.index());

        slots.recycle(|_| ());
        assert_eq!(insert(&mut slots, "later").index(), old.index());
    }

    /// A key of a connection that has gone does not open the place's next tenant.
    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slots = Slots::new();
        let old = insert(&mut slots, "old");
        slots.remove(old);
        slots.recycle(|_| ());
        let new = insert(&mut slots, "new");

        assert_eq!(new.index(), old.index());
        assert_eq!(slots.get_mut(old), None);
        assert_eq!(slots.remove(old), None);
        assert_eq!(slots.get_mut(new), Some(&mut "new"));
    }

    /// A table gives a crowd's memory back, and keys of that crowd open nothing afterwards.
    #[test]
    fn a_table_shrinks_when_its_crowd_has_gone() {
        let mut slots = Slots::new();
        let crowd: Vec<Key> = (0..5000).map(|number| insert(&mut slots, number)).collect();
        for key in &crowd {
            slots.remove(*key);
        }
        slots.recycle(|_| ());
        assert_eq!(slots.slots.capacity(), 0);

        insert(&mut slots, 5000);
        assert_eq!(crowd.iter().find_map(|key| slots.remove(*key)), None);
        assert_eq!(slots.len(), 1);
    }

    /// A key survives being a number.
    #[test]
    fn a_key_is_the_same_after_a_trip_through_a_number() {
        let key = Key {
            index: (1 << Key::INDEX_BITS) - 1,
            generation: Key::GENERATION_MASK - 1,
        };
        assert_eq!(Key::from_u64(key.to_u64()), key);
    }

    /// A connection that could not be made leaves no trace.
    #[test]
    fn a_failed_insert_leaves_the_table_as_it_was() {
        let mut slots: Slots<()> = Slots::new();
        assert_eq!(slots.insert_with(|_| Err("no")), Err("no"));
        assert!(slots.is_empty());
        assert!(slots.keys().is_empty());
    }
}
