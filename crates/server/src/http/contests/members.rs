//! `…/players`, `…/prizes` and `…/refunds`: the players of a contest, bans, corrected scores, payouts and refunds. Players were `…/members`.
//! Also the contests of a player.

use super::{actor, after, blocking, idempotency, idempotency_of, of_event, page, sees_money};
use crate::http::call::Call;
use crate::http::guard;
use crate::http::leaderboards::write_submitted;
use crate::http::problem;
use crate::http::response::{self, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, ContestTrigger, Payout};
use tally_rules::ledger::Currency;
use tally_rules::role::Permission;
use tally_service::contests::of_player::{self as entered, Entered};
use tally_service::contests::{ban as bans, correct as corrections, preview as previews, read};
use tally_service::damaged::Listing;
use tally_service::{Failure, Tally};
use tally_wire::Problem;
use tally_wire::api::contests::{ApplicationJson, write_member, write_payout};
use tally_wire::api::scores::read_correction;
use tally_wire::cursor::{self, Names};

/// `GET …/players?limit=&cursor=`
pub(in crate::http) async fn members(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let of = id.as_str().to_owned();
    let after = after(text.as_deref(), (Names::Entrants, &of), |name| PlayerId::new(name).ok())?;
    let money = sees_money(&call, &tally, Some(&id)).await?;
    let rows = blocking(move || read::members(&tally, &id, after.as_ref(), limit + 1)).await?;
    let show = |row: &read::ListedMember| {
        write_member(&row.player, &row.enrolled, (row.banned, row.attempts), money)
    };
    let next = |row: &read::ListedMember| cursor::encode_name_of(Names::Entrants, &of, row.player.as_str());
    Ok(response::ok(&page(rows, limit, show, next)))
}

/// `GET /v1/players/{player}/contests?limit=&cursor=`
pub(in crate::http) async fn of_player(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    call.finish_query()?;
    let (tally, player) = (call.tally()?, call.player()?);
    let of = format!("player:{}", player.as_str());
    let after = after(text.as_deref(), (Names::Contests, &of), |name| ContestId::new(name).ok())?;
    let money = sees_money(&call, &tally, None).await?;
    let name = player.clone();
    let found = blocking(move || entered::of_name(&tally, &name, after.as_ref(), limit)).await?;
    let items: Vec<Value> = found.entered.iter().map(|one| write_entered(&player, one, money)).collect();
    let mut body = json!({"player": player.as_str(), "items": items});
    if let Some(next) = found.next {
        body["next_cursor"] = json!(cursor::encode_name_of(Names::Contests, &of, next.as_str()));
    }
    response::name_damaged(&mut body, &found.damaged);
    Ok(response::ok(&body))
}

fn write_entered(player: &PlayerId, one: &Entered, money: bool) -> Value {
    let mut item = json!({
        "contest": one.id.as_str(),
        "title": one.record.contest.title,
        "state": one.record.state.as_str(),
        "staff": one.is_staff,
    });
    if let Some(row) = &one.application {
        item["application"] = json!(ApplicationJson::new(player, row));
    }
    if let Some(row) = &one.enrolled {
        item["entry"] = write_member(&row.player, &row.enrolled, (row.banned, row.attempts), money);
    }
    item
}

/// `GET …/prizes?preview=&limit=&cursor=`
pub(in crate::http) async fn prizes(mut call: Call) -> Result<Response, Problem> {
    if call.query.flag("preview") {
        return preview(call).await;
    }
    payouts(call, Names::Prizes, read::prizes).await
}

/// The prizes that a settlement would pay now, with the totals of all pages. Each page computes all prizes, so the route alone does not
/// admit to it: a key needs the scope of contests, and a member is staff.
async fn preview(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    call.finish_query()?;
    guard::check(&call.caller, Permission::Play)?;
    let (tally, id) = (call.tally()?, call.contest()?);
    // Its numbers are not those of the stored prizes.
    let of = format!("{}?preview", id.as_str());
    let from = after(text.as_deref(), (Names::Prizes, &of), |no| no.parse::<u32>().ok())?.unwrap_or(0);
    let money = sees_money(&call, &tally, Some(&id)).await?;
    let actor = actor(&call, &tally).await?;
    let found = blocking(move || previews::preview(&tally, &id, &actor, (from, limit + 1))).await?;
    let show = |(no, row): &(u32, Payout)| write_payout(row, *no >= found.first_of_pool, money, None);
    let mut body = page(found.rows.into(), limit, show, |(no, _)| next_number(Names::Prizes, &of, *no));
    let sum =
        |(currency, sum): (Currency, i128)| json!({"currency": currency.as_str(), "amount": sum.to_string()});
    let sums: Vec<Value> = found.sums.into_iter().map(sum).collect();
    body["totals"] = json!({"players": found.players, "prizes": found.prizes, "amounts": sums});
    Ok(response::ok(&body))
}

