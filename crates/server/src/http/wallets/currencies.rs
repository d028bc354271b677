//! `GET /v1/currencies`: the configured currencies with their minor digits and rules.
//!
//! Every caller may read them, because amounts cannot be shown without the digits.

use crate::http::call::Call;
use crate::http::response::{self, Response};
use serde_json::{Value, json};
use tally_rules::ledger::Currency;
use tally_rules::ledger::limits::CurrencyLimits;
use tally_service::Tally;
use tally_wire::Problem;

/// `GET /v1/currencies`
pub(in crate::http) async fn list(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let all = tally.settings.ledger.currencies.all();
    let items: Vec<Value> = all.map(|currency| shown(&tally, currency)).collect();
    Ok(response::ok(&json!({"items": items})))
}

/// A currency; a limit that is off is left out.
fn shown(tally: &Tally, currency: Currency) -> Value {
    let settings = &tally.settings.ledger;
    let CurrencyLimits { per_transfer, per_day, balance, no_transfers, no_withdrawals } =
        settings.limits.get(&currency).copied().unwrap_or_default();
    let mut row = json!({
        "currency": currency.as_str(),
        "digits": settings.currencies.digits(currency),
        "default": settings.currencies.home() == currency,
        "transfers": !no_transfers,
        "withdrawals": !no_withdrawals,
    });
    for (name, limit) in [("transfer_max", per_transfer), ("day_max", per_day), ("balance_max", balance)] {
        if let Some(limit) = limit {
            row[name] = json!(limit.to_string());
        }
    }
    row
}
