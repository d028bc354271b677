//! Deciding actions on contests. Pure.
//!
//! The state machine decides each action under the contest's lock, so two starts at once are one start and one rejection. Money,
//! members, leaderboards and state change together or not at all: all rejections come before the first change. Not here: the
//! rows that the caller has read before; if they have changed, the reply is `Outdated`.

mod applications;
mod bounded_steps;
mod join;
mod pool;
mod start;

use super::actions::{Action, ActionResult, ContestDone, ContestRequest};
use super::play;
use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::{Added, BatchState};
use crate::outcomes;
use tally_rules::contest::record::{ApplicationLocation, ContestTask};
use tally_rules::contest::{Application, ContestId, ContestRecord, ContestState, ContestTrigger, state};
use tally_rules::event::{ContestChanged, Event, EventKind};
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::ledger::{Currency, HoldId, MemberId, TransferId, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, Origin, PlayerId, Rejection};
use tally_store::{BoardChange, BoardNo, EntrantKey, ReadSet, Topic};

impl Added {
    /// Adds the event that a contest was made, changed, or changed its state.
    pub(crate) fn add_event(
        &mut self,
        (id, record): (&ContestId, &ContestRecord),
        before: Option<ContestState>,
        now: Micros,
    ) {
        let is_turned = before != Some(record.state);
        let at = if is_turned { record.since } else { record.updated_at };
        let (contest, members) = (Some(id.clone()), record.members);
        let changed = ContestChanged { contest, before, state: record.state, at, members };
        let event = Event { at: now, what: EventKind::Contest(changed) };
        self.events.push((Topic::Contest(record.no), event));
    }
}

/// The decision on an action.
type ContestDecision = Result<ContestDone, Rejection>;

impl LedgerRequest for ContestRequest {
    type Answer = ContestDone;

    fn origin(&self) -> Origin {
        self.audited.origin.clone()
    }

