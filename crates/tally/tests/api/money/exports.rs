//! `GET /v1/members/{member}/export`: one document with everything, of any size, and nothing of others.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::Request;

#[test]
fn an_export_has_what_the_lists_have() {
    let mut world = World::start(&[("TALLY_CURRENCIES_GEM", "0")]);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 1_000));
    let usd = json!({"to": ann, "amount": 5, "currency": "GEM", "reference": "r1", "reason": "why", "metadata": {"a": 1}});
    world.post("/v1/deposits", &usd).expect(201);
    for (from, to) in [(&ann, &bob), (&bob, &ann)] {
        world
            .post("/v1/transfers", &json!({"from": from, "to": to, "amount": 1, "reason": "words"}))
            .expect(201);
    }
    for member in [&ann, &bob] {
        world.post("/v1/holds", &json!({"member": member, "amount": 2, "reason": "kept"})).expect(201);
    }
    let daily = json!({"periods": [{"name": "daily", "schedule": "0 0 * * *"}]});
    world.client.put("/v1/leaderboards/goals", &daily).expect(201);
    world.client.put("/v1/leaderboards/empty", &json!({})).expect(201);
    for (player, score) in [(&ann, 7), (&bob, 9)] {
        world.post("/v1/leaderboards/goals/scores", &json!({"player": player, "score": score})).expect(200);
    }
    world.client.put(&format!("/v1/players/{ann}"), &json!({"name": "Ann"})).expect(201);
    let contest =
        json!({"id": "cup", "title": "Cup", "staff": [bob], "entry_fee": {"currency": "KRW", "amount": 10}});
    world.post("/v1/contests", &contest).expect(201);
    world.post("/v1/contests/cup/open", &json!({})).expect(200);
    world.post("/v1/contests/cup/applications", &json!({"player": ann})).expect(201);
    let mut local = world.server.local();
    local
        .send(
            &Request::new("PATCH", format!("/v1/members/{ann}"))
                .json(&json!({"name": "Anna", "reason": "m"})),
        )
        .expect(200);
    let answer = local.send(&Request::new("GET", format!("/v1/members/{ann}/export?reason=asked")));
    let export = answer.expect(200);
    let name = format!("attachment; filename=\"member-{ann}.json\"");
    assert_eq!(answer.header("content-disposition"), Some(&*name));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(export["member"], local.get(&format!("/v1/members/{ann}")).expect(200));
    assert_eq!(export["wallets"], local.get(&format!("/v1/wallets/{ann}")).expect(200)["items"]);
    let mut lines = Vec::new();
    for currency in ["GEM", "KRW"] {
        let path = format!("/v1/wallets/{ann}/transactions?limit=100&currency={currency}");
        lines.extend(local.get(&path).expect(200)["items"].as_array().expect("a list").clone());
    }
    lines.iter_mut().for_each(|line| drop(line.as_object_mut().expect("a line").remove("counterparty_name")));
    assert_eq!(export["transactions"], json!(lines));
    assert!(lines.iter().any(|line| line["metadata"] == json!({"a": 1}) && line["reason"] == "why"));
    let holds = local.get(&format!("/v1/holds?member={ann}&limit=100")).expect(200);
    assert_eq!((&export["holds"], holds["items"].as_array().map(Vec::len)), (&holds["items"], Some(2)));
    let records = export["leaderboards"].as_array().expect("a list");
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((&records[0]["board"], &records[0]["banned"]), (&json!("goals"), &json!(false)));
    let of = |at: usize| (&records[0]["records"][at]["score"], &records[0]["records"][at]["rank"]);
    assert_eq!([of(0), of(1)], [(&json!(7), &json!(2)); 2]);
    assert_eq!(export["profile"]["name"], "Ann");
    let entered = &export["contests"][0];
    assert_eq!((&entered["contest"], &entered["application"]["status"]), (&json!("cup"), &json!("pending")));
    let acts: Vec<&Value> =
        export["audit"].as_array().expect("rows").iter().map(|row| &row["action"]).collect();
    let moved = ["money.transferred", "money.transferred", "money.deposited"];
    assert_eq!(acts, [&["member.exported", "member.changed"][..], &moved].concat());
    assert_eq!((&export["audit"][0]["reason"], &export["complete"]), (&json!("asked"), &json!(true)));
    // The staff of a contest is in it too, and nothing of others is.
    let other = local.get(&format!("/v1/members/{bob}/export")).expect(200);
    assert_eq!(
        (&other["contests"][0]["staff"], &other["contests"][0]["application"]),
        (&json!(true), &json!(null))
    );
    let text = export.to_string();
    assert!(!text.contains("\"bob\"") && !other.to_string().contains("Anna"), "{text}");
    let secrets = ["\"password\"", "\"pin\"", "tokens"];
    assert!(secrets.iter().all(|word| !text.contains(word)), "{text}");
    local.get("/v1/members/0190f8a0-0000-7000-8000-000000000000/export").refused(404, "member_not_found");
    world.audit();
}

#[test]
fn an_export_of_many_pages_is_whole() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 10_000), world.member("bob", 0));
    let long = "x".repeat(200);
    for part in 0..2 {
        let row = |at| json!({"from": ann, "to": bob, "amount": 1, "reason": format!("{long}{part}-{at}")});
        let rows: Vec<Value> = (0..900).map(row).collect();
        world.post("/v1/transfers/batch", &json!({"transfers": rows})).expect(200);
    }
    for number in 0..450 {
        world.client.put(&format!("/v1/leaderboards/b{number:03}"), &json!({})).expect(201);
    }
    let rows: Vec<Value> =
        (0..450).map(|at| json!({"board": format!("b{at:03}"), "player": bob, "score": at})).collect();
    world.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    let mut local = world.server.local();
    let export = local.get(&format!("/v1/members/{bob}/export")).expect(200);
    let lines = export["transactions"].as_array().expect("a list");
    let mut reasons: Vec<&str> =
        lines.iter().map(|line| line["reason"].as_str().expect("a reason")).collect();
    reasons.sort_unstable();
    reasons.dedup();
    assert_eq!((lines.len(), reasons.len()), (1_800, 1_800));
    let boards = export["leaderboards"].as_array().expect("a list");
    let scores: Vec<u64> =
        boards.iter().map(|one| one["records"][0]["score"].as_u64().expect("a score")).collect();
    assert_eq!(scores, (0..450).collect::<Vec<u64>>());
    assert_eq!(export["complete"], true);
    world.audit();
}
