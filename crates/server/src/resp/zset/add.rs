//! `ZADD` and `ZINCRBY`.

use crate::resp::args::Args;
use crate::resp::error::{self, ErrorReply};
use crate::resp::run::{Prepared, StepBuilder};
use crate::resp::shape::Shape;
use crate::resp::target::{board_id, player, score};
use tally_rules::definition::ScoreType;
use tally_rules::sorted_set::Add;
use tally_service::scores::steps::PipelineStep;

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member …]`
pub(in crate::resp) fn zadd(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    let (mut options, mut changed, mut first) = (Add::default(), false, 2);
    while first < args.len() {
        match args.get(first) {
            word if word.eq_ignore_ascii_case(b"nx") => options.new_only = true,
            word if word.eq_ignore_ascii_case(b"xx") => options.present_only = true,
            word if word.eq_ignore_ascii_case(b"gt") => options.greater = true,
            word if word.eq_ignore_ascii_case(b"lt") => options.less = true,
            word if word.eq_ignore_ascii_case(b"ch") => changed = true,
            word if word.eq_ignore_ascii_case(b"incr") => options.increment = true,
            _ => break,
        }
        first += 1;
    }
    let rest = args.len() - first.min(args.len());
    if rest == 0 || rest % 2 == 1 {
        return Err(error::SYNTAX.into());
    }
    if options.new_only && options.present_only {
        return Err("ERR XX and NX options at the same time are not compatible".into());
    }
    if [options.new_only, options.greater, options.less].iter().filter(|yes| **yes).count() > 1 {
        return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
    }
    if options.increment && rest > 2 {
        return Err("ERR INCR option supports a single increment-element pair".into());
    }
    add(builder, args, first, options, changed)
}

/// `ZINCRBY key increment member`
pub(in crate::resp) fn zincrby(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    add(builder, args, 2, Add { increment: true, ..Add::default() }, false)
}

/// Pairs of score and member, starting at an argument.
fn add(
    builder: &mut StepBuilder<'_>,
    args: Args<'_>,
    first: usize,
    options: Add,
    changed: bool,
) -> error::Result<Prepared> {
    let id = board_id(args.get(1));
    let board = id.as_ref().ok().and_then(|id| builder.tally.board(id));
    let kind = board.as_ref().map_or(ScoreType::Float64, |board| board.definition.score);
    let pairs = (first..args.len()).step_by(2);
    // Every score is parsed before anything else can fail, as in Redis.
    let scores: Vec<i64> = pairs.clone().map(|at| score(kind, args.get(at))).collect::<Result<_, _>>()?;
    let id = id?;
    let Some(board) = board else {
        if options.present_only {
            return Ok(Prepared::Reply(if options.increment { |to| to.null() } else { |to| to.integer(0) }));
        }
        // Invalid members create no board.
        pairs.clone().try_for_each(|at| player(args.get(at + 1)).map(drop))?;
        return Ok(Prepared::NeedsSortedSet(id));
    };
    options.check(&board.definition).map_err(|why| ErrorReply::from(format!("ERR {why}")))?;
    let items = pairs.zip(scores).map(|(at, score)| Ok((player(args.get(at + 1))?, score)));
    let items = items.collect::<error::Result<_>>()?;
    let shape = if options.increment { Shape::Incremented(kind) } else { Shape::Added { changed } };
    Ok(Prepared::Step(PipelineStep::Add { board, items, options }, shape))
}
