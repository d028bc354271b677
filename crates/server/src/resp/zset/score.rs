//! One member at a time: `ZSCORE`, `ZMSCORE`, `ZRANK`, `ZREVRANK`; and `ZCARD`.

use super::turned;
use crate::resp::args::Args;
use crate::resp::error::{self, Wrong};
use crate::resp::target::{Reading, write_score};
use tally_wire::resp::Encoder;

/// `ZSCORE key member`
pub(in crate::resp) fn zscore(
    reading: &Reading<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> Result<(), Wrong> {
    let found = reading
        .ask(args.get(1), |definition, order| Some((definition.score, order.record(args.get(2))?.score)))?;
    match found.flatten() {
        Some((kind, score)) => write_score(to, kind, score),
        None => {
            reading.check_missed(args.get(1), args.get(2))?;
            to.null();
        }
    }
    Ok(())
}

/// `ZMSCORE key member [member …]`
pub(in crate::resp) fn zmscore(
    reading: &Reading<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> Result<(), Wrong> {
    args.from(2).try_for_each(|member| reading.check_missed(args.get(1), member))?;
    to.array(args.len() - 2);
    let there = reading.ask(args.get(1), |definition, order| {
        for member in args.from(2) {
            match order.record(member) {
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
    reading: &Reading<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> Result<(), Wrong> {
    let total = reading.ask(args.get(1), |_, order| order.total())?;
    to.integer(total.unwrap_or(0).cast_signed());
    Ok(())
}

/// `ZRANK key member [WITHSCORE]`
pub(in crate::resp) fn zrank(
    reading: &Reading<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> Result<(), Wrong> {
    rank(reading, args, to, false)
}

/// `ZREVRANK key member [WITHSCORE]`
pub(in crate::resp) fn zrevrank(
    reading: &Reading<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> Result<(), Wrong> {
    rank(reading, args, to, true)
}

fn rank(reading: &Reading<'_>, args: Args<'_>, to: &mut Encoder<'_>, reverse: bool) -> Result<(), Wrong> {
    if args.len() > 4 {
        return Err(error::arity(if reverse { "zrevrank" } else { "zrank" }));
    }
    let with_score = args.len() == 4;
    if with_score && !args.is(3, "withscore") {
        return Err(error::SYNTAX.into());
    }
    let found = reading.ask(args.get(1), |definition, order| {
        let (record, place) = order.find(args.get(2))?;
        let total = order.total();
        let ascending = turned(definition, place, total);
        let place = if reverse { total - 1 - ascending } else { ascending };
        Some((place, definition.score, record.score))
    })?;
    let found = found.flatten();
    if found.is_none() {
        reading.check_missed(args.get(1), args.get(2))?;
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
