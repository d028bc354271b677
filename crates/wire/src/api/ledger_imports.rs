//! Imports of members and of transfers, as newline-delimited JSON like those of scores.
//!
//! A member's password arrives only as its digest: the client computes the slow digests of thousands of rows.

use super::imports::read_digest;
use crate::fields::{FieldError, Fields, boolean, text};
use serde_json::Value;
use tally_rules::PlayerId;
use tally_rules::ledger::Amount;
use tally_rules::ledger::lines::{MemberLine, TransferLine};
use tally_rules::ledger::member::Login;

/// The most rows of one chunk.
pub use super::imports::CHUNK_ROWS_MAX;

/// The first line of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerChunkHead {
    /// The digest of the file and of how it is read: 64 hexadecimal digits.
    pub digest: [u8; 32],
    /// Lines of the file before this chunk.
    pub lines_before: u64,
    /// Lines of the file up to the end of this chunk.
    pub lines_after: u64,
    /// Whether the file ends here.
    pub last: bool,
}

/// Reads the head.
pub fn read_head(value: Value) -> Result<LedgerChunkHead, Vec<FieldError>> {
    let mut fields = Fields::new("/0", value)?;
    let digest = fields.required("digest", |value| {
        value.as_str().and_then(read_digest).ok_or("must be 64 hexadecimal digits")
    });
    let lines = |value: &Value| {
        let lines = value.as_u64().filter(|lines| i64::try_from(*lines).is_ok());
        lines.ok_or("must be a whole number below 2^63")
    };
    let lines_before = fields.required("lines_before", lines);
    let lines_after = fields.required("lines_after", lines);
    let last = fields.optional("last", boolean);
    if let (Some(before), Some(after)) = (lines_before, lines_after)
        && after < before
    {
        fields.wrong("lines_after", "must not be less than lines_before");
    }
    fields.finish()?;
    Ok(LedgerChunkHead {
        digest: digest.expect("no field is wrong"),
        lines_before: lines_before.expect("no field is wrong"),
        lines_after: lines_after.expect("no field is wrong"),
        last: last.unwrap_or(false),
    })
}

/// Reads a new member and its line in the file: line `number` of the chunk.
pub fn read_member(number: usize, value: Value) -> Result<(u64, MemberLine), Vec<FieldError>> {
    let mut fields = Fields::new(format!("/{number}"), value)?;
    let line = fields.required("line", line);
    let login = fields.required("login_id", login);
    let password_hash = fields.optional("password_hash", text);
    let pin = fields.optional("pin", text);
    let phone_number = fields.optional("phone_number", text);
    let name = fields.optional("name", text);
    let player = fields.optional("player", |value| PlayerId::new(&text(value)?).map_err(|bad| bad.0));
    let balance = fields.optional("balance", amount);
    fields.finish()?;
    let login = login.expect("no field is wrong");
    let member = MemberLine { login, password_hash, pin, phone_number, name, player, balance };
    Ok((line.expect("no field is wrong"), member))
}

/// Reads a transfer and its line in the file: line `number` of the chunk.
pub fn read_transfer(number: usize, value: Value) -> Result<(u64, TransferLine), Vec<FieldError>> {
    let mut fields = Fields::new(format!("/{number}"), value)?;
    let line = fields.required("line", line);
    let from = fields.required("from", login);
    let to = fields.required("to", login);
    let amount = fields.required("amount", amount);
    fields.finish()?;
    let movement = TransferLine {
        from: from.expect("no field is wrong"),
        to: to.expect("no field is wrong"),
        amount: amount.expect("no field is wrong"),
    };
    Ok((line.expect("no field is wrong"), movement))
}

fn line(value: &Value) -> Result<u64, &'static str> {
    value.as_u64().ok_or("must be a whole number")
}

fn login(value: &Value) -> Result<Login, &'static str> {
    Login::new(&text(value)?).map_err(|bad| bad.0)
}

fn amount(value: &Value) -> Result<Amount, &'static str> {
    const BAD: &str = "must be a whole number of minor units from 1 to 10^15";
    let text = value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|units| units.to_string()));
    text.and_then(|text| read_amount(&text)).ok_or(BAD)
}

/// Reads an amount as users type it: digits, not 0.
pub fn read_amount(text: &str) -> Option<Amount> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0') && text.len() <= 16;
    let units = digits.then(|| text.parse().ok())??;
    Amount::new(units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_members_row_needs_its_login_alone() {
        let (line, row) = read_member(1, json!({"line": 2, "login_id": "ann"})).unwrap();
        assert_eq!((line, row.login.as_str(), row.balance, row.player), (2, "ann", None, None));
        let bad =
            json!({"line": 2, "login_id": "", "pin": 12, "player": "", "balance": "0", "password": "x"});
        let wrong: Vec<_> = read_member(3, bad).unwrap_err().into_iter().map(|error| error.pointer).collect();
        assert_eq!(wrong, ["/3/login_id", "/3/pin", "/3/player", "/3/balance", "/3/password"]);
    }

    #[test]
    fn amounts_are_whole_and_not_nothing() {
        for (text, wanted) in [
            ("1", Some(1)),
            ("1000000000000000", Some(1_000_000_000_000_000)),
            ("1000000000000001", None),
            ("10000000000000000", None),
            ("0", None),
            ("01", None),
            ("-1", None),
            ("1.0", None),
            ("1e2", None),
            (" 1", None),
            ("", None),
        ] {
            assert_eq!(read_amount(text).map(Amount::units), wanted, "{text:?}");
        }
        let row = json!({"line": 1, "from": "a", "to": "b", "amount": 5});
        assert_eq!(read_transfer(1, row).unwrap().1.amount.units(), 5);
    }
}
