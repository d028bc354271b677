//! How many connections are enough: by the database's processors, and by Little's law from measured times.

use super::Report;
use crate::config::Config;
use crate::target::Target;
use anyhow::Result;

/// A running server's averages, since it started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    /// Of a batch in the store: reading and committing.
    seconds: f64,
    rows_per_batch: f64,
}

/// Says what the pool should be and what it is.
pub(super) fn judge(report: &mut Report, config: &Config, target: &Target, rate: Option<u64>) -> Result<()> {
    let here = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let wanted = here * 2 + 1;
    let set = config.count("store.pool_max")?;
    let line = format!(
        "store.pool_max = {set}; 2 × processors of the database + 1 is {wanted} if it has {here} as this machine (a \
         database does not tell)"
    );
    if set > wanted * 4 {
        report.warn(&format!("{line}: more connections than it can work for are in each other's way"));
    } else {
        report.ok(&line);
    }
    measured(report, target, rate)
}

/// Says how many connections the rate takes.
pub(super) fn measured(report: &mut Report, target: &Target, rate: Option<u64>) -> Result<()> {
    let Some(rate) = rate else {
        report.ok("connections by Little's law: not asked for, see --target-rate");
        return Ok(());
    };
    let measured = if target.is_own() { None } else { read(&target.client.text("/metrics")?) };
    let Some(measured) = measured else {
        report.warn("connections by Little's law: no server runs here that has measured a batch");
        return Ok(());
    };
    report.ok(&format!(
        "connections by Little's law: {:.2} in use at {rate} rows/s, with {:.1} rows per batch and {:.2} ms per batch \
         as measured",
        in_use(measured, rate),
        measured.rows_per_batch,
        measured.seconds * 1e3
    ));
    Ok(())
}

/// What is there at a time is what comes per second, times how long each stays.
fn in_use(measured: Measured, rate: u64) -> f64 {
    rate as f64 / measured.rows_per_batch * measured.seconds
}

fn read(metrics: &str) -> Option<Measured> {
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<f64>().ok()
    };
    let mean = |stage: &str| {
        let of =
            |what: &str| value(&format!("tally_lane_seconds_{what}{{lane=\"scores\",stage=\"{stage}\"}}"));
        let (sum, count) = (of("sum")?, of("count")?);
        Some(if count > 0.0 { sum / count } else { 0.0 })
    };
    let (rows, batches) = (value("tally_lane_rows_total")?, value("tally_lane_batches_total")?);
    (rows > 0.0 && batches > 0.0)
        .then_some(Measured { seconds: mean("read")? + mean("commit")?, rows_per_batch: rows / batches })
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
        let measured = read(&text).unwrap();
        assert!((measured.seconds - 0.005).abs() < 1e-9 && (measured.rows_per_batch - 30.0).abs() < 1e-9);
        assert!((in_use(measured, 12_000) - 2.0).abs() < 1e-9);
        assert_eq!(read("tally_lane_rows_total 0\ntally_lane_batches_total 0\n"), None);
    }
}
