//! `LB.RANK`, `LB.TOP`, `LB.AROUND`, `LB.AMONG`, `LB.PERIODS`.

use super::submit::write_exact;
use super::{COUNT_MAX, count};
use crate::resp::args::Args;
use crate::resp::error;
use crate::resp::target::{ReadContext, player};
use tally_rules::{Definition, PlayerId};
use tally_service::periods::view;
use tally_service::{PageQuery, RankedEntry};
use tally_wire::resp::Encoder;

/// `LB.RANK board player`: `[rank, score, total]`, and the subscore as fourth if the board has one.
pub(in crate::resp) fn rank(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let player = player(args.get(2))?;
    let found = context.read_key(args.get(1), |definition, ranking| {
        let ranked = ranking.ranked(&player)?;
        to.array(if definition.has_subscore() { 4 } else { 3 });
        to.integer(ranked.rank.cast_signed());
        write_exact(to, definition.score, ranked.record.score);
        to.integer(ranked.total.cast_signed());
        if definition.has_subscore() {
            to.integer(ranked.record.subscore);
        }
        Some(())
    })?;
    if found.flatten().is_none() {
        context.check_missed(args.get(1), args.get(2))?;
        to.null_array();
    }
    Ok(())
}

/// `LB.TOP board n`: `[[rank, player, score] …]`
pub(in crate::resp) fn top(context: &ReadContext<'_>, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let limit = count(args.get(2))?;
    let page = context.read_key(args.get(1), |definition, ranking| {
        let query = PageQuery { limit, ..PageQuery::default() };
        write_places(definition, &ranking.page(&query).entries, to);
    })?;
    if page.is_none() {
        to.array(0);
    }
    Ok(())
}

/// `LB.AROUND board player above below`: the same; empty for a player without a rank.
pub(in crate::resp) fn around(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let player = player(args.get(2))?;
    let (above, below) = (count(args.get(3))?, count(args.get(4))?);
    let page = context.read_key(args.get(1), |definition, ranking| {
        let page = ranking.around(&player, above, below)?;
        write_places(definition, &page.entries, to);
        Some(())
    })?;
    if page.flatten().is_none() {
        context.check_missed(args.get(1), args.get(2))?;
        to.array(0);
    }
    Ok(())
}

/// `LB.AMONG board player …`: `[[rank, overall-rank, player, score] …]`
pub(in crate::resp) fn among(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    if args.len() - 2 > COUNT_MAX.unsigned_abs() as usize {
        return Err(format!("ERR at most {COUNT_MAX} players").into());
    }
    let players: Vec<PlayerId> = args.from(2).map(player).collect::<Result<_, _>>()?;
    let among = context.read_key(args.get(1), |definition, ranking| {
        let among = ranking.among(&players);
        to.array(among.entries.len());
        for (rank, place) in &among.entries {
            to.array(4);
            to.integer(rank.cast_signed());
            to.integer(place.rank.cast_signed());
            to.bulk(place.player.as_bytes());
            write_exact(to, definition.score, place.record.score);
        }
    })?;
    if among.is_none() {
        to.array(0);
    }
    Ok(())
}

/// `LB.PERIODS board`: `[[period, start, end, state, total] …]`, instants in microseconds.
pub(in crate::resp) fn periods(
    context: &ReadContext<'_>,
    args: Args<'_>,
    to: &mut Encoder<'_>,
) -> error::Result {
    let target = context.target(args.get(1))?;
    let now = context.tally.now();
    let list = |board| view::list_with(board, now, |live| context.rankings.total(board, live));
    let listed = target.board().map(|board| list(board)).unwrap_or_default();
    to.array(listed.len());
    for one in &listed {
        to.array(5);
        to.bulk(&one.period);
        to.integer(one.start.0);
        to.integer(one.end.0);
        to.bulk(one.state);
        to.integer(one.total.cast_signed());
    }
    Ok(())
}

fn write_places(definition: &Definition, places: &[RankedEntry], to: &mut Encoder<'_>) {
    to.array(places.len());
    for place in places {
        to.array(3);
        to.integer(place.rank.cast_signed());
        to.bulk(place.player.as_bytes());
        write_exact(to, definition.score, place.record.score);
    }
}
