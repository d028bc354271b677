//! Settling: the prizes of the final ranks are written down in one transaction, once, and then paid piece by piece. Blocks.

use super::act::{Actor, act_at};
use super::command::{Act, ContestDone};
use super::{finish, work};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use tally_rules::contest::prize::{last_rank, shares};
use tally_rules::contest::{By, ContestId, Event, Payout, Record, State};
use tally_rules::definition::Ranking;
use tally_rules::idempotency::Identity;
use tally_rules::{Micros, PlayerId, Refusal};
use tally_store::EntrantKey;

/// Ranks of one read.
const PAGE: usize = 1_000;

/// Pays every prize, or gives the contest as it stands where that was done.
pub fn settle(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    settle_at(tally, id, identity, None, |record| actor.by(record, Event::Settle, None))
}

pub(super) fn settle_at(
    tally: &Tally,
    id: &ContestId,
    identity: Option<&Identity>,
    at: Option<Micros>,
    by: impl Fn(&Record) -> Result<By, Refusal>,
) -> Result<ContestDone, Failure> {
    // What a start has left to clear comes first.
    work::go_on(tally, id)?;
    let done = act_at(tally, id, identity, at, |record| {
        let by = by(record)?;
        let payouts = match (record.state, record.prizes) {
            (State::Finished, None) => payouts(tally, id, record)?,
            _ => Vec::new(),
        };
        Ok((by, Act::Settle(payouts)))
    })?;
    let record = Box::new(work::go_on(tally, id)?);
    Ok(ContestDone { record, ..done })
}

/// Everything that is to be paid, division by division, best rank first.
fn payouts(tally: &Tally, id: &ContestId, record: &Record) -> Result<Vec<Payout>, Failure> {
    let mut all = Vec::new();
    if record.contest.prizes.is_empty() {
        return Ok(all);
    }
    for board in finish::of_contest(tally, id, record) {
        let ranked = ranked(&board, last_rank(&record.contest.prizes) as usize)?;
        let division = ContestId::of_board(&board.id).and_then(|(_, division)| division);
        for share in shares(&record.contest.prizes, record.contest.prize_ties, &ranked) {
            let key = EntrantKey { contest: record.no, player: share.who };
            let enrolled = tally.store.ledger().enrolled(std::slice::from_ref(&key))?.pop().flatten();
            let missing = || Fault::Broken(format!("a member of the contest has no wallet: {key:?}"));
            let member = enrolled.and_then(|enrolled| enrolled.member).ok_or_else(missing)?;
            let (rank, currency, amount) = (share.rank, share.currency, share.amount);
            let player = key.player.clone();
            all.push(Payout { player, member, division, rank, currency, amount, paid: None });
        }
    }
    Ok(all)
}

/// The first ranks of a board, each with whether it is shared with the one before; and all who share the last of them.
fn ranked(board: &Board, most: usize) -> Result<Vec<(PlayerId, bool)>, Failure> {
    let alone = board.definition.ranking == Ranking::Ordinal;
    let mut all: Vec<(PlayerId, bool)> = Vec::new();
    let mut last = None;
    loop {
        let from = all.len();
        let mut page = Vec::new();
        let read = |order: &dyn tally_ranking::Reads| {
            let mut rows = Vec::new();
            order.visit(from as u64, PAGE, false, &mut |id, record| rows.push((id.to_vec(), record)));
            rows
        };
        page.extend(board.order.read(read).map_err(Fault::from)?);
        let found = page.len();
        for (id, record) in page {
            let score = Some((record.score, record.subscore));
            let same = !alone && last == score;
            if all.len() >= most && !same {
                return Ok(all);
            }
            last = score;
            let player = std::str::from_utf8(&id).ok().and_then(|text| PlayerId::new(text).ok());
            let player = player.ok_or_else(|| Fault::Broken("a player's name is none".into()))?;
            all.push((player, same));
        }
        if found < PAGE {
            return Ok(all);
        }
    }
}
