//! Settings of money: currencies and limits, in force, refused, and changed on a store with data.

use super::world::{TALLY, World};
use serde_json::{Value, json};
use tally_testkit::command::run_set;
use tally_testkit::{DatabaseKind, Response, ScratchDatabase, TestTally};

const DOLLARS: (&str, &str) = ("TALLY_CURRENCIES_USD", "2");

fn currencies(world: &mut World, member: &str) -> Vec<Value> {
    let wallets = world.get(&format!("/v1/wallets/{member}"))["items"].clone();
    wallets.as_array().expect("wallets").iter().map(|wallet| wallet["currency"].clone()).collect()
}

#[test]
fn another_currency_appears_with_its_first_credit() {
    let mut world = World::start(&[DOLLARS]);
    let (ann, bob) = (world.member("ann", 10), world.member("bob", 0));
    assert_eq!(currencies(&mut world, &ann), ["KRW"]);
    let path = format!("/v1/wallets/{ann}/transactions?currency=USD");
    world.client.get(&path).refused(404, "wallet_not_found");
    world.client.get(&path.replace("USD", "EUR")).refused(422, "currency_mismatch");
    world.client.get(&path.replace("USD", "usd")).refused(400, "invalid_parameter");
    let given = json!({"from": ann, "to": bob, "currency": "USD", "amount": 5});
    world.post("/v1/transfers", &given).refused(404, "wallet_not_found");
    world.post("/v1/deposits", &json!({"to": ann, "currency": "USD", "amount": 50})).expect(201);
    world.post("/v1/transfers", &given).expect(201);
    assert_eq!(
        (currencies(&mut world, &ann), currencies(&mut world, &bob)),
        (vec![json!("KRW"), json!("USD")], vec![json!("KRW"), json!("USD")])
    );
    assert_eq!(world.get(&path)["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(world.history(&ann, 9).len(), 1, "the default currency's, where none is named");
    let accounts = world.get("/v1/ledger/accounts")["items"].as_array().expect("accounts").len();
    assert_eq!(accounts, 10, "five in each");
    assert_eq!(
        world.client.get("/v1/status").json()["settings"]["currencies.USD"],
        json!({"value": "2", "source": "environment"})
    );
}

#[test]
fn limits_hold_for_one_transfer_and_for_a_day() {
    let mut world = World::start(&[("TALLY_WALLET_TRANSFER_MAX", "60"), ("TALLY_WALLET_DAY_MAX", "100")]);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 0));
    let give = |units: u64| json!({"from": ann, "to": bob, "amount": units});
    world.post("/v1/transfers", &give(61)).refused(422, "limit_exceeded");
    // A day may end in between: then the last of these is the first of another.
    let day =
        |world: &mut World| world.history(&ann, 1)[0]["at"].as_str().expect("an instant")[..10].to_owned();
    world.post("/v1/transfers", &give(60)).expect(201);
    let first = day(&mut world);
    world.post("/v1/transfers", &give(40)).expect(201);
    let third = world.post("/v1/transfers", &give(1));
    if day(&mut world) == first {
        third.refused(422, "limit_exceeded");
    }
    // The operator's own transfers have no limit.
    world.post("/v1/withdrawals", &json!({"from": ann, "amount": 500})).expect(201);
}

fn says(answer: &Response, words: &[&str]) {
    let problem = answer.json();
    let detail = problem["detail"].as_str().expect("a sentence");
    assert!(words.iter().all(|word| detail.contains(word)), "{detail}");
}

#[test]
fn a_limit_of_one_currency_is_none_of_another() {
    let settings = [
        DOLLARS,
        ("TALLY_CURRENCIES_EUR", "2"),
        ("TALLY_WALLET_TRANSFER_MAX", "60"),
        ("TALLY_WALLET_DAY_MAX", "100"),
        ("TALLY_WALLET_DAY_MAX_USD", "1000"),
        ("TALLY_WALLET_TRANSFER_MAX_USD", "off"),
    ];
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    for store in [&[][..], &[("TALLY_STORE_URL", &*database)]] {
        let mut world = World::start(&[&settings[..], store].concat());
        let (ann, bob) = (world.member("ann", 2_000), world.member("bob", 0));
        let give =
            |code: &str, units: u64| json!({"from": ann, "to": bob, "currency": code, "amount": units});
        for code in ["USD", "EUR"] {
            let deposit = json!({"to": ann, "currency": code, "amount": 2_000});
            world.post("/v1/deposits", &deposit).expect(201);
        }
        // Those without limits of their own have the limits of all.
        for code in ["KRW", "EUR"] {
            let answer = world.post("/v1/transfers", &give(code, 61));
            answer.refused(422, "limit_exceeded");
            says(&answer, &["60", "61", "wallet.transfer_max"]);
            world.post("/v1/transfers", &give(code, 60)).expect(201);
        }
        let answer = world.post("/v1/transfers", &give("USD", 1_001));
        answer.refused(422, "limit_exceeded");
        says(&answer, &["at most 1000", "1001", "wallet.day_max"]);
        world.post("/v1/transfers", &give("USD", 1_000)).expect(201);
        let shown = world.client.get("/v1/status").json()["settings"]["wallet.day_max_USD"].clone();
        assert_eq!(shown, json!({"value": "1000", "source": "environment"}));
    }
}

