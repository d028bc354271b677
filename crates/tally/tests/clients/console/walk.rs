//! Every page, in both themes and on a phone: pictures for inspection, and no errors.

use super::{Console, TALLY};
use serde_json::json;
use tally_testkit::{RedisKind, RespClient, ScratchRedis, TestTally};

/// A page, the name of its picture, and its content when it is complete.
const PAGES: [(&str, &str, &str); 14] = [
    (
        "#/",
        "overview",
        "['7 applications wait', 'Finished: settle it', 'Moved, KRW'].every((one) => help.text().includes(one)) && help.row('Contest made', 'african-cup-2025') !== null",
    ),
    ("#/server", "server", "help.row('goals') !== null && help.row('GET /v1/') !== null"),
    ("#/audit", "audit", "help.row('Players rejected', '1 player: Costa Rica') !== null"),
    ("#/boards", "boards", "help.row('goals-by-year') !== null"),
    (
        "#/boards/goals?player=Harry%20Kane",
        "board",
        "help.text().includes('Percentile') && help.row('1', 'Cristiano Ronaldo', '124') !== null",
    ),
    ("#/boards/goals-by-year", "board-periods", "help.row('Year of ', 'closed') !== null "),
    ("#/contests", "contests", "help.row('Euro 2024', 'finished') !== null"),
    ("#/contests/copa-america-2024", "contest-open", "help.row('Colombia') !== null"),
    (
        "#/contests/world-cup-2026",
        "contest-running",
        "help.text().includes('Ranking') && help.all('tbody tr').length > 5",
    ),
    ("#/contests/world-cup-2022", "contest-settled", "help.row('France', '100 000 KRW', 'paid') !== null"),
    ("#/wallets", "wallets", "help.row('BANK_ASSET') !== null"),
    ("", "wallet", "help.text().includes('Available') && help.row('prize') !== null"),
    (
        "#/players/France",
        "player",
        "help.text().includes('Member and wallet') && help.row('points') !== null",
    ),
    ("#/settings", "settings", "help.row('http.listen') !== null"),
];

#[test]
fn every_page_in_both_themes_and_on_a_phone() {
    let mut console = Console::demo();
    let found = console.server.client().get("/v1/members?player=France").expect(200);
    let wallet = format!("#/wallets/{}", found["items"][0]["id"].as_str().expect("France is a member"));
    for (width, height, phone) in [(1280, 900, false), (360, 780, true)] {
        console.page.resize(width, height, phone);
        for (hash, name, whole) in PAGES {
            let hash = if hash.is_empty() { wallet.as_str() } else { hash };
            console.show(hash);
            console.page.wait(whole);
            for theme in ["light", "dark"] {
                console.page.prefer(theme);
                console.page.wait(&format!("matchMedia('(prefers-color-scheme: {theme})').matches"));
                let kind = if phone { "phone" } else { "desk" };
                console.check(&format!("{name} {kind} {theme}"));
                let tall =
                    console.page.eval("document.documentElement.scrollHeight").as_u64().unwrap_or_default();
                let tall = u32::try_from(tall.clamp(u64::from(height), 3000)).expect("it was cut");
                console.page.resize(width, tall, phone);
                console.picture(&format!("{name}-{kind}-{theme}"));
                console.page.resize(width, height, phone);
            }
        }
    }
    console.end();
}

#[test]
fn what_is_empty_says_what_to_do() {
    let mut console = Console::empty();
    for (hash, name, text) in [
        ("#/", "empty-overview", "Nothing was changed yet"),
        ("#/server", "empty-server", "No leaderboard yet"),
        ("#/audit", "empty-audit", "No act"),
        ("#/boards", "empty-boards", "Make one, then send scores"),
        ("#/contests", "empty-contests", "No contest yet"),
        ("#/series", "empty-series", "No series yet"),
        ("#/wallets", "empty-wallets", "trial balance"),
        ("#/owed", "empty-owed", "Nothing is owed"),
        ("#/settings", "empty-settings", "Protected mode"),
    ] {
        console.show(hash);
        console.page.wait(&format!("help.text().toLowerCase().includes({})", json!(text.to_lowercase())));
        console.check(name);
        console.picture(name);
    }
    console.show("#/nowhere");
    console.sees("There is no such page");

    // The keyboard: the first stop leads past the navigation, a page that was opened has the focus on its name.
    console.show("#/boards");
    console.page.wait("document.activeElement.tagName === 'H1'");
    console.page.go(&format!("http://{}/", console.server.address()));
    console.sees("Overview");
    console.page.press("Tab");
    console.page.wait("document.activeElement.className === 'skip' && document.activeElement.getBoundingClientRect().left >= 0");

    // The switch of the theme holds after a reload.
    console.click("Theme of the system. Change to: Light theme");
    console.click("Light theme. Change to: Dark theme");
    console.page.wait("document.documentElement.dataset.theme === 'dark'");
    console.page.go(&format!("http://{}/#/boards", console.server.address()));
    console.page.wait("getComputedStyle(document.body).backgroundColor === 'rgb(14, 15, 19)'");
    console.picture("empty-boards-chosen-dark");
    console.end();
}

