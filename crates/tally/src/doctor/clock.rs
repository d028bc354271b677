//! The server's clock: whether it is trusted, and whether stored instants are ahead of it.
//!
//! Not here: what a jump is (`tally_rules::clock`).

use super::DoctorReport;
use crate::client::Client;
use anyhow::{Context, Result};
use serde_json::Value;
use ureq::http::Method;

/// A smaller lead of the newest instants means nothing: several rows of a microsecond, or the clock of another
/// server.
const AHEAD_MAX_S: f64 = 60.0;

pub(super) fn examine(report: &mut DoctorReport, client: &Client) -> Result<()> {
    let status = client.ask(&Method::GET, "/v1/status", None).context("ask the server for its clock")?;
    check(report, &status["clock"]);
    Ok(())
}

fn check(report: &mut DoctorReport, clock: &Value) {
    let seconds = |name: &str| clock[name].as_f64().unwrap_or(0.0);
    let (jump, ahead) = (seconds("jump_s"), seconds("newest_ahead_s"));
    let mut good = true;
    if clock["believed"] == false {
        good = false;
        let text = format!(
            "clock: in doubt after a jump of {jump:.0} s: nothing is closed, paid or expired until it is set right, or has \
             been steady for `clock.steady`"
        );
        report.warn("clock_in_doubt", &text);
    }
    if ahead > AHEAD_MAX_S {
        good = false;
        let text = format!(
            "clock: at the start the newest stored instant lay {ahead:.0} s ahead: the clock is behind, or was ahead. Compare \
             it with another one; scores count by it, and only ties are decided by instants"
        );
        report.warn("instants_ahead", &text);
    }
    if good {
        report.ok("clock: trusted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_clock_in_doubt_and_instants_ahead_are_warned_of() {
        for (trusted, ahead, warnings) in
            [(true, 0.5, 0), (false, 0.0, 1), (true, 90_000.0, 1), (false, 61.0, 2)]
        {
            let mut report = DoctorReport::default();
            check(&mut report, &json!({"believed": trusted, "jump_s": 90_000.0, "newest_ahead_s": ahead}));
            assert_eq!((report.findings.len(), report.is_wrong()), (warnings, false), "{trusted} {ahead}");
        }
    }
}
