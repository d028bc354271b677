//! Slow transactions, and what each waited for most: the last few are kept, all are counted.
//!
//! Not here: waits before a transaction began, and the use of the list.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The duration from which a transaction is slow: people begin to notice it.
pub const SLOW: Duration = Duration::from_millis(50);

/// The number of slow transactions that are kept.
const KEPT: usize = 64;

/// A slow transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// When it ended.
    pub at: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// The longest wait: see [`WaitStage`].
    pub cause: WaitStage,
    /// The duration of that wait.
    pub waited: Duration,
    /// The background work that used the same files meanwhile, as far as known.
    pub beside: Option<&'static str>,
}

/// What a transaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStage {
    /// Space: earlier writes have to be flushed first.
    Flush,
    /// Another writer, or a connection.
    Turn,
    /// Reading the rows of its read set.
    Read,
    /// The decision itself.
    Decide,
    /// The disk: writing and syncing; on a database, its answer to COMMIT.
    Sync,
    /// Something else, such as a processor.
    Other,
}

impl WaitStage {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Turn => "write_lock",
            Self::Read => "read",
            Self::Decide => "decide",
            Self::Sync => "sync",
            Self::Other => "other",
        }
    }
}

/// The stages of one transaction, while it runs.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    last: Instant,
    /// The longest stage so far.
    most: (WaitStage, Duration),
    staged: Duration,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self { began: now, last: now, most: (WaitStage::Other, Duration::ZERO), staged: Duration::ZERO }
    }

    /// Counts the time since the previous stage as this stage.
    pub(crate) fn end_of(&mut self, stage: WaitStage) {
        let now = Instant::now();
        self.took(stage, now - self.last);
        self.last = now;
    }

    fn took(&mut self, stage: WaitStage, time: Duration) {
        self.staged += time;
        if time > self.most.1 {
            self.most = (stage, time);
        }
    }
}

/// The last slow transactions.
#[derive(Debug, Default)]
pub(crate) struct Slows {
    last: Mutex<VecDeque<Slow>>,
    all: AtomicU64,
}

impl Slows {
    /// Records a transaction that has ended, if it was slow.
    pub(crate) fn note(&self, mut watch: Watch, beside: impl FnOnce() -> Option<&'static str>) {
        let took = watch.began.elapsed();
        if took < SLOW {
            return;
        }
        watch.took(WaitStage::Other, took.saturating_sub(watch.staged));
        let (cause, waited) = watch.most;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(Slow { at: SystemTime::now(), took, cause, waited, beside: beside() });
        self.all.fetch_add(1, Ordering::Relaxed);
    }

    /// The kept transactions, the newest last.
    pub(crate) fn list(&self) -> Vec<Slow> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The number of slow transactions.
    pub(crate) fn count(&self) -> f64 {
        self.all.load(Ordering::Relaxed) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(stages: &[(WaitStage, u64)]) -> Watch {
        let mut watch = Watch::start();
        watch.began -= Duration::from_millis(200);
        stages.iter().for_each(|&(stage, ms)| watch.took(stage, Duration::from_millis(ms)));
        watch
    }

    #[test]
    fn the_longest_stage_is_the_cause_and_what_is_in_none_is_other() {
        let slows = Slows::default();
        slows.note(Watch::start(), || unreachable!("it was not slow"));
        slows.note(slow(&[(WaitStage::Read, 30), (WaitStage::Sync, 110)]), || Some("flush"));
        slows.note(slow(&[(WaitStage::Read, 30), (WaitStage::Sync, 40)]), || None);
        let list = slows.list();
        assert_eq!((list[0].cause, list[0].beside), (WaitStage::Sync, Some("flush")));
        assert_eq!(list[0].waited, Duration::from_millis(110));
        assert_eq!((list[1].cause, list[1].beside), (WaitStage::Other, None));
        for _ in 0..KEPT {
            slows.note(slow(&[]), || None);
        }
        assert_eq!((slows.list().len(), slows.count()), (KEPT, KEPT as f64 + 2.0));
    }
}
