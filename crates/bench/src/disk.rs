//! The time of a synced append: the figure that durable rates of another machine depend on most.
//!
//! Measured in the folder of the scenarios' stores, just before they run. Not here: bandwidth.

use std::io::Write;
use std::time::Instant;
use tally_load::report::number;

/// Enough for a median.
const TRIES: usize = 100;
/// A page of a write-ahead log.
const BYTES: usize = 4096;

/// Median milliseconds of an append that is synced.
pub(crate) fn sync_ms() -> std::io::Result<f64> {
    let mut file = tempfile::tempfile()?;
    let mut took = Vec::with_capacity(TRIES);
    for _ in 0..TRIES {
        let start = Instant::now();
        file.write_all(&[7; BYTES])?;
        file.sync_data()?;
        took.push(start.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_unstable_by(f64::total_cmp);
    Ok(took[TRIES / 2])
}

/// The figure as a note.
pub(crate) fn sentence(sync_ms: f64) -> String {
    format!("the disk: a synced append of 4 KiB took {} ms (median) before the run", number(sync_ms))
}