#[test]
fn a_currency_has_rules_of_its_own() {
    let settings = [
        DOLLARS,
        ("TALLY_CURRENCIES_GEM", "3"),
        ("TALLY_WALLET_TRANSFERS_GEM", "false"),
        ("TALLY_WALLET_WITHDRAWALS_GEM", "false"),
        ("TALLY_WALLET_BALANCE_MAX", "1000"),
        ("TALLY_WALLET_BALANCE_MAX_GEM", "50"),
        ("TALLY_WALLET_DAY_MAX_USD", "30"),
    ];
    let mut world = World::start(&settings);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 990));
    let listed = world.get("/v1/currencies");
    let gem = json!({"currency": "GEM", "digits": 3, "default": false, "transfers": false, "withdrawals": false, "balance_max": "50"});
    let krw = json!({"currency": "KRW", "digits": 0, "default": true, "transfers": true, "withdrawals": true, "balance_max": "1000"});
    let usd = json!({"currency": "USD", "digits": 2, "default": false, "transfers": true, "withdrawals": true, "day_max": "30", "balance_max": "1000"});
    assert_eq!(listed, json!({"items": [gem, krw, usd]}));
    let of =
        |name: &str, who: &str, code: &str, units: u64| json!({name: who, "currency": code, "amount": units});
    let give = |code: &str, units: u64| json!({"from": ann, "to": bob, "currency": code, "amount": units});
    for code in ["GEM", "USD"] {
        world.post("/v1/deposits", &of("to", &ann, code, 50)).expect(201);
    }
    let full = world.post("/v1/deposits", &of("to", &ann, "GEM", 1));
    full.refused(422, "limit_exceeded");
    says(&full, &["at most 50", "wallet.balance_max"]);
    world.post("/v1/transfers", &give("GEM", 1)).refused(422, "not_transferable");
    world.post("/v1/withdrawals", &of("from", &ann, "GEM", 1)).refused(422, "not_withdrawable");
    world.post("/v1/transfers", &give("USD", 30)).expect(201);
    world.post("/v1/transfers", &give("KRW", 11)).refused(422, "limit_exceeded");
    world.post("/v1/transfers", &give("KRW", 10)).expect(201);
    world.post("/v1/withdrawals", &of("from", &ann, "USD", 20)).expect(201);
    // The row of a list fails alone, and what is held of it goes to the house.
    let rows = json!({"transfers": [give("GEM", 1), {"from": bob, "to": ann, "amount": 5}]});
    let rows = world.post("/v1/transfers/batch", &rows).expect(200);
    assert_eq!(rows["results"][0]["error"]["code"], "not_transferable", "{rows}");
    assert_eq!(rows["results"][1]["status"], "posted", "{rows}");
    let hold = world.post("/v1/holds", &of("member", &ann, "GEM", 9)).expect(201);
    let capture = format!("/v1/holds/{}/capture", hold["id"].as_str().expect("an id"));
    world.post(&capture, &json!({"to": bob})).refused(422, "not_transferable");
    world.post(&capture, &json!({})).expect(200);
    world.audit();
}

/// As a transfer may.
#[test]
fn fees_and_prizes_without_a_currency_are_of_the_default_one() {
    let mut world = World::start(&[DOLLARS]);
    let prizes =
        json!([{"from": 1, "to": 1, "amount": 5}, {"from": 2, "to": 2, "currency": "USD", "amount": 6}]);
    let cup = json!({"id": "cup", "title": "Cup", "entry_fee": {"amount": 3}, "prizes": prizes});
    let cup = world.post("/v1/contests", &cup).expect(201);
    assert_eq!(cup["entry_fee"], json!({"currency": "KRW", "amount": "3"}));
    let currencies = |prizes: &Value| json!([prizes[0]["currency"], prizes[1]["currency"]]);
    assert_eq!(currencies(&cup["prizes"]), json!(["KRW", "USD"]));
    let weekly = json!({"name": "weekly", "schedule": "0 0 * * 1", "prizes": prizes});
    let board = world.client.put("/v1/leaderboards/b", &json!({"periods": [weekly]})).expect(201);
    assert_eq!(currencies(&board["periods"][0]["prizes"]), json!(["KRW", "USD"]));
}

