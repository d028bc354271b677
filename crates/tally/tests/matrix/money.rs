//! Load on wallets: deposits, and holds that are captured, voided or left.
//!
//! Not here: fees and prizes (`contests.rs`, `boards.rs`).

use crate::callers::{Caller, Outcome};
use crate::load::{Load, Sent, done, items, post};
use serde_json::{Value, json};
use tally_testkit::{Client, Request};

const INITIAL: i64 = 1_000_000_000;

/// A member that is a player of the same name, with money.
#[track_caller]
pub(crate) fn member(client: &mut Client, name: &str, units: i64) -> String {
    let made = done(client, &post("/v1/members", &json!({"login_id": name, "name": name, "player": name})));
    let id = made["id"].as_str().expect("an id").to_owned();
    if units > 0 {
        done(client, &post("/v1/deposits", &json!({"to": id, "amount": units})));
    }
    id
}

fn number(value: &Value) -> i64 {
    value.as_str().expect("text").parse().expect("a number")
}

/// Balance and held money.
#[track_caller]
pub(crate) fn purse(client: &mut Client, member: &str) -> (i64, i64) {
    let shown = done(client, &Request::new("GET", format!("/v1/wallets/{member}")));
    let wallet = &shown["wallets"][0];
    (number(&wallet["balance"]), number(&wallet["held"]))
}

/// Deposits, each with a reference.
pub(crate) struct Deposits {
    member: String,
    sent: Sent,
}

impl Deposits {
    pub(crate) fn new(client: &mut Client, nth: usize) -> Self {
        let name = format!("d{nth}");
        Self { member: member(client, &name, 0), sent: Sent::new(name) }
    }
}

impl Load for Deposits {
    fn step(&mut self, caller: &mut Caller<'_>) {
        let body = json!({"to": self.member, "amount": 5, "reference": self.sent.next()});
        self.sent.ask(caller, post("/v1/deposits", &body));
    }

    fn check(&self, client: &mut Client) {
        let target = format!("/v1/wallets/{}/transactions?limit=1000", self.member);
        let lines = items(client, &target, "items");
        self.sent.check(|_, name| lines.iter().filter(|line| line["reference"] == name).count());
        assert_eq!(purse(client, &self.member).0, 5 * lines.len() as i64);
    }
}

/// Holds of different amounts. Those of unknown outcome are asked again when everything works.
pub(crate) struct Holds {
    name: String,
    member: String,
    sent: i64,
    unknown: Vec<(Request, i64)>,
    held: i64,
    captured: i64,
}

impl Holds {
    pub(crate) fn new(client: &mut Client, nth: usize) -> Self {
        let name = format!("h{nth}");
        let member = member(client, &name, INITIAL);
        Self { name, member, sent: 0, unknown: Vec::new(), held: 0, captured: 0 }
    }
}

impl Load for Holds {
    fn step(&mut self, caller: &mut Caller<'_>) {
        self.sent += 1;
        let (amount, key) = (self.sent, format!("{}-{}", self.name, self.sent));
        let hold = post("/v1/holds", &json!({"member": self.member, "amount": amount})).idempotent(&key);
        let made = match caller.ask(&hold) {
            Outcome::Done(answer) => answer.json(),
            Outcome::Unknown => return self.unknown.push((hold, amount)),
            Outcome::Refused => return,
        };
        let path = format!("/v1/holds/{}", made["id"].as_str().expect("an id"));
        let end =
            |verb: &str| post(format!("{path}/{verb}"), &json!({})).idempotent(&format!("{key}/{verb}"));
        match caller.below(3) {
            0 => {
                caller.insist(&end("capture"));
                self.captured += amount;
            }
            1 => drop(caller.insist(&end("void"))),
            _ => self.held += amount,
        }
    }

    fn settle(&mut self, caller: &mut Caller<'_>) {
        for (hold, amount) in std::mem::take(&mut self.unknown) {
            caller.insist(&hold);
            self.held += amount;
        }
    }

    fn check(&self, client: &mut Client) {
        let wanted = (INITIAL - self.captured, self.held);
        assert_eq!(purse(client, &self.member), wanted, "balance and held money of {}", self.name);
    }
}
