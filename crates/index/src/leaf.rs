//! A leaf: up to `LEAF` entries in order, packed into columns.
//!
//! Neighbours in the order have similar scores and often similar stamps. So each column stores distances
//! from a base in as many bytes as the largest needs, none if all are equal: random scores over a trillion
//! take three bytes in a board of ten million. An entry that does not fit makes the leaf pack itself anew.
//! The block of bytes has room for a few more entries, not for `LEAF`: fill costs no memory.
//!
//! The block is `[slots, 4 bytes each][score][subscore][stamp][8 spare bytes]`, each column `room` long. The
//! spare bytes let every number be read as eight bytes and masked.
//!
//! A leaf compares scores only; ties and the rest of the tree are `tree`'s.

use crate::pool::NONE;
use crate::score::{Entry, Score};
use crate::search::{search, warm};

/// One entry unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item<S> {
    pub(crate) score: S,
    pub(crate) stamp: i64,
    pub(crate) slot: u32,
}

/// See the head of the file. `LEAF + 1` entries fit for the moment before a split.
pub(crate) struct Leaf<S, const LEAF: usize> {
    block: Box<[u8]>,
    score_base: S,
    stamp_base: i64,
    pub(crate) parent: u32,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    len: u8,
    room: u8,
    /// Bytes per number: score, subscore, stamp.
    widths: [u8; 3],
}

const _: () = assert!(size_of::<Leaf<i64, 64>>() == 56);
const _: () = assert!(size_of::<Leaf<[i64; 2], 64>>() == 64);

/// Which bits of eight bytes belong to a number of that many bytes.
const MASKS: [u64; 9] = {
    let mut masks = [u64::MAX; 9];
    let mut width = 0;
    while width < 8 {
        masks[width] = (1 << (8 * width)) - 1;
        width += 1;
    }
    masks
};
const SLOT_BYTES: usize = 4;
const SPARE_BYTES: usize = 8;

impl<S: Score, const LEAF: usize> Default for Leaf<S, LEAF> {
    fn default() -> Self {
        Leaf {
            block: Box::default(),
            score_base: S::default(),
            stamp_base: 0,
            parent: NONE,
            prev: NONE,
            next: NONE,
            len: 0,
            room: 0,
            widths: [0; 3],
        }
    }
}

impl<S: Score, const LEAF: usize> Leaf<S, LEAF> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(crate) fn slot(&self, at: usize) -> u32 {
        let bytes = &self.block[at * SLOT_BYTES..(at + 1) * SLOT_BYTES];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[inline]
    pub(crate) fn score(&self, at: usize) -> S {
        let mut parts = [0; 2];
        for (column, part) in parts.iter_mut().enumerate().take(S::PARTS) {
            *part = self.score_base.part(column).wrapping_add(self.read(column, at) as i64);
        }
        S::from_parts(parts)
    }

    #[inline]
    pub(crate) fn stamp(&self, at: usize) -> i64 {
        self.stamp_base.wrapping_add(self.read(2, at) as i64)
    }

    #[inline]
    pub(crate) fn entry(&self, at: usize) -> Entry<S> {
        Entry { score: self.score(at), stamp: self.stamp(at) }
    }

    #[inline]
    pub(crate) fn item(&self, at: usize) -> Item<S> {
        Item { score: self.score(at), stamp: self.stamp(at), slot: self.slot(at) }
    }

    /// Where the entry of this slot stands. It must be here.
    #[inline]
    pub(crate) fn find(&self, slot: u32) -> usize {
        // As in a node: all places, no way out early.
        let mut found = 0;
        for (at, other) in self.block[..self.len() * SLOT_BYTES].chunks_exact(SLOT_BYTES).enumerate() {
            let other = u32::from_le_bytes([other[0], other[1], other[2], other[3]]);
            found |= if other == slot { at as u32 } else { 0 };
        }
        assert!(self.slot(found as usize) == slot, "an entry is in the leaf that its record names");
        found as usize
    }

    /// Asks for the leaf itself.
    #[inline]
    pub(crate) fn warm_head(&self) {
        warm(self.len);
    }

