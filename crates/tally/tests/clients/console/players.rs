//! Players: found by the beginning of a name, and one page for each with its ranks, its money, its contests and the acts on it.

use super::Console;
use serde_json::{Value, json};
use tally_testkit::Request;

/// A cheater on two leaderboards, with a wallet and a hold, and an honest player.
fn store(console: &Console) {
    let mut client = console.server.client();
    let periods = json!([{"name": "weekly", "schedule": "0 0 * * 1"}]);
    client.put("/v1/leaderboards/arcade", &json!({"periods": periods})).expect(201);
    client.put("/v1/leaderboards/speed", &json!({})).expect(201);
    for (board, player, score) in [
        ("arcade", "cheater", 9000),
        ("arcade", "honest", 70),
        ("speed", "cheater", 8000),
        ("speed", "honest", 60),
    ] {
        let row = json!({"player": player, "score": score});
        client.post(&format!("/v1/leaderboards/{board}/scores"), &row).expect(200);
    }
    let member = json!({"login_id": "c@example.org", "name": "Cee", "player": "cheater", "phone_number": "010-1234-5678"});
    let member = client.post("/v1/members", &member).expect(201)["id"].clone();
    client.post("/v1/deposits", &json!({"to": member, "amount": 100})).expect(201);
    client.post("/v1/holds", &json!({"member": member, "amount": 30, "reason": "a bet"})).expect(201);
}

#[test]
fn a_cheater_is_found_banned_restored_and_corrected() {
    let mut console = Console::empty();
    store(&console);
    find(&mut console);
    ban_and_undo(&mut console);
    correct(&mut console);
    adjust(&mut console);
    console.page.resize(360, 780, true);
    for theme in ["light", "dark"] {
        console.page.prefer(theme);
        console.page.wait(&format!("matchMedia('(prefers-color-scheme: {theme})').matches"));
        console.check(&format!("player phone {theme}"));
    }
    console.picture("player-phone-dark");
    console.end();
}

/// A leaderboard may have the name of a player, and another player a name that begins with it.
#[test]
fn the_acts_on_a_player_are_on_nothing_else() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    client.put("/v1/leaderboards/ann", &json!({"reason": "a new board"})).expect(201);
    for (player, reason) in [("ann", "it%20cheats"), ("anna", "it%20lies")] {
        client.post("/v1/leaderboards/ann/scores", &json!({"player": player, "score": 1})).expect(200);
        let ban = format!("/v1/leaderboards/ann/players/{player}/ban?reason={reason}");
        client.send(&Request::new("POST", ban)).expect(200);
    }
    console.show("#/players/ann");
    console.sees_row(&["Player banned", "“it cheats”"]);
    console.page.wait("help.row('“a new board”') === null && help.row('“it lies”') === null");
    console.click("Acts in the audit log");
    console.page.wait("location.hash === '#/audit?subject=ann'");
    console.sees_row(&["Leaderboard made", "“a new board”"]);
    console.sees_row(&["Player banned", "“it cheats”"]);
    console.page.wait("help.row('“it lies”') === null");
    console.end();
}

fn find(console: &mut Console) {
    console.show("#/players");
    console.sees("The last bans");
    console.sees("No ban");
    console
        .page
        .wait("document.activeElement === help.field('Player, login, name, phone number or member id')");
    for text in ["CHEAT", "010-1234", "c@example", "cEE"] {
        console.fill("Player, login, name, phone number or member id", text);
        console.click("Search");
        console.sees_row(&["cheater", "Cee", "c@example.org", "01012345678", "arcade", "speed"]);
        // The search is in the address, so that it can be shared.
        let hash = "decodeURIComponent(location.hash)";
        console.page.wait(&format!("{hash} === {}", json!(format!("#/players?q={text}"))));
    }
    console.check("players-found");
    console.picture("players-found");
    console.fill("Player, login, name, phone number or member id", "nobody");
    console.click("Search");
    console.sees("No player found for “nobody”");
    console.sees("A leaderboard lists all its players.");
    console.page.eval("location.hash = '#/players?player=cheater'; true");
    console.page.wait("location.hash === '#/players/cheater'");
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
    // The page of the leaderboard opens with the player, and the way to remove it.
    console
        .page
        .wait("help.all('a').some((one) => one.getAttribute('href') === '#/boards/arcade?player=cheater')");
    console.show("#/players?q=chea");
    console.sees_row(&["cheater", "Cee"]);
    console.click("cheater");
    console.page.wait("location.hash === '#/players/cheater'");
    console.page.wait("help.all('.head span').some((one) => one.textContent === 'Cee')");
}

