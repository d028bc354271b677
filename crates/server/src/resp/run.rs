//! A pipeline or a transaction on its way through the lane.
//!
//! Collected commands become steps, which go to the lane as one request and are answered in order. Reads after the last
//! change do not burden the lane: they run after its replies. If a board was deleted while the steps were created, the lane
//! refuses all steps before any has an effect. Then the steps are created again.

use super::args::{Args, Log};
use super::blocking_reads::{self, BlockingReads};
use super::counts::Class;
use super::error;
use super::keys;
use super::session::Session;
use super::shape::Shape;
use super::spec::{self, CommandKind, ConnectionCommand, Spec};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::idempotency::RequestKey;
use tally_rules::{BoardId, Rejection};
use tally_service::requests::KeyGuard;
use tally_service::scores::pipeline::{self, Pipeline};
use tally_service::scores::steps::{PipelineStep, ReadStep, StepReply};
use tally_service::{Failure, Tally, boards};
use tally_wire::resp::{Encoder, Quota};

/// The maximum bytes of all read replies of a transaction, or of collected commands.
pub(super) const REPLIES_BYTES_MAX: usize = 64 << 20;

/// The maximum number of attempts: a board may be deleted just before it is used.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(2);

/// Creates the steps of a command that changes something.
pub(super) type Write = fn(&mut StepBuilder<'_>, Args<'_>) -> error::Result<Prepared>;

/// The result of preparing a command.
pub(super) enum Prepared {
    /// Steps, and the form of their replies.
    Steps(Vec<PipelineStep>, Shape),
    Step(PipelineStep, Shape),
    /// Nothing to do: the reply is known.
    Reply(fn(&mut Encoder<'_>)),
    /// The sorted set of this name must be created first.
    NeedsSortedSet(BoardId),
}

/// The state while steps are created.
pub(super) struct StepBuilder<'a> {
    pub(super) session: &'a Session,
    pub(super) tally: &'a Arc<Tally>,
    /// For one transaction: a change that takes several requests is refused.
    pub(super) atomic: bool,
    running: Vec<KeyGuard>,
    begun: HashSet<RequestKey>,
}

impl<'a> StepBuilder<'a> {
    /// For one command by itself.
    pub(super) fn alone(session: &'a Session, tally: &'a Arc<Tally>) -> Self {
        Self { session, tally, atomic: false, running: Vec::new(), begun: HashSet::new() }
    }

    /// Begins a request with an idempotency key, unless this run has begun it.
    pub(super) fn begin(&mut self, key: &RequestKey) -> Result<(), Rejection> {
        if self.begun.insert(key.clone()) {
            self.running.push(self.tally.begin(key)?);
        }
        Ok(())
    }
}

/// The source of a command's reply.
enum Slot {
    /// Bytes up to here were written while the steps were created.
    Early(usize),
    /// The replies of so many steps.
    Steps(usize, Shape),
    /// A read that waits for the lane: the command of this number.
    Later(usize),
    /// The reply of such a read.
    Answered(Vec<u8>),
    /// The next reply of [`BlockingReads`].
    Blocking,
}

struct Run {
    steps: Vec<PipelineStep>,
    slots: Vec<Slot>,
    /// The class of each command in metrics.
    classes: Vec<Class>,
    early: Vec<u8>,
    blocking: BlockingReads,
    /// The limit of all replies.
    quota: Arc<Quota>,
    /// Held until the replies are known, so that a retry gets "in progress" exactly until then.
    _running: Vec<KeyGuard>,
}

impl Run {
    /// The bytes of the replies that are known, and some for each other step.
    fn bytes(&self, replies: &[StepReply]) -> usize {
        let slot = |slot: &Slot| if let Slot::Answered(reply) = slot { reply.len() } else { 0 };
        let step = |reply: &StepReply| if let StepReply::Read(bytes) = reply { bytes.len() } else { 16 };
        let (slots, steps) = (self.slots.iter().map(slot), replies.iter().map(step));
        self.early.len() + self.blocking.bytes() + slots.chain(steps).sum::<usize>()
    }
}

impl Session {
    /// Runs collected commands and writes their replies. A transaction on several databases fails without effect.
    pub(super) async fn run(&mut self, log: &Arc<Log>, atomic: bool, out: &mut Vec<u8>) -> error::Result {
        if self.is_for_leader(log) {
            // Boxed, because it is rare and would make every connection larger.
            let done_there = Box::pin(self.run_at_leader(log, atomic, out)).await;
            if let Some(done) = done_there {
                return done;
            }
        }
        for attempt in 1..=ATTEMPTS {
            let mut run = self.prepare(log, atomic).await;
            let steps = std::mem::take(&mut run.steps);
            let replies = match self.tally().map(Arc::clone) {
                _ if steps.is_empty() => Ok(Vec::new()),
                Ok(tally) if atomic && pipeline::concern_several(&tally, &steps) => {
                    return Err(error::CROSS_SLOT.into());
                }
                Ok(tally) => {
                    let commands = Pipeline { steps, atomic, relaxed: self.relaxed, alone: false };
                    match pipeline::run(&tally, commands).await {
                        // A deleted board disappears from the list a moment after its deletion in the store.
                        Err(Failure::Rejected(Rejection::LeaderboardNotFound(_))) if attempt < ATTEMPTS => {
                            tally.refresh().await;
                            tokio::time::sleep(PAUSE).await;
                            continue;
                        }
                        replies => replies.map_err(|failure| error::of_failure(&failure)),
                    }
                }
                Err(error) => Err(error),
            };
            self.write(run, replies, log, out).await;
            break;
        }
        Ok(())
    }