#[test]
fn dialogs_fit_on_a_phone() {
    let mut console = Console::empty();
    console.server.client().put("/v1/leaderboards/arcade", &json!({})).expect(201);
    console.page.resize(360, 780, true);
    for (hash, open, name) in [
        ("#/boards/arcade", "Import", "dialog-import"),
        ("#/boards", "New leaderboard", "dialog-board"),
        ("#/contests", "New contest", "dialog-contest"),
        ("#/series", "New series", "dialog-series"),
        ("#/settings", "New key", "dialog-key"),
        ("#/wallets", "New member", "dialog-member"),
    ] {
        console.show(hash);
        console.click(open);
        for theme in ["dark", "light"] {
            console.page.prefer(theme);
            console.page.wait(&format!("matchMedia('(prefers-color-scheme: {theme})').matches"));
            console.check(name);
            console.picture(&format!("{name}-phone-{theme}"));
        }
        // A phone has no Escape.
        console.click("Cancel");
        console.page.wait("document.querySelector('dialog') === null");
        console.click(open);
        // The keyboard stays inside, and Escape goes back to where it was opened.
        console.page.press("Tab");
        console.page.wait("document.activeElement.closest('dialog') !== null");
        console.page.press("Escape");
        console.page.wait("document.querySelector('dialog') === null");
        console.page.wait(&format!("document.activeElement.textContent === {}", json!(open)));
    }
    // The reason of a new member is above the buttons at once.
    console.click("New member");
    console.page.wait(
        "help.field('Reason')?.getBoundingClientRect().bottom < document.querySelector('dialog .ends').getBoundingClientRect().top",
    );
    console.end();
}

#[test]
fn a_server_that_was_away_is_there_again() {
    let mut console = Console::empty();
    console.server.client().put("/v1/leaderboards/arcade", &json!({})).expect(201);
    console.server.stay();
    console.show("#/boards");
    console.sees_row(&["arcade"]);
    console.server.terminate();
    console.sees("The server cannot be reached. It is asked again.");
    // Once, above the page.
    console.page.wait("help.text().split('The server cannot be reached').length === 2");
    console.picture("server-away");
    console.server.restart();
    console.page.wait("document.getElementById('banner').textContent === ''");
    console.sees_row(&["arcade"]);
    console.page.allow("net::ERR_");
    console.page.allow("status of 503");
    console.end();
}

/// What waits for a person does not wait for the figures of the server, which need two readings.
#[test]
fn the_overview_shows_each_answer_as_it_comes() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    client.post("/v1/contests", &json!({"id": "spring", "title": "Friday cup"})).expect(201);
    client.post("/v1/contests/spring/open", &json!({})).expect(200);
    client.post("/v1/contests/spring/applications", &json!({"player": "ann"})).expect(201);
    let source = "{ const { fetch } = window; \
        window.fetch = (path, options) => (path === '/metrics' ? new Promise(() => {}) : fetch(path, options)); }";
    console.page.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": source}));
    console.page.go(&format!("http://{}/", console.server.address()));
    console.sees("Friday cup");
    console.sees("One application waits");
    console.sees_row(&["Contest made", "spring"]);
    console.end();
}

#[test]
fn the_overview_says_what_the_server_stands_on() {
    let redis = ScratchRedis::start(
        RedisKind::Redis7,
        &["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"],
    );
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_APPLICATIONS_URL", &format!("redis://{}", redis.address()));
    server.restart();
    let mut console = Console::on(server);
    console.sees(
        "A setting of the database, of Redis or of the server's machine may lose data or stop the server",
    );
    console.sees("maxmemory-policy = allkeys-lru, maxmemory = 104857600: it evicts applications when it is full; set noeviction");
    console.sees("A setting of the database, of Redis or of the server's machine needs a look");
    // The gravest first.
    console.page.wait("help.text().indexOf('may lose data or stop') < help.text().indexOf('needs a look')");
    for theme in ["dark", "light"] {
        console.page.prefer(theme);
        console.check("findings");
        console.picture(&format!("findings-{theme}"));
    }
    console.end();
}

#[test]
fn the_page_of_the_server_moves_and_does_not_grow() {
    let mut console = Console::empty();
    let mut client = console.server.client();
    client.put("/v1/leaderboards/arcade", &json!({"update": "sum"})).expect(201);
    console.show("#/server");
    let count = "document.querySelectorAll('.chart .line').length";
    console.page.wait(&format!("{count} > 3"));
    let mut redis = RespClient::connect(console.server.resp());
    for round in 0..40 {
        redis.call(&["ZSCORE", "arcade", "p1"]);
        let row = |at: usize| json!({"board": "arcade", "player": format!("p{at}"), "score": round});
        let rows: Vec<_> = (0..100).map(row).collect();
        client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
    let rate = "parseFloat([...document.querySelectorAll('.chart')].find((one) => one.textContent.startsWith('Score submits')).querySelector('b').textContent)";
    console.page.wait(&format!("{rate} > 0"));
    // The RESP listener beside it: its charts have the requests there.
    for chart in ["Redis commands", "Redis latency"] {
        console.sees(chart);
    }
    console.page.wait(
        "import('/console/samples.js').then(({ points }) => points.some(({ resp }) => resp?.rate > 0 && resp.p99 > 0))",
    );
    // A slow request has the share of its longest stage.
    console.sees("Slowest requests");
    console.sees_row(&["/v1/", "%"]);
    console.picture("server-moving");
    // More readings than are kept: the history is bounded, and so is the page.
    let read = "import('/console/samples.js').then(async (samples) => { \
        for (let at = 0; at < READINGS; at += 1) await samples.read(); \
        return samples.points.length; })";
    let elements = "document.querySelectorAll('*').length";
    let kept = console.page.eval(&read.replace("READINGS", "160"));
    console.page.wait(&format!(
        "document.querySelectorAll('.chart .line')[0].getAttribute('d').length > 200 && {rate} >= 0"
    ));
    let before = console.page.eval(elements).as_u64().expect("a number");
    assert_eq!((kept, console.page.eval(&read.replace("READINGS", "60"))), (json!(150), json!(150)));
    console.sees_row(&["arcade", "100"]);
    let after = console.page.eval(elements).as_u64().expect("a number");
    assert!(after <= before + 60, "{before} elements became {after}");
    console.end();
}
