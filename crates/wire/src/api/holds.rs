//! Holds in replies.

use crate::time;
use serde::Serialize;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::hold::{End, Hold};
use tally_rules::ledger::{HoldId, MemberId};

/// A hold.
#[derive(Clone, Debug, Serialize)]
pub struct HoldJson {
    id: String,
    member: String,
    currency: String,
    amount: String,
    status: &'static str,
    captured: Option<String>,
    to: Option<String>,
    /// The `group_id` of the capture.
    group_id: Option<String>,
    expires_at: Option<String>,
    created_at: String,
    ended_at: Option<String>,
}

impl HoldJson {
    /// A hold as it is at `time`. A hold that is due is shown as expired before the store has that, but not by an untrusted clock.
    pub fn new(id: HoldId, hold: &Hold, time: DecisionTime) -> Self {
        let due = (time.is_trusted && hold.is_due(time.now)).then_some(End::Expired);
        let end = hold.end.map(|(end, _)| end).or(due);
        let (status, captured) = match end {
            None => ("open", None),
            Some(End::Voided) => ("voided", None),
            Some(End::Expired) => ("expired", None),
            Some(End::Captured { amount, to, transfer }) => ("captured", Some((amount, to, transfer))),
        };
        // The expiry itself, not when the store recorded it.
        let ended_at = match end {
            Some(End::Expired) => hold.expires_at,
            _ => hold.end.map(|(_, at)| at),
        };
        let name = |member: MemberId| member.0.to_string();
        Self {
            id: id.0.to_string(),
            member: name(hold.wallet.member),
            currency: hold.wallet.currency.to_string(),
            amount: hold.amount.to_string(),
            status,
            captured: captured.map(|(amount, _, _)| amount.to_string()),
            to: captured.and_then(|(_, to, _)| to).map(name),
            group_id: captured.map(|(_, _, transfer)| transfer.0.to_string()),
            expires_at: hold.expires_at.map(time::format),
            created_at: time::format(id.0.at()),
            ended_at: ended_at.map(time::format),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tally_rules::Micros;
    use tally_rules::ledger::{Currency, TransferId, Uuid, WalletKey};

    #[test]
    fn each_end_is_told() {
        let member = MemberId(Uuid([1; 16]));
        let shown_at = |end, time| {
            let wallet = WalletKey { member, currency: Currency::parse("KRW").unwrap() };
            let hold = Hold { wallet, amount: 50, expires_at: Some(Micros(1_000_000)), end };
            let id = HoldId(Uuid::new(Micros(7), 0));
            serde_json::to_value(HoldJson::new(id, &hold, time)).unwrap()
        };
        let shown = |end, now| shown_at(end, DecisionTime::trusted(Micros(now)));
        let open = shown(None, 999_999);
        assert_eq!(
            (&open["status"], &open["ended_at"], &open["captured"]),
            (&json!("open"), &json!(null), &json!(null))
        );
        assert_eq!(
            (&open["amount"], &open["created_at"]),
            (&json!("50"), &json!("1970-01-01T00:00:00.000007Z"))
        );
        // The same whether the store recorded it or not.
        assert_eq!(shown(None, 1_000_000), shown(Some((End::Expired, Micros(5_000_000))), 9));
        assert_eq!(shown_at(None, DecisionTime { now: Micros(1_000_000), is_trusted: false }), open);
        let transfer = TransferId(Uuid::new(Micros(8), 0));
        let end = End::Captured { amount: 20, to: Some(member), transfer };
        let captured = shown(Some((end, Micros(2))), 9);
        assert_eq!((&captured["status"], &captured["captured"]), (&json!("captured"), &json!("20")));
        assert_eq!(
            (&captured["to"], &captured["group_id"]),
            (&captured["member"], &json!(transfer.0.to_string()))
        );
        assert_eq!(shown(Some((End::Voided, Micros(2))), 9)["status"], "voided");
    }
}
