//! `POST /v1/deposits`, `/v1/withdrawals`, `/v1/transfers`: one transfer, durable when answered.

use super::{home, wrong};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use tally_rules::idempotency::IdempotencyKey;
use tally_service::ledger::transfers::{self, NewTransfer};
use tally_wire::Problem;
use tally_wire::api::wallets::{OrderRead, Posting, TransactionJson, read_order};

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
    let read = read_order(call.json().await?, posting, home(&tally)).map_err(wrong)?;
    let OrderRead { order, reason } = read;
    let fingerprint = tally.fingerprints.of_order(&order, reason.as_deref());
    let identity = key.map(|key| IdempotencyKey { key, fingerprint });
    let mint_cap = call.caller.mint_cap(order.currency).filter(|_| posting == Posting::Deposit);
    let new = NewTransfer { order, origin: call.origin(reason), identity, mint_cap };
    let receipt = transfers::post(&tally, new).await.map_err(|failure| problem::of_failure(&failure))?;
    let body = TransactionJson::from(&receipt.posted.entry);
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), receipt.replayed))
}
