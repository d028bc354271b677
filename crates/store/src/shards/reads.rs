//! Reads outside of transactions: from the first shard, from a player's home shard, or merged from all.
//!
//! A lagging shard gets what it lacks before it is read. Not here: transactions.

use super::home::home;
use super::run::batch_of;
use super::split::FIRST;
use super::{Inner, Shards};
use crate::mysql::MySqlStore;
use crate::plan::{
    BatchId, BlockKey, BoardNo, BoardRow, Committed, ImportKey, ImportRow, KeyRow, ScoreKey, StoredBlock,
    Window, WindowRow,
};
use crate::servers::ScoreState;
use crate::{
    Coordination, Ledger, Listing, Maintenance, OutboxEntry, Reads, ScoreSnapshot, StoreError, Transactions,
};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::profile::Profile;

use tally_rules::{PlayerId, Record};

/// The minimum number of records that a merged scan reads from a shard at a time.
const FETCH_MIN: usize = 256;

/// The next records of one shard in a merged scan.
struct Cursor {
    shard: usize,
    next: VecDeque<(PlayerId, Option<Record>, u64)>,
    last: Option<PlayerId>,
    ended: bool,
}

impl Reads for Shards {
    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.inner.query(FIRST, |store| store.boards())
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.inner.query(FIRST, |store| store.keys())
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        self.inner.query(FIRST, |store| store.had_keys())
    }

    /// A row is on the shard of its act.
    fn list_audit(
        &self,
        before: AuditId,
        limit: usize,
    ) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
        let mut all = Listing::default();
        for shard in 0..self.inner.all.len() {
            let list = self.inner.query(shard, |store| store.list_audit(before, limit))?;
            all.rows.extend(list.rows);
            all.damaged.extend(list.damaged);
        }
        all.rows.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
        all.rows.truncate(limit);
        Ok(all)
    }

    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        let each = &mut |player: PlayerId, record: Option<Record>, version| {
            record.into_iter().for_each(|record| each(player.clone(), record, version));
        };
        self.inner.merged_scan((board, window, false), after, limit, each)
    }

    fn scan_shard(
        &self,
        shard: usize,
        (board, window): (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        self.inner.query(shard, |store| store.scan_versions(board, window, after, limit, each))
    }

    fn scan_states(
        &self,
        shard: Option<usize>,
        of: (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        match shard {
            Some(shard) => self.inner.query(shard, |store| store.scan_states(None, of, after, limit, each)),
            None => self.inner.merged_scan((of.0, of.1, true), after, limit, each),
        }
    }

    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        self.inner.of_players(keys, |key| &key.player, MySqlStore::states)
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        self.inner.windows(board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
        self.inner.query(FIRST, |store| store.block(key))
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.of_players(keys, |key| &key.player, MySqlStore::records)
    }

    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError> {
        self.inner.sum(|store| store.count_scores(board, window))
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        let one = |shard| self.inner.query(shard, |store| store.import_progress(key));
        // The first shard gets a chunk last, so an import exists only if the first shard has it.
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
        self.inner.query(FIRST, |store| store.profiles(players))
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.query(FIRST, |store| store.meta(name))
    }
}

impl Inner {
    /// Reads from one shard.
    pub(super) fn query<T>(
        &self,
        shard: usize,
        read: impl FnOnce(&MySqlStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.catch_up(shard)?;
        read(&self.all[shard]).map_err(|error| self.of_one(shard, error))
    }

    /// Like [`Self::query`], but fails at once if the shard failed a moment ago.
    pub(super) fn query_soon<T>(
        &self,
        shard: usize,
        read: impl FnOnce(&MySqlStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.refuse_recent(shard, true)?;
        self.query(shard, read).inspect_err(|error| {
            if let StoreError::ShardUnavailable { .. } = error {
                self.breaker.put(shard);
            }
        })
    }

    /// Adds the name of the shard to its error.
    fn of_one(&self, shard: usize, error: StoreError) -> StoreError {
        match error {
            StoreError::Unavailable(why) | StoreError::NoAccess(why) => self.unavailable(shard, true, why),
            error => error,
        }
    }

    /// The sum of the answers of all shards.
    pub(super) fn sum(
        &self,
        read: impl Fn(&MySqlStore) -> Result<u64, StoreError>,
    ) -> Result<u64, StoreError> {
        (0..self.all.len()).try_fold(0, |sum, shard| Ok(sum + self.query(shard, &read)?))
    }

    /// Purges deleted rows. The first shard's rows list what is deleted, so they stay until all other shards know.
    pub(super) fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        let _changing = self.directory.change();
        // Another server may have deleted a board or forgotten a period, and ended before the others had it.
        let is_propagated = !self.shared || {
            let purge = self.all[FIRST].begin_snapshot()?.to_purge()?;
            purge.boards.is_empty() && purge.windows.is_empty() || self.catch_up_all().is_ok()
        };
        let done = self.up_to(1, limit, MySqlStore::purge_deleted)?;
        if done == limit || !is_propagated || self.directory.lagging() > 0 {
            return Ok(done);
        }
        Ok(done + self.query(FIRST, |store| store.purge_deleted(limit - done))?)
    }

    /// Applies `each` to at most `limit` rows of the shards from `lowest` on. An unavailable shard does not block the
    /// others.
    pub(super) fn up_to(
        &self,
        lowest: usize,
        limit: usize,
        each: impl Fn(&MySqlStore, usize) -> Result<usize, StoreError>,
    ) -> Result<usize, StoreError> {
        let (mut done, mut failed) = (0, None);
        for shard in lowest..self.all.len() {
            match self.query(shard, |store| each(store, limit - done)) {
                Ok(rows) => done += rows,
                Err(error) => failed = Some(error),
            }
            if done == limit {
                break;
            }
        }
        // A partial result is returned before the error. The next call has nothing left but the error.
        match failed {
            Some(error) if done == 0 => Err(error),
            _ => Ok(done),
        }
    }

    /// See [`crate::Transactions::resolve`].
    pub(super) fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        let (shard, (store, batch)) = (usize::from(batch.shard), self.place(*batch));
        let committed = store.resolve(&batch).map_err(|error| self.of_one(shard, error))?;
        Ok(committed.map(|committed| {
            let outbox = committed.outbox.map(|batch| batch_of(shard, batch));
            Committed { outbox, ..committed }
        }))
    }

    /// See [`crate::Coordination::outbox`]: the entries of one shard after those of another. The entries of an unavailable
    /// shard are found when it is available again, and do not block the others.
    pub(super) fn outbox(
        &self,
        age: Duration,
        after: Option<BatchId>,
    ) -> Result<Vec<OutboxEntry>, StoreError> {
        let first = after.map_or(0, |batch| usize::from(batch.shard));
        for shard in first..self.all.len() {
            let after = after.filter(|batch| usize::from(batch.shard) == shard);
            let after = after.map(|batch| BatchId { shard: 0, ..batch });
            match self.query_soon(shard, |store| store.outbox(age, after)) {
                Ok(entries) if !entries.is_empty() => {
                    let of_shard =
                        |entry: OutboxEntry| OutboxEntry { batch: batch_of(shard, entry.batch), ..entry };
                    return Ok(entries.into_iter().map(of_shard).collect());
                }
                Ok(_) | Err(StoreError::ShardUnavailable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }

    /// Rows of players from their home shards, in the order of the keys.
    pub(super) fn of_players<K: Clone, T: Clone>(
        &self,
        keys: &[K],
        player: impl Fn(&K) -> &PlayerId,
        read: impl Fn(&MySqlStore, &[K]) -> Result<Vec<Option<T>>, StoreError>,
    ) -> Result<Vec<Option<T>>, StoreError> {
        let mut by_shard: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            by_shard.entry(home(player(key), self.all.len())).or_default().push(place);
        }
        let mut all = vec![None; keys.len()];
        for (shard, places) in by_shard {
            let wanted: Vec<K> = places.iter().map(|place| keys[*place].clone()).collect();
            let found = self.query(shard, |store| read(store, &wanted))?;
            places.into_iter().zip(found).for_each(|(place, one)| all[place] = one);
        }
        Ok(all)
    }

    /// Merges the periods of all shards. The row on the first shard counts; an open period may be on any shard.
    pub(super) fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        let mut windows = BTreeMap::new();
        for shard in 0..self.all.len() {
            for row in self.query(shard, |store| store.windows(board))? {
                windows.entry(row.window).or_insert(row);
            }
        }
        Ok(windows.into_values().collect())
    }

    pub(super) fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        let mut players = Vec::new();
        for shard in 0..self.all.len() {
            players.extend(self.query(shard, |store| store.bans(board))?);
        }
        players.sort_unstable();
        Ok(players)
    }

    /// A scan over all shards in order of players; with recently removed records on request.
    pub(super) fn merged_scan(
        &self,
        of: (BoardNo, Window, bool),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        let fetch = (limit / self.all.len()).max(FETCH_MIN).min(limit);
        let cursor = |shard| Cursor { shard, next: VecDeque::new(), last: after.cloned(), ended: limit == 0 };
        let mut cursors: Vec<Cursor> = (0..self.all.len()).map(cursor).collect();
        for given in 0..limit {
            for cursor in &mut cursors {
                self.fill(cursor, of, fetch)?;
            }
            let least = cursors.iter_mut().filter(|cursor| !cursor.next.is_empty());
            let least = least.min_by(|a, b| a.next[0].0.cmp(&b.next[0].0));
            let Some((player, record, version)) = least.and_then(|cursor| cursor.next.pop_front()) else {
                return Ok(given);
            };
            each(player, record, version);
        }
        Ok(limit)
    }

    fn fill(
        &self,
        cursor: &mut Cursor,
        (board, window, with_removed): (BoardNo, Window, bool),
        fetch: usize,
    ) -> Result<(), StoreError> {
        if !cursor.next.is_empty() || cursor.ended {
            return Ok(());
        }
        let (next, last) = (&mut cursor.next, &cursor.last);
        let count = self.query(cursor.shard, |store| {
            if with_removed {
                let mut each = |player, record, version| next.push_back((player, record, version));
                return store.scan_states(None, (board, window), last.as_ref(), fetch, &mut each);
            }
            let mut each = |player, record, version| next.push_back((player, Some(record), version));
            store.scan_versions(board, window, last.as_ref(), fetch, &mut each)
        })?;
        cursor.ended = count < fetch;
        cursor.last = cursor.next.back().map(|(player, ..)| player.clone());
        Ok(())
    }

    /// The sums over all shards. The lease is that of the first shard, because it decides.
    pub(super) fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut all: Vec<(&'static str, f64)> = Vec::new();
        for (shard, store) in self.all.iter().enumerate() {
            for (name, value) in store.gauges() {
                match all.iter_mut().find(|(other, _)| *other == name) {
                    Some(_) if name == "lease_seconds" || name == "clock_ahead_seconds" => {}
                    Some((_, sum)) => *sum += value,
                    None if shard == FIRST || name != "lease_seconds" && name != "clock_ahead_seconds" => {
                        all.push((name, value))
                    }
                    None => {}
                }
            }
        }
        all.push(("shards", self.all.len() as f64));
        all.push(("shards_silent", self.breaker.get().len() as f64));
        all.push(("shards_lagging", f64::from(self.directory.lagging())));
        all
    }
}
