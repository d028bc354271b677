//! Numbered values in chunks: leaves and inner nodes refer to each other by number.
//!
//! One vector would copy everything it holds each time it grows, which on a large board is a stall and a
//! moment of double memory. A chunk grows to its size by doubling, the first from one value and later ones
//! from an eighth, so that a small board stays small. A freed number keeps a default value until it is
//! reused; chunks are not returned.

use std::ops::{Index, IndexMut};

/// No value, wherever a number is expected.
pub(crate) const NONE: u32 = u32::MAX;

/// Values by number, in chunks of `2^SHIFT`.
pub(crate) struct Pool<T, const SHIFT: u32> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T: Default, const SHIFT: u32> Pool<T, SHIFT> {
    pub(crate) fn new() -> Self {
        Pool { chunks: Vec::new(), free: Vec::new() }
    }

    /// Stores a value and returns its number.
    pub(crate) fn add(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self[number] = value;
            return number;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == 1 << SHIFT) {
            let room = if self.chunks.is_empty() { 1 } else { 1 << (SHIFT - 3) };
            self.chunks.push(Vec::with_capacity(room));
        }
        let chunk = self.chunks.len() - 1;
        let at = self.chunks[chunk].len();
        if at == self.chunks[chunk].capacity() {
            // Exactly: a vector of small values would round up past the size of a chunk.
            self.chunks[chunk].reserve_exact(at.min((1 << SHIFT) - at));
        }
        let number = u32::try_from((chunk << SHIFT) + at).expect("an order holds fewer than 2^32 leaves");
        assert!(number != NONE, "an order holds fewer than 2^32 leaves");
        self.chunks[chunk].push(value);
        number
    }

    /// Frees a value; its number is reused.
    pub(crate) fn release(&mut self, number: u32) {
        self[number] = T::default();
        self.free.push(number);
    }

    /// The number of values in use.
    pub(crate) fn live(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() - self.free.len()
    }

    /// Heap bytes of the pool itself, without what the values own.
    pub(crate) fn heap(&self) -> u64 {
        let values: usize = self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<T>()).sum();
        (values + self.chunks.capacity() * size_of::<Vec<T>>() + self.free.capacity() * 4) as u64
    }
}

impl<T, const SHIFT: u32> Index<u32> for Pool<T, SHIFT> {
    type Output = T;
    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.chunks[(number >> SHIFT) as usize][(number & ((1 << SHIFT) - 1)) as usize]
    }
}

impl<T, const SHIFT: u32> IndexMut<u32> for Pool<T, SHIFT> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[(number >> SHIFT) as usize][(number & ((1 << SHIFT) - 1)) as usize]
    }
}
