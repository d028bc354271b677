//! The end of threads that go on until a flag is set, also after a failure.
//!
//! Not here: the threads, and what they wait for besides.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, also by a panic.
///
/// [`std::thread::scope`] waits for its threads before it passes a panic on. Threads that go on until a flag is set would keep a
/// failed test from ever ending, and its message from being seen. So such a scope begins with this guard, and drops it where its
/// threads are to end.
#[derive(Debug)]
pub struct SetAtEnd<'a>(&'a AtomicBool);

impl<'a> SetAtEnd<'a> {
    /// A guard of this flag.
    #[must_use = "the flag is set as soon as the guard is dropped"]
    pub fn new(flag: &'a AtomicBool) -> Self {
        Self(flag)
    }
}

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn the_threads_of_a_scope_end_when_it_is_dropped_and_when_the_scope_panics() {
        for fails in [false, true] {
            let over = AtomicBool::new(false);
            let ended = catch_unwind(|| {
                std::thread::scope(|scope| {
                    let end = SetAtEnd::new(&over);
                    let running = scope.spawn(|| {
                        while !over.load(Ordering::SeqCst) {
                            std::thread::yield_now();
                        }
                    });
                    assert!(!fails, "a check of the test");
                    drop(end);
                    running.join().unwrap();
                });
            });
            assert_eq!((ended.is_err(), over.into_inner()), (fails, true));
        }
    }
}
