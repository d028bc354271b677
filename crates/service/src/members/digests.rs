//! A queue of passwords to digest: few at once, and a bounded number that wait.
//!
//! A digest needs much memory and a processor for itself. Not here: the digest (`password`).

use super::MemberSettings;
use crate::failure::{Failure, Fault};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// See the head of the file.
pub(super) struct Digests {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// A password that waits.
struct Wait<'a>(&'a AtomicUsize);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Digests {
    pub(super) fn new(settings: &MemberSettings) -> Self {
        let permits = Arc::new(Semaphore::new(settings.passwords_at_once));
        Self { permits, waiting: AtomicUsize::new(0), waiting_max: settings.passwords_waiting_max }
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Runs a digest of a password outside of the threads that serve connections.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let waiting = Wait(&self.waiting);
        if waiting.0.fetch_add(1, Ordering::AcqRel) >= self.waiting_max {
            return Err(Fault::Overloaded.into());
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Fault::Draining)?;
        drop(waiting);
        crate::blocking(move || {
            let done = work();
            drop(permit);
            Ok(done)
        })
        .await
    }
}
