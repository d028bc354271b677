//! Settings with their sources, and keys: the first one ends protected mode, and the console requires one from then on.

use super::{Console, TALLY};
use serde_json::json;
use tally_rules::audit::AuditAction;
use tally_rules::scope::Scope;
use tally_testkit::TestTally;

/// The requests for the audit log at the next chances to ask: the tab is looked at again, and something was changed.
const ASKED_AGAIN: &str = "(async () => {
    const { fetch } = window;
    let asked = 0;
    window.fetch = (path, options) => {
        if (path.startsWith('/v1/audit')) asked += 1;
        return fetch(path, options);
    };
    document.dispatchEvent(new Event('visibilitychange'));
    window.dispatchEvent(new CustomEvent('tally:changed'));
    await new Promise((done) => setTimeout(done));
    window.fetch = fetch;
    return asked;
})()";

#[test]
fn keys_are_made_asked_for_and_revoked() {
    let mut console = Console::on(TestTally::start_set(TALLY, &[("TALLY_AUTH_TOKEN_TTL", "2h")]));
    settings(&mut console);
    let key = first_key(&mut console);
    roles(&mut console, &key);
    console.page.allow("status of 401");
    console.page.allow("status of 403");
    console.page.allow("status of 409");
    console.end();
}

fn settings(console: &mut Console) {
    console.show("#/settings");
    console.sees_row(&["auth.token_ttl", "2h", "environment"]);
    console.fill("Filter settings", "http.listen");
    console.page.wait("help.all('tbody tr').length < 4 && help.row('http.listen') !== null");
    console.fill("Filter settings", "");
    console.fill("Only what was set", true);
    console.page.wait("help.row('auth.token_ttl') !== null && help.row('wallet.currency') === null");
    console.check("settings-filtered");
}

fn acts(console: &mut Console, admin: &str) {
    let mut client = console.server.client().with_key(admin);
    client.put("/v1/leaderboards/finals", &json!({"reason": "season 2"})).expect(201);
    console.show("#/settings");
    console.click("Audit log");
    console.sees_row(&["API key made", "admin, desk", "this machine, without a key"]);
    // The key of the actor has its name.
    console.sees_row(&["Leaderboard made", "“season 2”", "finals", "desk"]);
    console.sees_row(&["API key made", "shop", "“the shop opens”"]);
    console.sees_row(&["API key revoked", "“left us”"]);
    console.check("audit");
    console.picture("audit-filters");
    // A phone has the actor below the act.
    console.page.resize(360, 780, true);
    console.sees_row(&["API key made", "admin, desk", "this machine, without a key"]);
    console.check("audit on a phone");
    console.page.resize(1280, 900, false);
    let offered = "[...document.querySelectorAll('[name=action] option')].map(({ value }) => value)";
    for action in AuditAction::ALL {
        let is_offered = console.page.eval(&format!("{offered}.includes('{action}')"));
        assert_eq!(is_offered, json!(true), "{action}");
    }
    console.fill("Act", "key.revoked");
    console.click("Show");
    console.page.wait("help.row('API key revoked') !== null && help.row('API key made') === null");
    // The filters are in the address.
    console.page.wait("location.hash === '#/audit?action=key.revoked'");
    console.fill("Act", "");
    console.fill("On", "fin");
    console.fill("From day", "2020-01-01");
    console.click("Show");
    console.page.wait("help.row('Leaderboard made', 'finals') !== null && help.row('API key') === null");
    console.fill("To day", "2020-01-31");
    console.click("Show");
    console.sees("No act fits the filter.");
    // The whole id in place of its beginning.
    console.fill("From day", "");
    console.fill("To day", "");
    console.fill("On", "finals");
    console.fill("Whole id", true);
    console.click("Show");
    console.page.wait("help.row('Leaderboard made', 'finals') !== null");
    console.page.wait("location.hash === '#/audit?subject=finals'");
    console.fill("On", "final");
    console.click("Show");
    console.sees("No act fits the filter.");
    // An actor is found by its name.
    console.fill("On", "");
    console.fill("Whole id", false);
    console.fill("By", "Desk");
    console.click("Show");
    console.page.wait("help.row('Leaderboard made', 'finals') !== null && help.row('this machine') === null");
    console.fill("By", "nobody-ever");
    console.click("Show");
    console.sees("No key or member is named nobody-ever.");
    // A key that may not read keys sees no name that another key has read.
    let auditor = client.post("/v1/keys", &json!({"scopes": ["audit:read"]})).expect(201);
    use_key(console, auditor["key"].as_str().expect("a key"));
    console.show("#/audit");
    console.sees_row(&["Leaderboard made", "“season 2”", "finals", "key:"]);
    // The log shows acts of others as they are made.
    client.put("/v1/leaderboards/later", &json!({})).expect(201);
    console.sees_row(&["Leaderboard made", "later", "key:"]);
    use_key(console, admin);
    client.delete(&format!("/v1/keys/{}", auditor["id"].as_str().expect("an id"))).expect(204);
}

