//! Records of a CSV file with the lines they stand on, for every import.
//!
//! Not here: what a record means (`csv_scores`, `csv_members`).

use csv::{ByteRecord, Reader};
use std::io::Read;

/// A record and where it stands.
pub(crate) struct Place {
    /// Its first line.
    pub(crate) number: u64,
    /// Its last line: a quoted field may have several.
    pub(crate) end: u64,
    /// Its fields.
    pub(crate) record: ByteRecord,
}

/// The next record.
pub(crate) fn next<R: Read>(reader: &mut Reader<R>) -> csv::Result<Option<Place>> {
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record)? {
        return Ok(None);
    }
    let number = record.position().map_or(0, csv::Position::line);
    let end = reader.position().line().saturating_sub(1).max(number);
    Ok(Some(Place { number, end, record }))
}
