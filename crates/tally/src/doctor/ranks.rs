//! Served ranks against a sort of the stored rows: of all time, and of every stored period.
//!
//! Players write meanwhile. So a window whose pages differ is read from the store once more. A row that is the same in both reads was
//! the same in between, so the server must have shown it. Its rank must be that among such rows, or later by as many as have changed.
//! A difference counts if it is there in every try: a server may publish a moment after it commits. Rows that changed are unknown.
//!
//! Windows with more than a million rows are compared in their first million ranks, because the sort is in memory. It skips a closed
//! period whose archive must be written again.

use super::DoctorReport;
use crate::client::{Client, segment};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tally_rules::rank::{RankCounts, rank};
use tally_rules::{PlayerId, Record, order_key};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, BoardRow, Store, Window};
use tally_wire::api::scores::Style;
use tally_wire::time;
use ureq::http::Method;

/// Rows of a board that are kept and sorted.
const ROWS_MAX: usize = 1_000_000;
const SCAN_ROWS: usize = 10_000;
const TRIES: usize = 3;

/// The players that differed in every try so far, by window.
type Doubts = BTreeMap<(BoardNo, Window), BTreeSet<String>>;

/// Compares every window of every board; `open` returns the store as it is now.
pub(super) fn compare<S: Store>(
    report: &mut DoctorReport,
    client: &Client,
    open: &mut dyn FnMut() -> Result<Arc<S>>,
) -> Result<()> {
    let mut store = open()?;
    let boards = store.boards()?;
    let mut doubts: Option<Doubts> = None;
    let mut periods = Periods::default();
    for tried in 1..=TRIES {
        let mut differing = Vec::new();
        for board in &boards {
            for (window, period) in windows(&*store, board)? {
                let key = (board.no, window);
                if doubts.as_ref().is_some_and(|doubts| !doubts.contains_key(&key)) {
                    continue;
                }
                let before = sorted(&*store, board, window)?;
                // A board that its first score made exists only while it has a record.
                if before.rows.is_empty() && board.definition.implicit {
                    continue;
                }
                let entries = pages(client, board, period.as_deref(), &before)?;
                let compared = Compared { board, window, period, before, entries };
                if compared.is_equal() {
                    periods.tell_equal(report, &compared);
                } else {
                    differing.push(compared);
                }
            }
        }
        if differing.is_empty() {
            break;
        }
        store = open()?;
        let mut again = Doubts::new();
        for one in differing {
            if !windows(&*store, one.board)?.iter().any(|(window, _)| *window == one.window) {
                continue;
            }
            let mut judged = one.judge(&sorted(&*store, one.board, one.window)?);
            let key = (one.board.no, one.window);
            if let Some(before) = doubts.as_ref().and_then(|doubts| doubts.get(&key)) {
                judged.wrong.retain(|(player, _)| before.contains(player));
            }
            if judged.wrong.is_empty() || tried == TRIES {
                tell(report, &one.name(), &judged);
            } else {
                again.insert(key, judged.wrong.into_iter().map(|(player, _)| player).collect());
            }
        }
        if again.is_empty() {
            break;
        }
        doubts = Some(again);
    }
    periods.tell(report);
    Ok(())
}

/// The correct periods of each board, and their ranks: they get one line together.
#[derive(Default)]
struct Periods<'b>(BTreeMap<&'b str, (usize, usize)>);

impl<'b> Periods<'b> {
    fn tell_equal(&mut self, report: &DoctorReport, equal: &Compared<'b>) {
        let ranks = equal.before.rows.len();
        if equal.period.is_some() {
            let (count, sum) = self.0.entry(equal.board.id.as_str()).or_default();
            (*count, *sum) = (*count + 1, *sum + ranks);
            return;
        }
        let of = if equal.before.all { "all" } else { "the first" };
        let name = equal.name();
        report.ok(&format!("board {name}: {of} {ranks} ranks are those of a sort of the stored rows"));
    }

    fn tell(self, report: &DoctorReport) {
        for (board, (count, ranks)) in self.0 {
            report.ok(&format!("board {board}: so are {ranks} ranks of its periods, {count} in all"));
        }
    }
}

/// Tells of a window that was written to, or differs.
fn tell(report: &mut DoctorReport, name: &str, judged: &Judged) {
    let Judged { wrong, same, changed } = judged;
    if let Some((_, what)) = wrong.first() {
        report.wrong("ranks_differ", &format!("board {name}: {what}"));
    } else if *same == 0 {
        let text = format!("board {name}: unknown: each of its {changed} rows changed meanwhile");
        report.warn("ranks_unknown", &text);
    } else {
        report.ok(&format!(
            "board {name}: {same} ranks are those of a sort of the stored rows; {changed} rows changed meanwhile and are unknown"
        ));
    }
}

/// The rows of a window that have a rank, best first.
struct Rows {
    rows: Vec<(PlayerId, Record)>,
    /// Whether these are all of them.
    all: bool,
}