/// Uses another key in this tab.
fn use_key(console: &mut Console, key: &str) {
    forget(console);
    console.fill("API key", key);
    console.click("Use this key");
    console.page.wait("document.querySelector('dialog[open]') === null");
}

/// The icon asks before the key is gone.
fn forget(console: &mut Console) {
    console.click("Forget the key");
    console.sees("Forget the key of this tab?");
    console.click("Forget the key");
}

/// The key is shown once, and used by this tab from then on.
fn first_key(console: &mut Console) -> String {
    console.click("New key");
    console.sees("This is the first key");
    console.fill("What it is for", "desk");
    console.picture("key-create");
    console.click("Create");
    console.sees("it is shown this once");
    console.check("key-made");
    console.picture("key-made");
    let key = console.page.eval("document.querySelector('.secret').textContent");
    let key = key.as_str().expect("a key").to_owned();
    console.server.client().get("/v1/status").refused(401, "unauthorized");
    console.server.client().with_key(&key).get("/v1/keys").expect(200);
    console.click("I have kept it");
    console.sees_row(&["desk", "admin", "this tab"]);
    assert_eq!(console.page.eval("sessionStorage.getItem('tally.key')").as_str(), Some(key.as_str()));
    assert_eq!(console.page.eval("JSON.stringify(localStorage)").as_str(), Some("{}"));
    key
}

fn roles(console: &mut Console, admin: &str) {
    console.click("New key");
    console.fill("What it is for", "watcher");
    console.fill("Role", "reader");
    console.click("Create");
    console.sees("it is shown this once");
    let reader = console.page.eval("document.querySelector('.secret').textContent");
    let reader = reader.as_str().expect("a key").to_owned();
    console.click("I have kept it");

    // Without a key it shows the form, and keeps nothing that the server does not know.
    forget(console);
    console.sees("Paste an API key of this server");
    console.picture("key-needed");
    console.check("key-needed");
    // One message, however many requests were refused, and a way back to the dialog.
    console.click("Cancel");
    console.sees("This server needs an API key");
    console.page.wait("help.all('h1, .notice, .toast.bad').length === 1");
    console.check("key-needed without the dialog");
    console.picture("key-needed-closed");
    // A request may outlive its page: its late refusal does not bring the dialog back.
    let late = "window.dispatchEvent(new CustomEvent('tally:unauthorized', { detail: { present: null } }))";
    console.page.eval(&format!("{late}; true"));
    assert_eq!(console.page.eval("document.querySelector('dialog[open]') === null"), json!(true));
    console.click("Enter a key");
    console.fill("API key", "a password");
    console.click("Use this key");
    console.sees("This is no API key");
    console.fill("API key", "tally_wrong_wrong");
    console.click("Use this key");
    console.sees("unknown or was revoked");
    console.fill("API key", reader);
    console.click("Use this key");
    console.sees("Settings are for admins");
    // The navigation has what a reader may see.
    console.page.wait("help.all('nav a').map((link) => link.textContent).join() === 'Overview,Leaderboards,Contests,Players,Server'");
    console.show("#/wallets");
    console.sees("It needs the scope money:read");
    console.picture("key-reader");
    console.show("#/audit");
    console.sees("this needs the scope audit:read");
    assert_eq!(console.page.eval(ASKED_AGAIN), json!(0));

    staff(console, admin);
    console.show("#/settings");
    scoped(console);
    console.sees_row(&["watcher", "reader"]);
    console.page.wait("(() => { const row = help.all('tr').find((one) => one.innerText.includes('watcher')); row?.querySelector('button').click(); return Boolean(row); })()");
    console.fill("Reason", "left us");
    console.check("key-revoke");
    console.picture("key-revoke");
    console.page.eval("document.querySelector('#typed').focus(); true");
    console.confirm("watcher", "Revoke");
    console.sees("Key watcher is revoked");
    acts(console, admin);
    console.show("#/settings");
    console.sees_row(&["desk", "admin"]);
    console.click("Revoke");
    console.sees("the console asks for another one");
    // Another dialog follows at once.
    console.page.insert("desk");
    console.click("Revoke");
    console.sees("Revoke the last admin key?");
    console.confirm("desk", "Revoke it all the same");
    // Without any key it stays closed.
    console.sees("Enter a key");
}

