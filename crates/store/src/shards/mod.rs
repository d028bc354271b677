//! Records spread by player over several databases, without anything between them and us.
//!
//! - `home`: which shard a player's records are in
//! - `split`: plans and changes shard by shard; `run`: a transaction on each; `reads`: everything else that is asked
//! - `directory`: boards, which are true on the first shard and told to the others; `feeds`: what other servers have changed
//! - `layout`: which shard a database is, so that a wrong list is refused; `reshard`, `moving`: another number of them
//! - `upgrade`: what earlier releases may have left
//!
//! No transaction spans two databases. Servers with ranks outside write side by side; one with ranks in memory keeps others away by a
//! lease on every shard: they are taken in order, so whoever has the first may have the others. While a shard is away, what concerns
//! it fails and what concerns others does not. Not here: databases that are no MySQL or MariaDB.

mod books;
mod contests;
mod directory;
mod feeds;
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
use crate::servers::{BoardState, Changed, FeedPosition, Mark, Name, Revisions, ScoreState, Task};
use crate::{DamagedRow, Ledger, LostCommits, SHARDS_MAX, Slow, Store, StoreError};
use directory::{Directory, Told};
use feeds::Feeds;
use run::batch_of;
use silent::Silent;
use split::FIRST;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};

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
    feeds: Feeds,
    /// Whether other servers may write as well.
    shared: bool,
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
        let inner = Inner::new(all, options.beside.is_some());
        inner.catch_up_all()?;
        Ok(Self { inner })
    }

    /// Opens them beside a process that writes: for reading only, and nothing is mended.
    pub fn observe(urls: &[String], options: &Options) -> Result<Self, StoreError> {
        let options = Options { writer: None, beside: None, ..options.clone() };
        let all = connect(urls, &options, &mut |_| ())?;
        layout::check_set(&all)?;
        Ok(Self { inner: Inner::new(all, false) })
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
    fn new(all: Vec<Arc<MySqlStore>>, shared: bool) -> Self {
        let directory = Directory::of(all.len());
        Self { all, directory, silent: Silent::default(), feeds: Feeds::default(), shared }
    }

    /// The database of a transaction, and the transaction as that one knows it.
    fn place(&self, batch: BatchId) -> (&MySqlStore, BatchId) {
        (&self.all[usize::from(batch.shard)], BatchId { shard: 0, ..batch })
    }

    /// Some transactions by their databases.
    fn places(batches: &[BatchId]) -> BTreeMap<usize, Vec<BatchId>> {
        let mut places: BTreeMap<usize, Vec<BatchId>> = BTreeMap::new();
        for batch in batches {
            places.entry(batch.shard.into()).or_default().push(BatchId { shard: 0, ..*batch });
        }
        places
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
        self.inner.run(plan, decide)
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        self.inner.all[FIRST].id()
    }

    fn clock_ahead(&self) -> i64 {
        let all = self.inner.all.iter().map(|store| store.clock_ahead());
        all.max_by_key(|ahead| ahead.abs()).unwrap_or(0)
    }

    /// Another one where any of them has begun another.
    fn generation(&self) -> u64 {
        self.inner.all.iter().fold(0, |all, store| all.rotate_left(7) ^ store.generation())
    }

    fn board(&self, name: Name<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        self.inner.board(name, known)
    }

    fn changed(&self, after: &[FeedPosition]) -> Result<Changed, StoreError> {
        self.inner.changed(after)
    }

    fn take_turn(&self, task: Task, time: Duration) -> Result<bool, StoreError> {
        self.inner.ask(FIRST, |store| store.take_turn(task, time))
    }

    fn published(&self, batch: BatchId) {
        let (store, batch) = self.inner.place(batch);
        store.published(batch);
    }

    fn marks(&self, age: Duration, after: Option<BatchId>) -> Result<Vec<Mark>, StoreError> {
        self.inner.marks(age, after)
    }

    fn fold_marks(&self, batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        // One for each database would be several: only those of one are folded.
        let mut places = Inner::places(batches).into_iter();
        let (Some((shard, batches)), None) = (places.next(), places.next()) else { return Ok(None) };
        let folded = self.inner.ask(shard, |store| store.fold_marks(&batches))?;
        Ok(folded.map(|batch| batch_of(shard, batch)))
    }

    fn take_marks_off(&self, batches: &[BatchId]) -> Result<(), StoreError> {
        let mut places = Inner::places(batches).into_iter();
        places.try_for_each(|(shard, batches)| self.inner.ask(shard, |store| store.take_marks_off(&batches)))
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
        let each = &mut |player: PlayerId, record: Option<Record>, version| {
            record.into_iter().for_each(|record| each(player.clone(), record, version));
        };
        self.inner.walk((board, part, false), after, limit, each)
    }

    fn walk_states(
        &self,
        shard: Option<usize>,
        of: (BoardNo, Part),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        match shard {
            Some(shard) => self.inner.ask(shard, |store| store.walk_states(None, of, after, limit, each)),
            None => self.inner.walk((of.0, of.1, true), after, limit, each),
        }
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
        self.inner.of_players(keys, |key| &key.player, MySqlStore::records)
    }

    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        self.inner.of_players(keys, |key| &key.player, MySqlStore::states)
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

    fn banned(&self, board: BoardNo, players: &[PlayerId]) -> Result<HashSet<PlayerId>, StoreError> {
        let each = |store: &MySqlStore, players: &[PlayerId]| {
            let banned = store.banned(board, players)?;
            Ok(players.iter().map(|player| banned.get(player).cloned()).collect())
        };
        Ok(self.inner.of_players(players, |player| player, each)?.into_iter().flatten().collect())
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

    fn unpurged(&self, parts: &[PartKey], shard: usize) -> Result<Vec<PartKey>, StoreError> {
        self.inner.ask(shard, |store| store.unpurged(parts, FIRST))
    }

    fn purge_part(&self, part: PartKey, limit: usize) -> Result<bool, StoreError> {
        // The first is the last: what it has to purge says what is gone.
        let _changing = self.inner.directory.change();
        let one = |shard| {
            if shard != FIRST && self.inner.shared {
                // Whoever forgot it may have ended before the others were told.
                self.inner.sync(shard, &Told { gone: [part].into(), ..Told::default() })?;
            }
            self.inner.ask(shard, |store| store.purge_part(part, limit))
        };
        (0..self.inner.all.len()).rev().try_fold(true, |done, shard| Ok(done && one(shard)?))
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
