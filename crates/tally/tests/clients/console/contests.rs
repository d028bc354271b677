//! Contests: made and edited, applications decided in bulk, a start that is refused row by row, played, finished, settled, cancelled;
//! and series. Each act says what it does before it is done.

use super::Console;
use serde_json::{Value, json};

const OPEN: &str = "copa-america-2024";

#[test]
fn a_contest_from_its_applications_to_its_prizes() {
    let mut console = Console::demo();
    create(&mut console);
    console.show("#/contests");
    console.fill("Id or title", "COPA");
    console.click("Find");
    console.page.wait("location.hash === '#/contests?q=COPA'");
    console.page.wait("help.row('Copa América 2021') !== null && help.row('Euro 2024') === null");
    console.fill("Id or title", "no-such-cup");
    console.click("Find");
    console.sees("No contest found for “no-such-cup”");
    console.check("contests-none-found");
    console.show("#/contests?state=open");
    console.sees_row(&["Copa América 2024", "open", "7 waiting"]);
    console.click("Copa América 2024");
    apply(&mut console);
    start(&mut console);
    play(&mut console);
    settle(&mut console);
    console.page.allow("status of 422");
    console.end();
}

fn create(console: &mut Console) {
    console.show("#/contests");
    console.click("New contest");
    titled(console);
    console.fill("Players at most", "8");
    console.fill("Accept applications at once", true);
    console.fill("Players at least", "2");
    console.fill("Joining after the start", "10");
    console.fill("Scores of a player at most", "3");
    console.fill("Staff", "ada, ben");
    console.fill("Entry fee", "100");
    console.click("Add a prize");
    console.fill("Amount each, prize 1", "500");
    console.click("Add a prize");
    console.fill("To place, prize 2", "3");
    console.fill("Amount each, prize 2", "half");
    for (at, share) in [(1, "50"), (2, "12.5")] {
        console.click("Add a share");
        console.fill(&format!("Per cent each, share {at}"), share);
    }
    console.fill("To place, share 2", "3");
    console.sees("Total 75 %");
    console.fill("Rake in per cent", "5");
    console.fill("At least to be won", "900");
    console.fill("Time zone", "Asia/Seoul");
    console.fill("Ends at", "2999-01-04T09:00");
    console.picture("contest-create");
    console.check("contest-create");
    console.click("Create");
    console.sees("Row 2: the amount must be a whole number");
    console.fill("Amount each, prize 2", "50");
    console.sees("Total 600 KRW");
    console.click("Create");
    console.sees("Contest Friday cup is a draft");
    let made = console.server.client().get("/v1/contests/friday-cup").expect(200);
    assert_eq!((&made["capacity"], &made["staff"]), (&json!(8), &json!(["ada", "ben"])));
    let share = |from: u32, to: u32, share: u32| json!({"from": from, "to": to, "share": share});
    let pool = json!({"prizes": [share(1, 1, 5_000), share(2, 3, 1_250)], "rake": 500, "min": "900"});
    assert_eq!(made["pool"], pool);
    console.sees("2–3: 12.5 %");
    let unattended =
        ["auto_accept", "players_min", "below_min", "join_s", "attempts_max"].map(|name| made[name].clone());
    assert_eq!(unattended, [json!(true), json!(2), json!("cancel"), json!(600), json!(3)]);
    console.sees("with fewer the clock cancels it");
    console.sees("for 10 min 0 s after the start");
    assert_eq!(made["ends_at"], "2999-01-04T00:00:00.000000Z");
    assert_eq!(made["entry_fee"], json!({"currency": "KRW", "amount": "100"}));
    assert_eq!(made["prizes"][1], json!({"from": 2, "to": 3, "currency": "KRW", "amount": "50"}));
    console.sees("Applications are not open yet");
    edit(console);
    console.click("Open for applications");
    console.sees("Each application holds the fee of 100 KRW.");
    console.click("Open now");
    console.sees("Players may apply");
    // What is fixed from then on is not in the form.
    console.click("Edit");
    console.page.wait("help.field('Title') !== undefined && help.field('Entry fee') === undefined");
    console.click("Cancel");
    console.click("Start");
    console.sees("No player is accepted: the contest starts without players.");
    console.check("contest-start-empty");
    console.click("Cancel");
    console.click("Cancel the contest");
    console.sees("It cannot be undone.");
    console.picture("contest-cancel");
    console.check("contest-cancel");
    console.click("Keep the contest");
    console.page.wait("document.querySelector('dialog') === null");
    console.click("Cancel the contest");
    console.sees("It cannot be undone.");
    console.click("Cancel the contest");
    console.sees("The contest is cancelled");
    console.sees("No players took part");
    console.click("Acts in the audit log");
    console.page.wait("location.hash === '#/audit?subject=friday-cup'");
    console.sees_row(&["Contest cancelled", "friday-cup"]);
}

