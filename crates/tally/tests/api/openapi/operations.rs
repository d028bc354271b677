//! Every documented answer, given by the real server and checked against its schema.
//!
//! Requests are the document's own examples, whole and with one thing wrong. Every unseen answer must be in a list with a
//! reason, so a documented answer that is never given is found.

use super::document::{AnswerKind, Document, Operation};
use super::schema::Unnamed;
use crate::TALLY;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tally_testkit::{Client, EventStream, Request, Response, TestTally};

/// Answers that need a fault, a moment or a competing request: other tests make them.
const NOT_HERE: [(u16, &str); 14] = [
    (409, "applications_lost"),
    (409, "no_archive_dir"),
    (500, "internal"),
    (500, "damaged"),
    (500, "leaderboard_damaged"),
    (503, ""),
    (503, "loading"),
    (503, "draining"),
    (503, "not_leader"),
    (503, "overloaded"),
    (503, "store_unavailable"),
    (503, "contention"),
    (503, "applications_unavailable"),
    (503, "outcome_unknown"),
];
/// That of the examples.
const MEMBER: &str = "019de3a8-5c00-7a3b-8c4d-5e6f708192a3";
const NEEDS_A_CONTEST: [&str; 4] = ["correctScore", "correctPlayerScore", "banPlayer", "restorePlayer"];
const NEEDS_A_RIVAL: &str = "idempotency_in_progress";

/// A tour through a server, with the observed answers.
pub(crate) struct Tour<'a> {
    pub(crate) document: &'a Document,
    pub(crate) local: Client,
    anonymous: Client,
    seen: BTreeSet<AnswerKind>,
    failures: Vec<String>,
    pub(crate) keys: u64,
    /// The member that stands for that of the examples: servers choose ids.
    pub(crate) member: String,
    /// Its token, once it has signed in.
    pub(crate) token: String,
}

impl<'a> Tour<'a> {
    fn new(document: &'a Document, server: &TestTally) -> Self {
        let (local, anonymous) = (server.local(), server.client());
        Self {
            document,
            local,
            anonymous,
            seen: BTreeSet::new(),
            failures: Vec::new(),
            keys: 0,
            member: MEMBER.into(),
            token: String::new(),
        }
    }

    /// A request of the examples, of the member that there is.
    fn of_member(&self, request: &Request) -> Request {
        let target = String::from_utf8_lossy(&request.target).replace(MEMBER, &self.member);
        Request { target: target.into_bytes(), ..request.clone() }
    }

    /// Sends as this machine's commands do, unless the request names its caller.
    pub(crate) fn send(&mut self, operation: &Operation, request: &Request) -> Response {
        let mut request = self.of_member(request);
        let says_who = request.headers.iter().any(|(name, _)| name == "Authorization");
        let answer = if operation.right.as_deref() == Some("own") && !says_who {
            request = request.key(&self.token);
            self.anonymous.send(&request)
        } else {
            self.local.send(&request)
        };
        self.note(operation, &request, &answer);
        answer
    }

    pub(crate) fn note(&mut self, operation: &Operation, request: &Request, answer: &Response) {
        match self.document.check(operation, answer) {
            Ok(seen) => drop(self.seen.insert(seen)),
            Err(why) => self.fail(operation, request, answer, &why),
        }
    }

    fn fail(&mut self, operation: &Operation, request: &Request, answer: &Response, why: &str) {
        let target = String::from_utf8_lossy(&request.target).into_owned();
        let status = answer.status;
        self.failures.push(format!("{} ({} {target}): {status}: {why}", operation.id, request.method));
    }

    /// Sends a request that must succeed with this status; a change is sent again under its key and must be a replay.
    pub(crate) fn good(&mut self, id: &str, status: u16, request: Request) -> Value {
        let document = self.document;
        let operation = document.operation(id);
        let change = operation.has("Idempotency-Key");
        self.keys += 1;
        let request = if change { request.idempotent(&format!("tour-{}", self.keys)) } else { request };
        let first = self.send(operation, &request);
        if first.status != status {
            self.fail(operation, &request, &first, &format!("wanted {status}: {}", first.text()));
        }
        if change {
            let again = self.send(operation, &request);
            if again.status != status || !again.is_replay() {
                self.fail(operation, &request, &again, "it is no replay");
            }
        }
        serde_json::from_slice(&first.body).unwrap_or_default()
    }

