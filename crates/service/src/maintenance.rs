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
/// The same of requests and events while there are always more: they are forgotten as fast as any server stores them.
const BITE_ROWS_MAX: usize = 8_000;
/// Between two bites while there is something to do.
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
    let mut pace = Pace::default();
    loop {
        match woken.recv_timeout(pause) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        pause = match bite(store, clock, keep_micros, &mut pace) {
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

/// How many requests and events are forgotten in one bite: twice as many after each that was not enough.
#[derive(Debug)]
pub(crate) struct Pace {
    rows: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: BITE_ROWS }
    }
}

/// One bite; how many rows that were. Requests and events are not forgotten while the clock is in doubt.
pub(crate) fn bite(
    store: &dyn Store,
    clock: &Clock,
    keep_micros: i64,
    pace: &mut Pace,
) -> Result<usize, StoreError> {
    let old = clock.believed().map(|now| (now.plus(-keep_micros), now.plus(-events::KEEP_MICROS)));
    let most = std::mem::take(pace).rows;
    if !store.lease_task(Task::Clean, TURN)? {
        return Ok(0);
    }
    let mut rows = 0;
    if let Some((before, events_before)) = old {
        let events = store.ledger().expire_events(events_before, most)?;
        let requests = store.expire_requests(before, most)?;
        if events.max(requests) == most {
            pace.rows = (most * 2).min(BITE_ROWS_MAX);
        }
        rows = events + requests;
    }
    Ok(rows + store.purge_deleted(BITE_ROWS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::Micros;
    use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
    use tally_rules::outcome::Outcome;
    use tally_store::Transactions;
    use tally_store::sqlite::{Options, SqliteStore};
    use tally_store::{ReadSet, WriteSet};

    #[test]
    fn many_old_requests_are_forgotten_in_few_bites() {
        const ROWS: usize = 30_000;
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        for first in (0..ROWS).step_by(10_000) {
            let row = |number: usize| {
                let key = RequestKey { scope: "test".into(), key: format!("{number:05}").into() };
                (key, Stored { fingerprint: Fingerprint([0; 16]), at: Micros(1), outcome: Outcome::Removed })
            };
            let requests = (first..first + 10_000).map(row).collect();
            let changes = WriteSet { requests, ..WriteSet::default() };
            store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        }
        let (clock, mut pace, mut left) = (Clock::of(|| Micros(10)), Pace::default(), ROWS);
        for _ in 0..10 {
            left -= bite(&store, &clock, 1, &mut pace).unwrap();
        }
        assert_eq!(left, 0);
        assert_eq!(bite(&store, &clock, 1, &mut pace).unwrap(), 0);
    }
}
