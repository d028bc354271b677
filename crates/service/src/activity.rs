//! What this server has done on each of the last days: scores and transfers that it has committed, and the money that these moved.
//!
//! The counts are in memory, so they begin with the start, and each server has its own. Each is a ring of days in UTC. A batch adds to
//! it once: to counts without a lock, to sums under one that only the lane of the ledger and readers of the status take. Not here:
//! counters that never start again, which are metrics.

use crate::tally::Tally;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tally_rules::Micros;
use tally_rules::ledger::{Currency, Transfer};

/// Microseconds of a day.
const DAY: i64 = 86_400 * 1_000_000;

/// Days of a ring: today, yesterday, and others between them and the day that takes their place.
const DAYS: usize = 4;

/// The low bits of a slot are its count; the bits above are its day, which end in the year 2149.
const COUNT_BITS: u32 = 48;

/// The place of a day in a ring.
fn place(day: u64) -> usize {
    (day % DAYS as u64) as usize
}

/// Counts of the last days. A slot of 0 has nothing.
#[derive(Debug, Default)]
struct Days([AtomicU64; DAYS]);

impl Days {
    fn slot(&self, day: u64) -> &AtomicU64 {
        &self.0[place(day)]
    }

    fn add(&self, day: u64, count: u64) {
        let later = |slot: u64| {
            let counted = if slot >> COUNT_BITS == day { slot } else { day << COUNT_BITS };
            Some(counted + count)
        };
        // `later` always has a value, so this does not fail.
        let _ = self.slot(day).fetch_update(Relaxed, Relaxed, later);
    }

    fn of(&self, day: u64) -> u64 {
        let slot = self.slot(day).load(Relaxed);
        if slot >> COUNT_BITS == day { slot & ((1 << COUNT_BITS) - 1) } else { 0 }
    }
}

/// Sums of the last days in each currency, of which a server has a few. Each place has the number of its day.
#[derive(Debug, Default)]
struct Sums(Mutex<[(u64, BTreeMap<Currency, u128>); DAYS]>);

impl Sums {
    fn add(&self, day: u64, sums: BTreeMap<Currency, u128>) {
        let mut days = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counted, present) = &mut days[place(day)];
        if *counted != day {
            (*counted, *present) = (day, BTreeMap::new());
        }
        for (currency, sum) in sums {
            *present.entry(currency).or_default() += sum;
        }
    }

    fn of(&self, day: u64) -> BTreeMap<Currency, u128> {
        let days = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counted, present) = &days[place(day)];
        if *counted == day { present.clone() } else { BTreeMap::new() }
    }
}

/// The transfers of a batch: their number, and their amounts in each currency.
#[derive(Debug, Default)]
pub(crate) struct TransferSums {
    count: usize,
    sums: BTreeMap<Currency, u128>,
}

impl TransferSums {
    /// Counts and adds up transfers.
    pub(crate) fn of<'t>(transfers: impl Iterator<Item = &'t Transfer>) -> Self {
        let mut all = Self::default();
        for transfer in transfers {
            all.count += 1;
            *all.sums.entry(transfer.currency).or_default() += u128::from(transfer.amount.unsigned_abs());
        }
        all
    }
}

/// What was done on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCounts {
    /// The instant from which it was counted: the beginning of the day, or the start of the server.
    pub since: Micros,
    /// Scores that were submitted, also those that did not change a record. Imports submit none.
    pub scores: u64,
    /// Transfers, by callers and by the server, but not by imports.
    pub transfers: u64,
    /// The sum of their amounts in each currency.
    pub moved: BTreeMap<Currency, u128>,
}

/// The counts of this server.
#[derive(Debug)]
pub(crate) struct Activity {
    started: Micros,
    scores: Days,
    transfers: Days,
    moved: Sums,
}

impl Activity {
    /// Begins to count.
    pub(crate) fn new(started: Micros) -> Self {
        Self { started, scores: Days::default(), transfers: Days::default(), moved: Sums::default() }
    }

    /// Adds the scores of a batch.
    pub(crate) fn add_scores(&self, now: Micros, count: usize) {
        if count > 0 {
            self.scores.add(day(now), count as u64);
        }
    }

    /// Adds the transfers of a batch.
    pub(crate) fn add_transfers(&self, now: Micros, TransferSums { count, sums }: TransferSums) {
        if count > 0 {
            self.transfers.add(day(now), count as u64);
            self.moved.add(day(now), sums);
        }
    }

    /// The counts of today, and of yesterday if the server already ran.
    fn counts(&self, now: Micros) -> (DayCounts, Option<DayCounts>) {
        let today = day(now);
        let of = |day: u64| DayCounts {
            since: Micros(day.cast_signed() * DAY).max(self.started),
            scores: self.scores.of(day),
            transfers: self.transfers.of(day),
            moved: self.moved.of(day),
        };
        let yesterday = today.checked_sub(1).filter(|yesterday| *yesterday >= day(self.started));
        (of(today), yesterday.map(of))
    }
}

/// The day of an instant, counted from 1970.
fn day(at: Micros) -> u64 {
    (at.0.max(0) / DAY).cast_unsigned()
}

impl Tally {
    /// What this server has done today, and yesterday if it already ran.
    pub fn activity(&self) -> (DayCounts, Option<DayCounts>) {
        self.lane.shared().activity.counts(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_the_start_on() {
        let noon = Micros(20_000 * DAY + DAY / 2);
        let activity = Activity::new(noon);
        let krw = Currency::parse("KRW").expect("a code");
        let count = |since, scores, transfers: u64| {
            // Each transfer moves 10.
            let moved = [(krw, u128::from(transfers) * 10)].into_iter().filter(|(_, sum)| *sum > 0).collect();
            DayCounts { since, scores, transfers, moved }
        };
        assert_eq!(activity.counts(noon), (count(noon, 0, 0), None));
        activity.add_scores(noon, 2);
        activity.add_scores(noon.plus(1), 3);
        activity.add_transfers(noon, TransferSums::default());
        activity.add_transfers(noon, TransferSums { count: 3, sums: BTreeMap::from([(krw, 30)]) });
        activity.add_transfers(noon, TransferSums { count: 4, sums: BTreeMap::from([(krw, 40)]) });
        assert_eq!(activity.counts(noon), (count(noon, 5, 7), None));
        let midnight = Micros(20_001 * DAY);
        assert_eq!(activity.counts(midnight.plus(-1)).0, count(noon, 5, 7));
        assert_eq!(activity.counts(midnight), (count(midnight, 0, 0), Some(count(noon, 5, 7))));
        activity.add_scores(midnight, 1);
        assert_eq!(activity.counts(midnight), (count(midnight, 1, 0), Some(count(noon, 5, 7))));
        // Each day of a ring takes the place of an earlier one.
        let later = midnight.plus(DAY * DAYS as i64);
        activity.add_scores(later, 9);
        assert_eq!(activity.counts(later).0, count(later, 9, 0));
        assert_eq!(activity.counts(later).1, Some(count(later.plus(-DAY), 0, 0)));
        // A clock that was set to a day before the start.
        assert_eq!(activity.counts(Micros(0)), (count(noon, 0, 0), None));
        assert_eq!(activity.counts(Micros(i64::MAX)).0.scores, 0);
    }
}
