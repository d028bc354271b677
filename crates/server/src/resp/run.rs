//! A pipeline or a transaction on its way through the lane.
//!
//! Gathered commands are made into steps, handed to the lane as one request, and answered in order. Reads behind the
//! last change need not burden the lane: they are answered when it has. A board that was deleted while the steps were
//! made refuses all of them before anything was done; then they are made once more.

use super::args::{Args, Log};
use super::counts::Class;
use super::elsewhere::{self, Elsewhere};
use super::error::{self, Wrong};
use super::session::Session;
use super::spec::{self, Kind, Spec, Turn};
use super::target;
use super::{keys, lb};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::definition::ScoreType;
use tally_rules::idempotency::RequestKey;
use tally_rules::{BoardId, Rejection};
use tally_service::requests::Running;
use tally_service::scores::pipeline::{self, Pipeline};
use tally_service::scores::steps::{ReadStep, Step, StepReply};
use tally_service::{Failure, Tally, boards};
use tally_wire::resp::{Encoder, Protocol, Quota};

/// Bytes that the replies of the reads of a transaction, or of gathered commands, may have together.
pub(super) const REPLIES_BYTES_MAX: usize = 64 << 20;

/// Times a run is made: a board may be deleted just before it is used.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(2);

/// Makes the steps of a command that changes something.
pub(super) type Write = fn(&mut Making<'_>, Args<'_>) -> Result<Made, Wrong>;

/// What a command has become.
pub(super) enum Made {
    /// Steps, and how their replies are written.
    Steps(Vec<Step>, Shape),
    /// One step.
    Step(Step, Shape),
    /// Nothing to do: the answer is known.
    Answer(fn(&mut Encoder<'_>)),
    /// A sorted set of this name is needed first.
    Needs(BoardId),
}

/// How replies of steps are written.
pub(super) enum Shape {
    /// How many were added, with `CH` how many changed.
    Added { changed: bool },
    /// The score after an increment, or nothing.
    Incremented(ScoreType),
    /// How many.
    Count,
    /// Members with scores; pairs by themselves where the protocol knows how.
    Members { kind: ScoreType, pairs: bool },
    /// In how many boards there was anything, for `DEL`.
    Deleted,
    /// Of `LB.SUBMIT`.
    Submitted(ScoreType),
    /// Of `LB.MSUBMIT`: an error, or the reply of the next step.
    SubmittedMany(Vec<Result<ScoreType, Wrong>>),
    /// Bytes as they are.
    Read,
}

/// What the making of steps needs to know and holds on to.
pub(super) struct Making<'a> {
    pub(super) session: &'a Session,
    pub(super) tally: &'a Arc<Tally>,
    /// One transaction: what would take several requests is refused.
    pub(super) atomic: bool,
    running: Vec<Running>,
    begun: HashSet<RequestKey>,
}

impl<'a> Making<'a> {
    /// For one command by itself.
    pub(super) fn alone(session: &'a Session, tally: &'a Arc<Tally>) -> Self {
        Self { session, tally, atomic: false, running: Vec::new(), begun: HashSet::new() }
    }