    fn needs(&self) -> Needs {
        Needs {
            rows: self.rows(),
            ids: self.ids(),
            makes_boards: matches!(self.action, Action::Start(_)) || self.new_division().is_some(),
            excludes_scores: self.excludes_scores(),
            ..Needs::default()
        }
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        read(plan, self, settings);
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> ContestDecision {
        let stored = state.contests.get(&self.id);
        let before = stored.map(|record| record.state);
        let was_in_review = stored.is_some_and(ContestRecord::is_in_review);
        let kept_before = stored.map(|record| record.kept);
        let mut done = state.decide_action(self, ids)?;
        done.state_changed = before != Some(done.record.state);
        let patched = matches!((&self.action, &done.result), (Action::Patch(..), ActionResult::Nothing));
        if done.state_changed || patched && !done.replayed {
            state.added.add_event((&self.id, &done.record), before, state.time.now);
        }
        if !done.replayed && done.result != ActionResult::Outdated {
            let closed = was_in_review && !done.record.is_in_review();
            // It was open, and has lost its applications.
            let anew = matches!(self.action, Action::Open(_)) && kept_before != Some(done.record.kept);
            let act = self.audit_action(&done.result, done.state_changed || closed || anew);
            let row = act.map(|(action, detail)| self.audited.row(action, self.id.as_str(), detail));
            state.added.audit.extend(row);
        }
        Ok(done)
    }

    fn publish(&self, done: &ContestDone) {
        self.boards.iter().for_each(|board| play::update(board, &done.record));
    }
}

/// Everything an action may touch.
fn read(plan: &mut ReadSet, request: &ContestRequest, settings: &LedgerSettings) {
    let home = settings.currencies.home();
    outcomes::read(plan, request.idempotency.as_ref());
    let ledger = &mut plan.ledger;
    ledger.contests.contests.push(request.id.clone());
    let Some(observed) = &request.observed else { return };
    let entrant = |player: &PlayerId| EntrantKey { contest: observed.no, player: player.clone() };
    let mut wallets = |member: Option<MemberId>, currency: Currency| {
        ledger.wallets.extend(wallets_of([member, None], currency, home));
    };
    let fee = request.fee().map_or(home, |fee| fee.currency);
    // Actions with ids move money.
    if request.ids() > 0 {
        wallets(observed.pool_account(), fee);
    }
    let mut holds: Vec<HoldId> = Vec::new();
    let mut held = |application: Option<&Application>| {
        if let Some(Application { hold: Some(hold), member, .. }) = application {
            holds.push(*hold);
            wallets(*member, fee);
        }
    };
    match &request.action {
        Action::Create { .. }
        | Action::Open(_)
        | Action::Determine(..)
        | Action::External(_)
        | Action::NoteDecision { .. } => {}
        Action::Apply { player, member, .. } => {
            match observed.state {
                ContestState::Running => ledger.contests.members.push(entrant(player)),
                _ => ledger.contests.applications.push(entrant(player)),
            }
            ledger.handles.push(Handle::Player(player.clone()));
            wallets(*member, fee);
            plan.board_names.extend(request.new_division().map(|division| request.id.board(Some(division))));
        }
        Action::Decide { rows, .. } => {
            ledger.contests.applications.extend(rows.iter().map(|(player, _)| entrant(player)));
            rows.iter().for_each(|(_, application)| held(application.as_ref()));
        }
        Action::Withdraw((player, application)) => {
            ledger.contests.applications.push(entrant(player));
            held(application.as_ref());
        }
        Action::Start(rows) => {
            rows.iter().for_each(|(_, application)| held(Some(application)));
            let members = rows.iter().filter(|_| observed.contest.needs_members());
            members.for_each(|(_, application)| wallets(application.member, fee));
            plan.board_names.push(request.id.board(observed.contest.division_size.map(|_| 1)));
        }
        Action::Patch(_, boards)
        | Action::Finish(boards)
        | Action::Settle(boards)
        | Action::Cancel(boards) => {
            plan.boards.extend(boards.iter().map(|(no, _)| *no));
            plan.exclusive |= !boards.is_empty();
        }
        Action::Clear(rows, _) => {
            ledger.contests.applications.extend(rows.iter().map(|(player, _)| entrant(player)));
            rows.iter().for_each(|(_, application)| held(Some(application)));
        }
        Action::Pay(_, rows) => rows.iter().for_each(|row| wallets(Some(row.member), row.currency)),
        Action::Repay(rows) => rows.iter().for_each(|(_, row)| wallets(Some(row.member), row.currency)),
        Action::Refund(rows, _) => rows.iter().for_each(|(_, row)| wallets(row.member, fee)),
    }
    ledger.holds.extend(holds);
}

/// The reply to an action that was done.
fn done(record: ContestRecord, result: ActionResult) -> ContestDecision {
    Ok(ContestDone { record: Box::new(record), replayed: false, state_changed: false, result })
}

/// The reply if the contest has changed since it was read.
fn outdated(record: ContestRecord) -> ContestDecision {
    done(record, ActionResult::Outdated)
}

impl BatchState<'_> {
    fn decide_action(&mut self, request: &ContestRequest, ids: &[Uuid]) -> ContestDecision {
        let settings = self.settings;
        let present = self.contests.get(&request.id).cloned();
        if let Some(outcome) = self.outcomes.replay(request.idempotency.as_ref())? {
            let record = Box::new(present.ok_or(Rejection::ContestNotFound)?);
            let result = match outcome {
                Outcome::Applied(application) => ActionResult::Applied(application),
                _ => ActionResult::Nothing,
            };
            return Ok(ContestDone { record, replayed: true, state_changed: false, result });
        }
        if let Action::Create { spec, series } = &request.action {
            if present.is_some() {
                return Err(Rejection::ContestExists(request.id.as_str().into()));
            }
            let contest = spec.create(&settings.currencies, settings.contests)?;
            let record = ContestRecord::new(ids[0], contest, series.clone(), self.time.now);
            return self.keep(request, record, ActionResult::Nothing);
        }
        let record = present.ok_or(Rejection::ContestNotFound)?;
        // The caller planned the action for this contest: for its fee and prizes, the leaderboards that it has in its state, and
        // its application store.
        let has_boards = request.action.concerns_scores() || matches!(request.action, Action::Apply { .. });
        let is_unchanged = |observed: &ContestRecord| {
            let (then, now) = (&observed.contest, &record.contest);
            (observed.no, observed.kept) == (record.no, record.kept)
                && (then.entry_fee, then.needs_members()) == (now.entry_fee, now.needs_members())
                && (!has_boards || observed.state == record.state)
        };
        if !request.observed.as_deref().is_some_and(is_unchanged) {
            return outdated(record);
        }
        match &request.action {
            Action::Create { .. } => unreachable!("it was made"),
            Action::Patch(spec, boards) => {
                let done = self.patch(request, record, spec)?;
                self.bump(boards);
                Ok(done)
            }
            Action::Open(kept) => self.open(request, record, *kept),
            Action::External(what) => self.external(request, record, *what),
            Action::Apply { player, member, accept } => {
                let hold = HoldId::of_fee(ids[0]);
                if record.state == ContestState::Running {
                    return self.join(request, record, (player, *member), (hold, TransferId(ids[1])));
                }
                let boards = accept.filter(|_| record.contest.auto_accept);
                self.apply(request, record, (player, *member, boards), hold)
            }
            Action::Decide { rows, accept } => self.decide_rows(request, record, rows, *accept),
            Action::NoteDecision { .. } => {
                state::transition(record.state, ContestTrigger::Decide, request.by)?;
                done(record, ActionResult::Nothing)
            }
            Action::Withdraw(row) => self.withdraw(request, record, row),
            Action::Start(rows) => self.start(request, record, rows, ids),
            Action::Finish(boards) => {
                let work = record.work.clone();
                let done = self.change_state(request, record, ContestTrigger::Finish, work)?;
                self.bump(boards);
                Ok(done)
            }
            Action::Cancel(boards) => {
                let done = self.cancel(request, record)?;
                self.bump(boards);
                Ok(done)
            }
            Action::Clear(rows, last) => self.clear(request, record, rows, *last),
            Action::Settle(boards) => {
                let done = self.settle(request, record)?;
                self.bump(boards);
                Ok(done)
            }
            Action::Determine(payouts, first) => {
                self.determine(request, record, (payouts, *first), TransferId(ids[0]))
            }
            Action::Pay(first, rows) => self.pay_prizes(request, record, *first, (rows, ids)),
            Action::Refund(rows, last) => self.refund(request, record, (rows, *last), ids),
            Action::Repay(rows) => self.repay(request, record, rows, ids),
        }
    }

