//! Leaderboards: made, changed, filled from a file, read from both ends, a player banned and removed, saved, deleted; prizes of periods.

use super::Console;
use serde_json::{Value, json};
use std::path::Path;
use tally_testkit::wait_until;

#[test]
fn a_board_from_its_first_player_to_its_end() {
    let mut console = Console::empty();
    create(&mut console);
    import(&mut console);
    read(&mut console);
    one_player(&mut console);
    export(&mut console);
    console.click("Delete");
    console.sees("It has 45 players.");
    console.confirm("arcade", "Delete");
    console.sees("Leaderboard arcade is gone");
    console.sees("No leaderboard yet");
    console.server.client().get("/v1/leaderboards/arcade").refused(404, "leaderboard_not_found");
    // The query for a player that does not exist is valid; the network's error is no mistake of the page.
    console.page.allow("status of 404");
    console.end();
}

/// The ranks of a period come into sight when it is chosen below them. The browser would keep the periods where they are.
#[test]
fn a_period_that_is_chosen_comes_into_sight() {
    let mut console = Console::empty();
    let rules = [("daily", "0 0 * * *"), ("weekly", "0 0 * * 1"), ("monthly", "0 0 1 * *")]
        .map(|(name, schedule)| json!({"name": name, "schedule": schedule}));
    let mut client = console.server.client();
    client.put("/v1/leaderboards/arcade", &json!({"periods": rules})).expect(201);
    let scores: Vec<Value> = (1..=30)
        .map(|at| json!({"board": "arcade", "player": format!("player {at}"), "score": at}))
        .collect();
    client.post("/v1/scores/batch", &json!({"scores": scores})).expect(200);
    console.page.resize(1280, 700, false);
    console.show("#/boards/arcade");
    let week = "help.all('button').find((one) => one.textContent.startsWith('Week of '))";
    console.page.wait(&format!(
        "(() => {{ {week}?.scrollIntoView({{ block: 'center' }}); return window.scrollY > 500; }})()"
    ));
    console.page.eval(&format!("{week}.focus(); {week}.click(); true"));
    console.page.wait(
        "(() => { const ranks = help.all('section')[0]; const { top } = ranks.getBoundingClientRect(); \
         return ranks.querySelectorAll('tbody tr').length === 20 && top > -5 && top < 300; })()",
    );
    console.end();
}

/// A change says what it does before it is made. One that takes ranks away asks for the name.
#[test]
fn a_change_of_periods_says_first_what_it_does() {
    let mut console = Console::empty();
    let weekly = json!({"name": "weekly", "schedule": "0 0 * * mon", "time_zone": "Asia/Seoul"});
    console.server.client().put("/v1/leaderboards/arcade", &json!({"periods": [weekly]})).expect(201);
    console.show("#/boards/arcade");
    console.sees("weekly: every week from Monday, 00:00 (Asia/Seoul)");
    console.click("Edit");
    console.click("Save");
    console.sees("Nothing is changed yet");
    console.fill("Closed periods kept", "5");
    console.click("Add a prize");
    console.fill("Amount each, prize 1", "700");
    console.click("Add a period");
    console.check("board-edit");
    console.picture("board-edit");
    console.click("Save");
    console.sees("weekly: 5 closed periods are kept, before 12.");
    console.sees("The open period pays the new prizes. Closed periods keep theirs.");
    console.sees("weekly-2 is new: every week from Monday, 00:00 (Asia/Seoul).");
    console.check("board-change");
    console.picture("board-change");
    console.fill("Reason", "more to win");
    console.click("Save");
    console.sees("Leaderboard arcade is changed");
    console.sees("weekly-2: every week from Monday");
    let made = console.server.client().get("/v1/leaderboards/arcade").expect(200);
    let rule = &made["periods"][0];
    assert_eq!((&rule["keep"], &rule["schedule"]), (&json!(5), &json!("0 0 * * mon")));
    assert_eq!(
        (&rule["prizes"][0]["amount"], &made["periods"][1]["name"]),
        (&json!("700"), &json!("weekly-2"))
    );
    console.click("Edit");
    console.click("Remove weekly");
    console.click("Save");
    console.sees("weekly goes with its open period and the ranks of all its closed periods, for ever.");
    console.picture("board-change-removed");
    console.confirm("arcade", "Save");
    console
        .page
        .wait("help.text().includes('weekly-2: every week') && !help.text().includes('weekly: every week')");
    let made = console.server.client().get("/v1/leaderboards/arcade").expect(200);
    assert_eq!(made["periods"].as_array().map(Vec::len), Some(1));
    // Times of a leaderboard are those of its zone; the frame names the zone of all others.
    let row = json!({"player": "ann", "score": 7});
    console.server.client().post("/v1/leaderboards/arcade/scores", &row).expect(200);
    console.sees("Scored at (Asia/Seoul)");
    console.sees("Times in ");
    console.show("#/players/ann");
    console.sees_row(&["arcade", "GMT+9"]);
    console.sees_row(&["weekly-2 from ", "GMT+9"]);
    console.end();
}

