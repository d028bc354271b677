//! Players: finding them, profiles, erasing, and bans on a board.

use super::call::{Call, bad_parameter};
use super::contests::actor;
use super::keys::blocking;
use super::problem;
use super::response::{self, Response};
use crate::limits::{FOUND_DEFAULT, FOUND_MAX};
use hyper::StatusCode;
use serde_json::json;
use tally_rules::ids::ID_BYTES_MAX;
use tally_rules::role::Permission;
use tally_rules::scope::Scope;
use tally_rules::{BoardId, PlayerId, Rejection};
use tally_service::CallerKind;
use tally_service::contests::ban as bans;
use tally_service::players::search::FoundPlayer;
use tally_service::players::{erase as erasing, profile, search};
use tally_wire::Problem;
use tally_wire::api::{members, players};

/// `GET /v1/players?prefix=&limit=`
pub(super) async fn search(mut call: Call) -> Result<Response, Problem> {
    let prefix = call.query.text("prefix").unwrap_or_default();
    let limit = call.query.number("limit", 1, FOUND_MAX).unwrap_or(FOUND_DEFAULT);
    call.finish_query()?;
    if !(1..=ID_BYTES_MAX).contains(&prefix.trim().len()) {
        return Err(bad_parameter("prefix", "must be 1 to 128 bytes: the beginning of a name"));
    }
    let tally = call.tally()?;
    let with_members = call.caller.may(Permission::Scope(Scope::MembersRead));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    tally.refresh().await;
    let found = blocking(move || search::search(&tally, &prefix, limit, with_members)).await?;
    let shown = |(player, one): (&PlayerId, &FoundPlayer)| {
        let boards: Vec<&str> = one.boards.iter().map(BoardId::as_str).collect();
        let mut shown = json!({"player": player.as_str(), "boards": boards});
        if let Some((id, member)) = &one.member {
            shown["member"] = members::write_found(*id, member);
        }
        shown
    };
    let items: Vec<_> = found.items.iter().map(shown).collect();
    Ok(response::ok(&json!({"items": items, "complete": found.complete})))
}

/// `PUT /v1/players/{player}`
pub(super) async fn put(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let player = call.player()?;
    let body = call.json().await?;
    let idempotency = call.idempotency(&tally, Some(&body))?;
    let profile = players::read_profile(body).map_err(Problem::fields)?;
    let body = players::write_player(player.as_str(), &profile);
    let put = blocking(move || profile::put(&tally, &player, &profile, idempotency.as_ref())).await?;
    let status = if put.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(response::replayed(response::json(status, &body), put.replayed))
}

/// `GET /v1/players/{player}`
pub(super) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let player = call.player()?;
    if let CallerKind::Member(me) = call.caller.kind {
        let member =
            tally.members.known(&tally, me).await.map_err(|failure| problem::of_failure(&failure))?;
        if member.player != player {
            // Another member's player looks like a missing one.
            return Err(problem::of_rejection(&Rejection::PlayerNotFound));
        }
    }
    let name = player.clone();
    let profile = blocking(move || profile::of_known(&tally, &player)).await?;
    Ok(response::ok(&players::write_player(name.as_str(), &profile)))
}

/// `DELETE /v1/players/{player}`: erases the player everywhere.
pub(super) async fn erase(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let tally = call.tally()?;
    let player = call.player()?;
    let idempotency = call.idempotency_of(&tally, &origin)?;
    let done = erasing::erase(&tally, player, origin, idempotency).await;
    let replayed = done.map_err(|failure| problem::of_failure(&failure))?;
    Ok(response::replayed(response::none(), replayed))
}

/// `POST …/players/{player}/ban`
pub(super) async fn ban(call: Call) -> Result<Response, Problem> {
    set_ban(call, true).await
}

/// `POST …/players/{player}/restore`
pub(super) async fn restore(call: Call) -> Result<Response, Problem> {
    set_ban(call, false).await
}

async fn set_ban(mut call: Call, banned: bool) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let tally = call.tally()?;
    let (board, player) = (call.board()?, call.player()?);
    let idempotency = call.idempotency_of(&tally, &origin)?;
    let actor = actor(&call, &tally).await?.with(origin);
    let done = bans::on_board(&tally, &board, &actor, &player, banned, idempotency).await;
    let replayed = done.map_err(|failure| problem::of_failure(&failure))?;
    let body = json!({"board": board.as_str(), "player": player.as_str(), "banned": banned});
    Ok(response::replayed(response::ok(&body), replayed))
}
