//! The necessary number of connections: by the database's processors, and by Little's law from measured
//! times.

use super::DoctorReport;
use crate::config::{Config, Usage};
use crate::target::TargetServer;
use anyhow::Result;

/// A running server's averages, since it started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    /// Of a batch in the store: reading and committing.
    seconds: f64,
    rows_per_batch: f64,
}

/// Reports the proper size of the pool and its size; returns the latter.
pub(super) fn check(report: &mut DoctorReport, config: &Config) -> Result<usize, Usage> {
    let here = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let wanted = here * 2 + 1;
    let set = config.count("store.pool_max")?;
    let line = format!(
        "store.pool_max = {set}; 2 × processors of the database + 1 is {wanted} if it has {here} as this machine (a \
         database does not tell)"
    );
    if set > wanted * 4 {
        report.warn(
            "pool_large",
            &format!("{line}: more connections than it can work for are in each other's way"),
        );
    } else {
        report.ok(&line);
    }
    Ok(set)
}

/// Reports the connections for the target rate, and whether the pool has them.
pub(super) fn measured(
    report: &mut DoctorReport,
    target: &TargetServer,
    rate: Option<u64>,
    pool: Option<usize>,
) -> Result<()> {
    let Some(rate) = rate else {
        report.ok("connections by Little's law: not asked for, see --target-rate");
        return Ok(());
    };
    let metrics = if target.is_own() { String::new() } else { target.client.text("/metrics")? };
    let lanes = [("scores", "rows", scores(&metrics)), ("ledger", "movements", ledger(&metrics))];
    if lanes.iter().all(|(_, _, measured)| measured.is_none()) {
        report.warn(
            "pool_unmeasured",
            "connections by Little's law: no server runs here that has measured a batch",
        );
    }
    for (lane, rows, measured) in lanes {
        let Some(measured) = measured else { continue };
        let connections = in_use(measured, rate);
        let line = format!(
            "connections by Little's law: {connections:.2} in use at {rate} {rows}/s, with {:.1} {rows} per batch and \
             {:.2} ms per batch in SQL as measured of {lane}",
            measured.rows_per_batch,
            measured.seconds * 1e3
        );
        match pool {
            None => report.ok(&line),
            Some(pool) if connections <= pool as f64 => {
                report.ok(&format!("{line}: store.pool_max = {pool} is enough"));
            }
            Some(pool) => report.warn(
                "pool_small",
                &format!(
                    "{line}: more than store.pool_max = {pool}; unless batches grow with the rate, it is not reached"
                ),
            ),
        }
    }
    Ok(())
}

/// Little's law: the mean number in use is the arrival rate times the mean time in use.
fn in_use(measured: Measured, rate: u64) -> f64 {
    rate as f64 / measured.rows_per_batch * measured.seconds
}

fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse::<f64>().ok()
}

/// Of the score lanes.
fn scores(metrics: &str) -> Option<Measured> {
    let mean = |stage: &str| {
        let of = |what: &str| {
            value(metrics, &format!("tally_lane_seconds_{what}{{lane=\"scores\",stage=\"{stage}\"}}"))
        };
        let (sum, count) = (of("sum")?, of("count")?);
        Some(if count > 0.0 { sum / count } else { 0.0 })
    };
    let (rows, batches) =
        (value(metrics, "tally_lane_rows_total")?, value(metrics, "tally_lane_batches_total")?);
    (rows > 0.0 && batches > 0.0)
        .then_some(Measured { seconds: mean("read")? + mean("commit")?, rows_per_batch: rows / batches })
}

/// Of the ledger's lane: a batch uses one connection for all of its time in the store.
fn ledger(metrics: &str) -> Option<Measured> {
    let of = |what: &str| value(metrics, &format!("tally_ledger_lane_{what}_total"));
    let (rows, batches, seconds) = (of("rows")?, of("batches")?, of("commit_seconds")?);
    (rows > 0.0 && batches > 0.0)
        .then_some(Measured { seconds: seconds / batches, rows_per_batch: rows / batches })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_in_use_come_from_the_measured_means() {
        let mut text = String::from("tally_lane_rows_total 3000\ntally_lane_batches_total 100\n");
        for (stage, sum) in [("read", "0.1"), ("commit", "0.4"), ("publish", "9")] {
            text += &format!("tally_lane_seconds_sum{{lane=\"scores\",stage=\"{stage}\"}} {sum}\n");
            text += &format!("tally_lane_seconds_count{{lane=\"scores\",stage=\"{stage}\"}} 100\n");
        }
        let measured = scores(&text).unwrap();
        assert!((measured.seconds - 0.005).abs() < 1e-9 && (measured.rows_per_batch - 30.0).abs() < 1e-9);
        assert!((in_use(measured, 12_000) - 2.0).abs() < 1e-9);
        assert_eq!(scores("tally_lane_rows_total 0\ntally_lane_batches_total 0\n"), None);
    }

    #[test]
    fn of_the_ledger_too() {
        let text = "tally_ledger_lane_rows_total 2000\ntally_ledger_lane_batches_total 500\n\
                    tally_ledger_lane_commit_seconds_total 1.5\n";
        let measured = ledger(text).unwrap();
        // 1,000 batches a second of 3 ms each use three connections.
        let alone = Measured { rows_per_batch: 1.0, ..measured };
        assert!((in_use(alone, 1_000) - 3.0).abs() < 1e-9 && (in_use(measured, 1_000) - 0.75).abs() < 1e-9);
        assert_eq!(ledger("tally_ledger_lane_rows_total 0\ntally_ledger_lane_batches_total 0\n"), None);
    }
}
