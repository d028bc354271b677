//! What a run must reach, as `p95<300ms` or `transfer.p99.9<=20ms` or `errors<1%`: parsing and judging.
//!
//! Pure. A threshold without a name applies to whole iterations. `errors` and `dropped` are percentages of the arrivals
//! or, without a percent sign, counts.

use super::outcome::OpenOutcome;
use std::fmt;

/// The measured figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// A percentile of latency, in milliseconds; 100 is the slowest.
    Percentile(f64),
    /// Calls that failed.
    Errors,
    /// Iterations that were not started.
    Dropped,
}

/// One requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    /// The name of a call; `None` for iterations.
    call: Option<String>,
    figure: Figure,
    or_equal: bool,
    limit: f64,
    percent: bool,
}

/// The result of one threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdResult {
    /// Its text.
    pub threshold: String,
    /// The measured value, in the same unit.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
    /// Whether the run meets it.
    pub kept: bool,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Threshold {
    /// Parses one; `calls` are the valid names.
    ///
    /// # Errors
    ///
    /// What is wrong, as text.
    pub fn parse(text: &str, calls: &[&str]) -> Result<Self, String> {
        let shape = || {
            format!(
                "`{text}` is no threshold; examples: p95<300ms, transfer.p99.9<20ms, errors<1%, dropped<=0"
            )
        };
        let (left, right) = text.split_once('<').ok_or_else(shape)?;
        let (or_equal, right) = right.strip_prefix('=').map_or((false, right), |rest| (true, rest));
        let (left, right) = (left.trim(), right.trim());
        let (call, figure) = match left.split_once('.') {
            Some((name, figure)) if calls.contains(&name) => (Some(name.to_owned()), figure),
            Some((name, _)) if !name.starts_with('p') => {
                return Err(format!("no call is named `{name}`; there are {}", calls.join(", ")));
            }
            _ => (None, left),
        };
        let figure = match figure {
            "errors" => Figure::Errors,
            "dropped" if call.is_none() => Figure::Dropped,
            "max" => Figure::Percentile(100.0),
            other => {
                let percent = other.strip_prefix('p').and_then(|digits| digits.parse().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                Figure::Percentile(percent.ok_or_else(shape)?)
            }
        };
        let is_time = matches!(figure, Figure::Percentile(_));
        let (digits, factor, percent) = if let Some(digits) = right.strip_suffix("ms").filter(|_| is_time) {
            (digits, 1.0, false)
        } else if let Some(digits) = right.strip_suffix('s').filter(|_| is_time) {
            (digits, 1_000.0, false)
        } else if let Some(digits) = right.strip_suffix('%').filter(|_| !is_time) {
            (digits, 1.0, true)
        } else if is_time {
            return Err(format!("`{text}` needs a unit: ms or s"));
        } else {
            (right, 1.0, false)
        };
        let limit: f64 = digits.trim().parse().map_err(|_| shape())?;
        if !limit.is_finite() || limit < 0.0 {
            return Err(shape());
        }
        Ok(Self { text: text.to_owned(), call, figure, or_equal, limit: limit * factor, percent })
    }

    /// Compares the run with it.
    #[must_use]
    pub fn check(&self, outcome: &OpenOutcome) -> ThresholdResult {
        let call = self.call.as_ref().and_then(|name| outcome.calls.iter().find(|call| call.name == name));
        let (latencies, errors, all) = match call {
            Some(call) => (&call.latencies, call.failed(), call.count()),
            None => (&outcome.iterations, outcome.failed, outcome.arrived),
        };
        let share = |count: u64| {
            if self.percent { count as f64 * 100.0 / all.max(1) as f64 } else { count as f64 }
        };
        let value = match self.figure {
            Figure::Percentile(percent) => latencies.percentile_ms(percent),
            Figure::Errors => share(errors),
            Figure::Dropped => share(outcome.dropped),
        };
        // A percentile without measurements is not met: nothing was shown to be fast.
        let measured = latencies.count() > 0 || !matches!(self.figure, Figure::Percentile(_));
        let kept = measured && (value < self.limit || (self.or_equal && value <= self.limit));
        let unit = match self.figure {
            Figure::Percentile(_) => "ms",
            _ if self.percent => "%",
            _ => "",
        };
        ThresholdResult { threshold: self.text.clone(), value, unit, kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome() -> OpenOutcome {
        let mut outcome = OpenOutcome::new(&["sign-in", "transfer"]);
        for ms in 1..=100 {
            outcome.iterations.record(Duration::from_millis(ms));
            outcome.calls[1].latencies.record(Duration::from_millis(ms / 2 + 1));
        }
        outcome.arrived = 200;
        outcome.dropped = 3;
        outcome.failed = 2;
        outcome.calls[1].errors.insert("503 busy".into(), 2);
        outcome
    }

    #[test]
    fn they_are_checked_by_what_was_measured() {
        let (outcome, calls) = (outcome(), ["sign-in", "transfer"]);
        for (text, kept) in [
            ("p95<96ms", true),
            ("p95<94ms", false),
            ("p50<0.06s", true),
            ("max<=100.2ms", true),
            ("max<99ms", false),
            ("transfer.p99<60ms", true),
            ("transfer.p99.9<10ms", false),
            ("errors<1%", false),
            ("errors<=1%", true),
            ("errors<3", true),
            ("transfer.errors<2", false),
            ("transfer.errors<2%", true),
            ("dropped<=0", false),
            ("dropped<2%", true),
            // No sign-in.
            ("sign-in.p95<100s", false),
        ] {
            let result = Threshold::parse(text, &calls).unwrap().check(&outcome);
            assert_eq!(result.kept, kept, "{result:?}");
        }
    }

    #[test]
    fn what_is_none_says_why() {
        for (text, why) in [
            ("p95", "no threshold"),
            ("p95>3ms", "no threshold"),
            ("p95<300", "needs a unit"),
            ("p101<3ms", "no threshold"),
            ("errors<3ms", "no threshold"),
            ("errors<-1", "no threshold"),
            ("transfers.errors<1", "no call is named `transfers`; there are sign-in, transfer"),
            ("transfer.dropped<1", "no threshold"),
            ("p95<NaNms", "no threshold"),
        ] {
            let error = Threshold::parse(text, &["sign-in", "transfer"]).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