/// The ranks of the player: each board with whether it is banned there.
fn bans(console: &Console) -> Vec<(Value, Value)> {
    let ranks = console.server.client().get("/v1/players/cheater/ranks").expect(200);
    let items = ranks["items"].as_array().expect("items");
    items.iter().map(|one| (one["board"].clone(), one["banned"].clone())).collect()
}

fn ban_and_undo(console: &mut Console) {
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
    console.sees_row(&["Week of ", "1", "of 2", "9 000"]);
    console.sees_row(&["speed", "1", "of 2", "8 000"]);
    console.sees("Open holds");
    console.sees("“a bet”");
    for theme in ["light", "dark"] {
        console.page.prefer(theme);
        console.page.wait(&format!("matchMedia('(prefers-color-scheme: {theme})').matches"));
        console.check(&format!("player {theme}"));
        console.picture(&format!("player-{theme}"));
    }
    // Frequent reasons are offered beside the button.
    console.page.wait("[...help.field('Reason').list.options].some((one) => one.value === 'bot or script')");
    console.fill("Reason", "a bot");
    console.sees("A ban takes the player out of the ranks, in closed periods too, until it is lifted.");
    // One click, and no question.
    console.click("Ban everywhere");
    console.sees("cheater is banned on 2 leaderboards");
    console.sees("banned on all its leaderboards");
    console.sees_row(&["speed", "banned", "8 000"]);
    console.sees_row(&["Player banned", "arcade", "“a bot”"]);
    console
        .page
        .wait("document.querySelector('.toast a').getAttribute('href') === '#/audit?subject=cheater'");
    let banned = |is: bool| vec![(json!("arcade"), json!(is)), (json!("speed"), json!(is))];
    assert_eq!(bans(console), banned(true));
    console.check("player-banned");
    console.picture("player-banned");
    console.click("Undo");
    console
        .page
        .wait("!help.text().includes('banned on all its leaderboards') && help.row('speed', 'of 2', '8 000') !== null");
    console.sees("cheater is restored on 2 leaderboards");
    assert_eq!(bans(console), banned(false));
    // It was one ban, and it is taken back.
    console.show("#/players");
    console.sees_row(&["cheater", "restored", "“a bot”", "arcade", "speed"]);
    // One act on two leaderboards is two rows, which name them.
    console.show("#/");
    for board in ["arcade", "speed"] {
        console.sees_row(&["Player banned", board, "“a bot”", "cheater"]);
    }
    console.show("#/players/cheater");
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
    // The page of a leaderboard shows whom it has banned.
    console.click("Ban");
    console.sees("cheater is banned on arcade");
    console.show("#/boards/arcade");
    console.page.wait("help.row('cheater', 'Restore') !== null && help.row('cheater', '9 000') === null");
    console.sees_row(&["cheater", "banned", "No reason given", "this machine, without a key"]);
    console.check("board-bans");
    console.picture("board-bans");
    console.page.wait("(() => { const row = help.all('tr').find((one) => one.innerText.includes('Restore')); row?.querySelector('button').click(); return Boolean(row); })()");
    console.sees("Restore cheater on arcade?");
    console.fill("Reason", "it was another");
    console.check("board-restore");
    console.click("Restore");
    console.sees_row(&["1", "cheater", "9 000"]);
    let acts = console.server.client().get("/v1/audit?action=player.restored").expect(200);
    assert_eq!(acts["items"][0]["reason"], "it was another");
    console.click("cheater");
    console.page.wait("location.hash === '#/players/cheater'");
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
}

fn correct(console: &mut Console) {
    console.click("Correct");
    console.fill("Score", "12");
    console.click("Correct");
    console.sees("This is needed.");
    console.fill("Reason", "it ran a script");
    console.check("player-correct");
    console.picture("player-correct");
    console.click("Correct");
    console.sees("The score of cheater is corrected");
    console.sees_row(&["arcade", "2", "of 2", "12"]);
    // Of one window alone.
    console.sees_row(&["Week of ", "1", "of 2", "9 000"]);
    console.sees_row(&["Score corrected", "arcade: 9 000 to 12", "“it ran a script”"]);
    let undo = "(() => { const said = help.all('.toast').find((one) => one.innerText.includes('is corrected')); \
                const undo = [...(said?.querySelectorAll('button') ?? [])].find((one) => one.textContent === 'Undo'); \
                undo?.click(); return Boolean(undo); })()";
    console.page.wait(undo);
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
    console.sees_row(&["Score corrected", "arcade: 12 to 9 000", "“undone”"]);
}