    /// Writes the contest, and the outcome of the action.
    pub(crate) fn keep(
        &mut self,
        request: &ContestRequest,
        record: ContestRecord,
        result: ActionResult,
    ) -> ContestDecision {
        self.contests.set(&request.id, Some(record.clone()));
        let outcome = match &result {
            ActionResult::Applied(application) | ActionResult::Joined(application, _) => {
                Outcome::Applied(*application)
            }
            _ => Outcome::ContestChanged,
        };
        self.outcomes.remember(request.idempotency.as_ref(), outcome);
        done(record, result)
    }

    fn at(&self, request: &ContestRequest, record: &ContestRecord) -> Micros {
        request.at.unwrap_or(self.time.now).max(record.since)
    }

    /// Changes the state, if nothing else happens at once.
    pub(crate) fn change_state(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        event: ContestTrigger,
        work: ContestTask,
    ) -> ContestDecision {
        let row = state::transition(record.state, event, request.by)?;
        if row.to == record.state {
            return self.keep(request, record, ActionResult::Nothing);
        }
        record.check_review()?;
        if event == ContestTrigger::Cancel && record.state == ContestState::Open {
            record.applications.clear();
        }
        let at = self.at(request, &record);
        record.work = work;
        record.enter(row.to, at, self.time.now);
        self.keep(request, record, ActionResult::Nothing)
    }

    fn cancel(&mut self, request: &ContestRequest, record: ContestRecord) -> ContestDecision {
        let work = match record.state {
            ContestState::Open if record.kept == ApplicationLocation::Store => ContestTask::Clear,
            // A running clear of a start comes first.
            ContestState::Running | ContestState::Finished
                if record.work == ContestTask::None && record.contest.entry_fee.is_some() =>
            {
                ContestTask::Refund { after: None }
            }
            _ => record.work.clone(),
        };
        self.change_state(request, record, ContestTrigger::Cancel, work)
    }

    fn bump(&mut self, boards: &[(BoardNo, tally_rules::Definition)]) {
        let change = |(no, definition): &(BoardNo, _)| BoardChange::Redefine(*no, Clone::clone(definition));
        self.added.boards.extend(boards.iter().map(change));
    }

    fn patch(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        spec: &tally_rules::contest::definition::ContestSpec,
    ) -> ContestDecision {
        let settings = self.settings;
        let row = state::transition(record.state, ContestTrigger::Patch, request.by)?;
        record.contest = spec.change(&record.contest, row.from, &settings.currencies, settings.contests)?;
        record.updated_at = self.time.now;
        self.keep(request, record, ActionResult::Nothing)
    }

    pub(crate) fn entrant(record: &ContestRecord, player: &PlayerId) -> EntrantKey {
        EntrantKey { contest: record.no, player: player.clone() }
    }
}
