//! The server of the wrong requests, the shape of a problem, and whether anything changed.

use crate::TALLY;
use serde_json::{Value, json};
use std::cell::RefCell;
use tally_testkit::routes::Route;
use tally_testkit::{Client, Request, Response, TestTally, wait_until};

thread_local! {
    /// The token of the member that acts for itself.
    static TOKEN: RefCell<String> = const { RefCell::new(String::new()) };
    /// A webhook, and a delivery of it.
    static HOOK: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

pub(crate) const DIGEST: &str = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

/// Digests of passwords that cost no time.
const CHEAP: [(&str, &str); 2] =
    [("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"), ("TALLY_MEMBERS_PASSWORD_PASSES", "1")];

/// Text that is no id of a row, as it is written.
pub(crate) const BAD_IDS: [&str; 5] = ["null", "1", "\"\"", "\"a b\"", "\"ä\""];

/// The fields of an object as they are written, one of them with another value or left out.
pub(crate) fn replaced(mut fields: Vec<(&str, String)>, name: &str, value: Option<&str>) -> String {
    fields.retain(|(other, _)| *other != name);
    let kept = fields.iter().map(|(name, value)| (*name, value.as_str()));
    let fields = kept.chain(value.map(|value| (name, value)));
    fields.map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(",")
}

/// Refused requests before the data is read again. Reading it takes some thirty times as long as a refusal.
const READ_AFTER: usize = 25;

/// A server with data, and its state at first.
pub(crate) struct World {
    pub(crate) server: TestTally,
    client: Client,
    before: Vec<Value>,
    /// Refused requests since the data was read.
    refused: Vec<String>,
    failures: Vec<String>,
}

impl World {
    pub(crate) fn start() -> Self {
        let server = TestTally::start_set(TALLY, &CHEAP);
        let mut client = server.client();
        for (board, definition) in [
            ("b", json!({})),
            ("f", json!({"score": "float64"})),
            ("other", json!({})),
            ("sub", json!({"subscore": "descending"})),
            ("w", json!({"periods": [period("weekly", "0 0 * * 1"), period("yearly", "0 0 1 1 *")]})),
            ("y", json!({"all_time": false, "periods": [period("yearly", "0 0 1 1 *")]})),
        ] {
            client.put(&format!("/v1/leaderboards/{board}"), &definition).expect(201);
        }
        for player in ["p", "q", "r"] {
            for board in ["b", "f", "other", "w", "y"] {
                let row = json!({"player": player, "score": 5});
                client.post(&format!("/v1/leaderboards/{board}/scores"), &row).expect(200);
            }
        }
        make_money(&mut client);
        make_contests(&mut client);
        client.post("/v1/contest-series", &series("yearly")).expect(201);
        make_webhook(&mut client);
        client.put("/v1/players/q", &json!({"name": "Q", "metadata": {"level": 1}})).expect(201);
        client.post("/v1/members", &own()).expect(201);
        let signed_in = client.post("/auth/signin", &sign_in()).expect(200);
        let token = signed_in["data"]["accessToken"].as_str().expect("a token").to_owned();
        TOKEN.with_borrow_mut(|known| *known = token);
        let before = state(&mut client);
        Self { server, client, before, refused: Vec::new(), failures: Vec::new() }
    }

    /// A client for requests that may change something: what was refused before them is settled first.
    pub(crate) fn client(&mut self) -> &mut Client {
        self.settle();
        &mut self.client
    }

    /// Anything but a list of rows is refused whole, in the body of a batch; `row` would be taken.
    pub(crate) fn refuse_lists(&mut self, path: &str, name: &str, row: &Value) {
        let lists = [
            json!(null),
            json!(1),
            json!({}),
            json!([]),
            json!([1]),
            json!([row, null]),
            json!([[]]),
            json!(vec![row; 1_001]),
        ];
        let pointer = format!("/{name}");
        for body in lists.map(|list| json!({name: list})).into_iter().chain([json!({})]) {
            let request = Request::new("POST", path).json(&body);
            self.refuse(&request, 400, "invalid_field", Some(&pointer));
        }
        let request = Request::new("POST", path).json(&json!({name: [row], "extra": 1}));
        self.refuse(&request, 400, "unknown_field", Some("/extra"));
    }

    /// Sends a request that must be refused so, and must change nothing, which is seen soon or when the world ends. The errors
    /// are reported then, so that one wrong row of a table does not hide the others.
    pub(crate) fn refuse(
        &mut self,
        request: &Request,
        status: u16,
        code: &str,
        pointer: Option<&str>,
    ) -> Response {
        let answer = self.client.send(request);
        let wrong = check(&answer, request, status, code, pointer).err();
        self.refused.push(shown(request));
        if wrong.is_some() || self.refused.len() >= READ_AFTER {
            self.settle();
        }
        self.failures.extend(wrong.map(|wrong| format!("{}: {wrong}: {}", shown(request), answer.text())));
        answer
    }

    /// Notes a wrong reply.
    pub(crate) fn fail(&mut self, request: &Request, answer: &Response) {
        self.failures.push(format!("{}: {} {}", shown(request), answer.status, answer.text()));
    }

    /// Everything is as it was, after this request.
    pub(crate) fn unchanged(&mut self, request: &Request) {
        self.refused.push(shown(request));
        self.settle();
    }

    /// Everything is as it was, after all that was refused.
    fn settle(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        if refused.is_empty() {
            return;
        }
        let now = state(&mut self.client);
        if now != self.before {
            self.failures.push(format!("one of these changed something:\n{}", refused.join("\n")));
            self.before = now;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.settle();
            let (number, failures) = (self.failures.len(), self.failures.join("\n"));
            assert!(number == 0, "{number} rows failed:\n{failures}");
        }
    }
}

/// The member that acts for itself.
fn own() -> Value {
    let phone = "010-1234-5678";
    json!({"login_id": "own", "name": "Own", "password": "open sesame", "pin": "0042", "phone_number": phone})
}

fn sign_in() -> Value {
    json!({"loginId": "own", "password": "open sesame"})
}

/// Its valid bodies for `/transfer/phone-num`.
pub(crate) fn payment() -> Value {
    json!({"phoneNumber": "010-0000-0000", "amount": 1, "password": "0042"})
}

/// A request to this route with everything but a body.
pub(crate) fn bare(route: &Route) -> Request {
    let request = Request::new(&route.method, path(route, &[]));
    let request = match route.right.as_str() {
        "Own" => request.key(&TOKEN.with_borrow(String::clone)),
        _ => request,
    };
    if route.path == "/transfer/phone-num" { request.idempotent("needed") } else { request }
}

/// A period in UTC.
pub(crate) fn period(name: &str, schedule: &str) -> Value {
    json!({"name": name, "schedule": schedule})
}

/// Ids of the server: two members, a hold and a transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Money {
    pub(crate) ann: String,
    pub(crate) bob: String,
    hold: String,
    transaction: String,
}

