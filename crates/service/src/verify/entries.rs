//! Entries in order of their keys: all that a snapshot passes, or those after a checkpoint of a file.
//!
//! Such a checkpoint has the number of each wallet's last entry. A wallet that counts more is read from that number on, and no other one
//! is read. So an entry of a wallet that counts it is never left out, whatever the id of its transfer.
//!
//! Not here: what is compared.

use super::Run;
use super::since::next_proved;
use super::sorted_rows::{PAGE_ROWS, SortedRows};
use std::iter::Peekable;
use tally_rules::ledger::{Entry, EntryKey, Wallet, WalletKey};
use tally_store::archive::ProvedWallets;
use tally_store::{Snapshot, StoreError};

/// The position among them.
pub(super) enum Entries {
    /// All.
    All(SortedRows<EntryKey, Entry>),
    /// Those after a checkpoint.
    After(Box<After>),
}

/// The position among entries after a checkpoint.
pub(super) struct After {
    wallets: SortedRows<WalletKey, Wallet>,
    proved: Peekable<ProvedWallets>,
    /// The last entry of a wallet that was passed, and the number of its last one.
    at: Option<(EntryKey, u64)>,
    rows: std::vec::IntoIter<(EntryKey, Entry)>,
}

impl Entries {
    /// The first one.
    pub(super) fn of(run: &Run<'_>) -> Self {
        let Some(file) = run.since.as_ref().and_then(|since| since.file()) else {
            return Self::All(SortedRows::default());
        };
        Self::After(Box::new(After {
            wallets: SortedRows::default(),
            proved: file.wallets().peekable(),
            at: None,
            rows: Vec::new().into_iter(),
        }))
    }

    /// Reads the next page when this one is used up; returns its number of rows.
    pub(super) fn fill(&mut self, snapshot: &mut dyn Snapshot) -> Result<usize, StoreError> {
        match self {
            Self::All(rows) => rows.fill(|after, limit| snapshot.entries(after.copied(), limit)),
            Self::After(after) => after.fill(snapshot),
        }
    }

    /// The next one that was read.
    pub(super) fn peek(&self) -> Option<&(EntryKey, Entry)> {
        match self {
            Self::All(rows) => rows.peek(),
            Self::After(after) => after.rows.as_slice().first(),
        }
    }

    /// Takes the next one that was read.
    pub(super) fn next(&mut self) -> Option<(EntryKey, Entry)> {
        match self {
            Self::All(rows) => rows.next(),
            Self::After(after) => after.rows.next(),
        }
    }
}

impl After {
    fn fill(&mut self, snapshot: &mut dyn Snapshot) -> Result<usize, StoreError> {
        if !self.rows.as_slice().is_empty() {
            return Ok(0);
        }
        while self.rows.as_slice().is_empty() {
            let Some((after, last)) = self.at.take() else {
                if !self.reach_wallet(snapshot)? {
                    return Ok(0);
                }
                continue;
            };
            let limit = usize::try_from(last - after.sequence).unwrap_or(PAGE_ROWS).min(PAGE_ROWS);
            let mut page = snapshot.entries(Some(after), limit)?;
            page.retain(|(key, _)| key.wallet == after.wallet && key.sequence <= last);
            let is_whole = page.len() == limit;
            let next = page.last().map(|(key, _)| *key).filter(|key| is_whole && key.sequence < last);
            self.at = next.map(|next| (next, last));
            self.rows = page.into_iter();
        }
        Ok(self.rows.len())
    }

    /// Goes on to the next wallet; false if there is none.
    fn reach_wallet(&mut self, snapshot: &mut dyn Snapshot) -> Result<bool, StoreError> {
        self.wallets.fill(|after, limit| snapshot.wallets(after.copied(), limit))?;
        let Some((key, wallet)) = self.wallets.next() else { return Ok(false) };
        let mut proved = 0;
        while let Some((of, state)) = next_proved(&mut self.proved, Some(&key))? {
            if of == key {
                proved = state.sequence;
                break;
            }
        }
        self.at = (wallet.sequence > proved)
            .then_some((EntryKey { wallet: key, sequence: proved }, wallet.sequence));
        Ok(true)
    }
}
