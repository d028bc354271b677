//! The bytes of one connection: read, decoded, answered in one write.
//!
//! All commands that have arrived are taken before anything is written. While a client is slow to read, what it goes on
//! sending is still taken in, up to a bound: many clients send a whole pipeline before they read the first reply.
//!
//! A connection ends that takes memory and does not get on: its command does not grow, its replies are not read (see
//! `progress.rs`), no key is presented, or all buffers together hold too much and its own are the largest.

use super::args::{Args, Log};
use super::buffers::{FREE_BYTES, Holding};
use super::counts::Class;
use super::error;
use super::session::{Session, Taken};
use super::spec;
use crate::progress::PROGRESS_BYTES;
use crate::traces::Pipeline;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tally_wire::resp::{Bounds, Decoder, Encoder, Protocol, ProtocolError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

/// Unparsed input of one connection.
const INPUT_MAX: usize = 64 << 20;
/// The same before a key is presented: more than the largest command that is taken then.
const INPUT_MAX_BEFORE_AUTH: usize = 256 << 10;
/// Room for reading that a connection always has.
const READ_BYTES: usize = 16 << 10;
/// Buffers that grew beyond this are given back when they are empty.
const KEPT_BYTES: usize = 64 << 10;
/// The same of the commands that are gathered.
const KEPT_LOG_BYTES: usize = 256 << 10;
/// Replies are written when there are so many bytes, wherever the pipeline stands.
const WRITE_BYTES: usize = 256 << 10;
/// Commands that go to the lane together.
const GATHERED_MAX: usize = 512;
/// Their bytes.
const GATHERED_BYTES: usize = 1 << 20;

/// A connection's buffers.
struct Pipe<S> {
    stream: S,
    /// Always as long as its memory, so that nothing is cleared before it is read into.
    input: Vec<u8>,
    /// Where the first command begins that is not done.
    start: usize,
    /// Where what has arrived ends.
    filled: usize,
    out: Vec<u8>,
    /// Whether something came while replies were written: nobody may have looked at it.
    fresh: bool,
    ended: bool,
    /// Bytes of unparsed input that are taken.
    most: usize,
    /// Until when replies must have been read, where no key was presented.
    until: Option<Instant>,
    /// Since when a command has been unfinished, and what had arrived of it then.
    unfinished: Option<(Instant, usize)>,
    /// Bytes that the session holds beside these buffers.
    beside: usize,
    holding: Holding,
}

/// Serves a connection to its end.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut session: Session,
    stream: S,
    mut stopped: watch::Receiver<bool>,
) {
    let mut pipe = Pipe::new(stream, Holding::new(Arc::clone(&session.door), Arc::clone(&session.client)));
    if session.denied() {
        session.refused("connection", None);
        Encoder::new(&mut pipe.out, session.protocol).error(error::DENIED);
        let _ = pipe.write().await;
        return;
    }
    let mut decoder = Decoder::new();
    let mut log = Arc::new(Log::default());
    let client = Arc::clone(&session.client);
    loop {
        pipe.expect(&session);
        if !std::mem::take(&mut pipe.fresh) {
            let late = pipe.late(&session);
            let read = tokio::select! {
                biased;
                read = pipe.read() => read,
                _ = stopped.changed() => return,
                () = client.closing.notified() => return,
                () = until(late) => {
                    // Keys may have been read meanwhile, or the first one made or revoked.
                    session.judge();
                    if pipe.is_late(&session, late) {
                        return;
                    }
                    continue;
                }
            };
            if read.is_err() || pipe.ended {
                return;
            }
        }
        let arrived = session.heard();
        session.begin();
        let open = match Pipeline::begin(session.door.gate.traces.as_ref()) {
            None => round(&mut session, &mut pipe, &mut decoder, &mut log, None).await,
            Some(followed) => {
                Box::pin(followed_round(&mut session, &mut pipe, &mut decoder, &mut log, followed)).await
            }
        };
        session.end();
        session.answered(arrived);
        pipe.beside =
            decoder.held() + log.bytes() + session.multi.as_ref().map_or(0, |multi| multi.queue.bytes());
        if !pipe.count() {
            return;
        }
        let written = pipe.write().await;
        if !open || written.is_err() || *stopped.borrow() {
            return;
        }
        // A client that never stops sending has to present a key, too.
        if session.is_unauthenticated() && pipe.until.is_some_and(|until| until <= Instant::now()) {
            return;
        }
    }
}