thread_local! {
    /// Of the world that this test's thread has started last: requests are made without one.
    static MONEY: RefCell<Money> = RefCell::default();
}

pub(crate) fn money() -> Money {
    MONEY.with_borrow(Clone::clone)
}

fn make_money(client: &mut Client) {
    let mut make = |path: &str, body: &Value, name: &str| {
        client.post(path, body).expect(201)[name].as_str().expect("an id").to_owned()
    };
    let ann = make("/v1/members", &json!({"login_id": "ann", "name": "Ann"}), "id");
    let bob = make("/v1/members", &json!({"login_id": "bob", "name": "Bob"}), "id");
    make("/v1/deposits", &json!({"to": ann, "amount": 100}), "group_id");
    // None of it is held, so all of it can be reversed.
    let transaction = make("/v1/deposits", &json!({"to": bob, "amount": 100}), "group_id");
    let hold = make("/v1/holds", &json!({"member": ann, "amount": 10}), "id");
    MONEY.set(Money { ann, bob, hold, transaction });
}

/// A contest in each state that some route needs, each named as its state, with the player p in it.
fn make_contests(client: &mut Client) {
    client.post("/v1/contests", &json!({"id": "cancelled", "title": "Cancelled"})).expect(201);
    client.post("/v1/contests/cancelled/cancel", &json!({})).expect(200);
    let acts = ["open", "start", "finish", "settle"];
    for (done, id) in ["draft", "open", "running", "finished", "settled"].into_iter().enumerate() {
        client.post("/v1/contests", &json!({"id": id, "title": id, "staff": ["boss"]})).expect(201);
        for act in acts.iter().take(done) {
            client.post(&format!("/v1/contests/{id}/{act}"), &json!({})).expect(200);
            if *act == "open" {
                let applications = format!("/v1/contests/{id}/applications");
                client.post(&applications, &json!({"player": "p"})).expect(201);
                if id != "open" {
                    client.post(&format!("{applications}/accept"), &json!({"players": ["p"]})).expect(200);
                }
            }
        }
    }
}

