//! New outcomes at a steady rate, as a lane stores them: one batch every 10 ms.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;
use tally_service::clock;
use tally_store::{ReadSet, Store, StoreError, WriteSet};

/// Between two batches.
const INTERVAL: Duration = Duration::from_millis(10);
/// When an old outcome was stored: its number is its place in the order of expiry.
pub(super) fn old_at(number: u64) -> Micros {
    Micros(number.cast_signed())
}

type Written = Result<(u64, Latencies), StoreError>;

/// The thread that stores them.
pub(super) struct Writer {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

impl Writer {
    /// Stores outcomes from this number on.
    pub(super) fn start(store: Arc<dyn Store>, first: u64, rate: u64) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let batch = rate * INTERVAL.as_millis() as u64 / 1_000;
        let thread = std::thread::spawn(move || {
            let (began, mut next, mut turn) = (Instant::now(), first, 0);
            let mut latencies = Latencies::default();
            while !ends.load(Ordering::Relaxed) {
                let due = began + INTERVAL * turn;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let now = clock::system().now();
                put(&*store, next..next + batch, |_| now)?;
                latencies.record(due.elapsed());
                (next, turn) = (next + batch, turn + 1);
            }
            Ok((next - first, latencies))
        });
        Self { over, thread }
    }

    /// How many it stored, and how long each batch took.
    pub(super) fn stop(self) -> Written {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a writer does not panic")
    }
}

/// Stores outcomes in one transaction.
pub(super) fn put(
    store: &dyn Store,
    numbers: Range<u64>,
    at: impl Fn(u64) -> Micros,
) -> Result<(), StoreError> {
    let stored =
        |number| Stored { fingerprint: Fingerprint([7; 16]), at: at(number), outcome: Outcome::Removed };
    let mut requests: Vec<_> = numbers.map(|number| (key(number), stored(number))).collect();
    requests.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let change = |_: &_| WriteSet { requests: requests.clone(), ..WriteSet::default() };
    store.run(&ReadSet::default(), &mut { change }).map(drop)
}

/// A key of 36 letters, as a UUID has. Neighbours in time are no neighbours in the table.
pub(super) fn key(number: u64) -> RequestKey {
    let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    RequestKey { scope: "bench".into(), key: format!("{scattered:016x}{number:020}").into() }
}
