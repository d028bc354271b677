//! Changing the definition of a leaderboard: new, changed and removed period rules, and what happens to their windows.
//!
//! An ended period pays the prizes that it had while it ran. So the caller stores its prizes before its rules change, and names
//! these periods. If another period is over by now, nothing changes.

use super::batch::{Effects, Replying, RowTarget, ScoreBatchState, ScoreRequestKind, Targets};
use crate::boards::Board;
use crate::failure::Failure;
use crate::periods::{LiveWindow, Periods, RuleState, TargetWindow, prizes};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::definition::BoardSpec;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::period::PeriodRule;
use tally_rules::{Definition, Micros, Rejection};
use tally_store::{Garbage, ReadSet, Window, WindowKey, WindowRow};

/// A change of a definition.
#[derive(Clone, Debug)]
pub(crate) struct Redefine {
    pub(crate) board: Arc<Board>,
    /// The requested definition.
    pub(crate) spec: BoardSpec,
    pub(crate) audited: Audited,
    pub(crate) idempotency: Option<IdempotencyKey>,
    /// Closed periods whose prizes are stored: a change of prizes may not touch them any more.
    pub(crate) written: HashSet<Window>,
}

#[derive(Debug)]
pub(crate) struct Redefined {
    /// Whether an earlier request with this idempotency key created the leaderboard.
    pub(crate) created: bool,
    pub(crate) replayed: bool,
    /// Nothing was changed: the prizes of a period that is over are not written down yet.
    pub(crate) owes: bool,
}

#[derive(Debug)]
pub(crate) struct RedefineDecision {
    change: Redefinition,
    /// The outcome of an earlier request with this idempotency key.
    replayed: Option<Outcome>,
}

impl ScoreRequestKind for Redefine {
    type Decision = RedefineDecision;
    type Reply = Redefined;

