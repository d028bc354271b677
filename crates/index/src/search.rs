//! Binary search and cache warming, written for what really costs time here: waiting for memory.
//!
//! On a board of millions nearly every step into a leaf or a low node misses the caches. A search that
//! branches guesses half of its steps wrong, and each wrong guess throws away the loads already under way.
//! So the lines are asked for together, before the search, and the search has no branch on what it reads.

use std::hint::black_box;

/// Loads a value for the sake of its cache line. The processor goes on meanwhile.
#[inline]
pub(crate) fn warm<T: Copy>(value: T) {
    // Unlike an intrinsic for prefetching this is safe code; the load cannot be optimised away.
    black_box(value);
}

/// How many of `len` things from the left are before a key. `less` and `same` tell by what is cheap to
/// compare; among those that are the same, `before` decides.
#[inline]
pub(crate) fn search(
    len: usize,
    less: impl Fn(usize) -> bool,
    same: impl Fn(usize) -> bool,
    mut before: impl FnMut(usize) -> bool,
) -> usize {
    let mut low = 0;
    let mut size = len;
    while size > 1 {
        let half = size / 2;
        // A product, not an `if`: no branch.
        low += half * usize::from(less(low + half - 1));
        size -= half;
    }
    if size == 1 && less(low) {
        low += 1;
    }
    if low == len || !same(low) {
        return low;
    }
    let mut high = len;
    while low < high {
        let middle = (low + high) / 2;
        // Whatever is not the same by now is after the key.
        if same(middle) && before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
