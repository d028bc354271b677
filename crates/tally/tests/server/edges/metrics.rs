//! `/metrics`: text that Prometheus reads, whatever the state, and its permissions.

use super::{TALLY, add, fill_big, key, sum_board};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use tally_testkit::{
    DatabaseKind, GIVE_UP, RedisKind, Request, Response, ScratchDatabase, ScratchRedis, TestTally, tls,
    wait_for, wait_until,
};

/// The identity of a series.
pub(super) type Labels = Vec<(String, String)>;
/// A family as it was read: its kind and (name, labels, value) of each sample.
pub(super) type Family = (String, Vec<(String, Labels, f64)>);

fn is_name(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))
}

/// `name="value",…` without its braces.
fn labels(mut text: &str) -> Labels {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap_or_else(|| panic!("no label in {text:?}"));
        assert!(is_name(name), "{name:?}");
        let end = (0..rest.len())
            .find(|at| rest.as_bytes()[*at] == b'"' && (*at == 0 || rest.as_bytes()[at - 1] != b'\\'));
        let (value, rest) = rest.split_at(end.expect("a value ends"));
        labels.push((name.to_owned(), value.to_owned()));
        text = rest[1..].strip_prefix(',').unwrap_or(&rest[1..]);
    }
    labels
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Reads the text, strictly: families once and whole, samples of their family, nothing twice.
fn read(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut current, mut seen) = (String::new(), BTreeSet::new());
    for line in text.trim_end_matches("# EOF\n").lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (word, name, rest) = (words.next(), words.next().unwrap_or_default(), words.next());
            assert!(is_name(name), "{line}");
            match word {
                Some("HELP") => assert!(rest.is_some_and(|help| help.len() > 1), "{line}"),
                Some("TYPE") => {
                    let kind = rest.unwrap_or_default().to_owned();
                    assert!(["counter", "gauge", "histogram"].contains(&kind.as_str()), "{line}");
                    assert!(families.insert(name.to_owned(), (kind, Vec::new())).is_none(), "twice: {line}");
                    name.clone_into(&mut current);
                }
                other => panic!("{other:?} in {line}"),
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value in {line:?}"));
        assert!(seen.insert(sample.to_owned()), "twice: {line}");
        let (name, inner) = match sample.split_once('{') {
            Some((name, rest)) => (name, labels(rest.strip_suffix('}').expect("braces close"))),
            None => (sample, Vec::new()),
        };
        let (kind, samples) = families.get_mut(&current).unwrap_or_else(|| panic!("no family: {line}"));
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            _ => &["_bucket", "_sum", "_count"],
        };
        let suffix =
            name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line} is not of {current}"));
        assert!(is_name(name) && suffixes.contains(&suffix), "{line} is no {kind} of {current}");
        samples.push((name.to_owned(), inner, number(value)));
    }
    families
}

/// Buckets of each series rise to the one of everything, which is the count.
fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (_, labels, value) in family.1.iter().filter(|(sample, _, _)| sample.ends_with("_bucket")) {
        let (bounds, rest): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|(name, _)| name == "le");
        assert_eq!(bounds.len(), 1, "{name}");
        series.entry(rest).or_default().push((number(&bounds[0].1), *value));
    }
    for (labels, buckets) in series {
        assert!(
            buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1),
            "{name}{labels:?}"
        );
        let count = family.1.iter().find(|(sample, own, _)| sample.ends_with("_count") && *own == labels);
        let (last, all) = *buckets.last().expect("a bucket");
        assert!(last.is_infinite() && count.is_some_and(|(_, _, count)| *count == all), "{name}{labels:?}");
    }
}

pub(super) fn check(answer: &Response) -> BTreeMap<String, Family> {
    answer_is_text(answer);
    let families = read(&answer.text());
    for (name, family) in &families {
        assert!(name.starts_with("tally_"), "{name}");
        match family.0.as_str() {
            "histogram" => check_histogram(name, family),
            "counter" => {
                assert!(family.1.iter().all(|(_, _, value)| *value >= 0.0), "{name} is below zero");
            }
            _ => {}
        }
    }
    families
}

fn answer_is_text(answer: &Response) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let kind = answer.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
}

#[test]
fn it_is_text_that_prometheus_reads() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    check(&client.get("/metrics"));
    client.send(&add("p", 1)).expect(200);
    client.get("/v1/leaderboards/none").refused(404, "leaderboard_not_found");
    let families = check(&client.get("/metrics"));
    let one = |name: &str| families.get(name).unwrap_or_else(|| panic!("no {name}")).1[0].2;
    assert_eq!((one("tally_ready"), one("tally_boards"), one("tally_board_members")), (1.0, 1.0, 1.0));
    assert!(one("tally_lane_rows") >= 1.0);
    let label = |labels: &[(String, String)], name: &str, value: &str| {
        labels.iter().any(|(own, text)| own == name && text == value)
    };
    let submits = families["tally_http_requests"].1.iter().find(|(_, labels, _)| {
        label(labels, "route", "/v1/leaderboards/{board}/scores")
            && label(labels, "method", "POST")
            && label(labels, "class", "2xx")
    });
    assert_eq!(submits.map(|(_, _, value)| *value), Some(1.0));
}

