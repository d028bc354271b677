//! From an id to its slot: a hash table of slots whose keys live in `records`.
//!
//! A bucket is one cache line of twelve tags (a byte of the hash each) and twelve slots, so a look-up costs
//! one miss here and one for the record; a table with separate control bytes costs one more. A full bucket
//! overflows into the next and counts who passed it (the idea is from F14): a look-up stops at a bucket that
//! nobody passed, and a removal leaves no tombstone.
//!
//! A table grows by a quarter, not by two, so it is 70 to 87 % full at any size. Past `SPLIT_AT` slots it
//! becomes sixteen tables chosen by the next bits of the hash. So no growth ever moves more than `SPLIT_AT`
//! slots, whatever the size of the board: a stall of a few milliseconds at most.
//!
//! The hash is seeded per table against flooding. Tables do not shrink: a board that lost most of its
//! members is rebuilt at the next start.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::search::warm;

/// Slots per bucket.
const WIDE: usize = 12;
/// A table of more slots is split.
const SPLIT_AT: usize = 64 * 1024;
/// Tables that one becomes.
const FAN: usize = 16;
/// Hash bits that choose among them, from the top.
const FAN_BITS: u32 = 4;

/// The slots of one board by hash of their id.
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

#[derive(Clone)]
#[repr(C, align(64))]
struct Bucket {
    /// 0 is an empty place.
    tags: [u8; WIDE],
    /// How many slots belong here or before and stand in a later bucket.
    passed: u32,
    slots: [u32; WIDE],
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

    /// The slot of this hash for which `is` says yes.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl FnMut(u32) -> bool) -> Option<u32> {
        let table = self.table(hash);
        table.find(hash, is).map(|(bucket, at)| table.buckets[bucket].slots[at])
    }

    /// Asks for the line that `find` will read first; see [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm(&self, hash: u64) {
        let table = self.table(hash);
        if !table.buckets.is_empty() {
            warm(table.buckets[table.home(hash)].passed);
        }
    }

    /// Adds a slot that is not there yet. `id_of` gives the id of a slot, for growth.
    pub(crate) fn insert<'a>(&mut self, hash: u64, slot: u32, id_of: impl Fn(u32) -> &'a [u8]) {
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
                    table.put(hash, slot);
                    return;
                }
                Part::Split(parts) => {
                    part = &mut parts[branch(hash << (depth * FAN_BITS))];
                    depth += 1;
                }
            }
        }
    }

    /// Removes a slot that is there.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) {
        let mut part = &mut self.root;
        let mut bits = hash;
        loop {
            match part {
                Part::Table(table) => return table.remove(hash, slot),
                Part::Split(parts) => {
                    part = &mut parts[branch(bits)];
                    bits <<= FAN_BITS;
                }
            }
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.root.fold(&|table| table.len as u64, 0)
    }

    pub(crate) fn heap(&self) -> u64 {
        self.root.fold(&|table| size_of_val(&*table.buckets) as u64, (FAN * size_of::<Part>()) as u64)
    }
}

impl IdTable {
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
}

impl Table {
    fn with_room(expected: usize) -> Table {
        Table::with_buckets((expected * 5).div_ceil(WIDE * 4))
    }

    fn with_buckets(buckets: usize) -> Table {
        let empty = Bucket { tags: [0; WIDE], passed: 0, slots: [0; WIDE] };
        Table { buckets: vec![empty; buckets].into_boxed_slice(), len: 0 }
    }

    #[inline]
    fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<(usize, usize)> {
        if self.buckets.is_empty() {
            return None;
        }
        let tag = tag(hash);
        let mut number = self.home(hash);
        loop {
            let bucket = &self.buckets[number];
            let mut hits = bucket.matching(tag);
            while hits != 0 {
                let at = hits.trailing_zeros() as usize;
                if is(bucket.slots[at]) {
                    return Some((number, at));
                }
                hits &= hits - 1;
            }
            if bucket.passed == 0 {
                return None;
            }
            number = self.after(number);
        }
    }

    fn put(&mut self, hash: u64, slot: u32) {
        let mut number = self.home(hash);
        loop {
            let bucket = &mut self.buckets[number];
            let empty = bucket.matching(0);
            if empty != 0 {
                let at = empty.trailing_zeros() as usize;
                bucket.tags[at] = tag(hash);
                bucket.slots[at] = slot;
                self.len += 1;
                return;
            }
            bucket.passed += 1;
            number = self.after(number);
        }
    }

    fn remove(&mut self, hash: u64, slot: u32) {
        let (found, at) = self.find(hash, |other| other == slot).expect("a slot to remove is in the table");
        self.buckets[found].tags[at] = 0;
        self.len -= 1;
        let mut number = self.home(hash);
        while number != found {
            self.buckets[number].passed -= 1;
            number = self.after(number);
        }
    }

    /// Grows the table if it is 7/8 full.
    fn make_room(&mut self, hash_of: &impl Fn(u32) -> u64) {
        if (self.len + 1) * 8 <= self.buckets.len() * WIDE * 7 {
            return;
        }
        let mut larger = Table::with_buckets(self.buckets.len() + (self.buckets.len() / 4).max(1));
        for slot in self.slots() {
            larger.put(hash_of(slot), slot);
        }
        *self = larger;
    }

    fn split(&self, depth: u32, hash_of: &impl Fn(u32) -> u64) -> Part {
        let mut tables: Vec<Table> = (0..FAN).map(|_| Table::with_room(self.len / FAN)).collect();
        for slot in self.slots() {
            let hash = hash_of(slot);
            let table = &mut tables[branch(hash << (depth * FAN_BITS))];
            table.make_room(hash_of);
            table.put(hash, slot);
        }
        let parts: Vec<Part> = tables.into_iter().map(Part::Table).collect();
        Part::Split(parts.try_into().ok().expect("FAN tables were made"))
    }

    fn slots(&self) -> impl Iterator<Item = u32> {
        self.buckets
            .iter()
            .flat_map(|bucket| (0..WIDE).filter(|&at| bucket.tags[at] != 0).map(|at| bucket.slots[at]))
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        // The low half scaled to the number of buckets, which need not be a power of two.
        (((hash & 0xffff_ffff) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, number: usize) -> usize {
        if number + 1 == self.buckets.len() { 0 } else { number + 1 }
    }
}

impl Bucket {
    /// One bit per place with this tag.
    #[inline]
    fn matching(&self, tag: u8) -> u32 {
        let mut hits = 0;
        for (at, &other) in self.tags.iter().enumerate() {
            hits |= u32::from(other == tag) << at;
        }
        hits
    }
}

/// Bits that choose neither a part nor a bucket; never 0.
#[inline]
fn tag(hash: u64) -> u8 {
    ((hash >> 32) as u8).max(1)
}