    /// Runs one step and returns its reply.
    pub(super) async fn one(&self, step: PipelineStep) -> error::Result<StepReply> {
        let commands = Pipeline { steps: vec![step], atomic: false, relaxed: self.relaxed, alone: false };
        let replies = pipeline::run(self.tally()?, commands).await;
        match replies.map(|mut replies| replies.pop()) {
            Ok(Some(StepReply::Failed(fault))) => Err(error::of_failure(&fault.into())),
            Ok(Some(StepReply::Rejected(rejection))) => Err(error::of_rejection(&rejection)),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err("ERR internal error: a step has no reply".into()),
            // The board was deleted just now, so no members are left.
            Err(Failure::Rejected(Rejection::LeaderboardNotFound(_))) => Ok(StepReply::Took(Vec::new())),
            Err(failure) => Err(error::of_failure(&failure)),
        }
    }

    async fn prepare(&mut self, log: &Arc<Log>, atomic: bool) -> Run {
        let (mut steps, mut slots, mut early) = (Vec::new(), Vec::new(), Vec::new());
        let mut classes = Vec::with_capacity(log.len());
        let (mut running, mut begun) = (Vec::new(), HashSet::new());
        let (mut blocking, mut snapshot_reads) = (BlockingReads::default(), Vec::new());
        let quota = Arc::new(Quota::new(REPLIES_BYTES_MAX));
        let changed_last = self.last_change(log).await;
        let last_change = changed_last.unwrap_or(0);
        for (at, args) in log.iter().enumerate() {
            self.budget.command();
            self.budget.yield_if_spent().await;
            let checked = self.check(args);
            let known = checked.as_ref().ok().copied().or_else(|| spec::find(args.get(0)));
            classes.push(Class::of(known));
            let spec = match checked {
                Ok(spec) => spec,
                Err(error) => {
                    Encoder::new(&mut early, self.protocol).error(error.as_bytes());
                    slots.push(Slot::Early(early.len()));
                    continue;
                }
            };
            match spec.kind {
                CommandKind::Read(_) if atomic && changed_last.is_none() => {
                    snapshot_reads.push(at);
                    slots.push(Slot::Blocking);
                }
                CommandKind::Read(_) if atomic || !steps.is_empty() && at < last_change => {
                    steps.push(PipelineStep::Read(self.read_step(spec, log, at, &quota)));
                    slots.push(Slot::Steps(1, Shape::Read));
                }
                CommandKind::Read(_) if !steps.is_empty() => slots.push(Slot::Later(at)),
                CommandKind::Now(_) | CommandKind::Read(_) => {
                    slots.push(if self.answer(spec, args, &mut early, &quota) {
                        Slot::Early(early.len())
                    } else {
                        blocking.start(self.read_step(spec, log, at, &quota), self.protocol).await;
                        Slot::Blocking
                    })
                }
                CommandKind::Write(_) | CommandKind::Remove(_) | CommandKind::Connection(_) => {
                    let held = (std::mem::take(&mut running), std::mem::take(&mut begun));
                    let (prepared, held) = self.change(spec, args, atomic, held).await;
                    (running, begun) = held;
                    let mut to = Encoder::new(&mut early, self.protocol);
                    match prepared {
                        Ok(Prepared::Step(step, shape)) => {
                            steps.push(step);
                            slots.push(Slot::Steps(1, shape));
                            continue;
                        }
                        Ok(Prepared::Steps(some, shape)) => {
                            slots.push(Slot::Steps(some.len(), shape));
                            steps.extend(some);
                            continue;
                        }
                        Ok(Prepared::Reply(write)) => write(&mut to),
                        Ok(Prepared::NeedsSortedSet(_)) => to.error(error::NO_BOARD),
                        Err(error) => to.error(error.as_bytes()),
                    }
                    slots.push(Slot::Early(early.len()));
                }
            }
        }
        // Reads before a change must finish before it.
        blocking.settle(self.protocol).await;
        if !snapshot_reads.is_empty() {
            blocking
                .run_transaction(self.tally().cloned(), (log, snapshot_reads), (self.protocol, &quota))
                .await;
        }
        Run { steps, slots, classes, early, blocking, quota, _running: running }
    }

