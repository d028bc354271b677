//! What happens of contests by itself: opening, starting and ending by the clock, and what a crash left under way.
//!
//! A thread looks every second, and once before the service is there: what was missed happens then, first things first, each
//! as of its own time. Several servers may find the same; the state machine does it once. Blocks.

use super::act::act_at;
use super::command::Act;
use super::{finish, settle, start, work};
use crate::background::Background;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Weak;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tally_rules::Refusal;
use tally_rules::contest::record::Due;
use tally_rules::contest::{By, ContestId, Event};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Looks that failed in a row before that is said again.
const SAID_EVERY: u32 = 120;

/// Contests that fail before a look ends.
const STUCK_MAX: usize = 100;

/// The thread.
#[derive(Default)]
pub(crate) struct ContestKeeper {
    thread: Background,
}

impl ContestKeeper {
    pub(crate) fn start(&self, tally: Weak<Tally>) -> std::io::Result<()> {
        self.thread.start("contests", move |stopped| {
            let mut failed = 0_u32;
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let Some(tally) = tally.upgrade() else { return };
                let looked = do_due(&tally);
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

/// Does everything that is due now, first things first. What fails does not keep others from it.
pub fn do_due(tally: &Tally) -> Result<(), Failure> {
    let (mut failed, mut stuck) = (Ok(()), Vec::new());
    while stuck.len() < STUCK_MAX {
        let due = tally.store.ledger().due_contests(tally.now(), stuck.len() + 1)?;
        // Each look begins with the first: what one does may be followed by what comes before another's.
        let Some(next) = due.into_iter().find(|one| !stuck.contains(one)) else { break };
        if let Err(failure) = one(tally, &next.1) {
            failed = Err(failure);
            stuck.push(next);
        }
    }
    failed
}

/// What is next of one contest. Somebody else may have done it.
fn one(tally: &Tally, id: &ContestId) -> Result<(), Failure> {
    let Some(record) = tally.store.ledger().contest(id)? else { return Ok(()) };
    let Some((at, due)) = record.due().filter(|(at, _)| *at <= tally.now()) else { return Ok(()) };
    let clock = |_: &_| Ok(By::Clock);
    let done = match due {
        Due::Work => work::go_on(tally, id).map(drop),
        Due::Event(Event::Open) => {
            act_at(tally, id, None, Some(at), |_| Ok((By::Clock, Act::Open))).map(drop)
        }
        Due::Event(Event::Start) => start::start_at(tally, id, None, Some(at), clock).map(drop),
        Due::Event(Event::Finish) => finish::finish_at(tally, id, at).map(drop),
        Due::Event(Event::Settle) => settle::settle_at(tally, id, None, Some(at), clock).map(drop),
        Due::Event(_) => Ok(()),
    };
    match done {
        Err(Failure::Refused(Refusal::ContestState(_))) => Ok(()),
        done => done,
    }
}
