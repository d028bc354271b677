//! Timing operations that take less than a clock reading: in rounds, and the median of them.
//!
//! The input of a round is made before its clock starts. The median leaves out the rounds in which something else ran.
//! A mean would not, and a minimum would leave out the structure's own occasional work.

use std::hint::black_box;
use std::time::Instant;
use tally_load::Random;

/// Times rounds of `count` operations, each on a value of `prepare`; returns the median nanoseconds of one operation.
pub(super) fn median_ns<T>(
    rounds: usize,
    count: usize,
    mut prepare: impl FnMut(usize) -> Vec<T>,
    mut operate: impl FnMut(T),
) -> f64 {
    let mut took = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let work = prepare(count);
        let start = Instant::now();
        for one in work {
            operate(one);
        }
        took.push(start.elapsed().as_nanos() as f64 / count as f64);
    }
    took.sort_unstable_by(f64::total_cmp);
    took[took.len() / 2]
}

/// Nanoseconds of one read that misses the caches, out of so many cells of four bytes. It is the unit for times of a
/// structure larger than the caches. Virtual machines share caches with neighbours, so it drifts.
pub(super) fn miss_ns(places: u32) -> f64 {
    let mut random = Random::new(7);
    let mut next: Vec<u32> = (0..places).collect();
    // Sattolo's shuffle: one cycle through all cells.
    for at in (1..places).rev() {
        next.swap(at as usize, random.below(u64::from(at)) as usize);
    }
    let mut at = 0;
    median_ns(
        21,
        50_000,
        |count| vec![(); count],
        |()| {
            at = black_box(next[at as usize]);
        },
    )
}
