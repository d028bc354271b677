//! Where the time of one request goes: the client's body, and the stages of its lane.
//!
//! A listener runs a request within [`measure`]. The lane has the instants of its batch already, so the reply carries them to
//! the request, which adds them up. So no use case has a parameter for it, and a request costs two reads of the clock for each
//! entry in a lane. Not here: which requests are shown.

use std::cell::Cell;
use std::future::Future;
use std::time::{Duration, Instant};
use tally_lanes::LaneTimings;

/// The stages of a request, in microseconds. Repeated stages are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// The body, until it had arrived.
    pub body: u32,
    /// Waiting in the queue of a lane.
    pub queue: u32,
    /// Planning the batch, and reading its rows, which a database locks.
    pub read: u32,
    /// Deciding the batch, and writing and syncing it, or the database's answer to its commit.
    pub commit: u32,
    /// Applying the batch to rankings and streams.
    pub publish: u32,
    /// From there until the request ran again.
    pub reply: u32,
}

impl Stages {
    /// Each stage with its name, in the order of a request.
    #[must_use]
    pub const fn all(&self) -> [(&'static str, u32); 6] {
        [
            ("body", self.body),
            ("queue", self.queue),
            ("read", self.read),
            ("commit", self.commit),
            ("publish", self.publish),
            ("reply", self.reply),
        ]
    }

    fn and(self, other: Self) -> Self {
        Self {
            body: self.body.saturating_add(other.body),
            queue: self.queue.saturating_add(other.queue),
            read: self.read.saturating_add(other.read),
            commit: self.commit.saturating_add(other.commit),
            publish: self.publish.saturating_add(other.publish),
            reply: self.reply.saturating_add(other.reply),
        }
    }
}

tokio::task_local! {
    static SPENT: Cell<Stages>;
}

/// Runs a request, and returns where its time went.
pub async fn measure<F: Future>(work: F) -> (F::Output, Stages) {
    SPENT.scope(Cell::default(), async { (work.await, SPENT.with(Cell::get)) }).await
}

/// The same of something that blocks.
pub(crate) fn measure_blocking<T>(work: impl FnOnce() -> T) -> (T, Stages) {
    SPENT.sync_scope(Cell::default(), || (work(), SPENT.with(Cell::get)))
}

/// Adds stages to those of the present request. Nothing happens if none is measured.
pub(crate) fn add(more: Stages) {
    let _not_measured = SPENT.try_with(|spent| spent.set(spent.get().and(more)));
}

/// Adds the time that the body took.
pub fn add_body(took: Duration) {
    add(Stages { body: micros(took), ..Stages::default() });
}

/// When the present request enters a lane, if it is measured.
pub(crate) fn entered() -> Option<Instant> {
    SPENT.try_with(|_| Instant::now()).ok()
}

/// The way of a piece of a batch through its lane. The reply carries it to each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    begun: Instant,
    left: Instant,
    read: u32,
    commit: u32,
    publish: u32,
}

impl Passage {
    pub(crate) fn of(timings: &LaneTimings) -> Self {
        let &LaneTimings { begun, read, ended, published, .. } = timings;
        // Without a read, all of the time was spent reading.
        let (read, left) = (read.unwrap_or(ended), published.unwrap_or(ended));
        Self {
            begun,
            left,
            read: between(begun, read),
            commit: between(read, ended),
            publish: between(ended, left),
        }
    }

    fn stages(self, entered: Instant, now: Instant) -> Stages {
        let Self { begun, left, read, commit, publish } = self;
        Stages { body: 0, queue: between(entered, begun), read, commit, publish, reply: between(left, now) }
    }
}

/// Adds the passage of a reply that has arrived.
pub(crate) fn add_passage(entered: Option<Instant>, passage: Option<Passage>) {
    if let (Some(entered), Some(passage)) = (entered, passage) {
        add(passage.stages(entered, Instant::now()));
    }
}

fn between(from: Instant, to: Instant) -> u32 {
    micros(to.saturating_duration_since(from))
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_has_every_moment_of_its_time_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timings = LaneTimings {
            lane: "lane".into(),
            batch: 1,
            requests: 1,
            rows: 1,
            retries: 0,
            taken: at(4),
            begun: at(5),
            read: Some(at(7)),
            ended: at(12),
            published: Some(at(13)),
        };
        let stages = |timings: &LaneTimings| Passage::of(timings).stages(at(1), at(20));
        let all = Stages { body: 0, queue: 4000, read: 2000, commit: 5000, publish: 1000, reply: 7000 };
        assert_eq!(stages(&timings), all);
        assert_eq!(all.all().map(|(_, micros)| micros).iter().sum::<u32>(), 19_000);
        (timings.read, timings.published) = (None, None);
        let failed = Stages { read: 7000, commit: 0, publish: 0, reply: 8000, ..all };
        assert_eq!(stages(&timings), failed);
    }

    #[test]
    fn a_request_adds_up_what_is_its_own_on_other_threads_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let second = Duration::from_secs(1);
        add_body(second);
        assert_eq!(entered(), None, "nothing is measured");
        let (blocked, stages) = runtime.block_on(measure(async {
            add_body(second);
            let blocked = crate::blocking(move || {
                add_body(second);
                Ok(entered().is_some())
            });
            blocked.await
        }));
        assert!(blocked.is_ok_and(|measured| measured));
        assert_eq!(stages, Stages { body: 2_000_000, ..Stages::default() });
    }
}
