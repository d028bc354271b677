//! Members, for game servers: create, search, list, read, change, close and erase. Not here: `export`.

use super::call::{Call, bad_parameter};
use super::contests::page;
use super::keys::blocking;
use super::problem;
use super::response::{self, Response};
use super::span;
use hyper::StatusCode;
use serde_json::json;
use std::sync::Arc;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::{Handle, Login, Phone};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{Member, MemberId};
use tally_rules::{Micros, Origin, PlayerId};
use tally_service::members::NewMember;
use tally_service::members::change::{MemberChange, Set};
use tally_service::members::find;
use tally_service::{Failure, Tally};
use tally_wire::Problem;
use tally_wire::api::audit::read_rest;
use tally_wire::api::members::{self, FieldChange, MemberRules};
use tally_wire::cursor::{self, Names};

/// `POST /v1/members`
pub(super) async fn create(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let (body, idempotency, origin) = call.act(&tally).await?;
    let new = members::read_new(body, rules(&tally)).map_err(Problem::fields)?;
    let failed = |failure: Failure| problem::of_failure(&failure);
    let password = match new.password {
        Some(password) => Some(tally.members.digest(password).await.map_err(failed)?),
        None => None,
    };
    let pin = new.pin.map(|digits| tally.members.pins.pin(&new.login, &digits));
    let player_is_id = new.player.is_none();
    let member = Member {
        player: new.player.unwrap_or_else(|| PlayerId::new("-").expect("replaced by the member's id")),
        login: new.login,
        phone: new.phone,
        name: new.name.into(),
        password,
        pin,
        attempts: Attempts::default(),
        tokens_from: Micros(0),
        closed_at: None,
    };
    let new = NewMember { member, player_is_id, idempotency };
    let made = tally_service::members::create(&tally, new, &origin).await;
    let made = made.map_err(failed)?;
    let body = show(tally, made.id).await?;
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), made.replayed))
}

/// `GET /v1/members?login_id=|phone_number=|player=`, or all of them with `limit=&cursor=`
pub(super) async fn search(mut call: Call) -> Result<Response, Problem> {
    let tally = call.tally()?;
    // A search whose value a client has left out finds no member, and not the newest one.
    let is_list = ["limit", "cursor"].into_iter().any(|name| call.query.has(name));
    let (limit, cursor) = (call.query.limit(), call.query.text("cursor"));
    let asked =
        ["login_id", "phone_number", "player"].map(|name| call.query.text(name).map(|text| (name, text)));
    call.finish_query()?;
    let before = span::before(Names::Members, cursor)?.map(MemberId);
    let mut asked = asked.into_iter().flatten();
    let (name, text) = match asked.next() {
        Some(one) => one,
        None if is_list => return list(tally, before, limit).await,
        None => {
            let wrong = "or `phone_number` or `player` must be given, or `limit` to list all members";
            return Err(bad_parameter("login_id", wrong));
        }
    };
    if asked.next().is_some() {
        return Err(bad_parameter("login_id", "or `phone_number` or `player`: give at most one of them"));
    }
    let handle = match name {
        "login_id" => Login::new(&text).map(Handle::Login),
        "phone_number" => Phone::parse(&text, country(&tally)).map(Handle::Phone),
        _ => PlayerId::new(&text).map(Handle::Player),
    };
    let handle = handle.map_err(|bad| bad_parameter(name, bad.0))?;
    let asked = Arc::clone(&tally);
    let found = blocking(move || find::by_handle(&asked, &handle)).await?;
    let items: Vec<_> = found
        .iter()
        .map(|(id, member)| members::write(*id, member, tally.members.pins.has(member)))
        .collect();
    Ok(response::ok(&json!({"items": items})))
}

/// Every member, newest first.
async fn list(tally: Arc<Tally>, before: Option<MemberId>, limit: usize) -> Result<Response, Problem> {
    let read = Arc::clone(&tally);
    let found = blocking(move || find::list(&read, before, limit + 1)).await?;
    let show =
        |(id, member): &(MemberId, Member)| members::write(*id, member, tally.members.pins.has(member));
    let next = |(id, _): &(MemberId, Member)| cursor::encode_name(Names::Members, &id.0.to_string());
    Ok(response::ok(&page(found, limit, show, next)))
}

/// `GET /v1/members/{member}`
pub(super) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.member()?);
    Ok(response::ok(&show(tally, id).await?))
}

