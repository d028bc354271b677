//! What a batch does of prizes of closed periods. Pure, like the rest of a batch.
//!
//! What is to be paid is written down where nobody has done so; each piece is paid where it is still the next. So what is asked for
//! twice, after a crash or by two servers, is done once.

use super::{Decision, Ids, State, next};
use crate::periods::prizes::{PaymentAct, PaymentOrder};
use crate::wallets::command::Done;
use std::sync::Arc;
use tally_rules::contest::Payout;
use tally_rules::ledger::order::wallets_of;
use tally_rules::ledger::{Currency, Move};
use tally_rules::period::Payment;
use tally_store::{PayoutKey, Plan};

/// How many ids it may use.
pub(super) fn ids(order: &PaymentOrder) -> usize {
    match &order.act {
        PaymentAct::Begin(..) => 1,
        PaymentAct::Pay(_, rows) => rows.len(),
    }
}

/// Everything it may touch.
pub(super) fn read(plan: &mut Plan, order: &PaymentOrder, home: Currency) {
    plan.ledger.contests.payments.push(order.key);
    if let PaymentAct::Pay(_, rows) = &order.act {
        let wallets = rows.iter().flat_map(|row| wallets_of([Some(row.member), None], row.currency, home));
        plan.ledger.wallets.extend(wallets);
    }
}

fn count(rows: &[Payout]) -> u32 {
    u32::try_from(rows.len()).expect("fewer prizes than 2^32")
}

impl State<'_> {
    pub(super) fn payment(&mut self, order: &PaymentOrder, ids: Ids<'_, '_>) -> Decision {
        let own: Vec<_> = (0..self::ids(order)).map(|_| next(ids)).collect();
        let present = self.payments.get(&order.key).cloned();
        match (&order.act, present) {
            (PaymentAct::Begin(board, period, rows), None) => {
                let (board, period, count) = (board.clone(), period.clone(), count(rows));
                let payment = Payment { no: own[0], board, period, count, done: 0, at: self.now };
                let key = |no| PayoutKey { contest: payment.no, no };
                self.added.payouts.extend((0..).zip(rows).map(|(no, row)| (key(no), row.clone())));
                self.payments.set(&order.key, Some(payment));
            }
            (PaymentAct::Pay(first, rows), Some(mut payment)) if payment.done == *first => {
                let reference: Arc<str> = format!("{}/{}", payment.board.as_str(), payment.period).into();
                for ((no, row), id) in (*first..).zip(rows).zip(own) {
                    let what = Move::Prize { to: row.member };
                    let paid = self.pay_out(what, (row.currency, row.amount), &reference, id);
                    let key = PayoutKey { contest: payment.no, no };
                    self.added.payouts.insert(key, Payout { paid: Some(paid), ..row.clone() });
                }
                payment.done += count(rows);
                self.payments.set(&order.key, Some(payment));
            }
            // Somebody else has done it.
            (PaymentAct::Begin(..) | PaymentAct::Pay(..), _) => {}
        }
        Ok(Done::Payment)
    }
}
