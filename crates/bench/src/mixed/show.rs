//! The report of `mixed`: rates and latencies of every way, memory, and ratios beside R3 and the baseline.

use super::{READ_BACK, SKEWS, Way, Work};
use crate::targets::{MIXED_TIMES_R3, R3_RATE};
use tally_load::Latencies;
use tally_load::report::{Ratio, Report, Table, number, or_dash};

const COLUMNS: [&str; 12] = [
    "way",
    "players",
    "submits/s",
    "p50 ms",
    "p99",
    "p99.9",
    "±5 reads/s",
    "p50 ms",
    "p99",
    "p99.9",
    "CPU µs of one: server + database + Redis",
    "× baseline",
];

pub(super) fn show(report: &mut Report, ways: &[Way], work: Work) {
    report.tables.push(rates(ways));
    report.tables.push(memory(ways, work));
    for way in ways.iter().filter(|way| way.name.starts_with("tally")) {
        for run in &way.runs {
            for (what, latencies) in [("submits/s", &run.submits), ("±5 reads/s", &run.reads)] {
                let theirs = number(R3_RATE);
                let name = format!("{what}, {}, {} / R3's {theirs}", way.name, run.skew.name());
                report.ratios.push(Ratio::at_least(&name, run.rate(latencies) / R3_RATE, MIXED_TIMES_R3));
            }
        }
    }
    for (at, skew) in SKEWS.into_iter().enumerate() {
        let Some(baseline) = baseline(ways) else { continue };
        for way in ways.iter().filter(|way| way.name.starts_with("tally")) {
            let name = format!("submits and reads/s, {} / baseline, {}", way.name, skew.name());
            report.ratios.push(Ratio::times(&name, way.runs[at].all() / baseline.runs[at].all()));
            let (theirs, ours) = (baseline.runs[at].cpu_us(), way.runs[at].cpu_us());
            // 0 is an unknown figure.
            if theirs > 0.0 && ours > 0.0 {
                let name =
                    format!("processor time of a submit or read, baseline / {}, {}", way.name, skew.name());
                report.ratios.push(Ratio::times(&name, theirs / ours));
            }
        }
    }
    notes(report, work);
}

fn baseline(ways: &[Way]) -> Option<&Way> {
    ways.iter().find(|way| way.name.starts_with("baseline"))
}

fn rates(ways: &[Way]) -> Table {
    let mut table = Table::new("Rate, and latency from asking to the whole answer", &COLUMNS);
    for way in ways {
        for (at, run) in way.runs.iter().enumerate() {
            let mut row = vec![way.name.to_owned(), run.skew.name().to_owned()];
            let mut add = |latencies: &Latencies| {
                row.push(number(run.rate(latencies)));
                row.extend([50.0, 99.0, 99.9].map(|percent| number(latencies.percentile_ms(percent))));
            };
            add(&run.submits);
            add(&run.reads);
            row.push(run.cpu_us_each().map(|one| or_dash(one, number)).join(" + "));
            let times = baseline(ways).map_or(0.0, |baseline| run.all() / baseline.runs[at].all());
            row.push(format!("{} ×", number(times)));
            table.row(row);
        }
    }
    table
}

fn memory(ways: &[Way], work: Work) -> Table {
    let columns = [
        "way",
        "server MiB",
        "Redis MiB",
        "bytes a player",
        "database MiB",
        "filled, scores/s",
        "started in s",
    ];
    let mut table = Table::new("Memory at the end, filling, and a start with all players", &columns);
    let mib = |bytes: Option<u64>| or_dash(bytes, |bytes| number(bytes as f64 / 1_048_576.0));
    for way in ways {
        let of_ranks = way.memory.redis.or(way.memory.server);
        table.row(vec![
            way.name.to_owned(),
            mib(way.memory.server),
            mib(way.memory.redis),
            or_dash(of_ranks, |bytes| number(bytes as f64 / work.players as f64)),
            mib(way.memory.database),
            or_dash(way.filled, number),
            or_dash(way.started_s, number),
        ]);
    }
    table
}

fn notes(report: &mut Report, work: Work) {
    report.note(
        "tally: the real server over HTTP, closed loop, one thread of load; an answer to a submit has the previous score and \
         both ranks, and is durable",
    );
    report.note(
        "baseline: as many callers, each with a connection to the database and one to Redis, no server between; a submit is an \
         upsert of one row, then a ZADD; a read is a ZREVRANK, then a ZREVRANGE",
    );
    report.note(
        "each connection submits for players of its own, so a player has one submit on the way at most; Zipf: a connection's \
         players in proportion to 1/k^0.99, and so are all players for reads",
    );
    report.note(
        "CPU: processor time for a submit or a read, of tally's server or the baseline callers, of the database and of Redis; on a \
         busy machine it says more than rates",
    );
    report.note("bytes a player: of Redis where it has the ranks, else of the whole server; ranks in Redis begin with the rows of the way before");
    report.note(format!(
        "R3's {} + {}/s: 100 million players, server and load on 8 processors, database on 4, Redis beside them",
        number(R3_RATE),
        number(R3_RATE)
    ));
    report.note(format!(
        "read back: {} random players of each way had the score acknowledged last, the baseline's in both places",
        READ_BACK.min(work.players)
    ));
    report.note("load, server, database and Redis share the machine, so Redis may take 20 s to answer while it is loaded");
}
