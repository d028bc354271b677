//! Wallets: a member found three ways, a deposit, a hold that is captured and one that is voided, both sides of a transfer.

use super::Console;
use serde_json::json;

#[test]
fn the_largest_sums_fit_on_a_phone() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let rich = client.post("/v1/members", &json!({"login_id": "rich", "name": "Rich"})).expect(201);
    let deposit = json!({"to": rich["id"], "amount": "1000000000000000"});
    for _ in 0..9 {
        client.post("/v1/deposits", &deposit).expect(201);
    }
    console.page.resize(360, 780, true);
    console.show("#/wallets");
    console.sees_row(&["BANK_ASSET", "9 000 000 000 000 000 KRW"]);
    console.check("large sums in the books");
    console.picture("wallets-large-phone");
    console.show(&format!("#/wallets/{}", rich["id"].as_str().expect("an id")));
    console.sees_row(&["deposit", "+1 000 000 000 000 000", "9 000 000 000 000 000"]);
    console.check("large sums in a wallet");
    console.picture("wallet-large-phone");
    console.end();
}

#[test]
fn money_is_found_moved_and_in_balance() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let ann = json!({"login_id": "ann@example.org", "name": "Ann", "player": "ann", "phone_number": "010-1234-5678",
        "password": "open sesame"});
    let ann = client.post("/v1/members", &ann).expect(201)["id"].as_str().expect("an id").to_owned();
    let wallet = format!("#/wallets/{ann}");

    console.show("#/wallets");
    for (by, what) in [
        ("login_id", "ann@example.org"),
        ("phone_number", "010 1234 5678"),
        ("player", "ann"),
        ("id", ann.as_str()),
    ] {
        console.fill("Find by", by);
        console.fill("Login, number or id", what);
        console.click("Find");
        console.page.wait(&format!("location.hash === {}", json!(wallet)));
        console.sees("Nothing moved yet");
        console.show("#/wallets");
    }
    console.fill("Find by", "login_id");
    console.fill("Login, number or id", "nobody");
    console.click("Find");
    console.sees("No member found");

    console.show(&wallet);
    console.click("Sign out");
    console.sees("Its tokens have ended");
    console.fill("Amount", "0");
    console.click("Deposit");
    // The form shows an impossible sum.
    console.page.wait("document.querySelector('main [role=alert]')?.innerText.includes('Request ') ?? false");
    console.fill("Amount", "10000");
    console.fill("Reference", "cash desk");
    console.fill("Reason", "paid at the counter");
    console.click("Deposit");
    console.sees("10 000 KRW deposited");
    let made = client.get("/v1/ledger/transactions?limit=1").expect(200);
    assert_eq!(made["items"][0]["reason"], "paid at the counter");
    console.sees_row(&["deposit", "cash desk", "+10 000"]);

    for (ending, state, left) in [("Let go", "voided", "10000"), ("Take", "captured", "7000")] {
        hold(&mut console, ending, state);
        let wallet = client.get(&format!("/v1/wallets/{ann}")).expect(200);
        assert_eq!(
            (&wallet["wallets"][0]["balance"], &wallet["wallets"][0]["held"]),
            (&json!(left), &json!("0"))
        );
    }
    console.sees_row(&["capture", "−3 000", "7 000"]);
    console.check("wallet-moved");
    console.picture("wallet-moved");

    let entries = client.get(&format!("/v1/wallets/{ann}/transactions")).expect(200);
    let group = entries["items"][0]["group_id"].as_str().expect("a group").to_owned();
    console.show("#/wallets");
    console.sees("The books are in balance");
    console.sees_row(&["FEES", "3 000 KRW"]);
    console.fill("Transaction id or group id", group);
    console.click("Look");
    console.sees_row(&["Debit", "BANK_PAYABLE"]);
    console.sees_row(&["Credit", "FEES"]);
    console.check("wallets-movement");
    console.picture("wallets-movement");

    // Both sides of a row of the wallet, and the deposit taken back in part.
    console.show(&wallet);
    console.sees_row(&["capture", "−3 000", "7 000"]);
    console.page.wait("help.click('Details', 1)");
    console.click("Take it back");
    console.page.wait("help.fill('Amount', '6000', 'dialog[open]')");
    console.page.wait("help.fill('Reason', 'chargeback', 'dialog[open]')");
    console.click("Reverse");
    console.sees("6 000 KRW taken back");
    console.sees("6 000 KRW of 10 000 KRW");
    console.check("wallet-movement");
    console.picture("wallet-movement");
    console.click("Close");
    console.sees_row(&["reversal out", "cash desk", "−6 000", "1 000"]);
    console.page.allow("status of 422");
    console.end();
}