/// Does every whole command that has arrived; whether the connection stays.
async fn round<S: AsyncRead + AsyncWrite + Unpin>(
    session: &mut Session,
    pipe: &mut Pipe<S>,
    decoder: &mut Decoder,
    log: &mut Arc<Log>,
    mut followed: Option<&mut Pipeline>,
) -> bool {
    let mut commands = 0;
    let open = loop {
        let bounds = if session.caller().is_some() { Bounds::FULL } else { Bounds::BEFORE_AUTH };
        let length = match decoder.next(&pipe.input[pipe.start..pipe.filled], &bounds) {
            Ok(Some(length)) => length,
            Ok(None) => break true,
            Err(ProtocolError::Foreign) => break false,
            Err(wrong) => {
                flush(session, log, &mut pipe.out).await;
                Encoder::new(&mut pipe.out, session.protocol).error(format!("ERR {wrong}"));
                break false;
            }
        };
        let args = Args::Wire(decoder, &pipe.input[pipe.start..pipe.filled]);
        if args.len() > 0 {
            commands += 1;
            if let Some(followed) = &mut followed {
                followed.command(spec::find(args.get(0)).map_or("unknown", |spec| spec.name));
            }
            // A stranger that does not speak the protocol gets no second line.
            let stranger = session.caller().is_none() && decoder.is_inline();
            let leaves = stranger && spec::find(args.get(0)).is_none();
            let gathered = Arc::get_mut(log).expect("nobody else holds the log between runs");
            if let Taken::Alone(spec) = session.take(args, gathered, &mut pipe.out) {
                flush(session, log, &mut pipe.out).await;
                let start = pipe.out.len();
                let open = session.alone(spec, args, &mut pipe.out).await;
                session.burst.answered(Class::of(Some(spec)), &pipe.out[start..]);
                if !open {
                    break false;
                }
            }
            if leaves {
                flush(session, log, &mut pipe.out).await;
                break false;
            }
        }
        pipe.start += length;
        if log.len() >= GATHERED_MAX || log.bytes() >= GATHERED_BYTES {
            flush(session, log, &mut pipe.out).await;
        }
        if pipe.out.len() >= WRITE_BYTES && pipe.write().await.is_err() {
            break false;
        }
    };
    flush(session, log, &mut pipe.out).await;
    session.door.commands.fetch_add(commands, Ordering::Relaxed);
    pipe.compact();
    open
}

/// The same, and tells of it. It stands in a box, because it is rare and would make every connection larger.
async fn followed_round<S: AsyncRead + AsyncWrite + Unpin>(
    session: &mut Session,
    pipe: &mut Pipe<S>,
    decoder: &mut Decoder,
    log: &mut Arc<Log>,
    mut followed: Pipeline,
) -> bool {
    let sink = followed.sink();
    let round = round(session, pipe, decoder, log, Some(&mut followed));
    let open = tally_service::traces::follow(sink, round).await;
    let protocol = match session.protocol {
        Protocol::Resp2 => "2",
        Protocol::Resp3 => "3",
    };
    followed.answered(session.client.peer.ip(), protocol, &pipe.out);
    open
}

