//! Signing in that fails again and again is slowed down: by login and address, and by login alone at a higher count.
//!
//! Logins that are nobody's are counted like others, so that this tells nothing either. Each wait is twice the last, up to
//! a quarter of an hour, and never for ever. What is remembered is bounded: where too many are tried at once, those that
//! were not tried for longest are forgotten. Pure but for its own memory: the time is an argument.

use quick_cache::sync::Cache;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tally_rules::Micros;
use tally_rules::instant::SECOND;

/// Failures in a row of one login from one address before the next has to wait.
const FROM_ADDRESS: u32 = 5;
/// The same from anywhere: so many that nobody is kept out by a stranger's few guesses.
const FROM_ANYWHERE: u32 = 50;
/// The longest wait, in seconds.
const WAIT_MAX_S: i64 = 900;
/// A row of failures is forgotten after this.
const FORGOTTEN_AFTER_S: i64 = 3_600;
/// Rows of failures that are remembered, of each kind.
const ROWS: usize = 50_000;

/// A row of failures.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    failures: u32,
    last: i64,
}

impl Row {
    /// Whole seconds until the next attempt is looked at, if it has to wait.
    fn wait(self, free: u32, now: Micros) -> Option<u32> {
        let over = self.failures.checked_sub(free)?;
        let wait_s = WAIT_MAX_S.min(1_i64.checked_shl(over.min(20)).unwrap_or(WAIT_MAX_S));
        let left = self.last.saturating_add(wait_s * SECOND).saturating_sub(now.0);
        // A clock that was set back keeps nobody out for longer.
        let left = left.min(wait_s * SECOND);
        (left > 0)
            .then(|| u32::try_from(left.unsigned_abs().div_ceil(SECOND.unsigned_abs())).unwrap_or(u32::MAX))
    }

    fn failed(self, now: Micros) -> Self {
        let over = now.0.saturating_sub(self.last) > FORGOTTEN_AFTER_S * SECOND;
        let failures = if over { 1 } else { self.failures.saturating_add(1) };
        Self { failures, last: now.0 }
    }
}

/// Failures so far.
pub(super) struct Throttle {
    by_address: Cache<(u64, IpAddr), Row>,
    by_login: Cache<u64, Row>,
    counting: Mutex<()>,
    /// Random, so that nobody can choose logins that are counted together.
    key: [u8; 32],
}

impl Throttle {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { by_address: Cache::new(ROWS), by_login: Cache::new(ROWS), counting: Mutex::new(()), key }
    }

    fn name(&self, login: &str) -> u64 {
        let digest = blake3::keyed_hash(&self.key, login.as_bytes());
        u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
    }

    /// Whole seconds that this login has to wait, if it has to.
    pub(super) fn wait(&self, login: &str, from: IpAddr, now: Micros) -> Option<u32> {
        let name = self.name(login);
        let one = self.by_address.get(&(name, from)).and_then(|row| row.wait(FROM_ADDRESS, now));
        let other = self.by_login.get(&name).and_then(|row| row.wait(FROM_ANYWHERE, now));
        one.max(other)
    }

    /// Counts a failure.
    pub(super) fn failed(&self, login: &str, from: IpAddr, now: Micros) {
        let name = self.name(login);
        let _one = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let row = self.by_address.get(&(name, from)).unwrap_or_default();
        self.by_address.insert((name, from), row.failed(now));
        let row = self.by_login.get(&name).unwrap_or_default();
        self.by_login.insert(name, row.failed(now));
    }

    /// A right password ends the row.
    pub(super) fn succeeded(&self, login: &str, from: IpAddr) {
        let name = self.name(login);
        self.by_address.remove(&(name, from));
        self.by_login.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn at(second: i64) -> Micros {
        Micros(second * SECOND)
    }

    #[test]
    fn the_sixth_in_a_row_waits_and_each_wait_is_longer_but_never_for_ever() {
        let throttle = Throttle::new([1; 32]);
        for _ in 0..4 {
            throttle.failed("ann", HERE, at(0));
            assert_eq!(throttle.wait("ann", HERE, at(0)), None);
        }
        let mut now = 0;
        for wanted in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
            throttle.failed("ann", HERE, at(now));
            assert_eq!(throttle.wait("ann", HERE, at(now)), Some(wanted));
            assert_eq!(throttle.wait("bob", HERE, at(now)), None);
            assert_eq!(throttle.wait("ann", IpAddr::V4(Ipv4Addr::BROADCAST), at(now)), None);
            now += i64::from(wanted);
            assert_eq!(throttle.wait("ann", HERE, at(now)), None);
        }
        throttle.succeeded("ann", HERE);
        throttle.failed("ann", HERE, at(now));
        assert_eq!(throttle.wait("ann", HERE, at(now)), None);
    }

    #[test]
    fn many_addresses_together_wait_and_an_old_row_is_forgotten() {
        let throttle = Throttle::new([1; 32]);
        let address = |number: u8| IpAddr::V4(Ipv4Addr::new(192, 0, 2, number));
        for number in 0..50 {
            assert_eq!(throttle.wait("ann", address(number), at(0)), None);
            throttle.failed("ann", address(number), at(0));
        }
        assert_eq!(throttle.wait("ann", address(99), at(0)), Some(1));
        throttle.failed("ann", address(0), at(FORGOTTEN_AFTER_S + 1));
        assert_eq!(throttle.wait("ann", address(99), at(FORGOTTEN_AFTER_S + 1)), None);
    }
}
