//! The progress of a copy, as the note in its target. While the note is there, no server opens the target.

use super::values::{CopiedRow, CopiedValue};
use crate::StoreError;
use crate::codec::{Input, put_number};

/// The name of the note in `meta`.
pub(crate) const NOTE: &str = "store.copy";

/// The version of the note, and of the order of the tables.
const VERSION: u8 = 1;

/// What is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyState {
    /// The identity of the source.
    pub(super) source: [u8; 16],
    /// The position of the table that is being copied; past the last one if all are.
    pub(super) table: usize,
    /// Rows copied, of all tables.
    pub(super) rows: u64,
    /// The key of the last copied row of the table.
    pub(super) after: Option<CopiedRow>,
}

impl CopyState {
    /// Nothing is copied.
    pub(super) fn of(source: [u8; 16]) -> Self {
        Self { source, table: 0, rows: 0, after: None }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.source);
        put_number(self.table as u64, &mut bytes);
        put_number(self.rows, &mut bytes);
        self.after.iter().flatten().for_each(|cell| cell.put(&mut bytes));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        if input.byte()? != VERSION {
            return None;
        }
        let source = input.fixed()?;
        let (table, rows) = (usize::try_from(input.number()?).ok()?, input.number()?);
        let mut after = CopiedRow::new();
        while !input.is_empty() {
            after.push(CopiedValue::take(&mut input)?);
        }
        Some(Self { source, table, rows, after: (!after.is_empty()).then_some(after) })
    }
}

/// Refuses a store that is the target of an unfinished copy.
pub(crate) fn check_finished(note: Option<&[u8]>, shown: &str) -> Result<(), StoreError> {
    if note.is_none() {
        return Ok(());
    }
    Err(StoreError::Layout(format!(
        "{shown}: the copy of another store into it was begun and is not finished; go on with the same `tally migrate --from`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_another_versions_does_not() {
        let after = vec![
            CopiedValue::Null,
            CopiedValue::Number(-7),
            CopiedValue::Large(u128::MAX),
            CopiedValue::Text("Zoë".into()),
            CopiedValue::Bytes(vec![0, 255]),
        ];
        let state = CopyState { source: [3; 16], table: 30, rows: 1 << 40, after: Some(after) };
        let mut bytes = state.encode();
        assert_eq!(CopyState::decode(&bytes), Some(state));
        let new = CopyState::of([9; 16]);
        assert_eq!(CopyState::decode(&new.encode()), Some(new));
        assert_eq!(CopyState::decode(&bytes[..bytes.len() - 1]), None);
        bytes[0] = 2;
        assert_eq!(CopyState::decode(&bytes), None);
        assert_eq!(CopyState::decode(&[]), None);
    }
}