/// A rule that keeps fewer closed periods than there are takes ranks away, too.
#[test]
fn fewer_closed_periods_ask_for_the_name() {
    let mut console = Console::empty();
    let weekly = json!({"name": "weekly", "schedule": "0 0 * * mon", "keep": 3});
    console.server.client().put("/v1/leaderboards/arcade", &json!({"periods": [weekly]})).expect(201);
    let rows = console.server.data().join("weeks.csv");
    std::fs::write(&rows, "day,who\n2020-01-06,ann\n2020-01-13,ann\n").expect("it is written");
    let rows = rows.to_str().expect("a path of text");
    let columns = ["--player", "who", "--score-value", "1", "--at", "day"];
    console.server.run(&[&["import", "scores", "arcade", rows][..], &columns].concat()).expect(0);
    console.show("#/boards/arcade");
    console.click("Edit");
    console.fill("Closed periods kept", "2");
    console.click("Save");
    console.sees("weekly: 2 closed periods are kept, before 3.");
    console.fill("Reason", "two are enough");
    console.click("Save");
    console.sees("Leaderboard arcade is changed");
    // The page shows the change by loading it anew, which looks the same as before.
    console.show("#/boards");
    console.show("#/boards/arcade");
    console.click("Edit");
    console.fill("Closed periods kept", "0");
    console.click("Save");
    console.sees("weekly: 0 closed periods are kept, before 2.");
    console.sees("2 closed periods go with their ranks, for ever.");
    console.confirm("arcade", "Save");
    console.page.wait("!help.text().includes('Week of 6 Jan 2020')");
    let made = console.server.client().get("/v1/leaderboards/arcade").expect(200);
    assert_eq!(made["periods"][0]["keep"], 0);
    console.end();
}

/// Closes a period of `rush` that `bob` has won while it is no member, and returns its name.
pub(super) fn missed(console: &Console) -> String {
    let mut client = console.server.client();
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 700}]);
    let rule =
        json!({"name": "minutely", "schedule": "* * * * *", "time_zone": "Asia/Seoul", "prizes": prizes});
    client.put("/v1/leaderboards/rush", &json!({"periods": [rule]})).expect(201);
    client.post("/v1/leaderboards/rush/scores", &json!({"player": "bob", "score": 9})).expect(200);
    let mut period = String::new();
    wait_until("the period is settled", || {
        let listed = client.get("/v1/leaderboards/rush/periods").expect(200);
        let items = listed["items"].as_array().expect("items");
        let closed = items.iter().find(|one| one["state"] == "closed" && one["total"] == 1);
        let Some(name) = closed.and_then(|one| one["period"].as_str()) else { return false };
        period = name.to_owned();
        client.get(&format!("/v1/leaderboards/rush/prizes?period={name}")).expect(200)["settled"] == true
    });
    period
}

/// The page of the player makes its member, pays it, and shows both without being loaded again.
#[test]
fn a_missed_prize_is_paid_on_the_page_of_its_player() {
    let mut console = Console::empty();
    missed(&console);
    console.show("#/players/bob");
    console.sees_row(&["rush", "700 KRW", "the player is no member"]);
    console.click("New member");
    console.fill("Reason", "it signed up late");
    console.click("Make");
    console.sees("bob is a member");
    console.sees_row(&["rush", "700 KRW", "can be paid now"]);
    console.page.wait("location.hash === '#/players/bob'");
    console.click("Pay this period");
    console.sees("The server tries 1 payment: 700 KRW at most.");
    console.click("Pay");
    console.sees("700 KRW paid to bob");
    console.page.wait("!help.text().includes('Missed prizes and fees')");
    console.sees("Balance 700 KRW");
    // The acts on its member are acts on the player.
    console.sees_row(&["Member made", "“it signed up late”"]);
    console.sees_row(&["Missed payment made", "Prize of 700 KRW, rush (minutely from "]);
    console.check("player-paid");
    console.end();
}

