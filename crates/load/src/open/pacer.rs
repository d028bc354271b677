//! The clock of a run: a thread that sleeps until the next arrival is due and sends it.
//!
//! It is a thread because the runtime's timers have a granularity of a millisecond, as much as the measured
//! latencies. It sends the due time of each arrival, so a late arrival is measured from its due time.

use super::schedule::Schedule;
use std::io;
use std::time::Instant;
use tokio::sync::mpsc;

/// Arrivals that may wait in the channel. A full channel blocks the clock; their due times stay the same.
const AHEAD_MAX: usize = 1 << 16;

/// Starts the clock; the channel closes after the last arrival. Dropping the channel ends the thread.
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
