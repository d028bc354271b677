//! The tables and the figures with targets.

use super::Sizes;
use super::costs::{Cost, Costs};
use super::lag::Lag;
use super::takeovers::{How, Takeovers};
use crate::targets::{AFTER_LEASE_S, FOLLOWER_LAG_MS, HANDOVER_MS};
use tally_load::Latencies;
use tally_load::report::{Ratio, Report, Table, number};

const MIB: f64 = 1_048_576.0;

pub(super) fn show(
    report: &mut Report,
    sizes: Sizes,
    (costs, lags, takeovers): (&Costs, &[Lag], &[Takeovers]),
) {
    report.tables.push(lag_table(lags));
    for lag in lags {
        let name = format!("p99 of the lag at {} submits/s", number(f64::from(lag.rate)));
        report.ratios.push(Ratio::at_most(
            &name,
            lag.samples.follower.percentile_ms(99.0),
            "ms",
            FOLLOWER_LAG_MS,
        ));
    }
    report.tables.push(cost_table(costs));
    report.tables.push(size_table(costs));
    let [alone, _, followed, change] = &costs.submits;
    let mut compare = |name: &str, one: &Cost, other: &Cost| {
        report.ratios.push(Ratio::times(name, one.micros.max(1.0) / other.micros.max(1.0)));
    };
    compare("processor time of a submit, a server alone / a leader with a follower", alone, followed);
    compare("processor time of a submit at the leader / of its change at the follower", followed, change);
    report.tables.push(takeover_table(takeovers));
    takeover_ratios(report, sizes, takeovers);
}

fn lag_table(lags: &[Lag]) -> Table {
    let columns = [
        "submits/s",
        "done/s",
        "dropped",
        "samples",
        "lag p50 ms",
        "p99",
        "max",
        "a read at the leader p50 ms",
        "p99",
        "age_s p50 ms",
        "max",
    ];
    let mut table = Table::new("From the leader's answer until the follower shows the record", &columns);
    for Lag { rate, outcome, samples } in lags {
        let mut row = vec![
            number(f64::from(*rate)),
            number(outcome.rate()),
            outcome.dropped.to_string(),
            samples.follower.count().to_string(),
        ];
        row.extend(middle_and_most(&samples.follower));
        row.extend([50.0, 99.0].map(|percent| number(samples.leader.percentile_ms(percent))));
        row.extend([number(samples.age.percentile_ms(50.0)), number(samples.age.max_ms())]);
        table.row(row);
    }
    table
}

/// Percentiles 50 and 99, and the maximum.
fn middle_and_most(latencies: &Latencies) -> [String; 3] {
    let of = |percent| number(latencies.percentile_ms(percent));
    [of(50.0), of(99.0), number(latencies.max_ms())]
}

fn cost_table(costs: &Costs) -> Table {
    let mut table = Table::new("Processor time", &["what", "server", "how often", "µs of a processor"]);
    for Cost { what, server, count, micros } in costs.submits.iter().chain(&costs.others) {
        table.row(vec![what.clone(), (*server).to_owned(), number(*count as f64), number(*micros)]);
    }
    table
}

fn size_table(costs: &Costs) -> Table {
    let mut table = Table::new("Bytes", &["what", "value"]);
    let mut row = |what: &str, value: f64| table.row(vec![what.to_owned(), number(value)]);
    let submits = costs.submits[2].count.max(1) as f64;
    row("from the leader to a follower for each submit", costs.counted.to_follower as f64 / submits);
    row("from a follower to the leader for each submit", costs.counted.to_leader as f64 / submits);
    let [alone, leader, follower] = costs.resident.map(|bytes| bytes / MIB);
    row("resident memory of a server alone, MiB", alone);
    row("resident memory of a leader with a follower, MiB", leader);
    row("resident memory of the follower, MiB", follower);
    table
}

fn takeover_table(takeovers: &[Takeovers]) -> Table {
    let columns = [
        "the leader gets",
        "servers",
        "times",
        "longest wait p50 ms",
        "p99",
        "max",
        "changes",
        "sent twice",
        "more often",
        "at most",
        "failed",
        "lost",
        "doubled",
    ];
    let mut table = Table::new("The longest wait of a change in each takeover", &columns);
    for Takeovers { how, servers, waits, written } in takeovers {
        let mut row = vec![signal(*how).to_owned(), servers.to_string(), waits.count().to_string()];
        row.extend(middle_and_most(waits));
        let twice = written.retried - written.retried_again;
        row.extend(
            [written.requests, twice, written.retried_again, written.tries_max].map(|n| n.to_string()),
        );
        // The run ends with an error otherwise.
        row.extend(["0", "0", "0"].map(str::to_owned));
        table.row(row);
    }
    table
}

const fn signal(how: How) -> &'static str {
    match how {
        How::Handover => "SIGTERM",
        How::Kill => "SIGKILL",
    }
}

fn takeover_ratios(report: &mut Report, sizes: Sizes, takeovers: &[Takeovers]) {
    let waits = |how, servers| {
        takeovers.iter().find(|one| (one.how, one.servers) == (how, servers)).map(|one| &one.waits)
    };
    for how in [How::Handover, How::Kill] {
        let (Some(two), Some(one)) = (waits(how, 2), waits(how, 1)) else { continue };
        let signal = signal(how);
        report.ratios.push(match how {
            How::Handover => {
                Ratio::at_most("longest wait of a change at a handover", two.max_ms(), "ms", HANDOVER_MS)
            }
            How::Kill => {
                let name = format!("longest wait after a kill, without the lease of {} s", sizes.lease_s);
                let beyond = two.max_ms() / 1e3 - f64::from(sizes.lease_s);
                Ratio::at_most(&name, beyond.max(1e-3), "s", AFTER_LEASE_S)
            }
        });
        let name = format!("median of the longest waits after {signal}, a server alone / with a follower");
        let ratio = one.percentile_ms(50.0) / two.percentile_ms(50.0).max(1e-3);
        report.ratios.push(Ratio::times(&name, ratio));
    }
}
