//! Applying, deciding on applications, and taking one back; and what is held for them.

use super::{ContestDecision, outdated};
use crate::contests::actions::{ActionResult, ContestRequest, ExternalChange, ObservedApplication};
use crate::ledger::state::BatchState;
use tally_rules::contest::record::{ApplicationLocation, ContestTask};
use tally_rules::contest::{Application, ContestRecord, ContestState, ContestTrigger, Status, state};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{HoldId, MemberId, TransferId, WalletKey};
use tally_rules::{PlayerId, Rejection};
use tally_store::EntrantKey;

impl BatchState<'_> {
    /// Opens a contest in this application store; or again, if its applications are lost.
    pub(crate) fn open(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        kept: ApplicationLocation,
    ) -> ContestDecision {
        let anew = record.state == ContestState::Open && record.kept != kept;
        record.kept = kept;
        if !anew {
            return self.change_state(request, record, ContestTrigger::Open, ContestTask::None);
        }
        state::transition(record.state, ContestTrigger::Decide, request.by)?;
        record.revision += 1;
        // A start that has passed is over.
        record.enter(ContestState::Open, self.time.now, self.time.now);
        self.keep(request, record, ActionResult::Nothing)
    }

    /// Notes a change of applications that are not in the store.
    pub(crate) fn external(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        what: ExternalChange,
    ) -> ContestDecision {
        match what {
            ExternalChange::Thaw => {
                state::transition(record.state, ContestTrigger::Start, request.by)?;
                record.revision += 1;
            }
            ExternalChange::Lost if record.state == ContestState::Open => {
                record.kept = ApplicationLocation::Lost
            }
            ExternalChange::Cleared if record.is_to_be_cleared() => record.kept = ApplicationLocation::Store,
            ExternalChange::Lost | ExternalChange::Cleared => {}
        }
        self.keep(request, record, ActionResult::Nothing)
    }

    pub(crate) fn apply(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        (player, member, accept): (&PlayerId, Option<MemberId>, Option<u32>),
        id: HoldId,
    ) -> ContestDecision {
        state::transition(record.state, ContestTrigger::Apply, request.by)?;
        record.check_may_apply(self.expected)?;
        let key = Self::entrant(&record, player);
        let is_staff = record.contest.is_staff(player);
        record.applications.may_apply(
            self.applications.get(&key),
            is_staff,
            self.settings.contests.applications_max,
        )?;
        if self.has_moved(&record, player, member) {
            return outdated(record);
        }
        let hold = self.hold_fee(&record, member, id)?;
        let member = member.filter(|_| record.contest.needs_members());
        let mut application = record.applications.apply(self.time.now, member, hold);
        if let Some(boards) = accept {
            let room = record.contest.room(boards);
            // Without room it waits.
            if let Ok(changed) = record.applications.accept(Some(&application), is_staff, room) {
                application = changed.now.unwrap_or(application);
                record.revision += 1;
            }
        }
        self.applications.set(&key, Some(application));
        self.keep(request, record, ActionResult::Applied(application))
    }

    /// Whether a player that needs a member has another one than was read.
    pub(super) fn has_moved(
        &self,
        record: &ContestRecord,
        player: &PlayerId,
        member: Option<MemberId>,
    ) -> bool {
        record.contest.needs_members() && self.handles.get(&Handle::Player(player.clone())).copied() != member
    }

    /// Holds the fee, if there is one, in the wallet of an open member.
    pub(super) fn hold_fee(
        &mut self,
        record: &ContestRecord,
        member: Option<MemberId>,
        id: HoldId,
    ) -> Result<Option<HoldId>, Rejection> {
        if !record.contest.needs_members() {
            return Ok(None);
        }
        let member = member.ok_or(Rejection::PlayerWithoutWallet(None))?;
        self.must_be_open(member)?;
        let Some(fee) = record.contest.entry_fee else { return Ok(None) };
        let wallet = WalletKey { member, currency: fee.currency };
        let placed = self.book.place(id, wallet, fee.amount, None, self.time.now);
        placed.map_err(|rejection| match rejection {
            Rejection::WalletNotFound(_) => Rejection::PlayerWithoutWallet(Some(fee.currency)),
            Rejection::MemberNotFound => Rejection::PlayerWithoutWallet(None),
            rejection => rejection,
        })?;
        Ok(Some(id))
    }

    pub(crate) fn must_be_open(&self, member: MemberId) -> Result<(), Rejection> {
        match self.book.wallet(&WalletKey { member, currency: self.settings.currencies.home() }) {
            None => Err(Rejection::PlayerWithoutWallet(None)),
            Some(wallet) if wallet.closed => Err(Rejection::MemberClosed(member)),
            Some(_) => Ok(()),
        }
    }

    /// Voids a hold, if there is one.
    pub(crate) fn release(&mut self, hold: Option<HoldId>) {
        if let Some(hold) = hold {
            // A hold that has ended in another way needs no void.
            let _ended = self.book.end(hold, Ending::Void, TransferId(hold.0), self.time);
        }
    }

    /// Whether an application is still as it was read, as far as the read set depends on it.
    pub(crate) fn is_unchanged(&self, key: &EntrantKey, observed: Option<&Application>) -> bool {
        self.applications.get(key).and_then(|now| now.hold) == observed.and_then(|observed| observed.hold)
    }

    pub(crate) fn decide_rows(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        rows: &[ObservedApplication],
        accept: Option<u32>,
    ) -> ContestDecision {
        state::transition(record.state, ContestTrigger::Decide, request.by)?;
        let key = |player: &PlayerId| Self::entrant(&record, player);
        if !rows.iter().all(|(player, observed)| self.is_unchanged(&key(player), observed.as_ref())) {
            return outdated(record);
        }
        let mut results = Vec::with_capacity(rows.len());
        for (player, _) in rows {
            let key = Self::entrant(&record, player);
            let present = self.applications.get(&key).copied();
            let changed = match accept {
                Some(boards) => {
                    let (is_staff, room) = (record.contest.is_staff(player), record.contest.room(boards));
                    record.applications.accept(present.as_ref(), is_staff, room)
                }
                None => record.applications.reject(present.as_ref()),
            };
            results.push(changed.map(|changed| {
                self.release(changed.release);
                self.applications.set(&key, changed.now);
                changed.now.map_or(Status::Rejected, |now| now.status)
            }));
        }
        record.revision += 1;
        self.keep(request, record, ActionResult::Decided(results))
    }

    pub(crate) fn withdraw(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        (player, observed): &ObservedApplication,
    ) -> ContestDecision {
        state::transition(record.state, ContestTrigger::Withdraw, request.by)?;
        let key = Self::entrant(&record, player);
        if !self.is_unchanged(&key, observed.as_ref()) {
            return outdated(record);
        }
        let present = self.applications.get(&key).copied();
        let changed = record.applications.withdraw(present.as_ref())?;
        self.release(changed.release);
        self.applications.set(&key, changed.now);
        record.revision += 1;
        self.keep(request, record, ActionResult::Nothing)
    }
}
