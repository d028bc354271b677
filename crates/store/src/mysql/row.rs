//! Results of statements: rows of columns, read in order and never trusted.
//!
//! In this protocol, every value is text. A value that tally cannot have written is reported as corrupt and never causes a
//! panic. Not here: the meaning of the columns.

use super::fault::{corrupt, damaged};
use super::stats::Stats;
use crate::damage::hex;
use crate::{CorruptRow, StoreError};
use mysql_async::{Row, Value};
use std::sync::Arc;
use tally_rules::PlayerId;
use tally_rules::ledger::Uuid;

/// The results of the statements of one script, in order.
#[derive(Debug, Default)]
pub(super) struct ResultSets {
    sets: std::collections::VecDeque<Set>,
    /// Where corrupt rows are recorded.
    stats: Option<Arc<Stats>>,
}

/// The result of one statement.
#[derive(Debug)]
struct Set {
    rows: Vec<Row>,
    affected: u64,
}

impl ResultSets {
    pub(super) fn recording(stats: Arc<Stats>) -> Self {
        Self { stats: Some(stats), ..Self::default() }
    }

    pub(super) fn push(&mut self, rows: Vec<Row>, affected: u64) {
        self.sets.push_back(Set { rows, affected });
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.sets.extend(more.sets);
    }

    /// Skips statements whose results are not needed.
    pub(super) fn skip(&mut self, statements: usize) {
        self.sets.drain(..statements);
    }

    /// The rows of the next statement.
    pub(super) fn rows(&mut self) -> Vec<Row> {
        self.sets.pop_front().map_or_else(Vec::new, |set| set.rows)
    }

    /// The number of rows that the next statement changed.
    pub(super) fn affected(&mut self) -> u64 {
        self.sets.pop_front().map_or(0, |set| set.affected)
    }

