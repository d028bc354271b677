//! How many iterations arrive, and when: rates that climb, stay and fall, as arithmetic.
//!
//! A schedule is a list of stages; within a stage the rate changes linearly. [`Schedule::due`] inverts the integral of the
//! rate, so nothing is drawn, rounded or summed. A run of an hour is as exact as one of a second. Pure: durations in,
//! durations out.

use std::time::Duration;

/// More arrivals per second than any one process can send.
const RATE_MAX: f64 = 1_000_000.0;

/// A span of time in which the rate changes linearly from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadStage {
    /// Arrivals per second at its start.
    pub from: f64,
    /// The same at its end.
    pub to: f64,
    /// Its duration.
    pub lasts: Duration,
}

impl LoadStage {
    fn arrivals(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.lasts.as_secs_f64()
    }

    /// The seconds from its start after which `count` iterations have arrived.
    fn after(&self, count: f64) -> f64 {
        let climb = (self.to - self.from) / self.lasts.as_secs_f64();
        // The root of a quadratic in the form that loses no digits if the rate hardly changes.
        2.0 * count / (self.from + (self.from * self.from + 2.0 * climb * count).max(0.0).sqrt())
    }
}

/// Stages, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    stages: Vec<LoadStage>,
}

impl Schedule {
    /// Reads `0..200..1000`, where each step is a stage, or one constant rate. Stages have the given durations in order; the
    /// last duration is used for all further stages.
    ///
    /// # Errors
    ///
    /// What is wrong, as text.
    pub fn parse(rates: &str, lasts: &[Duration]) -> Result<Self, String> {
        let rate = |text: &str| match text.trim().parse::<f64>() {
            Ok(rate) if (0.0..=RATE_MAX).contains(&rate) => Ok(rate),
            _ => Err(format!("`{text}` is no rate: a number of arrivals a second, up to {RATE_MAX}")),
        };
        let rates: Vec<f64> = rates.split("..").map(rate).collect::<Result<_, _>>()?;
        let steps: Vec<(f64, f64)> = match rates.as_slice() {
            [only] => vec![(*only, *only)],
            all => all.windows(2).map(|pair| (pair[0], pair[1])).collect(),
        };
        let longest = lasts.last().ok_or("no stage has a length")?;
        if lasts.len() > steps.len() {
            return Err(format!("{} lengths for {} stages", lasts.len(), steps.len()));
        }
        if lasts.iter().any(Duration::is_zero) {
            return Err("a stage must last longer than nothing".into());
        }
        let lasts = lasts.iter().chain(std::iter::repeat(longest));
        let stages = steps.into_iter().zip(lasts);
        let stages: Vec<LoadStage> =
            stages.map(|((from, to), lasts)| LoadStage { from, to, lasts: *lasts }).collect();
        let schedule = Self { stages };
        if schedule.arrivals() < 1.0 {
            return Err("nothing would arrive".into());
        }
        Ok(schedule)
    }

    /// The number of all arrivals.
    #[must_use]
    pub fn arrivals(&self) -> f64 {
        self.stages.iter().map(LoadStage::arrivals).sum()
    }

    /// The total duration.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.stages.iter().map(|stage| stage.lasts).sum()
    }

    /// When the n-th iteration arrives, from 0; `None` after the last.
    #[must_use]
    pub fn due(&self, number: u64) -> Option<Duration> {
        let (mut count, mut begin) = (number as f64, Duration::ZERO);
        for stage in &self.stages {
            let arrivals = stage.arrivals();
            if count < arrivals {
                let after = if count > 0.0 { stage.after(count) } else { 0.0 };
                return Some(begin + Duration::from_secs_f64(after).min(stage.lasts));
            }
            count -= arrivals;
            begin += stage.lasts;
        }
        None
    }

    /// Arrivals per second at this time; 0 after the end.
    #[must_use]
    pub fn rate_at(&self, time: Duration) -> f64 {
        let mut begin = Duration::ZERO;
        for stage in &self.stages {
            let end = begin + stage.lasts;
            if time < end {
                let part = (time - begin).as_secs_f64() / stage.lasts.as_secs_f64();
                return stage.from + (stage.to - stage.from) * part;
            }
            begin = end;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn schedule(rates: &str, seconds: &[u32]) -> Schedule {
        let lasts: Vec<Duration> = seconds.iter().map(|&seconds| SECOND * seconds).collect();
        Schedule::parse(rates, &lasts).unwrap()
    }

    #[test]
    fn a_rate_that_stays_is_even() {
        let steady = schedule("10", &[2]);
        let due: Vec<f64> = (0..20).map(|number| steady.due(number).unwrap().as_secs_f64()).collect();
        assert!(due.iter().enumerate().all(|(at, due)| (due - at as f64 / 10.0).abs() < 1e-9));
        assert_eq!((steady.due(20), steady.rate_at(SECOND), steady.rate_at(SECOND * 2)), (None, 10.0, 0.0));
    }

    /// A model of small steps: the number of arrivals up to a time is the sum of the rates up to it.
    #[test]
    fn arrivals_follow_the_rate() {
        for (rates, seconds) in [
            ("0..200..400..600..800..1000..1000..0", &[60, 60, 60, 60, 60, 120, 30][..]),
            ("1000..0", &[10]),
            ("0..0..50", &[3, 2]),
            ("5..5.001", &[100]),
        ] {
            let schedule = schedule(rates, seconds);
            let (mut number, mut added) = (0, 0.0);
            let step = Duration::from_millis(1);
            let mut time = Duration::ZERO;
            while time < schedule.lasts() {
                added += schedule.rate_at(time + step / 2) * step.as_secs_f64();
                time += step;
                while schedule.due(number).is_some_and(|due| due < time) {
                    number += 1;
                }
                assert!((number as f64 - added).abs() < 1.5, "{rates} at {time:?}: {number}, {added}");
            }
            assert!(schedule.due(number).is_none_or(|due| due >= schedule.lasts()));
        }
    }

    #[test]
    fn what_is_no_schedule_says_why() {
        for (rates, lasts, why) in [
            ("a", vec![SECOND], "no rate"),
            ("-1", vec![SECOND], "no rate"),
            ("1e9", vec![SECOND], "no rate"),
            ("10..", vec![SECOND], "no rate"),
            ("0..0", vec![SECOND], "nothing would arrive"),
            ("1..2", vec![], "no stage"),
            ("1..2", vec![SECOND; 2], "2 lengths for 1 stages"),
            ("1", vec![Duration::ZERO], "longer than nothing"),
        ] {
            let error = Schedule::parse(rates, &lasts).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
