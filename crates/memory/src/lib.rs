//! The allocator of the binary, and when memory goes back to the system.
//!
//! mimalloc keeps what is freed for a second, and then returns it on whichever thread frees a page next. After a load of a hundred
//! million players that is half a gigabyte, and the thread is one that serves connections: it stood still for 100 ms. So a thread that frees
//! much at once calls [`give_back`] afterwards, on its own thread.
//!
//! Not here: what is freed when. The `unsafe` is one call of the allocator.

/// The allocator: many small allocations from many threads are the normal case of a server.
pub use mimalloc::MiMalloc as Allocator;

/// Returns what has been freed to the system, before it returns. In a binary with another allocator it does nothing.
pub fn give_back() {
    // SAFETY: it takes no pointer and may be called from any thread at any time.
    #[expect(unsafe_code, reason = "the call into C")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Allocator, give_back};

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// Bytes of this process in memory.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    #[test]
    fn what_another_thread_used_is_given_back() {
        const MUCH: u64 = 256 << 20;
        let before = resident();
        let blocks = std::thread::spawn(|| (0..MUCH / 1024).map(|_| vec![1_u8; 1024]).collect::<Vec<_>>());
        let blocks = blocks.join().unwrap();
        assert!(resident() > before + MUCH * 9 / 10);
        drop(blocks);
        give_back();
        assert!(resident() < before + MUCH / 4, "{} of {MUCH} bytes are left", resident() - before);
    }
}
