//! Opening the store of a server, and waiting for an unavailable database.
//!
//! A database may start later than the server, or may be moved while it loads: a start goes on when it is back. What only a
//! person can change, such as a wrong password, ends the process. Not here: how long one attempt takes (`store.connect_timeout`).

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::store::{Opened, Opening};
use anyhow::{Error, Result};
use std::time::Duration;
use tally_service::{Failure, Fault};
use tally_store::StoreError;

/// The pause between two attempts.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The last logged text, so that it is logged once.
#[derive(Default)]
pub(super) struct LogOnce(String);

impl LogOnce {
    /// Logs why a step is tried again.
    pub(super) fn warn(&mut self, step: &str, error: &Error) {
        let text = format!("{error:#}");
        if self.0 != text {
            tracing::warn!("{step}: {text}; it is tried again until it works");
            self.0 = text;
        }
    }
}

/// Whether the database does not answer now, so that the same may work later without any change.
pub(super) fn is_away(error: &Error) -> bool {
    error.chain().any(|cause| {
        let of_store = cause.downcast_ref::<StoreError>().is_some_and(|error| {
            matches!(error, StoreError::Unavailable(_) | StoreError::ShardUnavailable { .. })
        });
        let of_service = cause.downcast_ref::<Failure>().is_some_and(|failure| {
            matches!(
                failure,
                Failure::Fault(
                    Fault::StoreUnavailable(_) | Fault::ShardUnavailable { .. } | Fault::Contention(_)
                )
            )
        });
        of_store || of_service
    })
}

/// Opens the store, again and again after each failure that `may_wait`.
pub(super) fn open(
    step: &str,
    (config, data, opening): (&Config, &DataDir, Opening),
    may_wait: impl Fn(&Error) -> bool,
) -> Result<Opened> {
    let place = data.place(config)?;
    let mut log = LogOnce::default();
    loop {
        match place.open(config, data.path(), opening) {
            Err(error) if may_wait(&error) => log.warn(step, &error),
            done => return done,
        }
        std::thread::sleep(PAUSE);
    }
}