/// Names between backticks of a page that begin as ours do.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../../../docs/metrics.md");
    let words = page.split('`').skip(1).step_by(2);
    words.filter(|word| word.starts_with("tally_")).map(ToOwned::to_owned).collect()
}

/// The families of a server with one file, of one with a database and all that can be beside it, and of one with shards.
pub(super) fn of_all() -> BTreeMap<String, Family> {
    let databases = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let database = databases.create_database();
    let shards = [(); 2].map(|()| databases.create_database()).join(",");
    // A bound with this policy is a finding that is wrong.
    let evicts = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let redis = ScratchRedis::start(RedisKind::Redis7, &evicts);
    let url = format!("redis://{}", redis.address());
    let (certificate, key) = (tls::file("server.pem"), tls::file("server-key.pem"));
    let settings = [
        ("TALLY_STORE_URL", &*database),
        ("TALLY_RANKING_URL", &url),
        ("TALLY_APPLICATIONS_URL", &url),
        ("TALLY_TLS_CERTIFICATE", &certificate),
        ("TALLY_TLS_KEY", &key),
    ];
    let servers = [
        TestTally::start_set(TALLY, &[("TALLY_STORE_URL", "")]),
        TestTally::start_set(TALLY, &settings),
        TestTally::start_set(TALLY, &[("TALLY_STORE_URL", &shards)]),
    ];
    let mut all: BTreeMap<String, Family> = BTreeMap::new();
    for server in servers {
        // Contests are counted by a thread, which adds up the ledger last; until it has run they are left out. Redis and
        // findings have threads, too.
        let has_redis = server.local().get("/v1/status").expect(200)["ranking"]["kind"] == "redis";
        let wanted: &[&str] = if has_redis {
            &["tally_ledger_out_of_balance", "tally_redis_memory_used_bytes", "tally_findings"]
        } else {
            &["tally_ledger_out_of_balance"]
        };
        let mut families = BTreeMap::new();
        wait_until("all families are there", || {
            families = check(&server.local().get("/metrics"));
            wanted.iter().all(|name| families.get(*name).is_some_and(|family| !family.1.is_empty()))
        });
        for (name, (kind, samples)) in families {
            let family = all.entry(name.clone()).or_insert_with(|| (kind.clone(), Vec::new()));
            assert_eq!(family.0, kind, "{name} is one kind");
            family.1.extend(samples);
        }
    }
    all
}

#[test]
fn the_page_of_metrics_has_every_family_and_no_other() {
    let families = of_all();
    let found: BTreeSet<String> = families.keys().cloned().collect();
    assert_eq!(found, documented());
    // A rate of a gauge, and a gauge that is shown as a rate, are both wrong.
    for (name, kind) in [("flushes", "counter"), ("round_trips", "counter"), ("unflushed_ratio", "gauge")] {
        assert_eq!(families[&format!("tally_store_{name}")].0, kind, "{name}");
    }
}

