//! Every page and a dialog in both languages: axe-core finds no fault in either theme, on a desk and a phone.
//!
//! A language has one theme on a phone and the other one on a desk, so that each page is looked at in every theme at every width, and each
//! text at every width. axe-core knows what a reader of screens needs better than the checks of `help.js`. Not here: what the pages say.

use super::Console;
use crate::libraries::fetched;
use serde_json::json;

/// A page, and an element that it has in any language once it has its content.
const PAGES: [(&str, &str); 18] = [
    ("#/", ".needs li, .notice.ok"),
    ("#/boards", "tbody tr"),
    ("#/boards/goals?player=Harry%20Kane", "tbody tr"),
    ("#/boards/goals-by-year", "tbody tr"),
    ("#/contests", "tbody tr"),
    ("#/contests/copa-america-2024", "tbody tr"),
    ("#/contests/world-cup-2026", "tbody tr"),
    ("#/contests/world-cup-2022", "tbody tr"),
    ("#/series", "tbody tr"),
    ("#/series/yearly", "tbody tr"),
    ("#/players", "input"),
    ("#/players/France", "tbody tr"),
    ("#/wallets", "tbody tr"),
    ("#/owed", "main .card"),
    ("#/server", "tbody tr"),
    ("#/audit", "tbody tr"),
    ("#/settings", "tbody tr"),
    ("#/webhooks", "tbody tr"),
];

/// Each language with its themes, on a phone and on a desk.
const LANGUAGES: [(&str, [(u32, &str); 2]); 2] =
    [("en", [(360, "dark"), (1280, "light")]), ("ko", [(360, "light"), (1280, "dark")])];

/// The faults that axe-core finds, each with its first element.
const FAULTS: &str =
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))";

#[test]
fn axe_finds_no_fault_in_any_language_or_theme() {
    let axe =
        std::fs::read_to_string(fetched("tools-node/node_modules/axe-core/axe.min.js")).expect("it is text");
    let mut console = Console::demo();
    let found = console.server.client().get("/v1/members?player=France").expect(200);
    let wallet = format!("#/wallets/{}", found["items"][0]["id"].as_str().expect("France is a member"));
    let hook = format!("#/webhooks/{}", store(&console));
    let origin = format!("http://{}/", console.server.address());
    for (language, states) in LANGUAGES {
        console.page.eval(&format!("localStorage.setItem('tally.language', '{language}'); true"));
        console.page.go(&origin);
        console.page.wait(&format!("document.documentElement.lang === '{language}'"));
        console.page.eval(&format!("{axe}\n;true"));
        for (hash, whole) in
            PAGES.into_iter().chain([(wallet.as_str(), "tbody tr"), (hook.as_str(), ".facts")])
        {
            console.show(hash);
            console.page.wait(&format!("help.all({}).length > 0", json!(whole)));
            look(&mut console, &format!("{hash} {language}"), states);
        }
        // The dialog of a settlement has a table, links and a form.
        console.show("#/contests/euro-2024");
        console.page.wait("document.querySelector('.head button.main') !== null");
        console.page.eval("document.querySelector('.head button.main').click(); true");
        console.page.wait("help.all('dialog tbody tr').length > 0");
        look(&mut console, &format!("dialog {language}"), states);
    }
    console.end();
}

/// Makes a series with its contest, and a webhook without deliveries, whose id it returns.
fn store(console: &Console) -> String {
    let mut client = console.server.client();
    let series = json!({"id": "yearly", "open": "0 0 1 1 *", "start": "0 1 1 1 *", "end": "0 2 1 1 *", "template": {"title": "Cup of the year"}});
    client.post("/v1/contest-series", &series).expect(201);
    let hook = json!({"url": "https://game.example/hook", "events": ["member_closed"]});
    let made = client.post("/v1/webhooks", &hook).expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

/// Looks at what is shown, at each width in a theme.
fn look(console: &mut Console, what: &str, states: [(u32, &str); 2]) {
    for (width, theme) in states {
        console.page.resize(width, 900, width < 1000);
        console.page.prefer(theme);
        console.page.wait(&format!("matchMedia('(prefers-color-scheme: {theme})').matches"));
        let what = format!("{what} {theme} at {width}");
        assert_eq!(console.page.eval(FAULTS), json!([]), "{what}");
        console.check(&what);
    }
}

#[test]
fn the_language_is_changed_by_hand_and_kept() {
    let mut console = Console::empty();
    console.click("한국어");
    console.sees("개요");
    console.page.wait("document.documentElement.lang === 'ko' && document.title === '개요 · tally'");
    console.show("#/settings");
    console.sees("보호 모드");
    console.click("키 발급");
    console.sees("첫 번째 키입니다");
    console.click("취소");
    console.page.wait("document.querySelector('dialog') === null");
    console.click("English");
    console.sees("Protected mode");
    console.page.wait("document.documentElement.lang === 'en'");
    console.end();
}
