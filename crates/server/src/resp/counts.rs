//! What is counted of commands: how many of which kind were answered how, and how long what arrived together took.
//!
//! A connection counts into memory of its own while it works. When a burst is answered the counts of its thread get them,
//! which no other thread writes: no locked instruction, and one clock reading more a burst. A command of a transaction is
//! counted when it is done, not when it is queued.

use super::spec::{Kind, Spec};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tally_service::{Histogram, Times};

/// What a command is to whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It asks an order.
    Read,
    /// It changes something.
    Write,
    /// Connections, transactions, the server; and what is no command.
    Other,
}

impl Class {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Read, "read"), (Self::Write, "write"), (Self::Other, "other")];

    /// That of a command; of none where there is no such command.
    pub(super) fn of(spec: Option<&Spec>) -> Self {
        match spec {
            Some(spec) if spec.writes() => Self::Write,
            Some(Spec { kind: Kind::Read(_), .. }) => Self::Read,
            _ => Self::Other,
        }
    }
}

/// By class: answered well, and with an error.
type ByClass<T> = [[T; 2]; Class::ALL.len()];

/// What a connection has answered of a burst.
#[derive(Debug, Default)]
pub(super) struct Burst(ByClass<u64>);

impl Burst {
    /// Counts a command by its reply.
    pub(super) fn answered(&mut self, class: Class, reply: &[u8]) {
        self.0[class as usize][usize::from(reply.first() == Some(&b'-'))] += 1;
    }

    /// Hands over what was counted since it arrived. Where no command was whole yet, that is nothing.
    pub(super) fn end(&mut self, counts: &Counts, arrived: Instant) {
        if self.0.iter().flatten().all(|count| *count == 0) {
            return;
        }
        counts.seconds.record(arrived.elapsed());
        for (to, count) in counts.answered.iter().flatten().zip(self.0.iter_mut().flatten()) {
            if *count > 0 {
                to.store(to.load(Relaxed) + std::mem::take(count), Relaxed);
            }
        }
    }
}

/// What the connections of one thread have answered. Written by that thread alone.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    answered: ByClass<AtomicU64>,
    seconds: Histogram,
}

/// The counts of every thread.
#[derive(Debug, Default)]
pub(crate) struct AllCounts(Mutex<Vec<Arc<Counts>>>);

impl AllCounts {
    /// Those of one thread more.
    pub(super) fn of_thread(&self) -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        self.lock().push(Arc::clone(&counts));
        counts
    }

    /// How many commands were answered, by class and outcome.
    pub(crate) fn answered(&self) -> Vec<(&'static str, &'static str, u64)> {
        let threads = self.lock();
        let mut all = Vec::new();
        for (class, name) in Class::ALL {
            for (at, outcome) in ["ok", "error"].into_iter().enumerate() {
                let of = |counts: &Arc<Counts>| counts.answered[class as usize][at].load(Relaxed);
                all.push((name, outcome, threads.iter().map(of).sum()));
            }
        }
        all
    }

    /// How long bursts took from their arrival until their replies were there.
    pub(crate) fn seconds(&self) -> Times {
        self.lock().iter().fold(Times::default(), |all, counts| all.and(counts.seconds.read()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Counts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec;
    use super::*;

    #[test]
    fn every_command_has_a_class() {
        let class = |name: &str| Class::of(spec::find(name.as_bytes()));
        for name in ["zscore", "lb.top", "exists", "scan"] {
            assert_eq!(class(name), Class::Read, "{name}");
        }
        for name in ["zadd", "zpopmin", "lb.submit", "lb.create", "del"] {
            assert_eq!(class(name), Class::Write, "{name}");
        }
        for name in ["ping", "multi", "exec", "hello", "info", "nothing"] {
            assert_eq!(class(name), Class::Other, "{name}");
        }
    }

    #[test]
    fn a_burst_is_handed_over_once_and_threads_are_added_up() {
        let (all, mut burst) = (AllCounts::default(), Burst::default());
        let (one, other) = (all.of_thread(), all.of_thread());
        burst.end(&one, Instant::now());
        assert_eq!(all.seconds().count(), 0, "nothing was whole");
        burst.answered(Class::Read, b"$1\r\n5\r\n");
        burst.answered(Class::Read, b"-WRONGTYPE no\r\n");
        burst.answered(Class::Write, b":1\r\n");
        burst.end(&one, Instant::now());
        burst.answered(Class::Write, b":0\r\n");
        burst.end(&other, Instant::now());
        burst.end(&other, Instant::now());
        assert_eq!(all.seconds().count(), 2);
        let counts: Vec<u64> = all.answered().into_iter().map(|(_, _, count)| count).collect();
        assert_eq!(counts, [1, 1, 2, 0, 0, 0]);
    }
}
