//! A step of the payment of a closed period, as the ledger's lane does it.
//!
//! The payouts are stored once; each piece is paid if it is still the next. So a step that is sent twice, after a crash or by
//! two servers, is done once. Not here: which steps are due (`prizes`), and those of a caller that pays again (`pay_again`).

use crate::contests::pay_again::detail_of;
use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::BatchState;
use crate::outcomes;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{ContestId, ContestState, Payout};
use tally_rules::event::{Event, EventKind, PeriodPaid};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::ledger::{TransferKind, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::period::PeriodPayment;
use tally_rules::{BoardId, Micros, Origin, Rejection};
use tally_store::{PayoutKey, ReadSet, Topic, WindowKey};

/// A step of the payment of a closed period.
#[derive(Clone, Debug)]
pub(crate) struct PaymentRequest {
    /// The leaderboard and the closed period.
    pub(crate) key: WindowKey,
    /// The step itself.
    pub(crate) action: PaymentAction,
    /// The caller, if it is no step of the server itself.
    pub(crate) caller: Option<PaymentCaller>,
}

/// What a caller that pays again sends with a step.
#[derive(Clone, Debug)]
pub(crate) struct PaymentCaller {
    /// The actor, and the id of the act in the audit log.
    pub(crate) audited: Audited,
    /// The idempotency key, if the step is the first one.
    pub(crate) idempotency: Option<IdempotencyKey>,
}

/// The reply to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaymentDone {
    /// It was done, or did not have to be.
    Done,
    /// The payment has changed since its rows were read; nothing was done.
    Outdated,
    /// An earlier request with this idempotency key has done it.
    Replayed,
}

/// A period that is over.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// The leaderboard that has it.
    pub(crate) board: BoardId,
    /// Its public name.
    pub(crate) period: String,
    /// The instant from which it takes no more scores.
    pub(crate) since: Micros,
}

#[derive(Clone, Debug)]
pub(crate) enum PaymentAction {
    /// Stores the payouts, unless that was done.
    Begin(Over, Vec<Payout>),
    /// Pays the next prizes, beginning with that number.
    Pay(u32, Vec<Payout>),
    /// Pays prizes that were left unpaid, if the payment is still this one. A period without prizes has none.
    Repay(Option<PeriodPayment>, Vec<(u32, Payout)>),
}

impl PaymentRequest {
    /// A step of the server itself.
    pub(crate) fn of_server(key: WindowKey, action: PaymentAction) -> Self {
        Self { key, action, caller: None }
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.caller.as_ref()?.idempotency.as_ref()
    }

    /// Pays unpaid rows of a payment. A winner that is a member by now must still be the player that it was found by.
    fn repay(
        &self,
        state: &mut BatchState<'_>,
        payment: PeriodPayment,
        (rows, ids): (&[(u32, Payout)], &[Uuid]),
    ) {
        let is_its = |row: &Payout| match handle_of(row) {
            Some(handle) => state.handles.get(&handle) == Some(&row.member),
            None => true,
        };
        let rows: Vec<(u32, Payout)> = rows.iter().filter(|(_, row)| is_its(row)).cloned().collect();
        let act = self.caller.as_ref().map(|caller| &caller.audited);
        let became = state.repay_rows(payment.no, (&rows, ids), (&reference(&payment), act), prize);
        if let (Some(caller), Some(paid)) = (&self.caller, detail_of(&became)) {
            let (board, detail) = (payment.board.as_str(), format!("{}: {paid}", payment.period));
            let row = caller.audited.row(AuditAction::PrizesRepaid, board, Some(detail.into()));
            state.added.audit.push(row);
        }
        if !became.is_empty() {
            let at = state.time.now.max(payment.at.plus(1));
            state.payments.set(&self.key, Some(PeriodPayment { at, ..payment }));
        }
    }
}

impl LedgerRequest for PaymentRequest {
    type Answer = PaymentDone;

