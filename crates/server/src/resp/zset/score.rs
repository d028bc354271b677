//! One member at a time: `ZSCORE`, `ZMSCORE`, `ZRANK`, `ZREVRANK`; and `ZCARD`.

use super::reversed_position;
use crate::resp::args::Args;
use crate::resp::error;
use crate::resp::target::{ReadContext, write_score};
use tally_wire::resp::Encoder;

/// `ZSCORE key member`
pub(in crate::resp) fn zscore(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let found = context.read_key(args.get(1), |definition, ranking| {
        Some((definition.score, ranking.record(args.get(2))?.score))
    })?;
    match found.flatten() {
        Some((kind, score)) => write_score(to, kind, score),
        None => {
            context.check_missed(args.get(1), args.get(2))?;
            to.null();
        }
    }
    Ok(())
}

/// `ZMSCORE key member [member …]`
pub(in crate::resp) fn zmscore(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    args.from(2).try_for_each(|member| context.check_missed(args.get(1), member))?;
    to.array(args.len() - 2);
    let there = context.read_key(args.get(1), |definition, ranking| {
        for member in args.from(2) {
            match ranking.record(member) {
                Some(record) => write_score(to, definition.score, record.score),
                None => to.null(),
            }
        }
    })?;
    if there.is_none() {
        args.from(2).for_each(|_| to.null());
    }
    Ok(())
}

/// `ZCARD key`
pub(in crate::resp) fn zcard(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let total = context.read_key(args.get(1), |_, ranking| ranking.total())?;
    to.integer(total.unwrap_or(0).cast_signed());
    Ok(())
}

/// `ZRANK key member [WITHSCORE]`
pub(in crate::resp) fn zrank(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    rank(context, args, to, false)
}

/// `ZREVRANK key member [WITHSCORE]`
pub(in crate::resp) fn zrevrank(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    rank(context, args, to, true)
}

fn rank(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>, reverse: bool) -> error::Result {
    if args.len() > 4 {
        return Err(error::arity(if reverse { "zrevrank" } else { "zrank" }));
    }
    let with_score = args.len() == 4;
    if with_score && !args.is(3, "withscore") {
        return Err(error::SYNTAX.into());
    }
    let found = context.read_key(args.get(1), |definition, ranking| {
        let (record, place) = ranking.find(args.get(2))?;
        let total = ranking.total();
        let ascending = reversed_position(definition, place, total);
        let place = if reverse { total - 1 - ascending } else { ascending };
        Some((place, definition.score, record.score))
    })?;
    let found = found.flatten();
    if found.is_none() {
        context.check_missed(args.get(1), args.get(2))?;
    }
    match found {
        None if with_score => to.null_array(),
        None => to.null(),
        Some((place, kind, score)) => {
            if with_score {
                to.array(2);
            }
            to.integer(place.cast_signed());
            if with_score {
                write_score(to, kind, score);
            }
        }
    }
    Ok(())
}
