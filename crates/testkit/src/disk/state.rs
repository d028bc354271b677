//! The state of a simulated disk behind one lock: each operation is counted, done in the live folder and recorded.
//!
//! The `Disk` trait and the VFS both change files here. The real change is a closure that runs under the lock, so changes
//! are recorded in the order in which readers see them. Real syncs are left out: they cost time, and the record decides
//! what is durable.
//!
//! Not here: what a power cut leaves (`image`).

use super::contents::{Change, Contents};
use super::fault::{DiskError, Operation, Operations, Rejection, Verdict};
use super::names::{FileId, Names, folder_of};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// The suffix of the file that SQLite shares as memory between connections.
const SHARED_MEMORY: &str = "-shm";

/// A disk, shared by everything that has it open.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) folder: PathBuf,
    /// The live folder exists as long as a file in it is open.
    _own: Option<TempDir>,
    state: Mutex<DiskState>,
}

#[derive(Debug, Default)]
pub(super) struct DiskState {
    pub(super) operations: Operations,
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, File>,
    next: FileId,
}

#[derive(Debug)]
pub(super) struct File {
    /// Its latest name.
    name: Arc<Path>,
    pub(super) contents: Contents,
    /// The number of failed syncs.
    failures: u64,
    handles: usize,
}

/// An open file. Its drop is the close.
#[derive(Debug)]
pub(super) struct Handle {
    core: Arc<Core>,
    id: FileId,
    /// The failed syncs that this descriptor has reported.
    reported: AtomicU64,
}

impl Core {
    /// The disk of a folder. Everything in it is durable.
    pub(super) fn new(folder: &Path, own: Option<TempDir>) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let mut state = DiskState::default();
        state.load(&folder)?;
        Ok(Self { folder, _own: own, state: Mutex::new(state) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a file of this disk; `None` for files elsewhere and for shared memory.
    pub(super) fn name(&self, path: &Path) -> Option<Arc<Path>> {
        if is_memory(path) { None } else { self.relative(path) }
    }

    /// A path within the disk's folder; the folder itself is the empty path.
    pub(super) fn relative(&self, path: &Path) -> Option<Arc<Path>> {
        if let Ok(name) = path.strip_prefix(&self.folder) {
            return Some(name.into());
        }
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?).strip_prefix(&self.folder).ok()?.into())
    }

    /// Makes an empty file, or empties the one that has the name.
    pub(super) fn create<T, E: From<Rejection>>(
        self: &Arc<Self>,
        name: &Arc<Path>,
        real: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Handle, T), E> {
        let mut state = self.lock();
        state.begin(Operation::Create, name)?;
        let made = real()?;
        let number = state.operations.number();
        let id = match state.names.find(name) {
            Some(id) => {
                state.file(id).contents.change(number, Change::SetLen(0));
                id
            }
            None => {
                let id = state.add(name, Contents::default());
                state.names.create(name, id);
                id
            }
        };
        Ok((state.handle(self, id), made))
    }

    pub(super) fn has(&self, name: &Path) -> bool {
        self.lock().names.find(name).is_some()
    }

    /// Opens the file that has a name.
    pub(super) fn open(self: &Arc<Self>, name: &Path) -> Option<Handle> {
        let mut state = self.lock();
        let id = state.names.find(name)?;
        Some(state.handle(self, id))
    }

    /// Gives a file another name of the same folder.
    pub(super) fn rename<E: From<Rejection>>(
        &self,
        from: &Arc<Path>,
        to: &Arc<Path>,
        real: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        state.begin(Operation::Rename, to)?;
        real()?;
        if let Some(id) = state.names.find(from) {
            state.file(id).name = Arc::clone(to);
        }
        state.names.rename(from, to);
        Ok(())
    }

    /// Removes a name.
    pub(super) fn remove<E: From<Rejection>>(
        &self,
        name: &Arc<Path>,
        real: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        state.begin(Operation::Remove, name)?;
        real()?;
        state.names.remove(name);
        Ok(())
    }

    /// Makes the names of a folder durable. After a failure a later sync does so.
    pub(super) fn sync_folder(&self, folder: &Arc<Path>) -> Result<(), Rejection> {
        let mut state = self.lock();
        state.begin(Operation::SyncFolder, folder)?;
        state.names.sync_folder(folder);
        state.forget_files();
        Ok(())
    }
}

impl DiskState {
    /// The names below a folder whose files differ from the record, or are not in it.
    pub(super) fn unrecorded(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut differ = Vec::new();
        let mut missing: Vec<_> = self.names.live().cloned().collect();
        each_file(folder, Path::new(""), &mut |name| {
            missing.retain(|recorded| *recorded != name);
            let recorded = self.names.find(&name).map(|id| self.files[&id].contents.live());
            if recorded != Some(std::fs::read(folder.join(&name))?) {
                differ.push(name);
            }
            Ok(())
        })?;
        differ.extend(missing);
        Ok(differ)
    }

