//! What ends holds whose time has run out: a thread that looks every second and puts what it finds into the lane.
//!
//! Several servers may find the same hold; the book ends it once. A server that was down ends what became due meanwhile
//! when it starts. Not here: refusing to capture a hold that is due and not yet ended; the rule does that by its time.

use super::command::Request;
use super::lane::Handle;
use crate::background::Background;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::settings;
use crate::waiting::{self, Entry};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tally_store::Store;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks that failed in a row before that is said. A store that is away for a moment is said by whoever asks it.
const SAID_EVERY: u32 = 60;

/// Holds of one request to the lane.
const BITE: usize = 200;

/// The thread.
#[derive(Default)]
pub(super) struct Expiry {
    thread: Background,
}

impl Expiry {
    pub(super) fn start(&self, store: Arc<dyn Store>, clock: Clock, lane: Handle) -> std::io::Result<()> {
        self.thread.start("holds", move |stopped| {
            let (mut pause, mut failed) = (Duration::ZERO, 0_u32);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let looked = look(&*store, &clock, (&lane, settings::Background::Threads));
                pause = if matches!(looked, Ok(BITE)) { Duration::ZERO } else { PAUSE };
                failed = looked.as_ref().map_or(failed + 1, |_| 0);
                if let Err(error) = looked.as_ref().map_err(ToString::to_string)
                    && failed.is_multiple_of(SAID_EVERY)
                {
                    tracing::warn!(%error, "holds whose time has run out are not ended");
                }
            }
        })
    }

    /// Ends after the present look.
    pub(super) fn stop(&self) {
        self.thread.stop();
    }
}

/// Ends what is due; how many that were. What cannot be ended now is found again.
pub(super) fn look(
    store: &dyn Store,
    clock: &Clock,
    (lane, background): (&Handle, settings::Background),
) -> Result<usize, Failure> {
    // A hold that has ended does not come back, so a clock in doubt ends none.
    let Some(now) = clock.believed() else { return Ok(0) };
    let due = store.ledger().due_holds(now, BITE)?;
    let found = due.len();
    if found > 0 {
        waiting::ask_blocking(lane, Entry::of(Request::Expire(due)), background)?;
    }
    Ok(found)
}
