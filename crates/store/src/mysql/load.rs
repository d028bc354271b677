//! The first message of a transaction: reads and locks all rows of the plan.
//!
//! Locked rows cannot change until the transaction ends. A key without a row cannot be locked: it is recorded here, and
//! guarded when something is written (`write`). Not here: what is decided.

use super::imports::Imports;
use super::profiles::{self, Profiles};
use super::requests::Requests;
use super::row::ResultSets;
use super::table;
use super::text::Script;
use super::{CLOCK, boards, ledger, meta, revisions, scores};
use crate::StoreError;
use crate::ledger::LedgerReadSet;
use crate::plan::{ImportKey, Loaded, ReadSet, ScoreKey};
use tally_rules::idempotency::RequestKey;
use tally_rules::{BoardId, PlayerId};

/// The statements of the message, and the number for each list of the plan.
#[derive(Debug, Default)]
pub(super) struct LoadMessage {
    pub(super) script: Script,
    boards: usize,
    names: usize,
    scores: usize,
    requests: usize,
    imports: usize,
    profiles: usize,
    ledger: ledger::LedgerStatements,
}

/// The result of the message.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) loaded: Loaded,
    pub(super) absent: Absent,
    /// The version of the transaction: greater than that of every row it read, and not before the database's clock.
    pub(super) version: Option<u64>,
}

/// Keys that had no row, each list in order.
#[derive(Debug, Default)]
pub(super) struct Absent {
    pub(super) scores: Vec<ScoreKey>,
    pub(super) requests: Vec<RequestKey>,
    pub(super) imports: Vec<ImportKey>,
    pub(super) profiles: Vec<PlayerId>,
    pub(super) ledger: ledger::Absent,
}

impl Absent {
    pub(super) fn is_empty(&self) -> bool {
        self.scores.is_empty()
            && self.requests.is_empty()
            && self.imports.is_empty()
            && self.profiles.is_empty()
            && self.ledger.is_empty()
    }
}

/// Whether a plan reads anything.
pub(super) fn reads(plan: &ReadSet) -> bool {
    let ReadSet { boards, board_names, scores, requests, imports, profiles, ledger, .. } = plan;
    !(boards.is_empty()
        && board_names.is_empty()
        && scores.is_empty()
        && requests.is_empty()
        && imports.is_empty()
        && profiles.is_empty()
        && ledger.is_empty())
}

/// Builds the message. `of_ledger` has the rows of the ledger to read: fewer than the plan's if some are cached. Every
/// transaction locks in this order of tables and in order of keys.
pub(super) fn message(plan: &ReadSet, of_ledger: &LedgerReadSet) -> LoadMessage {
    let mut message = LoadMessage::default();
    let script = &mut message.script;
    script.statement("START TRANSACTION");
    // A change that waits for its leaderboard must not hold the next number, which every new leaderboard needs.
    message.boards = revisions::select(script, &plan.boards, plan.exclusive);
    if !plan.board_names.is_empty() {
        meta::lock_next_board(script);
    }
    message.names = boards::select_names(script, &plan.board_names);
    message.requests = table::select::<Requests>(script, &plan.requests, true);
    message.imports = table::select::<Imports>(script, &plan.imports, true);
    message.profiles = table::select::<Profiles>(script, &plan.profiles, true);
    message.ledger = ledger::select(script, of_ledger);
    message.scores = scores::select(script, &plan.scores, true);
    script.sql("SELECT ").sql(CLOCK).end();
    message
}

impl LoadMessage {
    /// Whether several statements read, so that a row may have appeared between two of them.
    pub(super) fn in_several_statements(&self) -> bool {
        self.requests + self.imports + self.profiles + self.ledger.statements() + self.scores > 1
    }

    /// Reads the answer.
    pub(super) fn read(
        &self,
        mut results: ResultSets,
        (plan, of_ledger): (&ReadSet, &LedgerReadSet),
    ) -> Result<Read, StoreError> {
        let mut read = Read::default();
        let Read { loaded, absent, version } = &mut read;
        results.skip(1);
        loaded.boards = revisions::read(&mut results, self.boards, &plan.boards)?;
        if !plan.board_names.is_empty() {
            loaded.next_board = meta::read_next_board(&mut results)?;
        }
        let rows = boards::read_all(&mut results, self.names)?;
        let by_name = |name: &BoardId| rows.iter().find(|row| row.id == *name).cloned();
        loaded.board_names = plan.board_names.iter().map(by_name).collect();
        loaded.requests = table::read::<Requests>(&mut results, self.requests, &plan.requests)?;
        loaded.imports = table::read::<Imports>(&mut results, self.imports, &plan.imports)?;
        let profiles = profiles::read(&mut results, self.profiles, &plan.profiles)?;
        loaded.profiles = profiles.into_iter().collect::<Result<_, _>>()?;
        (loaded.ledger, absent.ledger) = self.ledger.read(&mut results, of_ledger)?;
        let scores = scores::read(&mut results, self.scores, &plan.scores)?;
        let newest = scores.iter().flatten().map(|row| row.version).max().unwrap_or(0);
        *version = Some(results.one_number("the clock")?.max(newest.saturating_add(1)));
        loaded.scores = scores.iter().map(|row| row.and_then(|row| row.record)).collect();
        absent.scores = absent_of(&plan.scores, &scores);
        absent.requests = absent_of(&plan.requests, &loaded.requests);
        absent.imports = absent_of(&plan.imports, &loaded.imports);
        absent.profiles = absent_of(&plan.profiles, &loaded.profiles);
        Ok(read)
    }
}

pub(super) fn absent_of<K: Clone, V>(keys: &[K], found: &[Option<V>]) -> Vec<K> {
    keys.iter().zip(found).filter(|(_, found)| found.is_none()).map(|(key, _)| key.clone()).collect()
}
