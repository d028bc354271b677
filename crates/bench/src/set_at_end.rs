//! The end of threads that go on until a flag is set, also after a panic.
//!
//! The tests of this crate run its scenarios, and a scope waits for its threads before it passes a panic on: a scenario that panics
//! would never end. The guard of the test kit is for tests only. Not here: the threads.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
