//! The clock of a run: a thread that sleeps until the next arrival and says that it is due.
//!
//! A thread and not a task: the runtime's timers are a millisecond coarse, which is as much as the answers that are
//! measured. It says when each was due, so one that comes late is measured from when it should have come.

use super::schedule::Schedule;
use std::io;
use std::time::Instant;
use tokio::sync::mpsc;

/// Arrivals that were not taken yet; past it the clock waits, and they count from when they were due all the same.
const AHEAD_MAX: usize = 1 << 16;

/// Starts it; the channel closes after the last arrival, and dropping it ends the thread.
pub(super) fn start(schedule: Schedule, begin: Instant) -> io::Result<mpsc::Receiver<Instant>> {
    let (send, receive) = mpsc::channel(AHEAD_MAX);
    std::thread::Builder::new().name("arrivals".into()).spawn(move || {
        let mut number = 0;
        while let Some(due) = schedule.due(number).map(|after| begin + after) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if send.blocking_send(due).is_err() {
                return;
            }
            number += 1;
        }
    })?;
    Ok(receive)
}
