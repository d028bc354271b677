//! Wallets: a member found, made, changed and closed; money given, taken and taken back; holds and their ends; both sides of a
//! transfer; what is owed.

use super::{Console, TALLY};
use serde_json::json;
use tally_testkit::TestTally;

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

    // Without a search all members are there.
    console.show("#/wallets");
    console.sees_row(&["Ann", "ann@example.org", "ann", "01012345678"]);
    console.check("wallets-members");
    console.picture("wallets-members");
    console.fill("Login, player, name, phone number or member id", "ANN@");
    console.click("Find");
    console.page.wait("location.hash === '#/wallets?q=ANN%40'");
    console.page.wait(
        "[...document.querySelectorAll('caption')].some((one) => one.textContent === 'Members that were found')",
    );
    console.sees_row(&["Ann", "ann@example.org", "01012345678"]);
    console.check("wallets-found");
    console.picture("wallets-found");
    // The address has the search.
    for what in ["010%201234", "ann"] {
        console.show(&format!("#/wallets?q={what}"));
        console.sees_row(&["Ann", "ann@example.org", "01012345678"]);
    }
    console.click("Ann");
    console.page.wait(&format!("location.hash === {}", json!(wallet)));
    console.sees("Nothing moved yet");
    console.show("#/wallets?q=nobody");
    console.sees("No member found");
    console.show("#/wallets");
    console.page.wait("!help.text().includes('No member found')");
    console.fill("Login, player, name, phone number or member id", ann.as_str());
    console.click("Find");
    console.page.wait(&format!("location.hash === {}", json!(wallet)));
    console.sees("Nothing moved yet");

    console.click("Sign out");
    console.sees("Its tokens have ended");
    give_and_take(&mut console);
    let made = client.get("/v1/ledger/transactions?type=deposit").expect(200);
    assert_eq!(made["items"][0]["reason"], "paid at the counter");

    for (ending, ended, left) in [("Void", "voided", "10000"), ("Capture", "captured", "7000")] {
        hold(&mut console, ending, ended);
        let wallet = client.get(&format!("/v1/wallets/{ann}")).expect(200);
        assert_eq!(
            (&wallet["items"][0]["balance"], &wallet["items"][0]["held"]),
            (&json!(left), &json!("0"))
        );
    }
    console.click("All");
    console.sees_row(&["voided", "“a bet”", "3 000 KRW"]);
    console.sees_row(&["captured", "“a bet”", "3 000 KRW"]);
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

    // The deposit is taken back in part, from its row in the wallet.
    console.show(&wallet);
    console.sees_row(&["capture", "−3 000", "7 000"]);
    take_back(&mut console);
    console.page.allow("status of 422");
    console.end();
}

/// The audit log has amounts as every page has them. A key that reads money and no members opens a wallet.
#[test]
fn money_is_read_in_the_log_and_without_names() {
    let mut console = Console::on(TestTally::start_set(TALLY, &[("TALLY_CURRENCIES_USD", "2")]));
    let mut client = console.server.client();
    let member = |login: &str| json!({"login_id": login, "name": login, "player": login});
    let mut made = |login: &str| client.post("/v1/members", &member(login)).expect(201)["id"].clone();
    let (ann, bob) = (made("ann"), made("bob"));
    let deposit = json!({"to": ann, "amount": 123_456, "currency": "USD", "reason": "a gift"});
    client.post("/v1/deposits", &deposit).expect(201);
    let transfer = json!({"from": ann, "to": bob, "amount": 700, "currency": "USD", "reason": "a swap"});
    client.post("/v1/transfers", &transfer).expect(201);
    console.show("#/audit");
    console.sees_row(&["Money deposited", "1 234.56 USD to ann, transaction", "“a gift”"]);
    console.sees_row(&["Money transferred", "7.00 USD from ann to bob, transaction", "“a swap”"]);
    // The transaction of the newest act leads to both sides of it.
    let follow = "(() => { const link = help.all('td a').find((one) => one.hash.startsWith('#/wallets?transaction=')); \
                  link?.click(); return Boolean(link); })()";
    console.page.wait(follow);
    console.sees_row(&["Debit", "ann", "7.00 USD"]);
    console.sees_row(&["Credit", "bob", "7.00 USD"]);
    console.check("a transfer of an address");
    console.show("#/players/ann");
    console.sees_row(&["Money deposited", "1 234.56 USD to ann, transaction", "“a gift”"]);
    console.check("acts with money");

    let admin = client.post("/v1/keys", &json!({"role": "admin"})).expect(201);
    let mut admin = console.server.client().with_key(admin["key"].as_str().expect("a key"));
    let reader = admin.post("/v1/keys", &json!({"scopes": ["money:read"]})).expect(201)["key"].clone();
    console.page.eval(&format!("sessionStorage.setItem('tally.key', {reader}); true"));
    console.show(&format!("#/wallets/{}", ann.as_str().expect("an id")));
    console.sees("This key may not read members, so names are not shown.");
    console.sees("Balance 1 227.56 USD");
    console.check("a wallet without its member");
    // The page that was open still asked without a key.
    console.page.allow("status of 401");
    console.end();
}

