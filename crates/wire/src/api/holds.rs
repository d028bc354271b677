//! Holds: the bodies of their requests, and their form in replies.

use super::metadata::{metadata, shown};
use super::wallets::{BadBody, currency, member, read_amount, reason};
use crate::api::credits::instant;
use crate::fields::Fields;
use crate::time;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::hold::{Ending, Hold, HoldEnd, HoldState};
use tally_rules::ledger::{Amount, Currency, HoldId, MemberId, WalletKey};
use tally_rules::{Micros, Origin};

/// The fields of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRead {
    /// The wallet.
    pub wallet: WalletKey,
    /// The amount.
    pub amount: Amount,
    /// When it expires.
    pub expires_at: Option<Micros>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// Data of the caller.
    pub metadata: Option<Arc<str>>,
}

/// Reads the body of `POST /v1/holds`.
pub fn read_hold(body: Value, home: Currency) -> Result<HoldRead, BadBody> {
    let mut fields = Fields::new("", body)?;
    let member = fields.required("member", member);
    let currency = fields.optional("currency", currency).unwrap_or(home);
    let amount = fields.required("amount", read_amount);
    let expires_at = fields.optional("expires_at", instant);
    let (reason, metadata) = (reason(&mut fields), metadata(&mut fields));
    fields.finish()?;
    let (member, amount) = (member.expect("no field is wrong"), amount.expect("no field is wrong"));
    let amount = amount.map_err(|rejection| BadBody::Rejected("/amount", rejection))?;
    Ok(HoldRead { wallet: WalletKey { member, currency }, amount, expires_at, reason, metadata })
}

/// The end of a hold, and why it ends.
pub type EndingRead = (Ending, Option<Arc<str>>);

/// Reads the body of a capture. Without a body, the whole hold goes to the account `FEES`.
pub fn read_capture(body: Option<Value>) -> Result<EndingRead, BadBody> {
    let Some(body) = body else { return Ok((Ending::Capture { amount: None, to: None }, None)) };
    let mut fields = Fields::new("", body)?;
    let amount = fields.optional("amount", read_amount);
    let to = fields.optional("to", member);
    let reason = reason(&mut fields);
    fields.finish()?;
    let amount = amount.transpose().map_err(|rejection| BadBody::Rejected("/amount", rejection))?;
    Ok((Ending::Capture { amount, to }, reason))
}

/// Reads the body of a void, which may be missing.
pub fn read_void(body: Option<Value>) -> Result<EndingRead, BadBody> {
    let Some(body) = body else { return Ok((Ending::Void, None)) };
    let mut fields = Fields::new("", body)?;
    let reason = reason(&mut fields);
    fields.finish()?;
    Ok((Ending::Void, reason))
}

/// A hold.
#[derive(Clone, Debug, Serialize)]
pub struct HoldJson {
    id: String,
    member: String,
    currency: String,
    amount: String,
    state: &'static str,
    /// The older name of `state`.
    status: &'static str,
    captured: Option<String>,
    to: Option<String>,
    /// The `group_id` of the capture.
    group_id: Option<String>,
    expires_at: Option<String>,
    created_at: String,
    ended_at: Option<String>,
    actor: String,
    reason: Option<String>,
    metadata: Option<Value>,
    ended_by: Option<String>,
    end_reason: Option<String>,
}

