//! Random requests for money against the model, by several callers at once, with restarts and kills between.
//!
//! Each caller has members of its own, so that there is one order of events for each. The server puts all of them into the same
//! batches. One more member takes money of all. Every answer is compared whole, and at the end everything there is. `TALLY_SEED`
//! repeats a run except for the effects of the clock, `TALLY_SOAK` makes it longer.

use super::model::{
    Model, NO_HOLD, NOBODY, OWN, Op, POT, Person, ServerReply, TRANSFER_MAX, Who, instant, status,
};
use super::world::{World, now, payment};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tally_testkit::audit::read_pages;
use tally_testkit::backends::share;
use tally_testkit::rng::soak;
use tally_testkit::{Client, GIVE_UP, Request, Rng};

const CALLERS: usize = 3;
const ROUNDS: usize = 3;
/// Requests of each caller in a round.
const REQUESTS: usize = 120;
/// The number of past requests from which one is repeated.
const RECENT: usize = 30;
const BATCH: &str = "/v1/transfers/batch";

/// A row of a batch: request, id, whether it is linked to the next.
type Row = (Op, Option<String>, bool);

struct Caller {
    name: usize,
    rng: Rng,
    client: Client,
    people: Vec<Person>,
    model: Model,
    keys: usize,
    tried: Vec<(Op, String)>,
    batches: Vec<(Vec<Row>, Option<String>)>,
    /// The observed codes.
    met: BTreeSet<String>,
}