    /// Whether the document has this answer.
    pub(crate) fn has(&self, id: &str, status: u16, code: &str) -> bool {
        self.document.answers().contains(&(id.to_owned(), status, code.to_owned()))
    }

    pub(crate) fn example(&mut self, id: &str, status: u16) -> Value {
        self.good(id, status, self.document.operation(id).example(0))
    }

    /// Sends a request that must be refused so.
    pub(crate) fn refused(&mut self, id: &str, status: u16, code: &str, request: &Request) {
        let document = self.document;
        let operation = document.operation(id);
        let keyed = request.headers.iter().any(|(name, _)| name == "Idempotency-Key");
        let needs = id == "transferToPhone" && code != "idempotency_key_required" && !keyed;
        let request = &if needs { request.clone().idempotent("spoilt") } else { request.clone() };
        let answer = match code {
            "host_refused" | "origin_refused" => {
                let answer = self.anonymous.send(request);
                self.note(operation, request, &answer);
                answer
            }
            _ => self.send(operation, request),
        };
        if (answer.status, answer.code().as_str()) != (status, code) {
            self.fail(operation, request, &answer, &format!("wanted {status} {code}: {}", answer.text()));
        }
    }
}

#[test]
fn every_documented_answer_is_given_as_documented() {
    let server = TestTally::start_set(
        TALLY,
        &[
            ("TALLY_CURRENCIES_USD", "2"),
            ("TALLY_CURRENCIES_GEM", "0"),
            ("TALLY_WALLET_TRANSFERS_GEM", "false"),
            ("TALLY_WALLET_WITHDRAWALS_GEM", "false"),
            ("TALLY_WALLET_BALANCE_MAX_GEM", "100000"),
        ],
    );
    let document = Document::of(&mut server.client());
    let mut tour = Tour::new(&document, &server);
    successes(&mut tour);
    let reader = tour.local.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    let reader = reader["key"].as_str().expect("a key").to_owned();
    let prepared = tour.local.send(&Request::new("PUT", "/v1/leaderboards/taken").idempotent("taken"));
    prepared.expect(201);
    for (id, status, code) in document.answers() {
        let operation = document.operation(&id);
        if let Some(request) = spoilt(operation, &code, &reader) {
            tour.refused(&id, status, &code, &request);
        }
    }
    by_rules(&mut tour);
    super::members::payments(&mut tour);
    super::money::tour(&mut tour);
    super::contests::tour(&mut tour);
    endings(&mut tour);
    let (mut seen, mut failures) = (tour.seen, tour.failures);
    let (more, wrong) = narrow(&document);
    seen.extend(more);
    failures.extend(wrong);
    assert!(failures.is_empty(), "{} answers are wrong:\n{}", failures.len(), failures.join("\n"));
    let left_out = |(_, status, code): &AnswerKind| {
        code == NEEDS_A_RIVAL || NOT_HERE.contains(&(*status, code.as_str()))
    };
    let missing: Vec<AnswerKind> =
        document.answers().into_iter().filter(|one| !seen.contains(one) && !left_out(one)).collect();
    assert!(missing.is_empty(), "documented, but never given: {missing:#?}");
}

