//! `LB.SUBMIT` and `LB.MSUBMIT`: submits as over HTTP, with ranks before and after.

use crate::resp::args::Args;
use crate::resp::error::{self, ErrorReply};
use crate::resp::run::{Prepared, StepBuilder};
use crate::resp::shape::Shape;
use crate::resp::target::{board_id, player, write_score};
use std::sync::Arc;
use tally_rules::definition::ScoreType;
use tally_rules::idempotency::{IdempotencyKey, RequestKey};
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, PlayerId};
use tally_service::boards::Board;
use tally_service::scores::steps::{PipelineStep, StepReply};
use tally_service::scores::submit::{Submit, Submitted, checked};
use tally_wire::api::scores::read_key;
use tally_wire::resp::{Encoder, number};

/// The maximum number of pairs of one `LB.MSUBMIT`.
const PAIRS_MAX: usize = 1_000;

/// The options after the score.
#[derive(Default)]
struct Options {
    subscore: Option<i64>,
    at: Option<Micros>,
    id: Option<String>,
}

/// `LB.SUBMIT board player score [SUBSCORE n] [AT micros] [ID request]`
pub(in crate::resp) fn submit(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    let mut options = Options::default();
    for at in (4..args.len()).step_by(2) {
        if at + 1 >= args.len() {
            return Err(error::SYNTAX.into());
        }
        let value = args.get(at + 1);
        let integer = || number::integer(value).ok_or(error::NOT_AN_INTEGER);
        if args.is(at, "subscore") {
            options.subscore = Some(integer()?);
        } else if args.is(at, "at") {
            options.at = Some(Micros(integer()?));
        } else if args.is(at, "id") {
            let text = String::from_utf8_lossy(value);
            options.id = Some(read_key(&text).map_err(|why| ErrorReply::from(format!("ERR ID {why}")))?);
        } else {
            return Err(error::SYNTAX.into());
        }
    }
    let board = board(builder, args)?;
    let kind = board.definition.score;
    let step = step(builder, &board, player(args.get(2))?, args.get(3), options)?;
    Ok(Prepared::Step(step, Shape::Submitted(kind)))
}

/// `LB.MSUBMIT board player score [player score …]`
pub(in crate::resp) fn submit_many(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    if args.len() % 2 == 1 {
        return Err(error::arity("lb.msubmit"));
    }
    if args.len() / 2 - 1 > PAIRS_MAX {
        return Err(format!("ERR at most {PAIRS_MAX} pairs of player and score").into());
    }
    let board = board(builder, args)?;
    let (mut steps, mut rows) = (Vec::new(), Vec::new());
    for at in (2..args.len()).step_by(2) {
        let prepared = player(args.get(at))
            .and_then(|player| step(builder, &board, player, args.get(at + 1), Options::default()));
        rows.push(prepared.map(|step| {
            steps.push(step);
            board.definition.score
        }));
    }
    Ok(Prepared::Steps(steps, Shape::SubmittedMany(rows)))
}

fn board(builder: &StepBuilder<'_>, args: Args<'_>) -> error::Result<Arc<Board>> {
    let id = board_id(args.get(1))?;
    // Another server may have created the board a moment ago.
    drop(builder.tally.board(&id));
    let board = builder.tally.boards.find(&id);
    board.map_err(|_| error::NO_BOARD.into())
}

fn step(
    builder: &mut StepBuilder<'_>,
    board: &Arc<Board>,
    player: PlayerId,
    score: &[u8],
    options: Options,
) -> error::Result<PipelineStep> {
    let Options { subscore, at, id } = options;
    let score = match number::integer(score) {
        Some(score) => ScoreInput::Int(score),
        None => ScoreInput::Float(number::score(score).ok_or(error::NOT_A_FLOAT)?),
    };
    let refused = |rejection| error::of_rejection(&rejection);
    let fingerprint =
        id.as_ref().map(|_| builder.tally.fingerprints.of_submit(&board.id, &player, score, subscore, at));
    let write = checked(&board.definition, player, score, subscore, at).map_err(refused)?;
    let caller = builder.session.caller().ok_or(error::NO_AUTH)?;
    let key = id.map(|id| RequestKey { scope: Arc::clone(&caller.scope), key: id.into() });
    if let Some(key) = &key {
        builder.begin(key).map_err(refused)?;
    }
    let idempotency = key.zip(fingerprint).map(|(key, fingerprint)| IdempotencyKey { key, fingerprint });
    Ok(PipelineStep::Submit(Submit { board: Arc::clone(board), write, idempotency, names_windows: false }))
}

/// `[score, rank, previous-score | nil, previous-rank | nil]`
pub(in crate::resp) fn write(done: &Submitted, kind: ScoreType, to: &mut Encoder<'_>) {
    to.array(4);
    write_exact(to, kind, done.record.score);
    write_rank(to, done.rank);
    match &done.previous {
        Some(previous) => write_exact(to, kind, previous.record.score),
        None => to.null(),
    }
    write_rank(to, done.previous.and_then(|previous| previous.rank));
}

/// One row for each pair: its error, or the reply of its step.
pub(in crate::resp) fn write_many(
    rows: &[error::Result<ScoreType>],
    mut replies: impl Iterator<Item = StepReply>,
    to: &mut Encoder<'_>,
) {
    to.array(rows.len());
    for row in rows {
        match row {
            Err(error) => to.error(error.as_bytes()),
            Ok(kind) => match replies.next() {
                Some(StepReply::Submitted(done)) => write(&done, *kind, to),
                Some(StepReply::Failed(fault)) => to.error(error::of_failure(&fault.into()).as_bytes()),
                Some(StepReply::Rejected(rejection)) => to.error(error::of_rejection(&rejection).as_bytes()),
                _ => to.error("ERR internal error: a step has another reply than its command"),
            },
        }
    }
}

/// On a board with integer scores, these commands reply with integers, so that clients do not turn scores into doubles.
pub(in crate::resp) fn write_exact(to: &mut Encoder<'_>, kind: ScoreType, score: i64) {
    match kind {
        ScoreType::Int64 => to.integer(score),
        ScoreType::Float64 => write_score(to, kind, score),
    }
}

fn write_rank(to: &mut Encoder<'_>, rank: Option<u64>) {
    match rank {
        Some(rank) => to.integer(rank.cast_signed()),
        None => to.null(),
    }
}
