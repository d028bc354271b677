//! Security events, for a security team: in the log and in the audit file.
//!
//! Events that a caller without a credential can cause are limited. In each minute, the first few events of one kind and
//! address get a line each, and the rest one line with their count. So an attack neither fills a disk nor hides other
//! events. An event of a caller with the permission, such as creating a key or signing out a member, always gets a line.
//!
//! Not here: which responses are events, see `http/audit.rs` and `resp/session.rs`.

use serde_json::json;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tally_rules::Micros;

/// The window in which events are added up.
const WINDOW: Duration = Duration::from_secs(60);
/// Lines of one kind and address in a window.
const EACH_MAX: u64 = 5;
/// Lines of all kinds and addresses in a window, and lines with a count at its end.
const LINES_MAX: usize = 100;
/// Kinds and addresses that a window counts separately; it counts all others together.
const SEPARATE_COUNTS_MAX: usize = 10_000;

/// Every kind of event.
pub(crate) const EVENTS: [&str; 14] = [
    "credential_refused",
    "host_refused",
    "key_created",
    "key_revoked",
    "member_changed",
    "member_closed",
    "member_signed_out",
    "origin_refused",
    "permission_denied",
    "pin_locked",
    "pin_refused",
    "pin_unlocked",
    "sign_in_failed",
    "transfer_delayed",
];

pub(crate) struct SecurityEvent<'a> {
    /// One of [`EVENTS`].
    pub(crate) name: &'static str,
    /// The caller, or what it claims to be.
    pub(crate) actor: &'a str,
    pub(crate) address: IpAddr,
    /// The request's id; empty in the Redis protocol.
    pub(crate) request: &'a str,
    /// What it concerns: the method and the path, and more.
    pub(crate) subject: &'a str,
}

/// Events without a line of their own: kind, address (`None` for all others) and number.
type Counts = Vec<(&'static str, Option<IpAddr>, u64)>;

/// The log of security events.
#[derive(Default)]
pub struct Security {
    audit: Option<Mutex<Audit>>,
    window: Mutex<Window>,
}

impl Security {
    /// Starts the log, with an audit file if a path is given.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn start(audit: Option<PathBuf>) -> io::Result<Self> {
        let open = |path: PathBuf| {
            let file = append(&path)?;
            Ok::<_, io::Error>(Mutex::new(Audit { path, file, failing: false }))
        };
        Ok(Self { audit: audit.map(open).transpose()?, window: Mutex::default() })
    }

    /// Opens the audit file again: it may have been renamed, so that the next lines begin a new one.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened. Then lines go on into the old file.
    pub fn reopen(&self) -> io::Result<()> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let mut audit = lock(audit);
        audit.file = append(&audit.path)?;
        audit.failing = false;
        Ok(())
    }

    /// Writes the counts of the last window, if it is over.
    pub fn flush(&self) {
        let over = lock(&self.window).end(Instant::now(), false);
        self.write_counts(over);
    }

    /// The same, even if the window is not over: no event comes after it.
    pub(crate) fn end(&self) {
        let over = lock(&self.window).end(Instant::now(), true);
        self.write_counts(over);
    }

    /// Records an event of a caller with the permission.
    pub(crate) fn note(&self, event: &SecurityEvent<'_>) {
        self.write(event, 1);
    }

    /// Records an event that any caller can cause.
    pub(crate) fn note_bounded(&self, event: &SecurityEvent<'_>) {
        let (over, is_line) = lock(&self.window).count(event.name, network(event.address), Instant::now());
        self.write_counts(over);
        if is_line {
            self.write(event, 1);
        }
    }

    fn write_counts(&self, over: Counts) {
        for (name, address, count) in over {
            let subject = if address.is_some() { "more of the last minute" } else { "of other addresses" };
            let address = address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
            self.write(&SecurityEvent { name, actor: "", address, request: "", subject }, count);
        }
    }

    fn write(&self, event: &SecurityEvent<'_>, count: u64) {
        let SecurityEvent { name, actor, address, request, subject } = event;
        tracing::info!(
            target: "tally::security",
            event = name, actor, %address, request_id = request, subject, count, "security event"
        );
        let Some(audit) = &self.audit else { return };
        let line = json!({
            "at": tally_wire::time::format(now()), "event": name, "actor": actor, "address": address.to_string(),
            "request_id": request, "subject": subject, "count": count,
        });
        lock(audit).append(&format!("{line}\n"));
    }
}

