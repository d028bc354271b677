//! Which parts each row of a batch counts for, and at which instant: settled before the batch is decided.
//!
//! Instants are given in order of arrival. A part that nobody has scored in yet is made here and becomes visible with
//! the batch that writes it.

use super::command::Request;
use super::redefine;
use super::steps::Step;
use crate::boards::Board;
use crate::contests::play;
use crate::periods::{AIMED_ALL_TIME, Aimed, LivePart};
use crate::plants::{Plant, is_planted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tally_ranking::WindowRanking;
use tally_rules::instant::{Instants, RowTime};
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::{BoardNo, Part, PartKey, PartRow, Store, StoreError};

/// Every part of a board that is in memory, due or not: hiding and showing concern them all.
fn in_memory(board: &Board, now: Micros) -> RowAim {
    let mut parts = Vec::new();
    board.each_order(|part, _| parts.push(part));
    RowAim { at: Ok(now), parts, closed: Vec::new() }
}

/// A part whose order is in memory.
#[derive(Clone, Debug)]
pub(crate) enum PartInMemory {
    AllTime(Arc<Board>),
    Live(Arc<LivePart>),
}

impl PartInMemory {
    /// Its order.
    pub(crate) fn order(&self) -> &WindowRanking {
        match self {
            Self::AllTime(board) => &board.order,
            Self::Live(live) => &live.order,
        }
    }
}

/// What one row aims at.
#[derive(Clone, Debug)]
pub(super) struct RowAim {
    /// When it happens.
    pub(super) at: Result<Micros, Rejection>,
    /// The parts it counts for; the first one is named in answers.
    pub(super) parts: Vec<Part>,
    /// Names of periods it comes too late for.
    pub(super) closed: Vec<String>,
}

/// What a batch aims at: the rows of each request, and for an erasure every part of every board.
pub(super) struct Aims {
    /// Rows by request.
    pub(super) rows: Vec<Vec<RowAim>>,
    /// Parts that are new in memory.
    pub(super) opened: BTreeMap<PartKey, (Arc<Board>, Arc<LivePart>)>,
    /// Closed parts whose records change.
    pub(super) stale: BTreeMap<PartKey, (Arc<Board>, PartRow)>,
}

impl Aims {
    /// Aims a batch.
    pub(super) fn new(batch: &[Request], instants: &mut Instants, now: Micros) -> Self {
        let mut aims = Self { rows: Vec::new(), opened: BTreeMap::new(), stale: BTreeMap::new() };
        for request in batch {
            let rows = match request {
                Request::Submit(submit) => {
                    let at = instants.of_row(submit.write.at, now);
                    vec![aims.submit(&submit.board, at, now)]
                }
                Request::Import(chunk) => {
                    let dated = |write: &super::command::ScoreWrite| write.at.is_some();
                    let rows =
                        chunk.rows.iter().map(|(_, write)| (instants.of_row(write.at, now), dated(write)));
                    let rows: Vec<_> = rows.collect();
                    rows.into_iter()
                        .map(|(at, dated)| {
                            if dated {
                                aims.import(&chunk.board, at, now)
                            } else {
                                aims.submit(&chunk.board, at, now)
                            }
                        })
                        .collect()
                }
                Request::Commands(commands) => {
                    commands.steps.iter().map(|step| aims.step(step, instants, now)).collect()
                }
                Request::Remove(remove) => vec![aims.open(&remove.board, now)],
                Request::Ban(ban) => vec![in_memory(&ban.board, now)],
                Request::Erase(_) | Request::Redefine(_) | Request::Vanish(_) => Vec::new(),
            };
            aims.rows.push(rows);
        }
        aims
    }

    /// The same without a row.
    pub(super) fn without_rows(&self) -> Self {
        Self { rows: Vec::new(), opened: self.opened.clone(), stale: self.stale.clone() }
    }

    /// Forgets periods that no row of this batch counts for.
    pub(super) fn keep_parts_of(&mut self, batch: &[Request]) {
        let mut used = BTreeSet::new();
        for (request, rows) in batch.iter().zip(&self.rows) {
            for (at, row) in rows.iter().enumerate() {
                let board = request.board_of(at).map(|board| board.no);
                used.extend(row.parts.iter().filter_map(|part| Some(PartKey { board: board?, part: *part })));
            }
        }
        self.opened.retain(|key, _| used.contains(key));
        self.stale.retain(|key, _| used.contains(key));
    }

    /// Refuses what the contests of its boards do not allow: scores of others than members, scores and bans at another time, and
    /// removals.
    pub(super) fn judge<'a>(
        &mut self,
        batch: &'a [Request],
        store: &dyn Store,
        now: Micros,
    ) -> Result<(), StoreError> {
        let mut scores: Vec<(&'a Arc<Board>, &'a PlayerId)> = Vec::new();
        let mut of: Vec<(usize, usize)> = Vec::new();
        let mut removals: Vec<(usize, usize)> = Vec::new();
        for (at, request) in batch.iter().enumerate() {
            // Ordinary boards cost a look.
            let mut score = |row: usize, board: &'a Arc<Board>, player| {
                if play::of(board) {
                    scores.push((board, player));
                    of.push((at, row));
                }
            };
            match request {
                Request::Submit(submit) => score(0, &submit.board, &submit.write.player),
                Request::Import(chunk) => {
                    let rows = chunk.rows.iter().enumerate();
                    rows.for_each(|(row, (_, write))| score(row, &chunk.board, &write.player));
                }
                Request::Commands(commands) => {
                    for (row, step) in commands.steps.iter().enumerate() {
                        match step {
                            Step::Add { board, items, .. } => {
                                items.iter().for_each(|(player, _)| score(row, board, player));
                            }
                            Step::Submit(submit) => score(row, &submit.board, &submit.write.player),
                            Step::Remove { board, .. } | Step::Take { board, .. } => {
                                removals.extend(play::of(board).then_some((at, row)));
                            }
                            Step::Read(_) => {}
                        }
                    }
                }
                Request::Remove(remove) => {
                    removals.extend(play::of(&remove.board).then_some((at, 0)));
                }
                Request::Ban(ban) => {
                    if let Err(rejection) = play::judge_ranks(&ban.board, now) {
                        self.rows[at][0].at = Err(rejection);
                    }
                }
                Request::Erase(_) | Request::Redefine(_) | Request::Vanish(_) => {}
            }
        }
        for ((at, row), verdict) in of.into_iter().zip(play::judge(store, &scores, now)?) {
            if let Err(rejection) = verdict {
                self.rows[at][row].at = Err(rejection);
            }
        }
        removals.into_iter().for_each(|(at, row)| self.rows[at][row].at = Err(Rejection::BoardInUse));
        Ok(())
    }

    fn step(&mut self, step: &Step, instants: &mut Instants, now: Micros) -> RowAim {
        match step {
            Step::Add { board, .. } => {
                let at = Ok(instants.row_now(now));
                self.submit(board, at, now)
            }
            Step::Submit(submit) => {
                let at = instants.of_row(submit.write.at, now);
                self.submit(&submit.board, at, now)
            }
            Step::Remove { board, .. } | Step::Take { board, .. } => self.open(board, now),
            Step::Read(_) => RowAim { at: Ok(now), parts: Vec::new(), closed: Vec::new() },
        }
    }

    /// A new score: all time, and the periods that still take it.
    fn submit(&mut self, board: &Arc<Board>, time: Result<RowTime, Rejection>, now: Micros) -> RowAim {
        let RowTime { at, aimed } = match time {
            Ok(time) => time,
            Err(rejection) => return RowAim { at: Err(rejection), parts: Vec::new(), closed: Vec::new() },
        };
        let (aimed, now) = if is_planted(Plant::AimedByInstant) { (at, at.max(now)) } else { (aimed, now) };
        let (open, closed) = board.periods().aim(aimed, now);
        let parts = self.parts(board, open);
        RowAim { at: Ok(at), parts, closed }
    }

    /// A line of a file that says when: closed periods too.
    fn import(&mut self, board: &Arc<Board>, time: Result<RowTime, Rejection>, now: Micros) -> RowAim {
        let RowTime { at, aimed } = match time {
            Ok(time) => time,
            Err(rejection) => return RowAim { at: Err(rejection), parts: Vec::new(), closed: Vec::new() },
        };
        let (open, late) = board.periods().aim(aimed, now);
        let mut parts = self.parts(board, open);
        if !late.is_empty() {
            let any = board.periods().aim_any(aimed);
            for aimed in any {
                if !parts.contains(&aimed.part) {
                    self.touch(board, aimed);
                    parts.push(aimed.part);
                }
            }
        }
        RowAim { at: Ok(at), parts, closed: Vec::new() }
    }

    /// Everything of a player that is still open.
    fn open(&mut self, board: &Arc<Board>, now: Micros) -> RowAim {
        let open = board.periods().open(now);
        RowAim { at: Ok(now), parts: self.parts(board, open), closed: Vec::new() }
    }

    fn parts(&mut self, board: &Arc<Board>, open: Vec<Aimed>) -> Vec<Part> {
        let all_time = board.definition.all_time.then_some(AIMED_ALL_TIME);
        let all: Vec<Aimed> = all_time.into_iter().chain(open).collect();
        for aimed in &all {
            self.ensure_live(board, *aimed);
        }
        all.into_iter().map(|aimed| aimed.part).collect()
    }

    fn ensure_live(&mut self, board: &Arc<Board>, aimed: Aimed) {
        let Some((rule, span)) = aimed.period else { return };
        if board.periods().live(aimed.part).is_some() {
            return;
        }
        self.opened.entry(PartKey { board: board.no, part: aimed.part }).or_insert_with(|| {
            let order = board.order_of_part(aimed.part);
            (Arc::clone(board), Arc::new(LivePart { part: aimed.part, rule, span, order }))
        });
    }

    fn touch(&mut self, board: &Arc<Board>, aimed: Aimed) {
        let Some((rule, span)) = aimed.period else { return };
        self.stale.entry(PartKey { board: board.no, part: aimed.part }).or_insert_with(|| {
            let periods = board.periods();
            let known =
                periods.rules.iter().flat_map(|state| &state.closed).find(|row| row.part == aimed.part);
            let fresh =
                PartRow { part: aimed.part, rule, span, closed: true, version: 0, stale: true, total: 0 };
            (Arc::clone(board), PartRow { stale: true, ..known.copied().unwrap_or(fresh) })
        });
    }

    /// Parts that this batch would store anew while rows of the same number still wait to be purged. A new score does not
    /// count for one: it was closed before it was forgotten. What has to be purged first is returned: a dated line or a
    /// changed schedule needs the number.
    pub(super) fn settle_purged(
        &mut self,
        batch: &[Request],
        store: &dyn Store,
        now: Micros,
    ) -> Result<Vec<PartKey>, StoreError> {
        let begun = |request: &Request| match request {
            Request::Redefine(redefine) => redefine::begun(redefine, now),
            _ => Vec::new(),
        };
        let begun: Vec<PartKey> = batch.iter().flat_map(begun).collect();
        let fresh = |(_, row): &(Arc<Board>, PartRow)| row.version == 0;
        let stale = self.stale.iter().filter(|(_, one)| fresh(one)).map(|(key, _)| *key);
        let keys: Vec<PartKey> =
            stale.chain(self.opened.keys().copied()).chain(begun.iter().copied()).collect();
        if keys.is_empty() || is_planted(Plant::NumberReused) {
            return Ok(Vec::new());
        }
        let waiting = store.unpurged(&keys)?;
        if waiting.is_empty() {
            return Ok(waiting);
        }
        let imported = |key: &PartKey| {
            let of = batch.iter().zip(&self.rows).filter(
                |(request, _)| matches!(request, Request::Import(chunk) if chunk.board.no == key.board),
            );
            of.flat_map(|(_, rows)| rows).any(|row| row.parts.contains(&key.part))
        };
        let needed = |key: &PartKey| imported(key) || begun.contains(key);
        let needed: Vec<PartKey> = waiting.iter().copied().filter(needed).collect();
        if needed.is_empty() {
            waiting.iter().for_each(|key| self.leave(batch, *key));
        }
        Ok(needed)
    }

    /// New scores do not count for a part, as if it were closed.
    fn leave(&mut self, batch: &[Request], key: PartKey) {
        let Some((board, live)) = self.opened.remove(&key) else { return };
        let periods = board.periods();
        let name = periods.rule_no(live.rule).map(|state| state.name(live.span.start)).unwrap_or_default();
        for (request, rows) in batch.iter().zip(&mut self.rows) {
            for (at, row) in rows.iter_mut().enumerate() {
                if request.board_of(at).is_some_and(|of| of.no == key.board) && row.parts.contains(&key.part)
                {
                    row.parts.retain(|part| *part != key.part);
                    row.closed.push(name.clone());
                }
            }
        }
    }

    /// The order of a part, in memory already or opened by this batch.
    pub(super) fn order_of(&self, board: &Arc<Board>, part: Part) -> Option<PartInMemory> {
        if part == tally_store::plan::ALL_TIME {
            return Some(PartInMemory::AllTime(Arc::clone(board)));
        }
        let opened = self.opened.get(&PartKey { board: board.no, part }).map(|(_, live)| Arc::clone(live));
        opened.or_else(|| board.periods().live(part).cloned()).map(PartInMemory::Live)
    }

    /// The name of a part.
    pub(super) fn name(&self, board: &Arc<Board>, part: Part) -> String {
        if part == tally_store::plan::ALL_TIME {
            return crate::periods::ALL_TIME_NAME.into();
        }
        let opened = self.opened.get(&PartKey { board: board.no, part }).map(|(_, live)| Arc::clone(live));
        let periods = board.periods();
        let live = opened.or_else(|| periods.live(part).cloned());
        let state =
            live.as_ref().and_then(|live| periods.rules.iter().find(|state| state.rule.no == live.rule));
        state.zip(live.as_ref()).map_or_else(String::new, |(state, live)| state.name(live.span.start))
    }

    /// Rows of parts to store with the batch, by key.
    pub(super) fn part_rows(&self) -> Vec<(PartKey, Option<PartRow>)> {
        let opened = self.opened.iter().map(|(key, (_, live))| {
            let (part, rule, span) = (live.part, live.rule, live.span);
            (*key, Some(PartRow { part, rule, span, closed: false, version: 0, stale: false, total: 0 }))
        });
        let stale = self.stale.iter().map(|(key, (_, row))| (*key, Some(*row)));
        let mut all: Vec<_> = opened.chain(stale).collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }

    /// Makes the parts that were stored with the batch visible.
    pub(super) fn install(&self) {
        for (board, live) in self.opened.values() {
            if let Some(state) = board.periods_mut().rule_mut(live.rule) {
                state.live.retain(|known| known.part != live.part);
                state.live.push(Arc::clone(live));
                state.live.sort_by_key(|live| live.span.start);
            }
        }
    }

    /// Every part of a board, for erasing: open or closed, and those that this batch begins.
    pub(super) fn every_part(&self, board: &Board) -> Vec<(BoardNo, Part)> {
        let begun = self.opened.keys().chain(self.stale.keys()).filter(|key| key.board == board.no);
        let mut parts: BTreeSet<Part> = begun.map(|key| key.part).collect();
        parts.insert(tally_store::plan::ALL_TIME);
        parts.extend(board.periods().parts());
        parts.into_iter().map(|part| (board.no, part)).collect()
    }
}
