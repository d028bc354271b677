//! Putting and deleting leaderboards.
//!
//! Each is one transaction. If another server has taken the name meanwhile, it reads that leaderboard, and the request applies
//! to that one. Not here: changing an existing leaderboard, which goes through the lane (`scores`).

use super::Board;
use super::unused::{make_room, may_delete};
use crate::audit;
use crate::contests::play;
use crate::failure::{Failure, Fault};
use crate::outcomes::{self, Retention};
use crate::periods::prizes;
use crate::periods::purge::Purge;
use crate::scores::{Redefine, Redefined};
use crate::servers;
use crate::servers::in_doubt::{self, InDoubtCommits};
use crate::tally::Tally;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError};
use tally_lanes::BarrierGuard;
use tally_ranking::RankingBackend;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::contest::{ContestId, ContestState};
use tally_rules::definition::BoardSpec;
use tally_rules::idempotency::{IdempotencyKey, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::{BoardId, Definition, Origin, Rejection};
use tally_store::plan::ALL_TIME;
use tally_store::{
    BoardChange, BoardNo, BoardRef, BoardRow, Loaded, ReadSet, ShardSet, Store, StoreError, WriteSet,
};

/// How often prizes are stored before a change: a period may end between the two.
const ATTEMPTS_MAX: u32 = 3;

/// The reply to a put.
#[derive(Clone, Debug)]
pub struct BoardPut {
    /// The leaderboard as it is now.
    pub board: Arc<Board>,
    /// Whether it is new.
    pub created: bool,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// Creates a leaderboard, finds that it is there as requested, or changes its periods. Blocks on the store and the lane.
pub fn put(
    tally: &Tally,
    id: &BoardId,
    spec: &BoardSpec,
    origin: &Origin,
    idempotency: Option<&IdempotencyKey>,
) -> Result<BoardPut, Failure> {
    let mut purge = Purge::default();
    loop {
        let done = servers::again(|| put_once(tally, id, spec, (origin, idempotency)));
        let Err(Failure::Fault(Fault::Purging(windows))) = done else { return done };
        // A change of schedule needs the number of a period that was forgotten. Other boards are put meanwhile.
        purge = purge.of(&*tally.store, windows)?;
    }
}

fn put_once(
    tally: &Tally,
    id: &BoardId,
    spec: &BoardSpec,
    (origin, idempotency): (&Origin, Option<&IdempotencyKey>),
) -> Result<BoardPut, Failure> {
    let mut running = idempotency.map(|one| tally.running.begin(&one.key)).transpose()?;
    if id.is_reserved() {
        return Err(Rejection::ReservedName.into());
    }
    tally.boards.check_damaged(id.as_str())?;
    spec.check_currencies(&tally.settings.ledger.currencies)?;
    in_doubt::resolve_all(tally)?;
    tally.refresh_blocking();
    let audited = audit::begin(origin.clone(), tally.now())?;
    let existing = || tally.boards.get(id).filter(|board| board.is_there());
    // A change goes through the lane, and nothing else waits for it.
    let board = match existing() {
        Some(board) => board,
        None => {
            let one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
            let definition = || Ok(spec.create()?.with_prizes_from(tally.now()));
            let sender = (Some(&audited), idempotency);
            let creation = existing().map_or_else(
                || create(tally, id, definition, sender),
                |existing| Ok(Creation::Existing(existing)),
            );
            drop(one);
            match creation? {
                Creation::Created(put) => return Ok(put),
                Creation::Existing(existing) => existing,
                Creation::NameTaken => {
                    tally.board(id).filter(|board| board.is_there()).ok_or_else(|| name_conflict(id))?
                }
            }
        }
    };
    for _ in 0..ATTEMPTS_MAX {
        // Ended periods owe the prizes of the present definition.
        let written = match spec.periods {
            Some(_) => prizes::write_down(tally, &board)?,
            None => HashSet::new(),
        };
        let (spec, idempotency) = (spec.clone(), idempotency.cloned());
        let redefine =
            Redefine { board: Arc::clone(&board), spec, audited: audited.clone(), idempotency, written };
        let Redefined { created, replayed, owes } = tally.lane.ask_blocking(redefine, running.take())?;
        if !owes {
            return Ok(BoardPut { board, created, replayed });
        }
    }
    Err(Fault::NotClosed.into())
}

/// The board of that name, made as a sorted set if there is none. Blocks on the store.
pub fn sorted_set(tally: &Tally, id: &BoardId) -> Result<Arc<Board>, Failure> {
    if id.is_reserved() {
        return Err(Rejection::ReservedName.into());
    }
    tally.boards.check_damaged(id.as_str())?;
    in_doubt::resolve_all(tally)?;
    servers::again(|| {
        if let Some(board) = tally.board(id) {
            return Ok(board);
        }
        let one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
        let existing = tally.boards.get(id).map(Creation::Existing);
        let creation =
            existing.map_or_else(|| create(tally, id, || Ok(Definition::sorted_set()), (None, None)), Ok);
        drop(one);
        match creation? {
            Creation::Created(BoardPut { board, .. }) | Creation::Existing(board) => Ok(board),
            Creation::NameTaken => Ok(tally.board(id).ok_or_else(|| name_conflict(id))?),
        }
    })
}

/// The outcome of making a leaderboard.
enum Creation {
    /// It is made, or was by the same request.
    Created(BoardPut),
    /// It was made meanwhile.
    Existing(Arc<Board>),
    /// Another server has made one of that name.
    NameTaken,
}

/// The name was made and deleted by other servers too often.
fn name_conflict(id: &BoardId) -> StoreError {
    StoreError::Conflict(format!(
        "the leaderboard `{}` was created and deleted by other servers each time",
        id.as_str()
    ))
}

/// Makes a board, in place of one with that name that no request sees any more. One that its first score makes is no act.
fn create(
    tally: &Tally,
    id: &BoardId,
    definition: impl Fn() -> Result<Definition, Rejection>,
    (audited, idempotency): (Option<&Audited>, Option<&IdempotencyKey>),
) -> Result<Creation, Failure> {
    let time = tally.clock.read();
    let now = time.later();
    let full = !make_room(tally, 1)?;
    // A leaderboard that no request sees is replaced.
    let unseen = tally.boards.get(id);
    let mut plan = plan(id, idempotency);
    plan.exclusive = true;
    if let Some(unseen) = &unseen {
        plan.boards.push(unseen.no);
        // Every database is locked: a first score may be on its way to any.
        plan.shards = ShardSet::first(tally.store.shards());
    }
    let _still = unseen.as_ref().map_or(Ok(None), |_| still(tally))?;
    let (mut new, mut is_taken) = (None, false);
    let stored = tally.once(&plan, idempotency, time, |loaded, changes| {
        let old = loaded.board_names[0].as_ref();
        let replaced = |old: &BoardRow| {
            let unseen = unseen.as_ref().filter(|unseen| unseen.no == old.no);
            unseen.is_some_and(|unseen| may_delete(tally, unseen, loaded))
        };
        is_taken = old.is_some_and(|old| !replaced(old));
        if is_taken {
            // Any rejection would do: nothing is changed.
            return Err(Rejection::LeaderboardNotFound(None));
        }
        if full {
            return Err(Rejection::TooManyBoards);
        }
        let row =
            BoardRow { no: loaded.next_board, id: id.clone(), definition: definition()?, created_at: now };
        let board = Board::new(row.clone(), Vec::new(), &tally.settings.ranking)?;
        if board.is_shared() {
            // Other servers may read it as soon as it is stored. No other has its number while this transaction holds the next
            // one.
            servers::load_ranking(&*tally.store, &board, ALL_TIME, &board.ranking);
        }
        new = Some(board);
        changes.boards.extend(old.map(|old| BoardChange::Delete(old.no)));
        changes.boards.push(BoardChange::Create(row));
        changes.audit.extend(audited.map(|act| act.row(AuditAction::BoardCreated, id.as_str(), None)));
        Ok(Outcome::BoardPut { created: true })
    });
    if is_taken {
        return Ok(Creation::NameTaken);
    }
    let stored = stored?;
    if let (None, Some(board)) = (&stored, new) {
        let board = Arc::new(board);
        if board.is_shared() {
            // If that fails, its first batch does it.
            drop(servers::renew(&*tally.store, &board));
        }
        set(tally, id, Some(Arc::clone(&board)));
        let board = tally.boards.by_no(board.no).unwrap_or(board);
        return Ok(Creation::Created(BoardPut { board, created: true, replayed: false }));
    }
    // It was deleted since. The first reply showed it new and empty.
    let created_at = stored.as_ref().map_or(now, |stored| stored.at);
    let row = BoardRow { no: BoardNo(0), id: id.clone(), definition: definition()?, created_at };
    let created = stored.is_some_and(|stored| matches!(stored.outcome, Outcome::BoardPut { created: true }));
    let board = Arc::new(Board::new(row, Vec::new(), &RankingBackend::Memory)?);
    Ok(Creation::Created(BoardPut { board, created, replayed: true }))
}

/// Puts a leaderboard under that name, and forgets the rankings of the previous one.
pub(super) fn set(tally: &Tally, id: &BoardId, board: Option<Arc<Board>>) {
    if let Some(old) = tally.boards.set(id, board) {
        old.forget_rankings();
    }
}

/// Brings the leaderboards in memory to the stored state, if no other server writes. A leaderboard whose reply was lost has no
/// records yet.
pub(crate) fn read_again(tally: &Tally) -> Result<(), Failure> {
    if tally.has_others() {
        // They are followed.
        return Ok(());
    }
    let broken = |rejection: Rejection| Fault::Broken(rejection.detail());
    let mut unlisted: BTreeMap<BoardNo, Arc<Board>> =
        tally.boards.from_no(BoardNo(0), usize::MAX).into_iter().map(|board| (board.no, board)).collect();
    for row in tally.store.boards()? {
        if unlisted.remove(&row.no).is_none() {
            let board = Board::new(row.clone(), Vec::new(), &tally.settings.ranking).map_err(broken)?;
            play::load(&*tally.store, &board)?;
            set(tally, &row.id, Some(Arc::new(board)));
        }
    }
    for board in unlisted.into_values() {
        // A corrupt leaderboard is not listed, and stays.
        if tally.store.board(BoardRef::No(board.no), None)?.is_none() && tally.boards.has(&board) {
            set(tally, &board.id, None);
        }
    }
    Ok(())
}

/// Holds the lanes while a leaderboard is deleted, if a batch may be between two databases. It must find the leaderboard on
/// both, or on none.
fn still(tally: &Tally) -> Result<Option<BarrierGuard>, Failure> {
    (tally.store.shards() > 1).then(|| tally.lane.hold()).transpose()
}

/// Deletes a board. Blocks on the store. Returns whether it was a replay.
pub fn delete(
    tally: &Tally,
    id: &BoardId,
    origin: &Origin,
    idempotency: Option<&IdempotencyKey>,
) -> Result<bool, Failure> {
    let _running = idempotency.map(|one| tally.running.begin(&one.key)).transpose()?;
    tally.boards.check_damaged(id.as_str())?;
    servers::again(|| delete_once(tally, id, (origin, idempotency)))
}

fn delete_once(
    tally: &Tally,
    id: &BoardId,
    (origin, idempotency): (&Origin, Option<&IdempotencyKey>),
) -> Result<bool, Failure> {
    let audited = audit::begin(origin.clone(), tally.now())?;
    in_doubt::resolve_all(tally)?;
    tally.refresh_blocking();
    // Its periods are deleted too; the prizes of ended ones stay owed.
    let written = match tally.boards.get(id) {
        Some(board) => prizes::write_down(tally, &board)?,
        None => HashSet::new(),
    };
    let may_delete = !id.is_reserved() || contest_is_over(tally, id)?;
    let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
    let _still = still(tally)?;
    let (time, mut owes) = (tally.clock.read(), false);
    let mut plan = plan(id, idempotency);
    // While it waits for its leaderboard it holds nothing that others need.
    plan.boards.extend(tally.boards.get(id).map(|board| board.no));
    plan.exclusive = true;
    let stored = tally.once(&plan, idempotency, time, |loaded, changes| {
        let board = tally.boards.get(id);
        let existing = board.as_ref().is_some_and(|board| board.is_there());
        let present = loaded.board_names[0].as_ref().filter(|_| existing);
        let present = present.ok_or(Rejection::LeaderboardNotFound(None))?;
        owes = board.is_some_and(|board| prizes::owes(&board.periods(), time.now, &written));
        // Any rejection would do: nothing is changed.
        if owes || !may_delete {
            return Err(play::in_use(id));
        }
        changes.boards.push(BoardChange::Delete(present.no));
        changes.audit.push(audited.row(AuditAction::BoardDeleted, id.as_str(), None));
        Ok(Outcome::Removed)
    });
    if owes && stored.is_err() {
        return Err(Fault::NotClosed.into());
    }
    let stored = stored?;
    if stored.is_none() {
        set(tally, id, None);
        tally.tasks.maintenance.wake();
    }
    Ok(stored.is_some())
}

/// Whether a board's contest is over for good: its ranks are paid, or never will be.
fn contest_is_over(tally: &Tally, id: &BoardId) -> Result<bool, Failure> {
    let Some((contest, _)) = ContestId::of_board(id) else { return Ok(false) };
    let record = tally.store.ledger().contest(&contest)?;
    Ok(record.is_some_and(|record| matches!(record.state, ContestState::Settled | ContestState::Cancelled)))
}

fn plan(id: &BoardId, idempotency: Option<&IdempotencyKey>) -> ReadSet {
    ReadSet {
        board_names: vec![id.clone()],
        requests: idempotency.iter().map(|one| one.key.clone()).collect(),
        // Of no player.
        shards: ShardSet::of(0),
        ..ReadSet::default()
    }
}

/// Runs a change and stores its outcome under its idempotency key, in one transaction. If the same request was done before, it
/// changes nothing and returns the stored outcome. A conflict with another server is not retried.
pub(crate) fn run_once(
    (store, in_doubt): (&dyn Store, &InDoubtCommits),
    plan: &ReadSet,
    idempotency: Option<&IdempotencyKey>,
    retention: Retention,
    mut change: impl FnMut(&Loaded, &mut WriteSet) -> Result<Outcome, Rejection>,
) -> Result<Option<Stored>, Failure> {
    let mut result = Ok(None);
    let mut decide = |loaded: &Loaded| {
        let mut changes = WriteSet::default();
        let stored = loaded.requests.first().and_then(Option::as_ref);
        let done = match outcomes::replay(idempotency, stored, retention) {
            Ok(Some(_)) => {
                result = Ok(stored.cloned());
                return changes;
            }
            Ok(None) => change(loaded, &mut changes),
            Err(rejection) => Err(rejection),
        };
        match done {
            Ok(outcome) => {
                result = Ok(None);
                changes.requests.extend(idempotency.map(|one| {
                    (one.key.clone(), Stored { fingerprint: one.fingerprint.made, at: retention.at, outcome })
                }));
                changes
            }
            Err(rejection) => {
                result = Err(rejection);
                WriteSet::default()
            }
        }
    };
    in_doubt.run(store, plan, &mut decide)?;
    Ok(result?)
}
