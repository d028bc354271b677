//! Reads that wait for the store or for Redis: they run concurrently on blocking threads, and their replies keep the order.
//!
//! A pipeline of such reads costs little more than one of them, because reads of Redis share one connection. The reads of a
//! transaction without a change run here too, as one. They see one state, and neither the lane nor the other connections of
//! their thread wait for them. Not here: which reads wait, see `target.rs`.

use super::args::{Args, Log};
use super::error::{self, ErrorReply};
use super::spec::{self, CommandKind, Spec};
use super::target::{KeyTarget, ReadCommand, ReadContext};
use std::collections::VecDeque;
use std::sync::Arc;
use tally_service::scores::rankings::{Rankings, TransactionWindows};
use tally_service::scores::steps::ReadStep;
use tally_service::{Failure, Fault, Tally};
use tally_wire::resp::{Encoder, Protocol, Quota};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Limits concurrent read transactions of all connections: each may produce as many bytes as one reply may have.
static TRANSACTIONS: Semaphore = Semaphore::const_new(4);

/// The bytes of replies that are made at once with the rankings locked: less than a millisecond.
const BRIEF_BYTES: usize = 1 << 20;

/// The maximum number of concurrent reads of one pipeline.
const AT_ONCE: usize = 32;

/// Running reads, and the replies of finished ones.
#[derive(Default)]
pub(super) struct BlockingReads {
    running: VecDeque<JoinHandle<Result<Vec<u8>, Failure>>>,
    replies: VecDeque<Vec<u8>>,
}

impl BlockingReads {
    /// Starts a read; waits for the oldest if too many run.
    pub(super) async fn start(&mut self, mut step: ReadStep, protocol: Protocol) {
        if self.running.len() >= AT_ONCE {
            self.wait(protocol).await;
        }
        let read = move || Ok(step.run(&Rankings::FREE, &mut Vec::new()));
        self.running.push_back(tokio::spawn(tally_service::blocking(read)));
    }

    /// Runs the reads of a transaction without a change.
    pub(super) async fn run_transaction(
        &mut self,
        tally: error::Result<Arc<Tally>>,
        (log, which): (&Arc<Log>, Vec<usize>),
        (protocol, quota): (Protocol, &Arc<Quota>),
    ) {
        let (log, quota, count) = (Arc::clone(log), Arc::clone(quota), which.len());
        let _permit = TRANSACTIONS.acquire().await;
        let replies = match tally {
            Ok(tally) => {
                let run =
                    move || Ok(Transaction { tally: &tally, log: &log, protocol, quota: &quota }.run(&which));
                tally_service::blocking(run).await.map_err(|failure| error::of_failure(&failure))
            }
            Err(error) => Err(error),
        };
        let refused = |error: ErrorReply| {
            let mut out = Vec::new();
            Encoder::new(&mut out, protocol).error(error.as_bytes());
            vec![out; count]
        };
        self.replies.extend(replies.unwrap_or_else(refused));
    }

    /// Waits for all reads.
    pub(super) async fn settle(&mut self, protocol: Protocol) {
        while !self.running.is_empty() {
            self.wait(protocol).await;
        }
    }

    /// The bytes of all replies that are known.
    pub(super) fn bytes(&self) -> usize {
        self.replies.iter().map(Vec::len).sum()
    }

    /// The next reply, in the order in which the reads were started.
    pub(super) fn next(&mut self) -> Vec<u8> {
        self.replies.pop_front().expect("it was settled")
    }

    async fn wait(&mut self, protocol: Protocol) {
        let Some(oldest) = self.running.pop_front() else { return };
        let failure = match oldest.await {
            Ok(Ok(reply)) => return self.replies.push_back(reply),
            Ok(Err(failure)) => failure,
            Err(panicked) => Fault::Broken(panicked.to_string()).into(),
        };
        let mut out = Vec::new();
        Encoder::new(&mut out, protocol).error(error::of_failure(&failure).as_bytes());
        self.replies.push_back(out);
    }
}

/// Creates a read that runs while its batch is published, or on a blocking thread.
pub(super) fn read_step(
    tally: error::Result<Arc<Tally>>,
    (log, at): (&Arc<Log>, usize),
    read: ReadCommand,
    (protocol, quota): (Protocol, &Arc<Quota>),
) -> ReadStep {
    let (log, quota) = (Arc::clone(log), Arc::clone(quota));
    ReadStep::new(move |rankings, out| match &tally {
        Ok(tally) => {
            let context = ReadContext { tally, rankings, protocol, serving: false };
            context.answer(read, Args::Logged(&log, at), out, &quota);
        }
        Err(error) => Encoder::new(out, protocol).error(error.as_bytes()),
    })
}

