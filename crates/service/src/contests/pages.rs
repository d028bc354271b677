//! All contests or series, a page at a time. Blocks.

use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::{ContestId, ContestRecord, ContestState, SeriesRecord};

/// Contests or series of one read.
const PAGE: usize = 500;

/// Calls `with` for pages of the contests in some states, in their order.
pub(super) fn each_of_contests(
    tally: &Tally,
    states: &[ContestState],
    mut with: impl FnMut(&[(ContestId, ContestRecord)]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // A contest that changes its state meanwhile is found again in the next one.
    for state in states {
        each(|after| Ok(tally.store.ledger().contests(Some(*state), after, PAGE)?), &mut with)?;
    }
    Ok(())
}

/// The same of all series.
pub(super) fn each_of_series(
    tally: &Tally,
    mut with: impl FnMut(&[(ContestId, SeriesRecord)]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    each(|after| Ok(tally.store.ledger().list_series(after, PAGE)?.rows), &mut with)
}

fn each<T>(
    read: impl Fn(Option<&ContestId>) -> Result<Vec<(ContestId, T)>, Failure>,
    with: &mut impl FnMut(&[(ContestId, T)]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = read(after.as_ref())?;
        with(&page)?;
        if page.len() < PAGE {
            return Ok(());
        }
        after = page.into_iter().next_back().map(|(id, _)| id);
    }
}