    /// Decodes each row of the next statements.
    pub(super) fn each(
        &mut self,
        statements: usize,
        table: &'static str,
        mut each: impl FnMut(&mut Fields<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for _ in 0..statements {
            for row in self.rows() {
                let read = each(&mut Fields::new(table, &row));
                read.map_err(|error| self.noted(error.of_row(table, || key(table, &row))))?;
            }
        }
        Ok(())
    }

    /// Returns the decoded rows of the next statements.
    pub(super) fn list<T>(
        &mut self,
        statements: usize,
        table: &'static str,
        decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        self.each(statements, table, |row| {
            rows.push(decode(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Decodes each sound row of the next statement; corrupt ones are recorded under the key that `name` gives. Returns the
    /// number of rows, and the first column of the last.
    pub(super) fn each_sound(
        &mut self,
        table: &'static str,
        name: impl Fn(&Row) -> String,
        each: impl FnMut(&mut Fields<'_>) -> Result<(), StoreError>,
    ) -> Result<(usize, Option<Vec<u8>>), StoreError> {
        let note = self.notes();
        self.each_apart(table, name, &mut |row| note(&row), each)
    }

    /// Like [`Self::each_sound`]; corrupt rows go to `skip`.
    pub(super) fn each_apart(
        &mut self,
        table: &'static str,
        name: impl Fn(&Row) -> String,
        skip: &mut dyn FnMut(CorruptRow),
        mut each: impl FnMut(&mut Fields<'_>) -> Result<(), StoreError>,
    ) -> Result<(usize, Option<Vec<u8>>), StoreError> {
        let rows = self.rows();
        for row in &rows {
            match each(&mut Fields::new(table, row)).map_err(|error| error.of_row(table, || name(row))) {
                Ok(()) => {}
                Err(StoreError::CorruptRow(row)) => skip(*row),
                Err(error) => return Err(error),
            }
        }
        Ok((rows.len(), rows.last().map(|row| first_column(row).to_vec())))
    }

    /// Returns a function that records corrupt rows.
    pub(super) fn notes(&self) -> impl Fn(&CorruptRow) + use<> {
        let stats = self.stats.clone();
        move |row| stats.iter().for_each(|stats| stats.damages.note(row))
    }

    fn noted(&self, error: StoreError) -> StoreError {
        if let (StoreError::CorruptRow(row), Some(stats)) = (&error, &self.stats) {
            stats.damages.note(row);
        }
        error
    }

    /// The two values of the only row of the next statement.
    pub(super) fn two_numbers(&mut self, table: &'static str) -> Result<(u64, u64), StoreError> {
        let rows = self.rows();
        let row = rows.first().ok_or_else(|| corrupt(table, "a row is missing"))?;
        let mut row = Fields::new(table, row);
        Ok((row.number()?, row.number()?))
    }

    /// The only value of the next statement.
    pub(super) fn one_number(&mut self, table: &'static str) -> Result<u64, StoreError> {
        let rows = self.rows();
        let row = rows.first().ok_or_else(|| corrupt(table, "a row is missing"))?;
        Fields::new(table, row).number()
    }
}

/// The bytes of a row's first column.
pub(super) fn first_column(row: &Row) -> &[u8] {
    match row.as_ref(0) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

/// The key of a corrupt row, as far as the row begins with it.
pub(super) fn key(table: &str, row: &Row) -> String {
    let most = match table {
        "members" | "holds" | "transfers" | "reversals" | "audit" | "contests" | "contest_series"
        | "api_keys" | "profiles" => 1,
        "scores" | "entries" => 3,
        _ => 2,
    };
    let is_key = |name: &str| {
        matches!(
            name,
            "board"
                | "part"
                | "player"
                | "scope"
                | "key"
                | "digest"
                | "id"
                | "member"
                | "currency"
                | "sequence"
                | "kind"
                | "text"
                | "contest"
                | "no"
                | "topic"
                | "account"
        )
    };
    let columns = row.columns_ref().iter().take(most).enumerate();
    let columns = columns.take_while(|(_, column)| is_key(&column.name_str()));
    let texts: Vec<String> =
        columns.map(|(at, column)| column_text(&column.name_str(), row.as_ref(at))).collect();
    texts.join("/")
}

fn column_text(name: &str, value: Option<&Value>) -> String {
    let Some(Value::Bytes(bytes)) = value else { return "NULL".into() };
    if let ("id" | "member" | "contest", Ok(id)) = (name, <[u8; 16]>::try_from(bytes.as_slice())) {
        return Uuid(id).to_string();
    }
    std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), |text| text.escape_debug().to_string())
}

/// A row that is read column by column.
pub(super) struct Fields<'a> {
    table: &'static str,
    row: &'a Row,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(table: &'static str, row: &'a Row) -> Self {
        Self { table, row, at: 0 }
    }

    /// The next column, if it is a number, without advancing.
    pub(super) fn peek_number(&self) -> Option<u64> {
        let Some(Value::Bytes(bytes)) = self.row.as_ref(self.at) else { return None };
        std::str::from_utf8(bytes).ok()?.parse().ok()
    }

    /// The first column as text, for the name of a corrupt row.
    pub(super) fn first(&self) -> String {
        column_text("", self.row.as_ref(0))
    }

    fn bad(&self, what: &str) -> StoreError {
        damaged(self.table, &format!("column {} {what}", self.at))
    }

    /// Bytes, or nothing for NULL.
    pub(super) fn maybe_bytes(&mut self) -> Result<Option<&'a [u8]>, StoreError> {
        let value = self.row.as_ref(self.at);
        self.at += 1;
        match value {
            Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Value::NULL) => Ok(None),
            _ => Err(self.bad("is missing")),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        self.maybe_bytes()?.ok_or_else(|| self.bad("is null"))
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.bytes()?.try_into().map_err(|_| self.bad("has another length"))
    }

    pub(super) fn maybe_text(&mut self) -> Result<Option<&'a str>, StoreError> {
        let bytes = self.maybe_bytes()?;
        bytes.map(std::str::from_utf8).transpose().map_err(|_| self.bad("is no UTF-8"))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, StoreError> {
        self.maybe_text()?.ok_or_else(|| self.bad("is null"))
    }

    fn parsed<T: std::str::FromStr>(&mut self) -> Result<T, StoreError> {
        self.text()?.parse().map_err(|_| self.bad("is no number of its kind"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, StoreError> {
        self.parsed()
    }

    pub(super) fn number(&mut self) -> Result<u64, StoreError> {
        self.parsed()
    }

    pub(super) fn large(&mut self) -> Result<u128, StoreError> {
        self.parsed()
    }

    pub(super) fn tiny(&mut self) -> Result<u8, StoreError> {
        self.parsed()
    }

    pub(super) fn maybe_signed(&mut self) -> Result<Option<i64>, StoreError> {
        let text = self.maybe_text()?;
        text.map(str::parse).transpose().map_err(|_| self.bad("is no number of its kind"))
    }

    pub(super) fn maybe_small(&mut self) -> Result<Option<u32>, StoreError> {
        let number = self.maybe_signed()?.map(u32::try_from).transpose();
        number.map_err(|_| self.bad("is no number of its kind"))
    }

    pub(super) fn maybe_fixed<const N: usize>(&mut self) -> Result<Option<[u8; N]>, StoreError> {
        let bytes = self.maybe_bytes()?;
        bytes.map(TryInto::try_into).transpose().map_err(|_| self.bad("has another length"))
    }

    pub(super) fn small(&mut self) -> Result<u32, StoreError> {
        self.parsed()
    }

    pub(super) fn boolean(&mut self) -> Result<bool, StoreError> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.bad("is neither 0 nor 1")),
        }
    }

    /// A value by its parser.
    pub(super) fn choice<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<T, StoreError> {
        parse(self.text()?).ok_or_else(|| self.bad("is no choice"))
    }
}

/// The values of the keys that were found, in the order of the keys. The keys ascend.
pub(super) fn found<K: Ord, V>(
    results: &mut ResultSets,
    statements: usize,
    table: &'static str,
    keys: &[K],
    decode: impl Fn(&mut Fields<'_>) -> Result<(K, V), StoreError>,
) -> Result<Vec<Option<V>>, StoreError> {
    let mut found: Vec<Option<V>> = keys.iter().map(|_| None).collect();
    results.each(statements, table, |row| {
        let (key, value) = decode(row)?;
        let at = keys.binary_search(&key);
        let at = at.map_err(|_| damaged(table, "a row that was not requested"))?;
        found[at] = Some(value);
        Ok(())
    })?;
    Ok(found)
}

/// The next column as a player's id.
pub(super) fn player(row: &mut Fields<'_>) -> Result<PlayerId, StoreError> {
    PlayerId::new(row.text()?).map_err(|bad| damaged("", &format!("a player {}", bad.0)))
}