fn adjust(console: &mut Console) {
    console.click("Adjust the wallet");
    console.fill("Adjust", "withdrawals");
    console.fill("Amount", "20");
    console.page.wait("help.fill('Reason', 'won by a script', 'details')");
    console.click("Adjust");
    console.sees("20 KRW taken");
    console.sees("80 KRW");
    let rows = console.server.client().get("/v1/ledger/transactions?type=withdrawal").expect(200);
    assert_eq!(
        (&rows["items"][0]["amount"], &rows["items"][0]["reason"]),
        (&json!("20"), &json!("won by a script"))
    );
    // The acts have it at once, and that it is taken back.
    console.sees_row(&["Money withdrawn", "20 KRW", "“won by a script”"]);
    console.page.wait(
        "(() => { const toast = help.all('.toast').find((one) => one.innerText.includes('taken')); \
         const undo = toast?.querySelector(':scope > div button'); undo?.click(); return Boolean(undo); })()",
    );
    console.sees_row(&["Money withdrawn", "20 KRW", "20 KRW taken back"]);
    console.sees("100 KRW");
}

/// The work of a desk in one go, with the mouse: only a name and a reason are typed.
#[test]
fn a_desk_finds_a_cheater_bans_restores_pays_and_shows_who_did_what() {
    let mut console = Console::empty();
    super::boards::missed(&console);
    let mut client = console.server.client();
    client.put("/v1/leaderboards/speed", &json!({})).expect(201);
    client.post("/v1/leaderboards/speed/scores", &json!({"player": "bob", "score": 8})).expect(200);
    console.click("Players");
    console.sees("The last bans");
    console.fill("Player, login, name, phone number or member id", "BO");
    console.click("Search");
    console.sees_row(&["bob", "rush", "speed"]);
    console.click("bob");
    console.page.wait("location.hash === '#/players/bob'");
    console.sees_row(&["speed", "1", "of 1"]);
    console.sees_row(&["rush", "700 KRW", "the player is no member"]);
    console.fill("Reason", "a bot");
    console.click("Ban everywhere");
    console.sees("bob is banned on 2 leaderboards");
    console.sees("Closed periods show no rank until the ban is lifted.");
    console.sees_row(&["rush", "banned", "700 KRW"]);
    console.sees("banned on all its leaderboards");
    console.click("Undo");
    console.sees("bob is restored on 2 leaderboards");
    console.page.wait(
        "!help.text().includes('banned on all its leaderboards') && help.row('speed', 'of 1') !== null",
    );
    console.click("New member");
    console.fill("Reason", "it signed up late");
    console.click("Make");
    console.sees("bob is a member");
    console.sees_row(&["rush", "700 KRW", "can be paid now"]);
    console.click("Pay this period");
    console.sees("The server tries 1 payment: 700 KRW at most.");
    console.click("Pay");
    console.sees("700 KRW paid to bob");
    console.sees("Balance 700 KRW");
    console.click("Acts in the audit log");
    console.page.wait("location.hash === '#/audit?subject=bob'");
    for board in ["rush", "speed"] {
        console.sees_row(&["Player banned", board, "“a bot”"]);
        console.sees_row(&["Ban lifted", board, "“undone”"]);
    }
    console.sees("Without API keys it names this machine, and no person");
    console.check("desk-audit");
    console.picture("desk-audit");
    console.end();
}

/// A contest is found as a player is, and is on the page of a player that has applied to it.
#[test]
fn a_contest_is_found_and_a_player_has_it_without_a_score() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    client.post("/v1/contests", &json!({"id": "spring", "title": "Friday cup"})).expect(201);
    client.post("/v1/contests/spring/open", &json!({})).expect(200);
    client.post("/v1/contests/spring/applications", &json!({"player": "ann"})).expect(201);
    console.show("#/players?q=FRI");
    console.sees("Contests that were found");
    console.sees_row(&["Friday cup", "spring", "open"]);
    console.sees("No player found for “FRI”");
    console.check("contests-found");
    console.picture("contests-found");
    console.show("#/players/ann");
    console.sees_row(&["Friday cup", "spring", "has applied", "open"]);
    console.sees("On no leaderboard");
    console.check("player-contests");
    console.picture("player-contests");
    console.click("Friday cup");
    console.page.wait("location.hash === '#/contests/spring'");
    // The player has no profile.
    console.page.allow("status of 404");
    console.end();
}

