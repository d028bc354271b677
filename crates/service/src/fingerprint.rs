//! The meaning of a request, as a keyed digest of method, path and canonical body.
//!
//! A submit can be one request, a row of a batch or a command of another listener. All are compared as the equivalent single
//! HTTP request, so a retry through another listener is a replay. Each field is written with its length before it, so that
//! shifting bytes between fields changes the digest.

use crate::keyring::{Keyring, Numbered};
use crate::secret::Use;
use std::borrow::Cow;
use std::sync::Arc;
use tally_rules::idempotency::{Fingerprint, RequestFingerprint};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::Phone;
use tally_rules::ledger::{Amount, HoldId, MemberId, TransferId, TransferKind, TransferRequest, WalletKey};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId};

/// Makes fingerprints with the key of each accepted secret.
#[derive(Clone, Debug)]
pub struct Fingerprints {
    ring: Arc<Keyring>,
}

impl Fingerprints {
    /// Fingerprints of these secrets.
    pub fn new(ring: Arc<Keyring>) -> Self {
        Self { ring }
    }

    /// The digest of a request as its listener has normalised it.
    pub fn of(&self, method: &str, path: &str, canonical_body: &[u8]) -> RequestFingerprint {
        self.digest(&[method.as_bytes(), path.as_bytes(), canonical_body])
    }

    /// Of a submit, by its meaning.
    pub fn of_submit(
        &self,
        board: &BoardId,
        player: &PlayerId,
        score: ScoreInput,
        subscore: Option<i64>,
        at: Option<Micros>,
    ) -> RequestFingerprint {
        let (kind, score) = match score {
            ScoreInput::Int(value) => (b"i", value.to_le_bytes()),
            ScoreInput::Float(value) => (b"f", value.to_le_bytes()),
        };
        self.digest(&[
            b"submit",
            board.as_str().as_bytes(),
            player.as_bytes(),
            kind,
            &score,
            &optional(subscore),
            &optional(at.map(|at| at.0)),
        ])
    }

    /// Of the removal of a player from a board.
    pub fn of_remove(&self, board: &BoardId, player: &PlayerId, reason: Option<&str>) -> RequestFingerprint {
        self.with_reason(&[b"remove", board.as_str().as_bytes(), player.as_bytes()], reason)
    }