/// Every 2xx, mostly by the document's examples.
fn successes(tour: &mut Tour<'_>) {
    for id in [
        "getHealth",
        "getReadiness",
        "getStoreReadiness",
        "getRankingReadiness",
        "getApplicationsReadiness",
        "getOpenApi",
        "getDocs",
    ] {
        tour.example(id, 200);
    }
    tour.example("putLeaderboard", 201);
    tour.example("putLeaderboard", 200);
    let weekly = tour.document.operation("putLeaderboard").example(1);
    tour.good("putLeaderboard", 200, weekly);
    for number in 0..2 {
        let mut request = tour.document.operation("submitScore").example(number);
        request.target.extend_from_slice(["", "?windows=all"][number].as_bytes());
        tour.good("submitScore", 200, request);
    }
    tour.example("importChunk", 200);
    tour.example("getImport", 200);
    let batch = tour.document.operation("submitBatch").example(0);
    let answer = tour.local.send(&batch);
    tour.note(tour.document.operation("submitBatch"), &batch, &answer);
    assert!(answer.json()["results"][1]["error"].is_object(), "the example's second row is refused");
    let all_good = Request::new("POST", "/v1/scores/batch?windows=all")
        .json(&json!({"scores": [{"board": "goals", "player": "zico", "score": "3"}]}));
    tour.good("submitBatch", 200, all_good);
    tour.example("putPlayer", 201);
    tour.example("putPlayer", 200);
    tour.example("getPlayer", 200);
    super::players::found(tour);
    for id in ["listScores", "getRank", "listAround", "listAmong"] {
        tour.example(id, 200);
        let with = |query: &str| {
            let mut request = tour.document.operation(id).example(0);
            request.target.extend_from_slice(query.as_bytes());
            request.header("Tally-Int64", "string")
        };
        let expanded = if id == "getRank" { with("?period=all_time") } else { with("?expand=player") };
        tour.good(id, 200, expanded);
    }
    let page =
        tour.good("listScores", 200, Request::new("GET", "/v1/leaderboards/goals/scores?limit=1&min=-5"));
    let cursor = page["next_cursor"].as_str().expect("there are more");
    let next = format!("/v1/leaderboards/goals/scores?limit=1&cursor={cursor}");
    tour.good("listScores", 200, Request::new("GET", next));
    for id in ["banPlayer", "restorePlayer", "getLeaderboard", "listLeaderboards", "getStatus", "getMetrics"]
    {
        tour.example(id, 200);
    }
    super::players::banned(tour);
    tour.example("streamLeaderboard", 200);
    periods(tour);
    other_kinds(tour);
    super::members::tour(tour);
    tour.example("streamMe", 200);
    super::contests::played(tour);
    super::webhooks::tour(tour);
}

/// A board of periods only: its list, its windows by every kind of name, and scores that come too late for one.
fn periods(tour: &mut Tour<'_>) {
    tour.example("listPeriods", 200);
    tour.example("listPeriodPrizes", 200);
    tour.example("repayPeriodPrizes", 200);
    let monthly =
        json!({"name": "monthly", "schedule": "0 0 1 * *", "time_zone": "Asia/Seoul", "keep": 100_000});
    let hourly = json!({"name": "hourly", "schedule": "30 * * * *", "grace_s": 604_800});
    let definition = json!({"all_time": false, "periods": [monthly, hourly]});
    tour.good("putLeaderboard", 201, Request::new("PUT", "/v1/leaderboards/months").json(&definition));
    for player in ["pele", "zico"] {
        let row = json!({"player": player, "score": 1});
        tour.good("submitScore", 200, Request::new("POST", "/v1/leaderboards/months/scores").json(&row));
    }
    let list = "/v1/leaderboards/months/periods?limit=1";
    let page = tour.good("listPeriods", 200, Request::new("GET", list));
    let cursor = page["next_cursor"].as_str().expect("there are two");
    let page = tour.good("listPeriods", 200, Request::new("GET", format!("{list}&cursor={cursor}")));
    let named = page["items"][0]["period"].as_str().expect("a name").to_owned();
    for period in ["monthly", "hourly", "all_time", &named] {
        let period = tally_testkit::http::segment(period);
        for (id, path) in
            [("listScores", "scores"), ("getRank", "players/pele"), ("listAround", "players/pele/around")]
        {
            let target = format!("/v1/leaderboards/months/{path}?period={period}");
            tour.good(id, 200, Request::new("GET", target));
        }
        let among = Request::new("POST", format!("/v1/leaderboards/months/among?period={period}"));
        tour.good("listAmong", 200, among.json(&json!({"players": ["pele", "nobody"]})));
    }
    let late = json!({"board": "months", "player": "pele", "score": 1, "at": "1971-07-18T00:00:00Z"});
    let dated = json!({"board": "goals", "player": "pele", "score": 1, "at": "1971-07-18T00:00:00Z"});
    let batch = Request::new("POST", "/v1/scores/batch").json(&json!({"scores": [late, dated]}));
    let answer = tour.local.send(&batch);
    tour.note(tour.document.operation("submitBatch"), &batch, &answer);
    let results = &answer.json()["results"];
    assert_eq!(results[0]["error"]["code"], "period_closed", "{results}");
    assert_eq!(results[1]["closed_periods"], json!(["weekly:1971-07-12"]), "{results}");
}