/// The page of a player has its rank and its prize in each contest, and shows changes without being loaded again.
#[test]
fn a_player_has_its_rank_and_its_prize_in_a_contest() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    for player in ["ann", "bob"] {
        let member = json!({"login_id": player, "name": player, "player": player});
        client.post("/v1/members", &member).expect(201);
    }
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 500}]);
    client.post("/v1/contests", &json!({"id": "cup", "title": "Friday cup", "prizes": prizes})).expect(201);
    let mut act = |path: &str, body: Value| {
        let status = client.post(&format!("/v1/contests/cup/{path}"), &body).status;
        assert!(status < 300, "{path}: {status}");
    };
    let mut players = console.server.client();
    let mut submit = |player: &str, score: u32| {
        let row = json!({"player": player, "score": score});
        players.post("/v1/leaderboards/contest:cup/scores", &row).expect(200);
    };
    act("open", json!({}));
    act("applications", json!({"player": "ann"}));
    act("applications", json!({"player": "bob"}));
    act("applications/accept", json!({"players": ["ann", "bob"]}));
    act("start", json!({}));
    submit("ann", 5);
    submit("bob", 70);
    console.show("#/players/ann");
    console.sees_row(&["Friday cup", "running", "takes part", "2", "of 2", "Score 5"]);
    submit("ann", 90);
    console.sees_row(&["Friday cup", "running", "1", "of 2", "Score 90"]);
    act("finish", json!({}));
    act("settle", json!({}));
    console.sees_row(&["Friday cup", "settled", "of 2", "Score 90", "500 KRW", "paid"]);
    console.sees("Balance 500 KRW");
    console.check("player-prize");
    console.picture("player-prize");
    // The wallet has the prize among its transactions.
    console.click("All transactions");
    console.page.wait("location.hash.startsWith('#/wallets/')");
    console.sees_row(&["prize", "500"]);
    console.end();
}

/// A hold of an entry fee and a ban name the contest with the application, and its end says what it gave back.
#[test]
fn an_entry_fee_leads_to_its_contest() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let member = json!({"login_id": "ann", "name": "Ann Lee", "player": "ann"});
    let member = client.post("/v1/members", &member).expect(201)["id"].clone();
    client.post("/v1/deposits", &json!({"to": member, "amount": 500})).expect(201);
    client.put("/v1/leaderboards/arcade", &json!({})).expect(201);
    client.post("/v1/leaderboards/arcade/scores", &json!({"player": "ann", "score": 9})).expect(200);
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 50}]);
    client.post("/v1/contests", &json!({"id": "old", "title": "Old cup", "prizes": prizes})).expect(201);
    let fee = json!({"currency": "KRW", "amount": 100});
    client.post("/v1/contests", &json!({"id": "cup", "title": "Friday cup", "entry_fee": fee})).expect(201);
    let mut act = |path: &str, body: Value| {
        let status = client.post(&format!("/v1/contests/{path}"), &body).status;
        assert!(status < 300, "{path}: {status}");
    };
    act("old/open", json!({}));
    act("old/applications", json!({"player": "ann"}));
    act("old/applications/accept", json!({"players": ["ann"]}));
    act("old/start", json!({}));
    let row = json!({"player": "ann", "score": 5});
    console.server.client().post("/v1/leaderboards/contest:old/scores", &row).expect(200);
    act("old/finish", json!({}));
    act("old/settle", json!({}));
    act("cup/open", json!({}));
    act("cup/applications", json!({"player": "ann"}));
    console.show("#/players/ann");
    console.sees("100 KRW · Entry fee of Friday cup");
    console.sees("Reject them in: Friday cup");
    console.click("Ban everywhere");
    console.sees("banned on all but contests that are over");
    console.check("player-fee");
    console.picture("player-fee");
    // The holds of all members say the same.
    console.show("#/wallets");
    console.sees_row(&["Ann Lee", "100 KRW", "Entry fee of Friday cup"]);
    console.click("Ann Lee");
    console.page.wait("location.hash.startsWith('#/wallets/')");
    console.sees_row(&["Entry fee of Friday cup", "100 KRW"]);
    console.click("Friday cup");
    console.page.wait("location.hash === '#/contests/cup'");
    console.sees_row(&["ann", "Ann Lee", "100 KRW held"]);
    console.click("Cancel the contest");
    console.sees("1 application is removed.");
    console.click("Cancel the contest");
    console.sees("The contest is cancelled 1 application is removed. Holds of 100 KRW are released.");
    console.show("#/contests/old");
    console.sees("Wallet: Ann Lee");
    console.end();
}

