//! What the store remembers of the clock, because a server that starts does not know what was before.
//!
//! Not here: whether the clock is believed (`clock`).

use crate::Failure;
use crate::clock::{BELIEVED_META, Clock, DOUBT_META};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tally_rules::instant::SECOND;
use tally_store::Store;

/// By how many microseconds the believed time moves against that of the boot before it is stored again: small corrections are many.
const BOOT_MOVED_MIN: u64 = SECOND.unsigned_abs();

/// What is stored now.
#[derive(Debug)]
pub(crate) struct ClockNotes {
    in_doubt: AtomicBool,
    boot: Mutex<Option<i64>>,
}

impl ClockNotes {
    /// Tells the clock what is stored of it.
    pub(crate) fn resume(store: &dyn Store, clock: &Clock) -> Result<Self, Failure> {
        let in_doubt = store.meta(DOUBT_META)?.is_some_and(|doubt| !doubt.is_empty());
        if !clock.resume(store.meta(BELIEVED_META)?.as_deref()) && in_doubt {
            clock.begin_in_doubt();
        }
        Ok(Self { in_doubt: AtomicBool::new(in_doubt), boot: Mutex::default() })
    }

    /// Stores whether the clock is in doubt, and which time is believed, where that has changed.
    pub(crate) fn remember(&self, store: &dyn Store, clock: &Clock) -> Result<(), Failure> {
        let mut stored = self.boot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((boot, begin)) = clock.believed_boot()
            && stored.is_none_or(|stored| stored.abs_diff(begin) > BOOT_MOVED_MIN)
        {
            store.set_meta(BELIEVED_META, format!("{boot} {begin}").as_bytes())?;
            *stored = Some(begin);
        }
        let in_doubt = clock.judge().doubt.is_some();
        if self.in_doubt.load(Ordering::Relaxed) != in_doubt {
            store.set_meta(DOUBT_META, if in_doubt { b"1" } else { b"" })?;
            self.in_doubt.store(in_doubt, Ordering::Relaxed);
        }
        Ok(())
    }
}
