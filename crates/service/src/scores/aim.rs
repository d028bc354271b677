//! Which parts each row of a batch counts for, and at which instant: settled before the batch is decided.
//!
//! Instants are given in order of arrival. A part that nobody has scored in yet is made here and becomes visible with
//! the batch that writes it.

use super::command::Request;
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
use tally_store::{BoardNo, Part, PartKey, PartRow, ShardSet, Store, StoreError};

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
    /// The databases of the batch.
    pub(super) shards: ShardSet,
    /// Open parts of which one of them has not said yet that it has nothing to purge under their number.
    pub(super) unchecked: BTreeMap<PartKey, Arc<LivePart>>,
}

impl Aims {
    /// Aims a batch of some databases.
    pub(super) fn new(batch: &[Request], instants: &mut Instants, now: Micros, shards: ShardSet) -> Self {
        let (rows, opened, stale, unchecked) = Default::default();
        let mut aims = Self { rows, opened, stale, shards, unchecked };
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
        let (opened, stale) = (self.opened.clone(), self.stale.clone());
        Self { rows: Vec::new(), opened, stale, shards: self.shards, unchecked: BTreeMap::new() }
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
        let key = PartKey { board: board.no, part: aimed.part };
        if let Some(live) = board.periods().live(aimed.part) {
            if !live.is_checked(self.shards) {
                self.unchecked.insert(key, Arc::clone(live));
            }
            return;
        }
        self.opened.entry(key).or_insert_with(|| {
            let order = board.order_of_part(aimed.part);
            (Arc::clone(board), Arc::new(LivePart::new(aimed.part, rule, span, order)))
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

    /// Makes the parts that were stored with the batch visible. A batch of another database may have opened one of them since
    /// this batch was aimed: then both publish to the same ranking.
    pub(super) fn install(&mut self) {
        for (board, live) in self.opened.values_mut() {
            let mut periods = board.periods_mut();
            let Some(state) = periods.rule_mut(live.rule) else { continue };
            if let Some(known) = state.live(live.part).filter(|known| known.span == live.span) {
                *live = Arc::clone(known);
                continue;
            }
            state.live.retain(|known| known.part != live.part);
            state.live.push(Arc::clone(live));
            state.live.sort_by_key(|live| live.span.start);
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