/// A winner that is no member gets nothing when the period is closed. It is paid once it is one.
#[test]
fn a_missed_prize_is_paid_again() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    let period = missed(&console);
    console.show("#/players/bob");
    console.sees("Missed prizes and fees");
    console.sees_row(&["rush", "700 KRW", "the player is no member"]);
    console.check("player-missed");
    console.show(&format!("#/boards/rush?period={period}"));
    console.sees("Prizes: minutely from ");
    console.sees_row(&["1", "bob", "700 KRW", "no member"]);
    console.sees("No winner of an unpaid prize is a member yet");
    console.check("board-prizes");
    // The row makes the member, and the page stays.
    console.click("New member");
    console.fill("Name", "Bob");
    console.click("Make");
    console.sees("Bob is a member");
    console.sees_row(&["1", "bob", "700 KRW", "can be paid now"]);
    // The sums say the same.
    console.sees("Owed 700 KRW");
    console.sees_row(&["minutely from ", "700 KRW owed"]);
    let member = client.get("/v1/members?player=bob").expect(200)["items"][0]["id"].clone();
    console.click("Pay what is unpaid");
    console.sees("The server tries 1 payment: 700 KRW at most.");
    console.sees("Each is paid once only.");
    console.fill("Reason", "it signed up late");
    console.check("board-repay");
    console.picture("board-repay");
    console.click("Pay");
    console.sees("700 KRW paid to bob Everything of rush (minutely from ");
    console.sees_row(&["1", "bob", "700 KRW", "paid"]);
    // The list reads a period once, and again after a payment.
    console.sees_row(&["minutely from ", "700 KRW paid"]);
    console.page.wait("!help.text().includes('no member')");
    console.picture("board-prizes");
    let wallets = client.get(&format!("/v1/wallets/{}", member.as_str().expect("an id"))).expect(200);
    assert_eq!(wallets["items"][0]["balance"], json!("700"));
    console.end();
}

fn create(console: &mut Console) {
    console.show("#/boards");
    console.click("New leaderboard");
    console.fill("Name", "arcade");
    console.fill("Which score is better", "ascending");
    console.click("Add a period");
    console.fill("A new one begins", "own");
    console.fill("Schedule", "61 * * * *");
    console.fill("Time zone", "Asia/Seoul");
    console.picture("board-create");
    console.check("board-create");
    console.click("Create");
    // The error is in the form, with the request id of the log, and at its field.
    console
        .page
        .wait("document.querySelector('dialog [role=alert]')?.innerText.includes('Request ') ?? false");
    console.page.wait("help.field('Schedule').getAttribute('aria-invalid') === 'true'");
    console.picture("board-create-wrong");
    // The name follows the choice until it is typed.
    console.page.wait("help.field('Name of the period').value === 'season'");
    console.fill("A new one begins", "weekly");
    console.click("Create");
    console.sees("Leaderboard arcade is there");
    console.page.allow("status of 422");
    let made = console.server.client().get("/v1/leaderboards/arcade").expect(200);
    assert_eq!((&made["order"], &made["update"]), (&json!("ascending"), &json!("best")));
    let rule = &made["periods"][0];
    assert_eq!(
        (&rule["name"], &rule["schedule"], &rule["time_zone"]),
        (&json!("weekly"), &json!("0 0 * * 1"), &json!("Asia/Seoul"))
    );
    console.sees("No player here yet");
    console.sees("every week from Monday, 00:00 (Asia/Seoul)");
}

fn import(console: &mut Console) {
    let file = console.server.data().join("times.csv");
    let row = |at: u32| format!("\"player, {at:03}\",{},2025-11-{:02}\r\n", 1000 + at, 1 + at % 20);
    let rows: String = (1..=45).map(row).collect();
    std::fs::write(&file, format!("who,points,at\r\n{rows}broken,many,\r\n"))
        .expect("the file can be written");
    for times in 1..=2 {
        console.click("Import");
        choose(console, &file);
        console.fill("Player", "0");
        if times == 1 {
            console.picture("board-import");
            console.check("board-import");
        }
        console.click("Import");
        if times == 1 {
            console.sees("45 rows imported, 1 row refused");
            console.sees_row(&["47", "“many” is not a number"]);
            console.picture("board-imported");
            console.click("Close");
        } else {
            console.sees("This file was imported before");
            console.page.press("Escape");
        }
        console.page.wait("document.querySelector('dialog[open]') === null");
    }
    console.sees("45 players");
    let page = console.server.client().get("/v1/leaderboards/arcade/scores?limit=1").expect(200);
    assert_eq!((&page["total"], &page["entries"][0]["score"]), (&json!(45), &json!(1001)));
}

fn choose(console: &mut Console, file: &Path) {
    console.page.wait("document.querySelector('dialog[open] input[type=file]') !== null");
    console.page.choose_file("dialog[open] input[type=file]", file);
    console.sees("times.csv, ");
}