/// Boards whose numbers have different forms.
fn other_kinds(tour: &mut Tour<'_>) {
    for (board, definition, scores) in [
        (
            "float",
            json!({"score": "float64", "order": "ascending"}),
            ["1.5", "\"inf\"", "\"-inf\"", "1e300", "-0.0"],
        ),
        (
            "sub",
            json!({"subscore": "descending"}),
            ["1", "-1", "9223372036854775807", "\"-9223372036854775808\"", "0"],
        ),
    ] {
        tour.good(
            "putLeaderboard",
            201,
            Request::new("PUT", format!("/v1/leaderboards/{board}")).json(&definition),
        );
        for (number, score) in scores.iter().enumerate() {
            let subscore = if board == "sub" { ",\"subscore\":\"-7\"" } else { "" };
            let body = format!("{{\"player\":\"p{number}\",\"score\":{score}{subscore}}}");
            for word in ["number", "string"] {
                let request = Request::new("POST", format!("/v1/leaderboards/{board}/scores"));
                let request = request.body("application/json", body.as_str()).header("Tally-Int64", word);
                tour.good("submitScore", 200, request);
            }
        }
        for word in ["number", "string"] {
            let request = Request::new("GET", format!("/v1/leaderboards/{board}/scores?order=worst"));
            tour.good("listScores", 200, request.header("Tally-Int64", word));
        }
    }
}

