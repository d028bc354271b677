//! `GET /v1/ledger/transactions` and `GET /v1/holds`: transfers and holds by filters, newest first.

use super::currency;
use super::ledger::side;
use crate::http::call::Call;
use crate::http::keys::blocking;
use crate::http::response::Response;
use crate::http::span::{self, SpanQuery};
use serde_json::json;
use tally_rules::contest::ContestId;
use tally_rules::ledger::hold::{Hold, HoldState};
use tally_rules::ledger::money::AMOUNT_MAX;
use tally_rules::ledger::{EntryKind, HoldId, MemberId, Uuid};
use tally_service::ledger::lists::{self, Referenced, TransferFilter};
use tally_wire::api::holds::HoldJson;
use tally_wire::api::metadata;
use tally_wire::cursor::Names;
use tally_wire::{Problem, Query, time};

/// `GET /v1/ledger/transactions?member=&type=&reference=&contest=&actor=&currency=&amount_min=&amount_max=&from=&until=&limit=&cursor=`
pub(in crate::http) async fn transactions(mut call: Call) -> Result<Response, Problem> {
    let currency = currency(&mut call);
    let query = &mut call.query;
    let least = query.number("amount_min", 1, AMOUNT_MAX.unsigned_abs()).map_or(1, u64::cast_signed);
    let most = query.number("amount_max", 1, AMOUNT_MAX.unsigned_abs()).map_or(i64::MAX, u64::cast_signed);
    if least > most {
        query.wrong("amount_max", "must not be less than `amount_min`");
    }
    let filter = TransferFilter {
        member: member(query),
        kind: kind(query),
        reference: query.text("reference"),
        contest: contest(query),
        actor: span::actor(query),
        currency,
        amounts: least..=most,
    };
    let span = SpanQuery::of(query);
    call.finish_query()?;
    let (tally, span) = (call.tally()?, span.of_list(Names::Transactions)?);
    let (page, names) = blocking(move || lists::transfers(&tally, &filter, &span)).await?;
    let shown = |id: Uuid, (transfer, reference): &Referenced| {
        let (debited, credited) = transfer.accounts();
        json!({
            "id": id.to_string(),
            "type": transfer.kind.as_str(),
            "currency": transfer.currency.as_str(),
            "amount": transfer.amount.to_string(),
            "reference": reference.as_deref(),
            "at": time::format(id.at()),
            "debit": side(debited, transfer.debit, &names),
            "credit": side(credited, transfer.credit, &names),
            "actor": transfer.origin.actor.to_string(),
            "reason": transfer.origin.reason.as_deref(),
            "metadata": metadata::shown(&transfer.origin),
        })
    };
    Ok(span::page(Names::Transactions, &page, shown))
}

/// `GET /v1/holds?member=&state=&from=&until=&limit=&cursor=`
pub(in crate::http) async fn holds(mut call: Call) -> Result<Response, Problem> {
    let query = &mut call.query;
    let (member, state) = (member(query), span::choice(query, "state", HoldState::ALL));
    let span = SpanQuery::of(query);
    call.finish_query()?;
    let (tally, span) = (call.tally()?, span.of_list(Names::Holds)?);
    let time = tally.decision_time();
    let page = blocking(move || lists::holds(&tally, (member, state), &span, time)).await?;
    let shown = |id: Uuid, hold: &Hold| json!(HoldJson::new(HoldId(id), hold, time));
    Ok(span::page(Names::Holds, &page, shown))
}

fn member(query: &mut Query) -> Option<MemberId> {
    let id = query.text("member").map(|text| Uuid::parse(&text))?;
    if id.is_none() {
        query.wrong("member", "must be the id of a member");
    }
    id.map(MemberId)
}

fn contest(query: &mut Query) -> Option<ContestId> {
    let id = query.text("contest").map(|text| ContestId::new(&text))?;
    id.map_err(|_| query.wrong("contest", "must be the id of a contest")).ok()
}

/// The type of a transfer, which is that of the wallet that it debits: no transfer has the type of what arrives.
fn kind(query: &mut Query) -> Option<EntryKind> {
    let all: Vec<EntryKind> =
        EntryKind::ALL.iter().copied().filter(|kind| *kind != EntryKind::TransferIn).collect();
    span::choice(query, "type", &all)
}
