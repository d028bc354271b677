//! Records spread by player over several databases, without anything between them and us.
//!
//! - `home`: which shard a player's records are in
//! - `split`: plans and changes shard by shard; `run`: a transaction on each; `reads`: everything else that is asked
//! - `directory`: boards, which are true on the first shard and told to the others
//! - `layout`: which shard a database is, so that a wrong list is refused; `reshard`, `moving`: another number of them
//! - `upgrade`: what earlier releases may have left
//!
//! No transaction spans two databases. A lease on every shard keeps a second process from writing; they are taken in order, so whoever has the first may have
//! the others. While a shard is away, what concerns it fails and what concerns others does not. Not here: databases
//! that are no MySQL or MariaDB, and servers that share the shards.

mod books;
mod contests;
mod directory;
mod home;
mod layout;
mod ledger;
mod moving;
mod reads;
mod reshard;
mod run;
mod silent;
mod split;
mod upgrade;

pub use layout::check_alone;
pub use moving::Progress;
pub use reshard::{Resharded, reshard};

use crate::mysql::{MySqlStore, Options};
use crate::plan::{
    BatchId, Block, BlockKey, BoardNo, BoardRow, Changes, Committed, ImportKey, ImportRow, KeyRow, Loaded,
    Part, PartKey, PartRow, Plan, ScoreKey,
};
use crate::{DamagedRow, Ledger, LostCommits, SHARDS_MAX, Slow, Store, StoreError};
use directory::Directory;
use silent::Silent;
use split::FIRST;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};

/// Transactions whose end was lost and may be asked about; a caller asks about one at a time.
const LOST_MAX: usize = 256;

/// Several databases that are one store.
#[derive(Debug)]
pub struct Shards {
    inner: Inner,
}

#[derive(Debug)]
struct Inner {
    all: Vec<Arc<MySqlStore>>,
    directory: Directory,
    silent: Silent,
    lost: Mutex<VecDeque<(BatchId, usize)>>,
}

impl Shards {
    /// Opens the databases of a list, making their tables where they are empty. All of them know the boards of the first
    /// afterwards.
    pub fn open(urls: &[String], options: &Options) -> Result<Self, StoreError> {
        Self::open_telling(urls, options, &mut |_| ())
    }

    /// The same; `tell` hears what is waited for.
    pub fn open_telling(
        urls: &[String],
        options: &Options,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let all = connect(urls, options, tell)?;
        layout::check(&all)?;
        upgrade::upgrade(&all)?;
        let inner = Inner::new(all);
        inner.catch_up_all()?;
        Ok(Self { inner })
    }

    /// Opens them beside a process that writes: for reading only, and nothing is mended.
    pub fn observe(urls: &[String], options: &Options) -> Result<Self, StoreError> {
        let options = Options { writer: None, ..options.clone() };
        let all = connect(urls, &options, &mut |_| ())?;
        layout::check_set(&all)?;
        Ok(Self { inner: Inner::new(all) })
    }

    /// The databases, in order.
    pub fn each(&self) -> &[Arc<MySqlStore>] {
        &self.inner.all
    }
}