/// A contest in each state, one prize that is paid and one whose member was closed, and a fee that is paid back.
#[test]
fn contests_are_counted_by_state_and_payments_by_what_became_of_them() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let member = |client: &mut tally_testkit::Client, name: &str| {
        let made = client.post("/v1/members", &json!({"login_id": name, "name": name, "player": name}));
        let id = made.expect(201)["id"].as_str().expect("an id").to_owned();
        client.post("/v1/deposits", &json!({"to": id, "amount": 100})).expect(201);
        id
    };
    let ids = ["ann", "bob"].map(|name| member(&mut client, name));
    let prize = |rank: u32| json!({"from": rank, "to": rank, "currency": "KRW", "amount": 5});
    for id in ["draft", "open", "running", "finished", "settled", "cancelled"] {
        let fee = json!({"currency": "KRW", "amount": 1});
        let body = json!({"id": id, "title": id, "entry_fee": fee, "prizes": [prize(1), prize(2)]});
        client.post("/v1/contests", &body).expect(201);
        let mut acts = match id {
            "draft" => &[][..],
            "open" => &["open"],
            "running" => &["open", "start"],
            "finished" => &["open", "start", "finish"],
            "settled" => &["open", "start", "finish", "settle"],
            _ => &["open", "start", "cancel"],
        };
        while let Some((act, rest)) = acts.split_first() {
            if *act == "start" {
                for player in ["ann", "bob"] {
                    let path = format!("/v1/contests/{id}/applications");
                    client.post(&path, &json!({"player": player})).expect(201);
                    client.post(&format!("{path}/accept"), &json!({"players": [player]})).expect(200);
                }
            }
            if *act == "finish" {
                for (player, score) in [("ann", 2), ("bob", 1)] {
                    let row = json!({"player": player, "score": score});
                    client.post(&format!("/v1/leaderboards/contest:{id}/scores"), &row).expect(200);
                }
            }
            client.send(&Request::new("POST", format!("/v1/contests/{id}/{act}"))).expect(200);
            acts = rest;
        }
    }
    let force = json!({"force": true});
    client.post(&format!("/v1/members/{}/close", ids[1]), &force).expect(200);
    client.send(&Request::new("POST", "/v1/contests/finished/settle")).expect(200);
    let wanted = json!({"draft": 1, "open": 1, "running": 1, "finished": 0, "settled": 2, "cancelled": 1});
    let status = wait_for("the contests are counted", || {
        let status = client.get("/v1/status").expect(200)["contests"].clone();
        (status["states"] == wanted).then_some(status)
    });
    let turned = json!({"draft": 6, "open": 5, "running": 4, "finished": 2, "settled": 2, "cancelled": 1});
    assert_eq!(status["turned"], turned);
    assert_eq!(status["prizes"], json!({"paid": 3, "member_closed": 1, "limit_exceeded": 0, "reversed": 0}));
    assert_eq!(status["refunds"], json!({"paid": 2, "member_closed": 0, "limit_exceeded": 0, "reversed": 0}));
    assert_eq!(status["due"], 0);
    let families = check(&client.get("/metrics"));
    let sample = |family: &str, wanted: &[(&str, &str)]| {
        let of = |(_, labels, _): &&(String, Labels, f64)| {
            wanted.iter().all(|(name, value)| labels.iter().any(|one| one.0 == *name && one.1 == *value))
        };
        families[family].1.iter().find(of).map(|(_, _, value)| *value)
    };
    assert_eq!(sample("tally_contests", &[("state", "settled")]), Some(2.0));
    assert_eq!(sample("tally_contests_turned", &[("to", "running")]), Some(4.0));
    let closed = [("kind", "prize"), ("outcome", "member_closed")];
    assert_eq!(sample("tally_contest_payments", &closed), Some(1.0));
    assert_eq!(sample("tally_contest_payments", &[("kind", "refund"), ("outcome", "paid")]), Some(2.0));
}

#[test]
fn it_answers_while_ranks_are_loading() {
    let mut server = TestTally::start(TALLY);
    fill_big(&mut server.client());
    server.kill9();
    server.launch();
    let mut client = server.client();
    let mut states = BTreeSet::new();
    let began = Instant::now();
    while !states.contains("ready") {
        assert!(began.elapsed() < GIVE_UP, "it is never ready");
        let answer = client.get("/metrics");
        if answer.status == 503 {
            // It cannot know the permissions for a moment.
            answer.refused(503, "loading");
            continue;
        }
        let families = check(&answer);
        states.insert(if families["tally_ready"].1[0].2 == 1.0 { "ready" } else { "loading" });
    }
    server.wait_ready();
    assert!(states.contains("loading"), "it was never seen loading");
}

#[test]
fn it_needs_a_key_once_keys_exist() {
    let server = TestTally::start(TALLY);
    check(&server.client().get("/metrics"));
    let keys = ["admin", "server", "reader"].map(|role| key(&mut server.local(), role));
    server.client().get("/metrics").refused(401, "unauthorized");
    for key in keys {
        check(&server.client().with_key(&key).get("/metrics"));
    }
}

#[test]
fn open_it_needs_none() {
    let server = TestTally::start_set(TALLY, &[("TALLY_METRICS_OPEN", "true")]);
    let reader = key(&mut server.local(), "reader");
    check(&server.client().get("/metrics"));
    check(&server.client().with_key(&reader).get("/metrics"));
    server.client().get("/v1/status").refused(401, "unauthorized");
}

/// A credential that is sent is always checked.
#[test]
fn open_it_still_checks_a_key_that_is_sent() {
    let server = TestTally::start_set(TALLY, &[("TALLY_METRICS_OPEN", "true")]);
    key(&mut server.local(), "reader");
    server.client().with_key("tally_nobody_nothing").get("/metrics").refused(401, "unauthorized");
}

/// A scraper may know this server by any name.
#[test]
fn it_is_excepted_from_the_check_of_names() {
    let server = TestTally::start(TALLY);
    let named = |path: &str| Request::new("GET", path).header("Host", "metrics.internal:8420");
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(server.client().send(&named(path)).status, 200, "{path}");
    }
    server.client().send(&named("/v1/leaderboards")).refused(403, "host_refused");
}