impl Caller {
    fn new(name: usize, world: &mut World, pot: &Person) -> Self {
        let own = |who| {
            let (login, phone) = (format!("c{name}m{who}"), format!("010{name:04}{who:04}"));
            let (id, token) = world.payer(&login, &phone, 0);
            Person { id, name: login, phone, token }
        };
        let mut people: Vec<Person> = (0..OWN).map(own).collect();
        let nobody = "0190f8a0-0000-7000-8000-000000000000";
        people.push(pot.clone());
        people.push(person(nobody, "nobody", "01099998888"));
        let (model, client) = (Model::new(people.clone()), world.server.client());
        let (keys, tried, batches, met) = Default::default();
        let rng = Rng::of(&format!("money {name}"));
        Self { name, rng, client, people, model, keys, tried, batches, met }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..52 => {
                let (op, key) = (self.op(), self.rng.percent(70).then(|| self.key()));
                self.send(op, key);
            }
            52..55 => self.guess(),
            55..72 => self.batch(),
            72..85 => self.again(),
            85..87 => self.unlock(),
            87..92 => self.read_wallet(),
            92..95 => self.read_hold(),
            _ => self.read_history(),
        }
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("c{}-{}", self.name, self.keys)
    }

    fn who(&mut self) -> Who {
        if self.rng.percent(3) { NOBODY } else { self.own() }
    }

    fn own(&mut self) -> Who {
        usize::try_from(self.rng.below(OWN as u64)).expect("small")
    }

    fn payee(&mut self) -> Who {
        if self.rng.percent(15) { POT } else { self.who() }
    }

    fn currency(&mut self) -> &'static str {
        match self.rng.below(100) {
            0..3 => "EUR",
            3..20 => "USD",
            _ => "KRW",
        }
    }

    fn amount(&mut self) -> i64 {
        match self.rng.below(60) {
            0 => 0,
            1 => -self.rng.between(1, 9),
            2 => 1_000_000_000_000_001,
            _ => self.rng.between(1, 60),
        }
    }

    fn transfer(&mut self) -> Op {
        let (from, to) = (Some(self.who()), Some(self.payee()));
        let reference = self.rng.percent(20).then_some("for lunch");
        Op::Move { from, to, currency: self.currency(), amount: self.amount(), reference }
    }

    fn hold(&mut self) -> usize {
        let count = self.model.holds.len() as u64;
        // Late ones are open still.
        let late = count.saturating_sub(12);
        if count == 0 || self.rng.percent(3) {
            return NO_HOLD;
        }
        usize::try_from(late + self.rng.below(count - late)).expect("small")
    }

    fn op(&mut self) -> Op {
        let (currency, amount) = (self.currency(), self.amount());
        if self.rng.percent(20) {
            return Op::Pay { from: self.own(), to: self.payee(), amount, right: self.rng.percent(75) };
        }
        match self.rng.below(100) {
            0..18 => {
                let (to, amount) = (Some(self.who()), amount.saturating_mul(2));
                Op::Move { from: None, to, currency, amount, reference: None }
            }
            18..26 => Op::Move { from: Some(self.who()), to: None, currency, amount, reference: None },
            26..55 => self.transfer(),
            55..78 => {
                let until = match self.rng.below(10) {
                    0 => Some(now() - 1_000_000),
                    1..5 => Some(now() + self.rng.between(0, 400_000)),
                    5 => Some(now() + 3_600_000_000),
                    _ => None,
                };
                Op::Hold { of: self.who(), currency, amount, until }
            }
            78..92 => {
                let (hold, amount) = (self.hold(), self.rng.percent(50).then_some(amount));
                let to = self.rng.percent(60).then(|| self.payee());
                Op::Capture { hold, amount, to }
            }
            _ => Op::Void { hold: self.hold() },
        }
    }

    /// Path and body.
    fn written(&mut self, op: &Op) -> (String, Value) {
        let id = |who: &Who| json!(self.people[*who].id);
        let hold = |hold: usize| {
            self.model.holds.get(hold).map_or_else(|| self.people[NOBODY].id.clone(), |hold| hold.id.clone())
        };
        let mut body = serde_json::Map::new();
        let mut put = |name: &str, value: Option<Value>| value.map(|value| body.insert(name.into(), value));
        let (path, currency, amount) = match op {
            Op::Move { from, to, currency, amount, reference } => {
                put("from", from.as_ref().map(id));
                put("to", to.as_ref().map(id));
                put("reference", reference.map(|text| json!(text)));
                let path = match (from, to) {
                    (None, _) => "/v1/deposits",
                    (_, None) => "/v1/withdrawals",
                    (Some(_), Some(_)) => "/v1/transfers",
                };
                (path.to_owned(), Some(*currency), Some(*amount))
            }
            Op::Hold { of, currency, amount, until } => {
                put("member", Some(id(of)));
                put("expires_at", until.map(|until| json!(instant(until))));
                ("/v1/holds".to_owned(), Some(*currency), Some(*amount))
            }
            Op::Capture { hold: which, amount, to } => {
                put("to", to.as_ref().map(id));
                (format!("/v1/holds/{}/capture", hold(*which)), None, *amount)
            }
            Op::Pay { .. } => unreachable!("a member writes it"),
            Op::Void { hold: which } => (format!("/v1/holds/{}/void", hold(*which)), None, None),
        };
        // The same in other words.
        let said = self.rng.percent(50);
        put("currency", currency.filter(|code| *code != "KRW" || said).map(|code| json!(code)));
        let text = self.rng.percent(50);
        put("amount", amount.map(|units| if text { json!(units.to_string()) } else { json!(units) }));
        (path, Value::Object(body))
    }

    /// The whole request, and its key as the model has it: a member's keys are its own.
    fn request(&mut self, op: &Op, key: &Option<String>) -> (Request, Option<String>) {
        if let Op::Pay { from, to, amount, right } = *op {
            let amount = if self.rng.percent(50) { json!(amount.to_string()) } else { json!(amount) };
            let request = payment(&self.people[from].token, &self.people[to].phone, &amount, right);
            return (request, key.as_ref().map(|key| format!("{from} {key}")));
        }
        let (path, body) = self.written(op);
        (Request::new("POST", path).json(&body), key.clone())
    }

    fn send(&mut self, op: Op, key: Option<String>) {
        // A payment must have one.
        let key = if key.is_none() && matches!(op, Op::Pay { .. }) { Some(self.key()) } else { key };
        let (mut request, own_key) = self.request(&op, &key);
        request = key.iter().fold(request, |request, key| request.idempotent(key));
        let from = now();
        let answer = self.client.send(&request);
        let (code, shown) = (answer.code(), answer.json());
        let told = ServerReply { between: (from, now()), code: &code, shown: &shown };
        match self.model.decide(&op, own_key.as_deref(), &told) {
            Err(code) => {
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (status(code), code),
                    "{op:?} {key:?}: {shown}"
                );
                self.met.insert(code.to_owned());
            }
            Ok((wanted, replayed)) => {
                let made = !matches!(op, Op::Capture { .. } | Op::Void { .. });
                assert_eq!(answer.status, if made { 201 } else { 200 }, "{op:?} {key:?}: {shown}");
                assert_eq!((plain(shown), answer.is_replay()), (wanted, replayed), "{op:?} {key:?}");
                self.met.insert(if replayed { "replayed" } else { "done" }.to_owned());
            }
        }
        self.tried.extend(key.map(|key| (op, key)));
    }

    /// An earlier request, or another one under its key; rejected ones too.
    fn again(&mut self) {
        if self.rng.percent(25) && !self.batches.is_empty() {
            let (rows, key) = self.rng.pick(&self.batches[self.batches.len().saturating_sub(4)..]).clone();
            return self.send_batch(rows, key);
        }
        if self.tried.is_empty() {
            return;
        }
        let (op, key) = self.rng.pick(&self.tried[self.tried.len().saturating_sub(RECENT)..]).clone();
        let op = if self.rng.percent(25) { self.op() } else { op };
        self.send(op, Some(key));
    }

    fn batch(&mut self) {
        let mut ids = BTreeSet::new();
        let rows = (0..self.rng.between(1, 9)).map(|_| {
            let linked = self.rng.percent(45);
            let recent = &self.tried[self.tried.len().saturating_sub(RECENT)..];
            // A row may repeat a single request.
            if self.rng.percent(10) && !recent.is_empty() {
                let (op, key) = self.rng.pick(recent).clone();
                let transfer = matches!(op, Op::Move { from: Some(_), to: Some(_), .. });
                // `c1-2#0` stands for a row of a batch already.
                if transfer && !key.contains('#') && ids.insert(key.clone()) {
                    return (op, Some(key), linked);
                }
            }
            let id = self.rng.percent(40).then(|| self.key());
            (self.transfer(), id, linked)
        });
        let rows: Vec<Row> = rows.collect();
        let key = self.rng.percent(50).then(|| self.key());
        self.send_batch(rows, key);
    }

    fn send_batch(&mut self, rows: Vec<Row>, key: Option<String>) {
        let written: Vec<Value> = rows
            .iter()
            .map(|(op, id, linked)| {
                let mut row = self.written(op).1;
                id.iter().for_each(|id| row["id"] = json!(id));
                if *linked {
                    row["linked"] = json!(true);
                }
                row
            })
            .collect();
        let request = Request::new("POST", BATCH).json(&json!({"transfers": written}));
        let request = key.iter().fold(request, |request, key| request.idempotent(key));
        let from = now();
        let answer = self.client.send(&request);
        let between = (from, now());
        let shown = answer.expect(200)["results"].as_array().expect("results").clone();
        assert_eq!(shown.len(), rows.len());
        let identity =
            |place: usize| rows[place].1.clone().or_else(|| key.as_ref().map(|key| format!("{key}#{place}")));
        let (mut place, mut replays) = (0, 0);
        while place < rows.len() {
            let tied = rows[place..].iter().take_while(|row| row.2).count();
            let end = (place + tied + 1).min(rows.len());
            let chain: Vec<(Op, Option<String>)> =
                (place..end).map(|at| (rows[at].0.clone(), identity(at))).collect();
            let told: Vec<ServerReply<'_>> = shown[place..end]
                .iter()
                .map(|row| {
                    let code = row["error"]["code"].as_str().unwrap_or_default();
                    ServerReply { between, code, shown: &row["transaction"] }
                })
                .collect();
            let wanted = self.model.decide_linked(&chain, &told);
            for (at, wanted) in (place..end).zip(wanted) {
                replays += usize::from(matches!(wanted, Ok((_, true))));
                self.compare_row(&rows[at], &shown[at], wanted);
            }
            self.tried.extend(chain.into_iter().filter_map(|(op, key)| Some((op, key?))));
            place = end;
        }
        assert_eq!(answer.is_replay(), replays == rows.len(), "{}", answer.text());
        self.batches.push((rows, key));
    }

    fn compare_row(&mut self, row: &Row, shown: &Value, wanted: Result<(Value, bool), &'static str>) {
        let mut line = serde_json::Map::new();
        // The older name and the present one.
        let names = ["id", "idempotency_key"];
        line.extend(row.1.iter().flat_map(|key| names.map(|name| (name.to_owned(), json!(key)))));
        match wanted {
            Err(code) => {
                self.met.insert(code.to_owned());
                assert_eq!(shown["error"]["code"], code, "{row:?}: {shown}");
                line.insert("error".into(), shown["error"].clone());
            }
            Ok((transaction, replayed)) => {
                line.extend([("status".into(), json!("posted")), ("transaction".into(), transaction)]);
                line.extend(replayed.then(|| ("replayed".to_owned(), json!(true))));
            }
        }
        assert_eq!(*shown, Value::Object(line), "{row:?}");
    }

    /// A caller guesses PINs.
    fn guess(&mut self) {
        let (from, to) = (self.own(), self.payee());
        for _ in 0..self.rng.between(4, 7) {
            self.send(Op::Pay { from, to, amount: 1, right: false }, None);
        }
    }

    fn unlock(&mut self) {
        let who = self.own();
        let target = format!("/v1/members/{}/unlock-pin", self.people[who].id);
        self.client.send(&Request::new("POST", target)).expect(200);
        self.model.wrong[who] = 0;
    }

    fn read_wallet(&mut self) {
        let who = self.own();
        self.look(who);
    }

    /// A member's wallets; whether everything whose time is over has ended.
    fn look(&mut self, who: Who) -> bool {
        let from = now();
        let answer = self.client.get(&format!("/v1/wallets/{}", self.people[who].id)).expect(200);
        let between = (from, now());
        let shown = answer["items"].as_array().expect("wallets");
        let wallets: Vec<_> = self.model.purses.range((who, "")..(who + 1, "")).collect();
        assert_eq!(shown.len(), wallets.len(), "{answer}");
        let mut settled = true;
        let mut ended = Vec::new();
        for ((wallet, purse), shown) in wallets.into_iter().zip(shown) {
            let (least, most) = self.model.held(*wallet, between);
            let held: i64 = shown["held"].as_str().expect("text").parse().expect("a number");
            assert!((least..=most).contains(&held), "{least} to {most}: {shown}");
            let wanted = json!({
                "member": self.people[who].id, "currency": wallet.1, "balance": purse.balance.to_string(),
                "held": held.to_string(), "available": (purse.balance - held).to_string(),
            });
            assert_eq!(*shown, wanted);
            if held == least {
                ended.push(*wallet);
            } else {
                settled = false;
            }
        }
        ended.into_iter().for_each(|wallet| self.model.note_ended(wallet, between));
        settled
    }

    fn read_hold(&mut self) {
        let hold = self.hold();
        if hold != NO_HOLD {
            self.look_at_hold(hold);
        }
    }

    fn look_at_hold(&mut self, hold: usize) {
        let path = format!("/v1/holds/{}", self.model.holds[hold].id);
        let from = now();
        let shown = plain(self.client.get(&path).expect(200));
        let wanted = self.model.shown(hold, (from, now()));
        assert!(wanted.contains(&shown), "{shown} is none of {wanted:?}");
    }

    fn read_history(&mut self) {
        let wallets: Vec<_> = self.model.purses.keys().copied().collect();
        let (who, currency) = *self.rng.pick(&wallets);
        let limit = usize::try_from(self.rng.between(1, 9)).expect("small");
        let path =
            format!("/v1/wallets/{}/transactions?limit={limit}&currency={currency}", self.people[who].id);
        let page = self.client.get(&path).expect(200);
        let lines = &self.model.purses[&(who, currency)].lines;
        let newest: Vec<Value> = lines.iter().rev().take(limit).cloned().collect();
        compare_lines(page["items"].as_array().expect("items"), &newest);
        assert_eq!(page.get("next_cursor").is_some(), lines.len() > limit, "{page}");
    }

    /// The whole state, once nothing is left that ends by itself soon.
    fn check_all(&mut self) {
        for who in 0..OWN {
            let begun = Instant::now();
            while !self.look(who) {
                assert!(begun.elapsed() < GIVE_UP, "nothing ends the holds");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        (0..self.model.holds.len()).for_each(|hold| self.look_at_hold(hold));
        let mut ids = BTreeSet::new();
        for ((who, currency), purse) in &self.model.purses {
            let limit = self.rng.between(3, 40);
            let path = format!(
                "/v1/wallets/{}/transactions?limit={limit}&currency={currency}",
                self.people[*who].id
            );
            let (lines, _) = read_pages(&mut self.client, &path, "items");
            let newest: Vec<Value> = purse.lines.iter().rev().cloned().collect();
            compare_lines(&lines, &newest);
            assert!(lines.iter().all(|line| ids.insert(line["id"].to_string())), "an id is given once");
        }
    }
}

/// A member that does not pay by itself.
fn person(id: &str, name: &str, phone: &str) -> Person {
    Person { id: id.into(), name: name.into(), phone: phone.into(), token: String::new() }
}

/// A hold without its actors and reasons, which the model does not know.
fn plain(mut shown: Value) -> Value {
    if let Some(hold) = shown.as_object_mut() {
        ["actor", "reason", "metadata", "ended_by", "end_reason"]
            .iter()
            .for_each(|name| drop(hold.remove(*name)));
    }
    shown
}

/// Entries of a history; one without a known reply may be anything, but must exist.
fn compare_lines(shown: &[Value], wanted: &[Value]) {
    assert_eq!(shown.len(), wanted.len());
    for (shown, wanted) in shown.iter().zip(wanted) {
        let mut wanted = wanted.clone();
        for name in ["id", "at"] {
            assert!(shown[name].is_string(), "{shown}");
            if wanted[name].is_null() {
                wanted[name] = shown[name].clone();
            }
        }
        // Replies have neither names nor actors.
        for name in ["counterparty_name", "actor", "reason", "metadata"] {
            if let Some(value) = shown.get(name) {
                wanted[name] = value.clone();
            }
        }
        assert_eq!(*shown, wanted);
    }
}

/// The books of all callers together.
fn check_books(world: &mut World, callers: &[Caller], pot: &str) {
    let mut wanted: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    let mut given: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
    for model in callers.iter().map(|caller| &caller.model) {
        for (key, (debits, credits)) in &model.totals {
            let total = wanted.entry(key.clone()).or_default();
            *total = (total.0 + debits, total.1 + credits);
        }
        for (currency, (lines, units)) in &model.pot {
            let total = given.entry(currency).or_default();
            *total = (total.0 + lines, total.1 + units);
        }
    }
    let trial = world.get("/v1/ledger/trial-balance");
    assert_eq!(trial["balanced"], json!(true), "{trial}");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let number = |value: &Value| -> i64 { text(value).parse().expect("a number") };
    let rows = trial["items"].as_array().expect("accounts").iter();
    let moved = rows.filter(|row| number(&row["debits"]) + number(&row["credits"]) > 0);
    let shown: BTreeMap<_, _> = moved
        .map(|row| {
            (
                (text(&row["account"]), text(&row["currency"])),
                (number(&row["debits"]), number(&row["credits"])),
            )
        })
        .collect();
    assert_eq!(shown, wanted);
    for (currency, (lines, units)) in given {
        let path = format!("/v1/wallets/{pot}/transactions?limit=50&currency={currency}");
        let (shown, _) = read_pages(&mut world.client, &path, "items");
        assert_eq!((shown.len(), number(&shown[0]["after"])), (lines, units), "{currency}");
    }
}

#[test]
fn soak_random_requests_of_several_callers() {
    let most = TRANSFER_MAX.to_string();
    let settings = [
        ("TALLY_CURRENCIES_USD", "2"),
        ("TALLY_WALLET_TRANSFER_MAX", &most),
        // Longer than any run.
        ("TALLY_PIN_LOCK", "24h"),
        ("TALLY_AUTH_TOKEN_TTL", "24h"),
    ];
    let mut world = World::start(&settings);
    let pot = person(&world.payer("pot", "01099990000", 0).0, "pot", "01099990000");
    let mut callers: Vec<Caller> = (0..CALLERS).map(|name| Caller::new(name, &mut world, &pot)).collect();
    let mut rng = Rng::of("money restarts");
    for _ in 0..soak(ROUNDS) {
        std::thread::scope(|scope| {
            for caller in &mut callers {
                scope.spawn(|| (0..REQUESTS / share()).for_each(|_| caller.step()));
            }
        });
        if rng.percent(50) {
            world.server.kill9();
        } else {
            world.server.terminate();
        }
        world.restarted();
        for caller in &mut callers {
            caller.client = world.server.client();
            for who in 0..OWN {
                caller.look(who);
            }
        }
    }
    callers.iter_mut().for_each(Caller::check_all);
    check_books(&mut world, &callers, &pot.id);
    let met: BTreeSet<&str> = callers.iter().flat_map(|caller| &caller.met).map(String::as_str).collect();
    // Not `hold_expired`: a fast run is over before a hold's time is. `holds` waits for that.
    for code in [
        "done",
        "limit_exceeded",
        "invalid_pin",
        "pin_locked",
        "replayed",
        "insufficient_funds",
        "same_wallet",
        "linked_failed",
        "idempotency_key_reused",
        "hold_resolved",
        "hold_expiry_in_past",
        "recipient_not_found",
        "wallet_not_found",
    ] {
        assert!(met.contains(code), "{code} was not met, only {met:?}");
    }
}
