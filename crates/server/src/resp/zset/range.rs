//! Ranges by position, score and member: `ZRANGE` and its older names, `ZCOUNT`, `ZLEXCOUNT`.
//!
//! Every range becomes an entry range counted from the lowest score; one function writes it.

use super::reversed_position;
use crate::resp::args::Args;
use crate::resp::error;
use crate::resp::target::{ReadContext, score_range, write_score};
use std::ops::Range;
use tally_rules::Definition;
use tally_rules::definition::Order;
use tally_rules::sorted_set::{Bound, places};
use tally_service::Reads;
use tally_service::scores::select::member_places;
use tally_wire::resp::{Encoder, Protocol, number};

/// The unit of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    RankedEntry,
    Score,
    Member,
}

/// The query, as the arguments give it.
struct RangeQuery<'a> {
    by: By,
    reverse: bool,
    start: &'a [u8],
    stop: &'a [u8],
    /// Entries to skip and to return; a negative count returns all.
    limit: Option<(i64, i64)>,
    with_scores: bool,
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub(in crate::resp) fn zrange(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    general(context, args, to, None, false)
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub(in crate::resp) fn zrevrange(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    general(context, args, to, Some(By::RankedEntry), true)
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub(in crate::resp) fn zrangebyscore(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    general(context, args, to, Some(By::Score), false)
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub(in crate::resp) fn zrevrangebyscore(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    general(context, args, to, Some(By::Score), true)
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub(in crate::resp) fn zrangebylex(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    general(context, args, to, Some(By::Member), false)
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub(in crate::resp) fn zrevrangebylex(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    general(context, args, to, Some(By::Member), true)
}

/// `ZCOUNT key min max`
pub(in crate::resp) fn zcount(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    count(context, args, to, By::Score)
}

/// `ZLEXCOUNT key min max`
pub(in crate::resp) fn zlexcount(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    count(context, args, to, By::Member)
}

fn count(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>, by: By) -> error::Result {
    let query = RangeQuery {
        by,
        reverse: false,
        start: args.get(2),
        stop: args.get(3),
        limit: None,
        with_scores: false,
    };
    query.check()?;
    let range = context.read_key(args.get(1), |definition, ranking| query.range(definition, ranking))?;
    let range = range.transpose()?.unwrap_or(0..0);
    to.integer((range.end - range.start).cast_signed());
    Ok(())
}

/// All of them are one command; `by` is fixed for the older names.
fn general(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
    by: Option<By>,
    reverse: bool,
) -> error::Result {
    let query = RangeQuery::read(args, by, reverse)?;
    query.check()?;
    let target = context.target(args.get(1))?;
    let protocol = context.protocol;
    let done = context.read(&target, |definition, ranking| {
        let range = query.range(definition, ranking)?;
        let list = List { with_scores: query.with_scores, protocol };
        list.write(definition, ranking, &range, query.reverse, to)
    })?;
    match done {
        Some(done) => done,
        None => {
            to.array(0);
            Ok(())
        }
    }
}

impl<'a> RangeQuery<'a> {
    fn read(args: Args<'a>, by: Option<By>, reverse: bool) -> error::Result<Self> {
        // As in Redis, each option may come once.
        let (mut chosen, mut rev, mut with_scores, mut limit) = (by, reverse, false, None);
        let mut at = 4;
        while at < args.len() {
            let may_reverse = by.is_none() && !rev;
            match args.get(at) {
                word if word.eq_ignore_ascii_case(b"withscores") => with_scores = true,
                word if word.eq_ignore_ascii_case(b"limit") && at + 2 < args.len() => {
                    let number = |at| number::integer(args.get(at)).ok_or(error::NOT_AN_INTEGER);
                    limit = Some((number(at + 1)?, number(at + 2)?));
                    at += 2;
                }
                word if may_reverse && word.eq_ignore_ascii_case(b"rev") => rev = true,
                word if chosen.is_none() && word.eq_ignore_ascii_case(b"byscore") => chosen = Some(By::Score),
                word if chosen.is_none() && word.eq_ignore_ascii_case(b"bylex") => chosen = Some(By::Member),
                _ => return Err(error::SYNTAX.into()),
            }
            at += 1;
        }
        let by = chosen.unwrap_or(By::RankedEntry);
        // A limit of -1 is no limit, even for a range that allows none.
        let limit = limit.filter(|(_, count)| by != By::RankedEntry || *count != -1);
        if limit.is_some() && by == By::RankedEntry {
            return Err(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
                    .into(),
            );
        }
        if with_scores && by == By::Member {
            return Err("ERR syntax error, WITHSCORES not supported in combination with BYLEX".into());
        }
        // A reversed range of values names its upper bound first.
        let (start, stop) = match (by, rev) {
            (By::Score | By::Member, true) => (args.get(3), args.get(2)),
            (_, _) => (args.get(2), args.get(3)),
        };
        Ok(Self { by, reverse: rev, start, stop, limit, with_scores })
    }

    /// Refuses malformed bounds, whatever the key names.
    fn check(&self) -> error::Result {
        match self.by {
            By::RankedEntry => {
                for text in [self.start, self.stop] {
                    number::integer(text).ok_or(error::NOT_AN_INTEGER)?;
                }
            }
            By::Score => drop(score_range(Definition::sorted_set().score, self.start, self.stop)?),
            By::Member => drop((lex(self.start)?, lex(self.stop)?)),
        }
        Ok(())
    }

    /// Ordinal positions from the lowest score.
    fn range(&self, definition: &Definition, ranking: &dyn Reads) -> error::Result<Range<u64>> {
        let total = ranking.total();
        let number = |text| number::integer(text).ok_or(error::NOT_AN_INTEGER);
        let range = match self.by {
            By::RankedEntry => {
                let range = places(number(self.start)?, number(self.stop)?, total).unwrap_or(0..0);
                if self.reverse { total - range.end..total - range.start } else { range }
            }
            By::Score => match score_range(definition.score, self.start, self.stop)? {
                None => 0..0,
                Some((min, max)) => ascending(definition, ranking.score_places(Some(min), Some(max)), total),
            },
            By::Member => {
                check_sorted_set(definition)?;
                let (low, high) = (lex(self.start)?, lex(self.stop)?);
                ascending(definition, member_places(definition, ranking, &low, &high), total)
            }
        };
        let range = if range.start < range.end { range } else { 0..0 };
        Ok(self.limited(range))
    }

    fn limited(&self, range: Range<u64>) -> Range<u64> {
        let Some((offset, count)) = self.limit else { return range };
        let length = range.end - range.start;
        let Ok(skip) = u64::try_from(offset) else { return 0..0 };
        let skip = skip.min(length);
        let take = u64::try_from(count).unwrap_or(u64::MAX).min(length - skip);
        if self.reverse {
            range.end - skip - take..range.end - skip
        } else {
            range.start + skip..range.start + skip + take
        }
    }
}

fn ascending(definition: &Definition, (from, to): (u64, u64), total: u64) -> Range<u64> {
    match definition.order {
        Order::Ascending => from..to,
        Order::Descending => total - to..total - from.min(total),
    }
}

/// Ranges of members need a ranking that is sorted by members.
pub(super) fn check_sorted_set(definition: &Definition) -> error::Result {
    let set = Definition::sorted_set();
    let same = (definition.update, definition.ties, definition.score) == (set.update, set.ties, set.score);
    if same && definition.order == set.order { Ok(()) } else { Err(error::NOT_A_SORTED_SET.into()) }
}

/// One bound of a range of members.
pub(super) fn lex(text: &[u8]) -> error::Result<Bound> {
    match text {
        b"-" => Ok(Bound::Lowest),
        b"+" => Ok(Bound::Highest),
        [b'[', rest @ ..] => Ok(Bound::Inclusive(rest.to_vec())),
        [b'(', rest @ ..] => Ok(Bound::Exclusive(rest.to_vec())),
        _ => Err(error::NOT_A_LEX_RANGE.into()),
    }
}

/// The form of the reply.
struct List {
    with_scores: bool,
    protocol: Protocol,
}

impl List {
    fn write(
        &self,
        definition: &Definition,
        ranking: &dyn Reads,
        range: &Range<u64>,
        reverse: bool,
        to: &mut Encoder<'_>,
    ) -> error::Result {
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let nested = self.with_scores && self.protocol == Protocol::Resp3;
        to.array(if self.with_scores && !nested { count * 2 } else { count });
        if count == 0 {
            return Ok(());
        }
        let first = if reverse { range.end - 1 } else { range.start };
        let from = reversed_position(definition, first, ranking.total());
        let towards_better = reverse == (definition.order == Order::Ascending);
        ranking.visit(from, count, towards_better, &mut |member, record| {
            if nested {
                to.array(2);
            }
            to.bulk(member);
            if self.with_scores {
                write_score(to, definition.score, record.score);
            }
        });
        Ok(())
    }
}
