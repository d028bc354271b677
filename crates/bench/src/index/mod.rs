//! Scenario `index`: the ranking in memory at growing sizes, beside maps of the standard library and Redis.
//!
//! The baseline is measured at a size where its ranks are bearable, with the same changes, and both must end with the
//! same ranking. At every size the index is checked before its figures count.

mod baseline;
mod ours;
pub(crate) mod players;
mod redis;
mod rounds;

use crate::error::{Error, prove};
use crate::options::Options;
use crate::targets::{BYTES_PER_MEMBER, RANK_NS, UPDATE_NS};
use baseline::Baseline;
use ours::Figures;
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let sizes: &[u64] = options.pick(&[100_000], &[10_000_000, 1_000_000, 100_000]);
    let mut report = Report::new("index", "the order in memory, 16-byte ids, random scores", options);
    let mut figures = Vec::new();
    // The largest first: memory that a smaller one freed would be reused, and missing from the resident set.
    for &members in sizes {
        options.say(&format!("index of {members} members"));
        figures.push(ours::measure(members, options.pick(3, 41), options.seed)?.0);
    }
    report.tables.push(table_of_sizes(&figures));
    report.tables.push(table_of_times(&figures));
    let largest = figures[0];
    let at = millions(largest.members);
    let bytes = largest.built.bytes.max(largest.updated.bytes);
    report.ratios.extend([
        Ratio::at_most(&format!("bytes per member, {at}"), bytes, "bytes", BYTES_PER_MEMBER),
        Ratio::at_most(&format!("rank, {at}"), largest.updated.rank_ns, "ns", RANK_NS),
        Ratio::at_most(&format!("update, {at}"), largest.update_ns, "ns", UPDATE_NS),
    ]);
    if figures.len() > 1 {
        report.charts.push(chart(&figures));
    }
    beside_baseline(&mut report, options)?;
    beside_redis(&mut report, options, bytes)?;
    let miss = rounds::miss_ns(options.pick(1 << 20, 1 << 26));
    report.note(format!(
        "a read that waits for memory took {} ns on this machine during the run",
        number(miss)
    ));
    report.note("bytes: the index's own count of what it holds on the heap, the larger of both states");
    report
        .note("resident: growth of the process while building, with what the allocator rounds up and keeps");
    report.note("times: median of rounds of 50,000 operations on one thread, players drawn at random");
    report.note("build: one pass over all players and the merge on top, drawing the players included");
    Ok(report)
}

fn millions(members: u64) -> String {
    if members >= 1_000_000 { format!("{} M", members / 1_000_000) } else { number(members as f64) }
}

fn table_of_sizes(figures: &[Figures]) -> Table {
    let columns =
        ["members", "build, s", "members/s", "bytes, built", "bytes, after updates", "resident bytes"];
    let mut table = Table::new("Size and build, bytes per member", &columns);
    for (at, one) in figures.iter().enumerate() {
        let resident = match one.resident {
            Some(bytes) if at == 0 => number(bytes),
            // Smaller ones reuse memory that the first one freed.
            Some(_) => "–".to_owned(),
            None => "unknown".to_owned(),
        };
        table.row(vec![
            number(one.members as f64),
            number(one.build_s),
            number(one.members as f64 / one.build_s),
            number(one.built.bytes),
            number(one.updated.bytes),
            resident,
        ]);
    }
    table
}

fn table_of_times(figures: &[Figures]) -> Table {
    let columns = ["members", "rank, ns", "around ±5, ns", "update, ns", "rank after", "around after"];
    let mut table =
        Table::new("Times, after the build and after random updates of half the members", &columns);
    for one in figures {
        table.row(vec![
            number(one.members as f64),
            number(one.built.rank_ns),
            number(one.built.around_ns),
            number(one.update_ns),
            number(one.updated.rank_ns),
            number(one.updated.around_ns),
        ]);
    }
    table
}

fn chart(figures: &[Figures]) -> Chart {
    let series = |name: &str, value: fn(&Figures) -> f64| Series {
        name: name.to_owned(),
        points: figures.iter().rev().map(|one| (one.members as f64, value(one))).collect(),
    };
    Chart {
        title: "Time of one operation over the size of the board".to_owned(),
        x: Axis::logarithmic("members"),
        y: Axis::linear("nanoseconds"),
        series: vec![
            series("rank", |one| one.updated.rank_ns),
            series("around ±5", |one| one.updated.around_ns),
            series("update", |one| one.update_ns),
        ],
    }
}

fn beside_baseline(report: &mut Report, options: &Options) -> Result<(), Error> {
    let members = options.pick(10_000, 100_000);
    options.say(&format!("the baseline, {members} members"));
    let (_, mut order) = ours::measure(members, 1, options.seed)?;
    // The index has had random changes by now; the baseline starts with its contents.
    let mut baseline = Baseline::of(&order, members);
    let (theirs, ours) = baseline::beside(&mut baseline, &mut order, options.seed);
    let (left, right) = (baseline.digest(), ours::digest(&order));
    prove(left.count == members, || "the baseline lost members".to_owned())?;
    prove(left.hash() == right.hash(), || "the same changes led to two orders".to_owned())?;
    let title = format!(
        "Beside a sorted set and a hash map, {} members, same changes, same order",
        number(members as f64)
    );
    let mut table = Table::new(&title, &["operation", "baseline, ns", "index, ns", "baseline / index"]);
    let rows = [
        ("rank", theirs.rank_ns, ours.rank_ns),
        ("update", theirs.update_ns, ours.update_ns),
        ("around ±5", theirs.around_ns, ours.around_ns),
    ];
    for (name, theirs, ours) in rows {
        table.row(vec![
            name.to_owned(),
            number(theirs),
            number(ours),
            format!("{} ×", number(theirs / ours)),
        ]);
    }
    report.tables.push(table);
    let name = format!("rank: baseline / index, {} members", number(members as f64));
    report.ratios.push(Ratio::times(&name, theirs.rank_ns / ours.rank_ns));
    Ok(())
}

fn beside_redis(report: &mut Report, options: &Options, bytes: f64) -> Result<(), Error> {
    let members = options.pick(10_000, 1_000_000);
    options.say("Redis, if it is installed");
    let Some(redis) = redis::measure(&options.redis, members, options.pick(2_000, 100_000), options.seed)?
    else {
        report.note("no redis-server was found, so there is no comparison with it");
        return Ok(());
    };
    let title = format!("Redis, a sorted set of {} members over loopback", number(members as f64));
    let mut table =
        Table::new(&title, &["bytes per member", "ZREVRANK/s, one at a time", "ZREVRANK/s, 16 at a time"]);
    table.row(vec![number(redis.bytes), number(redis.ranks_single), number(redis.ranks_pipelined)]);
    report.tables.push(table);
    report.ratios.push(Ratio::times("bytes per member: Redis / index", redis.bytes / bytes));
    report.note("Redis answers over a socket and the index in the process: only the bytes compare");
    Ok(())
}
