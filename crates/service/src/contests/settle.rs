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
use tally_rules::contest::{
    ActorKind, ContestId, ContestPlayer, ContestRecord, ContestTrigger, Payout, PrizePool, division,
};
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
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    settle_at(tally, id, (&actor.origin, idempotency), None, |record| {
        actor.by(record, ContestTrigger::Settle, None)
    })
}

pub(super) fn settle_at(
    tally: &Tally,
    id: &ContestId,
    sender: Sender<'_>,
    at: Option<Micros>,
    by: impl Fn(&ContestRecord) -> Result<ActorKind, Rejection>,
) -> Result<ContestDone, Failure> {
    // The remaining work of a start comes first.
    bounded_steps::run_remaining_steps(tally, id, find(tally, id)?)?;
    let done = execute_at(tally, id, sender, at, |record| {
        Ok((by(record)?, Action::Settle(finish::boards(tally, id, record)?)))
    })?;
    // Its review is closed even if this fails: the scheduler continues.
    let record = match bounded_steps::run_remaining_steps(tally, id, ContestRecord::clone(&done.record)) {
        Ok(record) => Box::new(record),
        Err(failure) => {
            tracing::warn!(%failure, contest = id.as_str(), "determine or pay the prizes of a contest; it is tried again");
            done.record
        }
    };
    Ok(ContestDone { record, ..done })
}

/// Everything that is to be paid, division by division, best rank first; and the number from which it is of the pool.
pub(super) fn payouts(
    tally: &Tally,
    id: &ContestId,
    record: &ContestRecord,
) -> Result<(Vec<Payout>, u32), Failure> {
    if pays(record) {
        // What counts was committed before the end, but may not be published yet.
        let boards = finish::all_of_contest(tally, id, record)?;
        boards.iter().try_for_each(|board| outbox::publish_all(&*tally.store, board))?;
    }
    let won = won(tally, id, record)?;
    Ok((payouts_of(tally, record, &won.shares)?, won.first_of_pool))
}

fn pays(record: &ContestRecord) -> bool {
    let contest = &record.contest;
    !contest.prizes.is_empty() || contest.pool.is_some() && contest.entry_fee.is_some()
}

/// What the players of a contest win, with their divisions.
#[derive(Default)]
pub(super) struct Won {
    pub(super) shares: Vec<(Option<u32>, Share<PlayerId>)>,
    pub(super) first_of_pool: u32,
}

/// What is won by the published ranks, in the order of [`payouts`].
pub(super) fn won(tally: &Tally, id: &ContestId, record: &ContestRecord) -> Result<Won, Failure> {
    if !pays(record) {
        return Ok(Won::default());
    }
    let (mut shares_won, mut of_pool) = (Vec::new(), Vec::new());
    let contest = &record.contest;
    let pool = contest.pool.as_ref().zip(contest.entry_fee);
    let most = last_rank(&contest.prizes).max(pool.map_or(0, |(pool, _)| pool.last_rank()));
    for board in finish::all_of_contest(tally, id, record)? {
        let alone = board.definition.ranking == Ranking::Ordinal;
        let ranked = ranked(alone, most as usize, |from| {
            Ok(board.ranking.read(|ranking| page(ranking, from)).map_err(Fault::from)?)
        })?;
        let division = ContestId::of_board(&board.id).and_then(|(_, division)| division);
        let of_division = |share| (division, share);
        shares_won.extend(shares(&contest.prizes, contest.prize_ties, &ranked).into_iter().map(of_division));
        if let Some((pool, fee)) = pool {
            let to_win = to_win(pool, record, division);
            of_pool.extend(pool.shares(fee.currency, to_win, &ranked).into_iter().map(of_division));
        }
    }
    let first_of_pool = u32::try_from(shares_won.len()).expect("fewer prizes than 2^32");
    shares_won.extend(of_pool);
    Ok(Won { shares: shares_won, first_of_pool })
}

/// What is to be won of the pool, in the division if there are divisions.
fn to_win(pool: &PrizePool, record: &ContestRecord, named: Option<u32>) -> i64 {
    let whole = pool.to_win(record.fees_left());
    let (Some(division), Some(size)) = (named, record.contest.division_size) else { return whole };
    let found = division::sizes(record.members, size).find(|(no, _)| *no == division);
    PrizePool::of_division(whole, found.map_or(0, |(_, members)| members), record.members)
}

/// The payouts of some shares.
pub(super) fn payouts_of(
    tally: &Tally,
    record: &ContestRecord,
    shares: &[(Option<u32>, Share<PlayerId>)],
) -> Result<Vec<Payout>, Failure> {
    let mut all = Vec::with_capacity(shares.len());
    for page in shares.chunks(PAGE) {
        let members = members_of(tally, record, page.iter().map(|(_, share)| &share.player))?;
        for (division, share) in page {
            let Share { player, rank, currency, amount } = share.clone();
            let missing = || Fault::Broken(format!("a member of the contest has no wallet: {player:?}"));
            let member = *members.get(&player).ok_or_else(missing)?;
            all.push(Payout { player, member, division: *division, rank, currency, amount, paid: None });
        }
    }
    Ok(all)
}

/// The members that some prizes go to, in one query.
fn members_of<'a>(
    tally: &Tally,
    record: &ContestRecord,
    players: impl Iterator<Item = &'a PlayerId>,
) -> Result<BTreeMap<PlayerId, MemberId>, Failure> {
    let players: BTreeSet<&PlayerId> = players.collect();
    let key = |player: &&PlayerId| EntrantKey { contest: record.no, player: PlayerId::clone(player) };
    let keys: Vec<EntrantKey> = players.iter().map(key).collect();
    let found = tally.store.ledger().enrolled(&keys)?;
    let member = |(key, enrolled): (EntrantKey, Option<ContestPlayer>)| Some((key.player, enrolled?.member?));
    Ok(keys.into_iter().zip(found).filter_map(member).collect())
}

/// A page of a ranking: names and records.
pub(crate) type RankingRows = Vec<(Vec<u8>, tally_rules::Record)>;

/// The page of a ranking from a position on.
pub(crate) fn page(ranking: &dyn Reads, from: usize) -> RankingRows {
    let mut rows = Vec::new();
    ranking.visit(from as u64, PAGE, false, &mut |id, record| rows.push((id.to_vec(), record)));
    rows
}

/// The first ranks of a ranking, with all players that share the last of them. Each has a flag: whether it shares its
/// rank with the one before. `read` returns a page from a position on.
pub(crate) fn ranked(
    alone: bool,
    most: usize,
    read: impl Fn(usize) -> Result<RankingRows, Failure>,
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
            let player =
                player.ok_or_else(|| Fault::Broken("a ranking has a name that no player can have".into()))?;
            all.push((player, same));
        }
        if found < PAGE {
            return Ok(all);
        }
    }
}
