//! Records of a CSV file with their line numbers, for every import.
//!
//! Not here: the meaning of a record (`csv_scores`, `csv_members`).

use csv::{ByteRecord, Reader};
use std::io::Read;

/// One record of a file.
#[derive(Clone, Debug)]
pub(crate) struct Line<T> {
    /// Its first line, from 1; the header is line 1.
    pub(crate) number: u64,
    /// Its last line: a quoted field may have several.
    pub(crate) end: u64,
    /// The parsed record.
    pub(crate) read: T,
    /// Its fields, for the list of rejects.
    pub(crate) record: ByteRecord,
}

impl Line<()> {
    /// The same with the parsed record.
    pub(crate) fn saying<T>(self, read: T) -> Line<T> {
        Line { number: self.number, end: self.end, read, record: self.record }
    }
}

/// A file, record by record.
pub(crate) trait Lines {
    /// A parsed record.
    type Read;

    /// The next record.
    fn next(&mut self) -> anyhow::Result<Option<Line<Self::Read>>>;

    /// Bytes read so far.
    fn bytes(&self) -> u64;
}

/// The next record, unparsed.
pub(crate) fn next<R: Read>(reader: &mut Reader<R>) -> csv::Result<Option<Line<()>>> {
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record)? {
        return Ok(None);
    }
    let number = record.position().map_or(0, csv::Position::line);
    let end = reader.position().line().saturating_sub(1).max(number);
    Ok(Some(Line { number, end, read: (), record }))
}
