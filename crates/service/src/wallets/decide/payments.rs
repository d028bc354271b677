//! What a batch does of prizes of closed periods. Pure, like the rest of a batch.
//!
//! What is to be paid is written down where nobody has done so; each piece is paid where it is still the next. So what is asked for
//! twice, after a crash or by two servers, is done once.

use super::{Decision, Ids, State, next};
use crate::periods::prizes::{Over, PaymentAct, PaymentOrder};
use crate::wallets::command::Done;
use std::sync::Arc;
use tally_rules::contest::{ContestId, Payout, State as Stands};
use tally_rules::ledger::Currency;
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::period::Payment;
use tally_store::{PayoutKey, Plan};

/// How many ids it may use.
pub(super) fn ids(order: &PaymentOrder) -> usize {
    match &order.act {
        PaymentAct::Begin(..) => 1,
        PaymentAct::Repay(_, rows) => rows.len(),
        PaymentAct::Pay(_, rows) => rows.len(),
    }
}

/// Everything it may touch.
pub(super) fn read(plan: &mut Plan, order: &PaymentOrder, home: Currency) {
    plan.ledger.contests.payments.push(order.key);
    if let PaymentAct::Begin(over, _) = &order.act {
        plan.ledger.contests.contests.extend(ContestId::of_board(&over.board).map(|(id, _)| id));
    }
    let mut wallets =
        |row: &Payout| plan.ledger.wallets.extend(wallets_of([Some(row.member), None], row.currency, home));
    match &order.act {
        PaymentAct::Begin(..) => {}
        PaymentAct::Pay(_, rows) => rows.iter().for_each(wallets),
        PaymentAct::Repay(_, rows) => rows.iter().for_each(|(_, row)| wallets(row)),
    }
}

/// What entries refer to.
fn reference(payment: &Payment) -> Arc<str> {
    format!("{}/{}", payment.board.as_str(), payment.period).into()
}

fn count(rows: &[Payout]) -> u32 {
    u32::try_from(rows.len()).expect("fewer prizes than 2^32")
}

impl State<'_> {
    /// Whether the contest of a period was cancelled before the period was over.
    fn is_cancelled(&self, over: &Over) -> bool {
        let contest = ContestId::of_board(&over.board).and_then(|(id, _)| self.contests.get(&id));
        contest.is_some_and(|record| record.state == Stands::Cancelled && record.since < over.since)
    }

    pub(super) fn payment(&mut self, order: &PaymentOrder, ids: Ids<'_, '_>) -> Decision {
        let own: Vec<_> = (0..self::ids(order)).map(|_| next(ids)).collect();
        let present = self.payments.get(&order.key).cloned();
        match (&order.act, present) {
            (PaymentAct::Begin(over, rows), None) => {
                let rows = if self.is_cancelled(over) { &[] } else { &rows[..] };
                let (board, period, count) = (over.board.clone(), over.period.clone(), count(rows));
                let payment = Payment { no: own[0], board, period, count, done: 0, at: self.now };
                let key = |no| PayoutKey { contest: payment.no, no };
                self.added.payouts.extend((0..).zip(rows).map(|(no, row)| (key(no), row.clone())));
                self.payments.set(&order.key, Some(payment));
            }
            (PaymentAct::Pay(first, rows), Some(mut payment)) if payment.done == *first => {
                let reference = reference(&payment);
                (payment.done, _) = self.pay_rows((payment.no, *first), rows, &reference, &own)?;
                self.payments.set(&order.key, Some(payment));
            }
            // The rows were read after the payment, and each repayment changes its instant: none is paid twice.
            (PaymentAct::Repay(seen, rows), Some(payment)) if payment == *seen => {
                self.repay_rows(payment.no, rows, &reference(&payment), &own);
                let at = self.now.max(payment.at.plus(1));
                self.payments.set(&order.key, Some(Payment { at, ..payment }));
            }
            // Another server has done it.
            (PaymentAct::Begin(..) | PaymentAct::Pay(..) | PaymentAct::Repay(..), _) => {}
        }
        Ok(Done::Payment)
    }
}
