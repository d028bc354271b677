//! Reading members from CSV: each line becomes a row, or a reject that names the field and its error.
//!
//! Pure over any reader. Not here: digests of passwords, and the checks of the server.

use crate::config::Usage;
use crate::csv_records;
use csv::{ByteRecord, Reader};
use std::borrow::Cow;
use std::io::Read;
use tally_rules::PlayerId;
use tally_rules::ledger::member::{Login, Phone};
use tally_rules::ledger::pin::is_pin;
use tally_service::members::password;
use tally_wire::api::ledger_imports::read_amount;
use tally_wire::api::members::check_password;

/// All valid columns.
const COLUMNS: [&str; 8] =
    ["login_id", "password", "password_hash", "pin", "phone_number", "name", "player", "balance"];

/// A member in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberRow {
    /// Values by column; an empty value is missing.
    values: [Option<String>; COLUMNS.len()],
}

/// One record of the file.
pub(crate) type Line = csv_records::Line<Result<MemberRow, String>>;

/// Reads records one by one.
pub(crate) struct Lines<R> {
    reader: Reader<R>,
    header: Vec<String>,
    places: [Option<usize>; COLUMNS.len()],
    /// 0 until the server has said it.
    password_length_min: usize,
}

impl MemberRow {
    /// The value of a column.
    pub(crate) fn get(&self, column: &str) -> Option<&str> {
        let at = COLUMNS.iter().position(|name| *name == column)?;
        self.values[at].as_deref()
    }
}

impl<R: Read> csv_records::Lines for Lines<R> {
    type Read = Result<MemberRow, String>;

    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        let line = csv_records::next(&mut self.reader)?;
        Ok(line.map(|line| {
            let read = self.read(&line.record);
            line.saying(read)
        }))
    }

    fn bytes(&self) -> u64 {
        self.reader.position().byte()
    }
}

impl<R: Read> Lines<R> {
    /// Reads the header; an unknown column is an error that names the known ones.
    pub(crate) fn new(input: R, delimiter: u8) -> anyhow::Result<Self> {
        let (reader, header) = csv_records::open(input, delimiter)?;
        if let Some(other) = header.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
            let (all, advice) = (COLUMNS.join(", "), csv_records::advice(&header, delimiter));
            let text = format!("the column `{other}` means nothing here; there are: {all}{advice}");
            return Err(Usage(text).into());
        }
        let places = COLUMNS.map(|name| header.iter().position(|column| column == name));
        if places[0].is_none() {
            let all = header.join(", ");
            return Err(Usage(format!("there is no column `login_id`; the file has: {all}")).into());
        }
        if let Some((_, name)) = header.iter().enumerate().find(|(at, name)| header[..*at].contains(name)) {
            return Err(Usage(format!("the column `{name}` is there twice")).into());
        }
        Ok(Self { reader, header, places, password_length_min: 0 })
    }

    /// Rejects passwords that have fewer characters.
    pub(crate) fn set_password_length_min(&mut self, min: usize) {
        self.password_length_min = min;
    }

    /// Names of the columns.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Whether there are passwords to digest.
    pub(crate) fn has_passwords(&self) -> bool {
        self.header.iter().any(|name| name == "password")
    }

    fn read(&self, record: &ByteRecord) -> Result<MemberRow, String> {
        let (has, wanted) = (record.len(), self.header.len());
        if has != wanted {
            return Err(format!("the line has {has} fields, the header {wanted}"));
        }
        let mut values: [Option<String>; COLUMNS.len()] = Default::default();
        for ((value, place), column) in values.iter_mut().zip(self.places).zip(COLUMNS) {
            let Some(place) = place else { continue };
            let text = std::str::from_utf8(&record[place]).map_err(|_| format!("{column}: must be UTF-8"))?;
            *value = Some(text.to_owned()).filter(|text| !text.is_empty());
        }
        let mut row = MemberRow { values };
        // An opening balance of 0 makes no deposit.
        if row.get("balance") == Some("0") {
            row.values[COLUMNS.len() - 1] = None;
        }
        check(&row, self.password_length_min).map_err(|(column, why)| format!("{column}: {why}"))?;
        Ok(row)
    }
}

/// The first invalid field of a row, and its error.
fn check(row: &MemberRow, password_length_min: usize) -> Result<(), (&'static str, Cow<'static, str>)> {
    let login = row.get("login_id").ok_or(("login_id", "is required".into()))?;
    Login::new(login).map_err(|bad| ("login_id", bad.0.into()))?;
    match (row.get("password"), row.get("password_hash")) {
        (Some(_), Some(_)) => return Err(("password_hash", "must not be there beside a password".into())),
        (Some(text), None) => {
            check_password(text, password_length_min).map_err(|why| ("password", why.into()))?;
        }
        (None, Some(text)) => {
            password::check_digest(text).map_err(|bad| ("password_hash", bad.into()))?;
        }
        _ => {}
    }
    if row.get("pin").is_some_and(|text| !is_pin(text)) {
        return Err(("pin", "must be 4 to 8 digits".into()));
    }
    if let Some(text) = row.get("phone_number") {
        Phone::parse(text, None).map_err(|bad| ("phone_number", bad.0.into()))?;
    }
    if row.get("name").is_some_and(|name| name.len() > 256) {
        return Err(("name", "must be at most 256 bytes".into()));
    }
    if let Some(text) = row.get("player") {
        PlayerId::new(text).map_err(|bad| ("player", bad.0.into()))?;
    }
    if row.get("balance").is_some_and(|text| read_amount(text).is_none()) {
        return Err(("balance", "must be a whole number of minor units up to 10^15".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv_records::{COMMA, Lines as _};

    #[test]
    fn every_wrong_field_is_named() {
        let rows = [
            ("ann,1234,0101,500", None),
            ("ann,,,", None),
            ("ann,,,0", None),
            (",1234,,", Some("login_id: is required")),
            ("ann,123,,", Some("pin: must be 4 to 8 digits")),
            (
                "ann,,01x,",
                Some(
                    "phone_number: must be 4 to 20 digits with spaces and dashes between them, after at most one + or 00",
                ),
            ),
            ("ann,,,-1", Some("balance: must be a whole number of minor units up to 10^15")),
            ("ann,,,1.5", Some("balance: must be a whole number of minor units up to 10^15")),
            ("ann,,", Some("the line has 3 fields, the header 4")),
        ];
        for (text, wanted) in rows {
            let text = format!("login_id,pin,phone_number,balance\n{text}\n");
            let line = Lines::new(text.as_bytes(), COMMA).unwrap().next().unwrap().unwrap();
            assert_eq!((line.number, line.end), (2, 2));
            assert_eq!(line.read.err().as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn columns_that_mean_nothing_are_named() {
        for (header, wanted) in [
            ("login_id,sex\n", "the column `sex` means nothing here"),
            ("login_id;pin\n", "If ';' divides its columns, add --delimiter ';'"),
            ("pin\n", "there is no column `login_id`; the file has: pin"),
            ("login_id,pin,pin\n", "the column `pin` is there twice"),
        ] {
            let error = Lines::new(header.as_bytes(), COMMA).err().unwrap().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
