//! Reads that wait for the store or for Redis: they run concurrently on blocking threads, and their replies keep the order.
//!
//! A pipeline of such reads costs little more than one of them, because reads of Redis share one connection. The reads of a
//! transaction without a change run here too, as one. They see one state, and neither the lane nor the other connections of
//! their thread wait for them. Not here: which reads wait, see `target.rs`.

use super::args::{Args, Log};
use super::error::{self, Wrong};
use super::spec::{self, Kind, Spec};
use super::target::{Read, Reading, Target};
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

/// The maximum number of concurrent reads of one pipeline.
const AT_ONCE: usize = 32;

/// Running reads, and the replies of finished ones.
#[derive(Default)]
pub(super) struct BlockingReads {
    under_way: VecDeque<JoinHandle<Result<Vec<u8>, Failure>>>,
    replies: VecDeque<Vec<u8>>,
}

impl BlockingReads {
    /// Starts a read; waits for the oldest if too many run.
    pub(super) async fn ask(&mut self, mut question: ReadStep, protocol: Protocol) {
        if self.under_way.len() >= AT_ONCE {
            self.wait(protocol).await;
        }
        let ask = move || Ok(question.ask(&Rankings::FREE, &mut Vec::new()));
        self.under_way.push_back(tokio::spawn(tally_service::blocking(ask)));
    }

    /// Runs the reads of a transaction without a change.
    pub(super) async fn ask_together(
        &mut self,
        tally: Result<Arc<Tally>, Wrong>,
        (log, which): (&Arc<Log>, Vec<usize>),
        (protocol, quota): (Protocol, &Arc<Quota>),
    ) {
        let (log, quota, count) = (Arc::clone(log), Arc::clone(quota), which.len());
        let _one_of_few = TRANSACTIONS.acquire().await;
        let replies = match tally {
            Ok(tally) => {
                let ask =
                    move || Ok(Transaction { tally: &tally, log: &log, protocol, quota: &quota }.ask(&which));
                tally_service::blocking(ask).await.map_err(|failure| error::of_failure(&failure))
            }
            Err(wrong) => Err(wrong),
        };
        let refused = |wrong: Wrong| {
            let mut out = Vec::new();
            Encoder::new(&mut out, protocol).error(wrong.as_bytes());
            vec![out; count]
        };
        self.replies.extend(replies.unwrap_or_else(refused));
    }

    /// Waits for all reads.
    pub(super) async fn settle(&mut self, protocol: Protocol) {
        while !self.under_way.is_empty() {
            self.wait(protocol).await;
        }
    }

    /// The next reply, in the order in which the reads were started.
    pub(super) fn next(&mut self) -> Vec<u8> {
        self.replies.pop_front().expect("it was settled")
    }

    async fn wait(&mut self, protocol: Protocol) {
        let Some(oldest) = self.under_way.pop_front() else { return };
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
pub(super) fn question(
    tally: Result<Arc<Tally>, Wrong>,
    (log, at): (&Arc<Log>, usize),
    read: Read,
    (protocol, quota): (Protocol, &Arc<Quota>),
) -> ReadStep {
    let (log, quota) = (Arc::clone(log), Arc::clone(quota));
    ReadStep::new(move |orders, out| match &tally {
        Ok(tally) => {
            let reading = Reading { tally, orders, protocol, serving: false };
            reading.answer(read, Args::Kept(&log, at), out, &quota);
        }
        Err(wrong) => Encoder::new(out, protocol).error(wrong.as_bytes()),
    })
}

/// Reads that see one state.
struct Transaction<'a> {
    tally: &'a Tally,
    log: &'a Log,
    protocol: Protocol,
    quota: &'a Quota,
}

impl Transaction<'_> {
    /// Returns the replies in order. Reads that wait for the store or for Redis run before the rankings are locked, and so
    /// do those without a key. A thread with locked rankings must not wait for anything else.
    fn ask(&self, which: &[usize]) -> Vec<Vec<u8>> {
        let mut together = TransactionWindows::default();
        let shares: Vec<bool> = which.iter().map(|at| self.share(*at, &mut together)).collect();
        // A reply that grows in a buffer of its own touches twice its memory, while the rankings are locked.
        let mut buffer = Vec::new();
        let mut one = |at: usize, orders: &Rankings<'_>| self.one(at, orders, &mut buffer);
        let free = |(at, shares): (&usize, &bool)| (!shares).then(|| one(*at, &Rankings::FREE));
        let mut replies: Vec<Option<Vec<u8>>> = which.iter().zip(&shares).map(free).collect();
        together.ask(|orders, missed| {
            for (at, reply) in which.iter().zip(&mut replies).filter(|(_, reply)| reply.is_none()) {
                *reply = Some(one(*at, orders)).filter(|_| !missed());
            }
        });
        // The leaderboard or the period was created meanwhile.
        let late = |(at, reply): (&usize, Option<_>)| reply.unwrap_or_else(|| one(*at, &Rankings::FREE));
        which.iter().zip(replies).map(late).collect()
    }

    /// Adds the rankings that a command reads. Returns whether the locks cover all of them.
    fn share(&self, at: usize, together: &mut TransactionWindows) -> bool {
        let args = Args::Kept(self.log, at);
        let (first, last) = match spec::find(args.get(0)) {
            Some(Spec { keys: (first @ 1.., last, _), .. }) => (*first as usize, *last),
            _ => return false,
        };
        let end = usize::try_from(last).map_or(args.len(), |last| last + 1);
        let mut shares = true;
        for key in (first..end).map(|at| args.get(at)) {
            shares &= match self.reading(&Rankings::FREE).target(key) {
                Ok(Target::Board(board)) => together.add_board(&board),
                Ok(Target::View(view)) => together.add(&view),
                Ok(Target::Missing) => !self.tally.has_others(),
                Err(_) => false,
            };
        }
        shares
    }

    fn one(&self, at: usize, orders: &Rankings<'_>, buffer: &mut Vec<u8>) -> Vec<u8> {
        let args = Args::Kept(self.log, at);
        buffer.clear();
        if let Some(Spec { kind: Kind::Read(read), .. }) = spec::find(args.get(0)) {
            self.reading(orders).answer(*read, args, buffer, self.quota);
        }
        buffer.as_slice().to_vec()
    }

    fn reading<'o>(&'o self, orders: &'o Rankings<'o>) -> Reading<'o> {
        Reading { tally: self.tally, orders, protocol: self.protocol, serving: false }
    }
}
