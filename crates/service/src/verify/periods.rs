//! The payments of periods with prizes: how many prizes there are, which were tried, and the transfer of each.
//!
//! A period has the transfer of each of its prizes, so an entry is compared by that. Two of them, or one more, are rows without
//! a prize. Not here: the comparison (`contests`).

use super::Run;
use super::ahead::Put;
use super::contests::{self, About, RecordedPayment, each_payout};
use super::owed::Marked;
use super::sorted_rows::SortedRows;
use crate::owed::{Debt, Debtor};
use std::sync::Arc;
use tally_rules::ledger::{EntryKind, TransferId, WalletKey};
use tally_rules::period::PeriodPayment;
use tally_store::{Snapshot, StoreError, WindowKey};

/// What a prize of a period is about: by its reference, and its transfer.
pub(super) fn about(wallet: WalletKey, reference: &str, transfer: TransferId) -> About {
    contests::about(wallet, &[reference.as_bytes(), b"\0", &transfer.0.0], EntryKind::Prize)
}

/// As entries refer to it.
fn reference(payment: &PeriodPayment) -> String {
    format!("{}/{}", payment.board.as_str(), payment.period)
}

/// Each period that was to pay something.
pub(super) fn each(
    snapshot: &mut dyn Snapshot,
    mut with: impl FnMut(&mut dyn Snapshot, &PeriodPayment) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut payments = SortedRows::default();
    loop {
        payments.fill(|after: Option<&WindowKey>, limit| snapshot.payments(after, limit))?;
        let Some((_, payment)) = payments.next() else { return Ok(()) };
        with(snapshot, &payment)?;
    }
}

/// Passes the payments of periods after a transfer.
pub(super) fn collect(
    snapshot: &mut dyn Snapshot,
    from: Option<TransferId>,
    put: &mut Put<'_, About, RecordedPayment>,
) -> Result<(), StoreError> {
    each(snapshot, |snapshot, payment| {
        let of: Arc<str> = reference(payment).into();
        each_payout(snapshot, payment.no, |_, row| {
            let Some(Ok(transfer)) = row.paid.filter(|paid| paid.is_ok_and(|id| Some(id) > from)) else {
                return;
            };
            let wallet = WalletKey { member: row.member, currency: row.currency };
            let recorded = RecordedPayment {
                of: Arc::clone(&of),
                player: row.player,
                kind: EntryKind::Prize,
                amount: row.amount.units(),
                transfer: Some(transfer),
                may_be_earlier: false,
                times: 1,
            };
            put(about(wallet, &of, transfer), recorded);
        })
    })
}

/// Compares the number of prizes of each, and of paid ones, with its counts; returns the number of periods.
pub(super) fn check(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<u64, StoreError> {
    let mut periods = 0;
    each(snapshot, |snapshot, payment| {
        periods += 1;
        let (mut rows, mut wrong, mut marked) = (0_u64, Vec::new(), Marked::default());
        let of = reference(payment);
        let debtor = Debtor::Period { board: payment.board.clone(), period: payment.period.clone() };
        each_payout(snapshot, payment.no, |no, payout| {
            rows += 1;
            marked.note(no, &payout);
            match payout.paid {
                None if no < payment.done => wrong.push((no, "it was never paid")),
                Some(_) if no >= payment.done => wrong.push((no, "it is paid before its turn")),
                _ => {}
            }
            run.reconciled.owed.add(Debt::of_payout(&debtor, payout));
        })?;
        marked.check(snapshot, run, &of)?;
        if rows != u64::from(payment.count) {
            let what = format!("{} were to be paid, and there are {rows}", payment.count);
            run.found("period_payments", &of, what);
        }
        if payment.done > payment.count {
            let what = format!("{} of {} had their turn", payment.done, payment.count);
            run.found("period_payments", &of, what);
        }
        for (no, what) in wrong {
            run.found("contest_prizes", format!("{of}/{no}"), what);
        }
        Ok(())
    })?;
    Ok(periods)
}
