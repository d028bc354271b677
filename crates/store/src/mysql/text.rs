//! SQL as text: numbers in decimal, bytes in hexadecimal, and everything else from the source of this program.
//!
//! Prepared statements would cost a round trip each and cannot be sent together, so a whole transaction is one text. The
//! types make that safe: a piece of SQL is a `&'static str`, and a value can only be written as digits. No quoted string is
//! ever made. Not here: the statements.

use super::connect::Flavour;
use crate::StoreError;
use std::fmt::Write;

/// Begins a block: several statements that are one.
const BLOCK: &str = "BEGIN NOT ATOMIC ";

/// The maximum number of keys in one `IN` list. MariaDB puts a list with 1,000 numbers or names into a temporary table. Then
/// it reads (and locks) in that table's order instead of the key's. 240 keys of four columns stay below.
const KEYS_MAX: usize = 240;

/// The maximum number of rows in one statement.
const ROWS_MAX: usize = 500;

/// The length at which a statement ends, so that a message can be cut near any size.
const STATEMENT_BYTES: usize = 64 << 10;

/// Statements, one after the other.
#[derive(Debug, Default)]
pub(super) struct Script {
    text: String,
    ends: Vec<usize>,
    /// The start of the open block.
    block: Option<usize>,
}

impl Script {
    /// A piece of SQL.
    pub(super) fn sql(&mut self, sql: &'static str) -> &mut Self {
        self.text.push_str(sql);
        self
    }

    /// A whole statement without values.
    pub(super) fn statement(&mut self, sql: &'static str) {
        self.sql(sql).end();
    }

    pub(super) fn signed(&mut self, number: i64) -> &mut Self {
        write!(self.text, "{number}").expect("a string takes everything");
        self
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        write!(self.text, "{}", number.into()).expect("a string takes everything");
        self
    }

