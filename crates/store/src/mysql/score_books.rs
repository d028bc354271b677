//! Boards, records, periods and archives at one moment, for [`Snapshot`].
//!
//! Not here: the moment itself (`books`).

use super::bans;
use super::boards;
use super::books::Snapshot;
use super::contests;
use super::parts;
use super::player;
use super::row::{Fields, key};
use super::scores;
use super::text::Script;
use crate::StoreError;
use crate::books::Page;
use crate::books_scores::{ArchiveKey, Boards, ScoreBooks, ToPurge};
use crate::plan::{Block, BoardNo, Gone, Part, PartKey, PartRow, ScoreKey};
use tally_rules::contest::Application;
use tally_rules::ledger::Uuid;
use tally_rules::{PlayerId, Record};

const SCORES: &str =
    "SELECT board, part, player, score, subscore, `at`, gone FROM scores FORCE INDEX (PRIMARY)";
const PARTS: &str = "SELECT board, part, rule, `starts`, `ends`, closed, version, stale, total FROM parts \
     FORCE INDEX (PRIMARY)";

fn part_key(row: &mut Fields<'_>) -> Result<PartKey, StoreError> {
    Ok(PartKey { board: BoardNo(row.small()?), part: Part(row.number()?) })
}

pub(super) fn score(row: &mut Fields<'_>) -> Result<(ScoreKey, Record), StoreError> {
    let PartKey { board, part } = part_key(row)?;
    let read = (ScoreKey { board, part, player: player(row)? }, scores::record(row)?);
    // Removed ones are not asked for.
    row.truth()?;
    Ok(read)
}

/// ` WHERE` what comes after a part, as ranges of the index.
fn after_part(script: &mut Script, after: PartKey) {
    let PartKey { board, part } = after;
    script.sql(" WHERE (board > ").number(board.0).sql(" OR (board = ").number(board.0);
    script.sql(" AND part > ").number(part.0).sql(")");
}

impl ScoreBooks for Snapshot {
    fn boards(&mut self) -> Result<Boards, StoreError> {
        let answers = self.ask(&boards::select_all())?;
        let damaged = &mut self.damaged;
        boards::read_parted(answers, &mut |row| damaged.push(row))
    }

    fn to_purge(&mut self) -> Result<ToPurge, StoreError> {
        let mut script = Script::default();
        script.statement("SELECT `no` FROM deleted_boards");
        script.statement("SELECT board, part, version FROM deleted_parts");
        let (mut answers, mut purge) = (self.ask(&script)?, ToPurge::default());
        answers.each(1, "deleted_boards", |row| {
            purge.boards.insert(BoardNo(row.small()?));
            Ok(())
        })?;
        answers.each(1, "deleted_parts", |row| {
            purge.add(Gone::of(part_key(row)?, row.signed()?));
            Ok(())
        })?;
        Ok(purge)
    }

    fn scores(&mut self, after: Option<&ScoreKey>, limit: usize) -> Page<ScoreKey, Record> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(SCORES);
            match after {
                Some(after) => {
                    let (board, part) = (after.board, after.part);
                    after_part(&mut script, PartKey { board, part });
                    script.sql(" OR (board = ").number(board.0).sql(" AND part = ").number(part.0);
                    script.sql(" AND player > ").bytes(after.player.as_bytes()).sql(")) AND gone <> 1");
                }
                None => drop(script.sql(" WHERE gone <> 1")),
            }
            script.sql(" ORDER BY board, part, player LIMIT ").number(limit as u64).end();
            script
        };
        self.page("scores", limit, asked, score)
    }

    fn scores_of(&mut self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.each_sound(keys, &mut |books, keys| {
            let mut script = Script::default();
            let statements = scores::select(&mut script, keys, false);
            let found = scores::read(&mut books.ask(&script)?, statements, keys)?;
            Ok(found.into_iter().map(|state| state?.record).collect())
        })
    }

    fn parts(&mut self, after: Option<PartKey>, limit: usize) -> Page<PartKey, PartRow> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(PARTS);
            if let Some(after) = after {
                after_part(&mut script, after);
                script.sql(")");
            }
            script.sql(" ORDER BY board, part LIMIT ").number(limit as u64).end();
            script
        };
        self.page("parts", limit, asked, |row| {
            let board = BoardNo(row.small()?);
            let part = parts::decode(row)?;
            Ok((PartKey { board, part: part.part }, part))
        })
    }

    fn blocks(&mut self, part: PartKey, version: u32, from: u64, limit: usize) -> Page<u64, Block> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script
                .sql("SELECT block, distinct_better, entries FROM blocks WHERE board = ")
                .number(part.board.0);
            script.sql(" AND part = ").number(part.part.0).sql(" AND version = ").number(version);
            script.sql(" AND block >= ").number(from);
            script.sql(" ORDER BY block LIMIT ").number(limit as u64).end();
            script
        };
        self.page("blocks", limit, asked, |row| Ok((row.number()?, parts::decode_block(row)?)))
    }

    fn archives(&mut self, after: Option<ArchiveKey>, limit: usize) -> Page<ArchiveKey, ()> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT DISTINCT board, part, version FROM blocks FORCE INDEX (PRIMARY)");
            if let Some((after, version)) = after {
                after_part(&mut script, after);
                script.sql(" OR (board = ").number(after.board.0).sql(" AND part = ").number(after.part.0);
                script.sql(" AND version > ").number(version).sql("))");
            }
            script.sql(" ORDER BY board, part, version LIMIT ").number(limit as u64).end();
            script
        };
        self.page("blocks", limit, asked, |row| Ok(((part_key(row)?, row.small()?), ())))
    }

    fn hidden(&mut self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        let mut answers = self.ask(&bans::select(board))?;
        let (mut players, damaged) = (Vec::new(), &mut self.damaged);
        answers.each_apart(
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
    ) -> Page<PlayerId, Application> {
        let asked = |limit| contests::applications(contest, after, limit);
        let page = self.page("contest_applications", limit, asked, contests::decode_application)?;
        Ok(contests::by_player(page))
    }
}