    /// The digest of a transfer, by its meaning.
    pub fn of_order(&self, order: &TransferRequest, reason: Option<&str>) -> RequestFingerprint {
        let (from, to) = order.what.sides();
        let head: Cow<'_, [u8]> = match order.what {
            TransferKind::Promotion { expires_at, .. } => {
                [&b"promotion"[..], &expires_at.0.to_le_bytes()].concat().into()
            }
            TransferKind::PlainWithdrawal { .. } => Cow::Borrowed(b"plain"),
            _ => Cow::Borrowed(b"move"),
        };
        let fields: &[&[u8]] = &[
            &head,
            order.what.kind().as_str().as_bytes(),
            &member(from),
            &member(to),
            order.currency.as_str().as_bytes(),
            &order.amount.units().to_le_bytes(),
            // An empty reference differs from none.
            order.reference.as_ref().map_or(b"", |_| b"r"),
            order.reference.as_deref().unwrap_or_default().as_bytes(),
        ];
        self.with_reason(fields, reason)
    }

    /// Of a member's own transfer: not of its PIN, and its caller is the key's.
    pub fn of_payment(&self, phone: &Phone, amount: Amount) -> RequestFingerprint {
        self.digest(&[b"pay", phone.as_str().as_bytes(), &amount.units().to_le_bytes()])
    }

    /// Of a hold to be made.
    pub fn of_hold(
        &self,
        wallet: &WalletKey,
        amount: Amount,
        expires_at: Option<Micros>,
        reason: Option<&str>,
    ) -> RequestFingerprint {
        let fields: &[&[u8]] = &[
            b"hold",
            &wallet.member.0.0,
            wallet.currency.as_str().as_bytes(),
            &amount.units().to_le_bytes(),
            &optional(expires_at.map(|at| at.0)),
        ];
        self.with_reason(fields, reason)
    }

    /// Of the end of a hold.
    pub fn of_ending(&self, hold: HoldId, ending: Ending, reason: Option<&str>) -> RequestFingerprint {
        let (word, amount, to): (&[u8], _, _) = match ending {
            Ending::Capture { amount, to } => (b"capture", amount, to),
            Ending::Void => (b"void", None, None),
        };
        let fields: &[&[u8]] = &[word, &hold.0.0, &optional(amount.map(Amount::units)), &member(to)];
        self.with_reason(fields, reason)
    }

    /// Of the reversal of a transfer.
    pub fn of_reversal(
        &self,
        original: TransferId,
        amount: Option<Amount>,
        reason: Option<&str>,
    ) -> RequestFingerprint {
        self.digest(&[
            b"reverse",
            &original.0.0,
            &optional(amount.map(Amount::units)),
            // An empty reason differs from none.
            reason.map_or(b"", |_| b"r"),
            reason.unwrap_or_default().as_bytes(),
        ])
    }

    /// The fingerprint of a request with metadata. Without them it is that of earlier versions.
    pub fn with_metadata(&self, request: RequestFingerprint, metadata: Option<&str>) -> RequestFingerprint {
        let Some(text) = metadata else { return request };
        let with = |before: Fingerprint, by: u8| {
            let digest = |one| digest(one, &[b"metadata", &before.0, text.as_bytes()]);
            self.ring.of(by).map_or(before, digest)
        };
        let RequestFingerprint { made, made_by, other } = request;
        let other = other.map(|(print, by)| (with(print, by), by));
        RequestFingerprint { made: with(made, made_by), made_by, other }
    }

    /// The digest of fields and of a reason. Without one it is that of earlier versions, so a retry of a request to them is one.
    fn with_reason(&self, fields: &[&[u8]], reason: Option<&str>) -> RequestFingerprint {
        match reason {
            None => self.digest(fields),
            Some(reason) => self.digest(&[fields, &[&b"reason"[..], reason.as_bytes()]].concat()),
        }
    }

    fn digest(&self, windows: &[&[u8]]) -> RequestFingerprint {
        let (active, other) = self.ring.both();
        let other = other.map(|one| (digest(one, windows), one.number));
        RequestFingerprint { made: digest(active, windows), made_by: active.number, other }
    }
}

fn digest(by: Numbered<'_>, windows: &[&[u8]]) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_keyed(by.key(Use::RequestFingerprint));
    for window in windows {
        hasher.update(&(window.len() as u64).to_le_bytes());
        hasher.update(window);
    }
    let digest = hasher.finalize();
    Fingerprint(digest.as_bytes()[..16].try_into().expect("sixteen of 32 bytes"))
}

fn member(member: Option<MemberId>) -> Vec<u8> {
    member.map_or_else(Vec::new, |member| member.0.0.to_vec())
}