impl HoldJson {
    /// A hold as it is at `time`.
    pub fn new(id: HoldId, hold: &Hold, time: DecisionTime) -> Self {
        let end = hold.end_at(time);
        let captured = match end {
            Some(HoldEnd::Captured { amount, to, transfer }) => Some((amount, to, transfer)),
            None | Some(HoldEnd::Voided | HoldEnd::Expired) => None,
        };
        // The expiry itself, not when the store recorded it.
        let ended_at = match end {
            Some(HoldEnd::Expired) => hold.expires_at,
            _ => hold.end.map(|(_, at)| at),
        };
        // A server ends a hold that is due. Rows of earlier releases do not say so.
        let background = Origin::BACKGROUND;
        let ended_by = if end == Some(HoldEnd::Expired) { &background } else { &hold.ended_by };
        let reason = |origin: &Origin| origin.reason.as_deref().map(str::to_owned);
        let name = |member: MemberId| member.0.to_string();
        Self {
            id: id.0.to_string(),
            member: name(hold.wallet.member),
            currency: hold.wallet.currency.to_string(),
            amount: hold.amount.to_string(),
            state: HoldState::of(end).as_str(),
            status: HoldState::of(end).as_str(),
            captured: captured.map(|(amount, _, _)| amount.to_string()),
            to: captured.and_then(|(_, to, _)| to).map(name),
            group_id: captured.map(|(_, _, transfer)| transfer.0.to_string()),
            expires_at: hold.expires_at.map(time::format),
            created_at: time::format(id.0.at()),
            ended_at: ended_at.map(time::format),
            actor: hold.origin.actor.to_string(),
            reason: reason(&hold.origin),
            metadata: shown(&hold.origin),
            ended_by: end.map(|_| ended_by.actor.to_string()),
            end_reason: end.and_then(|_| reason(ended_by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tally_rules::ledger::{TransferId, Uuid};
    use tally_rules::{Actor, Rejection};

    #[test]
    fn each_end_is_told() {
        let member = MemberId(Uuid([1; 16]));
        let shown_at = |end: Option<(HoldEnd, Micros)>, time| {
            let wallet = WalletKey { member, currency: Currency::parse("KRW").unwrap() };
            let origin = Origin {
                actor: Actor::Local,
                reason: Some("entry".into()),
                metadata: Some("{\"a\":1}".into()),
            };
            let ended_by = end.map(|_| Origin::BACKGROUND).unwrap_or_default();
            let expires_at = Some(Micros(1_000_000));
            let hold = Hold { wallet, amount: 50, expires_at, origin, end, ended_by };
            let id = HoldId(Uuid::new(Micros(7), 0));
            serde_json::to_value(HoldJson::new(id, &hold, time)).unwrap()
        };
        let shown = |end, now| shown_at(end, DecisionTime::trusted(Micros(now)));
        let open = shown(None, 999_999);
        assert_eq!(
            (&open["state"], &open["ended_at"], &open["captured"]),
            (&json!("open"), &json!(null), &json!(null))
        );
        assert_eq!(
            (&open["amount"], &open["created_at"]),
            (&json!("50"), &json!("1970-01-01T00:00:00.000007Z"))
        );
        assert_eq!((&open["actor"], &open["reason"]), (&json!("local"), &json!("entry")));
        assert_eq!(open["metadata"], json!({"a": 1}));
        assert_eq!((&open["ended_by"], &open["end_reason"]), (&json!(null), &json!(null)));
        assert_eq!(shown(Some((HoldEnd::Voided, Micros(2))), 9)["ended_by"], "background");
        // The same whether the store recorded it or not.
        assert_eq!(shown(None, 1_000_000), shown(Some((HoldEnd::Expired, Micros(5_000_000))), 9));
        assert_eq!(shown_at(None, DecisionTime { now: Micros(1_000_000), is_trusted: false }), open);
        let transfer = TransferId(Uuid::new(Micros(8), 0));
        let end = HoldEnd::Captured { amount: 20, to: Some(member), transfer };
        let captured = shown(Some((end, Micros(2))), 9);
        assert_eq!((&captured["state"], &captured["captured"]), (&json!("captured"), &json!("20")));
        assert_eq!(
            (&captured["to"], &captured["group_id"]),
            (&captured["member"], &json!(transfer.0.to_string()))
        );
        let voided = shown(Some((HoldEnd::Voided, Micros(2))), 9);
        assert_eq!((&voided["state"], &voided["status"]), (&json!("voided"), &json!("voided")));
    }

    #[test]
    fn a_capture_without_a_body_takes_all() {
        let all = Ending::Capture { amount: None, to: None };
        assert_eq!(read_capture(None), Ok((all, None)));
        assert_eq!(read_capture(Some(json!({}))), Ok((all, None)));
        assert_eq!(read_capture(Some(json!({"reason": "won"}))), Ok((all, Some("won".into()))));
        let refused = BadBody::Rejected("/amount", Rejection::InvalidAmount);
        assert_eq!(read_capture(Some(json!({"amount": "0"}))), Err(refused));
    }

    #[test]
    fn a_void_has_no_more_than_a_reason() {
        assert_eq!(read_void(None), Ok((Ending::Void, None)));
        assert_eq!(read_void(Some(json!({"reason": ""}))), Ok((Ending::Void, Some("".into()))));
        for body in [json!({"amount": 1}), json!({"reason": "x".repeat(256)}), json!([])] {
            assert!(matches!(read_void(Some(body.clone())), Err(BadBody::Fields(_))), "{body}");
        }
    }
}
