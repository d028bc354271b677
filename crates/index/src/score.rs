//! The values of a ranking: scores, how equal scores are ordered, and entries.
//!
//! A score is one or two `i64`, compared lexicographically. The trait is sealed: leaves store scores as
//! columns of integers, so a type that is not made of integers does not fit.

use std::fmt::Debug;

/// A score, or a score with a subscore. Smaller is better and comes first.
pub trait Score: Copy + Ord + Debug + Default + Send + Sync + 'static + sealed::Parts {}

impl Score for i64 {}
impl Score for [i64; 2] {}

/// How entries of the same score are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tie {
    /// The smaller stamp first, then ids by their bytes.
    StampAscending,
    /// The larger stamp first, then ids by their bytes.
    StampDescending,
    /// Ids by their bytes; the stamp is carried, not compared.
    Id,
    /// Ids by their bytes, the larger first; the stamp is carried, not compared.
    IdReversed,
}

/// What the index holds for a player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry<S> {
    /// The score, smaller is better.
    pub score: S,
    /// A time, or any number that orders equal scores; see [`Tie`].
    pub stamp: i64,
}

/// An entry with its player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a, S> {
    /// The player.
    pub id: &'a [u8],
    /// The score, smaller is better.
    pub score: S,
    /// The stamp that came with the score.
    pub stamp: i64,
}

pub(crate) mod sealed {
    //! A score as integer columns, and the bytes a leaf is made of; out of reach of other crates.

    /// Takes a score apart into columns and puts it together again.
    pub trait Parts: Sized {
        /// The number of columns, 1 or 2.
        const PARTS: usize;
        /// The bytes a leaf has for each of its entries. An entry of a large board takes so many when packed, and half
        /// the entries of a leaf fit into them at full width.
        type Cell: Copy + Send + Sync + 'static;
        /// A cell of zeros.
        const CELL: Self::Cell;
        /// Cells as bytes.
        fn bytes(cells: &[Self::Cell]) -> &[u8];
        /// Cells as bytes.
        fn bytes_mut(cells: &mut [Self::Cell]) -> &mut [u8];
        /// The column `at`.
        fn part(self, at: usize) -> i64;
        /// The score of these columns; those past `PARTS` are ignored.
        fn from_parts(parts: [i64; 2]) -> Self;
    }

    impl Parts for i64 {
        const PARTS: usize = 1;
        type Cell = [u8; 12];
        const CELL: Self::Cell = [0; 12];
        #[inline]
        fn bytes(cells: &[Self::Cell]) -> &[u8] {
            cells.as_flattened()
        }
        #[inline]
        fn bytes_mut(cells: &mut [Self::Cell]) -> &mut [u8] {
            cells.as_flattened_mut()
        }
        #[inline]
        fn part(self, _: usize) -> i64 {
            self
        }
        #[inline]
        fn from_parts(parts: [i64; 2]) -> Self {
            parts[0]
        }
    }

    impl Parts for [i64; 2] {
        const PARTS: usize = 2;
        type Cell = [u8; 16];
        const CELL: Self::Cell = [0; 16];
        #[inline]
        fn bytes(cells: &[Self::Cell]) -> &[u8] {
            cells.as_flattened()
        }
        #[inline]
        fn bytes_mut(cells: &mut [Self::Cell]) -> &mut [u8] {
            cells.as_flattened_mut()
        }
        #[inline]
        fn part(self, at: usize) -> i64 {
            self[at]
        }
        #[inline]
        fn from_parts(parts: [i64; 2]) -> Self {
            parts
        }
    }
}
