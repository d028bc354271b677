//! What the pool of a contest has when its prizes are stored: exactly their sum.

use crate::contests::actions::ContestRequest;
use crate::ledger::state::BatchState;
use std::sync::Arc;
use tally_rules::Rejection;
use tally_rules::contest::pool::PoolResult;
use tally_rules::contest::{ContestRecord, Payout};
use tally_rules::ledger::{Amount, TransferId, TransferKind, TransferRequest, WalletKey};

impl BatchState<'_> {
    /// Moves what the prizes do not need to the account `FEES`, or what they lack from the account `PRIZES`. The prizes of the pool
    /// are those from `first` on.
    pub(super) fn balance_pool(
        &mut self,
        request: &ContestRequest,
        record: &mut ContestRecord,
        (payouts, first): (&[Payout], u32),
        id: TransferId,
    ) -> Result<(), Rejection> {
        let (Some(pool), Some(fee)) = (record.pool_account(), record.contest.entry_fee) else {
            return Ok(());
        };
        let wallet = self.book.wallet(&WalletKey { member: pool, currency: fee.currency });
        let has = wallet.map_or(0, |wallet| wallet.balance);
        let wanted: i64 = payouts.iter().skip(first as usize).map(|payout| payout.amount.units()).sum();
        let what =
            if has > wanted { TransferKind::Fee { from: pool } } else { TransferKind::Prize { to: pool } };
        if let Ok(amount) = Amount::new((has - wanted).abs()) {
            let reference: Arc<str> = request.id.board(None).as_str().into();
            let order = TransferRequest { what, currency: fee.currency, amount, reference: Some(reference) };
            self.book.post(id, &order, self.expected)?;
        }
        let (rake, top_up) = ((has - wanted).max(0), (wanted - has).max(0));
        record.pool_result = Some(PoolResult { first, rake, top_up });
        Ok(())
    }
}
