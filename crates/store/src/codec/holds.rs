//! A hold in columns: the same numbers in every store.
//!
//! Not here: the tables.

use tally_rules::ledger::hold::HoldEnd;
use tally_rules::ledger::{Hold, MemberId, TransferId, Uuid, WalletKey};
use tally_rules::{Micros, Origin};

/// The state of a hold that has not ended.
pub(crate) const OPEN: u8 = 0;

/// Marks the state of a hold that has its origins at its end, in a journal alone: rows from before end without them.
pub(crate) const WITH_ORIGINS: u8 = 0x40;

/// A hold in columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) state: u8,
    pub(crate) captured: Option<i64>,
    pub(crate) captured_to: Option<[u8; 16]>,
    pub(crate) transfer: Option<[u8; 16]>,
    pub(crate) ended_at: Option<i64>,
}

impl Columns {
    pub(crate) fn of(hold: &Hold) -> Self {
        let Some((end, at)) = hold.end else { return Self::default() };
        let ended = Self { ended_at: Some(at.0), ..Self::default() };
        match end {
            HoldEnd::Captured { amount, to, transfer } => Self {
                state: 1,
                captured: Some(amount),
                captured_to: to.map(|to| to.0.0),
                transfer: Some(transfer.0.0),
                ..ended
            },
            HoldEnd::Voided => Self { state: 2, ..ended },
            HoldEnd::Expired => Self { state: 3, ..ended },
        }
    }

    /// The hold with its origin and that of its end; `None` if no hold has such columns.
    pub(crate) fn hold(
        self,
        wallet: WalletKey,
        amount: i64,
        expires_at: Option<i64>,
        (origin, ended_by): (Origin, Origin),
    ) -> Option<Hold> {
        let end = match (self.state, self.captured, self.transfer, self.captured_to) {
            (OPEN, None, None, None) if self.ended_at.is_none() => None,
            (1, Some(amount), Some(transfer), to) => Some(HoldEnd::Captured {
                amount,
                to: to.map(|to| MemberId(Uuid(to))),
                transfer: TransferId(Uuid(transfer)),
            }),
            (2, None, None, None) => Some(HoldEnd::Voided),
            (3, None, None, None) => Some(HoldEnd::Expired),
            _ => return None,
        };
        let end = end.map(|end| Some((end, Micros(self.ended_at?))));
        let end = match end {
            Some(None) => return None,
            Some(end) => end,
            None => None,
        };
        Some(Hold { wallet, amount, expires_at: expires_at.map(Micros), origin, end, ended_by })
    }
}
