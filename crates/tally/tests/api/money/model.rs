//! The expected results of requests for money: numbers by name, written from the contract.
//!
//! It shares no code with the product. The values of the server alone (ids, instants) come from its reply. Holds end by
//! themselves up to a second after their time. While one is due and not known to be ended, the model takes either outcome of
//! whatever depends on it, and nothing else. Not here: requests and comparing (`soak.rs`).

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A member: one of the caller's own, or one of these.
pub(crate) type Who = usize;
/// The caller's own are below.
pub(crate) const OWN: Who = 4;
/// Takes money of every caller, so its balance is unknown; it gives none.
pub(crate) const POT: Who = 4;
/// Does not exist.
pub(crate) const NOBODY: Who = 5;
/// A hold that does not exist.
pub(crate) const NO_HOLD: usize = usize::MAX;

/// The setting for members' own transfers.
pub(crate) const TRANSFER_MAX: i64 = 50;

const AMOUNT_MAX: i64 = 1_000_000_000_000_000;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// `None` is the world outside.
    Move {
        from: Option<Who>,
        to: Option<Who>,
        currency: &'static str,
        amount: i64,
        reference: Option<&'static str>,
    },
    Hold {
        of: Who,
        currency: &'static str,
        amount: i64,
        until: Option<i64>,
    },
    Capture {
        hold: usize,
        amount: Option<i64>,
        to: Option<Who>,
    },
    Void {
        hold: usize,
    },
    /// By the member itself, to a phone number, with a PIN.
    Pay {
        from: Who,
        to: Who,
        amount: i64,
        right: bool,
    },
}

impl Op {
    /// Rejected before anything is looked up.
    pub(crate) fn malformed(&self) -> Option<&'static str> {
        let amount = match self {
            Op::Move { amount, .. } | Op::Hold { amount, .. } | Op::Pay { amount, .. } => *amount,
            Op::Capture { amount, .. } => (*amount)?,
            Op::Void { .. } => return None,
        };
        match amount {
            ..=0 => Some("invalid_amount"),
            1..=AMOUNT_MAX => None,
            _ => Some("limit_exceeded"),
        }
    }

    /// The part that is compared with a later request under the same key: all but the PIN.
    fn compared(&self) -> Self {
        match *self {
            Op::Pay { from, to, amount, .. } => Op::Pay { from, to, amount, right: true },
            Op::Move { .. } | Op::Hold { .. } | Op::Capture { .. } | Op::Void { .. } => self.clone(),
        }
    }
}

/// The reply of the server, and its time: between these two instants.
pub(crate) struct ServerReply<'a> {
    pub(crate) between: (i64, i64),
    /// Empty for a done request.
    pub(crate) code: &'a str,
    /// The object in the answer.
    pub(crate) shown: &'a Value,
}

/// A rejection's code.
pub(crate) type RejectionCode = &'static str;

/// The status of a code.
pub(crate) fn status(code: RejectionCode) -> u16 {
    match code {
        "member_not_found" | "recipient_not_found" | "wallet_not_found" | "hold_not_found" => 404,
        "hold_resolved" | "hold_expired" => 409,
        "invalid_pin" => 403,
        "pin_locked" => 423,
        _ => 422,
    }
}

