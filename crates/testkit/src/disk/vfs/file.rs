//! An open file of a simulated disk, as SQLite holds it: its record first, then the default VFS's file.
//!
//! SQLite allots the space for both in one piece. Methods that change the file go through the disk; all others are passed
//! on. Memory-mapped pages are rejected, because the disk would not see their changes. So are the controls that lengthen
//! a file in pieces.
//!
//! Not here: opening and removing (`vfs`).

#![allow(unsafe_code, reason = "SQLite calls the methods of a file by pointers")]

use super::super::state::Handle;
use super::{Code, check, code};
use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first part of the space for a file. The default VFS's file follows; the size keeps it aligned.
#[repr(C)]
pub(super) struct ShimFile {
    /// First, as in every `sqlite3_file`.
    methods: *const sqlite3_io_methods,
    open: *mut Open,
}

struct Open {
    handle: Handle,
    /// Whether the next sync makes the file's name durable too.
    syncs_folder: AtomicBool,
}

const _: () = assert!(size_of::<ShimFile>().is_multiple_of(8));

/// The space for a file together with the default VFS's.
pub(super) fn size_with(base: c_int) -> c_int {
    base + c_int::try_from(size_of::<ShimFile>()).expect("a small size")
}

impl ShimFile {
    /// The default VFS's part of the space.
    ///
    /// # Safety
    ///
    /// `file` has the space that the shim asks for.
    pub(super) unsafe fn base(file: *mut sqlite3_file) -> *mut sqlite3_file {
        // SAFETY: the space has a `ShimFile` before the default VFS's file.
        unsafe { file.cast::<Self>().add(1).cast() }
    }

    /// Makes the file ours.
    ///
    /// # Safety
    ///
    /// The default VFS has opened [`Self::base`].
    pub(super) unsafe fn fill(file: *mut sqlite3_file, handle: Handle, syncs_folder: bool) {
        let open = Box::into_raw(Box::new(Open { handle, syncs_folder: AtomicBool::new(syncs_folder) }));
        // SAFETY: the space begins with a `ShimFile`.
        unsafe { file.cast::<Self>().write(Self { methods: &raw const METHODS, open }) };
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: Some(fetch),
    xUnfetch: Some(unfetch),
};

/// Calls a method of the default VFS's file.
macro_rules! base {
    ($file:ident.$method:ident($($argument:expr),*)) => {{
        let base = ShimFile::base($file);
        let method = (*(*base).pMethods).$method.expect("the default VFS has the methods of version 3");
        method(base $(, $argument)*)
    }};
}

/// Defines methods that are passed on unchanged.
macro_rules! pass_on {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> $result {
            // SAFETY: SQLite calls methods only of files that `fill` made. All arguments are passed on.
            unsafe { base!(file.$method($($argument),*)) }
        }
    )*};
}

pass_on! {
    file_size = xFileSize(size: *mut i64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(result: *mut c_int) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, result: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
}

/// The disk's state of the file.
///
/// # Safety
///
/// `fill` made the file, and `close` was not called.
unsafe fn open<'a>(file: *mut sqlite3_file) -> &'a Open {
    // SAFETY: `fill` set the pointer, and only `close` frees it.
    unsafe { &*(*file.cast::<ShimFile>()).open }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, and uses it no more.
    unsafe {
        let code = base!(file.xClose());
        drop(Box::from_raw((*file.cast::<ShimFile>()).open));
        (*file).pMethods = ptr::null();
        code
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, into: *mut c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite calls methods only of files that `fill` made. All arguments are passed on.
    unsafe {
        match open(file).handle.read() {
            Ok(()) => base!(file.xRead(into, bytes, at)),
            Err(rejection) => code(Err(Code::from(rejection))),
        }
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, bytes: *const c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: SQLite gives that many bytes. What is passed on is a first part of them.
    unsafe {
        let length = usize::try_from(length).expect("lengths are not negative");
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length);
        let real = |bytes: &[u8]| {
            let length = c_int::try_from(bytes.len()).expect("no longer than what SQLite gave");
            check(base!(file.xWrite(bytes.as_ptr().cast(), length, at)))
        };
        code(open(file).handle.write(at.cast_unsigned(), bytes, real))
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: i64) -> c_int {
    // SAFETY: SQLite calls methods only of files that `fill` made.
    unsafe {
        let real = || check(base!(file.xTruncate(length)));
        code(open(file).handle.set_len(length.cast_unsigned(), real))
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite calls methods only of files that `fill` made.
    let open = unsafe { open(file) };
    let synced = open.handle.sync(open.syncs_folder.load(Ordering::Relaxed));
    if synced.is_ok() {
        open.syncs_folder.store(false, Ordering::Relaxed);
    }
    code(synced.map_err(Code::from))
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    match operation {
        ffi::SQLITE_FCNTL_CHUNK_SIZE | ffi::SQLITE_FCNTL_SIZE_HINT | ffi::SQLITE_FCNTL_MMAP_SIZE => {
            ffi::SQLITE_NOTFOUND
        }
        // SAFETY: SQLite calls methods only of files that `fill` made. All arguments are passed on.
        _ => unsafe { base!(file.xFileControl(operation, argument)) },
    }
}

unsafe extern "C" fn fetch(_: *mut sqlite3_file, _: i64, _: c_int, page: *mut *mut c_void) -> c_int {
    // SAFETY: SQLite passes a valid pointer for the result. Null makes it read the page.
    unsafe { *page = ptr::null_mut() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn unfetch(_: *mut sqlite3_file, _: i64, _: *mut c_void) -> c_int {
    ffi::SQLITE_OK
}
