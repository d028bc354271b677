//! Caps of new money in the working set: what each key has made so far.
//!
//! Not here: the rule (`mint`).

use super::{LedgerWorkingSet, Slot};
use crate::instant::Micros;
use crate::ledger::limits::Spent;
use crate::ledger::mint::{MintCap, MintKey};
use crate::ledger::money::Amount;
use crate::rejection::Rejection;

impl LedgerWorkingSet<'_> {
    /// Records what a key has made.
    pub fn load_minted(&mut self, key: MintKey, minted: Option<Spent>) {
        self.minted.insert(key, Slot::new(minted));
    }

    /// Counts new money of a key, if its cap allows it. A deposit that is rejected afterwards must be rolled back
    /// ([`roll_back`](Self::roll_back)).
    ///
    /// # Panics
    /// If it was not loaded.
    pub fn count_minted(&mut self, cap: &MintCap, amount: Amount, now: Micros) -> Result<(), Rejection> {
        let slot = self.minted.get_mut(&cap.of).expect("what a key has made is loaded before it is read");
        let minted = cap.check(slot.now.unwrap_or_default(), amount, now)?;
        self.minted_before.push((cap.of, slot.now.replace(minted)));
        Ok(())
    }
}
