//! `GET /v1/wallets/{member}` and its transactions, and the same for the calling member.

use super::{currency, home};
use crate::http::call::Call;
use crate::http::keys::invalid_cursor;
use crate::http::me::me;
use crate::http::problem;
use crate::http::response::{self, Response};
use serde_json::json;
use tally_rules::ledger::{Currency, Entry, MemberId, WalletKey};
use tally_service::ledger::read;
use tally_wire::api::wallets::{TransactionJson, WalletJson};
use tally_wire::{Problem, cursor};

/// `GET /v1/wallets/{member}`
pub(in crate::http) async fn wallets(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let member = call.member()?;
    let all = read::wallets(&tally, member).await.map_err(|failure| problem::of_failure(&failure))?;
    let one =
        |(currency, wallet): &(_, _)| WalletJson::new(WalletKey { member, currency: *currency }, wallet);
    let wallets: Vec<WalletJson> = all.rows.iter().map(one).collect();
    // `wallets` is the older name.
    let mut body = json!({"member": member.0.to_string(), "items": wallets, "wallets": wallets});
    response::name_damaged(&mut body, &all.damaged);
    Ok(response::ok(&body))
}

/// `GET /v1/wallets/{member}/transactions`
pub(in crate::http) async fn transactions(mut call: Call) -> Result<Response, Problem> {
    let query = HistoryQuery::of(&mut call)?;
    let member = call.member()?;
    page(&call, member, query, true).await
}

/// `GET /v1/me/wallet`
pub(in crate::http) async fn own(mut call: Call) -> Result<Response, Problem> {
    let currency = currency(&mut call);
    call.finish_query()?;
    let tally = call.tally()?;
    let key = WalletKey { member: me(&call), currency: currency.unwrap_or_else(|| home(&tally)) };
    let wallet = read::wallet(&tally, key).await.map_err(|failure| problem::of_failure(&failure))?;
    Ok(response::ok(&WalletJson::new(key, &wallet)))
}

/// `GET /v1/me/transactions`
pub(in crate::http) async fn own_transactions(mut call: Call) -> Result<Response, Problem> {
    let query = HistoryQuery::of(&mut call)?;
    page(&call, me(&call), query, false).await
}

/// The query of a page of transactions.
struct HistoryQuery {
    limit: usize,
    cursor: Option<String>,
    currency: Option<Currency>,
}

impl HistoryQuery {
    fn of(call: &mut Call) -> Result<Self, Problem> {
        let limit = call.query.limit();
        let (cursor, currency) = (call.query.text("cursor"), currency(call));
        call.finish_query()?;
        Ok(Self { limit, cursor, currency })
    }
}

/// A page of a history. A member does not see the actors and the reasons of its transfers.
async fn page(
    call: &Call,
    member: MemberId,
    query: HistoryQuery,
    with_origins: bool,
) -> Result<Response, Problem> {
    let HistoryQuery { limit, cursor: text, currency } = query;
    let tally = call.tally()?;
    let key = WalletKey { member, currency: currency.unwrap_or_else(|| home(&tally)) };
    let below = text.map(|text| cursor::decode_history(key, &text).ok_or_else(invalid_cursor)).transpose()?;
    let page = read::history(&tally, key, (below, limit), with_origins).await;
    let page = page.map_err(|failure| problem::of_failure(&failure))?;
    let item = |entry: &Entry| {
        let name = entry.counterparty.and_then(|member| page.names.get(&member));
        TransactionJson::new(key.currency, entry).with_name(name)
    };
    let mut items: Vec<TransactionJson> = page.entries.rows.iter().map(item).collect();
    if with_origins {
        let rows = items.into_iter().zip(&page.origins);
        items = rows.map(|(item, origin)| item.with_origin(origin)).collect();
    }
    let mut body = json!({"items": items});
    if let Some(last) = page.more_below {
        body["next_cursor"] = json!(cursor::encode_history(key, last));
    }
    response::name_damaged(&mut body, &page.entries.damaged);
    Ok(response::ok(&body))
}
