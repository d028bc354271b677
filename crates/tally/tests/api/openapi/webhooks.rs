//! Webhooks: every documented answer. Their receivers cannot be reached, which is an answer, too.

use super::operations::Tour;
use serde_json::{Value, json};
use tally_testkit::{Request, wait_until};

const MISSING: &str = "0190f8a0-0000-7000-8000-000000000000";
const MAX: usize = 32;

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The last delivery of the contest, once there is one.
fn delivery(tour: &mut Tour<'_>, path: &str) -> String {
    let mut found = Value::Null;
    wait_until("the delivery fails", || {
        let page = tour.local.get(&format!("{path}/deliveries")).expect(200);
        let told = page["items"].as_array().into_iter().flatten().find(|one| one["topic"] == "contest:told");
        found = told.map_or(Value::Null, |one| one["id"].clone());
        found.is_string()
    });
    text(&found)
}

pub(super) fn tour(tour: &mut Tour<'_>) {
    let made = tour.example("createWebhook", 201);
    let path = format!("/v1/webhooks/{}", text(&made["id"]));
    let local =
        json!({"url": "https://localhost:9/", "balance_below": {"KRW": "500", "USD": 1}, "reason": "moved"});
    tour.good("updateWebhook", 200, Request::new("PATCH", &path).json(&local));
    tour.good("listWebhooks", 200, Request::new("GET", "/v1/webhooks"));
    tour.good("getWebhook", 200, Request::new("GET", &path));
    tour.good("rotateWebhookSecret", 200, Request::new("POST", format!("{path}/secret?reason=leaked")));
    tour.local.post("/v1/contests", &json!({"id": "told", "title": "Told"})).expect(201);
    let first = delivery(tour, &path);
    let body = json!({"url": "https://localhost:9/", "events": ["contest"]});
    let later = tour.local.post("/v1/webhooks", &body).expect(201);
    let later = format!("/v1/webhooks/{}", text(&later["id"]));
    let patch = Request::new("PATCH", "/v1/contests/told").json(&json!({"title": "Again"}));
    tour.local.send(&patch).expect(200);
    let second = delivery(tour, &later);
    for query in ["?state=failing&limit=1", "?state=delivered"] {
        tour.good("listDeliveries", 200, Request::new("GET", format!("{path}/deliveries{query}")));
    }
    let send = |path: &str, id: &str| Request::new("POST", format!("{path}/deliveries/{id}/send"));
    tour.good("sendDelivery", 200, send(&path, &first));
    tour.refused("sendDelivery", 409, "delivery_waits", &send(&path, &second));
    tour.refused("sendDelivery", 404, "delivery_not_found", &send(&path, "b1.1.1"));
    let nowhere = format!("/v1/webhooks/{MISSING}");
    for (id, request) in [
        ("getWebhook", Request::new("GET", &nowhere)),
        ("updateWebhook", Request::new("PATCH", &nowhere).json(&json!({"enabled": true}))),
        ("deleteWebhook", Request::new("DELETE", &nowhere)),
        ("rotateWebhookSecret", Request::new("POST", format!("{nowhere}/secret"))),
        ("listDeliveries", Request::new("GET", format!("{nowhere}/deliveries"))),
        ("sendDelivery", send(&nowhere, &first)),
    ] {
        tour.refused(id, 404, "webhook_not_found", &request);
    }
    for _ in 2..MAX {
        tour.local.post("/v1/webhooks", &body).expect(201);
    }
    tour.refused(
        "createWebhook",
        422,
        "too_many_webhooks",
        &Request::new("POST", "/v1/webhooks").json(&body),
    );
    for hook in tour.local.get("/v1/webhooks").expect(200)["items"].as_array().expect("items") {
        let path = format!("/v1/webhooks/{}", text(&hook["id"]));
        tour.good("deleteWebhook", 204, Request::new("DELETE", path));
    }
}
