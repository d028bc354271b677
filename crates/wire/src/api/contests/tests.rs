//! Errors name everything that is wrong in a contest's body, and a reply is a spec for the same contest.

use super::*;
use serde_json::json;
use tally_rules::contest::definition::ContestLimits;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{Contest, ContestRecord, ContestState, Payout};
use tally_rules::ledger::{Currencies, MemberId, Uuid};

fn currencies() -> Currencies {
    Currencies::new((Currency::parse("KRW").unwrap(), 0), std::collections::BTreeMap::new())
}

fn whole() -> Value {
    json!({"title": "Friday cup", "staff": ["p1"], "capacity": 64, "on_invalid": "skip",
        "auto_accept": true, "players_min": 2, "below_min": "start", "join_s": 60, "attempts_max": 3,
        "entry_fee": {"currency": "KRW", "amount": "100"}, "leaderboard": {"order": "ascending"},
        "prizes": [{"from": 1, "to": 1, "currency": "KRW", "amount": 500}], "prize_ties": "each",
        "pool": {"prizes": [{"from": 1, "to": 2, "share": 4000}], "rake": 500, "min": "900"},
        "division_size": 50, "opens_at": "2026-11-21T08:20:00Z", "starts_at": null,
        "ends_at": "2026-11-22T08:20:00+09:00", "review_s": 3600})
}

fn pointers(wrong: Vec<FieldError>) -> Vec<String> {
    wrong.into_iter().map(|error| error.pointer).collect()
}

#[test]
fn what_is_answered_is_a_wish_for_the_same() {
    let (id, spec) = read_new(whole()).unwrap();
    assert_eq!(id, None);
    let contest = spec.create(&currencies(), ContestLimits::default()).unwrap();
    let id = ContestId::new("cup").unwrap();
    let mut record = ContestRecord::new(Uuid([1; 16]), contest.clone(), None, Micros(0));
    let mut answer = write(&id, &record, Some(record.applications));
    assert_eq!((&answer["board"], &answer["divisions"]), (&json!(null), &json!([])));
    let object = answer.as_object_mut().unwrap();
    let account =
        json!({"member": record.pool_account().unwrap().0.to_string(), "fees": "0", "to_win": "900"});
    assert_eq!(object.remove("pool_account"), Some(account));
    for name in ["id", "state", "board", "divisions", "counts", "created_at", "updated_at"] {
        assert!(object.remove(name).is_some(), "{name}");
    }
    let again = read_patch(answer).unwrap();
    assert_eq!(
        again.change(&contest, ContestState::Finished, &currencies(), ContestLimits::default()).unwrap(),
        contest
    );
    record.members = 51;
    let one = |n: u32, players: u32| {
        let board = format!("contest:cup:{n}");
        json!({"division": n, "board": board, "players": players, "n": n, "members": players})
    };
    assert_eq!(write(&id, &record, Some(record.applications))["divisions"], json!([one(1, 50), one(2, 1)]));
    record.contest.division_size = None;
    assert_eq!(write(&id, &record, Some(record.applications))["board"], "contest:cup");
}

#[test]
fn every_wrong_field_is_named_at_once() {
    let body = json!({"id": "a b", "staff": ["p", ".", 1], "capacity": 0, "on_invalid": "stop",
        "auto_accept": 1, "players_min": 0, "below_min": "wait",
        "entry_fee": {"currency": "krw", "amount": 0, "x": 1},
        "leaderboard": {"order": "up", "periods": [{"name": 1}]},
        "prizes": [{"from": 1, "to": 1, "currency": "KRW", "amount": 1}, {"from": 0, "amount": "1.5"}, 7],
        "pool": {"prizes": [{"from": 1, "to": 1, "share": 0}, 5], "rake": 10_001, "min": "x", "y": 1},
        "prize_ties": 1, "division_size": 1.5, "opens_at": "now", "ends_at": 5, "review_s": -1,
        "state": "open"});
    let mut wrong = pointers(read_new(body.clone()).unwrap_err());
    wrong.sort();
    let mut wanted = [
        "/id",
        "/staff/1",
        "/staff/2",
        "/capacity",
        "/on_invalid",
        "/auto_accept",
        "/players_min",
        "/below_min",
        "/entry_fee/currency",
        "/entry_fee/amount",
        "/entry_fee/x",
        "/leaderboard/order",
        "/leaderboard/periods/0/name",
        "/leaderboard/periods/0/schedule",
        "/prizes/1/from",
        "/prizes/1/to",
        "/prizes/1/currency",
        "/prizes/1/amount",
        "/prizes/2",
        "/pool/prizes/0/share",
        "/pool/prizes/1",
        "/pool/rake",
        "/pool/min",
        "/pool/y",
        "/prize_ties",
        "/division_size",
        "/opens_at",
        "/ends_at",
        "/review_s",
        "/title",
        "/state",
    ];
    wanted.sort_unstable();
    assert_eq!(wrong, wanted);
    // A patch cannot change the name, and needs no title.
    let of_patch = pointers(read_patch(body).unwrap_err());
    assert!(of_patch.contains(&"/id".to_owned()) && !of_patch.contains(&"/title".to_owned()));
    let (many, prizes) = (json!({"staff": vec!["p"; 101]}), json!({"prizes": vec![1; 201]}));
    assert_eq!(pointers(read_patch(many).unwrap_err()), ["/staff"]);
    assert_eq!(pointers(read_patch(prizes).unwrap_err()), ["/prizes"]);
}

