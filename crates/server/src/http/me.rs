//! Operations of members: sign in, their own data, and transfers to a phone number.

use super::call::{Call, bad_parameter};
use super::keys::blocking;
use super::ranks::board_after;
use super::response::{self, Response};
use super::{members, problem};
use crate::limits::SIGN_IN_BYTES_MAX;
use hyper::StatusCode;
use serde_json::json;
use tally_rules::Rejection;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::instant::SECOND;
use tally_rules::ledger::MemberId;
use tally_rules::ledger::member::Login;
use tally_rules::ledger::pin::PinRule;
use tally_service::members::pay::{self, NewPayment, PaymentReply};
use tally_service::members::signin::{self, SignedIn};
use tally_service::players::ranks::{self, WindowChoice};
use tally_service::{CallerKind, Failure};
use tally_wire::api::members::{read_payment, read_sign_in};
use tally_wire::cursor::{self, Names};
use tally_wire::numbers::ScoreOut;
use tally_wire::{Problem, time};

/// `POST /auth/signin`
pub(super) async fn sign_in(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let body = call.json_within(SIGN_IN_BYTES_MAX).await?;
    let (login, password) = read_sign_in(body).map_err(Problem::fields)?;
    let known = Login::new(&login).ok();
    let signed_in = signin::sign_in(&tally, (&login, known), password, call.client_address()).await;
    match signed_in.map_err(|failure| problem::of_failure(&failure))? {
        SignedIn::Token(token, seconds) => {
            let data = json!({"accessToken": token, "tokenType": "Bearer", "expiresIn": seconds});
            Ok(response::ok(&json!({"data": data})))
        }
        SignedIn::Wrong => {
            let detail = "invalid login or password";
            let wrong = Problem::new(401, "invalid_credentials", detail);
            Err(wrong.header("www-authenticate", "Bearer realm=\"tally\""))
        }
        SignedIn::Wait(seconds) => {
            let detail = format!("too many wrong passwords in a row; wait {seconds} s before the next");
            Err(Problem::new(429, "too_many_attempts", detail).retry_after(seconds))
        }
    }
}

/// `GET /v1/me`
pub(super) async fn profile(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, me) = (call.tally()?, me(&call));
    Ok(response::ok(&members::show(tally, me).await?))
}

/// `GET /v1/me/ranks`
pub(super) async fn ranks(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let after = call.query.text("cursor");
    call.finish_query()?;
    let (tally, int64, me) = (call.tally()?, call.int64()?, me(&call));
    let after = after.map(|text| board_after(&text)).transpose()?;
    let failed = |failure: Failure| problem::of_failure(&failure);
    let member = tally.members.known(&tally, me).await.map_err(failed)?;
    let read = move || ranks::of_player(&tally, &member.player, WindowChoice::AllTime, after.as_ref(), limit);
    let page = blocking(read).await?;
    let item = |one: &ranks::BoardRanks| {
        let definition = &one.board.definition;
        let ranked = one.windows.first()?.ranked.as_ref()?;
        let mut item = json!({
            "board": one.board.id.as_str(),
            "score": ScoreOut::new(definition.score, ranked.record.score, int64),
            "rank": ranked.rank,
            "total": ranked.total,
        });
        if definition.has_subscore() {
            item["subscore"] = json!(ScoreOut::integer(ranked.record.subscore, int64));
        }
        Some(item)
    };
    let mut body = json!({"items": page.items.iter().filter_map(item).collect::<Vec<_>>()});
    if let Some(next) = page.next {
        body["next_cursor"] = json!(cursor::encode_name(Names::Ranks, next.as_str()));
    }
    Ok(response::ok(&body))
}

/// `POST /transfer/phone-num`
pub(super) async fn transfer(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, me) = (call.tally()?, me(&call));
    let Some(key) = call.key()? else {
        let detail = "send an `Idempotency-Key` header with a new value for each transfer";
        let mut missing = bad_parameter("Idempotency-Key", "is required");
        missing.code = "idempotency_key_required";
        missing.detail = detail.into();
        missing.errors.iter_mut().for_each(|error| error.code = "idempotency_key_required");
        return Err(missing);
    };
    let payment = read_payment(call.json().await?, members::country(&tally)).map_err(Problem::fields)?;
    let amount = payment.amount.map_err(|rejection| problem::of_rejection(&rejection))?;
    let idempotency =
        Some(IdempotencyKey { key, fingerprint: tally.fingerprints.of_payment(&payment.phone, amount) });
    let rule = tally.settings.ledger.pin;
    let failed = |failure: Failure| with_rule(problem::of_failure(&failure), rule);
    let payer = tally.members.known(&tally, me).await.map_err(failed)?;
    let new = NewPayment {
        from: me,
        tokens_from: call.tokens_from,
        guess: tally.members.pins.guess(&payer.login, &payment.pin),
        phone: payment.phone,
        to: None,
        currency: tally.settings.ledger.currencies.home(),
        amount,
        idempotency,
    };
    let receipt = match pay::pay(&tally, new).await.map_err(failed)? {
        PaymentReply::Paid(receipt) => receipt,
        PaymentReply::SignedOut => return Err(super::guard::invalid_token()),
        PaymentReply::Wait(seconds) => {
            let detail = format!(
                "too many phone numbers that no member has; wait {seconds} s before the next transfer"
            );
            return Err(Problem::new(429, "too_many_attempts", detail).retry_after(seconds));
        }
    };
    let (key, entry) = (receipt.posted.key, receipt.posted.entry);
    let name = match entry.counterparty {
        Some(other) => tally.members.known(&tally, other).await.map_err(failed)?.name.to_string(),
        None => String::new(),
    };
    let data = json!({
        "transferId": entry.transfer.0.to_string(),
        "amount": entry.amount.to_string(),
        "balance": entry.after.to_string(),
        "currency": key.wallet.currency.as_str(),
        "counterparty": {"name": name},
        "at": time::format(entry.transfer.0.at()),
    });
    Ok(response::replayed(response::json(StatusCode::CREATED, &json!({"data": data})), receipt.replayed))
}

/// Says what further wrong PINs do. Not how many are left, which would help a guesser more than a player.
fn with_rule(mut problem: Problem, rule: PinRule) -> Problem {
    if problem.code == Rejection::InvalidPin.code() {
        let (attempts, seconds) = (rule.attempts.max(1), rule.lock_micros / SECOND);
        problem.detail = format!(
            "the PIN is wrong; {attempts} wrong PINs in a row lock it for {seconds} s, and each further lock is longer"
        );
    }
    problem
}

/// The calling member: the permission of the route admits only members.
pub(super) fn me(call: &Call) -> MemberId {
    match call.caller.kind {
        CallerKind::Member(id) => id,
        CallerKind::Key(_) | CallerKind::Anonymous => unreachable!("only members have the right"),
    }
}
