//! Repeated failures to sign in are slowed down: by login and address, by login alone at a higher count, and by address
//! alone.
//!
//! A pair of login and address that signed in before is exempt from the last two, so guesses from elsewhere lock no
//! member out of its own address. An IPv6 address counts as its /64, because a host has all of those. Unknown logins
//! count like known ones, so that this reveals nothing either. Each wait is twice the last, up to a quarter of an hour,
//! and never for ever. Memory is bounded: the least recently used rows are dropped. Nothing of it is stored. Pure but
//! for its own memory: the time is an argument.

use super::budget::{Budget, BudgetAttempt};
use quick_cache::sync::Cache;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use tally_rules::Micros;
use tally_rules::instant::SECOND;

/// Failures in a row of one login from one address before the next has to wait.
const FROM_ADDRESS: u32 = 5;
/// The same from everywhere.
const FROM_ANYWHERE: u32 = 50;
/// Failures of one address, whatever the login, before the next has to wait; one more after each interval.
const OF_ADDRESS: u32 = 100;
const OF_ADDRESS_INTERVAL_S: i64 = 6;
/// The longest wait, in seconds.
const WAIT_MAX_S: i64 = 900;
/// A row of failures is forgotten after this.
const FORGOTTEN_AFTER_S: i64 = 3_600;
/// Rows of failures that are remembered, of each kind.
const ROWS: usize = 50_000;
/// Pairs of login and address that are remembered because they signed in.
const PAIRS: usize = 500_000;

/// A row of failures.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    failures: u32,
    last: i64,
}

