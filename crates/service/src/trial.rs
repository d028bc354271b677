//! Something that is tried again until it works: its failures are told once, and once that it works again and after how long.
//!
//! The pause between two attempts grows to a bound, so neither the log nor whatever is away gets more than a few lines and
//! questions. Pure but for the log: instants are arguments. Not here: trying, and waiting.

use crate::failure::{Failure, Fault};
use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

/// After the first failure.
const PAUSE: Duration = Duration::from_millis(200);
/// After the fifth and those that follow.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// See the head of the file.
pub(crate) struct Trial {
    what: &'static str,
    trouble: Option<Trouble>,
}

struct Trouble {
    since: Instant,
    kind: Option<Discriminant<Fault>>,
    pause: Duration,
    next: Instant,
}

/// What there is to tell.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Fails,
    WorksAfter(Duration),
}

impl Trial {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, trouble: None }
    }

    /// Whether it is time to try.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.trouble.as_ref().is_none_or(|trouble| now >= trouble.next)
    }

    /// How long to wait before the next attempt.
    pub(crate) fn pause(&self) -> Duration {
        self.trouble.as_ref().map_or(Duration::ZERO, |trouble| trouble.pause)
    }

    /// Notes what came of an attempt, and tells what is new.
    pub(crate) fn note(&mut self, now: Instant, failure: Option<&Failure>) {
        let what = self.what;
        match (self.news(now, failure), failure) {
            (Some(News::Fails), Some(failure)) => {
                tracing::warn!(%failure, "{what}: it is tried again until it works");
            }
            (Some(News::WorksAfter(time)), _) => {
                tracing::info!(seconds = time.as_secs_f64(), "{what}: it works again");
            }
            (_, _) => {}
        }
    }

    fn news(&mut self, now: Instant, failure: Option<&Failure>) -> Option<News> {
        let kind = match failure {
            None => {
                let trouble = self.trouble.take()?;
                return Some(News::WorksAfter(now.duration_since(trouble.since)));
            }
            Some(Failure::Fault(fault)) => Some(discriminant(fault)),
            Some(Failure::Refused(_)) => None,
        };
        let (since, known, pause) = match &self.trouble {
            Some(trouble) => (trouble.since, trouble.kind == kind, (trouble.pause * 2).min(PAUSE_MAX)),
            None => (now, false, PAUSE),
        };
        self.trouble = Some(Trouble { since, kind, pause, next: now + pause });
        (!known).then_some(News::Fails)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::Rejection;

    #[test]
    fn trouble_is_told_once_and_its_end_once() {
        let (mut trial, start) = (Trial::new("close periods"), Instant::now());
        assert_eq!(trial.news(start, None), None);
        let away = Failure::Fault(Fault::StoreAway("x".into()));
        let (mut now, mut told, mut attempts) = (start, 0, 0);
        while now < start + Duration::from_secs(60) {
            if trial.is_due(now) {
                attempts += 1;
                told += u32::from(trial.news(now, Some(&away)).is_some());
                assert!(!trial.is_due(now) && trial.is_due(now + trial.pause()));
                assert!(trial.pause() <= PAUSE_MAX);
            }
            now += PAUSE;
        }
        assert!(told == 1 && (25..40).contains(&attempts), "told {told} times in {attempts} attempts");
        // Another kind of failure is news.
        assert_eq!(trial.news(now, Some(&Rejection::TooManyAtOnce.into())), Some(News::Fails));
        assert_eq!(trial.news(now, None), Some(News::WorksAfter(now - start)));
        assert!(trial.news(now, None).is_none() && trial.is_due(now));
    }
}
