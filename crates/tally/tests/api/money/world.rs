//! A server with members, and the audit of its books, over HTTP and by `tally verify`.

pub(crate) use crate::TALLY;
use serde_json::{Value, json};
use std::time::SystemTime;
use tally_testkit::audit::read_pages;
use tally_testkit::{Client, Request, Response, TestTally};

/// Digests of passwords that cost no time.
pub(crate) const CHEAP: [(&str, &str); 2] =
    [("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"), ("TALLY_MEMBERS_PASSWORD_PASSES", "1")];
/// Of every member that pays by itself; a number loses the zeros before it.
const PIN: u32 = 42;

pub(crate) struct World {
    pub(crate) server: TestTally,
    pub(crate) client: Client,
    pub(crate) members: Vec<String>,
}

impl World {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Self::of(TestTally::start_set(TALLY, &[&CHEAP, settings].concat()))
    }

    pub(crate) fn of(server: TestTally) -> Self {
        let client = server.client();
        Self { server, client, members: Vec::new() }
    }

    /// A member with this balance.
    pub(crate) fn member(&mut self, name: &str, units: u64) -> String {
        let made = self.client.post("/v1/members", &json!({"login_id": name, "name": name})).expect(201);
        let id = made["id"].as_str().expect("an id").to_owned();
        self.members.push(id.clone());
        if units > 0 {
            self.client.post("/v1/deposits", &json!({"to": id, "amount": units})).expect(201);
        }
        id
    }

    /// A member that pays by itself, at that number: with its id, a token.
    pub(crate) fn payer(&mut self, name: &str, phone: &str, units: u64) -> (String, String) {
        let body = json!({
            "login_id": name, "name": name, "phone_number": phone, "password": format!("{name}'s password"), "pin": format!("{PIN:04}"),
        });
        let made = self.client.post("/v1/members", &body).expect(201);
        let id = made["id"].as_str().expect("an id").to_owned();
        self.members.push(id.clone());
        if units > 0 {
            self.client.post("/v1/deposits", &json!({"to": id, "amount": units})).expect(201);
        }
        let signed_in = self
            .client
            .post("/auth/signin", &json!({"loginId": name, "password": format!("{name}'s password")}))
            .expect(200);
        (id, signed_in["data"]["accessToken"].as_str().expect("a token").to_owned())
    }

    /// The server runs again, at another address.
    pub(crate) fn restarted(&mut self) {
        self.server.restart();
        self.client = self.server.client();
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Response {
        self.client.post(path, body)
    }

    pub(crate) fn post_under(&mut self, key: &str, path: &str, body: &Value) -> Response {
        self.client.send(&Request::new("POST", path).json(body).idempotent(key))
    }

    pub(crate) fn get(&mut self, path: &str) -> Value {
        self.client.get(path).expect(200)
    }

    /// The state of a member: balance, held, available.
    pub(crate) fn purse(&mut self, member: &str) -> (String, String, String) {
        let wallets = self.get(&format!("/v1/wallets/{member}"));
        let wallet = &wallets["items"][0];
        let text = |name: &str| wallet[name].as_str().expect("money is text").to_owned();
        (text("balance"), text("held"), text("available"))
    }

    pub(crate) fn balance(&mut self, member: &str) -> String {
        self.purse(member).0
    }

    /// A member's history as members see it and as replies show it, newest first, by pages of that size.
    pub(crate) fn history(&mut self, member: &str, limit: usize) -> Vec<Value> {
        let mut lines = self.full_history(member, limit);
        for line in lines.iter_mut().filter_map(Value::as_object_mut) {
            ["counterparty_name", "actor", "reason", "metadata"]
                .iter()
                .for_each(|name| drop(line.remove(*name)));
        }
        lines
    }

    /// The same with names, actors, reasons and metadata.
    pub(crate) fn full_history(&mut self, member: &str, limit: usize) -> Vec<Value> {
        read_pages(&mut self.client, &format!("/v1/wallets/{member}/transactions?limit={limit}"), "items").0
    }

    /// Everything agrees with everything.
    pub(crate) fn audit(&mut self) {
        let mut owed = 0_i128;
        for member in self.members.clone() {
            let shown = self.get(&format!("/v1/wallets/{member}"));
            for wallet in shown["items"].as_array().expect("wallets") {
                let number = |name: &str| -> i128 { wallet[name].as_str().unwrap().parse().unwrap() };
                assert_eq!(number("available"), number("balance") - number("held"), "{wallet}");
                assert!(number("held") >= 0 && number("available") >= 0, "{wallet}");
                let currency = wallet["currency"].as_str().expect("a code");
                let path = format!("/v1/wallets/{member}/transactions?limit=7&currency={currency}");
                let (lines, _) = read_pages(&mut self.client, &path, "items");
                check_history(&lines, &wallet["balance"]);
                owed += number("balance");
            }
        }
        let trial = self.get("/v1/ledger/trial-balance");
        assert_eq!(trial["balanced"], json!(true), "{trial}");
        let payable = trial["items"].as_array().expect("accounts").iter();
        let payable = payable.filter(|one| one["account"] == "BANK_PAYABLE");
        let number = |one: &Value, name: &str| -> i128 { one[name].as_str().unwrap().parse().unwrap() };
        let net: i128 = payable.map(|one| number(one, "credits") - number(one, "debits")).sum();
        assert_eq!(net, owed, "the bank owes what is in wallets: {trial}");
        self.server.run(&["verify"]).expect(0);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.members.is_empty() {
            self.audit();
        }
    }
}

/// A member's own transfer to a phone number, with the right PIN or a wrong one.
pub(crate) fn payment(token: &str, phone: &str, amount: &Value, right: bool) -> Request {
    let pin = if right { PIN } else { PIN + 1 };
    let body = json!({"phoneNumber": phone, "amount": amount, "password": pin});
    Request::new("POST", "/transfer/phone-num").json(&body).key(token)
}

/// This machine's clock, which is the server's, in microseconds.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since.as_micros()).expect("it is before the year 200,000")
}

/// Each line's `before` is the `after` of the one below it, the last begins at nothing, the first is the balance.
fn check_history(lines: &[Value], balance: &Value) {
    let number = |line: &Value, name: &str| -> i128 { line[name].as_str().unwrap().parse().unwrap() };
    let mut after = 0;
    for line in lines.iter().rev() {
        assert_eq!(number(line, "before"), after, "{line}");
        after = number(line, "after");
        assert_eq!((after - number(line, "before")).abs(), number(line, "amount"), "{line}");
        assert_eq!(line["status"], "posted");
    }
    assert_eq!(json!(after.to_string()), *balance);
}
