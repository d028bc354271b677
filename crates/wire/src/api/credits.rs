//! Promotional credit as JSON: what a wallet has of it, and when it expires.

use crate::time;
use serde::Serialize;
use serde_json::Value;
use tally_rules::Micros;
use tally_rules::ledger::credit::{Credit, Credits};

/// Reads an instant.
pub(super) fn instant(value: &Value) -> Result<Micros, &'static str> {
    value.as_str().and_then(time::parse).ok_or("must be an RFC 3339 instant such as 2026-11-21T08:20:00Z")
}

/// The promotional credit of a wallet that has some.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CreditJson {
    promotional: String,
    credits: Vec<OpenCreditJson>,
}

/// Credit that expires at one instant.
#[derive(Clone, Debug, Serialize)]
struct OpenCreditJson {
    amount: String,
    expires_at: String,
}

impl CreditJson {
    pub(super) fn new(credits: &Credits) -> Self {
        let one = |credit: &Credit| OpenCreditJson {
            amount: credit.left.to_string(),
            expires_at: time::format(credit.expires_at),
        };
        let promotional = (credits.covered + credits.unexpired()).to_string();
        Self { promotional, credits: credits.open.iter().map(one).collect() }
    }
}