/// Takes back a part of the deposit. The withdrawal, which comes first, is undone already, so it has no button for it.
fn take_back(console: &mut Console) {
    console.sees_row(&["withdrawal", "“a mistake”", "Taken back"]);
    console.click("Take back");
    console.sees("Only 7 000 KRW is available.");
    console.fill("Amount", "6000");
    console.sees_row(&["Balance of Ann", "7 000 KRW", "1 000 KRW"]);
    console.check("wallet-take-back");
    console.picture("wallet-take-back");
    console.fill("Reason", "chargeback");
    console.click("Take back");
    console.sees("6 000 KRW taken back");
    console.page.wait("document.querySelector('dialog[open]') === null");
    console.sees_row(&["taken back", "cash desk", "−6 000", "1 000"]);
    let details = |row: &str| {
        format!(
            "(() => {{ const row = help.all('tr').find((one) => one.innerText.includes('{row}')); \
             const button = [...(row?.querySelectorAll('button') ?? [])].find((one) => one.textContent === 'Details'); \
             button?.click(); return Boolean(button); }})()"
        )
    };
    console.page.wait(&details("deposit"));
    console.sees("6 000 KRW of 10 000 KRW");
    console.check("wallet-movement");
    console.picture("wallet-movement");
    console.click("Close");
    console.page.wait("document.querySelector('dialog[open]') === null");
    console.page.wait(&details("withdrawal"));
    console.sees("It is taken back already, the whole of it.");
    console.check("wallet-all-back");
    console.click("Close");
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
    console.click("Reference, promotional credit");
    console.fill("Amount", "2500");
    console.fill("Promotional until", "2999-01-02T03:04");
    console.fill("Reason", "a gift");
    console.click("Adjust");
    console.sees("2 500 KRW given");
    console.sees("2 500 KRW until 2 Jan 2999, 03:04");
    console.sees_row(&["promotion", "+2 500", "3 500"]);
    assert_eq!(console.page.eval(shown), json!(true));
    let given = client.get(&wallet).expect(200)["items"][0].clone();
    assert_eq!((&given["promotional"], &given["credits"][0]["amount"]), (&json!("2500"), &json!("2500")));
    // The next adjustment is other money again.
    console.fill("Amount", "7");
    console.fill("Reason", "more");
    console.click("Adjust");
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
    // Another try, with what it pays at most. The member stays closed.
    console.click("Pay");
    console.sees("The server tries 1 payment: 500 KRW at most.");
    console.fill("Reason", "asked by mail");
    console.check("owed again on a phone");
    console.picture("owed-again-phone");
    console.click("Pay");
    console.sees("Nothing could be paid");
    console.show("#/wallets");
    console.click("What is owed");
    console.sees_row(&["cup", "ann"]);
    console.show("#/contests/cup");
    console.sees("1 payment of 500 KRW could not be made");
    console.sees_row(&["ann", "500 KRW", "The member is closed"]);
    for (width, phone) in [(360, true), (1280, false)] {
        console.page.resize(width, 900, phone);
        console.check("unpaid prizes of a contest");
    }
    console.picture("contest-unpaid");
    // It asks as the list of what is owed does.
    console.click("Pay");
    console.sees("The server tries 1 payment: 500 KRW at most.");
    console.click("Pay");
    console.sees("Nothing could be paid");
    // The failure is of this page.
    console.show("#/contests");
    console.page.wait("document.querySelector('.toast.bad') === null");
    console.show("#/contests/cup");
    console.sees("1 payment of 500 KRW could not be made");

    // A reader sees rank, player and prize: neither the wallet nor whether it is paid.
    let admin = client.post("/v1/keys", &json!({"role": "admin"})).expect(201);
    let mut admin = console.server.client().with_key(admin["key"].as_str().expect("a key"));
    let reader = admin.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    console.show("#/contests/cup");
    console.sees("Paste an API key of this server");
    console.fill("API key", reader["key"].clone());
    console.click("Use this key");
    console.sees_row(&["ann", "500 KRW"]);
    console.page.wait("document.querySelector('main td a[href^=\"#/wallets\"]') === null");
    console.page.allow("status of 401");
    console.end();
}