/// The example with one error that gives this code, for errors that exist for any operation.
fn spoilt(operation: &Operation, code: &str, reader: &str) -> Option<Request> {
    let request = operation.example(0);
    let media = operation.body.as_ref().map_or("application/json", |body| body.media.as_str());
    let asked = |query: &str| {
        let mut request = operation.example(0);
        let query = if request.target.contains(&b'?') { query.replacen('?', "&", 1) } else { query.into() };
        request.target.extend_from_slice(query.as_bytes());
        request
    };
    let elsewhere = |from: &str, to: &str| {
        let mut request = operation.example(0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replacen(from, to, 1).into_bytes();
        if operation.path.contains('{') {
            request.target = text(&request.target);
        } else {
            request.body = request.body.map(|body| text(&body));
        }
        request
    };
    let with_body = |media: &str, body: &[u8]| {
        let mut request = operation.example(0);
        request.headers.retain(|(name, _)| name != "Content-Type");
        request.body(media, body)
    };
    Some(match code {
        "unauthorized" => request.key("tally_nobody_0"),
        "forbidden" if operation.id == "listContestPrizes" => asked("?preview=true").key(reader),
        "forbidden" => request.key(reader),
        "host_refused" => request.header("Host", "tally.example"),
        "origin_refused" => request.header("Origin", "http://tally.example"),
        "unknown_parameter" => asked("?nope=1"),
        "invalid_parameter" if operation.has("Last-Event-ID") => request.header("Last-Event-ID", "?"),
        "invalid_parameter" => asked("?limit=%zz"),
        "invalid_cursor" => asked("?cursor=zz"),
        "period_not_found" if operation.id == "correctPlayerScore" => {
            changed_body(&request, |body| body["period"] = json!("fortnightly"))
        }
        "period_not_found" => asked("?period=fortnightly"),
        "malformed_json" => with_body(media, b"{"),
        "invalid_field" => with_body(media, b"[]"),
        "unknown_field" => {
            let body = request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            with_body(media, body.replacen('{', "{\"nope\":1,", 1).as_bytes())
        }
        "payload_too_large" => with_body(media, &vec![b' '; (2 << 20) + 1]),
        "unsupported_media_type" => with_body("text/plain", b"{}"),
        "leaderboard_not_found" => elsewhere("goals", "nope"),
        "player_not_found" if NEEDS_A_CONTEST.contains(&&*operation.id) => return None,
        "player_not_ranked" | "player_not_found" => elsewhere("pele", "nobody"),
        "series_not_found" => elsewhere("daily-cup", "nope"),
        "contest_not_found" => elsewhere("friday-cup", "nope"),
        "key_not_found" | "hold_not_found" | "transaction_not_found" => request,
        "member_not_found" => elsewhere(MEMBER, "017f22e2-79b0-71ec-8123-456789abcdec"),
        "idempotency_key_reused" if operation.right.as_deref() == Some("own") => return None,
        // Its contest has to be over.
        "idempotency_key_reused" if operation.id == "repayContest" => return None,
        "idempotency_key_reused" => request.idempotent("taken"),
        "login_taken" => request,
        "phone_taken" if operation.id != "createMember" => return None,
        "player_taken" if operation.id != "createMember" => return None,
        "phone_taken" => changed_body(&request, |body| body["login_id"] = json!("other")),
        "player_taken" => changed_body(&request, |body| {
            body["login_id"] = json!("other");
            body["phone_number"] = json!("010-9999");
        }),
        _ => return None,
    })
}

/// A request with another body.
fn changed_body(request: &Request, change: impl FnOnce(&mut Value)) -> Request {
    let mut body: Value = serde_json::from_slice(request.body.as_deref().unwrap_or_default()).expect("JSON");
    change(&mut body);
    Request { body: Some(body.to_string().into_bytes()), ..request.clone() }
}

/// Rejections that need more than one thing wrong with an example.
fn by_rules(tour: &mut Tour<'_>) {
    let put = |board: &str, body: Value| Request::new("PUT", format!("/v1/leaderboards/{board}")).json(&body);
    tour.refused("putLeaderboard", 409, "definition_conflict", &put("goals", json!({"order": "ascending"})));
    let nothing = json!({"all_time": false});
    tour.refused("putLeaderboard", 422, "invalid_definition", &put("new", nothing));
    tour.refused("putLeaderboard", 422, "reserved_name", &put("contest:cup", json!({})));
    let submit = |body: Value| Request::new("POST", "/v1/leaderboards/goals/scores").json(&body);
    let ahead = json!({"player": "p", "score": 1, "at": "9000-01-01T00:00:00Z"});
    tour.refused("submitScore", 422, "at_in_future", &submit(ahead));
    let late = json!({"player": "pele", "score": 1, "at": "1971-07-18T00:00:00Z"});
    let late = Request::new("POST", "/v1/leaderboards/months/scores").json(&late);
    tour.refused("submitScore", 409, "period_closed", &late);
    super::players::refused(tour);
    tour.refused("submitScore", 422, "score_overflow", &submit(json!({"player": "pele", "score": i64::MAX})));
    let chunk = |digest: &str, before: u64, after: u64| {
        let head = json!({"board": "goals", "digest": digest.repeat(64), "lines_before": before, "lines_after": after, "last": true});
        Request::new("POST", "/v1/imports").body("application/x-ndjson", head.to_string())
    };
    tour.refused("importChunk", 409, "import_out_of_order", &chunk("a", 5, 6));
    tour.good("importChunk", 200, chunk("b", 0, 9));
    tour.refused("importChunk", 409, "import_repeated", &chunk("b", 9, 12));
    for (id, what) in [("importMembers", "members"), ("importTransfers", "transfers")] {
        let chunk = |digest: &str, before: u64, after: u64| {
            let head = json!({"digest": digest.repeat(64), "lines_before": before, "lines_after": after, "last": true});
            Request::new("POST", format!("/v1/imports/{what}")).body("application/x-ndjson", head.to_string())
        };
        // Of which kind a file is does not matter here: its digest is its name.
        let (new, done) = if what == "members" { ("a", "b") } else { ("d", "e") };
        tour.refused(id, 409, "import_out_of_order", &chunk(new, 5, 6));
        tour.good(id, 200, chunk(done, 0, 9));
        tour.refused(id, 409, "import_repeated", &chunk(done, 9, 12));
    }
}

/// The deleting operations.
fn endings(tour: &mut Tour<'_>) {
    let created = tour.example("createKey", 201);
    let id = created["id"].as_str().expect("an id").to_owned();
    tour.good("listKeys", 200, Request::new("GET", "/v1/keys?limit=1"));
    tour.good("revokeKey", 204, Request::new("DELETE", format!("/v1/keys/{id}?force=false")));
    tour.good("listAudit", 200, Request::new("GET", format!("/v1/audit?limit=1&subject={id}")));
    tour.good(
        "listAudit",
        200,
        Request::new("GET", "/v1/audit?action=key.revoked&from=2020-01-01T00:00:00Z"),
    );
    tour.example("archiveLedger", 202);
    tour.good("listLedgerArchives", 200, Request::new("GET", "/v1/ledger/archives"));
    let admin = Request::new("POST", "/v1/keys").json(&json!({"role": "admin"}));
    let admin = tour.local.send(&admin).expect(201)["id"].as_str().expect("an id").to_owned();
    tour.refused("revokeKey", 409, "last_admin_key", &Request::new("DELETE", format!("/v1/keys/{admin}")));
    for id in ["removePlayer", "erasePlayer", "deleteLeaderboard"] {
        tour.example(id, 204);
    }
    tour.example("signOutMember", 200);
    tour.example("closeMember", 200);
}

/// Answers of a server whose bounds are near, and of bodies that do not arrive.
fn narrow(document: &Document) -> (BTreeSet<AnswerKind>, Vec<String>) {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let config = dir.path().join("tally.toml");
    let text = "[http]\nbody_timeout = \"100ms\"\n[events]\nstreams_max = 1\nkey_streams_max = 1\nmember_streams_max = 1\n[limits]\nboards = 1\nkeys = 1\n[contests]\napplications_max = 1\n[wallet]\ntransfers = false\n";
    std::fs::write(&config, text).expect("it can be written");
    let server = TestTally::start_with(TALLY, &["--config", config.to_str().expect("the path is text")]);
    let mut tour = Tour::new(document, &server);
    tour.example("putLeaderboard", 201);
    let another = Request::new("PUT", "/v1/leaderboards/another");
    tour.refused("putLeaderboard", 422, "too_many_boards", &another);
    super::contests::narrow(&mut tour);
    tour.example("createKey", 201);
    let request = document.operation("createKey").example(0);
    tour.refused("createKey", 422, "too_many_keys", &request);
    let made =
        json!({"login_id": "ann@example.org", "password": "correct horse", "name": "Ann", "pin": "0042"});
    tour.local.post("/v1/members", &made).expect(201);
    let signed_in = tour.example("signIn", 200);
    let member = signed_in["data"]["accessToken"].as_str().expect("a token").to_owned();
    tour.token.clone_from(&member);
    let pay = json!({"phoneNumber": "010-0000", "amount": 1, "password": 42});
    let pay = Request::new("POST", "/transfer/phone-num").json(&pay).idempotent("narrow");
    tour.refused("transferToPhone", 422, "not_transferable", &pay);
    streams(&mut tour, &server);
    let local = format!("tally_local_{}", server.token());
    for (id, status, code) in document.answers() {
        let cut = match code.as_str() {
            "body_timeout" => "Content-Length: 9\r\n\r\n{",
            "malformed_body" => "Transfer-Encoding: chunked\r\n\r\nnope\r\n",
            _ => continue,
        };
        let operation = document.operation(&id);
        let media = operation.body.as_ref().map_or("application/json", |body| body.media.as_str());
        let target = String::from_utf8_lossy(&operation.example(0).target).into_owned();
        let method = &operation.method;
        let token = if operation.right.as_deref() == Some("own") { &member } else { &local };
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: cut\r\n"
        );
        let bytes = format!("{head}Content-Type: {media}\r\n{cut}");
        let request = Request::new(method, &target);
        match server.client().raw(bytes.as_bytes()) {
            Ok(answer) => {
                tour.note(operation, &request, &answer);
                if (answer.status, answer.code()) != (status, code.clone()) {
                    tour.fail(operation, &request, &answer, &format!("wanted {status} {code}"));
                }
            }
            Err(error) => tour.failures.push(format!("{id}: {code}: no answer: {error}")),
        }
    }
    (tour.seen, tour.failures)
}