/// A series of contests, one a year.
pub(crate) fn series(id: &str) -> Value {
    json!({"id": id, "template": {"title": "S"}, "open": "0 0 1 1 *", "start": "0 1 1 1 *", "end": "0 2 1 1 *"})
}

/// A contest in the state that a route needs.
fn contest_of(route: &Route) -> &'static str {
    match route.path.rsplit('/').next().unwrap_or_default() {
        "open" | "{contest}" => "draft",
        "players" | "members" | "finish" | "ban" | "restore" => "running",
        "settle" | "correct" => "finished",
        "prizes" | "repay" => "settled",
        "refunds" => "cancelled",
        _ => "open",
    }
}

/// Everything a caller can see of the data.
fn state(client: &mut Client) -> Vec<Value> {
    let Money { ann, bob, hold, transaction } = money();
    let mut state = vec![
        client.get(&format!("/v1/members/{ann}")).expect(200),
        client.get("/v1/members?login_id=new").expect(200),
        client.get(&format!("/v1/wallets/{ann}")).expect(200),
        client.get(&format!("/v1/wallets/{bob}")).expect(200),
        client.get(&format!("/v1/wallets/{ann}/transactions")).expect(200),
        client.get(&format!("/v1/holds/{hold}")).expect(200),
        client.get(&format!("/v1/ledger/transactions/{transaction}")).expect(200),
        client.get("/v1/ledger/accounts").expect(200),
        client.get("/v1/keys?limit=1000").expect(200),
        client.get("/v1/audit?limit=1000").expect(200),
        client.get("/v1/leaderboards?limit=1000").expect(200),
        client.get(&format!("/v1/imports/b/{DIGEST}")).expect(200),
        client.get("/v1/contests?limit=1000").expect(200),
        client.get("/v1/contest-series?limit=1000").expect(200),
        client.get("/v1/contests/open/applications?limit=1000").expect(200),
        client.get("/v1/webhooks").expect(200),
    ];
    state.push(client.get("/v1/members?login_id=own").expect(200));
    for board in ["w", "y"] {
        state.push(client.get(&format!("/v1/leaderboards/{board}/periods")).expect(200));
    }
    for board in ["b", "f", "other", "sub", "w", "y"] {
        state.push(client.get(&format!("/v1/leaderboards/{board}/scores?limit=1000")).expect(200));
    }
    for player in ["p", "q", "new"] {
        let profile = client.get(&format!("/v1/players/{player}"));
        state.push(json!([profile.status, profile.json()["name"], profile.json()["metadata"]]));
    }
    state
}

