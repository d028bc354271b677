//! The Redis of applications in histories, behind a network that fails at any call of it.

use std::collections::BTreeSet;
use tally_ranking::RedisApplications;
use tally_ranking::redis::Options;
use tally_rules::contest::ContestRecord;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::ledger::Uuid;
use tally_testkit::{Cut, Proxy, RedisKind, Reply, ScratchRedis};

/// Every call of Redis has this command.
const QUESTION: &[u8] = b"EVALSHA";

/// It and the proxy before it.
pub(super) struct Outside {
    redis: ScratchRedis,
    proxy: Proxy,
    /// Under which names applications were seen.
    seen: BTreeSet<String>,
}

impl Outside {
    pub(super) fn start() -> Self {
        let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
        let proxy = Proxy::start(redis.address());
        Self { redis, proxy, seen: BTreeSet::new() }
    }

    /// As a process knows it.
    pub(super) fn applications(&self) -> RedisApplications {
        RedisApplications::open(&format!("redis://{}", self.proxy.address()), &Options::default()).unwrap()
    }

    /// The call after this many more ends like that, and every one after it if the process dies.
    pub(super) fn arm(&self, after: usize, cut: Cut, dies: bool) {
        self.proxy.cut_after(QUESTION, after, cut);
        if dies {
            self.proxy.refuse_then();
        }
    }

    /// Nothing more happens. Whether something has.
    pub(super) fn disarm(&self) -> bool {
        let happened = !self.proxy.is_armed();
        if !happened {
            self.proxy.pass();
        }
        happened
    }

    /// Lets the next caller pass.
    pub(super) fn pass(&self) {
        self.proxy.pass();
    }

    /// Remembers the keys of a contest's applications.
    pub(super) fn note(&mut self, record: &ContestRecord) {
        if let ApplicationLocation::Redis(number) = record.kept {
            self.seen.insert(format!("{{tally:contest:{}}}:{number}:", record.no));
        }
    }

    /// Nothing is left of them.
    pub(super) fn assert_cleared(&self, contest: Uuid) {
        let Reply::Array(keys) = self.redis.client().call(&["KEYS", "*"]) else { panic!("a list") };
        let of = format!("{{tally:contest:{contest}}}:");
        for prefix in self.seen.iter().filter(|prefix| prefix.starts_with(&of)) {
            let is_of = |key: &&Reply| matches!(key, Reply::Bulk(key) if key.starts_with(prefix.as_bytes()));
            assert_eq!(keys.iter().find(is_of), None);
        }
    }
}
