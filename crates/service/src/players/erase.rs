//! Banning a player on a leaderboard, restoring it, and erasing it everywhere.
//!
//! All three go through the score lanes, so each is ordered with the player's submits.

use crate::audit;
use crate::boards::Board;
use crate::contests::erase::take_back as erase_applications;
use crate::failure::{Failure, blocking};
use crate::periods::scheduler;
use crate::requests::KeyGuard;
use crate::scores::remove::{Removed, replay_or_reject};
use crate::scores::{Ban, Erase, Listed};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Actor, BoardId, Origin, PlayerId};
use tally_store::BoardNo;

/// Bans a player on a leaderboard, or restores it. Returns whether it was a replay.
pub async fn ban(
    tally: &Arc<Tally>,
    board: &BoardId,
    player: PlayerId,
    banned: bool,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let once = || ban_once(tally, board, (player.clone(), banned), origin.clone(), idempotency.clone());
    tally.of_present(board, once).await
}

async fn ban_once(
    tally: &Arc<Tally>,
    board: &BoardId,
    (player, banned): (PlayerId, bool),
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let audited = audit::begin(origin.clone(), tally.now())?;
    let board = match tally.find(board).await {
        Ok(board) => board,
        Err(rejection) => {
            return replay_or_reject(tally, idempotency.as_ref(), rejection).await.map(|_| true);
        }
    };
    let running = idempotency.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let ban = Ban { board: Arc::clone(&board), player: player.clone(), banned, audited, idempotency };
    if board.periods().rules.is_empty() {
        return Ok(tally.lane.ask(ban, running).await?.replayed);
    }
    change_closed(tally, vec![board], ban, running).await
}

/// Erases a player: profile, records and bans, and applications to contests that are open. Returns whether it was a replay.
pub async fn erase(
    tally: &Arc<Tally>,
    player: PlayerId,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let audited = audit::begin(origin.clone(), tally.now())?;
    let running = idempotency.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let had_applied = take_back(tally, &player, origin.actor, idempotency.as_ref()).await?;
    // Includes those of other servers, and those whose last player is banned.
    tally.refresh().await;
    let boards = tally.boards.from_no(BoardNo(0), usize::MAX);
    let audited = Some(audited);
    let erase = Erase { player, boards: boards.clone(), had_applied, audited, idempotency };
    let done = change_closed(tally, boards, erase, running).await;
    if had_applied { done.map_err(Failure::after_a_window) } else { done }
}

/// The same of the player of a member that is erased, which has its own row in the audit log. Blocks.
pub(crate) fn of_member(tally: &Tally, player: &PlayerId) -> Result<(), Failure> {
    erase_applications(tally, player, Actor::Background)?;
    tally.refresh_blocking();
    let boards = tally.boards.from_no(BoardNo(0), usize::MAX);
    // A player without a trace is erased already.
    let (player, had_applied) = (player.clone(), true);
    let erase = Erase { player, boards: boards.clone(), had_applied, audited: None, idempotency: None };
    scheduler::with_closed(tally, &boards, || tally.lane.ask_blocking(erase, None))?;
    Ok(())
}

/// Withdraws the applications of the player, unless this repeats a request that was done: the player may have applied again
/// since. It comes first, because the outcome is stored with the rest: a request that is interrupted here is repeated.
async fn take_back(
    tally: &Arc<Tally>,
    player: &PlayerId,
    actor: Actor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<bool, Failure> {
    if let Some(idempotency) = idempotency
        && tally.stored(idempotency).await?.is_some()
    {
        return Ok(false);
    }
    let (tally, player) = (Arc::clone(tally), player.clone());
    blocking(move || erase_applications(&tally, &player, actor)).await
}

/// Sends the lane a change that may concern closed periods. It continues after a commit even if the caller drops it.
async fn change_closed(
    tally: &Arc<Tally>,
    boards: Vec<Arc<Board>>,
    request: impl Listed<Reply = Removed> + Send + 'static,
    running: Option<KeyGuard>,
) -> Result<bool, Failure> {
    let tally = Arc::clone(tally);
    let change = move || {
        let ask = || tally.lane.ask_blocking(request, running);
        scheduler::with_closed(&tally, &boards, ask)
    };
    Ok(blocking(change).await?.replayed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periods::view::View;
    use crate::scores::submit::{NewScore, submit};
    use crate::secret::Secret;
    use crate::{Clock, Keys, Progress, Settings, boards};
    use std::sync::atomic::{AtomicI64, Ordering};
    use tally_ranking::PageQuery;
    use tally_rules::Micros;
    use tally_rules::definition::BoardSpec;
    use tally_rules::period::{PeriodPrizes, PeriodRule};
    use tally_rules::score::ScoreInput;
    use tally_store::Store;
    use tally_store::sqlite::{Options, SqliteStore};

    const DAY: i64 = 86_400_000_000;

    fn start(path: &std::path::Path, now: &Arc<AtomicI64>) -> Arc<Tally> {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, &Options::default()).unwrap());
        let now = Arc::clone(now);
        let clock = Clock::of(move || Micros(now.load(Ordering::SeqCst)));
        let (secret, settings) = (Secret::new([1; 32]), Settings::default());
        let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
        Tally::start(store, Arc::new(keys), clock, settings, &Progress::default()).unwrap()
    }

    /// A crash may interrupt the work between the change and the new archives of closed periods at any moment.
    #[test]
    fn a_start_writes_anew_what_hiding_had_no_time_for() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (path, now) = (folder.path().join("t.db"), Arc::new(AtomicI64::new(10 * DAY)));
        let (id, day) = (BoardId::new("b").unwrap(), "0 0 * * *".to_owned());
        let rule = PeriodRule {
            no: 0,
            name: "daily".into(),
            schedule: day,
            time_zone: "UTC".into(),
            keep: 9,
            grace_s: 0,
            prizes: PeriodPrizes::default(),
        };
        let tally = start(&path, &now);
        let spec = BoardSpec { periods: Some(vec![rule]), ..BoardSpec::default() };
        let board = boards::put(&tally, &id, &spec, &Origin::BACKGROUND, None).unwrap().board;
        for name in ["ann", "bob", "cid"] {
            let (player, score) = (PlayerId::new(name).unwrap(), ScoreInput::Int(1));
            let new =
                NewScore { board: id.clone(), player, score, subscore: None, at: None, idempotency: None };
            runtime.block_on(submit(&tally, new)).unwrap();
        }
        now.fetch_add(DAY, Ordering::SeqCst);
        scheduler::close_due(&tally).unwrap();
        let audited = audit::begin(Origin::BACKGROUND, tally.now()).unwrap();
        let ban =
            Ban { board, player: PlayerId::new("bob").unwrap(), banned: true, audited, idempotency: None };
        assert!(!runtime.block_on(tally.lane.ask(ban, None)).unwrap().replayed);
        tally.drain();
        drop((tally, runtime));
        let tally = start(&path, &now);
        let board = tally.boards.find(&id).unwrap();
        let view = View::find(&board, Some("daily:previous"), tally.now(), |_| None).unwrap();
        let query = PageQuery { limit: 9, ..PageQuery::default() };
        let page = view.read(&*tally.store, |ranking| ranking.page(&query)).unwrap();
        let names: Vec<&str> = page.entries.iter().map(|place| place.player.as_str()).collect();
        assert_eq!((page.total, names), (2, vec!["ann", "cid"]));
        tally.drain();
    }
}
