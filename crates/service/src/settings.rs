//! Settings of the use cases.

use crate::follow::Role;
use crate::ledger::LedgerSettings;
use crate::members::MemberSettings;
use std::time::Duration;
use tally_lanes::LaneLimits;
use tally_ranking::RankingBackend;
use tally_ranking::redis::RedisApplications;
use tally_rules::clock::ClockBounds;
use tally_rules::idempotency::KEEP_DEFAULT_MICROS;
use tally_rules::instant::SECOND;

/// Settings of the service, with the defaults of the product.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The backend of rankings.
    pub ranking: RankingBackend,
    /// Whether a start waits for an unavailable ranking.
    pub waits_for_ranking: bool,
    /// The Redis for applications of contests without money, if they are not in the store.
    pub applications: Option<RedisApplications>,
    /// The number of score lanes for each database: one if the store has one writer.
    pub lanes: usize,
    /// Bounds of each.
    pub lane: LaneLimits,
    /// How long outcomes of requests with an idempotency key are kept, in microseconds.
    pub idempotency_keep_micros: i64,
    /// How old the knowledge of what other servers have changed may be for a response.
    pub staleness_max: Duration,
    /// The part of this server among those of its store, if rankings are in memory.
    pub role: Role,
    /// How many boards there may be.
    pub boards_max: usize,
    /// How long leaderboards stay of contests that were settled or cancelled, in microseconds; else until they are deleted.
    pub contests_keep_micros: Option<i64>,
    /// How many API keys there may be.
    pub keys_max: usize,
    /// The memory that this process may use, in bytes: a start whose ranks do not fit into it is refused.
    pub memory_max: u64,
    /// When the clock is trusted.
    pub clock: ClockBounds,
    /// Settings of the ledger and of contests.
    pub ledger: LedgerSettings,
    /// Settings of members.
    pub members: MemberSettings,
    /// How long an event is sent again until its webhook is disabled, in microseconds.
    pub webhook_retry_micros: i64,
    /// How many past months of the ledger stay in tables; all, if nothing archives older ones.
    pub archive_keep: Option<u32>,
    /// What does the work that no caller waits for.
    pub background: Background,
}

/// What does the work that no caller waits for.
#[derive(Clone, Copy, Debug, Default)]
pub enum Background {
    /// Threads of the service.
    #[default]
    Threads,
    /// The caller: by [`Tally::work`](crate::Tally::work), and lanes by [`Tally::step`](crate::Tally::step). So one thread is
    /// enough, and a simulation chooses the order of tasks. The function is called wherever a caller must wait.
    ByHand(fn()),
}

impl Background {
    /// Waits so long for other threads or servers.
    pub(crate) fn wait(self, time: Duration) {
        match self {
            Self::Threads => std::thread::sleep(time),
            Self::ByHand(meanwhile) => meanwhile(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ranking: RankingBackend::Memory,
            waits_for_ranking: false,
            applications: None,
            lanes: 1,
            lane: LaneLimits::default(),
            idempotency_keep_micros: KEEP_DEFAULT_MICROS,
            staleness_max: Duration::from_secs(5),
            role: Role::default(),
            boards_max: 10_000,
            contests_keep_micros: None,
            memory_max: u64::MAX,
            keys_max: 1_000,
            clock: ClockBounds::default(),
            ledger: LedgerSettings::default(),
            members: MemberSettings::default(),
            webhook_retry_micros: 3 * 24 * 3600 * SECOND,
            archive_keep: None,
            background: Background::default(),
        }
    }
}