#[test]
fn credit_is_given_and_shown_with_its_end() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let ann = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
    let wallet = format!("/v1/wallets/{}", ann["id"].as_str().expect("an id"));
    client.post("/v1/deposits", &json!({"to": ann["id"], "amount": 1_000})).expect(201);
    let page = format!("#{}", wallet.trim_start_matches("/v1"));
    console.show(&page);
    console.sees("Available");
    let shown = "[...document.querySelectorAll('main dt')].some((one) => one.textContent === 'Promotional')";
    assert_eq!(console.page.eval(shown), json!(false), "it has none");
    console.fill("Amount", "2500");
    console.fill("Promotional until", "2999-01-02T03:04");
    console.click("Deposit");
    console.sees("2 500 KRW deposited");
    console.sees("2 500 KRW until 2 Jan 2999, 03:04");
    console.sees_row(&["promotion", "+2 500", "3 500"]);
    assert_eq!(console.page.eval(shown), json!(true));
    let given = client.get(&wallet).expect(200)["wallets"][0].clone();
    assert_eq!((&given["promotional"], &given["credits"][0]["amount"]), (&json!("2500"), &json!("2500")));
    // The next deposit is other money again.
    console.fill("Amount", "7");
    console.click("Deposit");
    console.sees_row(&["deposit", "+7", "3 507"]);
    // From its top, and without the messages.
    console.show("#/wallets");
    console.show(&page);
    console.sees("2 500 KRW until 2 Jan 2999, 03:04");
    for (width, height, kind) in [(1280, 900, ""), (1000, 800, "-narrow"), (360, 780, "-phone")] {
        console.page.resize(width, height, width < 400);
        console.check("a wallet with credit");
        console.picture(&format!("wallet-credit{kind}"));
    }
    console.end();
}

#[test]
fn what_is_owed_is_shown_with_its_reason() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let ann =
        client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann", "player": "ann"})).expect(201);
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 500}]);
    client.post("/v1/contests", &json!({"id": "cup", "title": "Cup", "prizes": prizes})).expect(201);
    let nothing = json!({});
    for (path, body) in [
        ("contests/cup/open", &nothing),
        ("contests/cup/applications", &json!({"player": "ann"})),
        ("contests/cup/applications/accept", &json!({"players": ["ann"]})),
        ("contests/cup/start", &nothing),
        ("leaderboards/contest:cup/scores", &json!({"player": "ann", "score": 1})),
        ("contests/cup/finish", &nothing),
        (&format!("members/{}/close", ann["id"].as_str().expect("an id")), &nothing),
        ("contests/cup/settle", &nothing),
    ] {
        let status = client.post(&format!("/v1/{path}"), body).status;
        assert!(status < 300, "{path}: {status}");
    }
    console.show("#/");
    console.sees("the member is closed");
    console.check("overview with what is owed");
    console.picture("overview-owed");
    console.click("One prize is not paid");
    console.sees_row(&["cup", "ann", "prize", "500 KRW", "the member is closed"]);
    console.check("owed");
    console.picture("owed");
    console.page.resize(360, 780, true);
    console.check("owed on a phone");
    console.picture("owed-phone");
    console.click("Look again");
    console.sees_row(&["cup", "ann"]);
    console.show("#/wallets");
    console.click("What is owed");
    console.sees_row(&["cup", "ann"]);
    console.show("#/contests/cup");
    console.sees("Pay what is unpaid");

    // A reader sees rank, player and prize: neither the wallet nor whether it is paid.
    let admin = client.post("/v1/keys", &json!({"role": "admin"})).expect(201);
    let mut admin = console.server.client().with_key(admin["key"].as_str().expect("a key"));
    let reader = admin.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    console.show("#/contests/cup");
    console.sees("A key is needed");
    console.fill("API key", reader["key"].clone());
    console.click("Use this key");
    console.sees_row(&["ann", "500 KRW", "–"]);
    console.page.wait("document.querySelector('main td a[href^=\"#/wallets\"]') === null");
    console.page.allow("status of 401");
    console.end();
}

fn hold(console: &mut Console, ending: &str, state: &str) {
    console.page.wait("help.seen(document.querySelectorAll('input[name=amount]')[1])");
    console.page.eval("document.querySelectorAll('input[name=amount]')[1].value = '3000'; true");
    console.click("Hold");
    console.sees("Available 7 000 KRW");
    console.click(ending);
    if ending == "Take" {
        console.confirm("3000", "Take");
    }
    console.page.wait(&format!(
        "[...document.querySelectorAll('.chip')].some((one) => one.textContent === '{state}')"
    ));
    console.sees("Held 0 KRW");
}

#[test]
fn a_person_is_erased_after_its_numbers_are_shown() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let ann = json!({"login_id": "ann@example.org", "name": "Ann", "player": "ann"});
    let ann = client.post("/v1/members", &ann).expect(201)["id"].as_str().expect("an id").to_owned();
    let deposit = json!({"to": ann, "amount": 5, "reason": "a gift"});
    client.post("/v1/deposits", &deposit).expect(201);
    client.put("/v1/leaderboards/goals", &json!({})).expect(201);
    client.post("/v1/leaderboards/goals/scores", &json!({"player": "ann", "score": 1})).expect(200);
    console.show(&format!("#/wallets/{ann}"));
    console.click("Export");
    console.sees("The data are saved");
    let erase = |console: &mut Console| {
        console.click("Erase");
        console.sees("1 score of the player");
        console.page.wait("help.fill('Reason', 'letter 17', 'dialog[open]')");
        console.page.wait("help.fill('Type ann@example.org to go on', 'ann@example.org')");
        console.check("member-erase");
        console.picture("member-erase");
        console.page.wait("help.click('Erase', 0)");
    };
    erase(&mut console);
    console.sees("There is money in the member's wallets");
    client.post("/v1/withdrawals", &json!({"from": ann, "amount": 5})).expect(201);
    console.show("#/wallets");
    console.show(&format!("#/wallets/{ann}"));
    erase(&mut console);
    console.sees("The member is erased");
    console.sees("erased member");
    console.check("member-erased");
    console.picture("member-erased");
    let rows = client.get("/v1/audit?action=member.erased").expect(200);
    assert_eq!(rows["items"][0]["reason"], "letter 17");
    console.page.allow("status of 409");
    console.end();
}
