//! The memory that ranks take: whether a start fits into the limit of the process, before it loads.
//!
//! Ranks in memory take so many bytes for each record. Without room for them the kernel would kill the process while it loads, again and
//! again, and no message would say why. Not here: where the limit comes from (the binary), and bounds of caches, which are settings.

use crate::failure::Fault;

const MIB: u64 = 1 << 20;

/// What a process takes before it has a record.
const BASE_LEAST: u64 = 12 * MIB;
/// What a record takes in an index at the least. Below this no start has ended.
const RECORD_LEAST: u64 = 36;
/// What a server takes that answers requests, without caches at their bounds.
const BASE_SERVING: u64 = 35 * MIB;
/// Bytes of a record at the height of a load, with the run that is sorted. Three million records with names of 13 bytes took 55 each;
/// longer names take some more.
const RECORD_SERVING: u64 = 60;

/// Whether records fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// There is room.
    Fits,
    /// They fit, with little room for anything else: so many bytes would be enough.
    Tight(u64),
    /// They do not fit: so many bytes are needed at the least.
    TooSmall(u64),
}

/// Whether so many records fit into a limit in bytes. Pure.
pub fn fit(records: u64, limit: u64) -> Fit {
    let least = BASE_LEAST.saturating_add(records.saturating_mul(RECORD_LEAST));
    let serving = BASE_SERVING.saturating_add(records.saturating_mul(RECORD_SERVING));
    // A quarter is for requests, caches and the system.
    let enough = serving.saturating_mul(4).div_ceil(3);
    match limit {
        _ if least > limit => Fit::TooSmall(enough),
        _ if enough > limit => Fit::Tight(enough),
        _ => Fit::Fits,
    }
}

/// Refuses to load records that do not fit, and warns of those that fit only just.
pub(crate) fn check(records: u64, limit: u64) -> Result<(), Fault> {
    let advice =
        |wanted: u64| format!("give it {} MiB, or keep ranks in Redis (`ranking.url`)", wanted.div_ceil(MIB));
    let of = limit / MIB;
    match fit(records, limit) {
        Fit::Fits => Ok(()),
        Fit::Tight(wanted) => {
            let advice = advice(wanted);
            tracing::warn!("memory is tight: ranks of {records} records in a limit of {of} MiB; {advice}");
            Ok(())
        }
        Fit::TooSmall(wanted) => Err(Fault::Broken(format!(
            "this process may use {of} MiB, and the ranks of {records} records do not fit into that: {}",
            advice(wanted)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_fit_or_the_needed_memory_is_said() {
        assert_eq!(fit(0, 64 * MIB), Fit::Fits);
        let million = 1_000_000;
        let (least, serving) = (BASE_LEAST + million * 36, BASE_SERVING + million * 60);
        let enough = (serving * 4).div_ceil(3);
        assert_eq!(fit(million, least - 1), Fit::TooSmall(enough));
        assert_eq!(fit(million, least), Fit::Tight(enough));
        assert_eq!(fit(million, enough - 1), Fit::Tight(enough));
        assert_eq!(fit(million, enough), Fit::Fits);
        assert_eq!(fit(u64::MAX, u64::MAX), Fit::Fits, "no limit is known");
    }

    #[test]
    fn a_refusal_says_how_much_is_needed() {
        let why = check(100_000_000, 1024 * MIB).unwrap_err().to_string();
        assert!(why.contains("1024 MiB") && why.contains("100000000 records"), "{why}");
        assert!(why.contains("give it 7677 MiB"), "{why}");
        assert!(check(100_000_000, 4096 * MIB).is_ok());
    }
}
