//! The target windows of a batch, and the instant of each row, before the batch is decided.
//!
//! Instants are given in order of arrival. A window without scores is made here. It becomes visible with the batch that stores it.

use super::kind::{Access, ScoreRequest, TargetRow, on_kind};
use crate::boards::Board;
use crate::contests::play;
use crate::periods::{ALL_TIME_NAME, LiveWindow, TARGET_ALL_TIME, TargetWindow};
use crate::seeded_faults::{SeededFault, is_seeded};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tally_ranking::WindowRanking;
use tally_rules::instant::{Instants, RowTime};
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::plan::{ALL_TIME, ATTEMPTS};
use tally_store::{BoardNo, ShardSet, Store, StoreError, Window, WindowKey, WindowRow};

/// A window whose ranking is in memory.
#[derive(Clone, Debug)]
pub(crate) enum WindowInMemory {
    AllTime(Arc<Board>),
    Live(Arc<LiveWindow>),
}

impl WindowInMemory {
    pub(crate) fn ranking(&self) -> &WindowRanking {
        match self {
            Self::AllTime(board) => &board.ranking,
            Self::Live(live) => &live.ranking,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RowTarget {
    /// When it happens, or why it is rejected before it is decided.
    pub(crate) at: Result<Micros, Rejection>,
    /// The windows that it counts for; replies name the first one.
    pub(crate) windows: Vec<Window>,
    /// Whether the first window is that of requests without a period. It is not for a removal if that one has no scores.
    pub(crate) is_first_shown: bool,
    /// Names of periods that it is too late for.
    pub(crate) closed: Vec<String>,
}

pub(crate) struct Targets {
    /// Those of all rows, in order.
    pub(super) rows: Vec<RowTarget>,
    /// The index of the first row of each request.
    begins: Vec<usize>,
    /// Windows that are new in memory.
    pub(super) opened: BTreeMap<WindowKey, (Arc<Board>, Arc<LiveWindow>)>,
    /// Closed windows whose records change.
    pub(super) stale: BTreeMap<WindowKey, (Arc<Board>, WindowRow)>,
    /// The shards of the batch.
    pub(super) shards: ShardSet,
    /// Open windows for which a shard of the batch has not yet reported that it has nothing to purge under their number.
    pub(super) unchecked: BTreeMap<WindowKey, (Arc<Board>, Arc<LiveWindow>)>,
}

/// Calls `each` for every row of a batch, with its index among all of them.
pub(super) fn each_row<'a>(batch: &'a [ScoreRequest], mut each: impl FnMut(usize, TargetRow<'a>)) {
    let mut place = 0;
    for request in batch {
        let mut next = |row| {
            each(place, row);
            place += 1;
        };
        on_kind!(request, one => one.each_row(&mut next));
    }
}

impl Targets {
    pub(super) fn new(
        batch: &[ScoreRequest],
        instants: &mut Instants,
        now: Micros,
        shards: ShardSet,
    ) -> Self {
        let mut targets = Self { shards, ..Self::empty(batch.len()) };
        for request in batch {
            targets.begins.push(targets.rows.len());
            let mut next = |row| {
                let target = targets.row(row, instants, now);
                targets.rows.push(target);
            };
            on_kind!(request, one => one.each_row(&mut next));
        }
        targets
    }

    fn empty(requests: usize) -> Self {
        let (rows, begins) = (Vec::with_capacity(requests), Vec::with_capacity(requests));
        let (opened, stale, shards, unchecked) = Default::default();
        Self { rows, begins, opened, stale, shards, unchecked }
    }

    /// The targets of one request.
    pub(crate) fn of(&self, request: usize) -> &[RowTarget] {
        let end = self.begins.get(request + 1).copied().unwrap_or(self.rows.len());
        &self.rows[self.begins[request]..end]
    }

    pub(super) fn row_at(&self, place: usize) -> &RowTarget {
        &self.rows[place]
    }

    /// Adds a request with these targets.
    pub(super) fn push(&mut self, rows: Vec<RowTarget>) {
        self.begins.push(self.rows.len());
        self.rows.extend(rows);
    }

    /// Whether windows are stored with the batch.
    pub(super) fn stores_windows(&self) -> bool {
        !self.opened.is_empty() || !self.stale.is_empty()
    }

    /// The same windows without a row.
    pub(super) fn without_rows(&self) -> Self {
        let (opened, stale) = (self.opened.clone(), self.stale.clone());
        Self { opened, stale, shards: self.shards, ..Self::empty(0) }
    }

    /// Drops new windows that no row counts for.
    pub(super) fn keep_parts_of(&mut self, batch: &[ScoreRequest]) {
        let mut used = BTreeSet::new();
        each_row(batch, |place, row| {
            let key = |window: &Window| Some(WindowKey { board: row.board?.no, window: *window });
            used.extend(self.rows[place].windows.iter().filter_map(key));
        });
        self.opened.retain(|key, _| used.contains(key));
        self.stale.retain(|key, _| used.contains(key));
    }

    /// Rejects what the contests of its leaderboards do not allow: scores of non-members, scores and bans at the wrong time, and
    /// removals.
    pub(super) fn check_contests(
        &mut self,
        batch: &[ScoreRequest],
        store: &dyn Store,
        now: Micros,
    ) -> Result<(), StoreError> {
        let (mut scores, mut places): (Vec<(&Arc<Board>, &PlayerId)>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut rejected: Vec<(usize, Rejection)> = Vec::new();
        each_row(batch, |place, row| {
            let Some(board) = row.board.filter(|board| play::of(board)) else { return };
            match row.access {
                Access::Score(_) | Access::Line(_) => row.players.iter().for_each(|player| {
                    scores.push((board, player));
                    places.push(place);
                }),
                Access::Remove | Access::Take => rejected.push((place, play::in_use(&board.id))),
                Access::Ban => {
                    rejected.extend(play::check_ranks(board).err().map(|rejection| (place, rejection)));
                }
                Access::Correct(_) => {
                    rejected.extend(play::check_review(board).err().map(|rejection| (place, rejection)));
                }
                Access::Read => {}
            }
        });
        let verdicts = places.into_iter().zip(play::check_scores(store, &scores, now)?);
        rejected.extend(verdicts.filter_map(|(place, verdict)| Some((place, verdict.err()?))));
        rejected.into_iter().for_each(|(place, rejection)| self.rows[place].at = Err(rejection));
        Ok(())
    }

    fn row(&mut self, row: TargetRow<'_>, instants: &mut Instants, now: Micros) -> RowTarget {
        let none = |at| RowTarget { at, windows: Vec::new(), is_first_shown: true, closed: Vec::new() };
        let Some(board) = row.board else { return none(Ok(now)) };
        let given = match row.access {
            Access::Score(given) | Access::Line(given) => given,
            Access::Remove => return self.removed(board, now),
            Access::Take => {
                let target = self.removed(board, now);
                // Positions are those of the shown window.
                return if target.is_first_shown { target } else { none(Ok(now)) };
            }
            Access::Ban => {
                // Windows that are due too.
                let mut target = none(Ok(now));
                board.each_ranking(|window, _| target.windows.push(window));
                return target;
            }
            Access::Correct(target) => return self.corrected(board, target, now),
            Access::Read => return none(Ok(now)),
        };
        match instants.of_row(given, now) {
            Ok(time) => self.score(board, time, matches!(row.access, Access::Line(Some(_))), now),
            Err(rejection) => none(Err(rejection)),
        }
    }

    /// All time and what still takes scores. The window of requests without a period comes first: a period in its grace is older than
    /// the present one, and other rules may have scores before the first rule has.
    fn removed(&mut self, board: &Arc<Board>, now: Micros) -> RowTarget {
        let (mut open, first) = {
            let periods = board.periods();
            (periods.open(now), periods.rules.first().map(|state| state.rule.no))
        };
        let is_shown = |target: &TargetWindow| {
            target.period.is_some_and(|(rule, span)| Some(rule) == first && span.contains(now))
        };
        open.sort_by_key(|target| !is_shown(target));
        let is_first_shown = board.definition.all_time || open.first().is_some_and(is_shown);
        RowTarget { at: Ok(now), windows: self.windows(board, open), is_first_shown, closed: Vec::new() }
    }

    /// All time, or a period that still takes scores.
    fn corrected(&mut self, board: &Arc<Board>, target: TargetWindow, now: Micros) -> RowTarget {
        let is_open = target.period.is_none_or(|(rule, span)| {
            board.periods().rule_no(rule).is_some_and(|state| state.takes(span, now))
        });
        let at = if is_open { Ok(now) } else { Err(Rejection::PeriodClosed(None)) };
        if is_open {
            self.ensure_live(board, target);
        }
        RowTarget { at, windows: vec![target.window], is_first_shown: true, closed: Vec::new() }
    }

    /// A score counts for all time and the periods that still take it. With its instant in a file it counts for closed ones too.
    fn score(&mut self, board: &Arc<Board>, time: RowTime, is_dated: bool, now: Micros) -> RowTarget {
        let RowTime { at, counted_at } = time;
        let is_wrong = !is_dated && is_seeded(SeededFault::TargetedByInstant);
        let (counted_at, now) = if is_wrong { (at, at.max(now)) } else { (counted_at, now) };
        let (open, mut closed) = board.periods().targets(counted_at, now);
        let mut windows = self.windows(board, open);
        if is_dated && !closed.is_empty() {
            closed.clear();
            let any = board.periods().targets_of_any_state(counted_at);
            for target in any {
                if !windows.contains(&target.window) {
                    self.touch(board, target);
                    windows.push(target.window);
                }
            }
        }
        RowTarget { at: Ok(at), windows, is_first_shown: true, closed }
    }

    fn windows(&mut self, board: &Arc<Board>, open: Vec<TargetWindow>) -> Vec<Window> {
        let all_time = board.definition.all_time.then_some(TARGET_ALL_TIME);
        let all: Vec<TargetWindow> = all_time.into_iter().chain(open).collect();
        for target in &all {
            self.ensure_live(board, *target);
        }
        all.into_iter().map(|target| target.window).collect()
    }

    fn ensure_live(&mut self, board: &Arc<Board>, target: TargetWindow) {
        let Some((rule, span)) = target.period else { return };
        let key = WindowKey { board: board.no, window: target.window };
        if let Some(live) = board.periods().live(target.window) {
            if !live.is_checked(self.shards) {
                self.unchecked.insert(key, (Arc::clone(board), Arc::clone(live)));
            }
            return;
        }
        self.opened.entry(key).or_insert_with(|| {
            let ranking = board.new_ranking(target.window);
            (Arc::clone(board), Arc::new(LiveWindow::new(target.window, rule, span, ranking)))
        });
    }

    fn touch(&mut self, board: &Arc<Board>, target: TargetWindow) {
        let Some((rule, span)) = target.period else { return };
        self.stale.entry(WindowKey { board: board.no, window: target.window }).or_insert_with(|| {
            let periods = board.periods();
            let known =
                periods.rules.iter().flat_map(|state| &state.closed).find(|row| row.window == target.window);
            let fresh = WindowRow {
                window: target.window,
                rule,
                span,
                closed: true,
                version: 0,
                stale: true,
                total: 0,
            };
            (Arc::clone(board), WindowRow { stale: true, ..known.copied().unwrap_or(fresh) })
        });
    }

    fn live(&self, board: &Board, window: Window) -> Option<Arc<LiveWindow>> {
        let opened =
            self.opened.get(&WindowKey { board: board.no, window }).map(|(_, live)| Arc::clone(live));
        opened.or_else(|| board.periods().live(window).cloned())
    }

    /// The ranking of a window, in memory already or opened by this batch.
    pub(crate) fn ranking_of(&self, board: &Arc<Board>, window: Window) -> Option<WindowInMemory> {
        if window == ALL_TIME {
            return Some(WindowInMemory::AllTime(Arc::clone(board)));
        }
        self.live(board, window).map(WindowInMemory::Live)
    }

    pub(crate) fn name(&self, board: &Board, window: Window) -> String {
        if window == ALL_TIME {
            return ALL_TIME_NAME.into();
        }
        let Some(live) = self.live(board, window) else { return String::new() };
        let periods = board.periods();
        periods.rule_no(live.rule).map_or_else(String::new, |state| state.name(live.span.start))
    }

    /// Rows of windows to store with the batch, by key.
    pub(super) fn window_rows(&self) -> Vec<(WindowKey, Option<WindowRow>)> {
        let opened = self.opened.iter().map(|(key, (_, live))| {
            let (window, rule, span) = (live.window, live.rule, live.span);
            (*key, Some(WindowRow { window, rule, span, closed: false, version: 0, stale: false, total: 0 }))
        });
        let stale = self.stale.iter().map(|(key, (_, row))| (*key, Some(*row)));
        let mut all: Vec<_> = opened.chain(stale).collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }

    /// Makes the windows that were stored with the batch visible. A batch of another shard may have opened one of them since this
    /// batch was targeted: then both publish to the same ranking.
    pub(super) fn install(&mut self) {
        for (board, live) in self.opened.values_mut() {
            let mut periods = board.periods_mut();
            let Some(state) = periods.rule_mut(live.rule) else { continue };
            if let Some(known) = state.live(live.window).filter(|known| known.span == live.span) {
                *live = Arc::clone(known);
                continue;
            }
            state.live.retain(|known| known.window != live.window);
            state.live.push(Arc::clone(live));
            state.live.sort_by_key(|live| live.span.start);
        }
    }

    /// Every window of a board, for erasing: open or closed, and those that this batch begins. And that of attempts.
    pub(crate) fn every_window(&self, board: &Board) -> Vec<(BoardNo, Window)> {
        let begun = self.opened.keys().chain(self.stale.keys()).filter(|key| key.board == board.no);
        let mut windows: BTreeSet<Window> = begun.map(|key| key.window).collect();
        windows.insert(ALL_TIME);
        windows.extend(play::attempts_max(board).map(|_| ATTEMPTS));
        windows.extend(board.periods().newest_windows(usize::MAX));
        windows.into_iter().map(|window| (board.no, window)).collect()
    }
}
