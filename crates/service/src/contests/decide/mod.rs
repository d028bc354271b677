//! Deciding acts on contests. Pure.
//!
//! The state machine decides each act under the contest's lock, so two starts at once are one start and one rejection. Money,
//! members, leaderboards and state change together or not at all: all rejections come before the first change. Not here: the
//! rows that the caller has read before; if they have changed, the reply is `Outdated`.

mod applications;
mod pieces;

use super::acts::{Act, ActResult, ContestDone, ContestRequest};
use super::play;
use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::{Added, BatchState};
use crate::outcomes;
use std::sync::Arc;
use tally_rules::contest::record::{ApplicationLocation, ContestTask, FAILED_KEPT, Report};
use tally_rules::contest::start::{Facts, invalid_reason, select_members};
use tally_rules::contest::{
    Application, ContestId, ContestMember, Event, Record, State as Stands, division, state,
};
use tally_rules::event::{ContestChanged, Event as Happening, EventKind};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::ledger::{Currency, Hold, HoldId, MemberId, TransferId, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::{BoardChange, BoardNo, BoardRow, EntrantKey, ReadSet, Topic};

impl Added {
    /// Adds the event that a contest was made, changed, or changed its state.
    pub(crate) fn add_event(&mut self, record: &Record, before: Option<Stands>, now: Micros) {
        let is_turned = before != Some(record.state);
        let at = if is_turned { record.since } else { record.updated_at };
        let changed = ContestChanged { before, state: record.state, at, members: record.members };
        let event = Happening { at: now, what: EventKind::Contest(changed) };
        self.events.push((Topic::Contest(record.no), event));
    }
}

/// The decision on an act.
type ContestDecision = Result<ContestDone, Rejection>;

impl LedgerRequest for ContestRequest {
    type Answer = ContestDone;

    fn needs(&self) -> Needs {
        Needs {
            rows: self.rows(),
            ids: self.ids(),
            makes_boards: matches!(self.act, Act::Start(_)),
            excludes_scores: self.excludes_scores(),
            ..Needs::default()
        }
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        read(plan, self, settings);
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> ContestDecision {
        let before = state.contests.get(&self.id).map(|record| record.state);
        let mut done = state.act(self, ids)?;
        done.turned = before != Some(done.record.state);
        let patched = matches!((&self.act, &done.what), (Act::Patch(..), ActResult::Nothing));
        if done.turned || patched && !done.replayed {
            state.added.add_event(&done.record, before, state.time.now);
        }
        Ok(done)
    }

    fn publish(&self, done: &ContestDone) {
        self.boards.iter().for_each(|board| play::update(board, &done.record));
    }
}

/// Everything an act may touch.
fn read(plan: &mut ReadSet, request: &ContestRequest, settings: &LedgerSettings) {
    let home = settings.currencies.home();
    outcomes::read(plan, request.identity.as_ref());
    let ledger = &mut plan.ledger;
    ledger.contests.contests.push(request.id.clone());
    let Some(seen) = &request.seen else { return };
    let entrant = |player: &PlayerId| EntrantKey { contest: seen.no, player: player.clone() };
    let mut wallets = |member: Option<MemberId>, currency: Currency| {
        ledger.wallets.extend(wallets_of([member, None], currency, home));
    };
    let fee = request.fee().map_or(home, |fee| fee.currency);
    let mut holds: Vec<HoldId> = Vec::new();
    let mut held = |application: Option<&Application>| {
        if let Some(Application { hold: Some(hold), member, .. }) = application {
            holds.push(*hold);
            wallets(*member, fee);
        }
    };
    match &request.act {
        Act::Create { .. } | Act::Open(_) | Act::Settle(_) | Act::External(_) => {}
        Act::Apply { player, member } => {
            ledger.contests.applications.push(entrant(player));
            ledger.handles.push(Handle::Player(player.clone()));
            wallets(*member, fee);
        }
        Act::Decide { rows, .. } => {
            ledger.contests.applications.extend(rows.iter().map(|(player, _)| entrant(player)));
            rows.iter().for_each(|(_, application)| held(application.as_ref()));
        }
        Act::Withdraw((player, application)) => {
            ledger.contests.applications.push(entrant(player));
            held(application.as_ref());
        }
        Act::Start(rows) => {
            rows.iter().for_each(|(_, application)| held(Some(application)));
            let members = rows.iter().filter(|_| seen.contest.needs_members());
            members.for_each(|(_, application)| wallets(application.member, fee));
            plan.board_names.push(request.id.board(seen.contest.division_size.map(|_| 1)));
        }
        Act::Patch(_, boards) | Act::Finish(boards) | Act::Cancel(boards) => {
            plan.boards.extend(boards.iter().map(|(no, _)| *no));
            plan.exclusive |= !boards.is_empty();
        }
        Act::Clear(rows, _) => {
            ledger.contests.applications.extend(rows.iter().map(|(player, _)| entrant(player)));
            rows.iter().for_each(|(_, application)| held(Some(application)));
        }
        Act::Pay(_, rows) => rows.iter().for_each(|row| wallets(Some(row.member), row.currency)),
        Act::Repay(rows) => rows.iter().for_each(|(_, row)| wallets(Some(row.member), row.currency)),
        Act::Refund(rows, _) => rows.iter().for_each(|(_, row)| wallets(row.member, fee)),
    }
    ledger.holds.extend(holds);
}

/// The reply to an act that was done.
fn done(record: Record, what: ActResult) -> ContestDecision {
    Ok(ContestDone { record: Box::new(record), replayed: false, turned: false, what })
}

/// The reply if the contest has changed since it was read.
fn outdated(record: Record) -> ContestDecision {
    done(record, ActResult::Outdated)
}

impl BatchState<'_> {
    fn act(&mut self, request: &ContestRequest, ids: &[Uuid]) -> ContestDecision {
        let settings = self.settings;
        let present = self.contests.get(&request.id).cloned();
        if let Some(outcome) = self.outcomes.replay(request.identity.as_ref())? {
            let record = Box::new(present.ok_or(Rejection::ContestNotFound)?);
            let what = match outcome {
                Outcome::Applied(application) => ActResult::Applied(application),
                _ => ActResult::Nothing,
            };
            return Ok(ContestDone { record, replayed: true, turned: false, what });
        }
        if let Act::Create { spec, series } = &request.act {
            if present.is_some() {
                return Err(Rejection::ContestExists);
            }
            let contest = spec.create(&settings.currencies, settings.contests)?;
            let record = Record::new(ids[0], contest, series.clone(), self.time.now);
            return self.keep(request, record, ActResult::Nothing);
        }
        let record = present.ok_or(Rejection::ContestNotFound)?;
        // The caller planned the act for this contest: for its fee and prizes, the leaderboards that it has in its state, and
        // its application store.
        let has_boards = matches!(request.act, Act::Patch(..) | Act::Finish(_) | Act::Cancel(_));
        let is_seen = |seen: &Record| {
            let (then, now) = (&seen.contest, &record.contest);
            (seen.no, seen.kept) == (record.no, record.kept)
                && (then.entry_fee, then.needs_members()) == (now.entry_fee, now.needs_members())
                && (!has_boards || seen.state == record.state)
        };
        if !request.seen.as_deref().is_some_and(is_seen) {
            return outdated(record);
        }
        match &request.act {
            Act::Create { .. } => unreachable!("it was made"),
            Act::Patch(spec, boards) => {
                let done = self.patch(request, record, spec)?;
                self.bump(boards);
                Ok(done)
            }
            Act::Open(kept) => self.open(request, record, *kept),
            Act::External(what) => self.external(request, record, *what),
            Act::Apply { player, member } => {
                self.apply(request, record, (player, *member), HoldId::of_fee(ids[0]))
            }
            Act::Decide { rows, accept } => self.decide_rows(request, record, rows, *accept),
            Act::Withdraw(row) => self.withdraw(request, record, row),
            Act::Start(rows) => self.start(request, record, rows, ids),
            Act::Finish(boards) => {
                let work = record.work.clone();
                let done = self.turn(request, record, Event::Finish, work)?;
                self.bump(boards);
                Ok(done)
            }
            Act::Cancel(boards) => {
                let work = match record.state {
                    Stands::Open if record.kept == ApplicationLocation::Store => ContestTask::Clear,
                    // A running clear of a start comes first.
                    Stands::Running
                        if record.work == ContestTask::None && record.contest.entry_fee.is_some() =>
                    {
                        ContestTask::Refund { after: None }
                    }
                    _ => record.work.clone(),
                };
                let done = self.turn(request, record, Event::Cancel, work)?;
                self.bump(boards);
                Ok(done)
            }
            Act::Clear(rows, last) => self.clear(request, record, rows, *last),
            Act::Settle(payouts) => self.settle(request, record, payouts),
            Act::Pay(first, rows) => self.pay_prizes(request, record, *first, (rows, ids)),
            Act::Refund(rows, last) => self.refund(request, record, (rows, *last), ids),
            Act::Repay(rows) => self.repay(request, record, rows, ids),
        }
    }

    /// Writes the contest, and the outcome of the act.
    pub(crate) fn keep(
        &mut self,
        request: &ContestRequest,
        record: Record,
        what: ActResult,
    ) -> ContestDecision {
        self.contests.set(&request.id, Some(record.clone()));
        let outcome = match &what {
            ActResult::Applied(application) => Outcome::Applied(*application),
            _ => Outcome::ContestChanged,
        };
        self.outcomes.remember(request.identity.as_ref(), outcome);
        done(record, what)
    }

    fn at(&self, request: &ContestRequest, record: &Record) -> Micros {
        request.at.unwrap_or(self.time.now).max(record.since)
    }

    /// Changes the state, if nothing else happens at once.
    pub(crate) fn turn(
        &mut self,
        request: &ContestRequest,
        mut record: Record,
        event: Event,
        work: ContestTask,
    ) -> ContestDecision {
        let row = state::transition(record.state, event, request.by)?;
        if row.to == record.state {
            return self.keep(request, record, ActResult::Nothing);
        }
        if event == Event::Cancel && record.state == Stands::Open {
            record.applications.clear();
        }
        let at = self.at(request, &record);
        record.work = work;
        record.enter(row.to, at, self.time.now);
        self.keep(request, record, ActResult::Nothing)
    }

    fn bump(&mut self, boards: &[(BoardNo, tally_rules::Definition)]) {
        let change = |(no, definition): &(BoardNo, _)| BoardChange::Redefine(*no, Clone::clone(definition));
        self.added.boards.extend(boards.iter().map(change));
    }

    fn patch(
        &mut self,
        request: &ContestRequest,
        mut record: Record,
        spec: &tally_rules::contest::definition::ContestSpec,
    ) -> ContestDecision {
        let settings = self.settings;
        let row = state::transition(record.state, Event::Patch, request.by)?;
        record.contest = spec.change(&record.contest, row.from, &settings.currencies, settings.contests)?;
        record.updated_at = self.time.now;
        self.keep(request, record, ActResult::Nothing)
    }

    pub(crate) fn entrant(record: &Record, player: &PlayerId) -> EntrantKey {
        EntrantKey { contest: record.no, player: player.clone() }
    }

    fn start(
        &mut self,
        request: &ContestRequest,
        mut record: Record,
        rows: &[(PlayerId, Application)],
        ids: &[Uuid],
    ) -> ContestDecision {
        let row = state::transition(record.state, Event::Start, request.by)?;
        if request.seen.as_ref().is_none_or(|seen| {
            (seen.revision, seen.contest.division_size) != (record.revision, record.contest.division_size)
        }) {
            return outdated(record);
        }
        let (fee, needs) = (record.contest.entry_fee, record.contest.needs_members());
        let checked = rows.iter().map(|(player, application)| {
            let hold: Option<Hold> = application.hold.and_then(|hold| self.book.hold(&hold));
            let open = |member| self.must_be_open(member).is_ok();
            let member_is_open = needs && application.member.is_some_and(open);
            let is_staff = record.contest.is_staff(player);
            let facts =
                Facts { application: Some(application), member_is_open, is_staff, hold: hold.as_ref() };
            (player.clone(), *application, invalid_reason(facts, fee.is_some(), needs, self.time.now))
        });
        // A start by the clock does not fail for one bad row.
        let on_invalid = match request.by {
            tally_rules::contest::ActorKind::Clock => tally_rules::contest::OnInvalid::Skip,
            _ => record.contest.on_invalid,
        };
        let (good, failed) = select_members(checked.collect::<Vec<_>>(), on_invalid)?;
        let members = u32::try_from(good.len()).unwrap_or(u32::MAX);
        let reference: Arc<str> = request.id.board(None).as_str().into();
        for ((place, (player, application)), id) in (0..).zip(good).zip(ids) {
            if let Some(hold) = application.hold {
                let whole = Ending::Capture { amount: None, to: None };
                self.book.end_for(hold, whole, (TransferId(*id), Some(&reference)), self.time)?;
            }
            let division = division::of(place, record.contest.division_size);
            let enrolled = ContestMember { place, division, member: application.member };
            self.added.members.push((Self::entrant(&record, &player), enrolled));
        }
        let boards = self.make_boards(&request.id, &record, members);
        let at = self.at(request, &record);
        record.work = match record.kept {
            ApplicationLocation::Store => self.clear_at_once(&record, rows),
            ApplicationLocation::Redis(_) | ApplicationLocation::Lost => ContestTask::None,
        };
        record.applications.clear();
        record.members = members;
        record.report = Some(Report {
            enrolled: members,
            failed: u32::try_from(failed.len()).unwrap_or(u32::MAX),
            first_failed: failed.iter().take(FAILED_KEPT).cloned().collect(),
        });
        record.enter(row.to, at, self.time.now);
        self.keep(request, record, ActResult::Started(failed, boards))
    }

    /// The leaderboard, or that of each division.
    fn make_boards(&mut self, id: &ContestId, record: &Record, members: u32) -> Vec<BoardRow> {
        let divisions: Vec<Option<u32>> = match record.contest.division_size {
            None => vec![None],
            Some(size) => division::sizes(members, size).map(|(n, _)| Some(n)).collect(),
        };
        let mut made = Vec::with_capacity(divisions.len());
        for division in divisions {
            let no = self.added.next_board;
            self.added.next_board = BoardNo(no.0 + 1);
            let definition = record.contest.leaderboard.clone().with_prizes_from(self.time.now);
            made.push(BoardRow { no, id: id.board(division), definition, created_at: self.time.now });
        }
        self.added.boards.extend(made.iter().cloned().map(BoardChange::Create));
        made
    }
}
