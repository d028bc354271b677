//! The state of the clock for the next start: whether it was in doubt, which time was trusted, and the newest instant of the
//! scores.
//!
//! Rows have the newest instant, but only a start that loads them finds it, and with rankings in Redis none does. Not here: what
//! a jump is (`tally_rules::clock`).

use crate::clock::Clock;
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_store::Store;

/// Whether a server was in doubt.
const DOUBT_META: &str = "clock_in_doubt";

/// Which time was trusted: the boot, and the wall time at its begin.
const TRUSTED_META: &str = "clock_believed";

/// The newest instant.
const NEWEST_META: &str = "newest_instant";

/// By how many microseconds the trusted time moves against that of the boot before it is stored again: small corrections are many.
const BOOT_MOVED_MIN: u64 = SECOND.unsigned_abs();

/// The same of the newest instant, which moves with every score.
const NEWEST_MOVED_MIN: i64 = 10 * SECOND;

/// What the store remembers, as far as this server knows.
pub(crate) struct ClockMemory {
    in_doubt: AtomicBool,
    /// The wall time at the begin of this boot.
    stored: Mutex<Option<i64>>,
    newest: Mutex<Micros>,
}

impl ClockMemory {
    /// For a start: the clock continues with the stored state.
    pub(crate) fn resume(store: &dyn Store, clock: &Clock) -> Result<Self, Failure> {
        let in_doubt = store.meta(DOUBT_META)?.is_some_and(|doubt| !doubt.is_empty());
        if !clock.resume(store.meta(TRUSTED_META)?.as_deref()) && in_doubt {
            clock.begin_untrusted();
        }
        Ok(Self {
            in_doubt: AtomicBool::new(in_doubt),
            stored: Mutex::default(),
            newest: Mutex::new(newest(store)?),
        })
    }

    /// The newest instant that is remembered.
    pub(crate) fn newest(&self) -> Micros {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what has changed.
    pub(crate) fn note(&self, store: &dyn Store, clock: &Clock) -> Result<(), Failure> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((boot, begin)) = clock.trusted_boot()
            && stored.is_none_or(|stored| stored.abs_diff(begin) > BOOT_MOVED_MIN)
        {
            store.set_meta(TRUSTED_META, format!("{boot} {begin}").as_bytes())?;
            *stored = Some(begin);
        }
        let in_doubt = clock.read().doubt.is_some();
        if self.in_doubt.load(Ordering::Relaxed) != in_doubt {
            store.set_meta(DOUBT_META, if in_doubt { b"1" } else { b"" })?;
            self.in_doubt.store(in_doubt, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes the newest instant, if it has moved. Two servers that do it at once may leave the older one, until either does it
    /// again.
    pub(crate) fn note_newest(&self, store: &dyn Store, given: Micros) -> Result<(), Failure> {
        let mut stored = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if given.since(*stored) < NEWEST_MOVED_MIN {
            return Ok(());
        }
        // Another server may have given a newer one.
        *stored = newest(store)?;
        if *stored < given {
            store.set_meta(NEWEST_META, given.0.to_string().as_bytes())?;
            *stored = given;
        }
        Ok(())
    }
}

fn newest(store: &dyn Store) -> Result<Micros, Failure> {
    let stored = store.meta(NEWEST_META)?;
    let micros = stored.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok());
    Ok(Micros(micros.unwrap_or(i64::MIN)))
}

/// How far the newest stored instant is ahead of the clock; logged if it is more than the clock may jump.
pub(crate) fn lead(micros: i64, most: i64) -> i64 {
    if micros > most {
        tracing::warn!(
            seconds = micros / SECOND,
            "the newest stored instant lies ahead of the clock: the clock is behind, or was ahead. Scores count by the clock; \
             instants of new rows go on after the newest one, and decide ties only"
        );
    }
    micros.max(0)
}