/// The form proposes an id made from the title, in Latin letters. One that was typed stays.
fn titled(console: &mut Console) {
    console.fill("Title", "Copa América");
    console.page.wait("help.field('Id').value === 'copa-america'");
    console.fill("Title", "금요일 컵 3");
    console.page.wait("help.field('Id').value === 'geumyoil-keop-3'");
    console.fill("Id", "own");
    console.fill("Title", "Friday cup");
    console.page.wait("help.field('Id').value === 'own'");
    console.fill("Id", "");
    console.fill("Title", "Friday cup");
    console.page.wait("help.field('Id').value === 'friday-cup'");
}

/// What changes is sent, and nothing else.
fn edit(console: &mut Console) {
    console.click("Edit");
    console.click("Save");
    console.sees("Nothing was changed");
    console.fill("Title", "Saturday cup");
    console.fill("Ends at", "");
    console.click("Remove prize 2");
    console.sees("Total 500 KRW");
    console.fill("Reason", "a day later");
    console.check("contest-edit");
    console.picture("contest-edit");
    console.click("Save");
    console.sees("The contest is changed");
    console.sees("Saturday cup");
    let mut client = console.server.client();
    let changed = client.get("/v1/contests/friday-cup").expect(200);
    assert_eq!((&changed["title"], &changed["ends_at"]), (&json!("Saturday cup"), &Value::Null));
    assert_eq!(changed["prizes"].as_array().map(Vec::len), Some(1));
    assert_eq!((&changed["capacity"], &changed["join_s"]), (&json!(8), &json!(600)));
    let acts = client.get("/v1/audit?action=contest.changed").expect(200);
    assert_eq!(acts["items"][0]["reason"], "a day later");
}

fn apply(console: &mut Console) {
    console.sees_row(&["Colombia"]);
    // What may be done is there before anything is chosen, with a hint.
    console.sees("Choose applications to decide on them.");
    for act in ["Accept", "Reject"] {
        console
            .page
            .wait(&format!("help.all('button').some((one) => one.innerText === '{act}' && one.disabled)"));
    }
    console.click("Rejected");
    console.page.wait("help.all('tbody tr').length === 1");
    console.click("Waiting");
    console.page.wait("help.all('tbody tr').length === 7");
    console.fill("Choose all that are shown", true);
    console.sees("7 chosen");
    console.picture("contest-chosen");
    console.fill("Choose Colombia", false);
    console.click("Accept");
    console.sees("Accept 6 applications?");
    console.sees("Fees stay held until the start.");
    console.fill("Reason", "in time");
    console.click("Accept now");
    console.sees("6 applications accepted");
    let acts = console.server.client().get("/v1/audit?action=contest.accepted").expect(200);
    assert_eq!(acts["items"][0]["reason"], "in time");
    console.page.wait("help.all('tbody tr').length === 1");
    console.fill("Choose Colombia", true);
    console.click("Reject");
    console.sees("Holds of 1 000 KRW are released.");
    console.sees("the player cannot apply again");
    console.check("contest-reject");
    console.picture("contest-reject");
    console.fill("Reason", "late");
    console.click("Reject now");
    console.sees("1 application rejected");
    let acts = console.server.client().get("/v1/audit?action=contest.rejected").expect(200);
    assert_eq!(acts["items"][0]["reason"], "late");
    console.sees("No pending applications");
    console.fill("Apply for a player", "Atlantis");
    console.click("Apply");
    console.sees("Atlantis is no member");
    console.check("contest-no-member");
    console.click("New member");
    console.page.wait("help.field('Player')?.value === 'Atlantis'");
    console.click("Cancel");
    console.page.wait("document.querySelector('dialog') === null");
    console.fill("Apply for a player", "Morocco");
    console.click("Apply");
    console.sees_row(&["Morocco"]);
    let shown = console.server.client().get(&format!("/v1/contests/{OPEN}")).expect(200);
    assert_eq!(
        shown["counts"],
        json!({"pending": 1, "accepted": 14, "rejected": 2, "players": 0, "members": 0})
    );
}