/// A key with scopes and a cap in place of a role, with the reason of its making.
fn scoped(console: &mut Console) {
    console.click("New key");
    console.fill("What it is for", "shop");
    // The scopes are shown with that choice only.
    console.page.wait("help.field('money:mint') === undefined");
    console.fill("Role", "");
    console.page.wait("help.field('money:mint') !== undefined");
    let offered =
        console.page.eval("JSON.stringify(help.all('fieldset label').map((label) => label.innerText))");
    let all: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    assert_eq!(offered.as_str(), Some(&*json!(all).to_string()));
    console.page.allow("status of 400");
    console.click("Create");
    console.sees("must be an array of one or more");
    console.fill("money:mint", true);
    console.fill("members:read", true);
    console.fill("Most new money on a day", "KRW=1000000");
    console.fill("Reason", "the shop opens");
    console.check("key-scopes");
    console.picture("key-scopes");
    console.click("Create");
    console.sees("it is shown this once");
    console.click("I have kept it");
    console.sees_row(&["shop", "scopes", "members:read", "money:mint", "at most 1 000 000 KRW made a day"]);
}

/// A server's key acts on a contest as one of its staff.
fn staff(console: &mut Console, admin: &str) {
    let mut client = console.server.client().with_key(admin);
    let contest = json!({"id": "cup", "title": "Cup", "staff": ["Ann & Ben", "cleo"]});
    client.post("/v1/contests", &contest).expect(201);
    let made = client.post("/v1/keys", &json!({"role": "server"})).expect(201);
    use_key(console, made["key"].as_str().expect("a key"));
    console.show("#/contests/cup");
    // Without a player of the staff it may edit the contest, and nothing else.
    console.page.wait("help.all('main button').map((one) => one.innerText).join() === 'Edit'");
    console.fill("Act as", "Ann & Ben");
    console.click("Open for applications");
    console.click("Open now");
    console.sees("Players may apply");
    console.sees("No pending applications");
    // The choice ends with the page: content for staff alone needs a new one.
    console.show("#/contests");
    console.show("#/contests/cup");
    console.sees("Choose above which of the staff you act as");
    console.fill("Act as", "cleo");
    console.sees("No pending applications");
    console.page.wait("document.querySelector('main [role=alert]') === null");
    console.check("contest-staff");
    console.picture("contest-staff");
    client.post("/v1/contests", &json!({"id": "alone", "title": "Alone"})).expect(201);
    console.show("#/contests/alone");
    console.sees("This contest has no staff: only a key of role admin");
    for act in ["open", "start", "finish"] {
        client.post(&format!("/v1/contests/alone/{act}"), &json!({})).expect(200);
    }
    console.show("#/");
    console.sees("Finished: a key of role admin settles it to pay its prizes");
    use_key(console, admin);
    client.delete(&format!("/v1/keys/{}", made["id"].as_str().expect("an id"))).expect(204);
}
