//! Bytes and nanoseconds of an order of the size given on the command line, one `name value` per line.
//!
//! Ids of 16 bytes, random scores, stamps of a season in milliseconds, players drawn at random: the worst
//! case for caches. Not here: comparisons with other structures, which are the bench crate's.
//!
//! Arguments: members, updates, leaf capacity (82 or 164), 0 to leave dense out.

#![allow(unsafe_code, clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use tally_index::{Builder, Entry, RankingIndex, Tie};

/// Operations between two readings of the clock.
const ROUND: u64 = 10_000;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn id(player: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&mix(player).to_be_bytes());
    id[8..].copy_from_slice(&mix(!player).to_be_bytes());
    id
}

fn entry(random: &mut Random) -> Entry<i64> {
    // Ninety days of milliseconds.
    let stamp = 1_760_000_000_000 + (random.next() % 7_776_000_000) as i64;
    Entry { score: -((random.next() >> 24) as i64), stamp }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse::<u64>().expect("a number"));
    let members = arguments.next().unwrap_or(1_000_000);
    let updates = arguments.next().unwrap_or(members / 2);
    let leaf = arguments.next().unwrap_or(82);
    let kinds = if arguments.next() == Some(0) { &[false][..] } else { &[false, true] };
    miss_ns();
    for &dense in kinds {
        match leaf {
            82 => measure::<82>(members, updates, dense),
            164 => measure::<164>(members, updates, dense),
            other => panic!("no leaves of {other}"),
        }
    }
}

fn measure<const LEAF: usize>(members: u64, updates: u64, dense: bool) {
    let mut random = Random(1);
    let start = LIVE.load(Relaxed);
    PEAK.store(start, Relaxed);
    let began = Instant::now();
    let mut builder = Builder::<i64, LEAF, 64>::new(Tie::StampAscending, dense);
    for player in 0..members {
        builder.push(&id(player), entry(&mut random));
    }
    let pushed = began.elapsed();
    let mut order = builder.finish().expect("ids are distinct");
    let name = if dense { "dense" } else { "plain" };
    println!("{name}.members {members}");
    println!("{name}.push_s {:.2}", pushed.as_secs_f64());
    println!("{name}.build_s {:.2}", began.elapsed().as_secs_f64());
    println!("{name}.build_peak_bytes {:.1}", (PEAK.load(Relaxed) - start) as f64 / members as f64);
    report(&format!("{name}.built"), &mut order, &mut random, start, updates.min(2_000_000));
    time(&format!("{name}.churn_ns"), updates, || update(&mut order, &mut random));
    report(&format!("{name}.churned"), &mut order, &mut random, start, updates.min(2_000_000));
}

fn report<const LEAF: usize>(
    name: &str,
    order: &mut RankingIndex<i64, LEAF, 64>,
    random: &mut Random,
    start: usize,
    rounds: u64,
) {
    let members = order.len();
    println!("{name}.bytes {:.2}", (LIVE.load(Relaxed) - start) as f64 / members as f64);
    println!("{name}.bytes_own_count {:.2}", order.bytes() as f64 / members as f64);
    time(&format!("{name}.get_ns"), rounds, || {
        black_box(order.get(&id(random.next() % members)));
    });
    time(&format!("{name}.rank_ns"), rounds, || {
        black_box(order.ordinal(&id(random.next() % members)));
    });
    time(&format!("{name}.find_many_ns, 16 at a time"), rounds / 16, || {
        let ids: [_; 16] = std::array::from_fn(|_| id(random.next() % members));
        let ids = ids.each_ref().map(|id| &id[..]);
        for found in order.find_many(&ids) {
            black_box(found);
        }
    });
    time(&format!("{name}.around_ns"), rounds / 4, || {
        let place = order.ordinal(&id(random.next() % members)).expect("the player is there");
        for row in order.range(place.saturating_sub(5)).take(11) {
            black_box(row);
        }
    });
    time(&format!("{name}.count_better_ns"), rounds, || {
        black_box(order.count_better(entry(random).score));
    });
    time(&format!("{name}.update_ns"), rounds / 4, || update(order, random));
}

fn update<const LEAF: usize>(order: &mut RankingIndex<i64, LEAF, 64>, random: &mut Random) {
    let player = id(random.next() % order.len());
    black_box(order.set(&player, entry(random)));
}

/// Nanoseconds of an operation in short rounds: of the quickest round, and the median. On a busy machine the
/// first says what the structure costs, and the second what else was going on.
fn time(name: &str, operations: u64, mut operation: impl FnMut()) {
    let mut took = Vec::new();
    for _ in 0..(operations / ROUND).max(1) {
        let began = Instant::now();
        for _ in 0..ROUND {
            operation();
        }
        took.push(began.elapsed().as_nanos() as f64 / ROUND as f64);
    }
    took.sort_by(f64::total_cmp);
    println!("{name} {:.0} median {:.0}", took[0], took[took.len() / 2]);
}

/// What one dependent miss costs on this machine now: the unit in which to read the rest.
fn miss_ns() {
    let mut random = Random(7);
    let mut places: Vec<u32> = (0..1 << 26).collect();
    // Sattolo's shuffle: one cycle through all places.
    for at in (1..places.len()).rev() {
        places.swap(at, (random.next() % at as u64) as usize);
    }
    let mut at = 0;
    time("machine.miss_ns", 5_000_000, || at = black_box(places[at as usize]));
}
