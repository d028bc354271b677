//! Money over HTTP: `post` and `batch` transfer it, `holds` reserves it, `read` and `ledger` show it.

pub(super) mod batch;
pub(super) mod holds;
pub(super) mod ledger;
pub(super) mod post;
pub(super) mod read;

use super::call::Call;
use super::problem;
use tally_rules::ledger::Currency;
use tally_service::Tally;
use tally_wire::Problem;
use tally_wire::api::wallets::{Wrong, read_currency};
use tally_wire::fields::FieldError;

/// The problem of a rejected body. A rejection of a field names the field.
fn wrong(wrong: Wrong) -> Problem {
    match wrong {
        Wrong::Fields(errors) => Problem::fields(errors),
        Wrong::Rejected(pointer, rejection) => {
            let error =
                FieldError { pointer: pointer.into(), code: rejection.code(), detail: rejection.detail() };
            Problem { errors: vec![error], ..problem::of_rejection(&rejection) }
        }
    }
}

/// The currency in the query.
fn currency(call: &mut Call) -> Option<Currency> {
    let text = call.query.text("currency")?;
    read_currency(&text).map_err(|why| call.query.wrong("currency", why)).ok()
}

/// The default currency.
fn home(tally: &Tally) -> Currency {
    tally.settings.ledger.currencies.home()
}
