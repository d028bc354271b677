//! `POST /v1/deposits`, `/v1/withdrawals`, `/v1/transfers`: one transfer, durable when answered.

use super::{home, name_member, new_transfer, of_posted, wrong};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use tally_service::ledger::transfers::{self, NewTransfer};
use tally_wire::Problem;
use tally_wire::api::wallets::{Posting, read_order};

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
    let mint_cap = call.caller.mint_cap(read.order.currency).filter(|_| posting == Posting::Deposit);
    let new = NewTransfer { mint_cap, ..new_transfer(&tally, &call, read, key) };
    let sides = new.order.what.sides();
    let receipt = transfers::post(&tally, new).await;
    let receipt = receipt.map_err(|failure| name_member(problem::of_failure(&failure), sides, "from"))?;
    let body = of_posted(&receipt.posted);
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), receipt.replayed))
}
