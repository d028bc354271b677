//! The VFS of a simulated disk: SQLite's default VFS with another way to open and to remove files.
//!
//! One disk has one VFS of a unique name. A main database, its journal and its write-ahead log in the disk's folder are
//! wrapped (`file`). All other files, such as temporary ones, are opened by the default VFS as if it had been asked.
//!
//! Not here: methods of an open file.

#![allow(unsafe_code, reason = "a VFS is a table of functions that SQLite calls")]

mod file;

use super::fault::{DiskError, Operation, Rejection};
use super::state::Core;
use file::ShimFile;
use rusqlite::ffi;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Files whose changes count.
const COUNTED: c_int = ffi::SQLITE_OPEN_MAIN_DB | SYNCS_FOLDER;

/// Files whose first sync makes their name durable, when SQLite may create them.
const SYNCS_FOLDER: c_int =
    ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;

/// The flags of [`ffi::sqlite3_vfs::xDelete`]'s caller that ask for a sync of the folder.
const SYNC_FOLDER: c_int = 1;

/// A registered VFS. Its drop ends new connections; open ones stay valid.
#[derive(Debug)]
pub(super) struct Vfs {
    name: String,
}

/// The VFS as SQLite sees it. It is leaked: an open connection points to it, and SQLite does not report the last close. It
/// takes some hundred bytes for each disk.
#[repr(C)]
struct Shim {
    /// First, so that a pointer to it is a pointer to the shim.
    vfs: ffi::sqlite3_vfs,
    base: *mut ffi::sqlite3_vfs,
    /// Open files own the disk. The VFS must not: it is never freed.
    core: Weak<Core>,
}

/// A result code of SQLite other than `SQLITE_OK`.
pub(super) struct Code(c_int);

