//! Rows of a missing contest, or of the prizes of a missing period.
//!
//! Tables return their numbers in order. Those of contests are in the order of their names, so they are collected in rounds of
//! bounded size. Not here: whether there are as many rows as there should be.

use super::ahead::{Ahead, Put};
use super::sorted_rows::SortedRows;
use super::{Run, periods};
use crate::failure::Failure;
use tally_rules::contest::ContestId;
use tally_rules::ledger::Uuid;
use tally_store::{ContestSnapshot, Snapshot, StoreError};

/// Numbers that are kept in memory.
const KNOWN_MAX: usize = 500_000;

/// Finds them; each number is reported once for each table.
pub(super) fn reconcile(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut known = Ahead::collect(KNOWN_MAX, |(), ()| (), |put| numbers(snapshot, put))?;
    let mut tables = ContestSnapshot::ALL.map(|of| (of, SortedRows::default()));
    loop {
        for (of, rows) in &mut tables {
            rows.fill(|after: Option<&Uuid>, limit| snapshot.owners(*of, after, limit))?;
        }
        let next = tables.iter().filter_map(|(_, rows)| rows.peek().map(|(no, ())| *no)).min();
        let Some(next) = next else { return Ok(()) };
        let is_there = known.at(&next, |put| numbers(snapshot, put), &mut |_, ()| ())?.is_some();
        for (of, rows) in &mut tables {
            if rows.peek().is_some_and(|(no, ())| *no == next) {
                rows.next();
                if !is_there {
                    run.found(of.table(), next, "what it belongs to is not there");
                }
            }
        }
    }
}

/// The numbers of what there is.
fn numbers(snapshot: &mut dyn Snapshot, put: &mut Put<'_, Uuid, ()>) -> Result<(), StoreError> {
    periods::each(snapshot, |_, payment| {
        put(payment.no, ());
        Ok(())
    })?;
    let mut contests = SortedRows::default();
    loop {
        contests.fill(|after: Option<&ContestId>, limit| snapshot.contests(after, limit))?;
        let Some((_, record)) = contests.next() else { return Ok(()) };
        put(record.no, ());
    }
}
