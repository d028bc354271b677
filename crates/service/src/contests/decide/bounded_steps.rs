//! Bounded steps of a contest that takes several transactions: each is done if it is still the next.
//!
//! The contest's row names the next step, and the transaction locks it. So a step that is sent twice, after a crash or by two
//! servers, is done once.

use super::{ContestDecision, done, outdated};
use crate::contests::actions::{ActionResult, ContestRequest};
use crate::contests::bounded_steps::STEP_ROWS;
use crate::ledger::state::BatchState;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, AuditEntry, AuditId, Audited};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{
    ActorKind, Application, ContestPlayer, ContestRecord, ContestState, ContestTrigger, Payout, state,
};
use tally_rules::ledger::{Amount, Currency, TransferId, TransferKind, TransferRequest, Uuid};
use tally_rules::{PlayerId, Rejection};
use tally_store::{EntrantKey, PayoutKey};

impl BatchState<'_> {
    /// Clears all applications with the start, if the accepted ones are all and fit into one step: it saves two transactions.
    /// The revision proves that they have not changed, so they are not read again. Returns the remaining work.
    pub(crate) fn clear_at_once(
        &mut self,
        record: &ContestRecord,
        rows: &[(PlayerId, Application)],
    ) -> ContestTask {
        if rows.len() > STEP_ROWS || record.applications.all() as usize != rows.len() {
            return ContestTask::Clear;
        }
        for (player, application) in rows {
            let key = Self::entrant(record, player);
            self.applications.load_known(key.clone(), || Some(*application));
            self.take_away(&key, application);
        }
        ContestTask::None
    }

    /// Removes an application; the hold of a player that did not become a member is voided.
    fn take_away(&mut self, key: &EntrantKey, application: &Application) {
        self.release(application.hold);
        self.applications.set(key, None);
    }

    /// Clears the next applications; with the last ones that is done.
    pub(crate) fn clear(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        rows: &[(PlayerId, Application)],
        last: bool,
    ) -> ContestDecision {
        if record.work != ContestTask::Clear {
            return done(record, ActionResult::Nothing);
        }
        for (player, application) in rows {
            let key = Self::entrant(&record, player);
            // Another server may have cleared it meanwhile.
            if self.applications.get(&key).is_some() {
                self.take_away(&key, application);
            }
        }
        if last {
            let refunds = record.state == ContestState::Cancelled && record.members > 0;
            let refunds = refunds && record.contest.entry_fee.is_some();
            record.work = if refunds { ContestTask::Refund { after: None } } else { ContestTask::None };
        }
        self.keep(request, record, ActionResult::Nothing)
    }

    /// Closes the review, once: no ban counts from now on.
    pub(crate) fn settle(&mut self, request: &ContestRequest, mut record: ContestRecord) -> ContestDecision {
        state::transition(record.state, ContestTrigger::Settle, request.by)?;
        if record.is_in_review() {
            // The remaining work of a start comes first.
            if record.work != ContestTask::None {
                return outdated(record);
            }
            record.work = ContestTask::Determine;
        }
        self.keep(request, record, ActionResult::Nothing)
    }

    /// Stores the prizes, once.
    pub(crate) fn determine(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        (payouts, first): (&[Payout], u32),
        id: TransferId,
    ) -> ContestDecision {
        if record.work != ContestTask::Determine {
            return done(record, ActionResult::Nothing);
        }
        self.balance_pool(request, &mut record, (payouts, first), id)?;
        let count = u32::try_from(payouts.len()).expect("fewer prizes than 2^32");
        record.prizes = Some(count);
        record.work = ContestTask::Pay { done: 0 };
        let key = |no| PayoutKey { contest: record.no, no };
        self.added.payouts.extend((0..).zip(payouts).map(|(no, payout)| (key(no), payout.clone())));
        self.keep(request, record, ActionResult::Nothing)
    }

    /// Pays the next prizes, if they are still the next.
    pub(crate) fn pay_prizes(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        first: u32,
        (rows, ids): (&[Payout], &[Uuid]),
    ) -> ContestDecision {
        if record.work != (ContestTask::Pay { done: first }) {
            return done(record, ActionResult::Nothing);
        }
        let reference: Arc<str> = request.id.board(None).as_str().into();
        let what = |no, payout: &Payout| record.transfer_of(no, payout);
        let (done, became) = self.pay_rows((record.no, first), (rows, ids), &reference, what)?;
        record.work = ContestTask::Pay { done };
        if record.prizes.is_none_or(|count| done >= count) {
            record.work = ContestTask::None;
            record.enter(ContestState::Settled, self.time.now.max(record.since), self.time.now);
        }
        self.keep(request, record, ActionResult::Paid(became))
    }

    /// Pays consecutive prizes under one number, up to the first that cannot be paid now. Returns the number of the next one
    /// and the outcome of each. Rejects if the very first cannot be paid.
    pub(crate) fn pay_rows(
        &mut self,
        (contest, first): (Uuid, u32),
        (rows, ids): (&[Payout], &[Uuid]),
        reference: &Arc<str>,
        what: impl Fn(u32, &Payout) -> TransferKind,
    ) -> Result<(u32, Vec<Result<(), UnpaidReason>>), Rejection> {
        let (mut next, mut became) = (first, Vec::with_capacity(rows.len()));
        for (payout, id) in rows.iter().zip(ids) {
            let pay = |(what, sum)| self.pay_out(what, sum, reference, *id);
            let order = (what(next, payout), (payout.currency, payout.amount));
            let paid = match payout.has_member().then_some(order).map(pay) {
                None => Err(UnpaidReason::NoMember),
                Some(Err(rejection)) if became.is_empty() => return Err(rejection),
                Some(Err(_)) => break,
                Some(Ok(paid)) => paid,
            };
            became.push(paid.map(drop));
            let key = PayoutKey { contest, no: next };
            self.added.payouts.insert(key, Payout { paid: Some(paid), ..payout.clone() });
            next += 1;
        }
        Ok((next, became))
    }

    /// Pays a prize, or a fee back. What the wallet will never take is stored with the reason; on any other rejection the step
    /// is tried again.
    pub(crate) fn pay_out(
        &mut self,
        what: TransferKind,
        (currency, amount): (Currency, Amount),
        reference: &Arc<str>,
        id: Uuid,
    ) -> Result<Result<TransferId, UnpaidReason>, Rejection> {
        let request = TransferRequest { what, currency, amount, reference: Some(Arc::clone(reference)) };
        match self.book.post(TransferId(id), &request, self.expected) {
            Ok(_) => Ok(Ok(TransferId(id))),
            Err(Rejection::LimitExceeded(_)) => Ok(Err(UnpaidReason::LimitExceeded)),
            Err(Rejection::MemberClosed(_)) => Ok(Err(UnpaidReason::MemberClosed)),
            Err(rejection) => Err(rejection),
        }
    }

    /// Pays rows that an earlier release left unpaid by mistake.
    pub(crate) fn repay(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        rows: &[(u32, Payout)],
        ids: &[Uuid],
    ) -> ContestDecision {
        // The rows were read after the contest, and each repayment changes the revision: none is paid twice.
        if request.observed.as_ref().is_none_or(|observed| observed.revision != record.revision) {
            return outdated(record);
        }
        let reference: Arc<str> = request.id.board(None).as_str().into();
        let what = |no, payout: &Payout| record.transfer_of(no, payout);
        // The server itself pays what an earlier release left unpaid.
        let act = (request.by != ActorKind::Clock).then_some(&request.audited);
        let became = self.repay_rows(record.no, (rows, ids), (&reference, act), what);
        record.revision += 1;
        self.keep(request, record, ActionResult::Paid(became))
    }

    /// Pays such rows of one number, and leaves those as they are that cannot be paid now. Each payment of an act has a row of its
    /// own in the audit log, so that the log finds it by the player.
    pub(crate) fn repay_rows(
        &mut self,
        contest: Uuid,
        (rows, ids): (&[(u32, Payout)], &[Uuid]),
        (reference, act): (&Arc<str>, Option<&Audited>),
        what: impl Fn(u32, &Payout) -> TransferKind,
    ) -> Vec<Result<(), UnpaidReason>> {
        let mut became = Vec::with_capacity(rows.len());
        for ((no, payout), id) in rows.iter().zip(ids) {
            let what = what(*no, payout);
            if let Ok(paid) = self.pay_out(what, (payout.currency, payout.amount), reference, *id) {
                became.push(paid.map(drop));
                if let (Some(act), Ok(_)) = (act, paid) {
                    self.added.audit.push(row_of_payment(act, payout, reference, *id));
                }
                let key = PayoutKey { contest, no: *no };
                self.added.payouts.insert(key, Payout { paid: Some(paid), ..payout.clone() });
            }
        }
        became
    }

    /// Pays the next fees back, less what was reversed of them, if they are still the next. Each is stored under its member's
    /// place.
    pub(crate) fn refund(
        &mut self,
        request: &ContestRequest,
        mut record: ContestRecord,
        (rows, last): (&[(PlayerId, ContestPlayer)], bool),
        ids: &[Uuid],
    ) -> ContestDecision {
        if request.observed.as_ref().is_none_or(|observed| observed.work != record.work) {
            return done(record, ActionResult::Nothing);
        }
        let Some(fee) = record.contest.entry_fee else { return done(record, ActionResult::Nothing) };
        let reference: Arc<str> = request.id.board(None).as_str().into();
        let (mut became, mut done) = (Vec::with_capacity(rows.len()), 0);
        for ((player, enrolled), id) in rows.iter().zip(ids) {
            done += 1;
            let Some(member) = enrolled.member else { continue };
            let (what, currency) = (record.refund_to(member), fee.currency);
            let left = Amount::new(fee.amount.units() - record.reversed_fee(member)).ok();
            let amount = left.unwrap_or(fee.amount);
            let paid = match left.map(|left| self.pay_out(what, (currency, left), &reference, *id)) {
                None => Err(UnpaidReason::Reversed),
                Some(Err(rejection)) if became.is_empty() => return Err(rejection),
                Some(Err(_)) => {
                    done -= 1;
                    break;
                }
                Some(Ok(paid)) => paid,
            };
            became.push(paid.map(drop));
            let (player, division) = (player.clone(), enrolled.division);
            let refund = Payout { player, member, division, rank: 0, currency, amount, paid: Some(paid) };
            let key = PayoutKey { contest: record.no, no: enrolled.place };
            self.added.payouts.insert(key, refund);
        }
        record.work = match rows[..done].last() {
            Some((player, _)) if !last || done < rows.len() => {
                ContestTask::Refund { after: Some(player.clone()) }
            }
            Some(_) | None => ContestTask::None,
        };
        self.keep(request, record, ActionResult::Paid(became))
    }
}

/// The row of one payment of an act, under the id of the transfer: one act has one id, and may have many payments. The name is that
/// of the player at the time of the contest, and the id of the member is by which an erasure finds the row.
fn row_of_payment(act: &Audited, payout: &Payout, reference: &str, id: Uuid) -> (AuditId, AuditEntry) {
    // A fee that is paid back has no rank.
    let kind = if payout.rank == 0 { "refund" } else { "prize" };
    let (units, currency) = (payout.amount.units(), payout.currency);
    let member = payout.member.0;
    let detail = format!("{kind}: {units} {currency} to {member} of {reference}, transaction {id}");
    let act = Audited { id: AuditId(id), ..act.clone() };
    act.row(AuditAction::PlayerPaid, payout.player.as_str(), Some(detail.into()))
}