    fn each_board<'a>(&'a self, each: &mut impl FnMut(&'a Arc<Board>)) {
        each(&self.board);
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    /// It changes what rows count for.
    fn is_alone(&self) -> bool {
        true
    }

    fn changes_boards(&self) -> bool {
        true
    }

    /// Present periods without a stored row whose schedules change: the change stores them.
    fn begins(&self, now: Micros) -> Vec<WindowKey> {
        let Ok(definition) = self.spec.change(&self.board.present_definition()) else { return Vec::new() };
        let of_rule = |state: &RuleState| {
            let rules = &mut definition.periods.iter();
            rules.find(|rule| rule.no == state.rule.no && is_moved(&state.rule, rule))?;
            let TargetWindow { window, .. } = state.target(state.span_at(now)?);
            state.live(window).is_none().then_some(WindowKey { board: self.board.no, window })
        };
        self.board.periods().rules.iter().filter_map(of_rule).collect()
    }

    fn read(&self, _targets: &Targets, plan: &mut ReadSet) {
        plan.board_names.push(self.board.id.clone());
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        _rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<RedefineDecision, Rejection> {
        let no = self.board.no;
        if let Some((first, _)) = state.replay(self.idempotency.as_ref())? {
            return Ok(RedefineDecision { change: Redefinition::None, replayed: Some(first) });
        }
        let present = state.definitions.get(&no).ok_or(Rejection::LeaderboardNotFound(None))?;
        let change = change(self, present, state.now)?;
        if let Redefinition::Owes = change {
            return Ok(RedefineDecision { change, replayed: None });
        }
        state.remember(self.idempotency.as_ref(), Outcome::BoardPut { created: false });
        if let Redefinition::To(New { definition, ends, deleted_windows }) = &change {
            let key = |window: &Window| WindowKey { board: no, window: *window };
            state.windows.extend(ends.iter().map(|row| (key(&row.window), Some(*row))));
            state.windows.extend(deleted_windows.iter().map(|window| (key(window), None)));
            state.garbage.extend(deleted_windows.iter().map(|window| Garbage::Window(key(window))));
            state.definitions.insert(no, definition.clone());
            state.redefined.insert(no, definition.clone());
            state.audit.push(self.audited.row(AuditAction::BoardChanged, self.board.id.as_str(), None));
        }
        Ok(RedefineDecision { change, replayed: None })
    }

    /// It is alone in its batch, so no ranking changes beside it.
    fn publish<'a>(
        &'a self,
        decision: &'a RedefineDecision,
        _rows: &'a [RowTarget],
        _effects: &mut Effects<'a>,
    ) {
        if let Redefinition::To(new) = &decision.change {
            install(&self.board, new);
        }
    }

    fn reply(&self, decision: RedefineDecision, _with: Replying<'_>) -> Result<Redefined, Failure> {
        let RedefineDecision { change, replayed } = decision;
        Ok(Redefined {
            created: replayed == Some(Outcome::BoardPut { created: true }),
            replayed: replayed.is_some(),
            owes: matches!(change, Redefinition::Owes),
        })
    }
}

/// What a redefinition changes.
#[derive(Debug)]
pub(crate) enum Redefinition {
    /// Nothing: the leaderboard is as requested.
    None,
    /// Nothing: prizes must be stored before.
    Owes,
    To(New),
}

#[derive(Debug)]
pub(crate) struct New {
    pub(crate) definition: Definition,
    /// Present periods of changed schedules: their ends are fixed by the schedule under which they began.
    pub(crate) ends: Vec<WindowRow>,
    /// Windows of rules that were removed.
    pub(crate) deleted_windows: Vec<Window>,
}

/// What the requested definition changes.
fn change(
    Redefine { board, spec, written, .. }: &Redefine,
    present: &Definition,
    now: Micros,
) -> Result<Redefinition, Rejection> {
    let definition = spec.change(present)?.with_prizes_from(now);
    if definition == *present {
        return Ok(Redefinition::None);
    }
    Periods::new(&definition).map_err(Rejection::InvalidDefinition)?;
    if spec.keeps_history {
        check_history(board, &definition)?;
    }
    if definition.periods != present.periods && prizes::owes(&board.periods(), now, written) {
        return Ok(Redefinition::Owes);
    }
    let (mut ends, mut deleted_windows) = (Vec::new(), Vec::new());
    for state in &board.periods().rules {
        let (old, new) = (&state.rule, definition.periods.iter().find(|rule| rule.no == state.rule.no));
        match new {
            None => deleted_windows.extend(windows(state)),
            Some(new) if is_moved(old, new) => {
                let Some(span) = state.span_at(now) else { continue };
                if state.closed(span).is_some() {
                    // A closed period stays closed: its end is stored.
                    continue;
                }
                let TargetWindow { window, .. } = state.target(span);
                let rule = old.no;
                ends.push(WindowRow {
                    window,
                    rule,
                    span,
                    closed: false,
                    version: 0,
                    stale: false,
                    total: 0,
                });
            }
            Some(_) => {}
        }
    }
    Ok(Redefinition::To(New { definition, ends, deleted_windows }))
}

/// Rejects a definition that deletes periods with scores: it lacks their rule, or keeps fewer closed ones than there are.
fn check_history(board: &Board, definition: &Definition) -> Result<(), Rejection> {
    let periods = board.periods();
    let loses = |state: &&RuleState| match definition.periods.iter().find(|rule| rule.no == state.rule.no) {
        None => !state.live.is_empty() || has_archives(state),
        Some(rule) => rule.keep < kept(state),
    };
    match periods.rules.iter().find(loses) {
        Some(state) => Err(Rejection::PeriodHasHistory(state.rule.name.as_str().into())),
        None => Ok(()),
    }
}

/// Whether a closed period has scores. Archives of closed ones have a version.
fn has_archives(state: &RuleState) -> bool {
    state.closed.iter().any(|row| row.version > 0 && row.total > 0)
}

/// How many closed periods with scores the present rule keeps. One whose archive is not written yet may have some.
fn kept(state: &RuleState) -> u32 {
    let closed = state.closed.iter().filter(|row| row.version == 0 || row.total > 0).count();
    u32::try_from(closed).unwrap_or(u32::MAX).min(state.rule.keep)
}

/// Whether a rule has other boundaries.
fn is_moved(old: &PeriodRule, new: &PeriodRule) -> bool {
    (&new.schedule, &new.time_zone) != (&old.schedule, &old.time_zone)
}

fn windows(state: &RuleState) -> impl Iterator<Item = Window> + '_ {
    state.live.iter().map(|live| live.window).chain(state.closed.iter().map(|row| row.window))
}

/// Puts new rules into force. Periods of rules that stay, stay.
pub(crate) fn install(board: &Board, New { definition, ends, deleted_windows }: &New) {
    if !definition.implicit {
        board.keep();
    }
    let mut periods = board.periods_mut();
    let mut old: HashMap<u32, RuleState> =
        periods.rules.drain(..).map(|state| (state.rule.no, state)).collect();
    let Ok(mut fresh) = Periods::new(definition) else {
        unreachable!("the definition was checked when it was decided")
    };
    for state in &mut fresh.rules {
        if let Some(before) = old.remove(&state.rule.no) {
            state.live = before.live;
            state.closed = before.closed;
        }
        let forgotten = state.live.iter().filter(|live| deleted_windows.contains(&live.window));
        forgotten.for_each(|live| live.ranking.forget());
        state.live.retain(|live| !deleted_windows.contains(&live.window));
        state.closed.retain(|row| !deleted_windows.contains(&row.window));
        // A present period without a score has a stored end now, too.
        for row in ends.iter().filter(|row| row.rule == state.rule.no) {
            if state.live(row.window).is_none() {
                let (window, rule, span) = (row.window, row.rule, row.span);
                let ranking = board.new_ranking(window);
                state.live.push(Arc::new(LiveWindow::new(window, rule, span, ranking)));
            }
        }
        state.live.sort_by_key(|live| live.span.start);
    }
    *periods = fresh;
}