    /// The last command that changes something.
    async fn last_change(&mut self, log: &Log) -> Option<usize> {
        for at in (0..log.len()).rev() {
            self.budget.command();
            self.budget.yield_if_spent().await;
            if self.check(Args::Logged(log, at)).is_ok_and(Spec::writes) {
                return Some(at);
            }
        }
        None
    }

    /// Creates the steps of one change, and the board that it needs.
    async fn change(
        &self,
        spec: &Spec,
        args: Args<'_>,
        atomic: bool,
        (running, begun): (Vec<KeyGuard>, HashSet<RequestKey>),
    ) -> (error::Result<Prepared>, (Vec<KeyGuard>, HashSet<RequestKey>)) {
        let tally = match self.tally() {
            Ok(tally) => tally,
            Err(error) => return (Err(error), (running, begun)),
        };
        let write: Write = match spec.kind {
            CommandKind::Write(write) | CommandKind::Remove(write) => write,
            CommandKind::Connection(ConnectionCommand::Delete) => keys::delete_in_transaction,
            CommandKind::Connection(_) | CommandKind::Now(_) | CommandKind::Read(_) => {
                unreachable!("it changes no scores")
            }
        };
        let mut builder = StepBuilder { session: self, tally, atomic, running, begun };
        let mut prepared = write(&mut builder, args);
        if let Ok(Prepared::NeedsSortedSet(id)) = &prepared {
            let (owner, id) = (Arc::clone(tally), id.clone());
            let board = tally_service::blocking(move || boards::sorted_set(&owner, &id)).await;
            prepared = match board {
                Ok(_) => write(&mut builder, args),
                Err(failure) => Err(error::of_failure(&failure)),
            };
        }
        (prepared, (builder.running, builder.begun))
    }

    /// Runs the reads that waited for the lane.
    async fn answer_later(&mut self, run: &mut Run, log: &Arc<Log>) {
        let quota = Arc::clone(&run.quota);
        for slot in &mut run.slots {
            let Slot::Later(at) = *slot else { continue };
            self.budget.command();
            self.budget.yield_if_spent().await;
            let (args, mut reply) = (Args::Logged(log, at), Vec::new());
            *slot = match self.check(args) {
                Ok(spec) if self.answer(spec, args, &mut reply, &quota) => Slot::Answered(reply),
                Ok(spec) => {
                    run.blocking.start(self.read_step(spec, log, at, &quota), self.protocol).await;
                    Slot::Blocking
                }
                Err(error) => {
                    Encoder::new(&mut reply, self.protocol).error(error.as_bytes());
                    Slot::Answered(reply)
                }
            };
        }
        run.blocking.settle(self.protocol).await;
    }

    fn read_step(&self, spec: &Spec, log: &Arc<Log>, at: usize, quota: &Arc<Quota>) -> ReadStep {
        let CommandKind::Read(read) = spec.kind else { unreachable!("only reads become read steps") };
        blocking_reads::read_step(self.tally().cloned(), (log, at), read, (self.protocol, quota))
    }

    /// Writes the reply of every command. If the lane refused the steps, each command that needed them gets the error.
    async fn write(
        &mut self,
        mut run: Run,
        replies: error::Result<Vec<StepReply>>,
        log: &Arc<Log>,
        out: &mut Vec<u8>,
    ) {
        self.answer_later(&mut run, log).await;
        // Reserved at once: a growing buffer takes up to three times as much, and copying it keeps the thread for long.
        out.reserve(run.bytes(replies.as_deref().unwrap_or_default()));
        let (mut replies, mut early) = (replies.map(Vec::into_iter), 0);
        let mut replies_elsewhere = run.blocking;
        for (slot, class) in run.slots.into_iter().zip(run.classes) {
            let start = out.len();
            match slot {
                Slot::Early(end) => {
                    out.extend_from_slice(&run.early[early..end]);
                    early = end;
                }
                Slot::Steps(count, shape) => {
                    let mut to = Encoder::new(out, self.protocol);
                    match &mut replies {
                        Ok(replies) => shape.write(replies.by_ref().take(count), &mut to),
                        Err(error) => to.error(error.as_bytes()),
                    }
                }
                Slot::Answered(reply) => out.extend(reply),
                Slot::Blocking => out.extend(replies_elsewhere.next()),
                Slot::Later(_) => unreachable!("it was answered before"),
            }
            self.pipeline_counts.answered(class, &out[start..]);
            self.budget.bytes(out.len() - start);
            self.budget.yield_if_spent().await;
        }
    }
}
