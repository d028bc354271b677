//! The id table, from an id to the slot and leaf of its entry: a hash table whose keys are in `records`.
//!
//! A bucket is one cache line of seven tags (a byte of the hash each), seven slots and seven leaves. The leaf
//! is here, not beside the id, so that a lookup goes on to the leaf while it still waits for the id to
//! compare. The price is that an entry that moves to another leaf is looked up by its id, which only splits
//! and merges do. A full bucket overflows into the next and counts the entries that passed it (the idea is
//! from F14). A lookup stops at a bucket that no entry passed, and a removal leaves no tombstone.
//!
//! A table grows by a quarter, not by two, so it is 65 to 81 % full at any size. Past `SPLIT_AT` slots it
//! becomes sixteen tables chosen by the next bits of the hash. So no growth ever moves more than `SPLIT_AT`
//! slots, whatever the size of the board: a stall of a few milliseconds at most.
//!
//! The hash is seeded per table against flooding. Tables do not shrink: a board that lost most of its players
//! is rebuilt at the next start.

use std::hash::BuildHasher;
use std::thread;

use foldhash::quality::RandomState;

use crate::search::warm;
use crate::tree::Location;

/// Slots per bucket.
const WIDE: usize = 7;
/// A table of more slots is split.
const SPLIT_AT: usize = 64 * 1024;
/// The number of tables after a split.
const FAN: usize = 16;
/// Hash bits that choose among them, from the top.
const FAN_BITS: u32 = 4;
/// The shift of the byte of a bucket's head, after the tags, that counts the entries that passed the bucket.
const PASSED: u32 = 8 * WIDE as u32;
/// A count that has reached this is no longer exact and stays: lookups may then probe too far.
const PASSED_MAX: u64 = 255;
/// The lowest bit of every tag.
const LOW: u64 = 0x0001_0101_0101_0101;
/// All bits but the highest of every tag.
const REST: u64 = LOW * 0x7f;

/// The slots and leaves of one board by hash of their id.
pub(crate) struct IdTable {
    root: Part,
    seed: RandomState,
}

enum Part {
    Table(Table),
    Split(Box<[Part; FAN]>),
}

struct Table {
    buckets: Box<[Bucket]>,
    len: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    /// Seven tags, 0 for an empty cell, and the number of entries that passed on to a later bucket.
    head: u64,
    slots: [u32; WIDE],
    leaves: [u32; WIDE],
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl IdTable {
    /// A table with room for `expected` slots.
    pub(crate) fn new(expected: usize) -> Self {
        IdTable { root: Part::with_room(expected), seed: RandomState::default() }
    }

    #[inline]
    pub(crate) fn hash(&self, id: &[u8]) -> u64 {
        self.seed.hash_one(id)
    }

    /// The location of this hash for which `is` returns true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl FnMut(Location) -> bool) -> Option<Location> {
        let table = self.table(hash);
        table.find(hash, is).map(|(bucket, at)| table.buckets[bucket].location(at))
    }

