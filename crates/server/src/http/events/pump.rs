//! The task that fills one stream until somebody ends it: the client, its rights, the server, or its own slowness.
//!
//! What is sent waits in a short queue. A client that takes nothing for a while is not waited for: its connection is closed,
//! and it may come again and go on. Whether the caller still may listen is asked like for any request, twice a second, so a
//! token that has ended and a key that was revoked end the stream. Not here: how an event looks.

use super::body::Queue;
use super::source::{Heard, Sent, Source};
use crate::http::call::Presence;
use crate::limits::{JUDGED_AGAIN, KEEP_ALIVE, MEMBER_JUDGED_AGAIN, SLOW_READER};
use crate::readiness::NotReady;
use crate::streams::Seat;
use bytes::Bytes;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tally_service::events::live::TooSlow;
use tally_service::{Caller, CallerKind, Tally};
use tally_wire::api::events;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

/// How long what was sent last may take to be read when a stream ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a server may not know whether it is still one that answers before its streams end.
const UNSURE_MAX: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// What many streams send at once they send a little apart, within the time to the next: else requests would wait for all of them.
const SPREAD: Duration = Duration::from_millis(1);
const SLICES: usize = 80;

/// One stream.
pub(super) struct Pump {
    presence: Presence,
    caller: Caller,
    seat: Seat,
    queue: Queue,
    draining: watch::Receiver<bool>,
    /// When its caller was judged last.
    judged: Instant,
    /// How often the store had been read anew when it began.
    reloads: u64,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client has gone.
    Gone,
    /// The client does not read.
    Slow,
    /// The database has lost commits, and what was told may be gone.
    Lost,
    /// The server is going down, the caller may not listen any more, or what it listened to is gone.
    Over,
}

impl Pump {
    pub(super) fn new(presence: Presence, caller: Caller, seat: Seat, queue: Queue) -> Self {
        let draining = presence.gate.draining();
        let reloads = presence.gate.reloads();
        Self { presence, caller, seat, queue, draining, judged: Instant::now(), reloads }
    }

    /// Fills the stream until its end.
    pub(super) async fn run(mut self, mut source: Source) {
        let open = self.presence.gate.metrics.event_streams.clone();
        open.inc();
        let end = match self.fill(&mut source).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        drop(source);
        if end == End::Lost {
            // Whether that can be sent or not, the stream ends.
            let _ = self.send(events::lost().into()).await;
        }
        if end == End::Slow {
            self.presence.gate.metrics.event_streams_slow.inc();
            self.presence.peer.cut.notify_one();
        }
        let Queue { send, gone } = self.queue;
        drop(send);
        // Whoever does not read has nothing to wait for.
        if matches!(end, End::Over | End::Lost) && timeout(LAST_WORDS, gone).await.is_err() {
            self.presence.peer.cut.notify_one();
        }
        open.dec();
    }

    async fn fill(&mut self, source: &mut Source) -> Result<Infallible, End> {
        self.tell(source.beginning()).await?;
        self.catch_up(source).await?;
        let mut judged = interval_at(Instant::now() + JUDGED_AGAIN, JUDGED_AGAIN);
        judged.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        loop {
            let mut draining = self.draining.clone();
            tokio::select! {
                biased;
                () = has_begun(&mut draining) => return Err(End::Over),
                () = self.queue.send.closed() => return Err(End::Gone),
                _ = judged.tick() => {
                    self.check(source).await?;
                    continue;
                }
                heard = source.heard() => match heard.map_err(|TooSlow| End::Slow)? {
                    Heard::Now(event) => self.tell(event).await?,
                    Heard::Stored => self.catch_up(source).await?,
                },
                () = sleep_until(last + KEEP_ALIVE) => {
                    self.send(Bytes::from_static(events::KEEP_ALIVE.as_bytes())).await?;
                }
            }
            last = Instant::now();
        }
    }

    /// Sends what is stored and was not sent.
    async fn catch_up(&mut self, source: &mut Source) -> Result<(), End> {
        loop {
            let tally = self.check(source).await?;
            let Ok((found, more)) = source.stored(&tally).await else { return Err(End::Over) };
            for event in found {
                self.tell(event).await?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether the caller still may listen, and what it listens to is still there.
    async fn check(&mut self, source: &Source) -> Result<Arc<Tally>, End> {
        let tally = self.sure().await?;
        let asks = matches!(self.caller.kind, CallerKind::Member(_)) && tally.has_others();
        let may = if asks && self.judged.elapsed() < MEMBER_JUDGED_AGAIN {
            self.presence.token_holds()
        } else {
            self.judged = Instant::now();
            self.presence.still_may(&self.caller).await
        };
        if may && source.is_there(&tally) { Ok(tally) } else { Err(End::Over) }
    }

    /// Waits until what is known here is the present, for as long as that is a pause and no end: a key may have been revoked elsewhere.
    async fn sure(&self) -> Result<Arc<Tally>, End> {
        let began = Instant::now();
        loop {
            let ready = self.presence.gate.ready();
            // After that: it may be another service by now.
            if self.presence.gate.reloads() != self.reloads {
                return Err(End::Lost);
            }
            match ready {
                Ok(tally) => return Ok(tally),
                Err(NotReady::Lost(_)) => return Err(End::Lost),
                Err(NotReady::Unsure) if began.elapsed() < UNSURE_MAX => tokio::time::sleep(LOOK_PAUSE).await,
                Err(_) => return Err(End::Over),
            }
        }
    }

    /// Sends an event, and counts it.
    async fn tell(&mut self, Sent { event, head, bytes, made }: Sent) -> Result<(), End> {
        if let Some(made) = made {
            sleep_until(
                Instant::from_std(made) + SPREAD * u32::try_from(self.seat.number % SLICES).unwrap_or(0),
            )
            .await;
        }
        self.sure().await?;
        if let Some(head) = head {
            self.send(head).await?;
        }
        self.send(bytes).await?;
        if !event.is_empty() {
            self.presence.gate.metrics.events_sent(event).inc();
        }
        Ok(())
    }

    /// Puts something into the queue, where there is room soon.
    async fn send(&mut self, bytes: Bytes) -> Result<(), End> {
        tokio::select! {
            biased;
            sent = timeout(SLOW_READER, self.queue.send.send(bytes)) => match sent {
                Ok(sent) => sent.map_err(|_| End::Gone),
                Err(_) => Err(End::Slow),
            },
            () = has_begun(&mut self.draining) => Err(End::Over),
        }
    }
}

/// Waits until the server goes down.
async fn has_begun(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        // Whoever would say it is gone, and everything with it.
        std::future::pending::<()>().await;
    }
}