/// `PATCH /v1/members/{member}`
pub(super) async fn change(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.member()?);
    let (body, idempotency, origin) = call.act(&tally).await?;
    let wanted = members::read_change(body, rules(&tally)).map_err(Problem::fields)?;
    let failed = |failure: Failure| problem::of_failure(&failure);
    let password = match wanted.password {
        FieldChange::Unchanged => Set::Keep,
        FieldChange::To(None) => Set::To(None),
        FieldChange::To(Some(text)) => Set::To(Some(tally.members.digest(text).await.map_err(failed)?)),
    };
    let pin = match wanted.pin {
        FieldChange::Unchanged => Set::Keep,
        FieldChange::To(None) => Set::To(None),
        FieldChange::To(Some(digits)) => {
            let member = tally.members.known(&tally, id).await.map_err(failed)?;
            Set::To(Some(tally.members.pins.pin(&member.login, &digits)))
        }
    };
    let phone = match wanted.phone {
        FieldChange::Unchanged => Set::Keep,
        FieldChange::To(phone) => Set::To(phone),
    };
    let name = wanted.name.map(Into::into);
    let change =
        MemberChange { name, player: wanted.player, phone, password, pin, ..MemberChange::default() };
    changed((tally, id), change, origin, idempotency).await
}

/// `POST /v1/members/{member}/unlock-pin`
pub(super) async fn unlock_pin(call: Call) -> Result<Response, Problem> {
    without_body(call, MemberChange { unlock_pin: true, ..MemberChange::default() }).await
}

/// `POST /v1/members/{member}/sign-out`
pub(super) async fn sign_out(call: Call) -> Result<Response, Problem> {
    without_body(call, MemberChange { sign_out: true, ..MemberChange::default() }).await
}

async fn without_body(mut call: Call, change: MemberChange) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id) = (call.tally()?, call.member()?);
    let idempotency = call.idempotency_of(&tally, &origin)?;
    changed((tally, id), change, origin, idempotency).await
}

async fn changed(
    (tally, id): (Arc<Tally>, MemberId),
    change: MemberChange,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<Response, Problem> {
    let replayed = tally_service::members::change(&tally, id, change, Some(origin), idempotency).await;
    let replayed = replayed.map_err(|failure| problem::of_failure(&failure))?;
    Ok(response::replayed(response::ok(&show(tally, id).await?), replayed))
}

/// `POST /v1/members/{member}/close`
pub(super) async fn close(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, member) = (call.tally()?, call.member()?);
    let mut body = call.json_or_none().await?;
    let idempotency = call.idempotency(&tally, body.as_ref())?;
    let origin = body.as_mut().map_or_else(|| Ok(call.origin(None)), |body| call.origin_of(body))?;
    let force = members::read_close(body).map_err(Problem::fields)?;
    let closed = tally_service::members::close(&tally, member, force, origin, idempotency).await;
    let refused =
        |failure: Failure| problem::with_balance_if(call.reads_money(), problem::of_failure(&failure));
    let replayed = closed.map_err(refused)?;
    Ok(response::replayed(response::ok(&show(tally, member).await?), replayed))
}

/// `POST /v1/members/{member}/erase`
pub(super) async fn erase(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, member) = (call.tally()?, call.member()?);
    let mut body = call.json_or_none().await?;
    let idempotency = call.idempotency(&tally, body.as_ref())?;
    let origin = body.as_mut().map_or_else(|| Ok(call.origin(None)), |body| call.origin_of(body))?;
    read_rest(body).map_err(Problem::fields)?;
    let erased = tally_service::members::erase(&tally, member, origin, idempotency).await;
    let replayed = erased.map_err(|failure| problem::of_failure(&failure))?;
    Ok(response::replayed(response::ok(&show(tally, member).await?), replayed))
}

fn rules(tally: &Tally) -> MemberRules<'_> {
    MemberRules { country: country(tally), password_length_min: tally.members.settings().password_length_min }
}

/// The phone prefix of the home country.
pub(super) fn country(tally: &Tally) -> Option<&str> {
    tally.members.settings().phone_country.as_deref()
}

pub(super) async fn show(tally: Arc<Tally>, id: MemberId) -> Result<serde_json::Value, Problem> {
    let shared = Arc::clone(&tally);
    let member = blocking(move || find::by_id(&shared, id)).await?;
    Ok(members::write(id, &member, tally.members.pins.has(&member)))
}
