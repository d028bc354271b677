//! The bytes of one connection: read, decoded, answered in one write.
//!
//! The connection runs all commands that have arrived before it writes. While a client is slow to read, the connection
//! still reads its input, up to a limit. Many clients send a whole pipeline before they read the first reply.
//!
//! The server closes a connection that holds memory without progress: of its command, of reading replies (see
//! `progress.rs`), or of authentication. It closes the largest one when all buffers together exceed their limit.

use super::args::{Args, Log};
use super::budget::WorkBudget;
use super::buffers::{BufferUse, FREE_BYTES};
use super::counts::Class;
use super::error;
use super::session::{NextAction, Session};
use super::spec;
use crate::progress::PROGRESS_BYTES;
use crate::traces::Pipeline;
use bytes::BufMut;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tally_wire::resp::{DecodeLimits, Decoder, Encoder, Protocol, ProtocolError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;

/// The maximum unparsed input of one connection.
const INPUT_MAX: usize = 64 << 20;
/// The same before authentication: more than the largest command that is accepted then.
const INPUT_MAX_BEFORE_AUTH: usize = 256 << 10;
/// The minimum free space for reading.
const READ_BYTES: usize = 16 << 10;
/// The maximum of one read, and of one write.
const PIECE_BYTES: usize = 256 << 10;
/// A larger input grows on another thread.
const COPY_BYTES: usize = 1 << 20;
/// Empty buffers larger than this are freed.
const KEPT_BYTES: usize = 64 << 10;
/// The same for the collected commands.
const KEPT_LOG_BYTES: usize = 256 << 10;
/// Pending replies of this size are written even in the middle of a pipeline.
const WRITE_BYTES: usize = 256 << 10;
/// The maximum number of commands that go to the lane together.
const RUN_COMMANDS_MAX: usize = 512;
/// The maximum of their bytes.
const RUN_BYTES_MAX: usize = 1 << 20;

/// The buffers of a connection.
struct Pipe<S> {
    stream: S,
    input: Vec<u8>,
    /// The start of the first command that has not run.
    start: usize,
    out: Vec<u8>,
    /// Whether input arrived during a write: it may not have been decoded.
    fresh: bool,
    ended: bool,
    /// The maximum unparsed input.
    most: usize,
    /// The deadline for reading replies before authentication.
    until: Option<Instant>,
    /// When the unfinished command last made progress, and how many bytes it had then.
    unfinished: Option<(Instant, usize)>,
    /// Bytes that the session holds beside these buffers.
    beside: usize,
    holding: BufferUse,
}

/// The bytes of one read or write.
#[derive(Clone, Copy)]
enum Io {
    Read(usize),
    Written(usize),
}

/// Serves a connection to its end.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut session: Session,
    stream: S,
    mut stopped: watch::Receiver<bool>,
) {
    let mut pipe =
        Pipe::new(stream, BufferUse::new(Arc::clone(&session.listener), Arc::clone(&session.client)));
    if session.denied() {
        session.refused("connection", None);
        Encoder::new(&mut pipe.out, session.protocol).error(error::DENIED);
        let _ = pipe.write(&mut session.budget).await;
        return;
    }
    let mut decoder = Decoder::new();
    let mut log = Arc::new(Log::default());
    let client = Arc::clone(&session.client);
    loop {
        pipe.expect(&session);
        if !std::mem::take(&mut pipe.fresh) {
            if pipe.make_room().await.is_err() {
                return;
            }
            let before = pipe.input.len();
            let late = pipe.late(&session);
            let read = tokio::select! {
                biased;
                read = pipe.read() => read,
                _ = stopped.changed() => return,
                () = client.closing.notified() => return,
                () = until(late) => {
                    // Keys may have been loaded meanwhile, or the first key created or revoked.
                    session.reauthenticate();
                    if pipe.is_late(&session, late) {
                        return;
                    }
                    continue;
                }
            };
            if read.is_err() || pipe.ended {
                return;
            }
            session.budget.bytes(pipe.input.len() - before);
        }
        session.budget.yield_if_spent().await;
        let arrived = session.heard();
        session.begin();
        let open = match Pipeline::begin(session.listener.readiness.traces.as_ref()) {
            None => round(&mut session, &mut pipe, &mut decoder, &mut log, None).await,
            Some(sampled) => {
                Box::pin(sampled_round(&mut session, &mut pipe, &mut decoder, &mut log, sampled)).await
            }
        };
        session.end();
        session.answered(arrived);
        pipe.beside = decoder.held()
            + log.capacity()
            + session.multi.as_ref().map_or(0, |multi| multi.queue.capacity());
        if !pipe.count() {
            return;
        }
        let written = pipe.write(&mut session.budget).await;
        if !open || written.is_err() || *stopped.borrow() {
            return;
        }
        // A client that never stops sending must authenticate, too.
        if session.is_unauthenticated() && pipe.until.is_some_and(|until| until <= Instant::now()) {
            return;
        }
    }
}

