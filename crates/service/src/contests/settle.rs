//! Settling: the review is closed while no score and no ban is decided. So ranks are final, and their prizes are stored in one
//! transaction, once, and then paid piece by piece. Blocks.

use super::actions::{Action, ContestDone};
use super::execute::{ContestActor, Sender, execute_at, find};
use super::{bounded_steps, finish};
use crate::failure::{Failure, Fault};
use crate::servers::outbox;
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use tally_ranking::Reads;
use tally_rules::contest::prize::{Share, last_rank, shares};
use tally_rules::contest::{ActorKind, ContestId, ContestMember, Event, Payout, Pool, Record, division};
use tally_rules::definition::Ranking;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::MemberId;
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::EntrantKey;

/// Ranks of one read.
pub(crate) const PAGE: usize = 1_000;

/// Pays every prize; a repeated call returns the present contest.
pub fn settle(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    identity: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    settle_at(tally, id, (&actor.origin, identity), None, |record| actor.by(record, Event::Settle, None))
}

pub(super) fn settle_at(
    tally: &Tally,
    id: &ContestId,
    sender: Sender<'_>,
    at: Option<Micros>,
    by: impl Fn(&Record) -> Result<ActorKind, Rejection>,
) -> Result<ContestDone, Failure> {
    // The remaining work of a start comes first.
    bounded_steps::run_remaining_steps(tally, id, find(tally, id)?)?;
    let done = execute_at(tally, id, sender, at, |record| {
        Ok((by(record)?, Action::Settle(finish::boards(tally, id, record)?)))
    })?;
    // Its review is closed even if this fails: the scheduler continues.
    let record = match bounded_steps::run_remaining_steps(tally, id, Record::clone(&done.record)) {
        Ok(record) => Box::new(record),
        Err(failure) => {
            tracing::warn!(%failure, contest = id.as_str(), "determine or pay the prizes of a contest; it is tried again");
            done.record
        }
    };
    Ok(ContestDone { record, ..done })
}

/// Everything that is to be paid, division by division, best rank first; and the number from which it is of the pool.
pub(super) fn payouts(tally: &Tally, id: &ContestId, record: &Record) -> Result<(Vec<Payout>, u32), Failure> {
    let (mut fixed, mut of_pool) = (Vec::new(), Vec::new());
    let contest = &record.contest;
    let pool = contest.pool.as_ref().zip(contest.entry_fee);
    if contest.prizes.is_empty() && pool.is_none() {
        return Ok((fixed, 0));
    }
    let most = last_rank(&contest.prizes).max(pool.map_or(0, |(pool, _)| pool.last_rank()));
    for board in finish::all_of_contest(tally, id, record)? {
        // What counts was committed before the end, but may not be published yet.
        outbox::publish_all(&*tally.store, &board)?;
        let alone = board.definition.ranking == Ranking::Ordinal;
        let ranked = ranked(alone, most as usize, |from| {
            Ok(board.ranking.read(|ranking| page(ranking, from)).map_err(Fault::from)?)
        })?;
        let division = ContestId::of_board(&board.id).and_then(|(_, division)| division);
        let of_table = shares(&contest.prizes, contest.prize_ties, &ranked);
        payouts_of(tally, record, division, (&of_table, &mut fixed))?;
        if let Some((pool, fee)) = pool {
            let to_win = to_win(pool, record, division);
            payouts_of(tally, record, division, (&pool.shares(fee.currency, to_win, &ranked), &mut of_pool))?;
        }
    }
    let first = u32::try_from(fixed.len()).expect("fewer prizes than 2^32");
    fixed.extend(of_pool);
    Ok((fixed, first))
}

/// What is to be won of the pool, in the division if there are divisions.
fn to_win(pool: &Pool, record: &Record, named: Option<u32>) -> i64 {
    let whole = pool.to_win(record.fees_left());
    let (Some(division), Some(size)) = (named, record.contest.division_size) else { return whole };
    let found = division::sizes(record.members, size).find(|(no, _)| *no == division);
    Pool::of_division(whole, found.map_or(0, |(_, members)| members), record.members)
}

/// Adds the payouts of some shares.
fn payouts_of(
    tally: &Tally,
    record: &Record,
    division: Option<u32>,
    (shares, all): (&[Share<PlayerId>], &mut Vec<Payout>),
) -> Result<(), Failure> {
    for page in shares.chunks(PAGE) {
        let members = members_of(tally, record, page)?;
        for share in page {
            let Share { who, rank, currency, amount } = share.clone();
            let missing = || Fault::Broken(format!("a member of the contest has no wallet: {who:?}"));
            let member = *members.get(&who).ok_or_else(missing)?;
            all.push(Payout { player: who, member, division, rank, currency, amount, paid: None });
        }
    }
    Ok(())
}

/// The members that some prizes go to, in one query.
fn members_of(
    tally: &Tally,
    record: &Record,
    shares: &[Share<PlayerId>],
) -> Result<BTreeMap<PlayerId, MemberId>, Failure> {
    let players: BTreeSet<&PlayerId> = shares.iter().map(|share| &share.who).collect();
    let key = |player: &&PlayerId| EntrantKey { contest: record.no, player: PlayerId::clone(player) };
    let keys: Vec<EntrantKey> = players.iter().map(key).collect();
    let found = tally.store.ledger().enrolled(&keys)?;
    let member = |(key, enrolled): (EntrantKey, Option<ContestMember>)| Some((key.player, enrolled?.member?));
    Ok(keys.into_iter().zip(found).filter_map(member).collect())
}

/// A page of a ranking: names and records.
pub(crate) type Page = Vec<(Vec<u8>, tally_rules::Record)>;

/// The page of a ranking from a position on.
pub(crate) fn page(ranking: &dyn Reads, from: usize) -> Page {
    let mut rows = Vec::new();
    ranking.visit(from as u64, PAGE, false, &mut |id, record| rows.push((id.to_vec(), record)));
    rows
}

/// The first ranks of a ranking, with all players that share the last of them. Each has a flag: whether it shares its
/// rank with the one before. `read` returns a page from a position on.
pub(crate) fn ranked(
    alone: bool,
    most: usize,
    read: impl Fn(usize) -> Result<Page, Failure>,
) -> Result<Vec<(PlayerId, bool)>, Failure> {
    let mut all: Vec<(PlayerId, bool)> = Vec::new();
    let mut last = None;
    loop {
        let page = read(all.len())?;
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