/// Reads that see one state.
struct Transaction<'a> {
    tally: &'a Tally,
    log: &'a Log,
    protocol: Protocol,
    quota: &'a Quota,
}

/// The replies of a transaction, and the buffer in which each of them grows.
///
/// A reply that grows in a buffer of its own touches twice its memory, while the rankings are locked.
struct Replies<'a> {
    /// The numbers of the commands.
    which: &'a [usize],
    all: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Transaction<'_> {
    /// Returns the replies in order. Reads that wait for the store or for Redis run before the rankings are locked, and so
    /// do those without a key. A thread with locked rankings must not wait for anything else.
    ///
    /// Writes wait for locked rankings, and a large reply takes most of its time for new memory. So large ones are made
    /// twice: first without a lock, which leaves them their memory.
    fn run(&self, which: &[usize]) -> Vec<Vec<u8>> {
        let mut windows = TransactionWindows::default();
        let mut replies = Replies { which, all: vec![Vec::new(); which.len()], buffer: Vec::new() };
        let (covered, free): (Vec<_>, Vec<_>) =
            (0..which.len()).partition(|at| self.add_windows(which[*at], &mut windows));
        self.each(free, &Rankings::FREE, self.quota, &mut replies);
        let brief = Quota::new(self.quota.left().min(BRIEF_BYTES));
        let mut late = self.locked(&covered, &windows, &brief, &mut replies);
        if brief.is_used_up() {
            let sizing = Quota::new(self.quota.left());
            self.each(covered.iter().copied(), &Rankings::FREE, &sizing, &mut replies);
            late = self.locked(&covered, &windows, self.quota, &mut replies);
        } else {
            self.quota.take_up_to(self.quota.left().min(BRIEF_BYTES) - brief.left());
        }
        // The leaderboard or the period was created meanwhile.
        self.each(late, &Rankings::FREE, self.quota, &mut replies);
        replies.all
    }

    /// Makes these replies with the rankings locked. Returns those that need another ranking.
    fn locked(
        &self,
        covered: &[usize],
        windows: &TransactionWindows,
        quota: &Quota,
        replies: &mut Replies<'_>,
    ) -> Vec<usize> {
        let mut late = Vec::new();
        windows.read(|rankings, missed| {
            for at in covered {
                self.each([*at], rankings, quota, replies);
                late.extend(missed().then_some(*at));
            }
        });
        late
    }

    fn each(
        &self,
        some: impl IntoIterator<Item = usize>,
        rankings: &Rankings<'_>,
        quota: &Quota,
        replies: &mut Replies<'_>,
    ) {
        for at in some {
            let (args, buffer) = (Args::Logged(self.log, replies.which[at]), &mut replies.buffer);
            buffer.clear();
            if let Some(Spec { kind: CommandKind::Read(read), .. }) = spec::find(args.get(0)) {
                self.context(rankings).answer(*read, args, buffer, quota);
            }
            replies.all[at].clear();
            replies.all[at].extend_from_slice(buffer);
        }
    }

    /// Adds the rankings that a command reads. Returns whether the locks cover all of them.
    fn add_windows(&self, at: usize, windows: &mut TransactionWindows) -> bool {
        let args = Args::Logged(self.log, at);
        let (first, last) = match spec::find(args.get(0)) {
            Some(Spec { keys: (first @ 1.., last, _), .. }) => (*first as usize, *last),
            _ => return false,
        };
        let end = usize::try_from(last).map_or(args.len(), |last| last + 1);
        let mut covered = true;
        for key in (first..end).map(|at| args.get(at)) {
            covered &= match self.context(&Rankings::FREE).target(key) {
                Ok(KeyTarget::Board(board)) => windows.add_board(&board),
                Ok(KeyTarget::View(view)) => windows.add(&view),
                Ok(KeyTarget::Missing) => !self.tally.has_others(),
                Err(_) => false,
            };
        }
        covered
    }

    fn context<'o>(&'o self, rankings: &'o Rankings<'o>) -> ReadContext<'o> {
        ReadContext { tally: self.tally, rankings, protocol: self.protocol, serving: false }
    }
}
