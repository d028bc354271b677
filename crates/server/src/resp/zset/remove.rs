//! Commands that remove members: `ZREM`, `ZPOPMIN`, `ZPOPMAX`, `ZREMRANGEBYRANK`, `ZREMRANGEBYSCORE`, `ZREMRANGEBYLEX`.
//!
//! A step removes a bounded number. Outside of a transaction the connection repeats the step until no member is left, see
//! `Session::remove`. Within a transaction a range that is too large for one step is refused.

use super::range::{check_sorted_set, lex};
use crate::resp::args::Args;
use crate::resp::error;
use crate::resp::run::{Prepared, StepBuilder};
use crate::resp::shape::Shape;
use crate::resp::target::{board_id, player, score_range};
use std::sync::Arc;
use tally_rules::Definition;
use tally_service::boards::Board;
use tally_service::scores::select::RankSelection;
use tally_service::scores::steps::{PipelineStep, TAKE_ALL_MAX, TAKE_MAX};
use tally_wire::resp::number;

/// `ZREM key member [member …]`
pub(in crate::resp) fn zrem(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    let Some(board) = board(builder, args)? else { return Ok(Prepared::Reply(|to| to.integer(0))) };
    // An invalid player id is no member.
    let players = args.from(2).filter_map(|member| player(member).ok()).collect();
    Ok(Prepared::Step(PipelineStep::Remove { board, players }, Shape::Count))
}

/// `ZPOPMIN key [count]`
pub(in crate::resp) fn zpopmin(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    pop(builder, args, RankSelection::Lowest)
}

/// `ZPOPMAX key [count]`
pub(in crate::resp) fn zpopmax(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    pop(builder, args, RankSelection::Highest)
}

fn pop(
    builder: &mut StepBuilder<'_>,
    args: Args<'_>,
    taken: fn(usize) -> RankSelection,
) -> error::Result<Prepared> {
    if args.len() > 3 {
        return Err(error::SYNTAX.into());
    }
    let pairs = args.len() == 3;
    let count = if pairs { number::integer(args.get(2)).ok_or(error::NOT_POSITIVE)? } else { 1 };
    let count = usize::try_from(count).map_err(|_| error::NOT_POSITIVE)?;
    match board(builder, args)? {
        Some(board) if count > 0 => {
            let shape = Shape::Members { kind: board.definition.score, pairs };
            let which = taken(count.min(most(builder)));
            Ok(Prepared::Step(PipelineStep::Take { board, which, all: builder.atomic }, shape))
        }
        _ => Ok(Prepared::Reply(|to| to.array(0))),
    }
}

/// `ZREMRANGEBYRANK key start stop`
pub(in crate::resp) fn by_rank(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    let start = number::integer(args.get(2)).ok_or(error::NOT_AN_INTEGER)?;
    let stop = number::integer(args.get(3)).ok_or(error::NOT_AN_INTEGER)?;
    let most = most(builder);
    take(builder, args, |_| Ok(Some(RankSelection::Places(start, stop, most))))
}

/// `ZREMRANGEBYSCORE key min max`
pub(in crate::resp) fn by_score(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    let range = |definition: &Definition| score_range(definition.score, args.get(2), args.get(3));
    range(&Definition::sorted_set())?;
    let most = most(builder);
    take(builder, args, |board| {
        Ok(range(&board.definition)?.map(|(min, max)| RankSelection::Scores(min, max, most)))
    })
}

/// `ZREMRANGEBYLEX key min max`
pub(in crate::resp) fn by_lex(builder: &mut StepBuilder<'_>, args: Args<'_>) -> error::Result<Prepared> {
    let (low, high) = (lex(args.get(2))?, lex(args.get(3))?);
    let most = most(builder);
    take(builder, args, |board| {
        check_sorted_set(&board.definition)?;
        Ok(Some(RankSelection::Members(low, high, most)))
    })
}

/// The maximum number that one step removes: a transaction must know that it removed all.
fn most(builder: &StepBuilder<'_>) -> usize {
    if builder.atomic { TAKE_ALL_MAX + 1 } else { TAKE_MAX }
}

fn take(
    builder: &mut StepBuilder<'_>,
    args: Args<'_>,
    which: impl FnOnce(&Board) -> error::Result<Option<RankSelection>>,
) -> error::Result<Prepared> {
    let Some(board) = board(builder, args)? else { return Ok(Prepared::Reply(|to| to.integer(0))) };
    let Some(which) = which(&board)? else { return Ok(Prepared::Reply(|to| to.integer(0))) };
    Ok(Prepared::Step(PipelineStep::Take { board, which, all: builder.atomic }, Shape::Count))
}

/// The board to change, if there is one.
fn board(builder: &StepBuilder<'_>, args: Args<'_>) -> error::Result<Option<Arc<Board>>> {
    match board_id(args.get(1)) {
        Ok(id) => Ok(builder.tally.board(&id)),
        // An invalid board name is an empty key, but a period is refused.
        Err(error) if args.get(1).contains(&b'@') => Err(error),
        Err(_) => Ok(None),
    }
}
