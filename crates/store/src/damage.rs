//! Corrupt rows: rows that a store cannot have written.
//!
//! A corrupt row fails the requests that need it, and no others. So a fault names table and key, and a scan of many rows
//! leaves such a row out and records it here. Each row is recorded once, their number is bounded, and records stay until the
//! process ends. A list for display also leaves such a row out, and names it beside its rows: [`Listing`]. Not here:
//! corruption of a whole file, which is [`StoreError::Corrupt`], and repair.

use crate::StoreError;
use crate::contests::{EntrantKey, PayoutKey};
use crate::events::Topic;
use crate::plan::{BlockKey, BoardNo, ImportKey, KeyChange, ScoreKey, Window, WindowKey};
use crate::webhooks::WebhookKey;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_rules::PlayerId;
use tally_rules::contest::ContestId;
use tally_rules::idempotency::RequestKey;
use tally_rules::ledger::account::AccountKey;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{HoldId, MemberId, MintKey, Month, TransferId, WalletKey};

/// The maximum number of recorded rows.
const NOTED_MAX: usize = 10_000;

/// A row that a store cannot have written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorruptRow {
    /// Its table.
    pub table: &'static str,
    /// Its key as text: columns separated by `/`.
    pub key: String,
    /// The description of the error.
    pub what: String,
}

impl fmt::Display for CorruptRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table `{}`, row `{}`: {}", self.table, self.key, self.what)
    }
}

impl StoreError {
    /// Adds the table, if the decoder of the columns did not know it.
    pub(crate) fn of_table(self, table: &'static str) -> Self {
        match self {
            Self::CorruptRow(row) if row.table.is_empty() => {
                Self::CorruptRow(Box::new(CorruptRow { table, ..*row }))
            }
            error => error,
        }
    }

    /// Adds table and key of the corrupt row, if the decoder of the columns did not know them.
    pub(crate) fn of_row(self, table: &'static str, key: impl FnOnce() -> String) -> Self {
        let Self::CorruptRow(mut row) = self else { return self };
        if row.table.is_empty() {
            row.table = table;
        }
        if row.key.is_empty() {
            row.key = key();
        }
        Self::CorruptRow(row)
    }
}

/// The maximum number of corrupt rows of one list. A list with more fails.
const LISTED_MAX: usize = 100;

/// The rows of a list in its order, and the corrupt rows that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// Sound rows, at most as many as were asked for; fewer mean the end.
    pub rows: Vec<T>,
    /// Corrupt rows among them, up to the last row.
    pub damaged: Vec<CorruptRow>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), damaged: Vec::new() }
    }
}

impl<T> From<Vec<T>> for Listing<T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows, damaged: Vec::new() }
    }
}

impl<T> Listing<T> {
    /// The rows, for work that may leave none out: an error if one is corrupt.
    pub fn whole(self) -> Result<Vec<T>, StoreError> {
        match self.damaged.into_iter().next() {
            None => Ok(self.rows),
            Some(row) => Err(StoreError::CorruptRow(Box::new(row))),
        }
    }

    /// The same list with mapped rows.
    pub fn map<U>(self, each: impl FnMut(T) -> U) -> Listing<U> {
        Listing { rows: self.rows.into_iter().map(each).collect(), damaged: self.damaged }
    }

    /// Leaves out a corrupt row; any other error is returned.
    pub(crate) fn leave_out(&mut self, error: StoreError) -> Result<(), StoreError> {
        match error {
            StoreError::CorruptRow(row) if self.damaged.len() < LISTED_MAX => self.damaged.push(*row),
            error => return Err(error),
        }
        Ok(())
    }
}

/// A key as text for messages.
pub(crate) trait KeyText {
    /// Its columns, separated by `/`.
    fn text(&self) -> String;
}

macro_rules! key_text {
    ($($key:ty: |$this:ident| $text:expr;)*) => {
        $(impl KeyText for $key {
            fn text(&self) -> String {
                let $this = self;
                $text
            }
        })*
    };
}

key_text! {
    ScoreKey: |key| format!("{}/{}/{}", key.board.0, key.window.0, key.player.text());
    RequestKey: |key| format!("{}/{}", key.scope.escape_debug(), key.key.escape_debug());
    ImportKey: |key| format!("{}/{}", key.board.0, hex(&key.digest));
    PlayerId: |key| key.as_str().escape_debug().to_string();
    Handle: |key| format!("{}/{}", key.number(), key.as_str().escape_debug());
    MemberId: |key| key.0.to_string();
    WalletKey: |key| format!("{}/{}", key.member.0, key.currency);
    HoldId: |key| key.0.to_string();
    EntryKey: |key| format!("{}/{}", key.wallet.text(), key.sequence);
    TransferId: |key| key.0.to_string();
    Month: |key| key.to_string();
    MintKey: |key| format!("{}/{}", key.key, key.currency);
    AccountKey: |key| format!("{}/{}", key.account, key.currency);
    ContestId: |key| key.as_str().to_owned();
    EntrantKey: |key| format!("{}/{}", key.contest, key.player.text());
    PayoutKey: |key| format!("{}/{}", key.contest, key.no);
    WindowKey: |key| format!("{}/{}", key.board.0, key.window.0);
    BlockKey: |key| format!("{}/{}/{}", key.window.text(), key.version, key.block);
    Topic: |key| match key {
        Topic::Board(board) => format!("board {}", board.0),
        Topic::Contest(contest) => format!("contest {contest}"),
        Topic::Member(member) => format!("member {}", member.0),
        Topic::Wallet(wallet) => format!("wallet {}", wallet.text()),
        Topic::Transfers => "transfers".to_owned(),
    };
    KeyChange: |key| key.id().to_owned();
    WebhookKey: |key| match key.topic {
        None => key.id.to_string(),
        Some(topic) => format!("{}/{}", topic.text(), key.id),
    };
}

/// Bytes in hexadecimal, as SQL writes them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::from("x'"), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }) + "'"
}

/// The corrupt rows that one open store has read.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    /// A counter, so that a sound store takes no lock.
    count: AtomicU64,
    notes: Mutex<Notes>,
}

/// The errors by table and key.
type Notes = BTreeMap<(&'static str, String), String>;

impl Damages {
    /// Records a row, unless it is recorded already.
    pub(crate) fn note(&self, row: &CorruptRow) {
        let mut notes = self.notes();
        if notes.len() < NOTED_MAX {
            notes.entry((row.table, row.key.clone())).or_insert_with(|| row.what.clone());
        }
        self.count.store(notes.len() as u64, Ordering::Release);
    }

    /// Records the row that a read failed for.
    pub(crate) fn noted<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::CorruptRow(row)) = &read {
            self.note(row);
        }
        read
    }

    /// The number of recorded rows.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Whether a row is recorded.
    pub(crate) fn has(&self, table: &'static str, key: &impl KeyText) -> bool {
        self.count() > 0 && self.notes().contains_key(&(table, key.text()))
    }

    /// Every recorded row.
    pub(crate) fn list(&self) -> Vec<CorruptRow> {
        let row = |((table, key), what): (&(&'static str, String), &String)| CorruptRow {
            table,
            key: key.clone(),
            what: what.clone(),
        };
        if self.count() == 0 { Vec::new() } else { self.notes().iter().map(row).collect() }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of a score as text, if its player may be unreadable.
pub(crate) fn score_text((board, window): (BoardNo, Window), player: &[u8]) -> String {
    let player =
        std::str::from_utf8(player).map_or_else(|_| hex(player), |text| text.escape_debug().to_string());
    format!("{}/{}/{player}", board.0, window.0)
}
