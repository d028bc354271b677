//! The lane timings of sampled requests.
//!
//! A listener that samples a request runs it within [`with_sink`], and its entries in a lane are reported to the [`Sink`]. So no
//! use case has a parameter for it, and a request that is not sampled costs a read of a task variable. Not here: what a trace
//! is, and which requests are sampled.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tally_lanes::LaneTimings;

/// Receives the lane timings of one request.
pub trait Sink: Send + Sync + 'static {
    /// An entry that was put into a lane at `entered` has passed the lane. Called on the lane's thread: it must not wait.
    fn record_timings(&self, entered: Instant, timings: &LaneTimings);
}

tokio::task_local! {
    static SINK: Arc<dyn Sink>;
}

/// Runs a future, and reports the timings of its lane requests to the sink.
pub async fn with_sink<F: Future>(sink: Arc<dyn Sink>, work: F) -> F::Output {
    SINK.scope(sink, work).await
}

/// The sink of the present task.
pub(crate) fn current_sink() -> Option<Arc<dyn Sink>> {
    SINK.try_with(Arc::clone).ok()
}

/// The same as [`with_sink`], for a closure that blocks.
pub(crate) fn with_sink_blocking<T>(sink: Option<Arc<dyn Sink>>, work: impl FnOnce() -> T) -> T {
    match sink {
        Some(sink) => SINK.sync_scope(sink, work),
        None => work(),
    }
}

/// A lane entry of a sampled request.
pub(crate) struct SampledEntry {
    sink: Arc<dyn Sink>,
    since: Instant,
    /// The piece of a batch that was noted last: neighbours go through the lane together.
    reported: Mutex<Option<Instant>>,
}

impl SampledEntry {
    /// For the next lane entry, if its request is sampled.
    pub(crate) fn now() -> Option<Box<Self>> {
        let sink = current_sink()?;
        Some(Box::new(Self { sink, since: Instant::now(), reported: Mutex::default() }))
    }

    /// Reports it, once for all that were together.
    pub(crate) fn record_timings(&self, timings: &LaneTimings) {
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner).replace(timings.begun);
        if reported != Some(timings.begun) {
            self.sink.record_timings(self.since, timings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<u64>>);

    impl Sink for Recorder {
        fn record_timings(&self, _entered: Instant, timings: &LaneTimings) {
            self.0.lock().unwrap().push(timings.batch);
        }
    }

    fn timings(batch: u64, begun: Instant) -> LaneTimings {
        LaneTimings {
            lane: "lane".into(),
            batch,
            requests: 1,
            rows: 1,
            retries: 0,
            taken: begun,
            begun,
            read: None,
            ended: begun,
            published: None,
        }
    }

    #[test]
    fn a_sampled_request_is_sampled_on_other_threads_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let recorder = Arc::<Recorder>::default();
        let sink: Arc<dyn Sink> = Arc::<Recorder>::clone(&recorder);
        let entry = runtime.block_on(with_sink(sink, async {
            crate::blocking(|| Ok((SampledEntry::now().is_some(), std::thread::current().id()))).await
        }));
        let here = std::thread::current().id();
        assert!(entry.is_ok_and(|(sampled, thread)| sampled && thread != here));
        assert!(SampledEntry::now().is_none());
    }

    #[test]
    fn neighbours_that_were_together_are_told_once() {
        let recorder = Arc::<Recorder>::default();
        let sink: Arc<dyn Sink> = Arc::<Recorder>::clone(&recorder);
        let entry = with_sink_blocking(Some(sink), SampledEntry::now).unwrap();
        let start = Instant::now();
        let later = start + std::time::Duration::from_millis(1);
        for (batch, begun) in [(1, start), (1, start), (2, later), (2, later)] {
            entry.record_timings(&timings(batch, begun));
        }
        assert_eq!(*recorder.0.lock().unwrap(), [1, 2]);
    }
}
