//! Members' handles: every text that creation accepts finds its member, as it was sent and as it is stored. And keys of requests
//! and codes of currencies: each text is distinct.
//!
//! Not here: the messages about refused texts (`bad_input`).

use super::world::{CHEAP, TALLY};
use serde_json::{Value, json};
use tally_testkit::http::segment;
use tally_testkit::rng::soak;
use tally_testkit::{Client, DatabaseKind, Request, Rng, ScratchDatabase, TestTally};

const MEMBERS: usize = 150;
const KEYS: usize = 40;

/// A server on each kind of store, with these currencies, twice with a country at home.
fn servers(currencies: &[String]) -> [TestTally; 4] {
    let database = |kind| ScratchDatabase::shared(kind).create_database();
    let names: Vec<String> = currencies.iter().map(|code| format!("TALLY_CURRENCIES_{code}")).collect();
    let currencies: Vec<_> = names.iter().map(|name| (name.as_str(), "0")).collect();
    let start = |settings: &[(&str, &str)]| {
        TestTally::start_set(TALLY, &[&CHEAP, &currencies[..], settings].concat())
    };
    let [mariadb, first, second] = [(); 3].map(|()| database(DatabaseKind::MariaDb10));
    let (mysql, shards) = (database(DatabaseKind::MySql9), format!("{first},{second}"));
    [
        start(&[("TALLY_MEMBERS_PHONE_COUNTRY", "82")]),
        start(&[("TALLY_STORE_URL", &mariadb), ("TALLY_STORE_LEASE", "4s")]),
        start(&[("TALLY_STORE_URL", &mysql), ("TALLY_STORE_LEASE", "4s")]),
        start(&[
            ("TALLY_STORE_URL", &shards),
            ("TALLY_RANKING_URL", "memory"),
            ("TALLY_STORE_LEASE", "4s"),
            ("TALLY_MEMBERS_PHONE_COUNTRY", "1"),
        ]),
    ]
}

/// Letters that a store, a collation or a path may take for others.
const LETTERS: [&str; 24] = [
    "a", "A", "ß", "ss", "é", "e\u{301}", "İ", "i", " ", "\u{a0}", "%", "_", "/", "\\", "'", "\"", "0", "00",
    "+", ".", "\u{200d}", "한", "🏆", "\u{feff}",
];

fn text(rng: &mut Rng, more: &[&str]) -> String {
    let letters = [&LETTERS[..], more].concat();
    (0..=rng.below(5)).map(|_| *rng.pick(&letters)).collect()
}

fn phone(rng: &mut Rng) -> String {
    let begin = rng.pick(&["", "", "0", "00", "000", "0000", "+", "+0", "+00", "+82", "0082", " +82 0"]);
    let digits = (0..3 + rng.below(10)).map(|_| *rng.pick(&["0", "0", "1", "8", "2", " ", "-"]));
    digits.fold((*begin).to_owned(), |all, digit| all + digit)
}

fn found(client: &mut Client, name: &str, text: &str) -> Value {
    client.get(&format!("/v1/members?{name}={}", segment(text))).expect(200)["items"].clone()
}

/// Every text finds its member and no other, and a member is unchanged.
fn check(client: &mut Client, made: &[(Value, Value)]) {
    for (sent, shown) in made {
        for name in ["login_id", "phone_number", "player"] {
            for text in [&sent[name], &shown[name]].into_iter().filter_map(Value::as_str) {
                assert_eq!(found(client, name, text), json!([shown]), "{name} {text:?} of {sent}");
            }
        }
    }
}

