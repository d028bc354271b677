//! Attempts at a PIN: counted, and locked after too many wrong ones.
//!
//! A PIN of a few digits is safe only if attempts are few. So each attempt is decided under the lock on the member, and its
//! result is stored for every answer: concurrent guesses count. Not here: comparing digits.

use crate::instant::{Micros, SECOND};
use crate::rejection::Rejection;
use std::fmt;
use std::ops::RangeInclusive;

/// How many digits a PIN has.
pub const DIGITS: RangeInclusive<usize> = 4..=8;

/// A PIN in a request.
#[derive(Clone, PartialEq, Eq)]
pub enum Given {
    /// Its digits.
    Digits(String),
    /// A number. Its leading zeros are lost, so it is padded to the digits of the stored PIN.
    Number(u32),
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given(..)")
    }
}

/// Whether a text can be a PIN.
pub fn is_pin(text: &str) -> bool {
    DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The longest lock, unless the rule's own is longer: a day.
const LOCK_MAX_MICROS: i64 = 24 * 3_600 * SECOND;

/// The most attempts before a lock. The count, a byte, then has room for all locks up to the longest.
pub const ATTEMPTS_MAX: u8 = 20;

/// How many wrong attempts in a row lock the PIN, and for how long. Each further round doubles the lock, up to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinRule {
    /// Wrong attempts in a row.
    pub attempts: u8,
    /// Microseconds of the first lock.
    pub lock_micros: i64,
}

impl PinRule {
    /// The length of the `nth` lock in a row.
    fn lock(self, nth: u8) -> i64 {
        let doublings = u32::from(nth.saturating_sub(1)).min(40);
        self.lock_micros.saturating_mul(1 << doublings).min(LOCK_MAX_MICROS.max(self.lock_micros))
    }
}

impl Default for PinRule {
    fn default() -> Self {
        Self { attempts: 5, lock_micros: 15 * 60 * SECOND }
    }
}

/// The stored attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Wrong attempts since the last right one.
    pub wrong: u8,
    /// No attempt is checked until then.
    pub locked_until: Option<Micros>,
}

/// Decides an attempt. The returned attempts are to be stored in either case.
pub fn attempt(
    before: Attempts,
    right: bool,
    now: Micros,
    rule: PinRule,
) -> (Attempts, Result<(), Rejection>) {
    if let Some(until) = before.locked_until.filter(|until| *until > now) {
        return (before, Err(locked(until, now)));
    }
    if right {
        return (Attempts::default(), Ok(()));
    }
    let attempts = rule.attempts.max(1);
    // A full count repeats its last round.
    let counted =
        if before.wrong == u8::MAX / attempts * attempts { before.wrong - attempts } else { before.wrong };
    let wrong = counted.saturating_add(1);
    let locked_until = wrong.is_multiple_of(attempts).then(|| now.plus(rule.lock(wrong / attempts)));
    (Attempts { wrong, locked_until }, Err(Rejection::InvalidPin))
}

fn locked(until: Micros, now: Micros) -> Rejection {
    let seconds = until.since(now).unsigned_abs().div_ceil(SECOND.unsigned_abs());
    Rejection::PinLocked { retry_after_s: u32::try_from(seconds).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts in sequence: `w` is a wrong one and `r` a right one, each at the second before it.
    fn check(story: &[(i64, char, &str)]) {
        let rule = PinRule { attempts: 3, lock_micros: 60 * SECOND };
        let mut attempts = Attempts::default();
        for (second, what, wanted) in story {
            let (after, outcome) = attempt(attempts, *what == 'r', Micros(second * SECOND), rule);
            let got = match outcome {
                Ok(()) => "ok".to_owned(),
                Err(Rejection::PinLocked { retry_after_s }) => format!("locked {retry_after_s}"),
                Err(rejection) => rejection.code().to_owned(),
            };
            assert_eq!(got, *wanted, "at {second} of {story:?}");
            attempts = after;
        }
    }

    #[test]
    fn a_right_one_begins_a_new_count() {
        check(&[
            (0, 'w', "invalid_pin"),
            (1, 'w', "invalid_pin"),
            (2, 'r', "ok"),
            (3, 'w', "invalid_pin"),
            (4, 'w', "invalid_pin"),
            (5, 'r', "ok"),
        ]);
    }

    #[test]
    fn too_many_lock_it_for_right_ones_too_until_the_time_is_over() {
        check(&[
            (0, 'w', "invalid_pin"),
            (0, 'w', "invalid_pin"),
            (0, 'w', "invalid_pin"),
            (0, 'r', "locked 60"),
            (59, 'w', "locked 1"),
            (60, 'w', "invalid_pin"),
            (61, 'w', "invalid_pin"),
            (62, 'r', "ok"),
        ]);
    }

    #[test]
    fn each_lock_is_twice_the_last_up_to_a_day() {
        let rule = PinRule { attempts: 5, lock_micros: 15 * 60 * SECOND };
        let (mut attempts, mut now, mut locks) = (Attempts::default(), Micros(0), Vec::new());
        for _ in 0..60 {
            for wrong in 1..=5 {
                let (after, outcome) = attempt(attempts, false, now, rule);
                assert_eq!((outcome, after.locked_until.is_some()), (Err(Rejection::InvalidPin), wrong == 5));
                attempts = after;
            }
            let until = attempts.locked_until.unwrap();
            assert!(attempt(attempts, true, Micros(until.0 - 1), rule).1.is_err());
            locks.push(until.since(now) / (60 * SECOND));
            now = until;
        }
        assert_eq!(locks[..9], [15, 30, 60, 120, 240, 480, 960, 1_440, 1_440]);
        assert!(locks[9..].iter().all(|lock| *lock == 1_440), "{locks:?}");
        // A right attempt resets the count.
        let (fresh, outcome) = attempt(attempts, true, now, rule);
        assert_eq!((fresh, outcome), (Attempts::default(), Ok(())));
    }

    #[test]
    fn a_lock_grows_to_a_day_whatever_is_set() {
        for attempts in 1..=ATTEMPTS_MAX {
            let rule = PinRule { attempts, lock_micros: 60 * SECOND };
            let (mut after, mut now, mut last) = (Attempts::default(), Micros(0), 0);
            for _ in 0..300 {
                after = attempt(after, false, now, rule).0;
                if let Some(until) = after.locked_until {
                    assert!(until.since(now) >= last, "it never shrinks");
                    last = until.since(now);
                    now = until;
                }
            }
            assert_eq!(last, LOCK_MAX_MICROS, "{attempts}");
            let longer = PinRule { attempts, lock_micros: 2 * LOCK_MAX_MICROS };
            assert_eq!([longer.lock(1), longer.lock(2)], [2 * LOCK_MAX_MICROS; 2]);
        }
    }

    #[test]
    fn by_default_five_lock_for_a_quarter_of_an_hour() {
        let mut attempts = Attempts::default();
        for _ in 0..5 {
            attempts = attempt(attempts, false, Micros(7), PinRule::default()).0;
        }
        assert_eq!(attempts, Attempts { wrong: 5, locked_until: Some(Micros(7 + 900 * SECOND)) });
    }
}
