//! Records against boards, periods and archives: each record belongs to a window that is stored. The archive of a closed
//! period has exactly the records of that period, in the order of the board's rule.
//!
//! Records and periods are scanned side by side in the order of their keys, archives in the order of their blocks. Both sides
//! are sums of keyed digests, so memory is that of some pages and of one board's banned players. Entries are looked up by key
//! only if the sums differ. Not here: spans of periods (`schedule`), archives of no period (`archives`), and ranks in a
//! server's memory, which `tally doctor` compares.

use super::Run;
use super::archives::{self, each_block};
use super::schedule::Schedules;
use super::sorted_rows::SortedRows;
use super::sum::Sum;
use crate::failure::Failure;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use tally_ranking::blocks::{BLOCK_ENTRIES, unpack};
use tally_rules::definition::{Definition, Ranking};
use tally_rules::{Micros, PlayerId, Record, order_key};
use tally_store::plan::{ALL_TIME, ATTEMPTS};
use tally_store::score_snapshot::ToPurge;
use tally_store::{BoardNo, BoardRow, ScoreKey, Snapshot, StoreError, WindowKey, WindowRow};

/// The counts of checked scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreCounts {
    /// Live leaderboards.
    pub boards: u64,
    /// Records of live boards, in all of their windows.
    pub records: u64,
    /// Stored periods of live boards.
    pub periods: u64,
    /// Periods with a span of an earlier schedule.
    pub earlier_schedule: u64,
    /// Closed periods whose archive was compared, and the entries of those.
    pub archives: u64,
    /// See `archives`.
    pub entries: u64,
    /// Closed periods whose archive must be written, or written again.
    pub unwritten: u64,
    /// Records of deleted boards and forgotten periods, which are deleted in the background.
    pub to_purge: u64,
}

/// The name of a window, for people.
pub(super) fn name(boards: &Boards, key: WindowKey) -> String {
    let WindowKey { board, window } = key;
    match boards.get(&board) {
        Some(Some(row)) => format!("{}/{}", row.id.as_str(), window.0),
        _ => format!("{}/{}", board.0, window.0),
    }
}

/// Live boards; one whose definition is corrupt has none.
pub(super) type Boards = BTreeMap<BoardNo, Option<BoardRow>>;

type Records = SortedRows<ScoreKey, Record>;

/// The records of one window.
#[derive(Default)]
struct Group {
    count: u64,
    /// Those of players that are not banned.
    shown: Sum,
}

/// The state that all windows share.
struct Comparison {
    boards: Boards,
    purge: ToPurge,
    /// Players banned on the board of that number.
    banned: (Option<BoardNo>, HashSet<PlayerId>),
}

fn window_of(key: &ScoreKey) -> WindowKey {
    WindowKey { board: key.board, window: key.window }
}

/// Scans all of it.
pub(super) fn reconcile(snapshot: &mut dyn Snapshot, now: Micros, run: &mut Run<'_>) -> Result<(), Failure> {
    let boards: Boards = snapshot.boards()?.into_iter().collect();
    run.reconciled.scores.boards = boards.len() as u64;
    let mut all = Comparison { boards, purge: snapshot.to_purge()?, banned: (None, HashSet::new()) };
    let (mut records, mut windows, mut schedules) =
        (Records::default(), SortedRows::default(), Schedules::new(now));
    loop {
        let read = records.fill(|after, limit| snapshot.scores(after, limit))?;
        run.read(read);
        windows.fill(|after: Option<&WindowKey>, limit| snapshot.windows(after.copied(), limit))?;
        let of_records = records.peek().map(|(key, _)| window_of(key));
        let stored = windows.peek().map(|(key, _): &(WindowKey, WindowRow)| *key);
        let Some(key) = of_records.into_iter().chain(stored).min() else {
            archives::reconcile(snapshot, (&all.boards, &all.purge), run)?;
            return Ok(());
        };
        let row = if stored == Some(key) { windows.next().map(|(_, row)| row) } else { None };
        let group = all.take(snapshot, &mut records, key, run)?;
        let Some(Some(board)) = all.boards.get(&key.board).cloned() else {
            all.without_board(key, &group, row.is_some(), run);
            continue;
        };
        match row {
            _ if [ALL_TIME, ATTEMPTS].contains(&key.window) => run.reconciled.scores.records += group.count,
            None if all.purge.windows.contains(&key) => run.reconciled.scores.to_purge += group.count,
            None => {
                let what = format!("{} records of a period that is not stored", group.count);
                run.found("scores", name(&all.boards, key), what);
            }
            Some(row) => {
                run.reconciled.scores.records += group.count;
                run.reconciled.scores.periods += 1;
                schedules.check((&board, &row), name(&all.boards, key), run);
                if row.closed {
                    all.archive(snapshot, (key, &board, &row), &group, run)?;
                }
            }
        }
    }
}

