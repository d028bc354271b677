//! `POST /v1/deposits`, `/v1/withdrawals`, `/v1/transfers`: one transfer, durable when answered.

use super::{home, wrong};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use tally_rules::idempotency::IdempotencyKey;
use tally_service::ledger::transfers::{self, NewTransfer};
use tally_wire::Problem;
use tally_wire::api::wallets::{Posting, TransactionJson, read_order};

/// `POST /v1/deposits`
pub(in crate::http) async fn deposit(call: Call) -> Result<Response, Problem> {
    run(call, Posting::Deposit).await
}

/// `POST /v1/withdrawals`
pub(in crate::http) async fn withdraw(call: Call) -> Result<Response, Problem> {
    run(call, Posting::Withdrawal).await
}

/// `POST /v1/transfers`
pub(in crate::http) async fn transfer(call: Call) -> Result<Response, Problem> {
    run(call, Posting::Transfer).await
}

async fn run(mut call: Call, posting: Posting) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let key = call.key()?;
    let order = read_order(call.json().await?, posting, home(&tally)).map_err(wrong)?;
    let identity = key.map(|key| IdempotencyKey { key, fingerprint: tally.fingerprints.of_order(&order) });
    let new = NewTransfer { order, identity };
    let receipt = transfers::post(&tally, new).await.map_err(|failure| problem::of_failure(&failure))?;
    let body = TransactionJson::from(&receipt.posted.entry);
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), receipt.replayed))
}
