//! Names that resemble markup are text, wherever they are shown.

use super::Console;
use serde_json::{Value, json};

const NAME: &str = "<img src=x onerror=alert(1)>";

#[test]
fn a_stored_name_is_never_markup() {
    let mut console = Console::empty();
    let (contest, running, member) = store(&console);
    let board = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    for hash in [
        "#/".to_owned(),
        "#/boards".to_owned(),
        format!("#/boards/{board}"),
        format!("#/boards/{board}?player={board}"),
        "#/contests".to_owned(),
        format!("#/contests/{contest}"),
        format!("#/contests/{running}"),
        format!("#/wallets/{member}"),
        "#/server".to_owned(),
        "#/audit".to_owned(),
        "#/settings".to_owned(),
    ] {
        if hash == "#/settings" {
            // The first key ends protected mode: this tab needs it.
            let key = json!({"role": "admin", "name": NAME});
            let key = console.server.client().post("/v1/keys", &key).expect(201)["key"].clone();
            console.page.eval(&format!("sessionStorage.setItem('tally.key', {key}); true"));
        }
        console.show(&hash);
        console.sees(NAME);
        console.page.wait("document.querySelector('[onerror], img[src=x], script:not([src])') === null");
        console.check(&hash);
    }
    console.picture("markup-settings");
    // In dialogs and messages, too.
    console.show(&format!("#/boards/{board}"));
    console.click("Delete");
    console.page.wait("document.querySelector('dialog[open]') !== null");
    console.sees(NAME);
    console.picture("markup-delete");
    console.page.press("Escape");
    console.page.wait("document.querySelector('dialog[open]') === null");
    let picture = console.page.eval("document.querySelectorAll('img').length");
    assert_eq!(picture, json!(1), "the mark of the console is the only picture");
    console.end();
}

/// Everything that may have a name has this one. Returns two contests, one that takes applications and one that runs, and a
/// member.
fn store(console: &Console) -> (&'static str, &'static str, String) {
    let mut client = console.server.client();
    let member = json!({"login_id": NAME, "name": NAME, "player": NAME});
    let member = client.post("/v1/members", &member).expect(201)["id"].as_str().expect("an id").to_owned();
    let deposit = json!({"to": member, "amount": 100, "reference": NAME});
    client.post("/v1/deposits", &deposit).expect(201);
    let board = "/v1/leaderboards/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    let weekly = json!({"periods": [{"name": "weekly", "schedule": "0 0 * * 1"}]});
    client.put(board, &weekly).expect(201);
    client
        .put(
            "/v1/players/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
            &json!({"name": format!("profile {NAME}")}),
        )
        .expect(201);
    let score = |player: &str| json!({"player": player, "score": 1});
    client.post(&format!("{board}/scores"), &score(NAME)).expect(200);
    for id in ["open", "running"] {
        let contest: Value = json!({"id": id, "title": NAME, "staff": [format!("staff {NAME}")]});
        client.post("/v1/contests", &contest).expect(201);
        client.post(&format!("/v1/contests/{id}/open"), &json!({})).expect(200);
        client.post(&format!("/v1/contests/{id}/applications"), &json!({"player": NAME})).expect(201);
    }
    client.post("/v1/contests/running/applications/accept", &json!({"players": [NAME]})).expect(200);
    client.post("/v1/contests/running/start", &json!({})).expect(200);
    client.post("/v1/leaderboards/contest:running/scores", &score(NAME)).expect(200);
    ("open", "running", member)
}