impl Vfs {
    pub(super) fn register(core: &Arc<Core>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("simulated-disk-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let c_name = CString::new(&*name).expect("the name has no zero").into_raw();
        // SAFETY: the default VFS lives as long as the process. Its fields other than `pNext` never change, and `pNext` is
        // not read. The name and the shim are leaked, so SQLite may keep pointers to them.
        let code = unsafe {
            let base = ffi::sqlite3_vfs_find(ptr::null());
            assert!(!base.is_null(), "SQLite has a default VFS");
            let vfs = ffi::sqlite3_vfs {
                iVersion: (*base).iVersion,
                szOsFile: file::size_with((*base).szOsFile),
                mxPathname: (*base).mxPathname,
                pNext: ptr::null_mut(),
                zName: c_name,
                pAppData: (*base).pAppData,
                xOpen: Some(open),
                xDelete: Some(delete),
                // The default VFS uses its first argument only when it opens a file.
                xAccess: (*base).xAccess,
                xFullPathname: (*base).xFullPathname,
                xDlOpen: (*base).xDlOpen,
                xDlError: (*base).xDlError,
                xDlSym: (*base).xDlSym,
                xDlClose: (*base).xDlClose,
                xRandomness: (*base).xRandomness,
                xSleep: (*base).xSleep,
                xCurrentTime: (*base).xCurrentTime,
                xGetLastError: (*base).xGetLastError,
                xCurrentTimeInt64: (*base).xCurrentTimeInt64,
                xSetSystemCall: (*base).xSetSystemCall,
                xGetSystemCall: (*base).xGetSystemCall,
                xNextSystemCall: (*base).xNextSystemCall,
            };
            let shim = Box::into_raw(Box::new(Shim { vfs, base, core: Arc::downgrade(core) }));
            ffi::sqlite3_vfs_register(shim.cast(), 0)
        };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite takes a VFS");
        Self { name }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Vfs {
    fn drop(&mut self) {
        let name = CString::new(&*self.name).expect("the name has no zero");
        // SAFETY: only this value unregisters the VFS, and the shim is never freed.
        unsafe {
            ffi::sqlite3_vfs_unregister(ffi::sqlite3_vfs_find(name.as_ptr()));
        }
    }
}

impl From<Rejection> for Code {
    fn from(rejection: Rejection) -> Self {
        let full = rejection.error != DiskError::Io;
        Self(match rejection.operation {
            Operation::Write if full => ffi::SQLITE_FULL,
            Operation::Write => ffi::SQLITE_IOERR_WRITE,
            Operation::SetLen => ffi::SQLITE_IOERR_TRUNCATE,
            Operation::Sync => ffi::SQLITE_IOERR_FSYNC,
            Operation::Create => ffi::SQLITE_CANTOPEN,
            Operation::Rename => ffi::SQLITE_IOERR,
            Operation::Remove => ffi::SQLITE_IOERR_DELETE,
            Operation::SyncFolder => ffi::SQLITE_IOERR_DIR_FSYNC,
            Operation::Read => ffi::SQLITE_IOERR_READ,
        })
    }
}

fn check(code: c_int) -> Result<(), Code> {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(Code(code)) }
}

fn code(result: Result<(), Code>) -> c_int {
    result.map_or_else(|Code(code)| code, |()| ffi::SQLITE_OK)
}

/// The path that SQLite gives.
///
/// # Safety
///
/// `name` is null or a string that outlives the result.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: as this function's caller says.
    let name = unsafe { (!name.is_null()).then(|| CStr::from_ptr(name)) };
    name?.to_str().ok().map(Path::new)
}

/// SAFETY: SQLite calls it with a shim that `register` made, and with space for a file of the size that the shim says.
unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: the shim is leaked. The default VFS gets its own table and at least the space that it asks for.
    unsafe {
        (*file).pMethods = ptr::null();
        let shim = &*vfs.cast::<Shim>();
        let open_base = (*shim.base).xOpen.expect("a VFS can open");
        let counted = flags & COUNTED != 0 && flags & ffi::SQLITE_OPEN_DELETEONCLOSE == 0;
        let Some(path) = path(name).filter(|_| counted) else {
            return open_base(shim.base, name, file, flags, flags_out);
        };
        let Some(core) = shim.core.upgrade() else { return ffi::SQLITE_CANTOPEN };
        let Some(relative) = core.name(path) else {
            return open_base(shim.base, name, file, flags, flags_out);
        };
        let real = || check(open_base(shim.base, name, ShimFile::base(file), flags, flags_out));
        let opened = match core.open(&relative) {
            Some(handle) => real().map(|()| handle),
            // A file that was made past the disk cannot be recorded.
            None if path.exists() => Err(Code(ffi::SQLITE_CANTOPEN)),
            None if flags & ffi::SQLITE_OPEN_CREATE != 0 => {
                core.create(&relative, real).map(|(handle, ())| handle)
            }
            None => Err(Code(ffi::SQLITE_CANTOPEN)),
        };
        let syncs_folder = flags & SYNCS_FOLDER != 0 && flags & ffi::SQLITE_OPEN_CREATE != 0;
        code(opened.map(|handle| ShimFile::fill(file, handle, syncs_folder)))
    }
}

/// SAFETY: SQLite calls it with a shim that `register` made, and with a path.
unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: the shim is leaked. The default VFS gets its own table.
    unsafe {
        let shim = &*vfs.cast::<Shim>();
        let delete_base = (*shim.base).xDelete.expect("a VFS can remove");
        let Some(core) = shim.core.upgrade() else { return ffi::SQLITE_IOERR_DELETE };
        let relative = path(name).and_then(|path| core.name(path)).filter(|name| core.has(name));
        let Some(relative) = relative else { return delete_base(shim.base, name, sync) };
        let removed = core.remove(&relative, || check(delete_base(shim.base, name, 0)));
        code(removed.and_then(|()| {
            if sync & SYNC_FOLDER == 0 {
                return Ok(());
            }
            Ok(core.sync_folder(&super::names::folder_of(&relative).into())?)
        }))
    }
}
