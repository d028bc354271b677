//! A step of the payment of a closed period, as the ledger's lane does it.
//!
//! The payouts are stored once; each piece is paid if it is still the next. So a step that is sent twice, after a crash or by
//! two servers, is done once. Not here: which steps are due (`prizes`).

use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::BatchState;
use std::sync::Arc;
use tally_rules::contest::{ContestId, Payout, State as Stands};
use tally_rules::event::{Event, EventKind, PeriodPaid};
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::ledger::{TransferKind, Uuid};
use tally_rules::period::Payment;
use tally_rules::{BoardId, Micros, Origin, Rejection};
use tally_store::{PayoutKey, ReadSet, Topic, WindowKey};

/// A step of the payment of a closed period.
#[derive(Clone, Debug)]
pub(crate) struct PaymentRequest {
    /// The leaderboard and the closed period.
    pub(crate) key: WindowKey,
    /// The step itself.
    pub(crate) action: PaymentAction,
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
    /// Pays prizes that were left unpaid by mistake.
    Repay(Payment, Vec<(u32, Payout)>),
}

impl LedgerRequest for PaymentRequest {
    type Answer = ();

    fn needs(&self) -> Needs {
        let (rows, ids) = match &self.action {
            PaymentAction::Begin(_, rows) => (rows.len(), 1),
            PaymentAction::Pay(_, rows) => (rows.len(), rows.len()),
            PaymentAction::Repay(_, rows) => (rows.len(), rows.len()),
        };
        Needs { rows, ids, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        Origin::BACKGROUND
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        let home = settings.currencies.home();
        let ledger = &mut plan.ledger;
        ledger.contests.payments.push(self.key);
        let mut wallets =
            |row: &Payout| ledger.wallets.extend(wallets_of([Some(row.member), None], row.currency, home));
        match &self.action {
            PaymentAction::Begin(over, _) => {
                ledger.contests.contests.extend(ContestId::of_board(&over.board).map(|(id, _)| id));
            }
            PaymentAction::Pay(_, rows) => rows.iter().for_each(wallets),
            PaymentAction::Repay(_, rows) => rows.iter().for_each(|(_, row)| wallets(row)),
        }
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<(), Rejection> {
        let present = state.payments.get(&self.key).cloned();
        match (&self.action, present) {
            (PaymentAction::Begin(over, rows), None) => {
                let rows = if is_cancelled(state, over) { &[] } else { &rows[..] };
                let (board, period, count) = (over.board.clone(), over.period.clone(), count(rows));
                let payment = Payment { no: ids[0], board, period, count, done: 0, at: state.time.now };
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
            (PaymentAction::Repay(seen, rows), Some(payment)) if payment == *seen => {
                state.repay_rows(payment.no, (rows, ids), &reference(&payment), prize);
                let at = state.time.now.max(payment.at.plus(1));
                state.payments.set(&self.key, Some(Payment { at, ..payment }));
            }
            // Another server has done it.
            (PaymentAction::Begin(..) | PaymentAction::Pay(..) | PaymentAction::Repay(..), _) => {}
        }
        Ok(())
    }
}

/// Adds the event that all prizes of a period had their turn.
fn add_event(state: &mut BatchState<'_>, key: WindowKey, payment: &Payment) {
    if !payment.is_open() {
        let paid = PeriodPaid { period: payment.period.clone(), prizes: payment.count };
        let event = Event { at: state.time.now, what: EventKind::PeriodPaid(paid) };
        state.added.events.push((Topic::Board(key.board), event));
    }
}

/// Whether the contest of a period was cancelled before the period was over.
fn is_cancelled(state: &BatchState<'_>, over: &Over) -> bool {
    let contest = ContestId::of_board(&over.board).and_then(|(id, _)| state.contests.get(&id));
    contest.is_some_and(|record| record.state == Stands::Cancelled && record.since < over.since)
}

fn prize(_no: u32, payout: &Payout) -> TransferKind {
    TransferKind::Prize { to: payout.member }
}

/// The reference of its entries.
fn reference(payment: &Payment) -> Arc<str> {
    format!("{}/{}", payment.board.as_str(), payment.period).into()
}

fn count(rows: &[Payout]) -> u32 {
    u32::try_from(rows.len()).expect("fewer prizes than 2^32")
}
