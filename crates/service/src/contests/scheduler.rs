//! The scheduler of contests: it makes those of series, opens, starts and ends contests by the clock, and continues what a
//! crash interrupted.
//!
//! It runs twice a second, and once before the service is ready: missed actions happen then, in order, each at its own instant.
//! Several servers may find the same action; the state machine does it once. Blocks.

use super::actions::ExternalChange;
use super::{application_store, bounded_steps, change, expire, finish, series, settle, start};
use crate::background::{Job, Next};
use crate::failure::{Failure, Fault};
use crate::owed::Mistakes;
use crate::periods::prizes;
use crate::servers::in_doubt;
use crate::tally::Tally;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::contest::record::{ApplicationLocation, Due};
use tally_rules::contest::{ActorKind, ContestId, ContestTrigger};
use tally_rules::{Micros, Origin, Rejection};

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a contest is passed over.
const NOT_ASKED: &str = "it did not answer for another contest; this pass does not try it again";

/// Rounds between two counts of contests.
const COUNTED_EVERY: u32 = 10;

/// Rounds between two checks of leaderboards of ended contests, and between two checks of payments left unpaid by mistake.
const EXPIRED_EVERY: u32 = 120;

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut rounds = 0_u32;
    let mut mistakes = Mistakes::default();
    let mut job = Job::new("run due actions of contests", Duration::ZERO);
    tally.tasks.contests.start("contests", tally, Next::After(PAUSE), move |tally| {
        if rounds.is_multiple_of(COUNTED_EVERY) {
            tally.contests.counts.refresh(tally);
            tally.balance.check(tally);
        }
        let expires = rounds.is_multiple_of(EXPIRED_EVERY);
        rounds = rounds.wrapping_add(1);
        job.run(|| {
            let done = do_due(tally).and(prizes::pay_due(tally)).and(in_doubt::resolve_all(tally));
            match expires {
                true => done.and(expire::delete_due(tally)).and(mistakes.pay(tally)),
                false => done,
            }
        });
        Next::After(PAUSE)
    })
}

/// A due action: its instant, its kind, and its contest or series. A series comes before the contests of its instant.
type DueItem = (Micros, Kind, ContestId);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Series,
    Contest,
}

/// Does everything that is due now, in order. A failed action is skipped until the next round and does not delay others.
pub fn do_due(tally: &Tally) -> Result<(), Failure> {
    let (mut failed, mut passed, mut redis) = (Ok(()), None, Redis::default());
    // An action may make another one due that comes before the rest, so each is looked up as the first one.
    while let Some(next) = first(tally, passed.as_ref())? {
        let done = match next.1 {
            Kind::Series => series::make_next(tally, &next.2).map(drop),
            Kind::Contest => one(tally, &next.2, &mut redis),
        };
        match done {
            Err(failure) => (failed, passed) = (Err(failure), Some(next)),
            // Its contest may come before the failed action.
            Ok(()) if next.1 == Kind::Series => passed = None,
            Ok(()) => {}
        }
    }
    failed
}

/// The first due action after the skipped one; `None` while the clock is in doubt.
fn first(tally: &Tally, passed: Option<&DueItem>) -> Result<Option<DueItem>, Failure> {
    let Some(now) = tally.trusted_now() else { return Ok(None) };
    let ledger = tally.store.ledger();
    // No name is empty, so the empty one comes before all of an instant.
    let (series, contests) = match passed {
        None => (None, None),
        Some((at, Kind::Series, id)) => (Some((*at, id.as_str())), Some((*at, ""))),
        Some((at, Kind::Contest, id)) => (Some((at.plus(1), "")), Some((*at, id.as_str()))),
    };
    let of = |kind| move |(at, id)| (at, kind, id);
    let series = ledger.due_series(now, series, 1)?.into_iter().map(of(Kind::Series));
    let contests = ledger.due_contests(now, contests, 1)?.into_iter().map(of(Kind::Contest));
    Ok(series.chain(contests).min())
}

/// The Redis of applications in one round. After a failure it is not used for other contests: each would wait for it again,
/// and delay everything after it.
#[derive(Default)]
struct Redis {
    is_unavailable: bool,
}

impl Redis {
    fn unless_unavailable<T>(&mut self, what: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        if self.is_unavailable {
            return Err(Fault::ApplicationsUnavailable(NOT_ASKED.into()).into());
        }
        let answer = what();
        self.is_unavailable = matches!(answer, Err(Failure::Fault(_)));
        answer
    }
}

/// Does the next action of one contest, unless another server has done it.
fn one(tally: &Tally, id: &ContestId, redis: &mut Redis) -> Result<(), Failure> {
    let Some(record) = tally.store.ledger().contest(id)? else { return Ok(()) };
    let Some((at, due)) = record.due().filter(|(at, _)| *at <= tally.now()) else { return Ok(()) };
    let done = match due {
        Due::Task => bounded_steps::run_remaining_steps(tally, id, record.clone()).map(drop),
        Due::Clear => {
            let cleared = redis.unless_unavailable(|| application_store::clear(tally, id, record.clone()));
            // No other work waits for Redis.
            match record.next_event().filter(|(at, _)| cleared.is_err() && *at <= tally.now()) {
                Some((at, event)) => happen(tally, id, at, event).and(cleared),
                None => cleared,
            }
        }
        Due::Event(event @ ContestTrigger::Open) if application_store::opens_in_redis(tally, &record) => {
            redis.unless_unavailable(|| happen(tally, id, at, event))
        }
        Due::Event(event @ ContestTrigger::Start) if matches!(record.kept, ApplicationLocation::Redis(_)) => {
            redis.unless_unavailable(|| happen(tally, id, at, event))
        }
        Due::Event(event) => happen(tally, id, at, event),
    };
    match done {
        Err(Failure::Rejected(Rejection::ContestState(_))) => Ok(()),
        // The clock does not start it any more.
        Err(Failure::Rejected(Rejection::ApplicationsLost)) => {
            tracing::warn!(contest = id.as_str(), "its applications are lost, so it does not start");
            application_store::record_external(tally, id, record, ExternalChange::Lost).map(drop)
        }
        done => done,
    }
}

/// An event of the clock.
fn happen(tally: &Tally, id: &ContestId, at: Micros, event: ContestTrigger) -> Result<(), Failure> {
    let (clock, background) = (|_: &_| Ok(ActorKind::Clock), (&Origin::BACKGROUND, None));
    match event {
        ContestTrigger::Open => change::open_at(tally, id, background, Some(at), clock).map(drop),
        ContestTrigger::Start => start::start_at(tally, id, background, Some(at), clock).map(drop),
        ContestTrigger::Finish => finish::finish_at(tally, id, at).map(drop),
        ContestTrigger::Settle => settle::settle_at(tally, id, background, Some(at), clock).map(drop),
        _ => Ok(()),
    }
}