type Wallet = (Who, &'static str);

#[derive(Debug, Default)]
pub(crate) struct Purse {
    pub(crate) balance: i64,
    /// Oldest first; null is an entry without a known reply.
    pub(crate) lines: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct Promise {
    pub(crate) id: String,
    wallet: Wallet,
    amount: i64,
    until: Option<i64>,
    end: Option<End>,
    /// As it is shown.
    pub(crate) shown: Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Captured(i64, Option<Who>),
    Voided,
    Expired,
}

impl Promise {
    /// Whether its time is over: surely, surely not, or unknown.
    fn is_over(&self, (from, to): (i64, i64)) -> Option<bool> {
        match self.until {
            Some(until) if until <= from => Some(true),
            Some(until) if until <= to => None,
            Some(_) | None => Some(false),
        }
    }

    /// As it is shown after its time, whether it was ended or not.
    fn expired(&self) -> Value {
        let mut shown = self.shown.clone();
        (shown["state"], shown["status"]) = (json!("expired"), json!("expired"));
        shown["ended_at"] = shown["expires_at"].clone();
        shown
    }
}

/// A member, as others see it.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) phone: String,
    /// Empty for a member that does not pay by itself.
    pub(crate) token: String,
}

/// The state of one caller's members.
#[derive(Debug)]
pub(crate) struct Model {
    people: Vec<Person>,
    /// Wrong PINs in a row.
    pub(crate) wrong: [u8; OWN],
    pub(crate) purses: BTreeMap<Wallet, Purse>,
    pub(crate) holds: Vec<Promise>,
    pub(crate) stored: BTreeMap<String, (Op, Value)>,
    /// Debits and credits.
    pub(crate) totals: BTreeMap<(String, String), (i64, i64)>,
    /// The payments to the pot from here: how often, and how much in each currency.
    pub(crate) pot: BTreeMap<&'static str, (usize, i64)>,
}

/// A state to come back to.
struct Mark {
    purses: Vec<(Wallet, i64, usize)>,
    totals: BTreeMap<(String, String), (i64, i64)>,
    pot: BTreeMap<&'static str, (usize, i64)>,
}

impl Model {
    pub(crate) fn new(people: Vec<Person>) -> Self {
        let purses = (0..OWN).map(|who| ((who, "KRW"), Purse::default())).collect();
        let (holds, stored, totals, pot) = Default::default();
        Self { people, wrong: [0; OWN], purses, holds, stored, totals, pot }
    }

    /// The amount that is held for certain, and the most that may be held.
    pub(crate) fn held(&self, wallet: Wallet, between: (i64, i64)) -> (i64, i64) {
        let open = self.holds.iter().filter(|hold| hold.wallet == wallet && hold.end.is_none());
        let (mut least, mut most) = (0, 0);
        for hold in open {
            least += if hold.is_over(between) == Some(false) { hold.amount } else { 0 };
            most += hold.amount;
        }
        (least, most)
    }

    /// Only the certain part of the held amount was observed: the other holds have ended.
    pub(crate) fn note_ended(&mut self, wallet: Wallet, between: (i64, i64)) {
        let open = self.holds.iter_mut().filter(|hold| hold.wallet == wallet && hold.end.is_none());
        for hold in open.filter(|hold| hold.is_over(between) != Some(false)) {
            (hold.shown, hold.end) = (hold.expired(), Some(End::Expired));
        }
    }

    /// The allowed views of a hold.
    pub(crate) fn shown(&self, hold: usize, between: (i64, i64)) -> Vec<Value> {
        let hold = &self.holds[hold];
        match (hold.end, hold.is_over(between)) {
            (None, Some(true)) => vec![hold.expired()],
            (None, None) => vec![hold.shown.clone(), hold.expired()],
            (None, Some(false)) | (Some(_), _) => vec![hold.shown.clone()],
        }
    }

    /// One request; the answer, and whether it is that of an earlier one.
    pub(crate) fn decide(
        &mut self,
        op: &Op,
        key: Option<&str>,
        told: &ServerReply<'_>,
    ) -> Result<(Value, bool), RejectionCode> {
        op.malformed().map_or(Ok(()), Err)?;
        if let Op::Pay { from, right, .. } = *op {
            self.attempt(from, right)?;
        }
        let op = &op.compared();
        if let Some((first, answer)) = key.and_then(|key| self.stored.get(key)) {
            return if first == op { Ok((answer.clone(), true)) } else { Err("idempotency_key_reused") };
        }
        let answer = self.apply(op, told)?;
        key.map(|key| self.stored.insert(key.to_owned(), (op.clone(), answer.clone())));
        Ok((answer, false))
    }

    /// Requests of one chain: all, or none.
    pub(crate) fn decide_linked(
        &mut self,
        rows: &[(Op, Option<String>)],
        told: &[ServerReply<'_>],
    ) -> Vec<Result<(Value, bool), RejectionCode>> {
        if rows.iter().any(|(op, _)| op.malformed().is_some()) {
            return rows.iter().map(|(op, _)| Err(op.malformed().unwrap_or("linked_failed"))).collect();
        }
        let mark = self.mark();
        let mut done = Vec::new();
        for (place, ((op, key), told)) in rows.iter().zip(told).enumerate() {
            match self.decide(op, key.as_deref(), told) {
                Ok(answer) => done.push((answer, key)),
                Err(code) => {
                    let fresh = done.into_iter().filter(|((_, replayed), _)| !replayed);
                    fresh.filter_map(|(_, key)| key.as_ref()).for_each(|key| drop(self.stored.remove(key)));
                    self.undo(mark);
                    let others = |at| Err(if at == place { code } else { "linked_failed" });
                    return (0..rows.len()).map(others).collect();
                }
            }
        }
        done.into_iter().map(|(answer, _)| Ok(answer)).collect()
    }

    /// The fifth wrong PIN in a row locks it.
    fn attempt(&mut self, who: Who, right: bool) -> Result<(), RejectionCode> {
        if self.wrong[who] >= 5 {
            return Err("pin_locked");
        }
        self.wrong[who] = if right { 0 } else { self.wrong[who] + 1 };
        if right { Ok(()) } else { Err("invalid_pin") }
    }

    fn mark(&self) -> Mark {
        let purses = self.purses.iter().map(|(wallet, purse)| (*wallet, purse.balance, purse.lines.len()));
        Mark { purses: purses.collect(), totals: self.totals.clone(), pot: self.pot.clone() }
    }

    fn undo(&mut self, mark: Mark) {
        let mut purses = BTreeMap::new();
        for (wallet, balance, lines) in mark.purses {
            let mut purse = self.purses.remove(&wallet).expect("a wallet stays");
            purse.lines.truncate(lines);
            purses.insert(wallet, Purse { balance, ..purse });
        }
        (self.purses, self.totals, self.pot) = (purses, mark.totals, mark.pot);
    }

    fn apply(&mut self, op: &Op, told: &ServerReply<'_>) -> Result<Value, RejectionCode> {
        match *op {
            Op::Move { from, to, currency, amount, reference } => {
                self.can_move((from, to), currency, amount, told)?;
                let kind = match (from, to) {
                    (None, _) => "deposit",
                    (_, None) => "withdrawal",
                    (Some(_), Some(_)) => "transfer_out",
                };
                let group = told.shown["group_id"].clone();
                let at = told.shown["at"].clone();
                let mut line = self.shift(kind, (from, to), currency, amount, (reference, group, at));
                line["id"] = told.shown["id"].clone();
                // The party that got the reply knows its own entry whole.
                let own = (from.or(to).expect("somebody"), currency);
                if let Some(purse) = self.purses.get_mut(&own) {
                    *purse.lines.last_mut().expect("it was just written") = line.clone();
                }
                Ok(line)
            }
            Op::Pay { from, to, amount, .. } => self.pay(from, to, amount, told),
            Op::Hold { of, currency, amount, until } => self.place(of, currency, (amount, until), told),
            Op::Capture { hold, amount, to } => {
                let whole = self.holds.get(hold).map_or(0, |hold| hold.amount);
                let end = End::Captured(amount.unwrap_or(whole), to);
                if self.may_end(hold, end, told)? {
                    self.capture(hold, amount.unwrap_or(whole), to, told)?;
                }
                Ok(self.holds[hold].shown.clone())
            }
            Op::Void { hold } => {
                if self.may_end(hold, End::Voided, told)? {
                    self.ended(hold, End::Voided, "voided", told);
                }
                Ok(self.holds[hold].shown.clone())
            }
        }
    }

    /// A transfer in the currency of every member.
    fn pay(
        &mut self,
        from: Who,
        to: Who,
        amount: i64,
        told: &ServerReply<'_>,
    ) -> Result<Value, RejectionCode> {
        let sides = (Some(from), Some(to));
        self.can_move(sides, "KRW", amount, told)?;
        let shown = &told.shown["data"];
        let (group, at) = (shown["transferId"].clone(), shown["at"].clone());
        let line = self.shift("transfer_out", sides, "KRW", amount, (None, group.clone(), at.clone()));
        Ok(json!({"data": {
            "transferId": group, "amount": amount.to_string(), "balance": line["after"], "currency": "KRW",
            "counterparty": {"name": self.people[to].name}, "at": at,
        }}))
    }

    fn can_move(
        &self,
        (from, to): (Option<Who>, Option<Who>),
        currency: &'static str,
        amount: i64,
        told: &ServerReply<'_>,
    ) -> Result<(), RejectionCode> {
        self.check_sides((from, to), currency)?;
        if from.is_some() && to.is_some() && amount > TRANSFER_MAX {
            return Err("limit_exceeded");
        }
        from.map_or(Ok(()), |from| self.can_pay((from, currency), amount, told))
    }

    fn check_sides(
        &self,
        sides: (Option<Who>, Option<Who>),
        currency: &'static str,
    ) -> Result<(), RejectionCode> {
        let (from, to) = sides;
        if currency == "EUR" {
            return Err("currency_mismatch");
        }
        if from == Some(NOBODY) {
            return Err("member_not_found");
        }
        if from.is_some() && from == to {
            return Err("same_wallet");
        }
        if to == Some(NOBODY) {
            return Err("recipient_not_found");
        }
        let there = from.is_none_or(|from| self.purses.contains_key(&(from, currency)));
        if there { Ok(()) } else { Err("wallet_not_found") }
    }

    fn can_pay(&self, wallet: Wallet, amount: i64, told: &ServerReply<'_>) -> Result<(), RejectionCode> {
        let (least, most) = self.held(wallet, told.between);
        let balance = self.purses[&wallet].balance;
        let either = amount > balance - most && amount <= balance - least;
        let enough = if either { told.code != "insufficient_funds" } else { amount <= balance - most };
        if enough { Ok(()) } else { Err("insufficient_funds") }
    }

    /// Moves the possible amount; the entry of the payer, or of the payee of money from outside.
    fn shift(
        &mut self,
        kind: &str,
        (from, to): (Option<Who>, Option<Who>),
        currency: &'static str,
        amount: i64,
        (reference, group, at): (Option<&str>, Value, Value),
    ) -> Value {
        let house = match kind {
            "capture" => "FEES",
            _ => "BANK_ASSET",
        };
        let account = |side: Option<Who>| side.map_or(house, |_| "BANK_PAYABLE").to_owned();
        self.totals.entry((account(from), currency.into())).or_default().0 += amount;
        self.totals.entry((account(to), currency.into())).or_default().1 += amount;
        let arriving = if from.is_some() { "transfer_in" } else { kind };
        let mut told = Value::Null;
        for (own, other, kind, by) in [(from, to, kind, -amount), (to, from, arriving, amount)] {
            let Some(own) = own else { continue };
            if own == POT {
                let pot = self.pot.entry(currency).or_default();
                *pot = (pot.0 + 1, pot.1 + amount);
                continue;
            }
            let purse = self.purses.entry((own, currency)).or_default();
            let line = json!({
                "id": null, "type": kind, "currency": currency, "amount": amount.to_string(), "before": purse.balance.to_string(),
                "after": (purse.balance + by).to_string(), "counterparty": other.map(|other| &self.people[other].id),
                "group_id": group, "reference": reference, "status": "posted", "at": at,
            });
            purse.balance += by;
            purse.lines.push(line.clone());
            if told.is_null() {
                told = line;
            }
        }
        told
    }

    fn place(
        &mut self,
        of: Who,
        currency: &'static str,
        (amount, until): (i64, Option<i64>),
        told: &ServerReply<'_>,
    ) -> Result<Value, RejectionCode> {
        let id = told.shown["id"].as_str().unwrap_or_default().to_owned();
        let shown = json!({
            "id": id, "member": self.people[of].id, "currency": currency, "amount": amount.to_string(),
            "state": "open", "status": "open",
            "captured": null, "to": null, "group_id": null, "expires_at": until.map(instant),
            "created_at": told.shown["created_at"], "ended_at": null,
        });
        let hold = Promise { id, wallet: (of, currency), amount, until, end: None, shown: shown.clone() };
        if hold.is_over(told.between).unwrap_or(told.code == "hold_expiry_in_past") {
            return Err("hold_expiry_in_past");
        }
        self.check_sides((Some(of), None), currency)?;
        self.can_pay((of, currency), amount, told)?;
        self.holds.push(hold);
        Ok(shown)
    }

    /// Whether there is anything to do.
    fn may_end(&self, hold: usize, wanted: End, told: &ServerReply<'_>) -> Result<bool, RejectionCode> {
        let hold = self.holds.get(hold).ok_or("hold_not_found")?;
        match (hold.end, wanted) {
            (Some(End::Expired), _) => Err("hold_expired"),
            (Some(end), wanted) if end == wanted => Ok(false),
            (Some(_), _) => Err("hold_resolved"),
            (None, _) if hold.is_over(told.between).unwrap_or(told.code == "hold_expired") => {
                Err("hold_expired")
            }
            (None, End::Captured(amount, _)) if amount > hold.amount => Err("exceeds_hold"),
            (None, _) => Ok(true),
        }
    }

    fn capture(
        &mut self,
        hold: usize,
        amount: i64,
        to: Option<Who>,
        told: &ServerReply<'_>,
    ) -> Result<(), RejectionCode> {
        let (of, currency) = self.holds[hold].wallet;
        self.check_sides((Some(of), to), currency)?;
        let group = told.shown["group_id"].clone();
        self.shift("capture", (Some(of), to), currency, amount, (None, group.clone(), Value::Null));
        self.ended(hold, End::Captured(amount, to), "captured", told);
        let to = to.map(|to| self.people[to].id.clone());
        let shown = &mut self.holds[hold].shown;
        (shown["captured"], shown["to"], shown["group_id"]) = (json!(amount.to_string()), json!(to), group);
        Ok(())
    }

    fn ended(&mut self, hold: usize, end: End, status: &str, told: &ServerReply<'_>) {
        let hold = &mut self.holds[hold];
        hold.end = Some(end);
        (hold.shown["state"], hold.shown["status"]) = (json!(status), json!(status));
        hold.shown["ended_at"] = told.shown["ended_at"].clone();
    }
}

/// The text of an instant.
pub(crate) fn instant(micros: i64) -> String {
    tally_wire::time::format(tally_rules::Micros(micros))
}
