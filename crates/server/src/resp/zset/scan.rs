//! `ZSCAN` and `ZRANDMEMBER`, whose order is not specified.

use crate::resp::args::Args;
use crate::resp::error::{self, ErrorReply};
use crate::resp::keys::{Scan, VISIT_BYTES};
use crate::resp::run::REPLIES_BYTES_MAX;
use crate::resp::target::{ReadContext, write_score};
use std::collections::HashSet;
use tally_rules::definition::ScoreType;
use tally_service::Reads;
use tally_wire::resp::{Encoder, Protocol, number};

/// The maximum number of members of one `ZRANDMEMBER` with repetition.
const RANDOM_MAX: u64 = 1_000_000;

/// The maximum number of members in a reply, if each is one byte long.
const PLACES_MAX: u64 = (REPLIES_BYTES_MAX / 7) as u64;

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`
pub(in crate::resp) fn zscan(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let scan = Scan::read(args, 2)?;
    let (mut entries, mut kind, mut next) = (Vec::new(), ScoreType::Float64, 0);
    context.read_key(args.get(1), |definition, ranking| {
        kind = definition.score;
        next = ranking.scan(scan.cursor, scan.count, &mut |member, record| {
            to.work(VISIT_BYTES);
            if scan.pattern.as_ref().is_none_or(|pattern| pattern.fits(member)) {
                entries.push((member.to_vec(), record.score));
            }
        });
    })?;
    to.array(2);
    to.bulk(next.to_string());
    to.array(entries.len() * 2);
    for (member, score) in entries {
        to.bulk(&member);
        // A bulk string in both protocols.
        let mut text = Vec::new();
        write_score(&mut Encoder::new(&mut text, Protocol::Resp2), kind, score);
        to.raw(&text);
    }
    Ok(())
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub(in crate::resp) fn zrandmember(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    if args.len() == 2 {
        let done = context.read_key(args.get(1), |_, ranking| {
            let places = random_places(1, ranking.total())?;
            write_places(ranking, &places, &mut |member, _| to.bulk(member));
            Ok::<_, ErrorReply>(!places.is_empty())
        })?;
        if !done.transpose()?.unwrap_or(false) {
            to.null();
        }
        return Ok(());
    }
    let count = number::integer(args.get(2)).ok_or(error::NOT_AN_INTEGER)?;
    let with_scores = args.len() > 3;
    if args.len() > 4 || with_scores && !args.is(3, "withscores") {
        return Err(error::SYNTAX.into());
    }
    if with_scores && !(i64::MIN / 2..=i64::MAX / 2).contains(&count) || count == i64::MIN {
        return Err(error::OUT_OF_RANGE.into());
    }
    let nested = with_scores && context.protocol == Protocol::Resp3;
    let done = context.read_key(args.get(1), |definition, ranking| {
        let places = random_places(count, ranking.total())?;
        to.array(if with_scores && !nested { places.len() * 2 } else { places.len() });
        write_places(ranking, &places, &mut |member, score| {
            if nested {
                to.array(2);
            }
            to.bulk(member);
            if with_scores {
                write_score(to, definition.score, score);
            }
        });
        Ok::<_, ErrorReply>(())
    })?;
    if done.transpose()?.is_none() {
        to.array(0);
    }
    Ok(())
}

fn write_places(ranking: &dyn Reads, places: &[u64], each: &mut dyn FnMut(&[u8], i64)) {
    for place in places {
        ranking.visit(*place, 1, false, &mut |member, record| each(member, record.score));
    }
}

/// Random positions: each once for a positive count, with repetition for a negative one.
fn random_places(count: i64, total: u64) -> error::Result<Vec<u64>> {
    if total == 0 {
        return Ok(Vec::new());
    }
    let wanted = count.unsigned_abs();
    if count < 0 {
        if wanted > RANDOM_MAX {
            return Err(error::OUT_OF_RANGE.into());
        }
        return (0..wanted).map(|_| below(total)).collect();
    }
    if wanted.min(total) > PLACES_MAX {
        return Err(error::TOO_LARGE.into());
    }
    if wanted >= total {
        return Ok((0..total).collect());
    }
    // Floyd's sampling: as many draws as positions, each position once.
    let mut chosen = HashSet::new();
    let mut places = Vec::new();
    for last in total - wanted..total {
        let draw = below(last + 1)?;
        let place = if chosen.insert(draw) { draw } else { last };
        chosen.insert(place);
        places.push(place);
    }
    Ok(places)
}

fn below(bound: u64) -> error::Result<u64> {
    let random = getrandom::u64().map_err(|_| ErrorReply::from("ERR the system gives no random numbers"))?;
    Ok(((u128::from(random) * u128::from(bound)) >> 64) as u64)
}
