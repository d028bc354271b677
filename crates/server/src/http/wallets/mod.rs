//! Money over HTTP: `post` and `batch` transfer it, `holds` reserves it, `read`, `lists` and `ledger` show it.
//! `currencies` has the rules of each currency.

pub(super) mod archives;
pub(super) mod batch;
pub(super) mod currencies;
pub(super) mod holds;
pub(super) mod ledger;
pub(super) mod lists;
pub(super) mod post;
pub(super) mod read;

use super::call::Call;
use super::{not_found, problem};
use tally_rules::Origin;
use tally_rules::idempotency::{IdempotencyKey, RequestKey};
use tally_rules::ledger::transfer_request::Posted;
use tally_rules::ledger::{Currency, MemberId};
use tally_service::Tally;
use tally_service::ledger::transfers::NewTransfer;
use tally_wire::Problem;
use tally_wire::api::wallets::{BadBody, OrderRead, TransactionJson, read_currency, read_id};
use tally_wire::fields::FieldError;

/// The problem of a rejected body. A rejection of a field names the field.
fn wrong(wrong: BadBody) -> Problem {
    match wrong {
        BadBody::Fields(errors) => Problem::fields(errors),
        BadBody::Rejected(pointer, rejection) => {
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

/// A transfer as its caller asks for it, under the idempotency key that it gives.
fn new_transfer(tally: &Tally, call: &Call, read: OrderRead, key: Option<RequestKey>) -> NewTransfer {
    let OrderRead { order, reason, metadata } = read;
    let fingerprint = tally.fingerprints.of_order(&order, reason.as_deref());
    let fingerprint = tally.fingerprints.with_metadata(fingerprint, metadata.as_deref());
    let idempotency = key.map(|key| IdempotencyKey { key, fingerprint });
    let origin = Origin { metadata, ..call.origin(reason) };
    NewTransfer { order, origin, idempotency, mint_cap: None }
}

/// Names the member that a request for money does not find: the payer, which has the field `payer`, or the recipient.
fn name_member(
    mut problem: Problem,
    (from, to): (Option<MemberId>, Option<MemberId>),
    payer: &str,
) -> Problem {
    let missed = match problem.code {
        "member_not_found" | "wallet_not_found" => from.map(|id| (payer, id)),
        "recipient_not_found" => to.map(|id| ("to", id)),
        _ => None,
    };
    match missed {
        None => problem,
        // What the request has is no id.
        Some((field, id)) if id.0 == read_id("") => {
            problem.detail.push_str(&format!(": send the `id` of a member as `{field}`"));
            problem
        }
        Some((_, id)) => not_found::name(problem, &id.0.to_string()),
    }
}

/// A transfer that was made: the entry of the wallet that the money leaves, or of the one that gets it.
fn of_posted(posted: &Posted) -> TransactionJson {
    TransactionJson::new(posted.key.wallet.currency, &posted.entry)
}

/// The default currency.
fn home(tally: &Tally) -> Currency {
    tally.settings.ledger.currencies.home()
}