/// The limit is one stream: a second one of the same caller gets 429, any other 503.
fn streams(tour: &mut Tour<'_>, server: &TestTally) {
    let document = tour.document;
    let local = format!("tally_local_{}", server.token());
    for (opens, key) in [("streamLeaderboard", local), ("streamMe", tour.token.clone())] {
        let request = document.operation(opens).example(0).key(&key);
        // The one before takes a moment to end.
        let open = loop {
            match EventStream::open(server.address(), &request) {
                Ok(stream) => break stream,
                Err(answer) => assert_eq!(answer.code(), "too_many_streams"),
            }
        };
        for id in ["streamLeaderboard", "streamContest", "streamMe", "exportMember"] {
            let its_own = (id == "streamMe") == (opens == "streamMe");
            let status = if its_own { 429 } else { 503 };
            tour.refused(id, status, "too_many_streams", &document.operation(id).example(0));
        }
        drop(open);
    }
}

#[test]
fn examples_of_answers_are_as_their_schemas() {
    let server = TestTally::start(TALLY);
    let document = Document::of(&mut server.client());
    let mut checked = 0;
    for operation in &document.operations {
        for (status, response) in operation.responses.as_object().expect("there are responses") {
            let content = document.schemas.resolve(response)["content"].as_object();
            for media in content.into_iter().flat_map(|content| content.values()) {
                let Some(example) = media.get("example") else { continue };
                let right = document.schemas.check(&media["schema"], example, Unnamed::AsSaid);
                assert_eq!(right, Ok(()), "{} {status}", operation.id);
                checked += 1;
            }
        }
    }
    assert!(checked > document.operations.len() / 2, "only {checked} examples");
}