    /// Asks for the lines of the block; see [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm(&self) {
        for line in self.block.chunks(64) {
            warm(line[0]);
        }
    }

    /// Asks for the lines of the slots.
    #[inline]
    pub(crate) fn warm_slots(&self) {
        for line in self.block[..self.len() * SLOT_BYTES].chunks(64) {
            warm(line[0]);
        }
    }

    /// How many entries from the left are before a key. The key has this score; among equal scores `before`
    /// decides.
    #[inline]
    pub(crate) fn search(&self, score: S, before: impl FnMut(usize) -> bool) -> usize {
        self.warm();
        search(self.len(), |at| self.score(at) < score, |at| self.score(at) == score, before)
    }

    /// Puts an entry at a place. `scratch` is anyone's and used if the leaf must be packed anew.
    pub(crate) fn insert(&mut self, at: usize, item: Item<S>, scratch: &mut Vec<Item<S>>) {
        if self.len == self.room || !self.fits(&item) {
            scratch.clear();
            self.copy_to(scratch);
            scratch.insert(at, item);
            self.fill(scratch);
            return;
        }
        let len = self.len();
        self.len += 1;
        self.block.copy_within(at * SLOT_BYTES..len * SLOT_BYTES, (at + 1) * SLOT_BYTES);
        self.block[at * SLOT_BYTES..(at + 1) * SLOT_BYTES].copy_from_slice(&item.slot.to_le_bytes());
        for column in Self::columns() {
            let (start, width) = self.column(column);
            let from = start + at * width;
            self.block.copy_within(from..start + len * width, from + width);
            self.write(column, at, self.distance(column, &item));
        }
    }

    /// Takes the entry of a place out.
    pub(crate) fn remove(&mut self, at: usize, scratch: &mut Vec<Item<S>>) {
        let len = self.len();
        self.block.copy_within((at + 1) * SLOT_BYTES..len * SLOT_BYTES, at * SLOT_BYTES);
        for column in Self::columns() {
            let (start, width) = self.column(column);
            let from = start + (at + 1) * width;
            self.block.copy_within(from..start + len * width, from - width);
        }
        self.len -= 1;
        // A quarter or more unused: give it back. The next few inserts fit without packing again.
        if self.len() * 4 + 8 < usize::from(self.room) * 3 {
            scratch.clear();
            self.copy_to(scratch);
            self.fill(scratch);
        }
    }

    /// Appends all entries to `out`.
    pub(crate) fn copy_to(&self, out: &mut Vec<Item<S>>) {
        out.extend((0..self.len()).map(|at| self.item(at)));
    }

    /// Replaces all entries, with bases, widths and room made for these.
    pub(crate) fn fill(&mut self, items: &[Item<S>]) {
        self.len = u8::try_from(items.len()).expect("a leaf has at most 255 entries");
        self.widths = [0; 3];
        let mut bases = [0; 2];
        for (column, base) in bases.iter_mut().enumerate().take(S::PARTS) {
            (*base, self.widths[column]) = span(items.iter().map(|item| item.score.part(column)));
        }
        self.score_base = S::from_parts(bases);
        (self.stamp_base, self.widths[2]) = span(items.iter().map(|item| item.stamp));

        let each = SLOT_BYTES + self.widths.iter().map(|&width| usize::from(width)).sum::<usize>();
        let (room, bytes) = size(items.len(), each, LEAF + 1);
        self.room = room as u8;
        if bytes != self.block.len() {
            self.block = vec![0; bytes].into_boxed_slice();
        }
        for (at, item) in items.iter().enumerate() {
            self.block[at * SLOT_BYTES..(at + 1) * SLOT_BYTES].copy_from_slice(&item.slot.to_le_bytes());
        }
        for column in Self::columns() {
            let (start, width) = self.column(column);
            for (at, item) in items.iter().enumerate() {
                // Eight bytes each; what spills over is overwritten by the next number.
                let from = start + at * width;
                let bytes = self.distance(column, item).to_le_bytes();
                self.block[from..from + 8].copy_from_slice(&bytes);
            }
        }
    }

    /// Bytes of the block.
    pub(crate) fn heap(&self) -> u64 {
        self.block.len() as u64
    }

    fn columns() -> impl Iterator<Item = usize> {
        (0..3).filter(|&column| column < S::PARTS || column == 2)
    }

    /// Where a column starts in the block, and the bytes per number.
    #[inline]
    fn column(&self, column: usize) -> (usize, usize) {
        let before: usize = self.widths[..column].iter().map(|&width| usize::from(width)).sum();
        ((SLOT_BYTES + before) * usize::from(self.room), usize::from(self.widths[column]))
    }

    #[inline]
    fn read(&self, column: usize, at: usize) -> u64 {
        let (start, width) = self.column(column);
        let from = start + at * width;
        let bytes: [u8; 8] = self.block[from..from + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) & MASKS[width]
    }

    #[inline]
    fn write(&mut self, column: usize, at: usize, distance: u64) {
        let (start, width) = self.column(column);
        let from = start + at * width;
        let bytes: &mut [u8; 8] = (&mut self.block[from..from + 8]).try_into().expect("eight bytes");
        *bytes = (u64::from_le_bytes(*bytes) & !MASKS[width] | distance).to_le_bytes();
    }

    /// The number to store: how far the entry is from the base.
    #[inline]
    fn distance(&self, column: usize, item: &Item<S>) -> u64 {
        match column {
            2 => item.stamp.wrapping_sub(self.stamp_base) as u64,
            part => item.score.part(part).wrapping_sub(self.score_base.part(part)) as u64,
        }
    }

    #[inline]
    fn fits(&self, item: &Item<S>) -> bool {
        let above = item.stamp >= self.stamp_base
            && (0..S::PARTS).all(|part| item.score.part(part) >= self.score_base.part(part));
        above
            && Self::columns()
                .all(|column| self.distance(column, item) <= MASKS[usize::from(self.widths[column])])
    }
}

/// The smallest of the numbers, and the bytes that the distance of the largest from it needs.
fn span(numbers: impl Iterator<Item = i64>) -> (i64, u8) {
    let (low, high) = numbers.fold((i64::MAX, i64::MIN), |(low, high), it| (low.min(it), high.max(it)));
    if low > high {
        return (0, 0);
    }
    let distance = high.wrapping_sub(low) as u64;
    (low, (64 - distance.leading_zeros()).div_ceil(8) as u8)
}

/// How many entries to make room for, and the bytes of that: a size that allocators serve without waste,
/// eight to the doubling, filled with as many entries as it takes.
fn size(len: usize, each: usize, len_max: usize) -> (usize, usize) {
    if len == 0 {
        return (0, SPARE_BYTES);
    }
    let needed = len * each + SPARE_BYTES;
    let step = (needed.next_power_of_two() / 16).max(16);
    let room = ((needed.next_multiple_of(step) - SPARE_BYTES) / each).min(len_max);
    (room, room * each + SPARE_BYTES)
}
