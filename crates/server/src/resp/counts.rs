//! Metrics of commands: their number by class and outcome, and the duration of pipelines.
//!
//! A connection counts in its own memory while it works. After each pipeline it adds its counts to those of its thread,
//! which no other thread writes. So this costs no locked instruction, and one clock reading more for each pipeline. A
//! command of a transaction is counted when it runs, not when it is queued.

use super::spec::{CommandKind, Spec};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tally_service::{Histogram, Times};

/// The class of a command in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A read of rankings.
    Read,
    /// A change.
    Write,
    /// Connections, transactions, the server; and unknown commands.
    Other,
}

impl Class {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Read, "read"), (Self::Write, "write"), (Self::Other, "other")];

    /// The class of a command; `None` is an unknown command.
    pub(super) fn of(spec: Option<&Spec>) -> Self {
        match spec {
            Some(spec) if spec.writes() => Self::Write,
            Some(Spec { kind: CommandKind::Read(_), .. }) => Self::Read,
            _ => Self::Other,
        }
    }
}

/// By class: success, and error.
type ByClass<T> = [[T; 2]; Class::ALL.len()];

/// The replies of a connection in one pipeline.
#[derive(Debug, Default)]
pub(super) struct PipelineCounts(ByClass<u64>);

impl PipelineCounts {
    /// Counts a command by its reply.
    pub(super) fn answered(&mut self, class: Class, reply: &[u8]) {
        self.0[class as usize][usize::from(reply.first() == Some(&b'-'))] += 1;
    }

    /// Adds the counts since `arrived` to those of the thread. Without a complete command there are none.
    pub(super) fn end(&mut self, counts: &ReplyCounts, arrived: Instant) {
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

/// The replies of the connections of one thread. Only that thread writes them.
#[derive(Debug, Default)]
pub(crate) struct ReplyCounts {
    answered: ByClass<AtomicU64>,
    seconds: Histogram,
}

#[derive(Debug, Default)]
pub(crate) struct AllCounts(Mutex<Vec<Arc<ReplyCounts>>>);

impl AllCounts {
    /// Adds the counts of another thread.
    pub(super) fn of_thread(&self) -> Arc<ReplyCounts> {
        let counts = Arc::<ReplyCounts>::default();
        self.lock().push(Arc::clone(&counts));
        counts
    }

    /// The number of replies by class and outcome.
    pub(crate) fn answered(&self) -> Vec<(&'static str, &'static str, u64)> {
        let threads = self.lock();
        let mut all = Vec::new();
        for (class, name) in Class::ALL {
            for (at, outcome) in ["ok", "error"].into_iter().enumerate() {
                let of = |counts: &Arc<ReplyCounts>| counts.answered[class as usize][at].load(Relaxed);
                all.push((name, outcome, threads.iter().map(of).sum()));
            }
        }
        all
    }

    /// The time of pipelines from arrival to complete replies.
    pub(crate) fn seconds(&self) -> Times {
        self.lock().iter().fold(Times::default(), |all, counts| all.and(counts.seconds.read()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ReplyCounts>>> {
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
        let (all, mut pipeline_counts) = (AllCounts::default(), PipelineCounts::default());
        let (one, other) = (all.of_thread(), all.of_thread());
        pipeline_counts.end(&one, Instant::now());
        assert_eq!(all.seconds().count(), 0, "nothing was whole");
        pipeline_counts.answered(Class::Read, b"$1\r\n5\r\n");
        pipeline_counts.answered(Class::Read, b"-WRONGTYPE no\r\n");
        pipeline_counts.answered(Class::Write, b":1\r\n");
        pipeline_counts.end(&one, Instant::now());
        pipeline_counts.answered(Class::Write, b":0\r\n");
        pipeline_counts.end(&other, Instant::now());
        pipeline_counts.end(&other, Instant::now());
        assert_eq!(all.seconds().count(), 2);
        let counts: Vec<u64> = all.answered().into_iter().map(|(_, _, count)| count).collect();
        assert_eq!(counts, [1, 1, 2, 0, 0, 0]);
    }
}