#[test]
fn what_is_nowhere_and_what_has_another_method_is_told_as_documented() {
    let server = TestTally::start(TALLY);
    let document = Document::of(&mut server.client());
    let mut client = server.client();
    for (request, name) in [
        (Request::new("GET", "/v1/nope"), "NotFound"),
        (Request::new("GET", "/docs/nope.js"), "NotFound"),
        (Request::new("PATCH", "/v1/leaderboards/goals"), "MethodNotAllowed"),
        (Request::new("POST", "/openapi.json"), "MethodNotAllowed"),
        (Request::new("POST", "/docs"), "MethodNotAllowed"),
    ] {
        let answer = client.send(&request);
        assert_eq!(document.check_component(name, &answer), Ok(()), "{request:?}: {answer:?}");
    }
}

#[test]
fn the_description_is_public_in_every_state() {
    let mut server = TestTally::start(TALLY);
    let document = Document::of(&mut server.client());
    server.local().post("/v1/keys", &json!({"role": "admin"})).expect(201);
    server.terminate();
    // It listens, and may well be loading.
    server.launch();
    let mut client = server.client();
    for path in ["/openapi.json", "/docs", "/docs/docs.css", "/docs/docs.js", "/docs/guide/", "/healthz"] {
        let far =
            Request::new("GET", path).header("Host", "tally.example").header("X-Forwarded-For", "192.0.2.1");
        let answer = client.send(&far.clone().header("Authorization", "Bearer nobody"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(client.send(&Request { method: "HEAD".into(), ..far }).status, 200, "{path}");
    }
    assert_eq!(client.get("/openapi.json").json(), document.schemas.document);
    for operation in ["getReadiness", "getMetrics", "listLeaderboards"].map(|id| document.operation(id)) {
        let answer = client.send(&operation.example(0));
        assert!(document.check(operation, &answer).is_ok(), "{answer:?}");
    }
    server.wait_ready();
}
