//! Records of a CSV file with their line numbers, its header and its delimiter, for every import.
//!
//! Not here: the meaning of a record (`csv_scores`, `csv_members`).

use csv::{ByteRecord, Reader, ReaderBuilder};
use std::io::Read;

/// The delimiter of a file whose command names none.
pub(crate) const COMMA: u8 = b',';

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

/// Reads `--delimiter`.
pub(crate) fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"\\t" | b"\t" => Ok(b'\t'),
        [one] if one.is_ascii_punctuation() && *one != b'"' => Ok(*one),
        _ => Err("must be one character such as ';', or '\\t' for a tab"),
    }
}

/// A file with this delimiter, and the names of its columns.
pub(crate) fn open<R: Read>(input: R, delimiter: u8) -> csv::Result<(Reader<R>, Vec<String>)> {
    let mut reader = ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(input);
    let names = reader.byte_headers()?.iter();
    let header =
        names.map(|name| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').to_owned()).collect();
    Ok((reader, header))
}

/// What to add to an error about the columns, if the header seems to have another delimiter.
pub(crate) fn advice(header: &[String], delimiter: u8) -> String {
    let has = |other: char| other != char::from(delimiter) && header.iter().any(|name| name.contains(other));
    let other = [(';', "';'"), ('\t', "'\\t'"), (',', "','")].into_iter().find(|(other, _)| has(*other));
    other.map_or_else(String::new, |(_, shown)| {
        format!(". If {shown} divides its columns, add --delimiter {shown}")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_one_sign() {
        assert_eq!([";", "|", ","].map(delimiter), [Ok(b';'), Ok(b'|'), Ok(COMMA)]);
        assert_eq!(["\\t", "\t"].map(delimiter), [Ok(b'\t'); 2]);
        for wrong in ["", "a", "\"", ";;", "é", " "] {
            assert!(delimiter(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_header_with_another_delimiter_is_advised_on() {
        let advice_on = |text: &str, by| advice(&open(text.as_bytes(), by).unwrap().1, by);
        assert_eq!(advice_on("\u{feff}a;b\n", COMMA), ". If ';' divides its columns, add --delimiter ';'");
        assert_eq!(advice_on("a\tb\n", COMMA), ". If '\\t' divides its columns, add --delimiter '\\t'");
        assert_eq!(advice_on("a,b\n", b';'), ". If ',' divides its columns, add --delimiter ','");
        assert_eq!((advice_on("a,b\n", COMMA), advice_on("a;b\n", b';')), (String::new(), String::new()));
    }
}
