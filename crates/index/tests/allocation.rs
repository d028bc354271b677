//! A range scan allocates nothing per row, and neither does a look-up: counted at the allocator.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tally_index::{Builder, Entry, RankingIndex, Tie};

struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.with(|calls| calls.set(calls.get() + 1));
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of this thread meanwhile.
fn allocations(run: impl FnOnce()) -> u64 {
    let before = CALLS.with(Cell::get);
    run();
    CALLS.with(Cell::get) - before
}

fn order() -> RankingIndex<i64> {
    let mut builder = Builder::new(Tie::Id, true);
    for player in 0..5000_u32 {
        let entry = Entry { score: i64::from(player % 700), stamp: i64::from(player) };
        builder.push(&player.to_be_bytes(), entry);
    }
    builder.finish().expect("ids are distinct")
}

#[test]
fn reads_do_not_allocate() {
    assert!(allocations(|| drop(vec![1])) > 0, "the allocator counts");
    let order = order();
    let count = allocations(|| {
        let forth = order.range(0).map(|row| row.id.len() as u64).sum::<u64>();
        let back = order.range_back(order.len() - 1).map(|row| row.id.len() as u64).sum::<u64>();
        assert_eq!((forth, back), (4 * order.len(), 4 * order.len()));
        let id = 77_u32.to_be_bytes();
        assert!(order.find(&id).is_some());
        assert_eq!(order.find_many(&[&id, b"none"]).flatten().count(), 1);
        assert_eq!(order.get_many(&[&id, b"none"]).flatten().count(), 1);
    });
    assert_eq!(count, 0);
}