    /// Prefetches the line that `find` will read first; see [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm(&self, hash: u64) {
        let table = self.table(hash);
        if !table.buckets.is_empty() {
            warm(&table.buckets[table.location(hash)].head);
        }
    }

    /// Adds a location whose slot is new. `id_of` returns the id of a slot, for growth.
    pub(crate) fn insert<'a>(&mut self, hash: u64, location: Location, id_of: impl Fn(u32) -> &'a [u8]) {
        let IdTable { root, seed } = self;
        let hash_of = |slot| seed.hash_one(id_of(slot));
        let mut part = root;
        let mut depth = 0;
        loop {
            if let Part::Table(table) = part
                && table.len >= SPLIT_AT
            {
                *part = table.split(depth, &hash_of);
            }
            match part {
                Part::Table(table) => {
                    table.make_room(&hash_of);
                    table.put(hash, location);
                    return;
                }
                Part::Split(parts) => {
                    part = &mut parts[branch(hash << (depth * FAN_BITS))];
                    depth += 1;
                }
            }
        }
    }

    /// Changes the leaf of an existing slot.
    #[inline]
    pub(crate) fn set_leaf(&mut self, hash: u64, location: Location) {
        let table = self.table_mut(hash);
        let (bucket, at) = table.find_slot(hash, location.slot);
        table.buckets[bucket].leaves[at] = location.leaf;
    }

    /// Sets the leaf of every slot, by slot. The processors share a large table.
    pub(crate) fn set_leaves(&mut self, leaf_of: &[u32]) {
        let set = |part: &mut Part| part.each(&|table| table.set_leaves(leaf_of));
        let Part::Split(parts) = &mut self.root else { return set(&mut self.root) };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for some in parts.chunks_mut(FAN.div_ceil(threads)) {
                scope.spawn(move || some.iter_mut().for_each(set));
            }
        });
    }

    /// Removes an existing slot.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) {
        self.table_mut(hash).remove(hash, slot);
    }

    pub(crate) fn len(&self) -> u64 {
        self.root.fold(&|table| table.len as u64, 0)
    }

    pub(crate) fn heap(&self) -> u64 {
        self.root.fold(&|table| size_of_val(&*table.buckets) as u64, (FAN * size_of::<Part>()) as u64)
    }

    /// The table that a hash belongs to.
    #[inline]
    fn table(&self, hash: u64) -> &Table {
        let mut part = &self.root;
        let mut bits = hash;
        loop {
            match part {
                Part::Table(table) => return table,
                Part::Split(parts) => {
                    part = &parts[branch(bits)];
                    bits <<= FAN_BITS;
                }
            }
        }
    }

    #[inline]
    fn table_mut(&mut self, hash: u64) -> &mut Table {
        let mut part = &mut self.root;
        let mut bits = hash;
        loop {
            match part {
                Part::Table(table) => return table,
                Part::Split(parts) => {
                    part = &mut parts[branch(bits)];
                    bits <<= FAN_BITS;
                }
            }
        }
    }
}

#[inline]
fn branch(bits: u64) -> usize {
    (bits >> (64 - FAN_BITS)) as usize
}

impl Part {
    fn with_room(expected: usize) -> Part {
        if expected > SPLIT_AT * 3 / 4 {
            // Hashes spread unevenly: a little more than the even share avoids most later growth.
            let share = expected / FAN;
            let parts = (0..FAN).map(|_| Part::with_room(share + share / 64)).collect::<Vec<_>>();
            let parts: Box<[Part; FAN]> = parts.try_into().ok().expect("FAN parts were made");
            return Part::Split(parts);
        }
        Part::Table(Table::with_room(expected))
    }

    fn fold(&self, of: &impl Fn(&Table) -> u64, split: u64) -> u64 {
        match self {
            Part::Table(table) => of(table),
            Part::Split(parts) => split + parts.iter().map(|part| part.fold(of, split)).sum::<u64>(),
        }
    }

    fn each(&mut self, change: &impl Fn(&mut Table)) {
        match self {
            Part::Table(table) => change(table),
            Part::Split(parts) => parts.iter_mut().for_each(|part| part.each(change)),
        }
    }
}

impl Table {
    /// Three quarters full with `expected` slots.
    fn with_room(expected: usize) -> Table {
        Table::with_buckets((expected * 4).div_ceil(WIDE * 3))
    }

    fn with_buckets(buckets: usize) -> Table {
        let empty = Bucket { head: 0, slots: [0; WIDE], leaves: [0; WIDE] };
        Table { buckets: vec![empty; buckets].into_boxed_slice(), len: 0 }
    }

    #[inline]
    fn find(&self, hash: u64, mut is: impl FnMut(Location) -> bool) -> Option<(usize, usize)> {
        if self.buckets.is_empty() {
            return None;
        }
        let tag = tag(hash);
        let location = self.location(hash);
        let mut number = location;
        loop {
            let bucket = &self.buckets[number];
            let mut hits = bucket.matching(tag);
            while hits != 0 {
                let at = place(hits);
                if is(bucket.location(at)) {
                    return Some((number, at));
                }
                hits &= hits - 1;
            }
            if bucket.passed() == 0 {
                return None;
            }
            number = self.after(number);
            // In a small table an entry may have passed every bucket. Then nothing else ends the search.
            if number == location {
                return None;
            }
        }
    }