/// Does what was gathered.
async fn flush(session: &mut Session, log: &mut Arc<Log>, out: &mut Vec<u8>) {
    if log.is_empty() {
        return;
    }
    // A pipeline is no transaction.
    let _done = session.run(log, false, out).await;
    // A question that was not asked, because everything was refused, may still hold it.
    match Arc::get_mut(log) {
        Some(log) if log.bytes() <= KEPT_LOG_BYTES => log.clear(),
        _ => *log = Arc::new(Log::default()),
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pipe<S> {
    fn new(stream: S, holding: Holding) -> Self {
        Self {
            stream,
            input: Vec::new(),
            start: 0,
            filled: 0,
            out: Vec::new(),
            fresh: false,
            ended: false,
            most: INPUT_MAX_BEFORE_AUTH,
            until: None,
            unfinished: None,
            beside: 0,
            holding,
        }
    }

    /// Sets what is taken of this caller, and notes how its command gets on.
    fn expect(&mut self, session: &Session) {
        let patience = session.door.settings.auth_timeout;
        (self.most, self.until) = if session.is_unauthenticated() {
            (INPUT_MAX_BEFORE_AUTH, self.until.or_else(|| Some(Instant::now() + patience)))
        } else {
            (INPUT_MAX, None)
        };
        self.unfinished = match self.unfinished {
            _ if self.filled == 0 => None,
            Some((since, had)) if self.filled < had + PROGRESS_BYTES => Some((since, had)),
            _ => Some((Instant::now(), self.filled)),
        };
    }

    /// When the connection ends if nothing comes.
    fn late(&self, session: &Session) -> Option<Instant> {
        let settings = &session.door.settings;
        let idle = settings.idle_timeout.map(|time| Instant::now() + time);
        let unfinished = self.unfinished.map(|(since, _)| since + settings.command_timeout);
        [idle, unfinished, self.until].into_iter().flatten().min()
    }

    /// Whether it ends, where that time is over: not if the client has presented a key by now.
    fn is_late(&self, session: &Session, late: Option<Instant>) -> bool {
        late != self.until || session.is_unauthenticated()
    }

    /// Counts what it holds; whether it may.
    fn count(&mut self) -> bool {
        self.holding.set(self.input.len() + self.out.capacity() + self.beside)
    }

    /// Waits for bytes.
    async fn read(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.filled - self.start >= self.most {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        if self.input.len() - self.filled < READ_BYTES {
            // Grows with what has come, so that a large value is not copied again and again.
            self.input.resize(self.filled * 2 + READ_BYTES, 0);
            if self.input.len() > FREE_BYTES && !self.count() {
                return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
            }
        }
        let mut buffer = ReadBuf::new(&mut self.input[self.filled..]);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
        let got = buffer.filled().len();
        self.filled += got;
        if matches!(read, Poll::Ready(Ok(()))) && got == 0 {
            self.ended = true;
        }
        read
    }

    /// Writes all replies; takes in what comes meanwhile.
    async fn write(&mut self) -> io::Result<()> {
        if self.out.len() > KEPT_BYTES && !self.count() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let (client, late) = (Arc::clone(&self.holding.client), self.until);
        let mut written = 0;
        while written < self.out.len() {
            let some = poll_fn(|cx| {
                if let Poll::Ready(some) = Pin::new(&mut self.stream).poll_write(cx, &self.out[written..]) {
                    return Poll::Ready(some);
                }
                while !self.ended && self.filled - self.start < self.most / 2 {
                    match self.poll_read(cx) {
                        Poll::Ready(Ok(())) => self.fresh = true,
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => break,
                    }
                }
                Poll::Pending
            });
            let some = tokio::select! {
                biased;
                some = some => some?,
                () = client.closing.notified() => return Err(io::ErrorKind::OutOfMemory.into()),
                () = until(late) => return Err(io::ErrorKind::TimedOut.into()),
            };
            if some == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            written += some;
        }
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
            self.count();
        }
        poll_fn(|cx| Pin::new(&mut self.stream).poll_flush(cx)).await
    }

    /// Drops what was done.
    fn compact(&mut self) {
        if self.start > 0 {
            self.unfinished = None;
        }
        self.input.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.filled == 0 && self.input.len() > KEPT_BYTES {
            self.input = Vec::new();
        }
    }
}
