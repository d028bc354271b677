//! A thread that works in the background until it is stopped.
//!
//! It waits on a channel: a word wakes it, and the end of the channel ends it. Not here: what it does, and how often.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// The thread, if it is running.
#[derive(Debug, Default)]
pub(crate) struct Background {
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Background {
    /// Starts it under a name of its own.
    pub(crate) fn start(
        &self,
        name: &str,
        run: impl FnOnce(Receiver<()>) + Send + 'static,
    ) -> std::io::Result<()> {
        let (wake, woken) = channel();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(woken))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((wake, thread));
        Ok(())
    }

    /// Has it look at once.
    pub(crate) fn wake(&self) {
        if let Some((wake, _)) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            // A thread that has ended needs no waking.
            let _ = wake.send(());
        }
    }

    /// Ends it after what it is doing. Blocks until then.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((wake, thread)) = thread {
            drop(wake);
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                tracing::error!(%name, "a thread in the background panicked");
            }
        }
    }
}
