//! `/v1/ledger`: account totals, the trial balance, unpaid payouts, one transfer from both sides, and its reversal.

use super::{of_posted, wrong};
use crate::http::call::Call;
use crate::http::keys::{blocking, invalid_cursor};
use crate::http::problem;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use serde_json::{Value, json};
use tally_rules::PlayerId;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::account::{Account, Totals};
use tally_rules::ledger::{Entry, MemberId, ReversalLink, TransferId};
use tally_service::Tally;
use tally_service::ledger::read::{self, MemberNames};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::owed::{self, Debt, DebtFilter, DebtPosition, Debtor};
use tally_wire::api::metadata;
use tally_wire::api::wallets::{AccountJson, ReversalRead, TransactionJson, read_reversal};
use tally_wire::cursor::{self, Names};
use tally_wire::{Problem, time};

/// `GET /v1/ledger/accounts`
pub(in crate::http) async fn accounts(call: Call) -> Result<Response, Problem> {
    let totals = totals(call).await?;
    let rows = rows(&totals);
    // `accounts` is the older name.
    Ok(response::ok(&json!({"items": rows, "accounts": rows})))
}

/// `GET /v1/ledger/trial-balance`
pub(in crate::http) async fn trial_balance(call: Call) -> Result<Response, Problem> {
    let totals = totals(call).await?;
    let rows = rows(&totals);
    // `accounts` is the older name.
    Ok(response::ok(&json!({"balanced": totals.balanced(), "items": rows, "accounts": rows})))
}

async fn totals(mut call: Call) -> Result<Totals, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    read::accounts(&tally).await.map_err(|failure| problem::of_failure(&failure))
}

fn rows(totals: &Totals) -> Vec<AccountJson> {
    totals.rows().map(|(key, total)| AccountJson::new(key, total)).collect()
}

/// `GET /v1/ledger/owed?player=&no_member=&limit=&cursor=`
pub(in crate::http) async fn owed(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    let player = call
        .query
        .text("player")
        .and_then(|text| PlayerId::new(&text).map_err(|bad| call.query.wrong("player", bad.0)).ok());
    let filter = DebtFilter { player, with_winners: call.query.flag("no_member") };
    call.finish_query()?;
    let (tally, shared) = (call.tally()?, call.tally()?);
    let from = text.map(|text| {
        let place = cursor::decode_name(Names::Owed, &text).and_then(|place| DebtPosition::parse(&place));
        place.ok_or_else(invalid_cursor)
    });
    let from = from.transpose()?;
    let page = blocking(move || owed::list_filtered(&shared, &filter, from, limit)).await?;
    let items: Vec<Value> = page.rows.iter().map(|debt| shown(&tally, debt)).collect();
    let mut body = json!({"items": items});
    if let Some(next) = page.next {
        body["next_cursor"] = json!(cursor::encode_name(Names::Owed, &next.to_string()));
    }
    response::name_damaged(&mut body, &page.damaged);
    Ok(response::ok(&body))
}

fn shown(tally: &Tally, debt: &Debt) -> Value {
    let mut row = match &debt.of {
        Debtor::Contest(id) => json!({"contest": id.as_str()}),
        Debtor::Period { board, period } => json!({"board": board.as_str(), "period": period}),
    };
    row["type"] = json!(if debt.is_refund { "refund" } else { "prize" });
    row["player"] = json!(debt.player.as_str());
    row["currency"] = json!(debt.currency.as_str());
    row["amount"] = json!(debt.amount.to_string());
    row["code"] = json!(debt.reason(tally));
    // The older name.
    row["reason"] = row["code"].clone();
    if let Some(member) = debt.member {
        row["member"] = json!(member.0.to_string());
    }
    row
}

/// `GET /v1/ledger/transactions/{transaction}`
pub(in crate::http) async fn transaction(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let id = call.id("transaction")?;
    let found = read::transfer(&tally, id).await.map_err(|failure| problem::of_failure(&failure))?;
    let transfer = &found.transfer;
    let (debited, credited) = transfer.accounts();
    let [out, arrived] = &found.entries;
    let with_entry = |mut side: Value, entry: Option<&Entry>| {
        let name = |entry: &Entry| entry.counterparty.and_then(|member| found.names.get(&member));
        let shown = |entry| TransactionJson::new(transfer.currency, entry).with_name(name(entry));
        side["transaction"] = json!(entry.map(shown));
        side
    };
    let reverses = match &found.link {
        Some(ReversalLink::Reverses { original, .. }) => Some(original.0.to_string()),
        Some(ReversalLink::Reversed(_)) | None => None,
    };
    Ok(response::ok(&json!({
        "id": found.id.0.to_string(),
        "type": transfer.kind.as_str(),
        "currency": transfer.currency.as_str(),
        "amount": transfer.amount.to_string(),
        "reference": found.reference().map(|text| &**text),
        "at": time::format(found.id.0.at()),
        "debit": with_entry(side(debited, transfer.debit, &found.names), out.as_ref()),
        "credit": with_entry(side(credited, transfer.credit, &found.names), arrived.as_ref()),
        "reversed": found.link.as_ref().map_or(0, ReversalLink::reversed).to_string(),
        "reversals": parts_of(found.link.as_ref()),
        "reverses": reverses,
        "actor": transfer.origin.actor.to_string(),
        "reason": found.reason(),
        "metadata": metadata::shown(&transfer.origin),
    })))
}

/// The reversals of a transfer, oldest first.
fn parts_of(link: Option<&ReversalLink>) -> Vec<Value> {
    let Some(ReversalLink::Reversed(parts)) = link else { return Vec::new() };
    let part = |(id, amount): &(TransferId, i64)| {
        let at = time::format(id.0.at());
        json!({"id": id.0.to_string(), "amount": amount.to_string(), "at": at})
    };
    parts.iter().map(part).collect()
}

/// `POST /v1/ledger/transactions/{transaction}/reverse`
pub(in crate::http) async fn reverse(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let (transaction, key) = (call.id("transaction")?, call.key()?);
    let ReversalRead { amount, reason } = read_reversal(call.json_or_none().await?).map_err(wrong)?;
    let fingerprint = tally.fingerprints.of_reversal(TransferId::of(transaction), amount, reason.as_deref());
    let idempotency = key.map(|key| IdempotencyKey { key, fingerprint });
    let new = NewReversal { transaction, amount, origin: call.origin(reason), idempotency };
    let receipt = reversals::reverse(&tally, new).await.map_err(|failure| problem::of_failure(&failure))?;
    let body = of_posted(&receipt.posted);
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), receipt.replayed))
}

/// One side of a transfer: its account, and the member of a wallet.
pub(super) fn side(account: Account, side: Option<(MemberId, u64)>, names: &MemberNames) -> Value {
    let member = side.map(|(member, _)| member);
    let name = member.and_then(|member| names.get(&member));
    json!({
        "account": account.as_str(),
        "member": member.map(|member| member.0.to_string()),
        "name": name.map(|name| &**name),
    })
}
