//! A leaf: up to `LEAF` entries in order, packed into columns, in a block of one size.
//!
//! Neighbours in the ranking have similar scores and often similar stamps. So each column stores distances
//! from a base in as many bytes as the largest needs, none if all are equal. Random scores over a trillion
//! take three bytes in a board of ten million. An entry that does not fit makes the leaf pack itself again.
//! The capacity of a leaf follows from the widths.
//!
//! The block is part of the leaf and leaves are numbered, so a reader with the number loads the header and
//! the columns at once. That is one wait for memory, where a header that points to its block costs two. It is
//! worth the unused end of a block.
//!
//! The block is `[slots, 4 bytes each][score][subscore][stamp][8 spare bytes]`, each column `room` long. The
//! spare bytes let every number be read as eight bytes and masked.
//!
//! A leaf compares scores only. Not here: ties and the rest of the tree (`tree`).

use std::marker::PhantomData;

use crate::nodes::Link;
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

/// See the head of the file.
#[repr(align(64))]
pub(crate) struct Leaf<S: Score, const LEAF: usize> {
    score_base: S,
    stamp_base: i64,
    parent: u32,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// The index in its parent.
    at: u8,
    len: u8,
    room: u8,
    /// Bytes per number: score, subscore, stamp.
    widths: [u8; 3],
    cells: [S::Cell; LEAF],
}

const _: () = assert!(size_of::<Leaf<i64, 82>>() == 1024);

/// The bits of eight bytes that belong to a number of that many bytes.
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
        const {
            assert!(LEAF >= 8);
            assert!(LEAF < 255);
            // One entry too many fits in two halves at full width, so a split always succeeds.
            let widest = SLOT_BYTES + 8 * (S::PARTS + 1);
            assert!((LEAF + 1).div_ceil(2) * widest + SPARE_BYTES <= Self::BYTES);
        }
        Leaf {
            score_base: S::default(),
            stamp_base: 0,
            parent: NONE,
            prev: NONE,
            next: NONE,
            at: 0,
            len: 0,
            room: 0,
            widths: [0; 3],
            cells: [S::CELL; LEAF],
        }
    }
}

impl<S: Score, const LEAF: usize> Leaf<S, LEAF> {
    const BYTES: usize = size_of::<S::Cell>() * LEAF;

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(crate) fn link(&self) -> Link {
        Link { parent: self.parent, at: u32::from(self.at) }
    }

    #[inline]
    pub(crate) fn set_link(&mut self, link: Link) {
        self.parent = link.parent;
        self.at = link.at as u8;
    }

    #[inline]
    pub(crate) fn slot(&self, at: usize) -> u32 {
        let bytes = &self.bytes()[at * SLOT_BYTES..(at + 1) * SLOT_BYTES];
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

    /// The index of the entry of this slot, which must be here.
    #[inline]
    pub(crate) fn find(&self, slot: u32) -> usize {
        // All indexes, without an early exit: vector code without a branch to mispredict.
        let mut found = 0;
        for (at, other) in self.bytes()[..self.len() * SLOT_BYTES].chunks_exact(SLOT_BYTES).enumerate() {
            let other = u32::from_le_bytes([other[0], other[1], other[2], other[3]]);
            found |= if other == slot { at as u32 } else { 0 };
        }
        assert!(self.slot(found as usize) == slot, "an entry is in the leaf that the table names");
        found as usize
    }

    /// Prefetches all lines of the leaf; see [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm(&self) {
        for at in (0..Self::BYTES).step_by(64) {
            warm(&self.bytes()[at]);
        }
    }

    /// Prefetches the lines of the header and the slots.
    #[inline]
    pub(crate) fn warm_slots(&self) {
        for at in (0..LEAF * SLOT_BYTES).step_by(64) {
            warm(&self.bytes()[at]);
        }
    }

    /// The number of entries before a key. The key has this score; among equal scores `before` decides.
    #[inline]
    pub(crate) fn search(&self, score: S, before: impl FnMut(usize) -> bool) -> usize {
        self.warm();
        search(self.len(), |at| self.score(at) < score, |at| self.score(at) == score, before)
    }

    /// Inserts an entry at an index, if it fits into the leaf and its widths.
    pub(crate) fn insert(&mut self, at: usize, item: &Item<S>) -> bool {
        if self.len == self.room || !self.fits(item) {
            return false;
        }
        let len = self.len();
        self.len += 1;
        let bytes = S::bytes_mut(&mut self.cells);
        bytes.copy_within(at * SLOT_BYTES..len * SLOT_BYTES, (at + 1) * SLOT_BYTES);
        bytes[at * SLOT_BYTES..(at + 1) * SLOT_BYTES].copy_from_slice(&item.slot.to_le_bytes());
        for column in Self::columns() {
            let (start, width) = self.column(column);
            let from = start + at * width;
            S::bytes_mut(&mut self.cells).copy_within(from..start + len * width, from + width);
            self.write(column, at, self.distance(column, item));
        }
        true
    }

