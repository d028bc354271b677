//! Promotional credit in the working set: what has lapsed leaves its wallet.
//!
//! Not here: which transfers spend credit (`post`, `capture`, `reverse`).

use super::LedgerWorkingSet;
use crate::ledger::entry::EntryKind;
use crate::ledger::id::TransferId;
use crate::ledger::transfer_request::Posted;
use crate::ledger::wallet::WalletKey;

impl LedgerWorkingSet<'_> {
    /// Takes credit that has lapsed out of a wallet; `None` if there is none. More than the largest amount takes several.
    pub fn expire_credit(&mut self, id: TransferId, key: WalletKey) -> Option<Posted> {
        let mut wallet = self.wallet(&key)?;
        let Some(amount) = wallet.take_lapsed() else {
            // What holds reserve is due no more.
            self.set(key, wallet);
            return None;
        };
        let sides = (Some((key.member, wallet)), None);
        Some(self.write(id, (EntryKind::Expiry, None), (key.currency, amount), sides, None))
    }
}