#[test]
fn soak_what_creation_accepts_finds_the_member_as_sent_and_as_stored() {
    let mut rng = Rng::of("what members are found by");
    for mut server in servers(&[]) {
        let (mut client, mut made) = (server.local(), Vec::new());
        for _ in 0..soak(MEMBERS) {
            let body = json!({
                "login_id": text(&mut rng, &[]), "name": text(&mut rng, &["\n"]), "phone_number": phone(&mut rng),
                "player": text(&mut rng, &["\n", "\u{0}", "\u{7f}"]),
            });
            let answer = client.post("/v1/members", &body);
            match answer.status {
                201 => made.push((body, answer.json())),
                _ => assert!([400, 409].contains(&answer.status), "{body}: {}", answer.text()),
            }
        }
        assert!(made.len() > MEMBERS / 4, "{}", made.len());
        check(&mut client, &made);
        server.kill9();
        server.restart();
        check(&mut server.local(), &made);
        // Another change reads the row and writes it again.
        let mut client = server.local();
        for (_, shown) in &mut made {
            let path = format!("/v1/members/{}", shown["id"].as_str().expect("an id"));
            let patch = Request::new("PATCH", path).json(&json!({"name": "changed"}));
            let changed = client.send(&patch).expect(200);
            shown["name"] = json!("changed");
            assert_eq!(changed, *shown);
        }
        check(&mut client, &made);
        server.terminate();
        server.restart();
        check(&mut server.local(), &made);
    }
}

/// Keys that a store may take for one another: by case, by their ends, by prefixes.
fn keys(rng: &mut Rng) -> Vec<String> {
    let visible: Vec<char> = ('!'..='~').collect();
    let mut keys = Vec::new();
    for _ in 0..soak(KEYS) {
        let key: String = (0..=rng.below(254)).map(|_| *rng.pick(&visible)).collect();
        keys.extend([key.to_lowercase(), key.to_uppercase(), key[..key.len() / 2 + 1].to_owned(), key]);
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The home currency, and codes that begin like it, contain it, or are numbers.
fn currencies(rng: &mut Rng) -> Vec<String> {
    let letters = ["K", "R", "W", "0", "1", "00"];
    let any = (0..4).map(|_| (0..=rng.below(3)).map(|_| *rng.pick(&letters)).collect::<String>());
    let mut codes: Vec<String> = any.chain(["K", "KRW", "KRW1", "0"].map(str::to_owned)).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn soak_a_key_and_a_currency_are_themselves_alone() {
    let mut rng = Rng::of("keys and currencies");
    let codes = currencies(&mut rng);
    for mut server in servers(&codes) {
        let (mut client, keys) = (server.local(), keys(&mut rng));
        let made = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
        let deposits = keys.iter().enumerate().map(|(at, key)| {
            let currency = &codes[at % codes.len()];
            let body = json!({"to": made["id"], "currency": currency, "amount": at + 1});
            (key, Request::new("POST", "/v1/deposits").json(&body).idempotent(key))
        });
        let deposits: Vec<_> = deposits.collect();
        for (key, deposit) in &deposits {
            let answer = client.send(deposit);
            assert!(answer.status == 201 && !answer.is_replay(), "{key:?}: {}", answer.text());
        }
        server.kill9();
        server.restart();
        let mut client = server.local();
        for (key, deposit) in &deposits {
            assert!(client.send(deposit).is_replay(), "{key:?}");
        }
        let path = format!("/v1/wallets/{}", made["id"].as_str().expect("an id"));
        let wallets = client.get(&path).expect(200)["items"].clone();
        for (first, currency) in codes.iter().enumerate() {
            let sum: usize = (first..keys.len()).step_by(codes.len()).map(|at| at + 1).sum();
            let wallet = wallets.as_array().expect("wallets").iter().find(|one| one["currency"] == *currency);
            assert_eq!(wallet.expect("it has one")["balance"], json!(sum.to_string()), "{currency}");
            let id = made["id"].as_str().expect("an id");
            let history = |text: &str| format!("/v1/wallets/{id}/transactions?limit=1&currency={text}");
            let newest = client.get(&history(currency)).expect(200)["items"][0].clone();
            assert_eq!(newest["after"], json!(sum.to_string()), "{currency}");
            if *currency != currency.to_lowercase() {
                assert_eq!(client.get(&history(&currency.to_lowercase())).status, 400, "{currency}");
            }
        }
    }
}