impl Comparison {
    /// Takes the records of a window.
    fn take(
        &mut self,
        snapshot: &mut dyn Snapshot,
        records: &mut Records,
        window: WindowKey,
        run: &mut Run<'_>,
    ) -> Result<Group, StoreError> {
        if self.banned.0 != Some(window.board) {
            self.banned = (Some(window.board), snapshot.banned(window.board)?.into_iter().collect());
        }
        let board = self.boards.get(&window.board).and_then(Option::as_ref);
        let has_subscore = board.is_none_or(|board| board.definition.has_subscore());
        let mut group = Group::default();
        loop {
            let read = records.fill(|after, limit| snapshot.scores(after, limit))?;
            run.read(read);
            if records.peek().is_none_or(|(key, _)| window_of(key) != window) {
                return Ok(group);
            }
            let Some((key, record)) = records.next() else { return Ok(group) };
            group.count += 1;
            if !self.banned.1.contains(&key.player) {
                group.shown.add_record(&run.key, &key.player, &record);
            }
            if !has_subscore && record.subscore != 0 {
                let row = format!("{}/{}", name(&self.boards, window), key.player.as_str().escape_debug());
                run.found("scores", row, "it has a subscore, and its board has none");
            }
        }
    }

    fn without_board(&self, key: WindowKey, group: &Group, has_row: bool, run: &mut Run<'_>) {
        // What belongs to a board that cannot be read cannot be checked.
        if self.boards.contains_key(&key.board) {
            run.reconciled.scores.records += group.count;
        } else if self.purge.boards.contains(&key.board) {
            run.reconciled.scores.to_purge += group.count;
        } else {
            let row = name(&self.boards, key);
            if group.count > 0 {
                run.found("scores", &row, format!("{} records of a board that is not there", group.count));
            }
            if has_row {
                run.found("parts", row, "its board is not there");
            }
        }
    }

    /// Compares the archive of a closed period with its records.
    fn archive(
        &self,
        snapshot: &mut dyn Snapshot,
        (key, board, row): (WindowKey, &BoardRow, &WindowRow),
        group: &Group,
        run: &mut Run<'_>,
    ) -> Result<(), StoreError> {
        if row.stale || row.version == 0 {
            run.reconciled.scores.unwritten += 1;
            return Ok(());
        }
        run.reconciled.scores.archives += 1;
        let row_name = name(&self.boards, key);
        let mut order = Order::new(&board.definition);
        let mut sum = Sum::default();
        let whole = each_block(snapshot, (key, row.version), |_, number, block| {
            let of_block = format!("{row_name}/{}/{number}", row.version);
            let Some(entries) = unpack(&block.entries) else {
                run.found("blocks", of_block, "its entries cannot be read");
                return Ok(());
            };
            let places = row.total.saturating_sub(number.saturating_mul(BLOCK_ENTRIES as u64));
            if entries.len() as u64 != places.min(BLOCK_ENTRIES as u64) {
                let what =
                    format!("it has {} entries, and its period has {} from there on", entries.len(), places);
                run.found("blocks", &of_block, what);
            }
            for wrong in order.next_block(&entries, block.distinct_better) {
                run.found("blocks", &of_block, wrong);
            }
            for (player, record) in &entries {
                sum.add_record(&run.key, player, record);
            }
            run.reconciled.scores.entries += entries.len() as u64;
            Ok(())
        })?;
        if let Err(missing) = whole {
            run.found("blocks", format!("{row_name}/{}/{missing}", row.version), "it is not there");
        }
        if sum.count() != row.total {
            let what = format!("it counts {} players, and its archive has {}", row.total, sum.count());
            run.found("parts", &row_name, what);
        }
        if sum != group.shown {
            self.report_entries(snapshot, (key, row, &row_name), group, run)?;
        }
        Ok(())
    }

