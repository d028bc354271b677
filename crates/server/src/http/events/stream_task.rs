//! The task that fills one event stream until the stream ends: see [`End`] for the reasons.
//!
//! Events wait in a short queue. A client that reads nothing for [`SLOW_READER`] loses its connection, and may resume later. The
//! task checks its caller twice a second: an expired token or a revoked key ends the stream. Where other servers may change
//! members, a check of a member reads the store, so it comes every five seconds. Not here: which events there are, and their
//! format (`source`).

use super::body::Queue;
use super::source::{Sent, Source, SourceEvent};
use crate::http::call::CallerCheck;
use crate::limits::{CHECK_INTERVAL, KEEP_ALIVE, MEMBER_CHECK_INTERVAL, SLOW_READER};
use crate::readiness::NotReady;
use crate::streams::StreamSlot;
use bytes::Bytes;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tally_service::events::live::TooSlow;
use tally_service::{Caller, CallerKind, Tally};
use tally_wire::api::events;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

/// How long a client may take to read the last events when a stream ends.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a server may be unsure about its lease before its streams end.
const UNSURE_MAX: Duration = Duration::from_secs(5);
/// The pause between two checks of the lease meanwhile.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Streams that send the same live scores are spread over [`SLICES`] slices of this length. The next scores come after 100 ms.
/// So a request waits for the streams of one slice, and not for all of them.
const SPREAD: Duration = Duration::from_millis(1);
const SLICES: usize = 80;

pub(super) struct StreamTask {
    /// Authenticates the caller again.
    caller_check: CallerCheck,
    caller: Caller,
    slot: StreamSlot,
    queue: Queue,
    draining: watch::Receiver<bool>,
    /// When the caller was last authenticated.
    checked_at: Instant,
    /// The number of reloads when the stream began.
    reloads: u64,
    losses: u64,
}

/// Why an event stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client has disconnected.
    Disconnected,
    /// The client does not read.
    Slow,
    /// The database has lost commits, and sent events may be among them.
    Lost,
    /// The server drains or cannot read its store, the caller has lost its permission, or the subject is deleted.
    Over,
}

impl StreamTask {
    pub(super) fn new(caller_check: CallerCheck, caller: Caller, slot: StreamSlot, queue: Queue) -> Self {
        let draining = caller_check.readiness.draining();
        let (reloads, losses) = (caller_check.readiness.reloads(), caller_check.readiness.losses());
        Self { caller_check, caller, slot, queue, draining, checked_at: Instant::now(), reloads, losses }
    }

    /// Fills the stream until it ends.
    pub(super) async fn run(mut self, mut source: Source) {
        let open = self.caller_check.readiness.metrics.event_streams.clone();
        open.inc();
        let end = match self.fill(&mut source).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        drop(source);
        if end == End::Lost {
            // The stream ends even if this event cannot be sent.
            let _ = self.send(events::lost().into()).await;
        }
        if end == End::Slow {
            self.caller_check.readiness.metrics.event_streams_slow.inc();
            self.caller_check.peer.cut.notify_one();
        }
        let Queue { send, closed } = self.queue;
        drop(send);
        // A client that does not read within this time is disconnected.
        if matches!(end, End::Over | End::Lost) && timeout(END_TIMEOUT, closed).await.is_err() {
            self.caller_check.peer.cut.notify_one();
        }
        open.dec();
    }

    async fn fill(&mut self, source: &mut Source) -> Result<Infallible, End> {
        self.send_event(source.beginning()).await?;
        self.catch_up(source).await?;
        let mut checks = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        loop {
            let mut draining = self.draining.clone();
            tokio::select! {
                biased;
                () = drain_begun(&mut draining) => return Err(End::Over),
                () = self.queue.send.closed() => return Err(End::Disconnected),
                _ = checks.tick() => {
                    self.check(source).await?;
                    continue;
                }
                next = source.next() => match next.map_err(|TooSlow| End::Slow)? {
                    SourceEvent::Now(event) => self.send_event(event).await?,
                    SourceEvent::Stored => self.catch_up(source).await?,
                },
                () = sleep_until(last + KEEP_ALIVE) => {
                    self.send(Bytes::from_static(events::KEEP_ALIVE.as_bytes())).await?;
                }
            }
            last = Instant::now();
        }
    }

    /// Sends the stored events that were not sent.
    async fn catch_up(&mut self, source: &mut Source) -> Result<(), End> {
        loop {
            let tally = self.check(source).await?;
            let Ok((found, more)) = source.stored(&tally).await else { return Err(End::Over) };
            for event in found {
                self.send_event(event).await?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Checks that the caller still has its permission, and that the subject exists. Returns the service for the next read.
    async fn check(&mut self, source: &Source) -> Result<Arc<Tally>, End> {
        let tally = self.wait_until_ready().await?;
        let asks = matches!(self.caller.kind, CallerKind::Member(_)) && tally.has_others();
        let may = if asks && self.checked_at.elapsed() < MEMBER_CHECK_INTERVAL {
            self.caller_check.token_is_valid()
        } else {
            self.checked_at = Instant::now();
            self.caller_check.still_may(&self.caller).await
        };
        if may && source.exists(&tally) { Ok(tally) } else { Err(End::Over) }
    }

    /// Waits a limited time while the server is unsure about its lease: another server may have revoked a key.
    async fn wait_until_ready(&self) -> Result<Arc<Tally>, End> {
        let began = Instant::now();
        loop {
            let ready = self.caller_check.readiness.ready();
            // This check comes after `ready`, because a reload before it would make `ready` return the new service.
            let readiness = &self.caller_check.readiness;
            if readiness.reloads() != self.reloads {
                // After lost commits, or with another server that leads: only the former takes back what was sent.
                return Err(if readiness.losses() == self.losses { End::Over } else { End::Lost });
            }
            match ready {
                Ok(tally) => return Ok(tally),
                Err(NotReady::Lost(_)) => return Err(End::Lost),
                Err(NotReady::Unsure) if began.elapsed() < UNSURE_MAX => {
                    tokio::time::sleep(RETRY_PAUSE).await
                }
                Err(_) => return Err(End::Over),
            }
        }
    }

    /// Sends and counts an event: live scores in the slice of this stream, and no event while the lease is unsure.
    async fn send_event(&mut self, Sent { event, head, bytes, made }: Sent) -> Result<(), End> {
        if let Some(made) = made {
            sleep_until(
                Instant::from_std(made) + SPREAD * u32::try_from(self.slot.number % SLICES).unwrap_or(0),
            )
            .await;
        }
        self.wait_until_ready().await?;
        if let Some(head) = head {
            self.send(head).await?;
        }
        self.send(bytes).await?;
        if !event.is_empty() {
            self.caller_check.readiness.metrics.events_sent(event).inc();
        }
        Ok(())
    }

    /// Puts bytes into the queue. A queue that stays full for [`SLOW_READER`] ends the stream.
    async fn send(&mut self, bytes: Bytes) -> Result<(), End> {
        tokio::select! {
            biased;
            sent = timeout(SLOW_READER, self.queue.send.send(bytes)) => match sent {
                Ok(sent) => sent.map_err(|_| End::Disconnected),
                Err(_) => Err(End::Slow),
            },
            () = drain_begun(&mut self.draining) => Err(End::Over),
        }
    }
}

/// Waits until the server drains.
async fn drain_begun(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        // The sender is dropped, and so is the server.
        std::future::pending::<()>().await;
    }
}
