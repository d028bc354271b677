//! The tables `boards`, `periods` and `deleted_boards`: the boards and their definitions.
//!
//! Changes are rare, so they are made one at a time. A transaction that changes boards, or reads one by name for that, locks
//! the row of the next number. A board is deleted at once, and its name is free. Its rows in other tables wait for `purge`.
//! Each number is given once, so the number of a deleted board never becomes live again.

use super::fault::damaged;
use super::row::{Fields, ResultSets};
use super::text::Script;
use super::{bans, meta, windows};
use crate::codec::Input;
use crate::codec::boards::{encode_prizes, take_period_prizes};
use crate::plan::{BoardChange, BoardNo, BoardRow};
use crate::score_snapshot::Boards;
use crate::servers::{Bans, BoardRef, BoardState, Revisions};
use crate::{CorruptRow, StoreError};
use mysql_async::{Row, Value};
use std::collections::BTreeSet;
use tally_rules::definition::{Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::{BoardId, Definition, Micros};

/// A macro, because `concat!` takes no constant.
macro_rules! rows {
    () => {
        "SELECT b.`no`, b.id, b.`order`, b.`update`, b.ranking, b.ties, b.score, b.subscore, b.all_time, \
     b.rules_given, b.implicit, b.created_at, p.rule, p.name, p.`schedule`, p.time_zone, p.keep, p.grace_s, p.position, \
     z.body FROM boards b LEFT JOIN periods p ON p.board = b.`no` \
     LEFT JOIN period_prizes z ON z.board = p.board AND z.rule = p.rule"
    };
}

/// Queries every live board. One statement, so that boards and periods are of one moment.
pub(super) fn select_all() -> Script {
    let mut script = Script::default();
    script.sql(rows!()).sql(" ORDER BY b.`no`").end();
    script
}

/// Queries boards by name. Returns the number of statements. The caller holds the row of the next number.
pub(super) fn select_names(script: &mut Script, names: &[BoardId]) -> usize {
    script.keys(concat!(rows!(), " WHERE b.id IN ("), names, ") ORDER BY b.`no`", |row, name| {
        row.bytes(name.as_str().as_bytes());
    })
}

/// Queries one board by number or by name.
pub(super) fn select_one(script: &mut Script, name: BoardRef<'_>) {
    match name {
        BoardRef::No(no) => script.sql(rows!()).sql(" WHERE b.`no` = ").number(no.0),
        BoardRef::Id(id) => script.sql(rows!()).sql(" WHERE b.id = ").bytes(id.as_str().as_bytes()),
    };
    script.end();
}

/// Reads a board with its revision, bans and periods, if it exists, and the revision up to which lifted bans are deleted.
pub(super) fn read_one(
    results: &mut ResultSets,
    known: Option<u64>,
) -> Result<Option<(BoardState, u64)>, StoreError> {
    let Some(row) = read_all(results, 1)?.pop() else { return Ok(None) };
    let (revision, forgotten) = results.two_numbers("revisions")?;
    let bans = match known {
        None => Bans::All(bans::read(results)?),
        Some(revision) => {
            let revisions = Revisions::new(vec![revision]);
            Bans::Since { revisions, changes: bans::read_changes(results)? }
        }
    };
    let windows = windows::read(results)?;
    Ok(Some((BoardState { row, revisions: Revisions::new(vec![revision]), bans, windows }, forgotten)))
}

/// Reads boards in order of number.
pub(super) fn read_all(results: &mut ResultSets, statements: usize) -> Result<Vec<BoardRow>, StoreError> {
    let mut boards = JoinedRows::default();
    results.each(statements, "boards", |row| {
        boards.add(decode(row)?);
        Ok(())
    })?;
    boards.0.into_iter().map(whole).collect()
}

/// Reads boards without corrupt ones, which are recorded by name.
pub(super) fn read_sound(results: ResultSets) -> Result<Vec<BoardRow>, StoreError> {
    let (note, mut damaged) = (results.notes(), Vec::new());
    let boards = read_parted(results, &mut |row| damaged.push(row))?;
    damaged.iter().for_each(note);
    Ok(boards.into_iter().filter_map(|(_, board)| board).collect())
}

/// Reads boards with their numbers. Corrupt boards go to `skip` by name; only their numbers are returned.
pub(super) fn read_parted(
    mut results: ResultSets,
    skip: &mut dyn FnMut(CorruptRow),
) -> Result<Boards, StoreError> {
    let (mut boards, mut bad) = (JoinedRows::default(), BTreeSet::new());
    let name = |row: &Row| match row.as_ref(1) {
        Some(Value::Bytes(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    };
    results.each_apart("boards", name, skip, |row| {
        let no = row.peek_number().and_then(|no| u32::try_from(no).ok());
        let decoded = decode(row).inspect_err(|_| bad.extend(no.map(BoardNo)));
        boards.add(decoded?);
        Ok(())
    })?;
    let mut all: Boards = bad.iter().map(|no| (*no, None)).collect();
    for board in boards.0.into_iter().filter(|(board, _)| !bad.contains(&board.no)) {
        let no = board.0.no;
        match whole(board) {
            Ok(board) => all.push((no, Some(board))),
            Err(StoreError::CorruptRow(row)) => {
                skip(*row);
                all.push((no, None));
            }
            Err(error) => return Err(error),
        }
    }
    all.sort_unstable_by_key(|(no, _)| *no);
    Ok(all)
}

/// Boards with their periods, and the position of each period.
#[derive(Default)]
struct JoinedRows(Vec<(BoardRow, Vec<(u32, PeriodRule)>)>);

impl JoinedRows {
    fn add(&mut self, (board, period): (BoardRow, Option<(u32, PeriodRule)>)) {
        match self.0.last_mut() {
            Some((last, periods)) if last.no == board.no => periods.extend(period),
            _ => self.0.push((board, period.into_iter().collect())),
        }
    }
}

/// Sorts the periods here: the database would use a temporary table on disk for it, because of the texts.
fn whole((mut board, mut periods): (BoardRow, Vec<(u32, PeriodRule)>)) -> Result<BoardRow, StoreError> {
    periods.sort_unstable_by_key(|(position, _)| *position);
    board.definition.periods = periods.into_iter().map(|(_, period)| period).collect();
    match board.definition.check() {
        Ok(()) => Ok(board),
        Err(rejection) => {
            Err(damaged("boards", &format!("its definition contradicts itself: {rejection:?}"))
                .of_row("boards", || board.id.as_str().into()))
        }
    }
}

/// Reads one row of the join: a board without its periods, and one period with its position.
pub(super) fn decode(row: &mut Fields<'_>) -> Result<(BoardRow, Option<(u32, PeriodRule)>), StoreError> {
    let no = BoardNo(row.small()?);
    let id = BoardId::new(row.text()?).map_err(|bad| damaged("boards", &format!("a name {}", bad.0)))?;
    let definition = Definition {
        order: row.choice(Order::parse)?,
        update: row.choice(Update::parse)?,
        ranking: row.choice(Ranking::parse)?,
        ties: row.choice(Ties::parse)?,
        score: row.choice(ScoreType::parse)?,
        subscore: row.choice(Subscore::parse)?,
        all_time: row.boolean()?,
        rules_given: row.small()?,
        implicit: row.boolean()?,
        periods: Vec::new(),
    };
    let created_at = Micros(row.signed()?);
    let rule = row.maybe_text()?.map(str::parse).transpose();
    let rule: Option<u32> = rule.map_err(|_| damaged("boards", "the number of a rule cannot be read"))?;
    let Some(rule) = rule else { return Ok((BoardRow { no, id, definition, created_at }, None)) };
    let (name, schedule, time_zone) =
        (row.text()?.to_owned(), row.text()?.to_owned(), row.text()?.to_owned());
    let (keep, grace_s, position) = (row.small()?, row.small()?, row.small()?);
    let prizes = row.maybe_bytes()?.map(|bytes| take_period_prizes(&mut Input::new(bytes)));
    let prizes = prizes.unwrap_or_else(|| Some(PeriodPrizes::default()));
    let prizes = prizes.ok_or_else(|| damaged("boards", "prizes of a period that cannot be"))?;
    let period = PeriodRule { no: rule, name, schedule, time_zone, keep, grace_s, prizes };
    Ok((BoardRow { no, id, definition, created_at }, Some((position, period))))
}

/// Queries the boards that changes refer to, by number and by name. The caller has locked the next number. Returns the
/// number of statements.
pub(super) fn select_present(script: &mut Script, changes: &[BoardChange]) -> usize {
    let created = changes.iter().filter_map(|change| match change {
        BoardChange::Create(row) => Some(&row.id),
        BoardChange::Redefine(..) | BoardChange::Delete(_) => None,
    });
    let head = "SELECT `no`, id FROM boards WHERE `no` IN (";
    let by_number = script.keys(head, changes, ") FOR UPDATE", |row, change| {
        row.number(change.no().0);
    });
    let head = "SELECT `no`, id FROM boards WHERE id IN (";
    let by_name = script.keys(head, created, ") FOR UPDATE", |row, name| {
        row.bytes(name.as_str().as_bytes());
    });
    by_number + by_name
}

/// Reads the answer of [`select_present`]: number and name of live boards.
pub(super) fn read_present(
    results: &mut ResultSets,
    statements: usize,
) -> Result<Vec<(BoardNo, Vec<u8>)>, StoreError> {
    let mut present = Vec::new();
    results.each(statements, "boards", |row| {
        present.push((BoardNo(row.small()?), row.bytes()?.to_vec()));
        Ok(())
    })?;
    Ok(present)
}

/// Writes changes of boards. `next` is the locked next number; `present` are the live boards that the changes refer to.
pub(super) fn write(
    script: &mut Script,
    changes: &[BoardChange],
    mut next: BoardNo,
    mut present: Vec<(BoardNo, Vec<u8>)>,
) -> Result<(), StoreError> {
    let first = next;
    for change in changes {
        let no = change.no();
        let is_live = present.iter().any(|(live, _)| *live == no);
        match change {
            BoardChange::Create(row) => {
                let name = row.id.as_str();
                if present.iter().any(|(_, live)| live == name.as_bytes()) {
                    return Err(StoreError::Row(format!("boards: the name `{name}` is taken")));
                }
                check(no, &row.definition)?;
                create(script, row);
                // A shard other than the first gets new boards in any order.
                next = next.max(BoardNo(no.0 + 1));
                present.push((no, name.as_bytes().to_vec()));
            }
            BoardChange::Redefine(..) | BoardChange::Delete(_) if !is_live => {
                return Err(StoreError::Row(format!("boards: there is no board {}", no.0)));
            }
            BoardChange::Redefine(no, definition) => {
                check(*no, definition)?;
                redefine(script, *no, definition);
            }
            BoardChange::Delete(no) => {
                script.sql("DELETE FROM boards WHERE `no` = ").number(no.0).end();
                delete_periods(script, *no);
                script.sql("INSERT INTO deleted_boards (`no`) VALUES (").number(no.0).sql(")").end();
                present.retain(|(live, _)| live != no);
            }
        }
    }
    if next > first {
        meta::put_next_board(script, next);
    }
    Ok(())
}

fn check(no: BoardNo, definition: &Definition) -> Result<(), StoreError> {
    if no.0 == u32::MAX {
        return Err(StoreError::Row("boards: all numbers are given".into()));
    }
    definition.check().map_err(|why| StoreError::Row(format!("boards: {why:?}")))
}

fn create(script: &mut Script, board: &BoardRow) {
    let of = &board.definition;
    let head = "INSERT INTO boards (`no`, id, `order`, `update`, ranking, ties, score, subscore, all_time, \
         rules_given, implicit, created_at) VALUES ";
    script.rows(head, [board], "", |row, board| {
        row.number(board.no.0).bytes(board.id.as_str().as_bytes());
        for choice in choices(of) {
            row.bytes(choice.as_bytes());
        }
        row.number(u8::from(of.all_time)).number(of.rules_given).number(u8::from(of.implicit));
        row.signed(board.created_at.0);
    });
    create_periods(script, board.no, &of.periods);
}

fn redefine(script: &mut Script, no: BoardNo, of: &Definition) {
    let columns = [
        "UPDATE boards SET `order` = ",
        ", `update` = ",
        ", ranking = ",
        ", ties = ",
        ", score = ",
        ", subscore = ",
    ];
    for (column, choice) in columns.into_iter().zip(choices(of)) {
        script.sql(column).bytes(choice.as_bytes());
    }
    script.sql(", all_time = ").number(u8::from(of.all_time)).sql(", rules_given = ").number(of.rules_given);
    script.sql(", implicit = ").number(u8::from(of.implicit)).sql(" WHERE `no` = ").number(no.0).end();
    delete_periods(script, no);
    create_periods(script, no, &of.periods);
}

fn choices(of: &Definition) -> [&'static str; 6] {
    [
        of.order.as_str(),
        of.update.as_str(),
        of.ranking.as_str(),
        of.ties.as_str(),
        of.score.as_str(),
        of.subscore.as_str(),
    ]
}

fn delete_periods(script: &mut Script, no: BoardNo) {
    for table in ["DELETE FROM periods WHERE board = ", "DELETE FROM period_prizes WHERE board = "] {
        script.sql(table).number(no.0).end();
    }
}

fn create_periods(script: &mut Script, no: BoardNo, periods: &[PeriodRule]) {
    let head =
        "INSERT INTO periods (board, position, rule, name, `schedule`, time_zone, keep, grace_s) VALUES ";
    script.rows(head, (0_u32..).zip(periods), "", |row, (position, period)| {
        row.number(no.0).number(position).number(period.no);
        for text in [&period.name, &period.schedule, &period.time_zone] {
            row.bytes(text.as_bytes());
        }
        row.number(period.keep).number(period.grace_s);
    });
    let with_prizes = periods.iter().filter(|period| period.prizes != PeriodPrizes::default());
    script.rows("INSERT INTO period_prizes (board, rule, body) VALUES ", with_prizes, "", |row, period| {
        row.number(no.0).number(period.no).bytes(&encode_prizes(&period.prizes));
    });
}
