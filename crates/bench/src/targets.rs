//! Targets, and measured figures of other systems: every number that a ratio is compared with.
//!
//! The figures of other systems were measured on 2 cores and 24 GiB with the load generator beside the server. Scenarios
//! measure them again in the same run where they can. Those of the field reports R1 to R5 (`docs/bench.md`) are their own, from
//! other machines.

use tally_load::report::RatioTarget;

/// Bytes per member at ten million, ids of 16 bytes, all included: at most.
pub(crate) const BYTES_PER_MEMBER: RatioTarget = RatioTarget { floor: 60.0, aim: 45.0 };
/// Nanoseconds of a rank at ten million: at most.
pub(crate) const RANK_NS: RatioTarget = RatioTarget { floor: 700.0, aim: 400.0 };
/// Nanoseconds of an update at ten million: at most.
pub(crate) const UPDATE_NS: RatioTarget = RatioTarget { floor: 1_500.0, aim: 800.0 };
/// Times the rate of Nakama, each kind of request: at least.
pub(crate) const TIMES_NAKAMA: RatioTarget = RatioTarget { floor: 10.0, aim: 20.0 };
/// Tally's rate of reads divided by that of Redis: at least, one command at a time and 16.
pub(crate) const READS_TIMES_REDIS: [RatioTarget; 2] =
    [RatioTarget { floor: 0.9, aim: 1.1 }, RatioTarget { floor: 1.5, aim: 3.0 }];
/// The same of relaxed writes, against `appendfsync everysec`.
pub(crate) const RELAXED_TIMES_REDIS: [RatioTarget; 2] =
    [RatioTarget { floor: 0.8, aim: 1.1 }, RatioTarget { floor: 1.0, aim: 3.0 }];
/// The same of durable writes, against `appendfsync always`.
pub(crate) const DURABLE_TIMES_REDIS: [RatioTarget; 2] =
    [RatioTarget { floor: 1.0, aim: 2.0 }, RatioTarget { floor: 1.0, aim: 3.0 }];

/// Lanes on MariaDB, times the rate of single upserts: at least.
pub(crate) const LANES_TIMES_SINGLE: RatioTarget = RatioTarget { floor: 4.0, aim: 6.0 };
/// The same against upserts of 500 rows.
pub(crate) const LANES_TIMES_BULK: RatioTarget = RatioTarget { floor: 0.7, aim: 1.0 };

/// Transfers on MariaDB, times the rate of R5's baseline flow: at least.
pub(crate) const TRANSFERS_TIMES_BASELINE: RatioTarget = RatioTarget { floor: 6.0, aim: 12.0 };
/// Transfers to one wallet, times the rate of uniform ones: at least.
pub(crate) const HOT_TIMES_UNIFORM: RatioTarget = RatioTarget { floor: 0.7, aim: 1.0 };

/// A start of 200 members with a commit for each, times the time of ours: at least.
pub(crate) const START_TIMES_EACH: RatioTarget = RatioTarget { floor: 12.0, aim: 25.0 };

/// A loop of 100 look-ups in Redis, times the time of the page at once: at least.
pub(crate) const PAGE_TIMES_LOOP: RatioTarget = RatioTarget { floor: 15.0, aim: 25.0 };

/// Reading and clearing a contest's applications beside a million other keys, times the same beside none: at most.
pub(crate) const CLEAR_TIMES_EMPTY: RatioTarget = RatioTarget { floor: 1.1, aim: 1.05 };

/// Submits per second, and reads per second beside them, divided by those of R3: at least.
pub(crate) const MIXED_TIMES_R3: RatioTarget = RatioTarget { floor: 2.0, aim: 5.0 };
/// R3's own rate of each.
pub(crate) const R3_RATE: f64 = 5_000.0;

/// Seconds from kill -9 to exact ranks of a hundred million players: at most.
pub(crate) const RECOVERY_SQLITE_S: RatioTarget = RatioTarget { floor: 180.0, aim: 60.0 };
/// The same on MariaDB.
pub(crate) const RECOVERY_MARIADB_S: RatioTarget = RatioTarget { floor: 480.0, aim: 180.0 };
/// Resident memory of a server with a hundred million players, in GiB: at most.
pub(crate) const RESIDENT_GIB: RatioTarget = RatioTarget { floor: 6.5, aim: 5.0 };
/// Percentile 99.9 of R3's submits and reads at a hundred million players, in milliseconds: at most.
pub(crate) const LOAD_P999_MS: RatioTarget = RatioTarget { floor: 50.0, aim: 20.0 };
/// The memory of R3's Redis with its sorted set.
pub(crate) const R3_MEMORY_GIB: f64 = 64.0;

/// The latency of a submit beside a thousand streams, divided by that without them: at most.
pub(crate) const SUBMIT_BESIDE_STREAMS: RatioTarget = RatioTarget { floor: 1.1, aim: 1.05 };

/// A figure of a server after two hours, divided by the same after half an hour: at most.
pub(crate) const ENDURANCE_GROWTH: RatioTarget = RatioTarget { floor: 1.1, aim: 1.05 };

/// Outcomes of requests that expire a second, divided by those that are stored beside them: at least.
pub(crate) const EXPIRED_PER_SECOND: RatioTarget = RatioTarget { floor: 1.0, aim: 2.0 };

/// Percentile 99 of a follower's lag, in milliseconds: at most; the floor is `follow.age_max`.
pub(crate) const FOLLOWER_LAG_MS: RatioTarget = RatioTarget { floor: 1_000.0, aim: 100.0 };
/// The longest wait of a change while a leader hands over, in milliseconds: at most.
pub(crate) const HANDOVER_MS: RatioTarget = RatioTarget { floor: 1_000.0, aim: 250.0 };
/// The same after a kill, in seconds and without the length of the lease: at most.
pub(crate) const AFTER_LEASE_S: RatioTarget = RatioTarget { floor: 1.0, aim: 0.5 };

/// Nakama on PostgreSQL 15, 64 connections: leaderboard writes per second.
pub(crate) const NAKAMA_SUBMITS: f64 = 2_088.0;
/// Its top tens per second.
pub(crate) const NAKAMA_TOPS: f64 = 2_608.0;
/// Its pages around an owner per second, 11 rows.
pub(crate) const NAKAMA_AROUNDS: f64 = 1_590.0;
