//! What is done in the background, a bounded bite at a time: forgetting old requests, purging deleted boards.
//!
//! Each bite is a short transaction of its own, so no submit waits for more than one of them.

use crate::clock::Clock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tally_rules::Micros;
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
pub struct Maintenance {
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Maintenance {
    /// Starts the thread.
    pub(crate) fn start(store: Arc<dyn Store>, clock: Clock, keep_micros: i64) -> Self {
        let (wake, woken) = channel();
        let thread = std::thread::Builder::new()
            .name("maintenance".into())
            .spawn(move || run(&*store, &clock, keep_micros, &woken))
            .map_err(|error| tracing::error!(%error, "no thread for maintenance: old requests stay"));
        Self { thread: Mutex::new(thread.ok().map(|thread| (wake, thread))) }
    }

    /// Looks at once.
    pub(crate) fn wake(&self) {
        if let Some((wake, _)) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            // A thread that has ended needs no waking.
            let _ = wake.send(());
        }
    }

    /// Ends after the present bite.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((wake, thread)) = thread {
            drop(wake);
            if thread.join().is_err() {
                tracing::error!("the maintenance thread panicked");
            }
        }
    }
}

fn run(store: &dyn Store, clock: &Clock, keep_micros: i64, woken: &Receiver<()>) {
    let mut pause = BITE_PAUSE;
    loop {
        match woken.recv_timeout(pause) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        let before = clock().plus(-keep_micros);
        pause = match bite(store, before) {
            // Somebody else was at it: it is found again.
            Err(StoreError::Conflict(_)) => LOOK_PAUSE,
            Ok(0) => LOOK_PAUSE,
            Ok(_) => BITE_PAUSE,
            Err(error) => {
                tracing::warn!(%error, "clean up in the store");
                LOOK_PAUSE
            }
        };
    }
}

fn bite(store: &dyn Store, before: Micros) -> Result<usize, StoreError> {
    if !store.take_turn(Task::Clean, TURN)? {
        return Ok(0);
    }
    Ok(store.expire_requests(before, BITE_ROWS)? + store.purge_deleted(BITE_ROWS)?)
}
