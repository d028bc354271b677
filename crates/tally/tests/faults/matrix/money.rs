//! Load on wallets: deposits, and holds that are captured, voided or left.
//!
//! Not here: fees and prizes (`contests.rs`, `boards.rs`).

use super::callers::{Caller, Outcome};
use super::load::{Load, Sent, done, items, post};
use super::world::send;
use serde_json::{Value, json};
use std::time::Instant;
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
    let wallet = &shown["items"][0];
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

    fn lose(&mut self, until: Instant) {
        self.sent.lose(until);
    }

    fn check(&self, client: &mut Client) {
        let target = format!("/v1/wallets/{}/transactions?limit=1000", self.member);
        let lines = items(client, &target, "items");
        self.sent.check(|_, name| lines.iter().filter(|line| line["reference"] == name).count());
        assert_eq!(purse(client, &self.member).0, 5 * lines.len() as i64);
    }
}

/// A hold that was acknowledged.
struct Held {
    id: String,
    at: Instant,
    amount: i64,
    /// `capture` or `void`, if it was ended.
    end: Option<&'static str>,
    may_be_lost: bool,
}

/// Holds of different amounts. Those of unknown outcome are repeated when everything works.
pub(crate) struct Holds {
    name: String,
    member: String,
    sent: i64,
    unknown: Vec<(Request, i64)>,
    held: Vec<Held>,
}

impl Holds {
    pub(crate) fn new(client: &mut Client, nth: usize) -> Self {
        let name = format!("h{nth}");
        let member = member(client, &name, INITIAL);
        Self { name, member, sent: 0, unknown: Vec::new(), held: Vec::new() }
    }

    fn add(&mut self, made: &Value, amount: i64) -> &mut Held {
        let id = made["id"].as_str().expect("an id").to_owned();
        self.held.push(Held { id, at: Instant::now(), amount, end: None, may_be_lost: false });
        self.held.last_mut().expect("it was just pushed")
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
        let held = self.add(&made, amount);
        let verb = ["capture", "void", "leave"][usize::try_from(caller.below(3)).expect("it is small")];
        if verb != "leave" {
            let end = post(format!("/v1/holds/{}/{verb}", held.id), &json!({}));
            // Lost, if the database has lost the hold.
            held.end = caller.insist(&end.idempotent(&format!("{key}/{verb}"))).map(|_| verb);
        }
    }

    fn lose(&mut self, until: Instant) {
        self.held.iter_mut().for_each(|held| held.may_be_lost = held.at < until);
    }

    fn settle(&mut self, caller: &mut Caller<'_>) {
        for (hold, amount) in std::mem::take(&mut self.unknown) {
            let made = caller.insist(&hold).expect("the member is there").json();
            self.add(&made, amount);
        }
    }

    fn check(&self, client: &mut Client) {
        let (mut balance, mut open) = (INITIAL, 0);
        for held in &self.held {
            let shown = send(client, &Request::new("GET", format!("/v1/holds/{}", held.id)));
            if held.may_be_lost && shown.status == 404 {
                continue;
            }
            let (status, captured, left) = match held.end {
                Some("capture") => ("captured", held.amount, 0),
                Some(_) => ("voided", 0, 0),
                None => ("open", 0, held.amount),
            };
            assert_eq!(shown.expect(200)["status"], status, "{} of {}", held.amount, self.name);
            (balance, open) = (balance - captured, open + left);
        }
        assert_eq!(purse(client, &self.member), (balance, open), "balance and held money of {}", self.name);
    }
}