    pub(super) fn large(&mut self, number: u128) -> &mut Self {
        write!(self.text, "{number}").expect("a string takes everything");
        self
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.text.reserve(bytes.len() * 2 + 3);
        self.text.push_str("x'");
        for byte in bytes {
            self.text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            self.text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        self.text.push('\'');
        self
    }

    /// Ends the statement.
    pub(super) fn end(&mut self) {
        self.text.push(';');
        match self.block {
            None => self.ends.push(self.text.len()),
            Some(begins) if self.text.len() - begins > STATEMENT_BYTES => {
                self.close();
                self.open();
            }
            Some(_) => {}
        }
    }

    /// Groups the following statements into one, up to [`Self::close`], if the server can. The server then answers once
    /// instead of with a packet for each statement, which would wake this side. None of them may return rows.
    pub(super) fn group(&mut self, flavour: Flavour) {
        if flavour == Flavour::MariaDb {
            self.open();
        }
    }

    fn open(&mut self) {
        self.block = Some(self.text.len());
        self.text.push_str(BLOCK);
    }

    /// Ends the block, if there is one.
    pub(super) fn close(&mut self) {
        let Some(begins) = self.block.take() else { return };
        if self.text.len() == begins + BLOCK.len() {
            self.text.truncate(begins);
        } else {
            self.sql("END").end();
        }
    }

    /// Writes `head`, a list of rows in parentheses, `tail`. Many rows are several statements, no rows are none.
    pub(super) fn rows<T>(
        &mut self,
        head: &'static str,
        rows: impl IntoIterator<Item = T>,
        tail: &'static str,
        put: impl FnMut(&mut RowScript<'_>, T),
    ) {
        self.list(ROWS_MAX, fixed(head), rows, fixed(tail), put);
    }

    /// Like [`Self::rows`], with a head and a tail that depend on the table and the server.
    pub(super) fn insert<T>(
        &mut self,
        head: impl Fn(&mut Self),
        rows: impl IntoIterator<Item = T>,
        tail: impl Fn(&mut Self),
        put: impl FnMut(&mut RowScript<'_>, T),
    ) {
        self.list(ROWS_MAX, head, rows, tail, put);
    }

    /// Like [`Self::insert`], with a fixed head.
    pub(super) fn upserts<T>(
        &mut self,
        head: &'static str,
        rows: impl IntoIterator<Item = T>,
        tail: impl Fn(&mut Self),
        put: impl FnMut(&mut RowScript<'_>, T),
    ) {
        self.list(ROWS_MAX, fixed(head), rows, tail, put);
    }

    /// Like [`Self::rows`], for the keys of a `WHERE`. Returns the number of statements.
    pub(super) fn keys<T>(
        &mut self,
        head: &'static str,
        keys: impl IntoIterator<Item = T>,
        tail: &'static str,
        put: impl FnMut(&mut RowScript<'_>, T),
    ) -> usize {
        self.keys_headed(fixed(head), keys, tail, put)
    }

    /// Like [`Self::keys`], with a head that has values or depends on the table.
    pub(super) fn keys_headed<T>(
        &mut self,
        head: impl Fn(&mut Self),
        keys: impl IntoIterator<Item = T>,
        tail: &'static str,
        put: impl FnMut(&mut RowScript<'_>, T),
    ) -> usize {
        self.list(KEYS_MAX, head, keys, fixed(tail), put)
    }

    fn list<T>(
        &mut self,
        max: usize,
        head: impl Fn(&mut Self),
        rows: impl IntoIterator<Item = T>,
        tail: impl Fn(&mut Self),
        mut put: impl FnMut(&mut RowScript<'_>, T),
    ) -> usize {
        let before = self.len();
        let (mut count, mut begins) = (0, self.text.len());
        for row in rows {
            if count == max || (count > 0 && self.text.len() - begins > STATEMENT_BYTES) {
                tail(self);
                self.end();
                (count, begins) = (0, self.text.len());
            }
            if count == 0 {
                head(self);
            } else {
                self.sql(",");
            }
            self.sql("(");
            put(&mut RowScript { script: self, first: true }, row);
            self.sql(")");
            count += 1;
        }
        if count > 0 {
            tail(self);
            self.end();
        }
        self.len() - before
    }

    /// The number of statements.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The length of the statements in bytes.
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Splits the statements into as few messages as possible: each text of at most `bytes_max`, with the number of its
    /// statements.
    pub(super) fn messages(&self, bytes_max: usize) -> Result<Vec<(&str, usize)>, StoreError> {
        debug_assert_eq!(
            self.ends.last().copied().unwrap_or(0),
            self.text.len(),
            "the last statement is ended"
        );
        let mut messages = Vec::new();
        let (mut from, mut to, mut count) = (0, 0, 0);
        for end in &self.ends {
            if end - to > bytes_max {
                return Err(StoreError::Row(format!(
                    "a row takes a statement of {} bytes, and the database's max_allowed_packet is too small for it",
                    end - to
                )));
            }
            if end - from > bytes_max {
                messages.push((&self.text[from..to], count));
                (from, count) = (to, 0);
            }
            (to, count) = (*end, count + 1);
        }
        if count > 0 {
            messages.push((&self.text[from..to], count));
        }
        Ok(messages)
    }
}

/// A tail that is the same for every server.
fn fixed(tail: &'static str) -> impl Fn(&mut Script) {
    move |script| {
        script.sql(tail);
    }
}

/// The end of a list of keys: with a lock if a decision depends on the rows.
pub(super) const fn keys_end(locking: bool) -> &'static str {
    if locking { ") FOR UPDATE" } else { ")" }
}

/// One row of a list: writes the commas.
pub(super) struct RowScript<'a> {
    script: &'a mut Script,
    first: bool,
}

impl RowScript<'_> {
    fn next(&mut self) -> &mut Script {
        if !std::mem::take(&mut self.first) {
            self.script.sql(",");
        }
        self.script
    }

    pub(super) fn sql(&mut self, sql: &'static str) -> &mut Self {
        self.next().sql(sql);
        self
    }

    pub(super) fn signed(&mut self, number: i64) -> &mut Self {
        self.next().signed(number);
        self
    }

    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.next().number(number);
        self
    }

    pub(super) fn large(&mut self, number: u128) -> &mut Self {
        self.next().large(number);
        self
    }

    pub(super) fn signed_or_null(&mut self, number: Option<i64>) -> &mut Self {
        match number {
            Some(number) => self.signed(number),
            None => self.sql("NULL"),
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.next().bytes(bytes);
        self
    }

    pub(super) fn bytes_or_null(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        match bytes {
            Some(bytes) => self.bytes(bytes),
            None => self.sql("NULL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(script: &mut Script, count: usize) {
        script.statement("BEGIN");
        script.rows("INSERT INTO t VALUES ", 0..count as u64, "", |row, number| {
            row.number(number).bytes(b"'\\\0").bytes_or_null(None);
        });
        script.statement("COMMIT");
    }

    #[test]
    fn values_are_digits() {
        let mut script = Script::default();
        three(&mut script, 2);
        let text = "BEGIN;INSERT INTO t VALUES (0,x'275c00',NULL),(1,x'275c00',NULL);COMMIT;";
        assert_eq!(script.messages(1 << 20).unwrap(), [(text, 3)]);
        let mut script = Script::default();
        three(&mut script, 0);
        assert_eq!(script.messages(1 << 20).unwrap(), [("BEGIN;COMMIT;", 2)]);
    }

    #[test]
    fn a_block_is_one_statement_and_a_long_one_is_several() {
        let grouped = |flavour, count| {
            let mut script = Script::default();
            script.group(flavour);
            script.rows("INSERT INTO t VALUES ", 0..count, "", |row, number: u64| {
                row.number(number);
            });
            script.close();
            script.statement("COMMIT");
            script
        };
        let maria = grouped(Flavour::MariaDb, 2);
        let text = "BEGIN NOT ATOMIC INSERT INTO t VALUES (0),(1);END;COMMIT;";
        assert_eq!(maria.messages(1 << 20).unwrap(), [(text, 2)]);
        let mysql = grouped(Flavour::MySql { row_name: true }, 2);
        assert_eq!(mysql.messages(1 << 20).unwrap(), [("INSERT INTO t VALUES (0),(1);COMMIT;", 2)]);
        assert_eq!(grouped(Flavour::MariaDb, 0).messages(1 << 20).unwrap(), [("COMMIT;", 1)]);
        let long = grouped(Flavour::MariaDb, 30_000);
        let cut = long.messages(STATEMENT_BYTES + 8192).unwrap();
        assert!(cut.len() > 1, "{}", cut.len());
        let begun = |(text, _): &(&str, usize)| text.starts_with(BLOCK) || *text == "COMMIT;";
        assert!(cut.iter().all(begun));
    }

    #[test]
    fn long_scripts_are_cut_between_statements() {
        let mut script = Script::default();
        three(&mut script, 1201);
        assert_eq!(script.len(), 5);
        let whole = script.messages(1 << 20).unwrap();
        assert_eq!(whole.len(), 1);
        for bytes_max in [12_000, 20_000, 25_000] {
            let cut = script.messages(bytes_max).unwrap();
            assert!(
                cut.len() > 1 && cut.iter().all(|(text, _)| text.len() <= bytes_max && text.ends_with(';'))
            );
            assert_eq!(cut.iter().map(|(_, count)| count).sum::<usize>(), 5);
            assert_eq!(cut.iter().map(|(text, _)| *text).collect::<String>(), whole[0].0);
        }
        assert!(matches!(script.messages(5000), Err(StoreError::Row(_))));
    }
}
