//! Archives of the ledger as JSON: the months that an admin asks for.

use crate::fields::{FieldError, Fields, text};
use serde_json::Value;
use std::fmt::Write;
use tally_rules::ledger::Month;

/// Reads the body of `POST /v1/ledger/archives`: the month before which all are archived.
pub fn read_request(body: Value) -> Result<Month, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let before = fields.required("before", read_month);
    fields.finish()?;
    Ok(before.unwrap_or_default())
}

fn read_month(value: &Value) -> Result<Month, String> {
    Month::parse(&text(value)?).ok_or_else(|| "must be a month such as 2026-01".into())
}

/// A digest in hexadecimal.
pub fn write_digest(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
