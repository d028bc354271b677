//! What a server has beside the console: the guide with its search, and the page of the API with a form for each operation.

use super::{HELP, TALLY};
use serde_json::json;
use tally_testkit::{Page, TestTally};

/// A browser on a page of a server that needs no key.
fn open(server: &TestTally, path: &str) -> Page {
    let origin = format!("http://{}", server.address());
    let mut page = Page::open(&origin);
    page.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": HELP}));
    page.resize(1280, 900, false);
    page.prefer("light");
    page.go(&format!("{origin}{path}"));
    page
}

#[test]
fn the_guide_is_searched_in_the_browser() {
    let mut server = TestTally::start(TALLY);
    let mut page = open(&server, "/docs/guide/");
    page.wait("document.querySelector('h1').textContent === 'Documentation'");
    page.wait("help.fill('Search the guide', 'idempotency_key_reu')");
    let hit =
        "help.all('#site-results a').find((one) => one.getAttribute('href') === 'http/index.html#errors')";
    page.wait(&format!("{hit}?.querySelector('mark')?.textContent === 'idempotency_key_reu'"));
    page.wait("help.fill('Search the guide', 'zzyzx')");
    page.wait("help.text().includes('0 places.')");

    // A page in a folder finds the files and the other pages, too.
    let origin = format!("http://{}", server.address());
    page.go(&format!("{origin}/docs/guide/http/index.html#errors"));
    page.wait("document.querySelector('#site-contents [aria-current=page]')?.textContent === 'HTTP'");
    page.wait("help.fill('Search the guide', 'weekly race')");
    page.wait("help.all('#site-results a').some((one) => one.pathname === '/docs/guide/tutorial.html')");

    // The choice of the theme is that of the console.
    page.wait("help.click('Theme: system')");
    page.wait("help.click('Theme: light')");
    page.wait("document.documentElement.dataset.theme === 'dark'");
    page.go(&format!("{origin}/docs/guide/faq.html"));
    page.wait(
        "localStorage.getItem('tally.theme') === 'dark' && document.documentElement.dataset.theme === 'dark'",
    );
    assert_eq!(page.complaints(), Vec::<String>::new());
    server.terminate();
}

/// Opens an operation of the page of the API with its form, and gives a field its value.
fn form(page: &mut Page, operation: &str, field: &str, value: &str) {
    page.wait(&format!("document.getElementById('{operation}') !== null"));
    page.eval(&format!("document.getElementById('{operation}').open = true; true"));
    page.eval(&format!("document.querySelector('#{operation} .try').open = true; true"));
    let input = format!("document.getElementById('try-{operation}-{field}')");
    page.wait(&format!("{input} !== null"));
    page.eval(&format!("{input}.value = {}; true", json!(value)));
}

#[test]
fn the_page_of_the_api_sends_requests() {
    let mut server = TestTally::start(TALLY);
    let mut page = open(&server, "/docs");
    form(&mut page, "putLeaderboard", "board", "arcade & more");
    page.wait("document.getElementById('try-putLeaderboard-body').value.includes('\"update\"')");
    form(&mut page, "putLeaderboard", "body", r#"{"update": "latest"}"#);
    // What changes something asks before it is sent.
    page.eval("document.querySelector('#putLeaderboard form [type=submit]').click(); true");
    let asks = |operation: &str, words: &str| {
        let question = format!("document.querySelector('#{operation} .question')");
        format!("!{question}.hidden && {question}.textContent.startsWith({})", json!(words))
    };
    page.wait(&asks("putLeaderboard", "This may change"));
    server.client().get("/v1/leaderboards/arcade%20%26%20more").refused(404, "leaderboard_not_found");
    page.eval("document.querySelector('#putLeaderboard .question button').click(); true");
    page.wait("document.querySelector('#putLeaderboard .outcome .status')?.textContent === '201'");
    for text in ["x-request-id: ", "Idempotency-Key: docs-", "\"update\": \"latest\""] {
        let shown = "document.querySelector('#putLeaderboard .outcome').textContent";
        page.wait(&format!("{shown}.includes({})", json!(text)));
    }
    let made = server.client().get("/v1/leaderboards/arcade%20%26%20more").expect(200);
    assert_eq!(made["update"], "latest");

    form(&mut page, "getLeaderboard", "board", "arcade & more");
    page.eval("document.querySelector('#getLeaderboard form [type=submit]').click(); true");
    page.wait("document.querySelector('#getLeaderboard .outcome .status')?.textContent === '200'");
    form(&mut page, "deleteLeaderboard", "board", "arcade & more");
    page.eval("document.querySelector('#deleteLeaderboard form [type=submit]').click(); true");
    page.wait(&asks("deleteLeaderboard", "This deletes"));
    page.eval("document.querySelector('#deleteLeaderboard .question button').click(); true");
    page.wait("document.querySelector('#deleteLeaderboard .outcome .status')?.textContent === '204'");
    server.client().get("/v1/leaderboards/arcade%20%26%20more").refused(404, "leaderboard_not_found");

    // The key is that of the console in this tab.
    page.wait("help.fill('API key or token', 'tally_a_b')");
    assert_eq!(page.eval("sessionStorage.getItem('tally.key')"), json!("tally_a_b"));
    assert_eq!(page.complaints(), Vec::<String>::new());
    server.terminate();
}

#[test]
fn both_fit_on_a_phone() {
    let mut server = TestTally::start(TALLY);
    let mut page = open(&server, "/docs");
    page.resize(360, 780, true);
    let origin = format!("http://{}", server.address());
    for path in [
        "/docs",
        "/docs/guide/",
        "/docs/guide/tutorial.html",
        "/docs/guide/http/wallets.html",
        "/docs/guide/tally.html",
    ] {
        page.go(&format!("{origin}{path}"));
        page.wait("document.querySelector('h1') !== null");
        page.wait("document.documentElement.scrollWidth <= document.documentElement.clientWidth");
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
    server.terminate();
}
