//! The clock is an argument, so that tests can run through years; and whether it is trusted.
//!
//! Wall time decides which period a score belongs to and what is due. It can jump, so every reading is compared with monotonic
//! time ([`ClockWatch`]), and with the clock of the store if it has one. While wall time is in doubt, irreversible work waits:
//! closing, paying, starting, expiring. Scores do not wait. Not here: what each part of the service does meanwhile.

use crate::outcomes::Retention;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tally_rules::Micros;
use tally_rules::clock::{ClockBounds, ClockWatch, DecisionTime, Distrust, Reading, SKEW_WARN};
use tally_store::Store;

/// A source of time.
pub trait TimeSource: Send + Sync {
    /// Both clocks, read together. Monotonic time never goes back while the process runs.
    fn read(&self) -> Reading;

    /// A counter that continues between processes of this machine, if the machine has one.
    fn boot(&self) -> Option<Boot> {
        None
    }
}

/// Time since the machine was started, suspended or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Another one for each start of the machine.
    pub id: String,
    /// Microseconds since then.
    pub micros: i64,
}

/// The time, and whether it is trusted. All clones are one clock.
#[derive(Clone)]
pub struct Clock {
    source: Arc<dyn TimeSource>,
    watch: Arc<Mutex<Watched>>,
}

/// The state of the clock, and the store whose clock it is compared with.
#[derive(Default)]
struct Watched {
    watch: ClockWatch,
    store: Option<Weak<dyn Store>>,
    /// A skew that is not worth a doubt was logged.
    warned: bool,
}

/// A reading, and whether it is trusted.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// Wall time.
    pub now: Micros,
    /// Why it is not trusted.
    pub doubt: Option<Distrust>,
}

impl ClockReading {
    /// Wall time, or the time without the known error of the clock if that is later. The error is the jump from the trusted
    /// time, or the lead over the clock of the store. Either time may turn out to be right.
    pub(crate) fn later(&self) -> Micros {
        self.now.max(self.expected())
    }

    /// The time without the known error of the clock: a jump in doubt neither begins a day of a limit nor repeats one.
    pub(crate) fn expected(&self) -> Micros {
        self.now.plus(-self.doubt.map_or(0, |doubt| doubt.jump))
    }

    /// The retention of outcomes of requests: for good while the clock is not trusted. The later time, because an outcome that
    /// looks old once the clock is trusted again, or to another server, is forgotten, and a retry would be done twice.
    pub(crate) fn retention(&self, micros: i64) -> Retention {
        let keep_micros = if self.doubt.is_some() { i64::MAX } else { micros };
        Retention { at: self.later(), keep_micros }
    }
}

impl From<ClockReading> for DecisionTime {
    fn from(ClockReading { now, doubt }: ClockReading) -> Self {
        Self { now, is_trusted: doubt.is_none() }
    }
}

impl Clock {
    /// A clock of that source.
    pub fn new(source: impl TimeSource + 'static) -> Self {
        Self { source: Arc::new(source), watch: Arc::default() }
    }

    /// A clock whose monotonic time is its wall time, so that it is always trusted: for simulated time.
    pub fn of(wall: impl Fn() -> Micros + Send + Sync + 'static) -> Self {
        Self::new(Simulated(wall))
    }

    /// Wall time.
    pub fn now(&self) -> Micros {
        self.source.read().wall
    }

    /// Wall time, and whether it is trusted. The reading that finds a change logs it once.
    pub fn read(&self) -> ClockReading {
        let mut watched = self.watch();
        let store = watched.store.as_ref().and_then(Weak::upgrade);
        let ahead = store.as_ref().map_or(0, |store| store.clock_ahead());
        let before = watched.watch.distrust();
        // Read under the lock: readings are checked in their order.
        let reading = self.source.read();
        watched.watch.compare(ahead);
        watched.watch.observe(reading);
        let doubt = watched.watch.distrust();
        let warned = std::mem::replace(&mut watched.warned, ahead.abs() > SKEW_WARN);
        drop(watched);
        let seconds = |micros: i64| micros as f64 / 1e6;
        match (before, doubt) {
            (None, Some(doubt)) => tracing::error!(
                seconds = seconds(doubt.jump),
                store_seconds = seconds(ahead),
                "the clock has jumped, or is not the store's: closing, paying and expiring wait until it is trusted again"
            ),
            (Some(_), None) => tracing::warn!("the clock is trusted again: what waited is done now"),
            (None, None) if !warned && ahead.abs() > SKEW_WARN => tracing::warn!(
                seconds = seconds(ahead),
                "the clock is not the store's: set it by NTP, from 5 s on closing, paying and expiring wait"
            ),
            _ => {}
        }
        ClockReading { now: reading.wall, doubt }
    }

    /// Wall time, if it is trusted.
    pub fn trusted(&self) -> Option<Micros> {
        let ClockReading { now, doubt } = self.read();
        doubt.is_none().then_some(now)
    }

    /// Judges by these bounds from now on, and by the clock of this store.
    pub(crate) fn begin(&self, bounds: ClockBounds, store: &Arc<dyn Store>) {
        let mut watched = self.watch();
        watched.watch.set_bounds(bounds);
        watched.store = Some(Arc::downgrade(store));
    }

    /// What the store is to remember of a time that is trusted now: the boot, and the wall time at its begin.
    pub(crate) fn trusted_boot(&self) -> Option<(String, i64)> {
        let (boot, now) = (self.source.boot()?, self.trusted()?);
        Some((boot.id, now.0.saturating_sub(boot.micros)))
    }

    /// Starts with what the store remembers, if that is of this boot; whether it is.
    pub(crate) fn resume(&self, stored: Option<&[u8]>) -> bool {
        let stored = stored.and_then(|bytes| std::str::from_utf8(bytes).ok()?.split_once(' '));
        let (Some((id, begin)), Some(boot)) = (stored, self.source.boot()) else { return false };
        let Some(begin) = begin.parse::<i64>().ok().filter(|_| id == boot.id) else { return false };
        self.watch().watch.resume(Micros(begin.saturating_add(boot.micros)), self.source.read());
        true
    }

    /// Starts in doubt.
    pub(crate) fn begin_untrusted(&self) {
        self.watch().watch.begin_untrusted(self.source.read());
        tracing::warn!(
            "the last server stopped while the clock was in doubt: closing, paying and expiring wait"
        );
    }

    fn watch(&self) -> MutexGuard<'_, Watched> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Simulated<F>(F);

impl<F: Fn() -> Micros + Send + Sync> TimeSource for Simulated<F> {
    fn read(&self) -> Reading {
        let wall = (self.0)();
        Reading { wall, monotonic: wall.0 }
    }
}

/// The machine's clocks.
struct System {
    started: Instant,
}

impl TimeSource for System {
    fn read(&self) -> Reading {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        // A clock before 1970 is a machine without a clock: 1970 is as good, instants increase from there.
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Reading { wall: Micros(since.map_or(0, micros)), monotonic: micros(self.started.elapsed()) }
    }

    /// Linux has it.
    fn boot(&self) -> Option<Boot> {
        let read = |path| std::fs::read_to_string(path).ok();
        let id = read("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let seconds: f64 = read("/proc/uptime")?.split(' ').next()?.parse().ok()?;
        Some(Boot { id, micros: (seconds * 1e6) as i64 })
    }
}

/// The machine's clock.
pub fn system() -> Clock {
    Clock::new(System { started: Instant::now() })
}