fn optional(value: Option<i64>) -> Vec<u8> {
    value.map_or_else(Vec::new, |value| value.to_le_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use tally_rules::ledger::{Currency, Uuid};

    #[test]
    fn every_part_counts_and_parts_do_not_run_into_each_other() {
        let prints = Fingerprints::new(Secret::new([7; 32]).into());
        let board = |text| BoardId::new(text).unwrap();
        let player = |text| PlayerId::new(text).unwrap();
        let of = |b, p, s, sub, at| prints.of_submit(&board(b), &player(p), s, sub, at);
        let base = of("ab", "c", ScoreInput::Int(1), None, None);
        assert_eq!(base, of("ab", "c", ScoreInput::Int(1), None, None));
        for other in [
            of("a", "bc", ScoreInput::Int(1), None, None),
            of("ab", "c", ScoreInput::Int(2), None, None),
            of("ab", "c", ScoreInput::Float(1.0), None, None),
            of("ab", "c", ScoreInput::Int(1), Some(0), None),
            of("ab", "c", ScoreInput::Int(1), None, Some(Micros(0))),
            prints.of_remove(&board("ab"), &player("c"), None),
            prints.of_remove(&board("ab"), &player("c"), Some("r")),
            Fingerprints::new(Secret::new([8; 32]).into()).of_submit(
                &board("ab"),
                &player("c"),
                ScoreInput::Int(1),
                None,
                None,
            ),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn kind_payer_and_payee_change_the_fingerprint() {
        let prints = Fingerprints::new(Secret::new([7; 32]).into());
        let member = |byte| MemberId(Uuid([byte; 16]));
        let code = |text| Currency::parse(text).unwrap();
        let order = |what, currency, units, reference: Option<&str>| TransferRequest {
            what,
            currency: code(currency),
            amount: Amount::new(units).unwrap(),
            reference: reference.map(Into::into),
        };
        let (deposit, withdrawal) =
            (TransferKind::Deposit { to: member(1) }, TransferKind::Withdrawal { from: member(1) });
        let promotion = |at| TransferKind::Promotion { to: member(1), expires_at: Micros(at) };
        let transfer = |from, to| TransferKind::Transfer { from: member(from), to: member(to) };
        let wallet = WalletKey { member: member(1), currency: code("KRW") };
        let amount = |units| Amount::new(units).unwrap();
        let phone = |text| Phone::parse(text, None).unwrap();
        let hold = HoldId(Uuid([1; 16]));
        let capture = |units: Option<i64>, to| Ending::Capture { amount: units.map(amount), to };
        let all = [
            prints.of_order(&order(deposit, "KRW", 1, None), None),
            prints.of_order(&order(withdrawal, "KRW", 1, None), None),
            prints.of_order(&order(TransferKind::PlainWithdrawal { from: member(1) }, "KRW", 1, None), None),
            prints.of_order(&order(promotion(1), "KRW", 1, None), None),
            prints.of_order(&order(promotion(2), "KRW", 1, None), None),
            prints.of_order(&order(TransferKind::Fee { from: member(1) }, "KRW", 1, None), None),
            prints.of_order(&order(transfer(1, 2), "KRW", 1, None), None),
            prints.of_order(&order(transfer(2, 1), "KRW", 1, None), None),
            prints.of_order(&order(transfer(1, 2), "USD", 1, None), None),
            prints.of_order(&order(transfer(1, 2), "KRW", 2, None), None),
            prints.of_order(&order(transfer(1, 2), "KRW", 1, Some("")), None),
            prints.of_order(&order(transfer(1, 2), "KRW", 1, Some("r")), None),
            prints.of_payment(&phone("010-1111"), amount(1)),
            prints.of_payment(&phone("010-1111"), amount(2)),
            prints.of_payment(&phone("010-1112"), amount(1)),
            prints.of_hold(&wallet, amount(1), None, None),
            prints.of_hold(&wallet, amount(1), Some(Micros(0)), None),
            prints.of_hold(&wallet, amount(2), None, None),
            prints.of_ending(hold, Ending::Void, None),
            prints.of_ending(hold, Ending::Void, Some("")),
            prints.of_ending(hold, Ending::Void, Some("r")),
            prints.of_order(&order(deposit, "KRW", 1, None), Some("")),
            prints.of_order(&order(deposit, "KRW", 1, None), Some("r")),
            prints.of_order(&order(deposit, "KRW", 1, Some("r")), Some("r")),
            prints.of_hold(&wallet, amount(1), None, Some("r")),
            prints.with_metadata(prints.of_hold(&wallet, amount(1), None, Some("r")), Some("{}")),
            prints.with_metadata(prints.of_hold(&wallet, amount(1), None, None), Some("{}")),
            prints.with_metadata(prints.of_hold(&wallet, amount(1), None, None), Some("{\"a\":1}")),
            prints.of_ending(hold, capture(None, None), None),
            prints.of_reversal(TransferId(hold.0), None, None),
            prints.of_reversal(TransferId(hold.0), Some(amount(1)), None),
            prints.of_reversal(TransferId(hold.0), None, Some("")),
            prints.of_reversal(TransferId(hold.0), None, Some("r")),
            prints.of_reversal(TransferId(Uuid([2; 16])), None, None),
            prints.of_ending(hold, capture(Some(1), None), None),
            prints.of_ending(hold, capture(None, Some(member(1))), None),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "the {at}th is like one before it");
        }
        let again = prints.of_order(&order(transfer(1, 2), "KRW", 1, None), None);
        assert_eq!(all.iter().filter(|one| **one == again).count(), 1, "the same twice is the same");
        assert!(all.contains(&prints.of_payment(&phone("010 11 11"), amount(1))));
    }
}