/// The path of a route, valid but for these parameters.
pub(crate) fn path(route: &Route, values: &[(&str, &str)]) -> String {
    let given = |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    let Money { ann, hold, transaction, .. } = money();
    let (webhook, delivery) = HOOK.with_borrow(Clone::clone);
    let defaults = [
        ("board", "b"),
        ("player", "p"),
        ("digest", DIGEST),
        ("key", "abc"),
        ("member", &*ann),
        ("hold", &*hold),
        ("transaction", &*transaction),
        ("contest", contest_of(route)),
        ("series", "yearly"),
        ("webhook", &*webhook),
        ("delivery", &*delivery),
    ];
    route.path_with(&defaults.map(|(name, default)| (name, given(name).unwrap_or(default))))
}

/// A valid request to this route.
pub(crate) fn valid(route: &Route) -> Request {
    let request = bare(route);
    let Money { ann, bob, .. } = money();
    match (route.method.as_str(), route.path.as_str()) {
        ("POST", "/auth/signin") => request.json(&sign_in()),
        ("POST", "/transfer/phone-num") => request.json(&payment()),
        ("POST", "/v1/contest-series") => request.json(&series("new")),
        ("PATCH", "/v1/contest-series/{series}") => request.json(&json!({"ahead": 2})),
        ("POST", "/v1/contests") => request.json(&json!({"id": "new", "title": "New"})),
        ("PATCH", "/v1/contests/{contest}") => request.json(&json!({"title": "New"})),
        ("POST", path) if path.ends_with("/applications") => request.json(&json!({"player": "new"})),
        ("POST", path) if path.contains("/applications/") => request.json(&json!({"players": ["p"]})),
        ("POST", path) if path.ends_with("/correct") => request.json(&json!({"score": 1, "reason": "r"})),
        ("POST", path) if path.starts_with("/v1/contests/") => request,
        ("PATCH", "/v1/members/{member}") => request.json(&json!({"name": "New"})),
        ("POST", path)
            if ["/close", "/erase", "/repay", "/unlock-pin", "/sign-out"]
                .iter()
                .any(|end| path.ends_with(end)) =>
        {
            request
        }
        ("POST", "/v1/imports") => request.body("application/x-ndjson", import(&head(), &[row()])),
        ("POST", "/v1/imports/members") => {
            request.body("application/x-ndjson", import(&ledger_head(), &[member_row()]))
        }
        ("POST", "/v1/imports/transfers") => {
            request.body("application/x-ndjson", import(&ledger_head(), &[transfer_row()]))
        }
        ("POST", "/v1/keys") => request.json(&json!({"role": "reader"})),
        ("POST", "/v1/ledger/archives") => request.json(&json!({"before": "1970-02"})),
        ("POST", "/v1/webhooks") => request.json(&hook()),
        ("PATCH", "/v1/webhooks/{webhook}") => request.json(&json!({"enabled": false})),
        ("POST", path) if path.starts_with("/v1/webhooks/") => request,
        ("GET", "/v1/players") => Request::new("GET", "/v1/players?prefix=p"),
        ("GET", "/v1/members") => Request::new("GET", "/v1/members?login_id=ann"),
        ("POST", "/v1/members") => request.json(&json!({"login_id": "new", "name": "New"})),
        ("POST", "/v1/deposits") => request.json(&json!({"to": ann, "amount": 1})),
        ("POST", "/v1/withdrawals") => request.json(&json!({"from": ann, "amount": 1})),
        ("POST", "/v1/transfers") => request.json(&json!({"from": ann, "to": bob, "amount": 1})),
        ("POST", "/v1/transfers/batch") => {
            request.json(&json!({"transfers": [{"from": ann, "to": bob, "amount": 1}]}))
        }
        ("POST", "/v1/holds") => request.json(&json!({"member": ann, "amount": 1})),
        ("POST", path) if ["/capture", "/void", "/reverse"].iter().any(|end| path.ends_with(end)) => request,
        ("POST", "/v1/scores/batch") => {
            request.json(&json!({"scores": [{"board": "b", "player": "new", "score": 1}]}))
        }
        ("POST", "/v1/ranks") => request.json(&json!({"ranks": [{"board": "b", "player": "p"}]})),
        ("POST", path) if path.ends_with("/among") => request.json(&json!({"players": ["p"]})),
        ("POST", path) if path.ends_with("/ban") || path.ends_with("/restore") => request,
        ("POST", _) => request.json(&json!({"player": "new", "score": 1})),
        ("PUT", _) => request.json(&json!({})),
        _ => request,
    }
}