    /// Looks up each entry of an archive among the records.
    fn report_entries(
        &self,
        snapshot: &mut dyn Snapshot,
        (key, row, row_name): (WindowKey, &WindowRow, &str),
        group: &Group,
        run: &mut Run<'_>,
    ) -> Result<(), StoreError> {
        let mut agreed = 0;
        let _named_before = each_block(snapshot, (key, row.version), |snapshot, _, block| {
            let mut entries = unpack(&block.entries).unwrap_or_default();
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let score =
                |player: &PlayerId| ScoreKey { board: key.board, window: key.window, player: player.clone() };
            let mut keys: Vec<ScoreKey> = entries.iter().map(|(player, _)| score(player)).collect();
            keys.dedup();
            let stored: BTreeMap<PlayerId, Option<Record>> =
                keys.iter().map(|key| key.player.clone()).zip(snapshot.scores_of(&keys)?).collect();
            for (player, record) in entries {
                let what = match stored.get(&player).copied().flatten() {
                    None => "its archive has it, and there is no record that can be read",
                    Some(_) if self.banned.1.contains(&player) => {
                        "its archive has it, and the player is banned"
                    }
                    Some(stored) if stored != record => "its archive has another record",
                    Some(_) => {
                        agreed += 1;
                        continue;
                    }
                };
                run.found("scores", format!("{row_name}/{}", player.as_str().escape_debug()), what);
            }
            Ok(())
        })?;
        let left = group.shown.count().saturating_sub(agreed);
        if left > 0 {
            run.found("parts", row_name, format!("{left} of its records are not in its archive as they are"));
            archives::report_missing(snapshot, (key, row.version), (&self.banned.1, row_name), run)?;
        }
        Ok(())
    }
}

/// The order of entries so far.
struct Order<'a> {
    definition: &'a Definition,
    last: Option<(PlayerId, Record)>,
    /// Changes of the score before the next entry.
    changes: u64,
}

impl<'a> Order<'a> {
    fn new(definition: &'a Definition) -> Self {
        Self { definition, last: None, changes: 0 }
    }

    /// The errors of the next block.
    fn next_block(&mut self, entries: &[(PlayerId, Record)], distinct_better: u64) -> Vec<String> {
        let mut wrong = Vec::new();
        for (place, (player, record)) in entries.iter().enumerate() {
            if let Some((before, record_before)) = &self.last {
                let (left, right) = ((record_before, before.as_bytes()), (record, player.as_bytes()));
                if order_key::compare(self.definition, left, right) != Ordering::Less {
                    let player = player.as_str().escape_debug();
                    wrong.push(format!("entry {place}, `{player}`, does not come after the one before"));
                }
                let score = |record| order_key::normal(self.definition, record);
                self.changes += u64::from(score(record_before) != score(record));
            }
            let is_counted = place == 0 && self.definition.ranking == Ranking::Dense;
            if is_counted && distinct_better != self.changes {
                let changes = self.changes;
                wrong.push(format!(
                    "{distinct_better} better scores are counted before it, and there are {changes}"
                ));
            }
            self.last = Some((player.clone(), *record));
        }
        wrong
    }
}