/// The cursor of the page that begins after the payout with this number.
fn next_number(names: Names, of: &str, no: u32) -> String {
    cursor::encode_name_of(names, of, &no.saturating_add(1).to_string())
}

/// `GET …/refunds?limit=&cursor=`
pub(in crate::http) async fn refunds(call: Call) -> Result<Response, Problem> {
    payouts(call, Names::Refunds, read::refunds).await
}

/// Reads a list of payouts.
type Paid = fn(&Tally, &ContestId, u32, usize) -> Result<Listing<(u32, Payout)>, Failure>;

async fn payouts(mut call: Call, names: Names, list: Paid) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let of = id.as_str().to_owned();
    let from = after(text.as_deref(), (names, &of), |no| no.parse::<u32>().ok())?.unwrap_or(0);
    let money = sees_money(&call, &tally, Some(&id)).await?;
    let listed = move || {
        let rows = list(&tally, &id, from, limit + 1)?;
        let reversed = if money { read::reversed(&tally, &id, &rows.rows)? } else { BTreeMap::new() };
        Ok((rows, reversed, read::get(&tally, &id)?))
    };
    let (rows, reversed, record) = blocking(listed).await?;
    let show = |(no, row): &(u32, Payout)| {
        let back = row.paid.and_then(Result::ok).and_then(|transfer| reversed.get(&transfer).copied());
        write_payout(row, record.is_of_pool(*no), money, back)
    };
    Ok(response::ok(&page(rows, limit, show, |(no, _)| next_number(names, &of, *no))))
}

/// `POST …/players/{player}/ban`
pub(in crate::http) async fn ban(call: Call) -> Result<Response, Problem> {
    set_ban(call, true).await
}

/// `POST …/players/{player}/restore`
pub(in crate::http) async fn restore(call: Call) -> Result<Response, Problem> {
    set_ban(call, false).await
}

/// `POST …/players/{player}/correct`
pub(in crate::http) async fn correct(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let (id, player) = (call.contest()?, call.player()?);
    let mut body = call.json().await?;
    let idempotency = idempotency(&call, &tally, Some(&body))?;
    let origin = call.origin_of(&mut body)?;
    let has_reason = origin.reason.is_some();
    let actor = actor(&call, &tally).await?.with(origin);
    let score = read_correction(body).map_err(Problem::fields)?;
    if !has_reason {
        return Err(Problem::field("/reason", "is required"));
    }
    let done = corrections::correct(&tally, &id, &actor, &player, score, idempotency).await;
    let (board, done) =
        done.map_err(|failure| of_event(problem::of_failure(&failure), ContestTrigger::Correct))?;
    let body = write_submitted(&board, &player, &done, int64, false);
    Ok(response::replayed(response::ok(&body), done.replayed))
}

async fn set_ban(mut call: Call, banned: bool) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id, player) = (call.tally()?, call.contest()?, call.player()?);
    let idempotency = idempotency_of(&call, &tally, &origin)?;
    let actor = actor(&call, &tally).await?.with(origin);
    let money = sees_money(&call, &tally, Some(&id)).await?;
    let done = bans::ban(&tally, &id, &actor, &player, banned, idempotency).await;
    let replayed = done.map_err(|failure| of_event(problem::of_failure(&failure), ContestTrigger::Ban))?;
    let mut body = json!({"player": player.as_str()});
    let contest = json!(id.as_str());
    // The ban is stored: a row that cannot be read now does not undo it.
    if let Ok(Some(row)) = blocking(move || read::member(&tally, &id, &player)).await {
        body = write_member(&row.player, &row.enrolled, (banned, row.attempts), money);
    }
    body["contest"] = contest;
    body["banned"] = json!(banned);
    Ok(response::replayed(response::ok(&body), replayed))
}
