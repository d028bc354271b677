//! `GET /v1/leaderboards/{board}/prizes`: the payouts of a closed period, best rank first. `POST …/repay` tries the unpaid ones again.

use super::{find, view};
use crate::http::call::Call;
use crate::http::contests::{after, page, sees_money};
use crate::http::guard::check_uncounted;
use crate::http::keys::blocking;
use crate::http::response::{self, Response};
use serde_json::json;
use tally_rules::contest::{ContestId, Payout};
use tally_service::periods::pay_again::{PrizeCounts, pay_again};
use tally_service::periods::prizes;
use tally_wire::Problem;
use tally_wire::api::audit::read_rest;
use tally_wire::api::contests::write_payout;
use tally_wire::cursor::{self, Names};

/// `GET …/prizes?period=&limit=&cursor=`
pub(in crate::http) async fn prizes(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let (text, period) = (call.query.text("cursor"), call.query.text("period"));
    call.finish_query()?;
    let tally = call.tally()?;
    let board = find(&tally, &call.board()?).await?;
    let view = view(&tally, &board, period.as_deref())?;
    let of = format!("{}-{}", board.no.0, view.window().map_or(0, |window| window.0));
    let from = after(text.as_deref(), (Names::PeriodPrizes, &of), |no| no.parse::<u32>().ok())?.unwrap_or(0);
    let contest = ContestId::of_board(&board.id).map(|(id, _)| id);
    let money = sees_money(&call, &tally, contest.as_ref()).await?;
    let name = view.name.clone();
    let (rows, settled) = blocking(move || prizes::prizes(&tally, &view, from, limit + 1)).await?;
    let next = |(no, _): &(u32, Payout)| {
        cursor::encode_name_of(Names::PeriodPrizes, &of, &no.saturating_add(1).to_string())
    };
    let mut body = page(rows.into(), limit, |(_, payout)| write_payout(payout, false, money, None), next);
    body["board"] = json!(board.id.as_str());
    body["period"] = json!(name);
    body["settled"] = json!(settled);
    Ok(response::ok(&body))
}

/// `POST …/prizes/repay?period=`
pub(in crate::http) async fn repay(mut call: Call) -> Result<Response, Problem> {
    // It pays winners that have become members since the prizes were set.
    check_uncounted(&call.caller, true)?;
    let period = call.query.text("period");
    call.finish_query()?;
    let tally = call.tally()?;
    let id = call.board()?;
    let mut body = call.json_or_none().await?;
    // The period is part of the request, as if it were in the body.
    let idempotency = call.idempotency(&tally, Some(&json!({"period": period, "body": body})))?;
    let origin = body.as_mut().map_or_else(|| Ok(call.origin(None)), |body| call.origin_of(body))?;
    read_rest(body).map_err(Problem::fields)?;
    let board = find(&tally, &id).await?;
    let view = view(&tally, &board, period.as_deref())?;
    let name = view.name.clone();
    let repaid = blocking(move || pay_again(&tally, &view, &origin, idempotency.as_ref()));
    let (counts, replayed) = repaid.await?;
    let PrizeCounts { settled, paid, pending, member_closed, limit_exceeded, no_member } = counts;
    let unpaid =
        json!({"member_closed": member_closed, "limit_exceeded": limit_exceeded, "no_member": no_member});
    let body = json!({
        "board": id.as_str(), "period": name, "settled": settled, "paid": paid, "pending": pending, "unpaid": unpaid,
    });
    Ok(response::replayed(response::ok(&body), replayed))
}