#[test]
fn a_filled_store_keeps_its_currencies() {
    let mut server = TestTally::stopped(TALLY);
    let path = server.data().join("tally.toml");
    let config = path.to_str().expect("a path of text").to_owned();
    let write = |text: &str| std::fs::write(&path, text).expect("it is written");
    write("[currencies]\nUSD = 2\n");
    for arg in ["--config", &config] {
        server.add_arg(arg);
    }
    server.restart();
    let mut world = World::of(server);
    let ann = world.member("ann", 10);
    world.post("/v1/deposits", &json!({"to": ann, "currency": "USD", "amount": 50})).expect(201);
    world.server.terminate();
    for (text, said) in [
        ("[wallet]\ncurrency = \"EUR\"\n[currencies]\nUSD = 2\nKRW = 0\n", "wallet.currency"),
        ("[currencies]\nEUR = 2\n", "USD"),
    ] {
        write(text);
        let args = ["serve", "--config", &config, "--http", "127.0.0.1:0", "--resp", "off"];
        let done = world.server.run(&args);
        assert_eq!(done.code, Some(1), "{text}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{text}: {}", done.stderr);
    }
    // Another one in addition is no reason to refuse.
    write("[wallet]\ncurrency = \"KRW\"\n[currencies]\nUSD = 2\nEUR = 2\n");
    world.server.restart();
    world.client = world.server.client();
    assert_eq!(currencies(&mut world, &ann), ["KRW", "USD"]);
    // Amounts are in the smallest unit, wherever people put the point.
    let before = world.get(&format!("/v1/wallets/{ann}"));
    world.server.terminate();
    write("[wallet]\ncurrency = \"KRW\"\n[currencies]\nKRW = 8\nUSD = 0\nEUR = 3\n");
    world.server.restart();
    world.client = world.server.client();
    assert_eq!(world.get(&format!("/v1/wallets/{ann}")), before);
    world.post("/v1/withdrawals", &json!({"from": ann, "currency": "USD", "amount": 50})).expect(201);
}

#[test]
fn a_wrong_value_names_its_setting() {
    let server = TestTally::stopped(TALLY);
    for (variable, value, name) in [
        ("TALLY_WALLET_CURRENCY", "krw", "wallet.currency"),
        ("TALLY_WALLET_CURRENCY", "", "wallet.currency"),
        ("TALLY_WALLET_TRANSFER_MAX", "0", "wallet.transfer_max"),
        ("TALLY_WALLET_DAY_MAX", "1.5", "wallet.day_max"),
        ("TALLY_WALLET_DAY_MAX", "never", "wallet.day_max"),
        ("TALLY_WALLET_DAY_MAX_KRW", "0", "wallet.day_max_KRW"),
        ("TALLY_WALLET_DAY_MAX_USD", "5", "wallet.day_max_USD"),
        ("TALLY_WALLET_TRANSFER_MAX_krw", "x", "wallet.transfer_max_KRW"),
        ("TALLY_WALLET_BALANCE_MAX_KRW", "0", "wallet.balance_max_KRW"),
        ("TALLY_WALLET_TRANSFERS", "off", "wallet.transfers"),
        ("TALLY_WALLET_WITHDRAWALS_KRW", "no", "wallet.withdrawals_KRW"),
        ("TALLY_WALLET_WITHDRAWALS_USD", "true", "wallet.withdrawals_USD"),
        ("TALLY_CURRENCIES_USD", "9", "currencies.USD"),
        ("TALLY_CURRENCIES_USD", "two", "currencies.USD"),
        ("TALLY_CURRENCIES_LONGNAME1", "2", "currencies.LONGNAME1"),
    ] {
        let args = ["serve", "--http", "127.0.0.1:0", "--resp", "off"];
        let done = run_set(TALLY, server.data(), &args, &[(variable, value)]);
        done.expect(2);
        let told = done.stderr;
        assert!(told.contains(name), "{variable}={value}: {told}");
    }
}
