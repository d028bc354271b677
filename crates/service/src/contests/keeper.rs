//! What happens of contests by itself: making those of series, opening, starting and ending by the clock, and what a crash left
//! under way.
//!
//! A thread looks every second, and once before the service is there: what was missed happens then, first things first, each
//! as of its own time. Several servers may find the same; the state machine does it once. Blocks.

use super::command::Outside;
use super::counts::Counts;
use super::{change, desk, expire, finish, series, settle, start, work};
use crate::background::Background;
use crate::failure::{Failure, Fault};
use crate::owed::Mistakes;
use crate::periods::prizes::{self, Paid};
use crate::servers::doubts;
use crate::tally::Tally;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{RwLock, Weak};
use std::time::Duration;
use tally_rules::contest::record::{ApplicationLocation, Due};
use tally_rules::contest::{ActorKind, ContestId, Event};
use tally_rules::{Micros, Rejection};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Looks that failed in a row before that is said again.
const SAID_EVERY: u32 = 120;

/// Why a contest is passed over without a question.
const NOT_ASKED: &str = "it did not answer for another contest, and is not asked again in this look";

/// Looks between two at how many contests there are.
const COUNTED_EVERY: u32 = 10;

/// Looks between two at leaderboards of contests that are over, and between two at payments that were left unpaid by mistake.
const EXPIRED_EVERY: u32 = 120;

/// The thread.
#[derive(Default)]
pub(crate) struct ContestKeeper {
    thread: Background,
    /// Periods whose prizes are paid.
    pub(crate) paid: Paid,
    /// What is counted.
    pub(crate) counts: Counts,
    /// Shared by those who apply, and held alone by a renaming.
    pub(crate) renaming: RwLock<()>,
}

impl ContestKeeper {
    pub(crate) fn start(&self, tally: Weak<Tally>) -> std::io::Result<()> {
        self.thread.start("contests", move |stopped| {
            let (mut failed, mut looks) = (0_u32, 0_u32);
            let mut mistakes = Mistakes::default();
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let Some(tally) = tally.upgrade() else { return };
                if looks.is_multiple_of(COUNTED_EVERY) {
                    tally.contests.counts.look(&tally);
                    tally.balance.look(&tally);
                }
                let expires = looks.is_multiple_of(EXPIRED_EVERY);
                looks = looks.wrapping_add(1);
                let looked = do_due(&tally).and(prizes::pay_due(&tally)).and(doubts::find_out(&tally));
                let looked = match expires {
                    true => looked.and(expire::delete_due(&tally)).and(mistakes.pay(&tally)),
                    false => looked,
                };
                if let Err(failure) = &looked
                    && failed.is_multiple_of(SAID_EVERY)
                {
                    tracing::warn!(%failure, "what is due of contests; it is tried again");
                }
                failed = looked.map_or(failed + 1, |()| 0);
            }
        })
    }

    /// Ends after what is being done.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

/// Something that is due: when, of what, and whether that is a series. A series comes before the contests of its moment.
type Next = (Micros, Kind, ContestId);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Series,
    Contest,
}

/// Does everything that is due now, first things first. What fails keeps no others from it, however many fail: it is passed over,
/// until the next look.
pub fn do_due(tally: &Tally) -> Result<(), Failure> {
    let (mut failed, mut passed, mut redis) = (Ok(()), None, Redis::default());
    // What one does may be followed by what comes before another's, so where none has failed each is the first of all.
    while let Some(next) = first(tally, passed.as_ref())? {
        let done = match next.1 {
            Kind::Series => series::make_next(tally, &next.2).map(drop),
            Kind::Contest => one(tally, &next.2, &mut redis),
        };
        match done {
            Err(failure) => (failed, passed) = (Err(failure), Some(next)),
            // Its contest may come before what has failed.
            Ok(()) if next.1 == Kind::Series => passed = None,
            Ok(()) => {}
        }
    }
    failed
}

/// What is first behind what was passed over; nothing while the clock is in doubt.
fn first(tally: &Tally, passed: Option<&Next>) -> Result<Option<Next>, Failure> {
    let Some(now) = tally.believed_now() else { return Ok(None) };
    let ledger = tally.store.ledger();
    // No name is empty, so that stands before all of a moment.
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

/// The Redis of applications in one look: one that has not answered is not asked for other contests, each of which would wait
/// for it again and keep what does not need it waiting.
#[derive(Default)]
struct Redis {
    is_away: bool,
}

impl Redis {
    fn ask<T>(&mut self, what: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        if self.is_away {
            return Err(Fault::ApplicationsAway(NOT_ASKED.into()).into());
        }
        let answer = what();
        self.is_away = matches!(answer, Err(Failure::Fault(_)));
        answer
    }
}

/// What is next of one contest. Somebody else may have done it.
fn one(tally: &Tally, id: &ContestId, redis: &mut Redis) -> Result<(), Failure> {
    let Some(record) = tally.store.ledger().contest(id)? else { return Ok(()) };
    let Some((at, due)) = record.due().filter(|(at, _)| *at <= tally.now()) else { return Ok(()) };
    let done = match due {
        Due::Task => work::go_on(tally, id, record.clone()).map(drop),
        Due::Clear => {
            let cleared = redis.ask(|| desk::clear(tally, id, record.clone()));
            // Nothing else waits for Redis.
            match record.next_event().filter(|(at, _)| cleared.is_err() && *at <= tally.now()) {
                Some((at, event)) => happen(tally, id, at, event).and(cleared),
                None => cleared,
            }
        }
        Due::Event(event @ Event::Open) if desk::opens_in_redis(tally, &record) => {
            redis.ask(|| happen(tally, id, at, event))
        }
        Due::Event(event @ Event::Start) if matches!(record.kept, ApplicationLocation::Redis(_)) => {
            redis.ask(|| happen(tally, id, at, event))
        }
        Due::Event(event) => happen(tally, id, at, event),
    };
    match done {
        Err(Failure::Refused(Rejection::ContestState(_))) => Ok(()),
        // It does not start any more by itself.
        Err(Failure::Refused(Rejection::ApplicationsLost)) => {
            tracing::warn!(contest = id.as_str(), "its applications are lost, so it does not start");
            desk::say(tally, id, record, Outside::Lost).map(drop)
        }
        done => done,
    }
}

/// An event of the clock.
fn happen(tally: &Tally, id: &ContestId, at: Micros, event: Event) -> Result<(), Failure> {
    let clock = |_: &_| Ok(ActorKind::Clock);
    match event {
        Event::Open => change::open_at(tally, id, None, Some(at), clock).map(drop),
        Event::Start => start::start_at(tally, id, None, Some(at), clock).map(drop),
        Event::Finish => finish::finish_at(tally, id, at).map(drop),
        Event::Settle => settle::settle_at(tally, id, None, Some(at), clock).map(drop),
        _ => Ok(()),
    }
}