fn read(console: &mut Console) {
    console.sees_row(&["1", "player, 001", "1 001"]);
    console.click("Next");
    console.sees_row(&["21", "player, 021"]);
    console.click("Next");
    console.sees_row(&["45", "player, 045"]);
    console.click("Back");
    console.sees_row(&["21", "player, 021"]);
    console.click("Worst first");
    console.page.wait("help.all('tbody tr')[0]?.innerText.includes('player, 045') ?? false");
    console.click("Best first");
    console.page.wait("help.all('tbody tr')[0]?.innerText.includes('player, 001') ?? false");
    // It refreshes itself.
    let row = json!({"player": "ada", "score": 7});
    console.server.client().post("/v1/leaderboards/arcade/scores", &row).expect(200);
    console.sees_row(&["1", "ada", "7"]);
    console.fill("Part of the leaderboard", "weekly");
    console.page.wait("help.all('section')[0].innerText.includes('ada')");
    console.sees_row(&["Week of ", "open", "ada"]);
    console.fill("Part of the leaderboard", "all_time");
    console.sees("46 players");
}

fn one_player(console: &mut Console) {
    console.fill("Player id", "player, 003");
    console.click("Find");
    console.sees("4 of 46");
    console.sees_row(&["4", "player, 003", "1 003"]);
    // The player is in the address, so that it can be shared.
    console.page.wait("decodeURIComponent(location.hash) === '#/boards/arcade?player=player, 003'");
    // A ban asks nothing, has its reason beside it, and can be undone.
    console.fill("Reason", "bot or script");
    console.click("Ban");
    console.sees("player, 003 is banned on arcade");
    console.sees("player, 003 is not ranked");
    console.sees("It is banned here");
    console.sees("45 players");
    // The list of bans says when, by whom and why.
    console.sees_row(&["player, 003", "“bot or script”", "this machine, without a key"]);
    console.picture("board-ban");
    console.check("board-ban");
    console.click("Undo");
    console.sees("player, 003 is restored on arcade");
    console.sees("4 of 46");
    let acts = console.server.client().get("/v1/audit?subject=player%2C%20003").expect(200);
    let reasons = [&acts["items"][1]["reason"], &acts["items"][0]["reason"]];
    assert_eq!(reasons, [&json!("bot or script"), &json!("undone")]);
    // Who is not banned is not restored.
    console.fill("Player id", "nobody-ever");
    console.click("Find");
    console.sees("It has not scored here, or was removed. Capitals and accents count.");
    console.page.wait("!help.all('button').some((one) => one.textContent === 'Restore')");
    console.fill("Player id", "player, 003");
    console.click("Find");
    console.sees("4 of 46");
    console.sees("A removal deletes the scores of all time and of open periods here, for ever. The player can score again.");
    console.click("Remove");
    console.sees("It cannot be undone. A ban can be. The audit log keeps the scores that go.");
    console.confirm("player, 003", "Remove");
    console.sees("player, 003 is removed from arcade");
    // The address leads to the player no more.
    console.page.wait("location.hash === '#/boards/arcade'");
    let acts = console.server.client().get("/v1/audit?action=player.removed").expect(200);
    let row = (&acts["items"][0]["subject"], &acts["items"][0]["reason"]);
    assert_eq!(row, (&json!("player, 003"), &json!("console")));
    console.sees("45 players");
    // No warning is beside what was done.
    console.page.wait("!help.text().includes('4 of 46')");
    console.page.wait("!help.text().includes('is not ranked')");
}

fn export(console: &mut Console) {
    let folder = console.server.data().join("saved");
    std::fs::create_dir(&folder).expect("the folder can be made");
    console.page.download_to(&folder);
    console.click("Export");
    console.sees("45 rows saved");
    let file = folder.join("arcade.csv");
    let whole = || std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with("\r\n"));
    wait_until("the file is saved", whole);
    // Spreadsheets take UTF-8 for another encoding without its mark.
    assert!(std::fs::read(&file).is_ok_and(|bytes| bytes.starts_with("\u{feff}rank,player".as_bytes())));
    let mut reader = csv::Reader::from_path(&file).expect("it can be read");
    let rows: Vec<Vec<String>> =
        reader.records().map(|row| row.expect("it is CSV").iter().map(str::to_owned).collect()).collect();
    assert_eq!(
        (rows.len(), &rows[0][..3], &rows[1][..3]),
        (45, &["1", "ada", "7"].map(str::to_owned)[..], &["2", "player, 001", "1001"].map(str::to_owned)[..])
    );
    let page: Value = console.server.client().get("/v1/leaderboards/arcade/scores?limit=100").expect(200);
    let players: Vec<&str> = page["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .filter_map(|entry| entry["player"].as_str())
        .collect();
    assert_eq!(rows.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(), players);
}