    /// Begins a request with an idempotency key, unless this very run has.
    pub(super) fn begin(&mut self, key: &RequestKey) -> Result<(), Rejection> {
        if self.begun.insert(key.clone()) {
            self.running.push(self.tally.begin(key)?);
        }
        Ok(())
    }
}

/// Where the reply of a command comes from.
enum Slot {
    /// Bytes up to here were written when the run was made.
    Early(usize),
    /// The replies of so many steps.
    Steps(usize, Shape),
    /// A read that waits for the lane: the command of this number.
    Later(usize),
    /// The reply of one.
    Answered(Vec<u8>),
    /// A read that was asked elsewhere, the next of them.
    Elsewhere,
}

struct Run {
    steps: Vec<Step>,
    slots: Vec<Slot>,
    /// What each command is to be counted as.
    classes: Vec<Class>,
    early: Vec<u8>,
    elsewhere: Elsewhere,
    /// What all replies may take.
    quota: Arc<Quota>,
    /// Held until it is answered, so that a retry is told "in progress" exactly as long.
    _running: Vec<Running>,
}

impl Session {
    /// Does gathered commands and writes their replies. Nothing is done and written of a transaction that cannot be one.
    pub(super) async fn run(&mut self, log: &Arc<Log>, atomic: bool, out: &mut Vec<u8>) -> Result<(), Wrong> {
        for attempt in 1..=ATTEMPTS {
            let mut run = self.make(log, atomic).await;
            let steps = std::mem::take(&mut run.steps);
            let replies = match self.tally().map(Arc::clone) {
                _ if steps.is_empty() => Ok(Vec::new()),
                Ok(tally) if atomic && pipeline::concern_several(&tally, &steps) => {
                    return Err(error::CROSS_SLOT.into());
                }
                Ok(tally) => {
                    let commands = Pipeline { steps, atomic, relaxed: self.relaxed, alone: false };
                    match pipeline::run(&tally, commands).await {
                        // Whoever deletes a board takes it from the list a moment after the store has lost it.
                        Err(Failure::Refused(Rejection::LeaderboardNotFound(_))) if attempt < ATTEMPTS => {
                            tally.looked_now().await;
                            tokio::time::sleep(PAUSE).await;
                            continue;
                        }
                        replies => replies.map_err(|failure| error::of_failure(&failure)),
                    }
                }
                Err(wrong) => Err(wrong),
            };
            self.write(run, replies, log, out).await;
            break;
        }
        Ok(())
    }

    /// Does one step and gives its reply.
    pub(super) async fn one(&self, step: Step) -> Result<StepReply, Wrong> {
        let commands = Pipeline { steps: vec![step], atomic: false, relaxed: self.relaxed, alone: false };
        let replies = pipeline::run(self.tally()?, commands).await;
        match replies.map(|mut replies| replies.pop()) {
            Ok(Some(StepReply::Failed(fault))) => Err(error::of_failure(&fault.into())),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err("ERR internal error: a step has no reply".into()),
            // Deleted just now: nothing is left to take out.
            Err(Failure::Refused(Rejection::LeaderboardNotFound(_))) => Ok(StepReply::Took(Vec::new())),
            Err(failure) => Err(error::of_failure(&failure)),
        }
    }

    async fn make(&mut self, log: &Arc<Log>, atomic: bool) -> Run {
        let (mut steps, mut slots, mut early) = (Vec::new(), Vec::new(), Vec::new());
        let mut classes = Vec::with_capacity(log.len());
        let (mut running, mut begun) = (Vec::new(), HashSet::new());
        let (mut elsewhere, mut together) = (Elsewhere::default(), Vec::new());
        let quota = Arc::new(Quota::new(REPLIES_BYTES_MAX));
        let changes = |args| self.check(args).is_ok_and(Spec::writes);
        let changed_last = log.iter().rposition(changes);
        let last_change = changed_last.unwrap_or(0);
        for (at, args) in log.iter().enumerate() {
            let checked = self.check(args);
            let known = checked.as_ref().ok().copied().or_else(|| spec::find(args.get(0)));
            classes.push(Class::of(known));
            let spec = match checked {
                Ok(spec) => spec,
                Err(wrong) => {
                    Encoder::new(&mut early, self.protocol).error(wrong.as_bytes());
                    slots.push(Slot::Early(early.len()));
                    continue;
                }
            };
            match spec.kind {
                Kind::Read(_) if atomic && changed_last.is_none() => {
                    together.push(at);
                    slots.push(Slot::Elsewhere);
                }
                Kind::Read(_) if atomic || !steps.is_empty() && at < last_change => {
                    steps.push(Step::Read(self.question(spec, log, at, &quota)));
                    slots.push(Slot::Steps(1, Shape::Read));
                }
                Kind::Read(_) if !steps.is_empty() => slots.push(Slot::Later(at)),
                Kind::Now(_) | Kind::Read(_) => slots.push(if self.answer(spec, args, &mut early, &quota) {
                    Slot::Early(early.len())
                } else {
                    elsewhere.ask(self.question(spec, log, at, &quota), self.protocol).await;
                    Slot::Elsewhere
                }),
                Kind::Write(_) | Kind::Remove(_) | Kind::Turn(_) => {
                    let held = (std::mem::take(&mut running), std::mem::take(&mut begun));
                    let (made, held) = self.change(spec, args, atomic, held).await;
                    (running, begun) = held;
                    let mut to = Encoder::new(&mut early, self.protocol);
                    match made {
                        Ok(Made::Step(step, shape)) => {
                            steps.push(step);
                            slots.push(Slot::Steps(1, shape));
                            continue;
                        }
                        Ok(Made::Steps(some, shape)) => {
                            slots.push(Slot::Steps(some.len(), shape));
                            steps.extend(some);
                            continue;
                        }
                        Ok(Made::Answer(write)) => write(&mut to),
                        Ok(Made::Needs(_)) => to.error(error::NO_BOARD),
                        Err(wrong) => to.error(wrong.as_bytes()),
                    }
                    slots.push(Slot::Early(early.len()));
                }
            }
        }
        // What stands before a change is read before it.
        elsewhere.settle(self.protocol).await;
        if !together.is_empty() {
            elsewhere.ask_together(self.tally().cloned(), (log, together), (self.protocol, &quota)).await;
        }
        Run { steps, slots, classes, early, elsewhere, quota, _running: running }
    }

