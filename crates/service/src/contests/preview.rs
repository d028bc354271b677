//! The prizes that a contest would pay if it were settled now. Blocks.
//!
//! `settle` determines the prizes, and this shows them before they are stored, so both have the same amounts. Ranks may change between two
//! pages, and totals are those of the page's own instant. The whole is computed for each page, which the limit of members bounds. Only the
//! members of the page are read. Not here: prizes that are stored (`read`).

use super::execute::{ActingAs, ContestActor, find};
use super::settle::{payouts_of, won};
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::Rejection;
use tally_rules::contest::{ContestId, ContestRight, ContestState, Payout};
use tally_rules::ledger::Currency;

/// A page of the prizes, and the totals of all.
pub struct Preview {
    /// The prizes of the page with their numbers, best rank first.
    pub rows: Vec<(u32, Payout)>,
    /// The number from which prizes are of the pool.
    pub first_of_pool: u32,
    /// How many players win.
    pub players: usize,
    /// How many prizes there are.
    pub prizes: usize,
    /// Their sums.
    pub sums: BTreeMap<Currency, i128>,
}

/// At most `limit` prizes of a contest that runs or is in review, from that number on. A member has to be staff of the contest.
pub fn preview(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    (from, limit): (u32, usize),
) -> Result<Preview, Failure> {
    let record = find(tally, id)?;
    if let ActingAs::Member(player) = &actor.acting
        && !record.contest.is_staff(player)
    {
        return Err(Rejection::Forbidden(ContestRight::Staff).into());
    }
    record.check_review()?;
    if !matches!(record.state, ContestState::Running | ContestState::Finished) {
        return Err(Rejection::ContestState(record.state).into());
    }
    let won = won(tally, id, &record)?;
    let players: BTreeSet<_> = won.shares.iter().map(|(_, share)| &share.player).collect();
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    for (_, share) in &won.shares {
        *sums.entry(share.currency).or_default() += i128::from(share.amount.units());
    }
    let all = won.shares.len();
    let first = (from as usize).min(all);
    let page = &won.shares[first..first.saturating_add(limit).min(all)];
    let rows = (from..).zip(payouts_of(tally, &record, page)?).collect();
    Ok(Preview { rows, first_of_pool: won.first_of_pool, players: players.len(), prizes: all, sums })
}