/// Runs every complete command that has arrived. Returns whether the connection stays open.
async fn round<S: AsyncRead + AsyncWrite + Unpin>(
    session: &mut Session,
    pipe: &mut Pipe<S>,
    decoder: &mut Decoder,
    log: &mut Arc<Log>,
    mut sampled: Option<&mut Pipeline>,
) -> bool {
    let mut commands = 0;
    let open = loop {
        let bounds = if session.caller().is_some() { DecodeLimits::FULL } else { DecodeLimits::BEFORE_AUTH };
        let length = match decoder.next(&pipe.input[pipe.start..], &bounds) {
            Ok(Some(length)) => length,
            Ok(None) => break true,
            Err(ProtocolError::Foreign) => break false,
            Err(error) => {
                flush(session, log, &mut pipe.out).await;
                Encoder::new(&mut pipe.out, session.protocol).error(format!("ERR {error}"));
                break false;
            }
        };
        let args = Args::Wire(decoder, &pipe.input[pipe.start..]);
        if args.len() > 0 {
            commands += 1;
            if let Some(sampled) = &mut sampled {
                sampled.command(spec::find(args.get(0)).map_or("unknown", |spec| spec.name));
            }
            // An unauthenticated client that does not speak RESP gets no second line.
            let stranger = session.caller().is_none() && decoder.is_inline();
            let leaves = stranger && spec::find(args.get(0)).is_none();
            let unshared = Arc::get_mut(log).expect("only this task holds the log between runs");
            if let NextAction::Alone(spec) = session.take(args, unshared, &mut pipe.out) {
                flush(session, log, &mut pipe.out).await;
                let start = pipe.out.len();
                let open = session.alone(spec, args, &mut pipe.out).await;
                session.pipeline_counts.answered(Class::of(Some(spec)), &pipe.out[start..]);
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
        if log.len() >= RUN_COMMANDS_MAX || log.bytes() >= RUN_BYTES_MAX {
            flush(session, log, &mut pipe.out).await;
        }
        session.budget.command();
        session.budget.yield_if_spent().await;
        if pipe.out.len() >= WRITE_BYTES && pipe.write(&mut session.budget).await.is_err() {
            break false;
        }
    };
    flush(session, log, &mut pipe.out).await;
    session.listener.commands.fetch_add(commands, Ordering::Relaxed);
    pipe.compact();
    open
}

/// The same for a sampled pipeline. Its future is boxed, because it is rare and would make every connection larger.
async fn sampled_round<S: AsyncRead + AsyncWrite + Unpin>(
    session: &mut Session,
    pipe: &mut Pipe<S>,
    decoder: &mut Decoder,
    log: &mut Arc<Log>,
    mut sampled: Pipeline,
) -> bool {
    let sink = sampled.sink();
    let round = round(session, pipe, decoder, log, Some(&mut sampled));
    let open = tally_service::traces::with_sink(sink, round).await;
    let protocol = match session.protocol {
        Protocol::Resp2 => "2",
        Protocol::Resp3 => "3",
    };
    sampled.answered(session.client.peer.ip(), protocol, &pipe.out);
    open
}

/// Runs the collected commands.
async fn flush(session: &mut Session, log: &mut Arc<Log>, out: &mut Vec<u8>) {
    if log.is_empty() {
        return;
    }
    // A pipeline is no transaction.
    let _done = session.run(log, false, out).await;
    // A read that did not run, because the lane refused the batch, may still hold the log.
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
    fn new(stream: S, holding: BufferUse) -> Self {
        Self {
            stream,
            input: Vec::new(),
            start: 0,
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

    /// Sets the input limit and the deadlines, from the authentication and the progress of the current command.
    fn expect(&mut self, session: &Session) {
        let patience = session.listener.settings.auth_timeout;
        (self.most, self.until) = if session.is_unauthenticated() {
            (INPUT_MAX_BEFORE_AUTH, self.until.or_else(|| Some(Instant::now() + patience)))
        } else {
            (INPUT_MAX, None)
        };
        self.unfinished = match self.unfinished {
            _ if self.input.is_empty() => None,
            Some((since, had)) if self.input.len() < had + PROGRESS_BYTES => Some((since, had)),
            _ => Some((Instant::now(), self.input.len())),
        };
    }

    /// The time at which the connection closes if no bytes arrive.
    fn late(&self, session: &Session) -> Option<Instant> {
        let settings = &session.listener.settings;
        let idle = settings.idle_timeout.map(|time| Instant::now() + time);
        let unfinished = self.unfinished.map(|(since, _)| since + settings.command_timeout);
        [idle, unfinished, self.until].into_iter().flatten().min()
    }

    /// Whether the connection closes at this time: not if the client has authenticated meanwhile.
    fn is_late(&self, session: &Session, late: Option<Instant>) -> bool {
        late != self.until || session.is_unauthenticated()
    }

    /// Counts the buffered bytes. Returns whether they are within the limit.
    fn count(&mut self) -> bool {
        self.holding.set(self.input.capacity() + self.out.capacity() + self.beside)
    }

    /// Makes room for reading. The buffer grows with the received bytes, so a large value is not copied again and again.
    async fn make_room(&mut self) -> io::Result<()> {
        if self.input.capacity() - self.input.len() >= READ_BYTES {
            return Ok(());
        }
        let room = self.input.len() + READ_BYTES;
        if self.input.len() <= COPY_BYTES {
            self.input.reserve_exact(room);
        } else {
            // New memory may take a second for each gigabyte, and other connections share this thread.
            let mut input = std::mem::take(&mut self.input);
            let grow = move || (input.reserve_exact(room), input).1;
            self.input = tokio::task::spawn_blocking(grow).await?;
        }
        if self.input.capacity() > FREE_BYTES && !self.count() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }

    /// Waits for bytes.
    async fn read(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.input.len() - self.start >= self.most {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        // Memory that has no bytes yet is not cleared: clearing a large buffer takes its thread longer than reading.
        let mut free = (&mut self.input).limit(PIECE_BYTES);
        let read = pin!(self.stream.read_buf(&mut free)).poll(cx);
        read.map_ok(|bytes| self.ended |= bytes == 0)
    }

    /// Writes a piece of the replies, or reads one while the client is slow to read.
    fn poll_io(&mut self, cx: &mut Context<'_>, written: usize) -> Poll<io::Result<Io>> {
        let end = self.out.len().min(written + PIECE_BYTES);
        match Pin::new(&mut self.stream).poll_write(cx, &self.out[written..end]) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(some) => Poll::Ready(some.map(Io::Written)),
            Poll::Pending if !self.reads_during_write() => Poll::Pending,
            Poll::Pending => {
                let before = self.input.len();
                self.poll_read(cx).map_ok(|()| Io::Read(self.input.len() - before))
            }
        }
    }

    fn reads_during_write(&self) -> bool {
        !self.ended && self.input.len() - self.start < self.most / 2
    }

    /// Writes all replies, and reads meanwhile.
    async fn write(&mut self, budget: &mut WorkBudget) -> io::Result<()> {
        if self.out.len() > KEPT_BYTES && !self.count() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let (client, late) = (Arc::clone(&self.holding.client), self.until);
        let mut written = 0;
        while written < self.out.len() {
            if self.reads_during_write() {
                self.make_room().await?;
            }
            let moved = poll_fn(|cx| self.poll_io(cx, written));
            let moved = tokio::select! {
                biased;
                moved = moved => moved?,
                () = client.closing.notified() => return Err(io::ErrorKind::OutOfMemory.into()),
                () = until(late) => return Err(io::ErrorKind::TimedOut.into()),
            };
            let (Io::Read(bytes) | Io::Written(bytes)) = moved;
            match moved {
                Io::Read(_) => self.fresh = true,
                Io::Written(bytes) => written += bytes,
            }
            budget.bytes(bytes);
            budget.yield_if_spent().await;
        }
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
            self.count();
        }
        poll_fn(|cx| Pin::new(&mut self.stream).poll_flush(cx)).await
    }

    /// Drops the input of finished commands.
    fn compact(&mut self) {
        if self.start > 0 {
            self.unfinished = None;
        }
        self.input.drain(..self.start);
        self.start = 0;
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = Vec::new();
        }
    }
}
