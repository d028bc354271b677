//! Binary search and cache warming, written for what really costs time here: waiting for memory.
//!
//! On a board of millions nearly every step into a leaf or a low node misses the caches. A search that
//! branches guesses half of its steps wrong, and each wrong guess throws away the loads already under way.
//! So the lines are asked for together, before the search, and the search has no branch on what it reads.
//!
//! Asking is a prefetch, the one line of `unsafe` in this crate. A load would do in safe code, but the
//! processor holds all that follows a load until it has arrived, and has room for some two hundred
//! instructions to hold: the descent to the leaf that an update needs next would stop there. Updates of a
//! large board take a fifth longer that way.

/// Lines that are asked for at once: as many as processors wait for, and they stay in the first cache until they are used.
pub const GROUP: usize = 16;

/// Asks for the cache line of a value and does not wait for it.
#[inline]
pub(crate) fn warm<T: Copy>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "there is no safe prefetch")]
    // SAFETY: a prefetch changes nothing that the program sees and cannot fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    // Elsewhere a load, which cannot be optimised away.
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(*value);
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