fn start(console: &mut Console) {
    let mut client = console.server.client();
    let list = client.get(&format!("/v1/contests/{OPEN}/applications?state=accepted&limit=100")).expect(200);
    let bad: Vec<Value> = list["items"].as_array().expect("applications").iter().take(2).cloned().collect();
    for application in &bad {
        let hold = application["hold_id"].as_str().expect("it has a fee");
        client.post(&format!("/v1/holds/{hold}/void"), &json!({})).expect(200);
    }
    console.click("Start");
    console.sees("14 players take part.");
    console.sees("Fees of 14 000 KRW are taken, 1 000 KRW from each.");
    console.sees("1 application that waits is removed.");
    console.check("contest-start");
    console.picture("contest-start");
    console.click("Start now");
    console.sees("The contest did not start, and nothing was changed");
    console.sees("Request ");
    for application in &bad {
        console.sees_row(&[application["player"].as_str().expect("a player"), "hold_gone"]);
    }
    console.check("contest-refused");
    console.picture("contest-refused");
    console.click("Accepted");
    for application in &bad {
        console.fill(&format!("Choose {}", application["player"].as_str().expect("a player")), true);
    }
    console.click("Reject");
    console.sees("2 accepted players lose their places.");
    console.fill("Reason", "late");
    console.click("Reject now");
    console.sees("2 applications rejected");
    console.click("Start");
    console.fill("Reason", "it is time");
    console.click("Start now");
    console.sees("12 players are enrolled");
    let acts = client.get("/v1/audit?action=contest.started").expect(200);
    assert_eq!(acts["items"][0]["reason"], "it is time");
    console.sees("No score yet");
    console.check("contest-started");
    console.picture("contest-started");
}

fn play(console: &mut Console) {
    let mut client = console.server.client();
    let members = client.get(&format!("/v1/contests/{OPEN}/players?limit=100")).expect(200);
    let players: Vec<String> = members["items"]
        .as_array()
        .expect("members")
        .iter()
        .map(|one| one["player"].as_str().expect("a player").to_owned())
        .collect();
    for (at, player) in players.iter().enumerate() {
        let row = json!({"player": player, "score": 100 - at});
        client.post(&format!("/v1/leaderboards/contest:{OPEN}/scores"), &row).expect(200);
    }
    console.sees_row(&["1", &players[0], "100"]);
    console.sees_row(&["2", &players[1], "99"]);
    console.click("Compute again");
    console.sees_row(&["1", &players[0], "100 000 KRW"]);
    // The first player's button is the first of its kind.
    console.fill("Reason", "a script");
    console.page.wait("help.click('Ban')");
    console.sees(&format!("{} is out of ranks and prizes", players[0]));
    console.sees_row(&["1", &players[1], "99"]);
    // The prizes follow a ban.
    console.sees_row(&["1", &players[1], "100 000 KRW"]);
    let acts = client.get("/v1/audit?action=player.banned").expect(200);
    assert_eq!(acts["items"][0]["reason"], "a script");
    console.click("Undo");
    // The list of players has it again, with the first of the buttons.
    console.sees(&format!("{} is back", players[0]));
    console.sees_row(&["1", &players[0], "100"]);
    console.page.wait("help.click('Ban')");
    console.sees_row(&[&players[0], "banned"]);
    console.sees_row(&["1", &players[1], "99"]);
    console.fill("Reason", "it was another");
    console.click("Restore");
    console.page.wait(&format!("help.row({}, 'banned') === null", json!(players[0])));
    console.sees_row(&["1", &players[0], "100"]);
    let acts = client.get("/v1/audit?action=player.restored").expect(200);
    assert_eq!(acts["items"][0]["reason"], "it was another");
    console.check("contest-playing");
    console.picture("contest-playing");
}

fn settle(console: &mut Console) {
    console.click("Finish");
    console.sees("12 players play now.");
    console.click("Finish now");
    console.sees("The contest is over");
    // The first member, which was the first of the ranking.
    console.click("Correct");
    console.sees("It is 100 now, on rank 1.");
    console.fill("Score", "1");
    console.fill("Reason", "counted twice");
    console.check("contest-correct");
    console.picture("contest-correct");
    console.click("Correct");
    console.sees("is corrected");
    console.sees_row(&["1", "99"]);
    console.click("Settle and pay prizes");
    // The winners are named before they are paid, each with a link to its page.
    console.sees("4 players get 170 000 KRW in all:");
    console
        .page
        .wait("document.querySelectorAll('dialog tbody tr a.name[href^=\"#/players/\"]').length === 4");
    let winners = |place: &str| {
        let rows = format!("[...document.querySelectorAll('{place} tbody tr')].slice(0, 4)");
        format!("{rows}.map((row) => row.querySelector('.name').innerText).join()")
    };
    let named = console.page.eval(&winners("dialog"));
    console.check("contest-settle");
    console.picture("contest-settle");
    console.click("Pay the prizes");
    console.sees("The prizes are paid");
    console.sees("170 000 KRW to 4 players");
    console.sees_row(&["1", "100 000 KRW", "paid"]);
    console.page.wait(&format!("{} === {named}", winners("main")));
    console.check("contest-paid");
    console.picture("contest-paid");
    let prizes = console.server.client().get(&format!("/v1/contests/{OPEN}/prizes")).expect(200);
    let paid = prizes["items"]
        .as_array()
        .expect("prizes")
        .iter()
        .filter(|prize| prize["paid"] == json!(true))
        .count();
    assert_eq!(paid, 4);
    // Everything is paid.
    console.page.wait("help.all('button').every((one) => one.innerText !== 'Pay')");
}