/// A window in the store, and then as the server shows it.
struct Compared<'b> {
    board: &'b BoardRow,
    window: Window,
    period: Option<String>,
    before: Rows,
    entries: Vec<Value>,
}

/// What two reads of the store say about the pages between them.
struct Judged {
    /// The players that are shown wrong, best first, and how.
    wrong: Vec<(String, String)>,
    /// Rows that were the same in both reads.
    same: usize,
    /// The other rows.
    changed: usize,
}

impl Compared<'_> {
    fn name(&self) -> String {
        let board = self.board.id.as_str();
        self.period.as_ref().map_or_else(|| board.to_owned(), |period| format!("{board}, {period}"))
    }

    /// Whether the pages are those of the rows as they were read before.
    fn is_equal(&self) -> bool {
        expected(self.board, &self.before.rows) == self.entries
    }

    fn judge(&self, after: &Rows) -> Judged {
        let then: HashMap<&PlayerId, &Record> =
            self.before.rows.iter().map(|(player, record)| (player, record)).collect();
        let is_same = |(player, record): &&(PlayerId, Record)| then.get(player) == Some(&record);
        let same: Vec<(PlayerId, Record)> = after.rows.iter().filter(is_same).cloned().collect();
        let mut changed: BTreeSet<&str> =
            self.before.rows.iter().chain(&after.rows).map(|(player, _)| player.as_str()).collect();
        for (player, _) in &same {
            changed.remove(player.as_str());
        }
        let mut shown: HashMap<&str, &Value> =
            self.entries.iter().filter_map(|entry| Some((entry["player"].as_str()?, entry))).collect();
        let mut wrong = Vec::new();
        let all = self.before.all && after.all;
        for stored in expected(self.board, &same) {
            let player = stored["player"].as_str().unwrap_or_default().to_owned();
            match shown.remove(player.as_str()) {
                Some(entry) if fits(entry, &stored, changed.len()) => {}
                Some(entry) => {
                    let text = format!("at {}: {entry}, and stored is {stored}", stored["rank"]);
                    wrong.push((player, text));
                }
                None if all => wrong.push((player, format!("{stored} is stored and has no rank"))),
                None => {}
            }
        }
        if all {
            let strange = shown.into_iter().filter(|(player, _)| !changed.contains(player));
            wrong
                .extend(strange.map(|(player, entry)| (player.to_owned(), format!("{entry} is not stored"))));
        }
        Judged { wrong, same: same.len(), changed: changed.len() }
    }
}

/// Whether an entry is that of a row whose rank among the others is known, but for so many that may be before it.
fn fits(entry: &Value, stored: &Value, changed: usize) -> bool {
    let rank = |value: &Value| value["rank"].as_u64().unwrap_or(0);
    let mut as_stored = entry.clone();
    as_stored["rank"] = stored["rank"].clone();
    as_stored == *stored && (rank(stored)..=rank(stored) + changed as u64).contains(&rank(entry))
}

/// The readable windows of a board, with the names of periods.
fn windows(store: &dyn Store, board: &BoardRow) -> Result<Vec<(Window, Option<String>)>> {
    let mut windows = Vec::new();
    if board.definition.all_time {
        windows.push((ALL_TIME, None));
    }
    for row in store.windows(board.no)?.into_iter().filter(|row| !row.stale) {
        let rule = board.definition.periods.iter().find(|rule| rule.no == row.rule);
        windows.extend(
            rule.map(|rule| (row.window, Some(format!("{}:{}", rule.name, time::format(row.span.start))))),
        );
    }
    Ok(windows)
}

/// The rows of a window with a rank, sorted.
fn sorted(store: &dyn Store, board: &BoardRow, window: Window) -> Result<Rows> {
    let mut rows = stored(store, board, window)?;
    let definition = &board.definition;
    rows.sort_unstable_by(|a, b| {
        order_key::compare(definition, (&a.1, a.0.as_bytes()), (&b.1, b.0.as_bytes()))
    });
    let all = rows.len() <= ROWS_MAX;
    rows.truncate(ROWS_MAX);
    Ok(Rows { rows, all })
}

/// The entries that the server shows: all, or as many as there are rows if these are not all.
fn pages(client: &Client, board: &BoardRow, period: Option<&str>, rows: &Rows) -> Result<Vec<Value>> {
    let base = format!(
        "/v1/leaderboards/{}/scores?limit=1000&period={}",
        segment(board.id.as_str()),
        segment(period.unwrap_or("all_time"))
    );
    let (mut path, mut entries) = (base.clone(), Vec::with_capacity(rows.rows.len()));
    loop {
        let page = client.ask(&Method::GET, &path, None)?;
        let found = page.get("entries").and_then(Value::as_array).context("the answer has no entries")?;
        entries.extend(found.iter().cloned());
        if !rows.all && entries.len() >= rows.rows.len() {
            entries.truncate(rows.rows.len());
            return Ok(entries);
        }
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(cursor) => path = format!("{base}&cursor={}", segment(cursor)),
            None => return Ok(entries),
        }
    }
}

