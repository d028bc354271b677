//! Rows that lose what names an erased person. They are the only writes that replace rows which otherwise never change.
//!
//! Not here: which rows these are, and rows that change anyway (holds, payouts, links of reversals).

use crate::contests::EntrantKey;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::contest::ContestPlayer;
use tally_rules::ledger::{Transfer, TransferId};

/// Such rows, each list sorted by key and without a key twice. A transaction that has them adds no new row to these tables.
#[derive(Clone, Debug, Default)]
pub struct Redacted {
    /// Stored transfers with another origin.
    pub transfers: Vec<(TransferId, Transfer)>,
    /// Stored rows of the audit log. They are on any of the shards of the transaction: one that has no such row gets none.
    pub audit: Vec<(AuditId, AuditEntry)>,
    /// Members of contests under another name; `None` removes the row of the old one.
    pub entrants: Vec<(EntrantKey, Option<ContestPlayer>)>,
}

impl Redacted {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let Self { transfers, audit, entrants } = self;
        transfers.is_empty() && audit.is_empty() && entrants.is_empty()
    }

    pub(crate) fn assert_sorted(&self) {
        assert!(self.transfers.is_sorted_by(|a, b| a.0 < b.0), "redacted transfers ascend");
        assert!(self.audit.is_sorted_by(|a, b| a.0 < b.0), "redacted rows of the audit log ascend");
        assert!(self.entrants.is_sorted_by(|a, b| a.0 < b.0), "renamed members ascend");
    }
}
