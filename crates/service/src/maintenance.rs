//! What is done in the background, a bounded bite at a time: forgetting old requests and events, purging deleted boards.
//!
//! Each bite is a short transaction of its own, so no submit waits for more than one of them.

use crate::background::Background;
use crate::clock::Clock;
use crate::events;
use crate::trial::Trial;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tally_store::{Store, StoreError, Task};

/// Rows in one bite.
const BITE_ROWS: usize = 500;
/// Between two bites while there is something to do: at most 50,000 rows a second.
const BITE_PAUSE: Duration = Duration::from_millis(10);
/// How long a server that says nothing stays the one that does it: more than the pause between two looks.
const TURN: Duration = Duration::from_secs(40);
/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_secs(30);

/// The thread that does it.
#[derive(Default)]
pub struct Maintenance {
    thread: Background,
}

impl Maintenance {
    /// Starts the thread.
    pub(crate) fn start(&self, store: Arc<dyn Store>, clock: Clock, keep_micros: i64) {
        if let Err(error) =
            self.thread.start("maintenance", move |woken| run(&*store, &clock, keep_micros, &woken))
        {
            tracing::error!(%error, "no thread for maintenance: old requests stay");
        }
    }

    /// Looks at once.
    pub(crate) fn wake(&self) {
        self.thread.wake();
    }

    /// Ends after the present bite.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

fn run(store: &dyn Store, clock: &Clock, keep_micros: i64, woken: &Receiver<()>) {
    let (mut pause, mut trial) = (BITE_PAUSE, Trial::new("clean up in the store"));
    loop {
        match woken.recv_timeout(pause) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        pause = match bite(store, clock, keep_micros) {
            // Somebody else was at it: it is found again.
            Err(StoreError::Conflict(_)) => LOOK_PAUSE,
            Ok(rows) => {
                trial.note(Instant::now(), None);
                if rows == 0 { LOOK_PAUSE } else { BITE_PAUSE }
            }
            Err(error) => {
                trial.note(Instant::now(), Some(&error.into()));
                LOOK_PAUSE
            }
        };
    }
}

/// One bite; how many rows that were. Requests and events are not forgotten while the clock is in doubt.
pub(crate) fn bite(store: &dyn Store, clock: &Clock, keep_micros: i64) -> Result<usize, StoreError> {
    let old = clock.believed().map(|now| (now.plus(-keep_micros), now.plus(-events::KEEP_MICROS)));
    if !store.take_turn(Task::Clean, TURN)? {
        return Ok(0);
    }
    let mut rows = 0;
    if let Some((before, events_before)) = old {
        rows += store.ledger().expire_events(events_before, BITE_ROWS)?;
        rows += store.expire_requests(before, BITE_ROWS)?;
    }
    Ok(rows + store.purge_deleted(BITE_ROWS)?)
}