/// The list makes the member of a winner without one, and pays it; nothing leads away from it.
#[test]
fn a_missed_prize_is_paid_from_the_list_of_what_is_owed() {
    let mut console = Console::empty();
    super::boards::missed(&console);
    let mut client = console.server.client();
    client.post("/v1/leaderboards/rush/players/bob/ban?reason=a%20bot", &json!({})).expect(200);
    console.show("#/owed");
    console.sees_row(&["rush", "minutely from ", "GMT+9", "bob", "banned", "700 KRW"]);
    console.sees_row(&["rush", "bob", "prize", "700 KRW", "the player is no member"]);
    console.page.wait("help.one('button', 'Pay') === undefined");
    console.page.resize(360, 780, true);
    console.sees_row(&["rush", "bob", "the player is no member: make one, then pay"]);
    console.check("missed prizes in the list on a phone");
    console.picture("owed-missed-phone");
    console.page.resize(1280, 900, false);
    console.click("New member");
    console.fill("Reason", "it signed up late");
    console.click("Make");
    console.sees("bob is a member");
    console.sees("What bob won can be paid now");
    console.sees_row(&["rush", "bob", "700 KRW", "can be paid now", "Give nothing by hand"]);
    console.page.wait("location.hash === '#/owed' && help.one('button', 'New member') === undefined");
    console.check("a prize that can be paid");
    console.picture("owed-payable");
    console.click("Pay");
    console.sees("The server tries 1 payment: 700 KRW at most.");
    console.sees("GMT+9) owes?");
    console.sees("For bob (700 KRW).");
    console.sees("bob is banned on rush. The prize was fixed before the ban.");
    console.click("Pay");
    console.sees("700 KRW paid to bob Everything of rush (minutely from ");
    console.sees("Nothing is owed");
    let bob = client.get("/v1/members?player=bob").expect(200)["items"][0]["id"].clone();
    let bob = bob.as_str().expect("an id");
    let wallets = client.get(&format!("/v1/wallets/{bob}")).expect(200);
    assert_eq!(wallets["items"][0]["balance"], json!("700"));
    // The prize in the wallet leads to its period.
    console.show(&format!("#/wallets/{bob}"));
    console.sees_row(&["prize", "rush (minutely from ", "+700"]);
    console.page.wait("help.all('td a').some((one) => one.hash.startsWith('#/boards/rush?period=minutely'))");
    console.end();
}

/// Gives money with a reason, takes some with the balance that it leaves, and undoes that.
fn give_and_take(console: &mut Console) {
    console.fill("Amount", "0");
    console.click("Adjust");
    console.sees("This is needed.");
    console.fill("Reason", "paid at the counter");
    console.click("Adjust");
    // The form shows an impossible sum.
    console.page.wait("document.querySelector('main [role=alert]')?.innerText.includes('Request ') ?? false");
    console.fill("Amount", "10000");
    console.sees_row(&["Balance", "0 KRW", "10 000 KRW"]);
    console.click("Reference, promotional credit");
    console.fill("Reference", "cash desk");
    console.check("wallet-adjust");
    console.picture("wallet-adjust");
    console.click("Adjust");
    console.sees("10 000 KRW given");
    console.sees_row(&["deposit", "cash desk", "“paid at the counter”", "+10 000"]);

    console.fill("Adjust", "withdrawals");
    console.fill("Amount", "20000");
    console.sees("Only 10 000 KRW is available.");
    console.fill("Amount", "500");
    console.sees_row(&["Balance", "10 000 KRW", "9 500 KRW"]);
    console.fill("Reason", "a mistake");
    console.click("Adjust");
    console.sees_row(&["withdrawal", "“a mistake”", "−500", "9 500"]);
    console.page.wait(
        "(() => { const toast = help.all('.toast').find((one) => one.innerText.includes('taken')); \
         const undo = toast?.querySelector(':scope > div button'); undo?.click(); return Boolean(undo); })()",
    );
    console.sees_row(&["taken back", "“undone”", "+500", "10 000"]);
}