    fn set_leaves(&mut self, leaf_of: &[u32]) {
        for bucket in &mut self.buckets {
            for at in 0..WIDE {
                if bucket.tag(at) != 0 {
                    bucket.leaves[at] = leaf_of[bucket.slots[at] as usize];
                }
            }
        }
    }

    #[inline]
    fn find_slot(&self, hash: u64, slot: u32) -> (usize, usize) {
        self.find(hash, |other| other.slot == slot).expect("a slot that is asked for is in the table")
    }

    fn put(&mut self, hash: u64, location: Location) {
        let mut number = self.location(hash);
        loop {
            let bucket = &mut self.buckets[number];
            let empty = bucket.matching(0);
            if empty != 0 {
                let at = place(empty);
                bucket.head |= tag(hash) << (8 * at);
                bucket.slots[at] = location.slot;
                bucket.leaves[at] = location.leaf;
                self.len += 1;
                return;
            }
            if bucket.passed() < PASSED_MAX {
                bucket.head += 1 << PASSED;
            }
            number = self.after(number);
        }
    }

    fn remove(&mut self, hash: u64, slot: u32) {
        let (found, at) = self.find_slot(hash, slot);
        self.buckets[found].head &= !(0xff << (8 * at));
        self.len -= 1;
        let mut number = self.location(hash);
        while number != found {
            let bucket = &mut self.buckets[number];
            if bucket.passed() < PASSED_MAX {
                bucket.head -= 1 << PASSED;
            }
            number = self.after(number);
        }
    }

    /// Grows the table if it is 13/16 full.
    fn make_room(&mut self, hash_of: &impl Fn(u32) -> u64) {
        if (self.len + 1) * 16 <= self.buckets.len() * WIDE * 13 {
            return;
        }
        let mut larger = Table::with_buckets(self.buckets.len() + (self.buckets.len() / 4).max(1));
        for location in self.locations() {
            larger.put(hash_of(location.slot), location);
        }
        *self = larger;
    }

    fn split(&self, depth: u32, hash_of: &impl Fn(u32) -> u64) -> Part {
        let mut tables: Vec<Table> = (0..FAN).map(|_| Table::with_room(self.len / FAN)).collect();
        for location in self.locations() {
            let hash = hash_of(location.slot);
            let table = &mut tables[branch(hash << (depth * FAN_BITS))];
            table.make_room(hash_of);
            table.put(hash, location);
        }
        let parts: Vec<Part> = tables.into_iter().map(Part::Table).collect();
        Part::Split(parts.try_into().ok().expect("FAN tables were made"))
    }

    fn locations(&self) -> impl Iterator<Item = Location> {
        self.buckets
            .iter()
            .flat_map(|bucket| (0..WIDE).filter(|&at| bucket.tag(at) != 0).map(|at| bucket.location(at)))
    }

    #[inline]
    fn location(&self, hash: u64) -> usize {
        // The low half scaled to the number of buckets, which need not be a power of two.
        (((hash & 0xffff_ffff) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, number: usize) -> usize {
        if number + 1 == self.buckets.len() { 0 } else { number + 1 }
    }
}

impl Bucket {
    /// One bit for every cell with this tag; see [`place`].
    #[inline]
    fn matching(&self, tag: u64) -> u64 {
        // The highest bit of each tag, set where no bit differs, and the count left out.
        let other = (self.head ^ (tag * LOW)) & (LOW * 0xff);
        !(((other & REST) + REST) | other | REST) & (LOW << 7)
    }

    #[inline]
    fn tag(&self, at: usize) -> u64 {
        self.head >> (8 * at) & 0xff
    }

    #[inline]
    fn passed(&self) -> u64 {
        self.head >> PASSED
    }

    #[inline]
    fn location(&self, at: usize) -> Location {
        Location { slot: self.slots[at], leaf: self.leaves[at] }
    }
}

/// The cell of the first of some matching tags.
#[inline]
fn place(hits: u64) -> usize {
    (hits.trailing_zeros() / 8) as usize
}

/// Bits that choose neither a part nor a bucket; never 0.
#[inline]
fn tag(hash: u64) -> u64 {
    (hash >> 32 & 0xff).max(1)
}

#[cfg(test)]
mod tests;