    /// Makes one change, with the board it needs.
    async fn change(
        &self,
        spec: &Spec,
        args: Args<'_>,
        atomic: bool,
        (running, begun): (Vec<Running>, HashSet<RequestKey>),
    ) -> (Result<Made, Wrong>, (Vec<Running>, HashSet<RequestKey>)) {
        let tally = match self.tally() {
            Ok(tally) => tally,
            Err(wrong) => return (Err(wrong), (running, begun)),
        };
        let write: Write = match spec.kind {
            Kind::Write(write) | Kind::Remove(write) => write,
            Kind::Turn(Turn::Delete) => keys::delete_in_transaction,
            Kind::Turn(_) | Kind::Now(_) | Kind::Read(_) => unreachable!("it changes no scores"),
        };
        let mut making = Making { session: self, tally, atomic, running, begun };
        let mut made = write(&mut making, args);
        if let Ok(Made::Needs(id)) = &made {
            let (owner, id) = (Arc::clone(tally), id.clone());
            let board = tally_service::blocking(move || boards::sorted_set(&owner, &id)).await;
            made = match board {
                Ok(_) => write(&mut making, args),
                Err(failure) => Err(error::of_failure(&failure)),
            };
        }
        (made, (making.running, making.begun))
    }

    /// Answers the reads that waited for the lane, or asks them elsewhere.
    async fn answer_later(&mut self, run: &mut Run, log: &Arc<Log>) {
        let quota = Arc::clone(&run.quota);
        for slot in &mut run.slots {
            let Slot::Later(at) = *slot else { continue };
            let (args, mut reply) = (Args::Kept(log, at), Vec::new());
            *slot = match self.check(args) {
                Ok(spec) if self.answer(spec, args, &mut reply, &quota) => Slot::Answered(reply),
                Ok(spec) => {
                    run.elsewhere.ask(self.question(spec, log, at, &quota), self.protocol).await;
                    Slot::Elsewhere
                }
                Err(wrong) => {
                    Encoder::new(&mut reply, self.protocol).error(wrong.as_bytes());
                    Slot::Answered(reply)
                }
            };
        }
        run.elsewhere.settle(self.protocol).await;
    }

    fn question(&self, spec: &Spec, log: &Arc<Log>, at: usize, quota: &Arc<Quota>) -> ReadStep {
        let Kind::Read(read) = spec.kind else { unreachable!("only reads are asked") };
        elsewhere::question(self.tally().cloned(), (log, at), read, (self.protocol, quota))
    }

