//! The synchronisation primitives of a lane: those of `std`, or shuttle's in this crate's unit tests.
//!
//! `cfg(test)` holds only for the unit tests of this very crate. So the plain test command runs them under
//! shuttle's schedulers, without a feature flag. Integration tests, examples and every other crate get `std`.
//! The statistics use `std` atomics in both. They order nothing, and as scheduling points they would only enlarge the
//! search.

#[cfg(not(test))]
pub(crate) use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle, sleep},
};

#[cfg(test)]
pub(crate) use shuttle::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle, sleep},
};