    /// Removes the entry at an index.
    pub(crate) fn remove(&mut self, at: usize) {
        let len = self.len();
        let bytes = S::bytes_mut(&mut self.cells);
        bytes.copy_within((at + 1) * SLOT_BYTES..len * SLOT_BYTES, at * SLOT_BYTES);
        for column in Self::columns() {
            let (start, width) = self.column(column);
            let from = start + (at + 1) * width;
            S::bytes_mut(&mut self.cells).copy_within(from..start + len * width, from - width);
        }
        self.len -= 1;
    }

    /// Whether the leaf needs a rebalance: less than three eighths are used.
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        self.len() * 8 < usize::from(self.room) * 3
    }

    /// Appends all entries to `out`.
    pub(crate) fn copy_to(&self, out: &mut Vec<Item<S>>) {
        out.extend((0..self.len()).map(|at| self.item(at)));
    }

    /// Replaces all entries, with bases and widths made for these, which must fit.
    pub(crate) fn fill(&mut self, items: &[Item<S>]) {
        let span = Span::of(items);
        let room = span.room::<LEAF>();
        assert!(items.len() <= room, "a leaf has room for its entries");
        self.len = items.len() as u8;
        self.room = room as u8;
        self.widths = span.widths();
        self.score_base = S::from_parts([span.low[0], span.low[1]]);
        self.stamp_base = span.low[2];
        let bytes = S::bytes_mut(&mut self.cells);
        for (at, item) in items.iter().enumerate() {
            bytes[at * SLOT_BYTES..(at + 1) * SLOT_BYTES].copy_from_slice(&item.slot.to_le_bytes());
        }
        for column in Self::columns() {
            let (start, width) = self.column(column);
            for (at, item) in items.iter().enumerate() {
                // Eight bytes each; what spills over is overwritten by the next number.
                let from = start + at * width;
                let distance = self.distance(column, item).to_le_bytes();
                S::bytes_mut(&mut self.cells)[from..from + 8].copy_from_slice(&distance);
            }
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        S::bytes(&self.cells)
    }

    fn columns() -> impl Iterator<Item = usize> {
        (0..3).filter(|&column| column < S::PARTS || column == 2)
    }

    /// The start of a column in the block, and the bytes per number.
    #[inline]
    fn column(&self, column: usize) -> (usize, usize) {
        let before: usize = self.widths[..column].iter().map(|&width| usize::from(width)).sum();
        ((SLOT_BYTES + before) * usize::from(self.room), usize::from(self.widths[column]))
    }

    #[inline]
    fn read(&self, column: usize, at: usize) -> u64 {
        let (start, width) = self.column(column);
        let from = start + at * width;
        let bytes: [u8; 8] = self.bytes()[from..from + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) & MASKS[width]
    }

    #[inline]
    fn write(&mut self, column: usize, at: usize, distance: u64) {
        let (start, width) = self.column(column);
        let from = start + at * width;
        let bytes = &mut S::bytes_mut(&mut self.cells)[from..from + 8];
        let bytes: &mut [u8; 8] = bytes.try_into().expect("eight bytes");
        *bytes = (u64::from_le_bytes(*bytes) & !MASKS[width] | distance).to_le_bytes();
    }

    /// The number to store: the distance of the entry from the base.
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

/// The range of the entries of a leaf, by column: its capacity follows from it.
#[derive(Clone, Copy)]
pub(crate) struct Span<S> {
    low: [i64; 3],
    high: [i64; 3],
    parts: PhantomData<S>,
}

impl<S: Score> Span<S> {
    pub(crate) fn of(items: &[Item<S>]) -> Self {
        let mut span = Span { low: [i64::MAX; 3], high: [i64::MIN; 3], parts: PhantomData };
        for item in items {
            span.add(item);
        }
        span
    }

    pub(crate) fn add(&mut self, item: &Item<S>) {
        let mut numbers = [0, 0, item.stamp];
        for (part, number) in numbers.iter_mut().enumerate().take(S::PARTS) {
            *number = item.score.part(part);
        }
        for (column, number) in numbers.into_iter().enumerate() {
            self.low[column] = self.low[column].min(number);
            self.high[column] = self.high[column].max(number);
        }
    }

    /// The capacity of a leaf whose entries are all in this range.
    pub(crate) fn room<const LEAF: usize>(&self) -> usize {
        let each = SLOT_BYTES + self.widths().iter().map(|&width| usize::from(width)).sum::<usize>();
        ((Leaf::<S, LEAF>::BYTES - SPARE_BYTES) / each).min(LEAF)
    }

    /// The bytes that the distance of the largest from the smallest needs.
    fn widths(&self) -> [u8; 3] {
        std::array::from_fn(|column| {
            let distance = self.high[column].wrapping_sub(self.low[column]) as u64;
            if self.low[column] > self.high[column] {
                0
            } else {
                (64 - distance.leading_zeros()).div_ceil(8) as u8
            }
        })
    }
}