    fn load(&mut self, folder: &Path) -> io::Result<()> {
        each_file(folder, Path::new(""), &mut |name| {
            let contents = Contents::durable(std::fs::read(folder.join(&name))?);
            let id = self.add(&name.as_path().into(), contents);
            self.names.add_durable(&name, id);
            Ok(())
        })
    }

    fn begin(&mut self, operation: Operation, name: &Arc<Path>) -> Result<(), Rejection> {
        match self.operations.begin(operation, name) {
            Verdict::Happens => Ok(()),
            Verdict::Fails(rejection) | Verdict::Stopped(rejection) => Err(rejection),
        }
    }

    fn add(&mut self, name: &Arc<Path>, contents: Contents) -> FileId {
        self.next += 1;
        self.files.insert(self.next, File { name: Arc::clone(name), contents, failures: 0, handles: 0 });
        self.next
    }

    fn handle(&mut self, core: &Arc<Core>, id: FileId) -> Handle {
        let file = self.file(id);
        file.handles += 1;
        Handle { core: Arc::clone(core), id, reported: AtomicU64::new(file.failures) }
    }

    fn file(&mut self, id: FileId) -> &mut File {
        self.files.get_mut(&id).expect("a file is kept as long as it has a name or a handle")
    }

    /// Forgets files that nothing can reach.
    fn forget_files(&mut self) {
        let named = self.names.files();
        self.files.retain(|id, file| file.handles > 0 || named.contains(id));
    }
}

fn is_memory(path: &Path) -> bool {
    path.to_string_lossy().ends_with(SHARED_MEMORY)
}

/// Gives the name of each file below a folder, except shared memory.
fn each_file(
    folder: &Path,
    within: &Path,
    each: &mut dyn FnMut(PathBuf) -> io::Result<()>,
) -> io::Result<()> {
    for entry in std::fs::read_dir(folder.join(within))? {
        let entry = entry?;
        let name = within.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            each_file(folder, &name, each)?;
        } else if !is_memory(&name) {
            each(name)?;
        }
    }
    Ok(())
}

impl Handle {
    pub(super) fn write<E: From<Rejection>>(
        &self,
        at: u64,
        bytes: &[u8],
        real: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.core.lock();
        let name = Arc::clone(&state.file(self.id).name);
        let (bytes, result) = match state.begin(Operation::Write, &name) {
            Ok(()) => (bytes, Ok(())),
            Err(rejection) if rejection.error == DiskError::ShortWrite => {
                (&bytes[..bytes.len() / 2], Err(rejection.into()))
            }
            Err(rejection) => return Err(rejection.into()),
        };
        real(bytes)?;
        let number = state.operations.number();
        let change = Change::Write { at, bytes: bytes.into() };
        state.file(self.id).contents.change(number, change);
        result
    }

    /// Whether a read fails.
    pub(super) fn read(&self) -> Result<(), Rejection> {
        let mut state = self.core.lock();
        let name = Arc::clone(&state.file(self.id).name);
        state.operations.read(&name)
    }

    pub(super) fn set_len<E: From<Rejection>>(
        &self,
        bytes: u64,
        real: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.core.lock();
        let name = Arc::clone(&state.file(self.id).name);
        state.begin(Operation::SetLen, &name)?;
        real()?;
        let number = state.operations.number();
        state.file(self.id).contents.change(number, Change::SetLen(bytes));
        Ok(())
    }

    /// Makes the contents durable, and with `folder` the names beside the file. A sync that reports the failure of
    /// another descriptor's sync counts as failed too.
    pub(super) fn sync(&self, folder: bool) -> Result<(), Rejection> {
        let mut state = self.core.lock();
        let name = Arc::clone(&state.file(self.id).name);
        let verdict = state.operations.begin(Operation::Sync, &name);
        if let Verdict::Stopped(rejection) = verdict {
            return Err(rejection);
        }
        let file = state.file(self.id);
        file.failures += u64::from(verdict != Verdict::Happens);
        let unreported = self.reported.swap(file.failures, Ordering::Relaxed) < file.failures;
        if unreported {
            file.contents.fail_sync();
            let Verdict::Fails(rejection) = verdict else {
                state.operations.count_injected();
                return Err(Rejection { operation: Operation::Sync, error: DiskError::Io });
            };
            return Err(rejection);
        }
        file.contents.sync();
        if folder {
            state.names.sync_folder(folder_of(&name));
            state.forget_files();
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.file(self.id).handles -= 1;
        state.forget_files();
    }
}