/// Holds money and ends that, after the wallet before and after is shown.
fn hold(console: &mut Console, ending: &str, ended: &str) {
    console.click("New hold");
    console.sees("Hold money of Ann");
    console.fill("Amount", "3000");
    console.fill("Reason", "a bet");
    console.check("wallet-hold");
    console.click("Hold");
    console.sees_row(&["open", "“a bet”", "3 000 KRW"]);
    console.sees("Available 7 000 KRW");
    console.click(ending);
    console.sees(&format!("{ending} the hold of 3 000 KRW?"));
    let balance = if ending == "Void" { "10 000 KRW" } else { "7 000 KRW" };
    console.sees_row(&["Balance", "10 000 KRW", balance]);
    console.sees_row(&["Held", "3 000 KRW", "0 KRW"]);
    console.check(ending);
    console.picture(&format!("wallet-{ended}"));
    console.click(ending);
    console.sees(&format!("The hold is {ended}"));
    console.sees("Held 0 KRW");
}

#[test]
fn a_member_is_made_changed_and_closed() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    // An address may begin a member of a player.
    console.show("#/wallets?player=zoe");
    console.page.wait("help.field('Player')?.value === 'zoe'");
    // Name and login are those of the player until others are given.
    console.page.wait("help.field('Name')?.value === 'zoe' && help.field('Login')?.value === 'zoe'");
    console.sees("Fields with * are needed.");
    console.fill("Name", "");
    console.fill("Login", "");
    console.click("Make");
    // Each empty field says so at once.
    console.page.wait("help.text().split('This is needed.').length === 3");
    console.fill("Name", "Zoe");
    console.fill("Login", "zoe@example.org");
    console.fill("Phone", "010-1234-5678");
    console.fill("Password", "open sesame");
    console.check("member-new");
    console.picture("member-new");
    console.click("Make");
    console.sees("Zoe is a member");
    console.sees("Nothing moved yet");
    let found = client.get("/v1/members?player=zoe").expect(200)["items"][0].clone();
    assert_eq!((&found["login_id"], &found["has_password"]), (&json!("zoe@example.org"), &json!(true)));
    // Without a key and a reason, the act would leave no row.
    let acts = client.get("/v1/audit?action=member.created").expect(200);
    assert_eq!(acts["items"][0]["reason"], "console");

    console.click("Edit");
    console.sees("Edit Zoe");
    console.fill("Name", "Zoë");
    console.fill("Take its password away: it cannot sign in any more", true);
    console.check("member-edit");
    console.picture("member-edit");
    console.click("Save");
    console.sees("Zoë is changed");
    console.sees("Signs in not at all");
    console.click("zoe");
    console.page.wait("location.hash === '#/players/zoe'");
    console.click("Zoë");
    console.sees("Nothing moved yet");

    client.post("/v1/deposits", &json!({"to": found["id"], "amount": 5})).expect(201);
    client.post("/v1/holds", &json!({"member": found["id"], "amount": 2})).expect(201);
    console.click("Close");
    console.sees("5 KRW stay in its wallet, out of reach. 2 KRW of it are held.");
    console.check("member-close");
    console.picture("member-close");
    console.confirm("zoe@example.org", "Close the member");
    console.sees("Zoë is closed");
    console.page.wait("help.one('button', 'Adjust') === undefined");
    let path = format!("/v1/members/{}", found["id"].as_str().expect("an id"));
    let closed = client.get(&path).expect(200);
    assert_eq!(
        (&closed["name"], &closed["has_password"], closed["closed_at"].is_string()),
        (&json!("Zoë"), &json!(false), true)
    );
    console.page.allow("status of 404");
    console.end();
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
