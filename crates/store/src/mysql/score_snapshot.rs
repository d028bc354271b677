//! Boards, records, periods and archives at one moment, for [`Snapshot`].
//!
//! Not here: the moment itself (`snapshot`).

use super::bans;
use super::boards;
use super::contests::{self, Applications};
use super::player;
use super::row::{Fields, key};
use super::scores;
use super::snapshot::MySqlSnapshot;
use super::table::Table;
use super::text::Script;
use super::windows::{self, Windows};
use crate::StoreError;
use crate::plan::{BoardNo, Garbage, ScoreKey, StoredBlock, WindowKey, WindowRow};
use crate::score_snapshot::{ArchiveKey, Boards, ScoreSnapshot, ToPurge};
use crate::snapshot::RowPage;
use tally_rules::contest::Application;
use tally_rules::ledger::Uuid;
use tally_rules::{PlayerId, Record};

const SCORES: &str =
    "SELECT board, part, player, score, subscore, `at`, gone FROM scores FORCE INDEX (PRIMARY)";
pub(super) fn score(row: &mut Fields<'_>) -> Result<(ScoreKey, Record), StoreError> {
    let WindowKey { board, window } = windows::key(row)?;
    let read = (ScoreKey { board, window, player: player(row)? }, scores::record(row)?);
    // Tombstones are not read.
    row.boolean()?;
    Ok(read)
}

/// Writes the ` WHERE` for rows after a window, as ranges of the index.
fn after_window(script: &mut Script, after: WindowKey) {
    let WindowKey { board, window } = after;
    script.sql(" WHERE (board > ").number(board.0).sql(" OR (board = ").number(board.0);
    script.sql(" AND part > ").number(window.0).sql(")");
}

impl ScoreSnapshot for MySqlSnapshot {
    fn boards(&mut self) -> Result<Boards, StoreError> {
        let results = self.query(&boards::select_all())?;
        let damaged = &mut self.damaged;
        boards::read_parted(results, &mut |row| damaged.push(row))
    }

    fn to_purge(&mut self) -> Result<ToPurge, StoreError> {
        let mut script = Script::default();
        script.statement("SELECT `no` FROM deleted_boards");
        script.statement("SELECT board, part, version FROM deleted_parts");
        let (mut results, mut purge) = (self.query(&script)?, ToPurge::default());
        results.each(1, "deleted_boards", |row| {
            purge.boards.insert(BoardNo(row.small()?));
            Ok(())
        })?;
        results.each(1, "deleted_parts", |row| {
            purge.add(Garbage::of(windows::key(row)?, row.signed()?));
            Ok(())
        })?;
        Ok(purge)
    }

    fn scores(&mut self, after: Option<&ScoreKey>, limit: usize) -> RowPage<ScoreKey, Record> {
        let query = |limit: usize| {
            let mut script = Script::default();
            script.sql(SCORES);
            match after {
                Some(after) => {
                    let (board, window) = (after.board, after.window);
                    after_window(&mut script, WindowKey { board, window });
                    script.sql(" OR (board = ").number(board.0).sql(" AND part = ").number(window.0);
                    script.sql(" AND player > ").bytes(after.player.as_bytes()).sql(")) AND gone <> 1");
                }
                None => drop(script.sql(" WHERE gone <> 1")),
            }
            script.sql(" ORDER BY board, part, player LIMIT ").number(limit as u64).end();
            script
        };
        self.page("scores", limit, query, score)
    }

    fn scores_of(&mut self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.each_sound(keys, &mut |snapshot, keys| {
            let mut script = Script::default();
            let statements = scores::select(&mut script, keys, false);
            let found = scores::read(&mut snapshot.query(&script)?, statements, keys)?;
            Ok(found.into_iter().map(|state| state?.record).collect())
        })
    }

    fn windows(&mut self, after: Option<WindowKey>, limit: usize) -> RowPage<WindowKey, WindowRow> {
        self.page_of::<Windows>("board, part", limit, |script| {
            if let Some(after) = after {
                after_window(script, after);
                script.sql(")");
            }
        })
    }

    fn blocks(
        &mut self,
        window: WindowKey,
        version: u32,
        from: u64,
        limit: usize,
    ) -> RowPage<u64, StoredBlock> {
        let query = |limit: usize| {
            let mut script = Script::default();
            script
                .sql("SELECT block, distinct_better, entries FROM blocks WHERE board = ")
                .number(window.board.0);
            script.sql(" AND part = ").number(window.window.0).sql(" AND version = ").number(version);
            script.sql(" AND block >= ").number(from);
            script.sql(" ORDER BY block LIMIT ").number(limit as u64).end();
            script
        };
        self.page("blocks", limit, query, |row| Ok((row.number()?, windows::decode_block(row)?)))
    }

    fn archives(&mut self, after: Option<ArchiveKey>, limit: usize) -> RowPage<ArchiveKey, ()> {
        let query = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT DISTINCT board, part, version FROM blocks FORCE INDEX (PRIMARY)");
            if let Some((after, version)) = after {
                after_window(&mut script, after);
                script.sql(" OR (board = ").number(after.board.0).sql(" AND part = ").number(after.window.0);
                script.sql(" AND version > ").number(version).sql("))");
            }
            script.sql(" ORDER BY board, part, version LIMIT ").number(limit as u64).end();
            script
        };
        self.page("blocks", limit, query, |row| Ok(((windows::key(row)?, row.small()?), ())))
    }

    fn banned(&mut self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        let mut results = self.query(&bans::select(board))?;
        let (mut players, damaged) = (Vec::new(), &mut self.damaged);
        results.each_apart(
            "bans",
            |row| key("bans", row),
            &mut |row| damaged.push(row),
            |row| {
                players.push(player(row)?);
                Ok(())
            },
        )?;
        Ok(players)
    }

    fn applications(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> RowPage<PlayerId, Application> {
        let query = |limit| contests::applications(contest, after, limit);
        let page = self.page("contest_applications", limit, query, Applications::decode)?;
        Ok(contests::by_player(page))
    }
}