#[test]
fn nothing_is_kept_and_null_takes_away() {
    assert_eq!(read_patch(json!({})), Ok(ContestSpec::default()));
    let gone = json!({"entry_fee": null, "division_size": null, "starts_at": null, "review_s": null,
        "players_min": null, "pool": null});
    let gone = read_patch(gone).unwrap();
    let wanted = ContestSpec {
        entry_fee: Some(None),
        division_size: Some(None),
        starts_at: Some(None),
        review_s: Some(None),
        players_min: Some(None),
        pool: Some(None),
        ..ContestSpec::default()
    };
    assert_eq!(gone, wanted);
}

#[test]
fn older_names_are_read_and_shown_beside_the_present_ones() {
    let two = ContestSpec { players_min: Some(NonZeroU32::new(2)), ..ContestSpec::default() };
    let bodies =
        [json!({"players_min": 2}), json!({"members_min": 2}), json!({"players_min": 2, "members_min": 2})];
    for body in bodies {
        assert_eq!(read_patch(body), Ok(two.clone()));
    }
    let none = ContestSpec { players_min: Some(None), ..ContestSpec::default() };
    assert_eq!(read_patch(json!({"members_min": null})), Ok(none));
    for (body, pointer) in [
        (json!({"players_min": 2, "members_min": 3}), "/members_min"),
        (json!({"players_min": 2, "members_min": null}), "/members_min"),
        (json!({"members_min": 0}), "/members_min"),
        (json!({"players_min": 0}), "/players_min"),
    ] {
        assert_eq!(pointers(read_patch(body).unwrap_err()), [pointer]);
    }
    let contest = Contest { players_min: NonZeroU32::new(2), ..Contest::default() };
    let record = ContestRecord::new(Uuid([1; 16]), contest, None, Micros(0));
    let shown = write(&ContestId::new("cup").unwrap(), &record, None);
    assert_eq!((&shown["players_min"], &shown["members_min"]), (&json!(2), &json!(2)));
    assert_eq!((&shown["counts"]["players"], &shown["counts"]["members"]), (&json!(0), &json!(0)));
}

#[test]
fn a_payout_that_is_not_possible_has_its_code_under_both_names() {
    let payout = Payout {
        player: PlayerId::new("ann").unwrap(),
        member: MemberId(Uuid([1; 16])),
        division: None,
        rank: 1,
        currency: Currency::parse("KRW").unwrap(),
        amount: Amount::new(5).unwrap(),
        paid: Some(Err(UnpaidReason::MemberClosed)),
    };
    let shown = write_payout(&payout, false, true, None);
    assert_eq!((&shown["paid"], &shown["code"]), (&json!(false), &json!("member_closed")));
    assert_eq!(shown["reason"], shown["code"], "the older name");
    let reduced = write_payout(&payout, false, false, None);
    assert!(["code", "reason"].iter().all(|name| reduced.get(name).is_none()), "{reduced}");
}

#[test]
fn players_are_a_list_within_bounds() {
    let player = |name: &str| PlayerId::new(name).unwrap();
    assert_eq!(read_players(json!({"players": ["a", "b", "a"]})), Ok(["a", "b", "a"].map(player).to_vec()));
    for list in [json!([]), json!("a"), json!(vec!["a"; 1_001]), json!(null)] {
        assert_eq!(pointers(read_players(json!({"players": list})).unwrap_err()), ["/players"]);
    }
    let wrong = read_players(json!({"players": ["a", ".", 3], "x": 1})).unwrap_err();
    assert_eq!(pointers(wrong), ["/players/1", "/players/2", "/x"]);
    assert_eq!(read_application(None), Ok(None));
    assert_eq!(read_application(Some(json!({}))), Ok(None));
    assert_eq!(read_application(Some(json!({"player": "a"}))), Ok(Some(player("a"))));
    assert_eq!(pointers(read_application(Some(json!({"player": 1}))).unwrap_err()), ["/player"]);
}

#[test]
fn a_series_is_read_and_shown() {
    let mut template = whole();
    for time in ["opens_at", "starts_at", "ends_at"] {
        template.as_object_mut().unwrap().remove(time);
    }
    let body = json!({"id": "cup", "template": template, "open": "0 0 * * *", "start": "0 9 * * *",
        "end": "0 18 * * *", "time_zone": "Asia/Seoul", "ahead": 2});
    let (id, spec) = read_new_series(body.clone()).unwrap();
    let series = spec.create(&currencies(), ContestLimits::default()).unwrap();
    let (from, due, last) = (Micros(0), None, None);
    let record = tally_rules::contest::SeriesRecord {
        series: series.clone(),
        from,
        since: from,
        due,
        last,
        created_at: from,
        updated_at: from,
    };
    let mut answer = write_series(&id.unwrap(), &record);
    let object = answer.as_object_mut().unwrap();
    for name in ["id", "last_contest", "last", "created_at", "updated_at"] {
        assert!(object.remove(name).is_some(), "{name}");
    }
    let again = read_series_patch(answer).unwrap();
    assert_eq!(again.change(&series, &currencies(), ContestLimits::default()).unwrap(), series);
    assert_eq!(read_series_patch(json!({})).unwrap(), Default::default());
    let wrong = json!({"id": "x".repeat(52), "template": {"starts_at": null, "entry_fee": 1, "staff": [1]},
        "open": 1, "end": null, "time_zone": [], "ahead": 0, "next": 1});
    let mut wrong = pointers(read_new_series(wrong).unwrap_err());
    wrong.sort();
    let wanted = [
        "/ahead",
        "/end",
        "/id",
        "/next",
        "/open",
        "/start",
        "/template/entry_fee",
        "/template/staff/0",
        "/template/starts_at",
        "/template/title",
        "/time_zone",
    ];
    assert_eq!(wrong, wanted);
    assert_eq!(pointers(read_series_patch(json!({"template": 5})).unwrap_err()), ["/template"]);
}