    /// Writes the reply of every command; where nothing of the lane's part was done, whatever needed it says why.
    async fn write(
        &mut self,
        mut run: Run,
        replies: Result<Vec<StepReply>, Wrong>,
        log: &Arc<Log>,
        out: &mut Vec<u8>,
    ) {
        self.answer_later(&mut run, log).await;
        // All at once: a buffer that grows by itself takes up to three times as much.
        out.reserve(REPLIES_BYTES_MAX - run.quota.left().min(REPLIES_BYTES_MAX));
        let (mut replies, mut early) = (replies.map(Vec::into_iter), 0);
        let mut replies_elsewhere = run.elsewhere;
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
                        Err(wrong) => to.error(wrong.as_bytes()),
                    }
                }
                Slot::Answered(reply) => out.extend(reply),
                Slot::Elsewhere => out.extend(replies_elsewhere.next()),
                Slot::Later(_) => unreachable!("it was answered before"),
            }
            self.burst.answered(class, &out[start..]);
        }
    }
}

impl Shape {
    /// Writes the reply of one command.
    pub(super) fn write(&self, mut replies: impl Iterator<Item = StepReply>, to: &mut Encoder<'_>) {
        if let Self::SubmittedMany(rows) = self {
            return lb::submit::write_many(rows, replies, to);
        }
        if matches!(self, Self::Deleted) {
            let replies: Vec<StepReply> = replies.collect();
            if replies.iter().any(|reply| matches!(reply, StepReply::Refused(_))) {
                return to.error(error::TOO_MANY_IN_MULTI);
            }
            if let Some(StepReply::Failed(fault)) =
                replies.iter().find(|reply| matches!(reply, StepReply::Failed(_)))
            {
                return to.error(error::of_failure(&fault.clone().into()).as_bytes());
            }
            let there = |reply: &&StepReply| matches!(reply, StepReply::Took(list) if !list.is_empty());
            return to.integer(replies.iter().filter(there).count() as i64);
        }
        let Some(reply) = replies.next() else { return to.error("ERR internal error: a step has no reply") };
        match (self, reply) {
            (_, StepReply::Refused(Rejection::ScoreOverflow)) => to.error(match self {
                Self::Incremented(ScoreType::Float64) => error::NAN,
                _ => error::OVERFLOW,
            }),
            (_, StepReply::Refused(Rejection::TooManyAtOnce)) => to.error(error::TOO_MANY_IN_MULTI),
            (_, StepReply::Refused(rejection)) => to.error(error::of_rejection(&rejection).as_bytes()),
            (_, StepReply::Failed(fault)) => to.error(error::of_failure(&fault.into()).as_bytes()),
            (Self::Added { changed }, StepReply::Added { added, updated, .. }) => {
                to.integer((added + if *changed { updated } else { 0 }).cast_signed());
            }
            (Self::Incremented(kind), StepReply::Added { score, .. }) => match score {
                Some(score) => target::write_score(to, *kind, score),
                None => to.null(),
            },
            (Self::Count, StepReply::Removed(count)) => to.integer(count.cast_signed()),
            (Self::Count, StepReply::Took(list)) => to.integer(list.len() as i64),
            (Self::Members { kind, pairs }, StepReply::Took(list)) => {
                let nested = *pairs && to.protocol() == Protocol::Resp3;
                to.array(if nested { list.len() } else { list.len() * 2 });
                for (player, score) in list {
                    if nested {
                        to.array(2);
                    }
                    to.bulk(player.as_bytes());
                    target::write_score(to, *kind, score);
                }
            }
            (Self::Submitted(kind), StepReply::Submitted(done)) => lb::submit::write(&done, *kind, to),
            (Self::Read, StepReply::Read(bytes)) => to.raw(&bytes),
            (_, _) => to.error("ERR internal error: a step has another reply than its command"),
        }
    }
}