/// The page of a player whose member is closed has a way to the wallet that the member left.
#[test]
fn the_closed_member_of_a_player_is_found() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let member = json!({"login_id": "bob", "name": "Bob Ray", "player": "bob"});
    let member = client.post("/v1/members", &member).expect(201)["id"].clone();
    client.post("/v1/deposits", &json!({"to": member, "amount": 30})).expect(201);
    let close = format!("/v1/members/{}/close", member.as_str().expect("an id"));
    client.post(&close, &json!({"force": true})).expect(200);
    console.show("#/players/bob");
    console.sees("A player without a member has no wallet");
    // The parts of the page share the member: it is read once for each time that the ranks are.
    let once = "(() => { const all = performance.getEntriesByType('resource').map(({ name }) => name); \
                const count = (part) => all.filter((one) => one.includes(part)).length; \
                return count('/v1/members?player=bob') <= count('/v1/players/bob/ranks?closed=true'); })()";
    assert_eq!(console.page.eval(once), json!(true));
    console.click("Look for closed members");
    console.sees("Bob Ray closed");
    console.check("player-closed");
    console.click("Bob Ray");
    console.page.wait("location.hash.startsWith('#/wallets/')");
    console.sees("Balance 30 KRW");
    console.show("#/players/cleo");
    console.click("Look for closed members");
    console.sees("No closed member had this player.");
    // The players have no profile.
    console.page.allow("status of 404");
    console.end();
}

/// An address that leads nowhere says so, and leads back.
#[test]
fn who_is_not_there_is_not_the_end() {
    let mut console = Console::empty();
    console.show("#/wallets/nope");
    console.sees("No such member");
    console.check("wallet-nope");
    console.click("Find a member by login, phone number or player");
    console.page.wait("location.hash === '#/wallets'");
    console.sees("Trial balance");
    console.show("#/players/nobody");
    console.sees("On no leaderboard");
    console.sees("A player without a member has no wallet");
    console.check("player-nobody");
    console.picture("player-nobody");
    console.click("Players");
    console.sees("The last bans");
    console.page.allow("status of 404");
    console.end();
}

/// A reader sees ranks, and nothing that it may not do.
#[test]
fn what_a_role_may_not_do_is_not_shown() {
    let mut console = Console::empty();
    store(&console);
    let mut client = console.server.client();
    let admin = client.post("/v1/keys", &json!({"role": "admin"})).expect(201)["key"].clone();
    let mut client = console.server.client().with_key(admin.as_str().expect("a key"));
    let reader = client.post("/v1/keys", &json!({"role": "reader"})).expect(201)["key"].clone();
    console.page.eval(&format!("sessionStorage.setItem('tally.key', {reader}); true"));
    console.page.go(&format!("http://{}/#/players/cheater", console.server.address()));
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
    for (hash, seen) in [
        ("#/players/cheater", "of 2"),
        ("#/players", "Its beginning is enough"),
        ("#/boards", "arcade"),
        ("#/boards/arcade?player=cheater", "Percentile"),
        ("#/contests", "No contest yet"),
        ("#/wallets", "Money is not for this key"),
        ("#/settings", "Settings are for admins"),
    ] {
        console.show(hash);
        console.sees(seen);
        let acts = console.page.eval(
            "help.all('main button, main a.button').map((one) => one.textContent).filter((text) => \
             /Ban|Restore|Correct|Remove|Delete|Edit|Import|New|Adjust|Deposit|Hold|Erase|owed|Audit|Webhooks/.test(text))",
        );
        assert_eq!(acts, json!([]), "{hash}");
        console.check(hash);
    }
    console.picture("settings-reader");
    // A key without the audit log adjusts all the same, and is told of no failure.
    let game = client.post("/v1/keys", &json!({"role": "server"})).expect(201)["key"].clone();
    console.page.eval(&format!("sessionStorage.setItem('tally.key', {game}); true"));
    console.show("#/players/cheater");
    console.sees_row(&["arcade", "1", "of 2", "9 000"]);
    console.click("Adjust the wallet");
    console.fill("Adjust", "withdrawals");
    console.fill("Amount", "20");
    console.page.wait("help.fill('Reason', 'won by a script', 'details')");
    console.click("Adjust");
    console.sees("20 KRW taken");
    console.sees("80 KRW");
    let failures =
        "help.all('.notice, .toast').filter((one) => one.textContent.includes('is not a function')).length";
    assert_eq!(console.page.eval(failures), json!(0));
    // The first key ends the access without one, which the page that was open still had.
    console.page.allow("status of 401");
    console.end();
}