fn connect(
    urls: &[String],
    options: &Options,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Arc<MySqlStore>>, StoreError> {
    if urls.is_empty() || urls.len() > SHARDS_MAX {
        return Err(StoreError::Layout(format!("a store has 1 to {SHARDS_MAX} shards, not {}", urls.len())));
    }
    let mut all: Vec<Arc<MySqlStore>> = Vec::new();
    for url in urls {
        let store = MySqlStore::open_telling(url, options, tell)?;
        if let Some(at) = all.iter().position(|other| other.url() == store.url()) {
            let (url, first, second) = (store.url(), at + 1, all.len() + 1);
            return Err(StoreError::Layout(format!("shards {first} and {second} are the same: {url}")));
        }
        all.push(Arc::new(store));
    }
    Ok(all)
}

impl Inner {
    fn new(all: Vec<Arc<MySqlStore>>) -> Self {
        let directory = Directory::of(all.len());
        Self { all, directory, silent: Silent::default(), lost: Mutex::default() }
    }

    /// A shard as people count and as messages show it.
    fn name(&self, shard: usize) -> String {
        format!("shard {} of {}", shard + 1, self.all.len())
    }

    /// That a shard is away, by its name; `alone`: it is the only one that the transaction concerns.
    fn away(&self, shard: usize, alone: bool, why: String) -> StoreError {
        StoreError::ShardAway { shard: self.name(shard), alone, why }
    }
}

impl Store for Shards {
    fn name(&self) -> &'static str {
        "shards"
    }

    fn shards(&self) -> usize {
        self.inner.all.len()
    }

    fn shard_of(&self, player: &PlayerId) -> usize {
        home::home(player, self.inner.all.len())
    }

    fn run(&self, plan: &Plan, decide: &mut dyn FnMut(&Loaded) -> Changes) -> Result<Committed, StoreError> {
        // What was decided on the state of a shard that is gone must not be done on another.
        if let Some(lost) = self.lost() {
            return Err(StoreError::Away(lost.to_string()));
        }
        // One server writes. Nobody else changes boards or publishes, so neither revisions nor marks mean anything, and
        // those of several databases would be several.
        let plan = &Plan { marks: false, alone: false, ..plan.clone() };
        let committed = self.inner.run(plan, &mut |loaded| {
            let boards = loaded.boards.iter().map(|revision| revision.map(|_| 0)).collect();
            decide(&Loaded { boards, ..loaded.clone() })
        })?;
        Ok(Committed { version: committed.version, ..Committed::default() })
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        self.inner.all[FIRST].id()
    }

    fn clock_ahead(&self) -> i64 {
        let all = self.inner.all.iter().map(|store| store.clock_ahead());
        all.max_by_key(|ahead| ahead.abs()).unwrap_or(0)
    }

    fn generation(&self) -> u64 {
        self.inner.all[FIRST].generation()
    }

    fn became(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        self.inner.became(batch)
    }

    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.inner.ask(FIRST, |store| store.boards())
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.inner.ask(FIRST, |store| store.keys())
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        self.inner.ask(FIRST, |store| store.had_keys())
    }

    fn walk_versions(
        &self,
        board: BoardNo,
        part: Part,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        self.inner.walk((board, part), after, limit, each)
    }

    fn walk_shard(
        &self,
        shard: usize,
        (board, part): (BoardNo, Part),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        self.inner.ask(shard, |store| store.walk_versions(board, part, after, limit, each))
    }

    fn parts(&self, board: BoardNo) -> Result<Vec<PartRow>, StoreError> {
        self.inner.parts(board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError> {
        self.inner.ask(FIRST, |store| store.block(key))
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.records(keys)
    }

    fn count_scores(&self, board: BoardNo, part: Part) -> Result<u64, StoreError> {
        self.inner.sum(|store| store.count_scores(board, part))
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        let one = |shard| self.inner.ask(shard, |store| store.import_progress(key));
        // The first is the last of them to have a chunk.
        let Some(mut whole) = one(FIRST)? else { return Ok(None) };
        for shard in 1..self.inner.all.len() {
            let row = one(shard)?.unwrap_or_default();
            whole.taken += row.taken;
            whole.refused += row.refused;
        }
        Ok(Some(whole))
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.inner.bans(board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        self.inner.ask(FIRST, |store| store.profiles(players))
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.inner.up_to(0, limit, |store, limit| store.expire_requests(before, limit))
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.inner.purge_deleted(limit)
    }

    fn unpurged(&self, parts: &[PartKey]) -> Result<Vec<PartKey>, StoreError> {
        let mut found = BTreeSet::new();
        for shard in 0..self.inner.all.len() {
            found.extend(self.inner.ask(shard, |store| store.unpurged(parts))?);
        }
        Ok(found.into_iter().collect())
    }

    fn purge_part(&self, part: PartKey, limit: usize) -> Result<bool, StoreError> {
        // The first is the last: what it has to purge says what is gone.
        let _changing = self.inner.directory.change();
        let one = |shard| self.inner.ask(shard, |store| store.purge_part(part, limit));
        (0..self.inner.all.len()).rev().try_fold(true, |done, shard| Ok(one(shard)? && done))
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.ask(FIRST, |store| store.meta(name))
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.inner.ask(FIRST, |store| store.set_meta(name, value))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.inner.all.iter().try_for_each(|store| store.settle())
    }

    fn slow(&self) -> Vec<Slow> {
        let mut all: Vec<_> = self.inner.all.iter().flat_map(|store| store.slow()).collect();
        all.sort_by_key(|slow| slow.at);
        all
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.inner.gauges()
    }

    fn damaged(&self) -> Vec<DamagedRow> {
        // A board is on each of them.
        let mut all: Vec<DamagedRow> = self.inner.all.iter().flat_map(|store| store.damaged()).collect();
        all.sort_unstable_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
        all.dedup();
        all
    }

    fn damaged_count(&self) -> u64 {
        self.inner.all.iter().map(|store| store.damaged_count()).sum()
    }

    fn is_damaged(&self, key: &ScoreKey) -> bool {
        self.inner.all[self.shard_of(&key.player)].is_damaged(key)
    }

    /// Nobody writes to any shard who has not the lease of the first.
    fn may_answer(&self) -> bool {
        self.inner.all[FIRST].may_answer() && self.lost().is_none()
    }

    fn lost(&self) -> Option<LostCommits> {
        self.inner.all.iter().find_map(|store| store.lost())
    }
}