struct Audit {
    path: PathBuf,
    file: File,
    /// Whether the last write failed: that is logged once.
    failing: bool,
}

impl Audit {
    fn append(&mut self, line: &str) {
        let written = self.file.write_all(line.as_bytes());
        if let (Err(error), false) = (&written, self.failing) {
            tracing::error!(%error, "write {}: security events are in the log only", self.path.display());
        }
        self.failing = written.is_err();
    }
}

fn append(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The counts since the window began.
#[derive(Default)]
struct Window {
    began: Option<Instant>,
    lines: usize,
    counts: HashMap<(&'static str, Option<IpAddr>), Counted>,
}

#[derive(Default)]
struct Counted {
    lines: u64,
    without: u64,
}

impl Window {
    /// Counts an event. Returns the counts of the previous window, and whether this event gets a line.
    fn count(&mut self, name: &'static str, address: IpAddr, now: Instant) -> (Counts, bool) {
        let over = self.end(now, false);
        self.began.get_or_insert(now);
        let known =
            self.counts.len() < SEPARATE_COUNTS_MAX || self.counts.contains_key(&(name, Some(address)));
        let counted = self.counts.entry((name, known.then_some(address))).or_default();
        let is_line = counted.lines < EACH_MAX && self.lines < LINES_MAX;
        if is_line {
            counted.lines += 1;
            self.lines += 1;
        } else {
            counted.without += 1;
        }
        (over, is_line)
    }

    /// Ends the window if it is over, or at once. Returns its counts without a line, the largest first.
    fn end(&mut self, now: Instant, at_once: bool) -> Counts {
        if !at_once && self.began.is_none_or(|began| now.duration_since(began) < WINDOW) {
            return Vec::new();
        }
        let ended = std::mem::take(self);
        let mut all: Vec<_> = ended
            .counts
            .into_iter()
            .filter(|(_, counted)| counted.without > 0)
            .map(|((name, address), counted)| (name, address, counted.without))
            .collect();
        all.sort_by_key(|(name, address, count)| (std::cmp::Reverse(*count), *name, *address));
        let rest = all.split_off(all.len().min(LINES_MAX));
        let mut others: HashMap<&'static str, u64> = HashMap::new();
        rest.into_iter().for_each(|(name, _, count)| *others.entry(name).or_default() += count);
        all.extend(others.into_iter().map(|(name, count)| (name, None, count)));
        all
    }
}

/// The address that events are counted by: an IPv6 client has the 2⁶⁴ addresses of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX))),
        four => four,
    }
}

pub(crate) fn now() -> Micros {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn one_address_is_a_few_lines_and_a_count() {
        let (mut window, began) = (Window::default(), Instant::now());
        let lines = (0..1_000).filter(|_| window.count("pin_refused", address(1), began).1).count();
        assert_eq!(lines as u64, EACH_MAX);
        assert!(window.count("sign_in_failed", address(1), began).1, "another kind");
        assert!(window.count("pin_refused", address(2), began).1, "another address");
        let later = began + WINDOW;
        let (over, is_line) = window.count("pin_refused", address(1), later);
        assert_eq!(over, [("pin_refused", Some(address(1)), 1_000 - EACH_MAX)]);
        assert!(is_line, "another window");
        assert_eq!(window.end(later, true), []);
    }

    #[test]
    fn many_addresses_are_bounded_too_and_none_is_lost() {
        let (mut window, began) = (Window::default(), Instant::now());
        let all = SEPARATE_COUNTS_MAX as u32 + 500;
        let lines =
            (0..all).filter(|number| window.count("credential_refused", address(*number), began).1).count();
        assert_eq!(lines, LINES_MAX);
        assert!(window.counts.len() <= SEPARATE_COUNTS_MAX + 1);
        let over = window.end(began, true);
        assert!(over.len() <= LINES_MAX + 1, "{}", over.len());
        let counted: u64 = over.iter().map(|(_, _, count)| count).sum();
        assert_eq!(counted + LINES_MAX as u64, u64::from(all));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let [one, same, other] = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"].map(|text| {
            let address: IpAddr = text.parse().unwrap();
            network(address)
        });
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), "192.0.2.1".parse::<IpAddr>().unwrap());
    }
}
