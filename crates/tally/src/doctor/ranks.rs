//! Served ranks against a sort of the stored rows: of all time, and of every stored period.
//!
//! A board that changes meanwhile is compared again, by the server's counter of rows. Windows with more than a million
//! rows are compared in their first million ranks, because the sort is in memory. It skips a closed period whose archive
//! must be written again.

use super::Report;
use crate::client::{Client, segment};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tally_rules::rank::{Counts, rank};
use tally_rules::{PlayerId, Record, order_key};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardRow, Store, Window};
use tally_wire::api::scores::Style;
use tally_wire::time;
use ureq::http::Method;

/// Rows of a board that are kept and sorted.
const ROWS_MAX: usize = 1_000_000;
const WALK_ROWS: usize = 10_000;
const TRIES: usize = 3;

/// Compares every window of every board; `open` returns the store as it is now.
pub(super) fn compare<S: Store>(
    report: &mut Report,
    client: &Client,
    open: &mut dyn FnMut() -> Result<Arc<S>>,
) -> Result<()> {
    let boards = open()?.boards()?;
    for (tried, last) in (1..=TRIES).map(|tried| (tried, tried == TRIES)) {
        let before = changes(client)?;
        let store = open()?;
        let mut found = Vec::new();
        for board in &boards {
            for (window, period) in windows(&*store, board)? {
                let outcome = compare_one(client, &*store, board, (window, period.as_deref()));
                found.push(Found { board: board.id.as_str(), period, outcome });
            }
        }
        let quiet = changes(client)? == before;
        if quiet || last {
            return told(report, found, quiet, tried);
        }
    }
    Ok(())
}

/// The result of one window.
struct Found<'b> {
    board: &'b str,
    period: Option<String>,
    outcome: Result<Option<Outcome>>,
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

fn told(report: &mut Report, found: Vec<Found<'_>>, quiet: bool, tried: usize) -> Result<()> {
    // For each board the number of correct periods, and of their ranks.
    let mut periods: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for Found { board, period, outcome } in found {
        let name = period.as_ref().map_or_else(|| board.to_owned(), |period| format!("{board}, {period}"));
        match outcome? {
            None => {}
            Some(Outcome::Equal { rows, .. }) if period.is_some() => {
                let (count, ranks) = periods.entry(board).or_default();
                (*count, *ranks) = (*count + 1, *ranks + rows);
            }
            Some(Outcome::Equal { rows, all }) => {
                let of = if all { "all" } else { "the first" };
                report.ok(&format!("board {name}: {of} {rows} ranks are those of a sort of the stored rows"));
            }
            Some(Outcome::Differs(what)) if quiet => report.wrong(&format!("board {name}: {what}")),
            Some(Outcome::Differs(_)) => {
                report.warn(&format!(
                    "board {name}: written to during each of {tried} comparisons; ask at a quieter time"
                ));
            }
        }
    }
    for (board, (count, ranks)) in periods {
        report.ok(&format!("board {board}: so are {ranks} ranks of its periods, {count} in all"));
    }
    Ok(())
}

enum Outcome {
    Equal { rows: usize, all: bool },
    Differs(String),
}

/// The number of rows that the server has changed.
fn changes(client: &Client) -> Result<String> {
    let text = client.text("/metrics")?;
    let line = text.lines().find(|line| line.starts_with("tally_lane_rows_total "));
    Ok(line.context("the server counts no rows")?.to_owned())
}

fn compare_one(
    client: &Client,
    store: &dyn Store,
    board: &BoardRow,
    (window, period): (Window, Option<&str>),
) -> Result<Option<Outcome>> {
    let mut rows = stored(store, board, window)?;
    // A board that its first score made exists only while it has a record.
    if rows.is_empty() && board.definition.implicit {
        return Ok(None);
    }
    let definition = &board.definition;
    rows.sort_unstable_by(|a, b| {
        order_key::compare(definition, (&a.1, a.0.as_bytes()), (&b.1, b.0.as_bytes()))
    });
    let all = rows.len() <= ROWS_MAX;
    rows.truncate(ROWS_MAX);
    let mut wanted = expected(board, &rows).into_iter().enumerate();
    let period = period.unwrap_or("all_time");
    let base = format!(
        "/v1/leaderboards/{}/scores?limit=1000&period={}",
        segment(board.id.as_str()),
        segment(period)
    );
    let mut path = base.clone();
    loop {
        let page = client.ask(&Method::GET, &path, None)?;
        for entry in page.get("entries").and_then(Value::as_array).context("the answer has no entries")? {
            match wanted.next() {
                Some((_, wanted)) if wanted == *entry => {}
                Some((at, wanted)) => {
                    return Ok(Some(Outcome::Differs(format!(
                        "at {}: {entry}, and stored is {wanted}",
                        at + 1
                    ))));
                }
                None if all => return Ok(Some(Outcome::Differs(format!("{entry} is not stored")))),
                None => return Ok(Some(Outcome::Equal { rows: rows.len(), all })),
            }
        }
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(cursor) => path = format!("{base}&cursor={}", segment(cursor)),
            None => break,
        }
    }
    Ok(Some(match wanted.next() {
        Some((_, wanted)) => Outcome::Differs(format!("{wanted} is stored and has no rank")),
        None => Outcome::Equal { rows: rows.len(), all },
    }))
}

/// Every player with a rank. Of many players, the scan keeps the best.
fn stored(store: &dyn Store, board: &BoardRow, window: Window) -> Result<Vec<(PlayerId, Record)>> {
    let banned: BTreeSet<PlayerId> = store.bans(board.no)?.into_iter().collect();
    let definition = &board.definition;
    let (mut rows, mut after): (Vec<(PlayerId, Record)>, Option<PlayerId>) = (Vec::new(), None);
    loop {
        let mut last = None;
        let count =
            store.scan_scores(board.no, window, after.as_ref(), WALK_ROWS, &mut |player, record| {
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
        if count < WALK_ROWS {
            return Ok(rows);
        }
        after = last;
    }
}

/// The expected entries of pages, from sorted rows.
fn expected(board: &BoardRow, rows: &[(PlayerId, Record)]) -> Vec<Value> {
    let definition = &board.definition;
    let style = Style { definition, int64: tally_wire::numbers::Int64::Number };
    let mut counts = Counts { before: 0, better: 0, distinct_better: 0 };
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
