//! Webhooks: made with a secret that is shown once, their deliveries, and an event that is sent again.

use super::{Console, TALLY};
use serde_json::json;
use tally_testkit::{Request, TestTally};

#[test]
fn webhooks_are_made_watched_and_deleted() {
    let mut console = Console::on(TestTally::start_set(TALLY, &[("TALLY_WEBHOOKS_PRIVATE", "true")]));
    let url = "http://127.0.0.1:9/hook";
    console.show("#/settings");
    console.click("Webhooks");
    console.sees("No webhook");
    console.click("New webhook");
    console.fill("Address", "ftp://nowhere/");
    console.click("Create");
    console.sees("must begin with");
    console.page.allow("status of 400");
    console.fill("Address", url);
    console.fill("balance_below", true);
    console.fill("Marks of balances", "KRW 1000, USD 5");
    console.check("webhook-create");
    console.picture("webhook-create");
    console.click("Create");
    console.sees("it is shown this once");
    let secret = console.page.eval("document.querySelector('.secret').textContent");
    assert!(secret.as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{secret}");
    console.click("I have kept it");
    console.sees_row(&[url, "period_closed, contest, member_closed, period_paid, balance_below", "enabled"]);
    console.check("webhooks");
    console.picture("webhooks");
    console.click(url);
    console.sees("Events that are stored from now on appear here.");
    console.sees("KRW 1000, USD 5");
    let mut client = console.server.client();
    client.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    let id = client.get("/v1/webhooks").expect(200)["items"][0]["id"].as_str().expect("an id").to_owned();
    let failing = format!("/v1/webhooks/{id}/deliveries?state=failing");
    tally_testkit::wait_until("it fails", || client.get(&failing).expect(200)["items"][0].is_object());
    console.click("Look again");
    console.sees_row(&["contest:cup", "event 1", "failing", "cannot be reached"]);
    console.check("webhook");
    console.picture("webhook");
    console.click("Send again");
    console.sees("The receiver has not taken it");
    console.fill("Only what fails", true);
    console.sees_row(&["contest:cup", "failing"]);
    console.click("New secret");
    console.sees("the one before signs for 24 hours");
    console.click("I have kept it");
    console.click("Disable");
    console.sees("by a request");
    console.click("Enable");
    console.page.wait("!help.text().includes('by a request')");
    let request = Request::new("GET", format!("/v1/webhooks/{id}"));
    assert_eq!(client.send(&request).expect(200)["enabled"], true);
    console.click("Delete");
    console.confirm(url, "Delete");
    console.sees("No webhook");
    client.send(&request).refused(404, "webhook_not_found");
    console.end();
}
