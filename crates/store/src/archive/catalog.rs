//! A month in the catalog: how far its archiving is, and what its files must be.
//!
//! The digest of a month covers its files and the digest of the month before it. So the digest of the last month proves all.
//!
//! Not here: the bytes of a row (`codec::archives`).

use super::Months;
use super::writer::Written;
use crate::StoreError;
use crate::codec::archives::put_files;
use tally_rules::ledger::Month;
use tally_rules::ledger::account::{AccountKey, Total};

/// How far a month is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonthState {
    /// Its files are not written yet.
    Writing,
    /// Its files are there, and some of its rows may be in the tables, too.
    Deleting,
    /// Its rows are in its files alone.
    Done,
}

impl MonthState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Deleting => "deleting",
            Self::Done => "done",
        }
    }
}

/// A month of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMonth {
    /// How far it is.
    pub state: MonthState,
    /// The random number of the attempt that writes or has written its files, and a part of their names.
    pub attempt: u64,
    /// The number of transfers whose rows were deleted.
    pub deleted: u64,
    /// Its files, once they are there.
    pub files: Option<MonthFiles>,
}

/// The files of a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonthFiles {
    /// Its transfers, by id.
    pub transfers: Written,
    /// Their entries, by wallet.
    pub entries: Written,
    /// What its transfers add to accounts.
    pub totals: Vec<(AccountKey, Total)>,
    /// The digest of the month, with that of the month before.
    pub digest: [u8; 32],
}

/// The name of the files of transfers, and of entries.
pub(super) const TRANSFERS: &str = "transfers";
pub(super) const ENTRIES: &str = "entries";

/// The name of a file.
pub(super) fn file_name(month: Month, attempt: u64, of: &str) -> String {
    format!("{month}-{attempt:016x}.{of}")
}

/// The names of all files, with their lengths.
pub(crate) fn file_names(months: &Months) -> Vec<(String, u64)> {
    let of = |(month, row): &(Month, ArchivedMonth)| {
        let files = row.files.as_ref()?;
        let name = |of| file_name(*month, row.attempt, of);
        Some([(name(TRANSFERS), files.transfers.bytes), (name(ENTRIES), files.entries.bytes)])
    };
    months.iter().filter_map(of).flatten().collect()
}

impl ArchivedMonth {
    /// A month that is to be archived, before any step of it.
    pub fn requested() -> Self {
        Self { state: MonthState::Writing, attempt: 0, deleted: 0, files: None }
    }
}

impl MonthFiles {
    /// The digest of a month with these files, after the month with the digest `before`.
    pub(super) fn chained(&self, month: Month, before: Option<[u8; 32]>) -> [u8; 32] {
        let mut bytes = month.0.to_be_bytes().to_vec();
        bytes.extend_from_slice(&before.unwrap_or_default());
        put_files(self, &mut bytes);
        *blake3::hash(&bytes).as_bytes()
    }
}

/// The digest of the newest month before one that has files.
pub(super) fn before(months: &Months, month: Month) -> Option<[u8; 32]> {
    let earlier = months.iter().rev().filter(|(other, _)| *other < month);
    earlier.filter_map(|(_, row)| row.files.as_ref()).map(|files| files.digest).next()
}

/// The months that have files, once the chain of their digests is checked.
pub(super) fn checked(months: Months) -> Result<Months, StoreError> {
    let months: Months = months.into_iter().filter(|(_, row)| row.files.is_some()).collect();
    for (month, row) in &months {
        let files = row.files.as_ref().expect("a month with files");
        if files.chained(*month, before(&months, *month)) != files.digest {
            return Err(StoreError::Archive {
                file: file_name(*month, row.attempt, TRANSFERS),
                what: format!("the catalog has another digest of {month}, or of the month before it"),
            });
        }
    }
    Ok(months)
}
