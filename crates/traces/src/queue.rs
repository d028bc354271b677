//! The queue of the span exporter, and the task that sends it to the collector.
//!
//! Putting something in never waits. The task collects spans for a short time, or until a message is full, and sends them
//! together. It retries a few times, with pauses, if the collector is unavailable. Then it counts and drops the spans, and
//! new ones wait up to the queue's limit. The log reports an unavailable collector at the beginning and once a minute.
//!
//! It is a task and not a thread: it waits nearly always, and a panic in it does not end the process.

use crate::collector::{Collector, PostError};
use crate::parent::Parent;
use crate::span::{self, Span, Trace};
use crate::{Ratio, TraceSettings};
use bytes::Bytes;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The queue's limit; what comes then is dropped.
const WAITING_MAX: usize = 4096;
/// Spans of one message, or a few more.
const SPANS_MAX: usize = 512;
/// How long the first span of a message waits for others.
const COLLECTED_FOR: Duration = Duration::from_secs(1);
/// Pauses between attempts to send one message.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1000)];
/// The longest pause that a collector may request.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often the log reports an unavailable collector.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The span exporter: sampling, the queue and the counts.
pub struct Traces {
    ratio: Ratio,
    queue: mpsc::Sender<MakeSpans>,
    counts: Arc<SpanCounts>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Makes the spans when they are sent.
type MakeSpans = Box<dyn FnOnce(&mut Vec<Span>) + Send>;

/// The number of spans by result.
#[derive(Debug, Default)]
pub struct SpanCounts {
    sent: AtomicU64,
    full: AtomicU64,
    undelivered: AtomicU64,
    rejected: AtomicU64,
}

impl SpanCounts {
    /// Each with its name: taken by the collector; dropped by a full queue; undelivered, because the collector is
    /// unavailable or takes nothing; and rejected by it.
    pub fn all(&self) -> [(&'static str, u64); 4] {
        let Self { sent, full, undelivered, rejected } = self;
        [("sent", sent), ("full", full), ("undelivered", undelivered), ("rejected", rejected)]
            .map(|(name, count)| (name, count.load(Relaxed)))
    }
}

impl Traces {
    /// Starts the task.
    ///
    /// # Errors
    ///
    /// What is wrong with the settings.
    pub fn start(settings: &TraceSettings, runtime: &Handle) -> Result<Arc<Self>, String> {
        let counts = Arc::<SpanCounts>::default();
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let (stop, stopped) = watch::channel(false);
        let exporter = Exporter {
            waiting,
            stopped,
            collector: Collector::new(settings)?,
            shown: settings.address.to_string(),
            resource: span::resource(&settings.service, settings.version),
            version: settings.version,
            counts: Arc::clone(&counts),
            failing_since: None,
        };
        let task = Mutex::new(Some(runtime.spawn(exporter.run())));
        Ok(Arc::new(Self { ratio: settings.ratio, queue, counts, stop, task }))
    }

    /// Whether a request is sampled: by the flag of its caller, else by the ratio. `state` is called only for sampled ones.
    pub fn sample(&self, parent: Option<&Parent>, state: impl FnOnce() -> String) -> Option<Trace> {
        let sampled = parent.map_or_else(|| self.ratio.draw(), |parent| parent.sampled);
        sampled.then(|| Trace::new(parent, &parent.map_or_else(String::new, |_| state())))
    }

    /// Queues a function that makes `spans` spans. It never waits; a full queue counts and drops them.
    pub fn put(&self, spans: usize, make: impl FnOnce(&mut Vec<Span>) + Send + 'static) {
        if self.queue.try_send(Box::new(make)).is_err() {
            self.counts.full.fetch_add(spans as u64, Relaxed);
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> &SpanCounts {
        &self.counts
    }

    /// Sends what is queued and takes nothing more. What is not sent within that time is dropped.
    pub async fn stop(&self, within: Duration) {
        // The receiver is gone if the task has ended by itself.
        let _ = self.stop.send(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return };
        match timeout(within, &mut task).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => tracing::error!("the span exporter panicked"),
            Err(_) => {
                task.abort();
                tracing::warn!("traces were still to be sent when the time to drain was over");
            }
        }
    }
}

struct Exporter {
    waiting: mpsc::Receiver<MakeSpans>,
    stopped: watch::Receiver<bool>,
    collector: Collector,
    /// The address of the collector, for the log.
    shown: String,
    resource: Resource,
    version: &'static str,
    counts: Arc<SpanCounts>,
    /// When the log last reported the collector as unavailable; `None` while it is available.
    failing_since: Option<Instant>,
}

impl Exporter {
    async fn run(mut self) {
        while let Some(first) = self.first().await {
            let mut spans = Vec::new();
            first(&mut spans);
            self.collect(&mut spans).await;
            self.send(spans).await;
        }
    }

    /// Waits for something to send; `None` after the queue was closed.
    async fn first(&mut self) -> Option<MakeSpans> {
        if !self.waiting.is_closed() {
            tokio::select! {
                biased;
                _ = self.stopped.changed() => self.waiting.close(),
                make = self.waiting.recv() => return make,
            }
        }
        self.waiting.recv().await
    }

    /// Adds what arrives soon, up to one message.
    async fn collect(&mut self, spans: &mut Vec<Span>) {
        let until = Instant::now() + COLLECTED_FOR;
        while spans.len() < SPANS_MAX {
            let make = if self.waiting.is_closed() {
                self.waiting.recv().await
            } else {
                tokio::select! {
                    biased;
                    _ = self.stopped.changed() => {
                        self.waiting.close();
                        continue;
                    }
                    make = self.waiting.recv() => make,
                    () = sleep_until(until) => return,
                }
            };
            let Some(make) = make else { return };
            make(spans);
        }
    }

    async fn send(&mut self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        let message = span::request(&self.resource, self.version, spans).encode_to_vec();
        let message = Bytes::from(message);
        let mut pauses = PAUSES.into_iter();
        let undelivered = loop {
            match self.collector.post(message.clone()).await {
                Ok(rejected) => {
                    self.log_recovery();
                    let rejected = rejected.min(count);
                    self.counts.sent.fetch_add(count - rejected, Relaxed);
                    self.counts.rejected.fetch_add(rejected, Relaxed);
                    return;
                }
                Err(PostError::Never(why)) => break why,
                Err(PostError::Later(why, asked)) => {
                    let pause = pauses.next().filter(|_| !self.waiting.is_closed());
                    let Some(pause) = pause else { break why };
                    // A server that stops skips the pause: it makes one more attempt.
                    self.pause(asked.map_or(pause, |asked| asked.clamp(pause, PAUSE_MAX))).await;
                }
            }
        };
        self.log_failure(&undelivered);
        self.counts.undelivered.fetch_add(count, Relaxed);
    }

    /// Waits for the pause, or until the server stops.
    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            biased;
            _ = self.stopped.changed() => self.waiting.close(),
            () = sleep(pause) => {}
        }
    }

    fn log_failure(&mut self, why: &str) {
        let now = Instant::now();
        if self.failing_since.is_none_or(|logged| now - logged >= LOG_INTERVAL) {
            self.failing_since = Some(now);
            tracing::warn!(collector = %self.shown, why, "traces are not delivered");
        }
    }

    fn log_recovery(&mut self) {
        if self.failing_since.take().is_some() {
            tracing::info!(collector = %self.shown, "traces are delivered again");
        }
    }
}