/// A contest in which no player has a score pays nothing, and says so before and after.
#[test]
fn a_contest_without_a_winner_is_settled() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann", "player": "ann"})).expect(201);
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 500}]);
    client.post("/v1/contests", &json!({"id": "cup", "title": "Cup", "prizes": prizes})).expect(201);
    for (path, body) in [
        ("open", json!({})),
        ("applications", json!({"player": "ann"})),
        ("applications/accept", json!({"players": ["ann"]})),
        ("start", json!({})),
        ("finish", json!({})),
    ] {
        let status = client.post(&format!("/v1/contests/cup/{path}"), &body).status;
        assert!(status < 300, "{path}: {status}");
    }
    console.show("#/contests/cup");
    console.sees("The contest ended without a player in the ranks.");
    console.click("Settle and pay prizes");
    console.sees("No player gets a prize.");
    console.click("Settle");
    console.sees("Settled: no player won a prize, so nothing was paid");
    console.sees("No player won a prize Nothing was paid.");
    console.check("contest-without-winner");
    console.end();
}

#[test]
fn a_series_is_made_changed_and_ended() {
    let mut console = Console::empty();
    console.show("#/contests");
    console.click("Series");
    console.sees("No series yet");
    console.click("New series");
    console.fill("Title", "Daily cup");
    console.fill("Id", "daily");
    console.fill("Time zone", "Asia/Seoul");
    console.fill("Made ahead", "2");
    console.fill("Opens at", "00:30");
    console.fill("Starts at", "18:00");
    console.fill("Ends at", "21:00");
    console.click("Add a prize");
    console.click("Create");
    console.sees("Row 1: the amount must be a whole number from 1.");
    console.fill("Amount each, prize 1", "500");
    console.check("series-create");
    console.picture("series-create");
    console.click("Create");
    console.sees("every day at 18:00 (Asia/Seoul)");
    console.page.wait("help.all('tbody tr').length >= 2");
    console.sees_row(&["Daily cup", "daily-", "draft"]);
    console.check("series");
    console.picture("series");
    let mut client = console.server.client();
    let made = client.get("/v1/contest-series/daily").expect(200);
    let schedule = ["open", "start", "end", "time_zone"].map(|name| made[name].as_str().unwrap_or_default());
    assert_eq!(schedule, ["30 0 * * *", "0 18 * * *", "0 21 * * *", "Asia/Seoul"]);

    // A contest leads back to its series.
    console.click("Daily cup");
    console.click("series daily");
    console.sees("End the series");
    console.click("Edit");
    console.fill("Takes place", "weekly");
    console.fill("Starts on", "6");
    console.fill("Amount each, prize 1", "700");
    console.fill("Reason", "on Saturdays");
    console.check("series-edit");
    console.picture("series-edit");
    console.click("Save");
    console.sees("The series is changed");
    console.sees("every Saturday at 18:00 (Asia/Seoul)");
    console.sees("1: 700 KRW");
    let changed = client.get("/v1/contest-series/daily").expect(200);
    assert_eq!((&changed["start"], &changed["ahead"]), (&json!("0 18 * * 6"), &json!(2)));
    let acts = client.get("/v1/audit?action=series.changed").expect(200);
    assert_eq!(acts["items"][0]["reason"], "on Saturdays");

    console.show("#/series");
    console.sees_row(&["Daily cup", "every Saturday", "2"]);
    console.click("Daily cup");
    console.click("End the series");
    console.sees("No contest is made any more.");
    console.check("series-end");
    console.picture("series-end");
    console.fill("Reason", "the season is over");
    console.click("End it");
    console.sees("Series Daily cup has ended");
    console.sees("No series yet");
    let acts = client.get("/v1/audit?action=series.deleted").expect(200);
    assert_eq!(acts["items"][0]["reason"], "the season is over");
    // What it made stays.
    console.show("#/contests");
    console.sees_row(&["Daily cup", "series daily"]);
    console.end();
}