    fn needs(&self) -> Needs {
        let (rows, ids) = match &self.action {
            PaymentAction::Begin(_, rows) => (rows.len(), 1),
            PaymentAction::Pay(_, rows) => (rows.len(), rows.len()),
            PaymentAction::Repay(_, rows) => (rows.len(), rows.len()),
        };
        Needs { rows, ids, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        self.caller.as_ref().map_or(Origin::BACKGROUND, |caller| caller.audited.origin.clone())
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        outcomes::read(plan, self.idempotency());
        let home = settings.currencies.home();
        let ledger = &mut plan.ledger;
        ledger.contests.payments.push(self.key);
        let mut wallets =
            |row: &Payout| ledger.wallets.extend(wallets_of([Some(row.member), None], row.currency, home));
        match &self.action {
            PaymentAction::Begin(over, _) => {
                ledger.contests.contests.extend(ContestId::of_board(&over.board).map(|(id, _)| id));
            }
            PaymentAction::Pay(_, rows) => rows.iter().filter(|row| row.has_member()).for_each(wallets),
            PaymentAction::Repay(_, rows) => {
                rows.iter().for_each(|(_, row)| wallets(row));
                ledger.handles.extend(rows.iter().filter_map(|(_, row)| handle_of(row)));
            }
        }
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<PaymentDone, Rejection> {
        if state.outcomes.replay(self.idempotency())?.is_some() {
            return Ok(PaymentDone::Replayed);
        }
        let present = state.payments.get(&self.key).cloned();
        match (&self.action, present) {
            (PaymentAction::Begin(over, rows), None) => {
                let rows = if is_cancelled(state, over) { &[] } else { &rows[..] };
                let (board, period, count) = (over.board.clone(), over.period.clone(), count(rows));
                let payment = PeriodPayment { no: ids[0], board, period, count, done: 0, at: state.time.now };
                let key = |no| PayoutKey { contest: payment.no, no };
                state.added.payouts.extend((0..).zip(rows).map(|(no, row)| (key(no), row.clone())));
                add_event(state, self.key, &payment);
                state.payments.set(&self.key, Some(payment));
            }
            (PaymentAction::Pay(first, rows), Some(mut payment)) if payment.done == *first => {
                let reference = reference(&payment);
                (payment.done, _) = state.pay_rows((payment.no, *first), (rows, ids), &reference, prize)?;
                add_event(state, self.key, &payment);
                state.payments.set(&self.key, Some(payment));
            }
            // The rows were read after the payment, and each repayment changes its instant: none is paid twice.
            (PaymentAction::Repay(seen, rows), present) => {
                if present != *seen {
                    return Ok(PaymentDone::Outdated);
                }
                if let Some(payment) = present {
                    self.repay(state, payment, (rows, ids));
                }
                state.outcomes.remember(self.idempotency(), Outcome::ContestChanged);
            }
            // Another server has done it.
            (PaymentAction::Begin(..) | PaymentAction::Pay(..), _) => {}
        }
        Ok(PaymentDone::Done)
    }
}

/// The handle of a winner that was no member, which names the member that the row has now.
fn handle_of(row: &Payout) -> Option<Handle> {
    let was_none = row.paid == Some(Err(UnpaidReason::NoMember));
    was_none.then(|| Handle::Player(row.player.clone()))
}

/// Adds the event that all prizes of a period had their turn.
fn add_event(state: &mut BatchState<'_>, key: WindowKey, payment: &PeriodPayment) {
    if !payment.is_open() {
        let paid = PeriodPaid { period: payment.period.clone(), prizes: payment.count };
        let event = Event { at: state.time.now, what: EventKind::PeriodPaid(paid) };
        state.added.events.push((Topic::Board(key.board), event));
    }
}

/// Whether the contest of a period was cancelled before the period was over.
fn is_cancelled(state: &BatchState<'_>, over: &Over) -> bool {
    let contest = ContestId::of_board(&over.board).and_then(|(id, _)| state.contests.get(&id));
    contest.is_some_and(|record| record.state == ContestState::Cancelled && record.since < over.since)
}

fn prize(_no: u32, payout: &Payout) -> TransferKind {
    TransferKind::Prize { to: payout.member }
}

/// The reference of its entries.
fn reference(payment: &PeriodPayment) -> Arc<str> {
    format!("{}/{}", payment.board.as_str(), payment.period).into()
}

fn count(rows: &[Payout]) -> u32 {
    u32::try_from(rows.len()).expect("fewer prizes than 2^32")
}
