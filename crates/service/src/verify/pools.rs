//! Pools of contests: each has in its wallet what is left of its fees, or what it owes of its prizes. Each wallet of a pool has its
//! contest.
//!
//! Before the prizes are determined, a pool has the fees without reversals and refunds. From then on the fees, with what was added and
//! without what was taken, are the sum of its prizes, and it has those that are not paid. Not here: whether the balance is that of the
//! entries (`wallets`), and whether each fee, prize and refund is a transfer (`contests`).

use super::Run;
use super::contests::{each, each_payout};
use crate::failure::Failure;
use tally_rules::contest::pool::PoolResult;
use tally_rules::ledger::{MemberId, Uuid, WalletKey};
use tally_store::{Snapshot, StoreError};

/// Compares each pool with its wallet; `wallets` of pools were found.
pub(super) fn check(snapshot: &mut dyn Snapshot, wallets: u64, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut known = 0;
    each(snapshot, |snapshot, id, record| {
        let (Some(pool), Some(fee)) = (record.pool_account(), record.contest.entry_fee) else {
            return Ok(());
        };
        let balance = balance(snapshot, WalletKey { member: pool, currency: fee.currency })?;
        known += u64::from(balance.is_some());
        let (mut prizes, mut owed, mut refunded) = (0, 0, 0);
        each_payout(snapshot, record.no, |no, payout| {
            let (units, is_paid) = (payout.amount.units(), matches!(payout.paid, Some(Ok(_))));
            if payout.rank == 0 {
                refunded += if is_paid { units } else { 0 };
            } else if record.is_of_pool(no) {
                prizes += units;
                owed += if is_paid { 0 } else { units };
            }
        })?;
        let fees = record.fees_left();
        let wanted = match record.pool_result {
            None => fees - refunded,
            Some(PoolResult { rake, top_up, .. }) => {
                let left = fees + top_up - rake;
                if left != prizes {
                    let what = format!("its pool is {left} of fees of {fees}, and its prizes are {prizes}");
                    run.found("contests", id.as_str(), what);
                }
                owed
            }
        };
        let has = balance.unwrap_or(0);
        if has != wanted {
            run.found("contests", id.as_str(), format!("its pool has {has}, and should have {wanted}"));
        }
        Ok(())
    })?;
    if known != wallets {
        let what = format!("there are {wallets} of pools, and contests have {known}");
        run.found("wallets", "pools", what);
    }
    Ok(())
}

/// The balance of a wallet, if it is there.
fn balance(snapshot: &mut dyn Snapshot, key: WalletKey) -> Result<Option<i64>, StoreError> {
    // The id before it is that of no member.
    let before = MemberId(Uuid((u128::from_be_bytes(key.member.0.0) - 1).to_be_bytes()));
    let after = WalletKey { member: before, ..key };
    let found = snapshot.wallets(Some(after), 1)?.into_iter().find(|(found, _)| *found == key);
    Ok(found.map(|(_, wallet)| wallet.balance))
}
