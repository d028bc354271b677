//! Faults of a disk: operations, their numbers, and the faults that a test arms.
//!
//! Every operation that changes the disk has a number, from 1. A fault waits for an operation by its kind, its file and
//! its number among the matching ones. A power cut is no fault: from its operation on nothing changes any more.
//!
//! Not here: what an error does to the files (`state`).

use std::io;
use std::path::Path;
use std::sync::Arc;

/// A kind of operation that changes a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Bytes are written into a file.
    Write,
    /// A file is cut, or extended with zeros.
    SetLen,
    /// The contents of a file are made durable.
    Sync,
    /// A file gets its first name, or is emptied by creating it again.
    Create,
    /// A file gets another name.
    Rename,
    /// A name is removed.
    Remove,
    /// The names of a folder are made durable.
    SyncFolder,
    /// SQLite reads bytes of a file. That changes nothing, so it has no number, and only a fault of this kind applies
    /// to it.
    Read,
}

impl Operation {
    /// All kinds that change a disk.
    pub const ALL: [Self; 7] =
        [Self::Write, Self::SetLen, Self::Sync, Self::Create, Self::Rename, Self::Remove, Self::SyncFolder];
}

/// An error of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// The device failed (`EIO`).
    Io,
    /// No space is left (`ENOSPC`), and nothing was changed.
    Full,
    /// No space is left after the first half of a write. Operations other than a write fail as with [`Self::Full`].
    ShortWrite,
}

/// An error that waits for its operation.
///
/// After a failed sync its file's pending changes stay readable. A power cut may lose them, as on Linux. Later syncs do
/// not change that. Each open descriptor reports the failure once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFault {
    at: u64,
    error: DiskError,
    operation: Option<Operation>,
    file: Option<String>,
    lasting: bool,
    /// Matching operations since the fault was armed.
    seen: u64,
}

impl DiskFault {
    /// Fails the `at`-th operation from now on; 1 is the next one.
    pub fn new(at: u64, error: DiskError) -> Self {
        Self { at, error, operation: None, file: None, lasting: false, seen: 0 }
    }

    /// Counts only operations of this kind.
    #[must_use]
    pub fn of(self, operation: Operation) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Counts only operations on names that end so, such as `-wal`.
    #[must_use]
    pub fn on(self, file: &str) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// Fails all later matching operations too, until the disk is healed.
    #[must_use]
    pub fn lasting(self) -> Self {
        Self { lasting: true, ..self }
    }

    fn matches(&self, operation: Operation, name: &Path) -> bool {
        let ends = |end: &String| name.to_string_lossy().ends_with(&**end);
        let is_kind = self.operation.map_or(operation != Operation::Read, |only| only == operation);
        is_kind && self.file.as_ref().is_none_or(ends)
    }
}

/// Why an operation did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) operation: Operation,
    pub(super) error: DiskError,
}

impl From<Rejection> for io::Error {
    fn from(rejection: Rejection) -> Self {
        const EIO: i32 = 5;
        const ENOSPC: i32 = 28;
        Self::from_raw_os_error(if rejection.error == DiskError::Io { EIO } else { ENOSPC })
    }
}

/// The operations so far, and what goes wrong with later ones.
#[derive(Debug, Default)]
pub(super) struct Operations {
    done: Vec<(Operation, Arc<Path>)>,
    faults: Vec<DiskFault>,
    injected: u64,
    reads: u64,
    stop_at: Option<u64>,
    stopped: bool,
}

impl Operations {
    pub(super) fn done(&self) -> &[(Operation, Arc<Path>)] {
        &self.done
    }

    pub(super) fn number(&self) -> u64 {
        self.done.len() as u64
    }

    pub(super) fn arm(&mut self, fault: DiskFault) {
        self.faults.push(fault);
    }

    pub(super) fn heal(&mut self) {
        self.faults.clear();
    }

    pub(super) fn stop_at(&mut self, number: u64) {
        self.stop_at = Some(number);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn injected(&self) -> u64 {
        self.injected
    }

    pub(super) fn count_injected(&mut self) {
        self.injected += 1;
    }

    /// Counts an operation and returns the error that it must report. Errors of a power cut are not counted.
    pub(super) fn begin(&mut self, operation: Operation, name: &Arc<Path>) -> Verdict {
        self.stopped |= self.stop_at.is_some_and(|stop| self.number() + 1 >= stop);
        if self.stopped {
            return Verdict::Stopped(Rejection { operation, error: DiskError::Io });
        }
        self.done.push((operation, Arc::clone(name)));
        self.meet(operation, name).map_or(Verdict::Happens, Verdict::Fails)
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads
    }

    /// Counts a read and returns the error that it must report.
    pub(super) fn read(&mut self, name: &Path) -> Result<(), Rejection> {
        self.reads += 1;
        self.meet(Operation::Read, name).map_or(Ok(()), Err)
    }

    /// The fault that applies to an operation.
    fn meet(&mut self, operation: Operation, name: &Path) -> Option<Rejection> {
        let mut error = None;
        self.faults.retain_mut(|fault| {
            if !fault.matches(operation, name) {
                return true;
            }
            fault.seen += 1;
            if fault.seen >= fault.at && error.is_none() {
                error = Some(fault.error);
                return fault.lasting;
            }
            true
        });
        self.injected += u64::from(error.is_some());
        error.map(|error| Rejection { operation, error })
    }
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Happens,
    Fails(Rejection),
    /// The power is off.
    Stopped(Rejection),
}
