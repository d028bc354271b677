//! The members' part of the tour: their data, their own operations, and guesses.

use super::operations::Tour;
use serde_json::{Value, json};
use tally_testkit::Request;

/// A member by the examples, and then all operations on it.
pub(crate) fn tour(tour: &mut Tour<'_>) {
    let made = tour.example("createMember", 201);
    tour.member = made["id"].as_str().expect("an id").to_owned();
    for id in ["getMember", "updateMember", "unlockPin"] {
        tour.example(id, 200);
    }
    let find = |query: &str| Request::new("GET", format!("/v1/members?{query}"));
    tour.good("listMembers", 200, find("login_id=ann%40example.org"));
    tour.good("listMembers", 200, find("player=nobody"));
    tour.good("listMembers", 200, find("limit=1"));
    let signed_in = tour.example("signIn", 200);
    tour.token = signed_in["data"]["accessToken"].as_str().expect("a token").to_owned();
    let row = json!({"player": "ann", "score": 3});
    tour.good("submitScore", 200, Request::new("POST", "/v1/leaderboards/goals/scores").json(&row));
    tour.example("getMe", 200);
    tour.example("listMyRanks", 200);
    let bob = json!({"login_id": "bob", "name": "Bob", "phone_number": "010-9876-5432"});
    let bob = tour.good("createMember", 201, Request::new("POST", "/v1/members").json(&bob));
    let closed = json!({"login_id": "gone", "name": "Gone", "phone_number": "010-0000"});
    let closed = tour.good("createMember", 201, Request::new("POST", "/v1/members").json(&closed));
    let close = |member: &Value| {
        let id = member["id"].as_str().expect("an id");
        Request::new("POST", format!("/v1/members/{id}/close"))
    };
    tour.good("closeMember", 200, close(&closed));
    tour.refused("updateMember", 409, "member_closed", &of(&closed, "PATCH", "").json(&json!({"name": "X"})));
    tour.refused("unlockPin", 409, "member_closed", &of(&closed, "POST", "/unlock-pin"));
    tour.refused("signOutMember", 409, "member_closed", &of(&closed, "POST", "/sign-out"));
    tour.good("exportMember", 200, of(&closed, "GET", "/export"));
    tour.good("eraseMember", 200, of(&closed, "POST", "/erase").json(&json!({"reason": "request 17"})));
    tour.good("exportMember", 200, of(&closed, "GET", "/export?reason=empty"));
    let taken = json!({"phone_number": "010-1234-5678"});
    tour.refused("updateMember", 409, "phone_taken", &of(&bob, "PATCH", "").json(&taken));
    let taken = json!({"player": "ann"});
    tour.refused("updateMember", 409, "player_taken", &of(&bob, "PATCH", "").json(&taken));
}

fn of(member: &Value, method: &str, what: &str) -> Request {
    let id = member["id"].as_str().expect("an id");
    Request::new(method, format!("/v1/members/{id}{what}"))
}

/// Payments, and guesses. Ann has nothing at first.
pub(crate) fn payments(tour: &mut Tour<'_>) {
    tour.keys += 1;
    let key = format!("pay-{}", tour.keys);
    let pay = |phone: &str, amount: Value, pin: Value| {
        let body = json!({"phoneNumber": phone, "amount": amount, "password": pin});
        Request::new("POST", "/transfer/phone-num").json(&body).idempotent(&key)
    };
    let bob = "01098765432";
    let id = "transferToPhone";
    tour.refused(id, 422, "insufficient_funds", &pay(bob, json!("5"), json!("0042")));
    tour.refused(id, 422, "same_wallet", &pay("01012345678", json!(5), json!(42)));
    tour.refused(id, 422, "invalid_amount", &pay(bob, json!(0), json!(42)));
    tour.refused(id, 422, "limit_exceeded", &pay(bob, json!("9999999999999999"), json!(42)));
    let keyless = Request { headers: Vec::new(), ..pay(bob, json!(5), json!(42)) };
    tour.refused(id, 400, "idempotency_key_required", &keyless);
    let deposit = json!({"to": tour.member, "amount": 5_000});
    tour.good("deposit", 201, Request::new("POST", "/v1/deposits").json(&deposit));
    tour.refused(id, 404, "recipient_not_found", &pay("0109999", json!(5), json!(42)));
    tour.example(id, 201);
    tour.example("getMyWallet", 200);
    tour.example("listMyTransactions", 200);
    let usd = |what: &str| Request::new("GET", format!("/v1/me/{what}?currency=XAU"));
    tour.refused("getMyWallet", 422, "currency_mismatch", &usd("wallet"));
    tour.refused("listMyTransactions", 422, "currency_mismatch", &usd("transactions"));
    let usd = |what: &str| Request::new("GET", format!("/v1/me/{what}?currency=USD"));
    tour.refused("getMyWallet", 404, "wallet_not_found", &usd("wallet"));
    tour.refused("listMyTransactions", 404, "wallet_not_found", &usd("transactions"));
    let close = Request::new("POST", format!("/v1/members/{}/close", tour.member));
    tour.refused("closeMember", 409, "wallet_not_empty", &close);
    let erase = Request::new("POST", format!("/v1/members/{}/erase", tour.member));
    tour.refused("eraseMember", 409, "wallet_not_empty", &erase);
    tour.example("exportMember", 200);
    let paid = tour.send(tour.document.operation(id), &pay(bob, json!(5), json!(42)));
    assert_eq!(paid.status, 201, "{}", paid.text());
    tour.refused(id, 422, "idempotency_key_reused", &pay(bob, json!(6), json!(42)));
    for _ in 0..5 {
        tour.refused(id, 403, "invalid_pin", &pay(bob, json!(5), json!("9999")));
    }
    tour.refused(id, 423, "pin_locked", &pay(bob, json!(5), json!("0042")));
    tour.example("unlockPin", 200);
    let body = json!({"phoneNumber": "0109999", "amount": 5, "password": 42});
    let unknown = Request::new("POST", "/transfer/phone-num").json(&body).idempotent("unknown");
    for _ in 1..100 {
        tour.refused(id, 404, "recipient_not_found", &unknown);
    }
    tour.refused(id, 429, "too_many_attempts", &unknown);
    let sign_in = |login: &str| {
        Request::new("POST", "/auth/signin").json(&json!({"loginId": login, "password": "nope"}))
    };
    for _ in 0..5 {
        tour.refused("signIn", 401, "invalid_credentials", &sign_in("guessed"));
    }
    tour.refused("signIn", 429, "too_many_attempts", &sign_in("guessed"));
}
