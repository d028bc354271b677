//! Binary search and prefetching, written for what really costs time here: waiting for memory.
//!
//! On a board of millions nearly every step into a leaf or a low node misses the caches. A search that
//! branches mispredicts half of its steps, and each misprediction discards the loads in flight. So the lines
//! are prefetched together, before the search, and the search has no branch on what it reads.
//!
//! The prefetch is the one line of `unsafe` in this crate. Safe code could use a load. But the processor
//! retires nothing that follows a load until it has arrived, and has room for some two hundred such
//! instructions. So the descent to the leaf that an update needs next would stall. Updates of a large board
//! take a fifth longer that way.

/// Lines that are prefetched at once: as many as processors wait for, and they stay in the first cache until
/// they are used.
pub const GROUP: usize = 16;

/// Prefetches the cache line of a value.
#[inline]
pub(crate) fn warm<T: Copy>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "there is no safe prefetch")]
    // SAFETY: a prefetch changes nothing that the program sees and cannot fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    // Other processors do a load, which cannot be optimised away.
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(*value);
}

/// The number of `len` items from the left that are before a key. `less` and `same` compare by what is cheap;
/// among items that are the same, `before` decides.
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
        // An item that is not the same is after the key.
        if same(middle) && before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
