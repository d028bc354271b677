//! `tally serve --demo`: fills an empty store with the shipped sample, through the same import as any file.
//!
//! A killed fill continues: each chunk and its progress are one transaction. A store with other contents is served
//! unchanged.
//!
//! - `contests`: one of each state, played with the same results
//! - `what_to_try`: the commands that are printed

mod contests;
mod what_to_try;

pub(crate) use what_to_try::Reach;

use crate::csv_records::{COMMA, Lines as _};
use crate::csv_scores::{CsvOutcome, Lines};
use crate::football;
use crate::seed::wallets;
use anyhow::{Context, Result};
use std::sync::Arc;
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Origin};
use tally_service::scores::import::{NewChunk, NewLine, import, progress};
use tally_service::{Progress, Store, Tally, boards};

const CHUNK_ROWS: usize = 2_000;
/// Members with wallets, and transfers between them.
const MEMBERS: u64 = 100;
const TRANSACTIONS: u64 = 1_000;
/// The key in the store that marks an unfinished fill.
const META: &str = "demo";
const FILLING: &[u8] = b"filling";
const FILLED: &[u8] = b"filled";

/// Fills an empty store. Blocks; runs on a thread that may wait for the lane.
pub(crate) fn fill(tally: &Arc<Tally>, at: &Progress) -> Result<()> {
    let begun = tally.store.meta(META)?;
    if begun.as_deref() != Some(FILLING) && !tally.boards.is_empty() {
        return Ok(());
    }
    tally.store.set_meta(META, FILLING)?;
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let contests = contests::COUNT;
    at.begin("demo", 2 * lines(football::GOALSCORERS) + lines(football::RESULTS) + contests);
    let sum = BoardSpec { update: Some(Update::Sum), ..BoardSpec::default() };
    goals(tally, "goals", &sum, at).context("fill the leaderboard `goals`")?;
    let by_year = BoardSpec { all_time: Some(false), periods: Some(vec![yearly()]), ..sum };
    goals(tally, "goals-by-year", &by_year, at).context("fill the leaderboard `goals-by-year`")?;
    points(tally, at).context("fill the leaderboard `points`")?;
    wallets::fill(tally, MEMBERS, TRANSACTIONS).context("fill the wallets")?;
    contests::fill(tally, at).context("play the contests")?;
    tally.store.set_meta(META, FILLED)?;
    Ok(())
}

/// Whether a store has the demo.
pub(crate) fn is_filled(store: &dyn Store) -> Result<bool> {
    Ok(store.meta(META)?.as_deref() == Some(FILLED))
}

/// A period per calendar year, kept as far back as the sample goes.
fn yearly() -> PeriodRule {
    PeriodRule {
        no: 0,
        name: "yearly".into(),
        schedule: "0 0 1 1 *".into(),
        time_zone: "UTC".into(),
        keep: 200,
        grace_s: 0,
        prizes: PeriodPrizes::default(),
    }
}

fn goals(tally: &Arc<Tally>, board: &str, spec: &BoardSpec, at: &Progress) -> Result<()> {
    let mut filling = Filling::new(tally, board, spec, football::GOALSCORERS)?;
    let mut lines = Lines::new(football::GOALSCORERS, COMMA, football::goal_columns())?;
    let (mut own_goals, mut rejected) = (0_u64, 0_u64);
    while let Some(line) = lines.next()? {
        at.add(1);
        match line.read {
            CsvOutcome::Row(row) => filling.push(line.number, row.player, row.score, row.at)?,
            CsvOutcome::LeftOut => own_goals += 1,
            CsvOutcome::Rejected(reason) => {
                tracing::debug!(line = line.number, reason, "left out of the demo");
                rejected += 1;
            }
        }
    }
    let (counted, players) = filling.finish()?;
    tracing::info!(
        "{board}: {counted} goals{}; left out: {own_goals} own goals, {rejected} rows without a scorer",
        players.map_or_else(String::new, |players| format!(" of {players} scorers"))
    );
    Ok(())
}

fn sum_of_points() -> BoardSpec {
    BoardSpec { update: Some(Update::Sum), ..BoardSpec::default() }
}

fn points(tally: &Arc<Tally>, at: &Progress) -> Result<()> {
    let mut filling = Filling::new(tally, "points", &sum_of_points(), football::RESULTS)?;
    let mut reader = csv::Reader::from_reader(football::RESULTS);
    let mut unplayed = 0_u64;
    for record in reader.records() {
        let record = record?;
        at.add(1);
        let line = record.position().map_or(0, csv::Position::line);
        let Some(played) = football::read_match(&record) else {
            unplayed += 1;
            continue;
        };
        // A team without points is left out.
        for (team, points) in played.teams.into_iter().filter(|(_, points)| *points > 0) {
            filling.push(line, team, ScoreInput::Int(points), Some(played.at))?;
        }
    }
    let (_, teams) = filling.finish()?;
    let teams = teams.unwrap_or_default();
    tracing::info!("points: {teams} teams; left out: {unplayed} matches without a result");
    Ok(())
}

/// One board being filled.
struct Filling<'a> {
    tally: &'a Arc<Tally>,
    board: BoardId,
    digest: [u8; 32],
    done: u64,
    taken: u64,
    rows: Vec<NewLine>,
}

impl<'a> Filling<'a> {
    fn new(tally: &'a Arc<Tally>, name: &str, spec: &BoardSpec, source: &[u8]) -> Result<Self> {
        let board = BoardId::new(name).map_err(|bad| anyhow::anyhow!("a board's name {}", bad.0))?;
        boards::put(tally, &board, spec, &Origin::BACKGROUND, None)?;
        Self::of(tally, board, source)
    }

    /// Fills an existing board.
    fn of(tally: &'a Arc<Tally>, board: BoardId, source: &[u8]) -> Result<Self> {
        let digest = *blake3::hash(source).as_bytes();
        let row = progress(tally, &board, digest)?.unwrap_or_default();
        Ok(Self { tally, board, digest, done: row.lines, taken: row.taken, rows: Vec::new() })
    }

    fn push(
        &mut self,
        line: u64,
        player: tally_rules::PlayerId,
        score: ScoreInput,
        at: Option<tally_rules::Micros>,
    ) -> Result<()> {
        if line <= self.done {
            return Ok(());
        }
        // A chunk ends between lines, never between the rows of one.
        if self.rows.len() >= CHUNK_ROWS && self.rows.last().is_some_and(|last| last.line < line) {
            self.send(false)?;
        }
        self.rows.push(NewLine { line, player, score, at });
        Ok(())
    }

    fn send(&mut self, last: bool) -> Result<()> {
        let lines_after = self.rows.last().map_or(self.done, |row| row.line);
        let chunk = NewChunk {
            board: self.board.clone(),
            digest: self.digest,
            lines_before: self.done,
            lines_after,
            rows: std::mem::take(&mut self.rows),
            last,
        };
        let imported = tokio::runtime::Handle::current().block_on(import(self.tally, chunk))?;
        self.done = imported.progress.lines;
        self.taken = imported.progress.taken;
        Ok(())
    }

    /// Sends the rest; returns the number of rows, and of players over all time.
    fn finish(mut self) -> Result<(u64, Option<u64>)> {
        self.send(true)?;
        let board = self.tally.boards.get(&self.board).context("the board was deleted meanwhile")?;
        Ok((self.taken, board.definition.all_time.then(|| board.ranking.total())))
    }
}
