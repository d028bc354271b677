//! Every page in both languages: axe-core finds no fault in either theme, on a desk and a phone.
//!
//! axe-core knows what a reader of screens needs better than the checks of `help.js`. Not here: what the pages say.

use super::Console;
use crate::libraries::fetched;
use serde_json::json;

/// A page, and an element that it has in any language once it has its content.
const PAGES: [(&str, &str); 17] = [
    ("#/", ".needs li, .notice.ok"),
    ("#/boards", "tbody tr"),
    ("#/boards/goals?player=Harry%20Kane", "tbody tr"),
    ("#/boards/goals-by-year", "tbody tr"),
    ("#/contests", "tbody tr"),
    ("#/contests/copa-america-2024", "tbody tr"),
    ("#/contests/world-cup-2026", "tbody tr"),
    ("#/contests/world-cup-2022", "tbody tr"),
    ("#/series", ".empty"),
    ("#/players", "input"),
    ("#/players/France", "tbody tr"),
    ("#/wallets", "tbody tr"),
    ("#/owed", "main .card"),
    ("#/server", "tbody tr"),
    ("#/audit", "tbody tr"),
    ("#/settings", "tbody tr"),
    ("#/webhooks", ".empty"),
];

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
    let origin = format!("http://{}/", console.server.address());
    for language in ["en", "ko"] {
        console.page.eval(&format!("localStorage.setItem('tally.language', '{language}'); true"));
        console.page.go(&origin);
        console.page.wait(&format!("document.documentElement.lang === '{language}'"));
        console.page.eval(&format!("{axe}\n;true"));
        for (hash, whole) in PAGES.into_iter().chain([(wallet.as_str(), "tbody tr")]) {
            console.show(hash);
            console.page.wait(&format!("help.all({}).length > 0", json!(whole)));
            for (width, theme) in [(360, "dark"), (1280, "dark"), (1280, "light")] {
                console.page.resize(width, 900, width < 1000);
                console.page.prefer(theme);
                console.page.wait(&format!("matchMedia('(prefers-color-scheme: {theme})').matches"));
                let what = format!("{hash} {language} {theme} at {width}");
                assert_eq!(console.page.eval(FAULTS), json!([]), "{what}");
                console.check(&what);
            }
        }
    }
    console.end();
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