/// Every player with a rank. Of many players, the scan keeps the best.
fn stored(store: &dyn Store, board: &BoardRow, window: Window) -> Result<Vec<(PlayerId, Record)>> {
    let banned: BTreeSet<PlayerId> = store.bans(board.no)?.into_iter().collect();
    let definition = &board.definition;
    let (mut rows, mut after): (Vec<(PlayerId, Record)>, Option<PlayerId>) = (Vec::new(), None);
    loop {
        let mut last = None;
        let count =
            store.scan_scores(board.no, window, after.as_ref(), SCAN_ROWS, &mut |player, record| {
                last = Some(player.clone());
                if !banned.contains(&player) {
                    rows.push((player, record));
                }
            })?;
        if rows.len() > 2 * ROWS_MAX {
            rows.select_nth_unstable_by(ROWS_MAX, |a, b| {
                order_key::compare(definition, (&a.1, a.0.as_bytes()), (&b.1, b.0.as_bytes()))
            });
            // One more than is compared shows that there are more.
            rows.truncate(ROWS_MAX + 1);
        }
        if count < SCAN_ROWS {
            return Ok(rows);
        }
        after = last;
    }
}

/// The expected entries of pages, from sorted rows.
fn expected(board: &BoardRow, rows: &[(PlayerId, Record)]) -> Vec<Value> {
    let definition = &board.definition;
    let style = Style { definition, int64: tally_wire::numbers::Int64::Number };
    let mut counts = RankCounts { before: 0, better: 0, distinct_better: 0 };
    let mut previous = None;
    let mut entries = Vec::with_capacity(rows.len());
    for (before, (player, record)) in rows.iter().enumerate() {
        let score = order_key::normal(definition, record);
        counts.before = before as u64;
        if previous.is_some_and(|previous| previous != score) {
            counts.better = counts.before;
            counts.distinct_better += 1;
        }
        previous = Some(score);
        let mut entry = json!(style.scores(record));
        entry["rank"] = rank(definition.ranking, counts).into();
        entry["player"] = player.as_str().into();
        entry["at"] = time::format(record.at).into();
        entries.push(entry);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::definition::Definition;
    use tally_rules::{BoardId, Micros};

    fn rows(scores: &[(&str, i64)]) -> Rows {
        let row = |(player, score): &(&str, i64)| {
            (PlayerId::new(player).unwrap(), Record { score: *score, subscore: 0, at: Micros(*score) })
        };
        Rows { rows: scores.iter().map(row).collect(), all: true }
    }

    /// The players that are shown wrong, with the numbers of rows that are the same and that have changed.
    fn judged(shown: &[(&str, i64, u64)], after: &[(&str, i64)]) -> (Vec<String>, usize, usize) {
        let board = BoardRow {
            no: BoardNo(1),
            id: BoardId::new("b").unwrap(),
            definition: Definition::default(),
            created_at: Micros(0),
        };
        let entry = |(player, score, rank): &(&str, i64, u64)| {
            let mut entry = expected(&board, &rows(&[(*player, *score)]).rows).remove(0);
            entry["rank"] = (*rank).into();
            entry
        };
        let entries = shown.iter().map(entry).collect();
        let before = rows(&[("ann", 10), ("bob", 8), ("cat", 5)]);
        let compared = Compared { board: &board, window: ALL_TIME, period: None, before, entries };
        let judged = compared.judge(&rows(after));
        (judged.wrong.into_iter().map(|(player, _)| player).collect(), judged.same, judged.changed)
    }

    #[test]
    fn a_row_that_changed_excuses_itself_and_one_place_of_the_others() {
        let same = [("ann", 10), ("bob", 8), ("cat", 5)];
        let bob = [("bob", 12), ("ann", 10), ("cat", 5)];
        let (then, now) =
            ([("ann", 10, 1), ("bob", 8, 2), ("cat", 5, 3)], [("bob", 12, 1), ("ann", 10, 2), ("cat", 5, 3)]);
        let none = Vec::<String>::new();
        assert_eq!(judged(&then, &same), (none.clone(), 3, 0));
        for shown in [then, now] {
            assert_eq!(judged(&shown, &bob), (none.clone(), 2, 1), "{shown:?}");
        }
        // Nothing explains these.
        assert_eq!(judged(&now, &same).0, ["ann", "bob"]);
        assert_eq!(judged(&[("cat", 5, 1), ("ann", 10, 2), ("bob", 8, 3)], &bob).0, ["cat"]);
        assert_eq!(judged(&[("ann", 10, 3), ("bob", 8, 2), ("cat", 5, 3)], &bob).0, ["ann"]);
        assert_eq!(judged(&[("ann", 11, 1), ("bob", 8, 2), ("cat", 5, 3)], &bob).0, ["ann"]);
        assert_eq!(judged(&[("ann", 10, 1), ("bob", 8, 2)], &bob).0, ["cat"]);
        assert_eq!(judged(&[then[0], then[1], then[2], ("dan", 1, 4)], &bob).0, ["dan"]);
        // A player that came or went has changed.
        assert_eq!(judged(&then[..2], &same[..2]), (none, 2, 1));
    }
}
