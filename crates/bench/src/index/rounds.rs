//! Timing operations that take less than a look at the clock: in rounds, and the median of them.
//!
//! What a round works on is made before its clock starts. The median leaves out the rounds in which something else ran;
//! a mean would not, and a minimum would leave out what the structure itself does now and then.

use std::time::Instant;

/// Times rounds of `count` operations, each on what `prepare` gives; median nanoseconds of one operation.
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