impl Failures {
    /// Whole seconds until the next attempt, if it must wait.
    fn wait(self, free: u32, now: Micros) -> Option<u32> {
        let over = self.failures.checked_sub(free)?;
        let wait_s = WAIT_MAX_S.min(1_i64.checked_shl(over.min(20)).unwrap_or(WAIT_MAX_S));
        let left = self.last.saturating_add(wait_s * SECOND).saturating_sub(now.0);
        // A clock that was set back keeps no login out for longer.
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

/// An attempt that may be made.
pub(super) struct Attempt {
    /// The login and the address together.
    pair: u64,
    login: u64,
    /// What counts as its address.
    from: IpAddr,
}

/// Failures so far.
pub(super) struct Throttle {
    by_pair: Cache<u64, Failures>,
    by_login: Cache<u64, Failures>,
    by_address: Arc<Budget<IpAddr>>,
    signed_in: Cache<u64, ()>,
    counting: Mutex<()>,
    /// Random, so that no caller can choose logins that are counted together.
    key: [u8; 32],
}

impl Throttle {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self {
            by_pair: Cache::new(ROWS),
            by_login: Cache::new(ROWS),
            by_address: Budget::new(OF_ADDRESS, OF_ADDRESS_INTERVAL_S),
            signed_in: Cache::new(PAIRS),
            counting: Mutex::new(()),
            key,
        }
    }

    fn name(&self, windows: &[&[u8]]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for window in windows {
            hasher.update(&(window.len() as u64).to_le_bytes());
            hasher.update(window);
        }
        u64::from_le_bytes(hasher.finalize().as_bytes()[..8].try_into().expect("eight of 32 bytes"))
    }

    /// An attempt at this login, or for how many seconds there is none.
    pub(super) fn begin(&self, login: &str, from: IpAddr, now: Micros) -> Result<Attempt, u32> {
        let from = network(from);
        let pair = match from {
            IpAddr::V4(address) => self.name(&[login.as_bytes(), &address.octets()]),
            IpAddr::V6(address) => self.name(&[login.as_bytes(), &address.octets()]),
        };
        let attempt = Attempt { pair, login: self.name(&[login.as_bytes()]), from };
        self.wait(&attempt, now).map_or(Ok(attempt), Err)
    }

    /// Whole seconds that an attempt must wait, if it must. Checked again when it leaves the queue, so that attempts at
    /// the same time gain nothing.
    pub(super) fn wait(&self, attempt: &Attempt, now: Micros) -> Option<u32> {
        let own = self.by_pair.get(&attempt.pair).and_then(|row| row.wait(FROM_ADDRESS, now));
        if self.has_signed_in(attempt) {
            return own;
        }
        let anywhere = self.by_login.get(&attempt.login).and_then(|row| row.wait(FROM_ANYWHERE, now));
        own.max(anywhere).max(self.by_address.wait(&attempt.from, now))
    }

    fn has_signed_in(&self, attempt: &Attempt) -> bool {
        self.signed_in.get(&attempt.pair).is_some()
    }

    pub(super) fn failed(&self, attempt: &Attempt, now: Micros) {
        let _one = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |rows: &Cache<u64, Failures>, name| {
            rows.insert(name, rows.get(&name).unwrap_or_default().failed(now));
        };
        count(&self.by_pair, attempt.pair);
        // Failures of a pair that signed in before keep no other address waiting.
        if !self.has_signed_in(attempt) {
            count(&self.by_login, attempt.login);
            // If others have spent it meanwhile, there is nothing left to spend.
            let _ = self.by_address.take(attempt.from, now).map(BudgetAttempt::spend);
        }
    }

    /// A correct password ends the row of its pair, and exempts it. It proves nothing about other addresses.
    pub(super) fn succeeded(&self, attempt: &Attempt) {
        self.by_pair.remove(&attempt.pair);
        self.signed_in.insert(attempt.pair, ());
    }
}

/// What counts as one address.
fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
        address @ IpAddr::V4(_) => address,
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

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0xc000_0200 + number))
    }

    impl Throttle {
        /// How long an attempt would have to wait.
        fn waits(&self, login: &str, from: IpAddr, now: Micros) -> Option<u32> {
            self.begin(login, from, now).err()
        }

        fn fails(&self, login: &str, from: IpAddr, now: Micros) {
            self.failed(&self.begin(login, from, now).ok().unwrap(), now);
        }

        fn succeeds(&self, login: &str, from: IpAddr, now: Micros) {
            self.succeeded(&self.begin(login, from, now).ok().unwrap());
        }
    }

    #[test]
    fn the_sixth_in_a_row_waits_and_each_wait_is_longer_but_never_for_ever() {
        let throttle = Throttle::new([1; 32]);
        for _ in 0..4 {
            throttle.fails("ann", HERE, at(0));
            assert_eq!(throttle.waits("ann", HERE, at(0)), None);
        }
        let mut now = 0;
        for wanted in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
            throttle.fails("ann", HERE, at(now));
            assert_eq!(throttle.waits("ann", HERE, at(now)), Some(wanted));
            assert_eq!(throttle.waits("bob", HERE, at(now)), None);
            assert_eq!(throttle.waits("ann", IpAddr::V4(Ipv4Addr::BROADCAST), at(now)), None);
            now += i64::from(wanted);
            assert_eq!(throttle.waits("ann", HERE, at(now)), None);
        }
        throttle.succeeds("ann", HERE, at(now));
        throttle.fails("ann", HERE, at(now));
        assert_eq!(throttle.waits("ann", HERE, at(now)), None);
    }

    #[test]
    fn many_addresses_together_wait_and_an_old_row_is_forgotten() {
        let throttle = Throttle::new([1; 32]);
        for number in 0..50 {
            assert_eq!(throttle.waits("ann", address(number), at(0)), None);
            throttle.fails("ann", address(number), at(0));
        }
        assert_eq!(throttle.waits("ann", address(99), at(0)), Some(1));
        throttle.fails("ann", address(0), at(FORGOTTEN_AFTER_S + 1));
        assert_eq!(throttle.waits("ann", address(99), at(FORGOTTEN_AFTER_S + 1)), None);
    }

    #[test]
    fn an_address_that_signed_in_is_not_locked_out_by_others_and_locks_none_out() {
        let throttle = Throttle::new([1; 32]);
        throttle.succeeds("ann", HERE, at(0));
        for number in 0..50 {
            throttle.fails("ann", address(number), at(0));
        }
        assert_eq!(throttle.waits("ann", address(99), at(0)), Some(1));
        assert_eq!(throttle.waits("ann", HERE, at(0)), None);
        // Its own failures count for itself, and a success does not give other addresses new guesses.
        throttle.succeeds("ann", HERE, at(0));
        assert_eq!(throttle.waits("ann", address(99), at(0)), Some(1));
        (0..5).for_each(|_| throttle.fails("ann", HERE, at(0)));
        assert_eq!(throttle.waits("ann", HERE, at(0)), Some(1));
        assert_eq!(throttle.waits("ann", address(99), at(0)), Some(1));
        assert_eq!(throttle.waits("bob", HERE, at(0)), None);
    }

    #[test]
    fn an_address_that_tries_many_logins_waits_but_for_those_that_signed_in_there() {
        let throttle = Throttle::new([1; 32]);
        throttle.succeeds("ann", HERE, at(0));
        // Many at the same time may be correct; the limit of failures is the same as one after the other.
        let held: Vec<_> = (0..150).map(|login| throttle.begin(&format!("{login}"), HERE, at(0))).collect();
        assert!(held.iter().all(Result::is_ok));
        let mut looked_at = 0;
        for attempt in held.iter().flatten() {
            if throttle.wait(attempt, at(0)).is_none() {
                throttle.failed(attempt, at(0));
                looked_at += 1;
            }
        }
        assert_eq!(looked_at, 100);
        assert_eq!(throttle.waits("eve", HERE, at(0)), Some(6));
        assert_eq!(throttle.waits("eve", address(1), at(0)), None);
        assert_eq!(throttle.waits("ann", HERE, at(0)), None);
        assert_eq!(throttle.waits("eve", HERE, at(6)), None);
    }

    #[test]
    fn a_host_has_a_network_of_ipv6() {
        let throttle = Throttle::new([1; 32]);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for number in 0..5 {
            throttle.fails("ann", address(&format!("2001:db8::{number}")), at(0));
        }
        assert_eq!(throttle.waits("ann", address("2001:db8::ffff:0:0:1"), at(0)), Some(1));
        assert_eq!(throttle.waits("ann", address("2001:db8:0:1::1"), at(0)), None);
        assert_eq!(network(address("::ffff:192.0.2.1")), address("192.0.2.1"));
    }
}