/// A webhook whose receiver is refused: its address is private.
pub(crate) fn hook() -> Value {
    json!({"url": "https://localhost:9/", "events": ["contest"]})
}

/// Makes a webhook, and an event that it does not get.
fn make_webhook(client: &mut Client) {
    let made = client.post("/v1/webhooks", &hook()).expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    client.post("/v1/contests", &json!({"id": "told", "title": "Told"})).expect(201);
    let mut delivery = String::new();
    wait_until("the delivery fails", || {
        let page = client.get(&format!("/v1/webhooks/{id}/deliveries")).expect(200);
        let told = page["items"].as_array().into_iter().flatten().find(|one| one["topic"] == "contest:told");
        delivery = told.and_then(|one| one["id"].as_str()).unwrap_or_default().to_owned();
        !delivery.is_empty()
    });
    HOOK.with_borrow_mut(|known| *known = (id, delivery));
}

/// The head of an import's chunk.
pub(crate) fn head() -> Value {
    json!({"board": "b", "digest": DIGEST, "lines_before": 0, "lines_after": 2, "last": false})
}

/// The head of a chunk of members or of transfers.
pub(crate) fn ledger_head() -> Value {
    json!({"digest": DIGEST, "lines_before": 0, "lines_after": 2, "last": false})
}

/// A row of a chunk of members.
pub(crate) fn member_row() -> Value {
    json!({"line": 2, "login_id": "new"})
}

/// A row of a chunk of transfers.
pub(crate) fn transfer_row() -> Value {
    json!({"line": 2, "from": "new", "to": "other", "amount": 1})
}

/// A row of an import's chunk.
pub(crate) fn row() -> Value {
    json!({"line": 2, "player": "new", "score": 1})
}

/// A chunk.
pub(crate) fn import(head: &Value, rows: &[Value]) -> String {
    rows.iter().fold(head.to_string(), |body, row| format!("{body}\n{row}"))
}

fn shown(request: &Request) -> String {
    let body: String =
        request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default().chars().take(200).collect();
    let target = String::from_utf8_lossy(&request.target).into_owned();
    format!("{} {target} {:?} {body}", request.method, request.headers)
}

/// Checks the one shape of every error; returns its defect.
fn check(
    answer: &Response,
    request: &Request,
    status: u16,
    code: &str,
    pointer: Option<&str>,
) -> Result<(), String> {
    let wanted = (status, code, Some("application/problem+json"));
    if (answer.status, answer.code().as_str(), answer.header("content-type")) != wanted {
        return Err(format!("wanted {wanted:?}, got {}", answer.status));
    }
    let problem = answer.json();
    for member in ["type", "title", "detail", "instance", "code", "request_id"] {
        if problem[member].as_str().unwrap_or_default().is_empty() {
            return Err(format!("no `{member}`"));
        }
    }
    let path = request.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    for (member, value) in [
        ("status", json!(status)),
        ("request_id", json!(answer.header("x-request-id"))),
        ("instance", json!(String::from_utf8_lossy(path))),
    ] {
        if problem[member] != value {
            return Err(format!("`{member}` is not {value}"));
        }
    }
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    if errors
        .iter()
        .any(|error| ["pointer", "code", "detail"].iter().any(|member| !error[member].is_string()))
    {
        return Err("an error is not whole".into());
    }
    let first = errors.first();
    if first.and_then(|error| error["pointer"].as_str()) != pointer {
        return Err(format!("wanted the pointer {pointer:?}"));
    }
    if first.is_some_and(|error| error["code"] != code) {
        return Err("the first error has another code".into());
    }
    Ok(())
}
