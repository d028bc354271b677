//! Requests made from the document by seeded chance, whole and spoilt, against the real binary.
//!
//! The document's own schemas decide whether a request is within the document, after it was made. Every answer must be
//! documented and no fault. A request outside the document never succeeds. One within it is never called malformed, except
//! for the few rules that a schema cannot express. Not here: whether an answer is right (`model.rs`).

use super::document::{Document, Operation, Parameter};
use super::schema::Unnamed;
use crate::TALLY;
use serde_json::{Map, Value, json};
use tally_testkit::http::segment;
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request, Response, Rng, TestTally};

const REQUESTS: usize = 2_500;
const BOARDS: [&str; 6] = ["a", "b", "c", "ä/ö", "contest:x", " "];
const PLAYERS: [&str; 8] = ["p", "q", "José", "a@b", "%2F", "\n", "x y", "日本"];
const TEXTS: [&str; 10] = [
    "",
    "a",
    ".",
    "..",
    "nan",
    "1e5",
    "-1",
    "2026-11-21T08:20:00+09:00",
    "\u{0}\u{7f}",
    "99999999999999999999",
];

/// A request, and its parts that the document does not allow.
struct Made {
    request: Request,
    outside: Vec<String>,
    /// Rows of a batch that are outside: they fail alone.
    bad_rows: Vec<usize>,
}

struct Maker<'a> {
    document: &'a Document,
    rng: Rng,
    cursors: Vec<String>,
    keys: Vec<String>,
    webhooks: Vec<String>,
    members: Vec<String>,
    holds: Vec<String>,
    movements: Vec<String>,
}

#[test]
fn every_answer_to_random_requests_is_in_the_document() {
    let server = TestTally::start_set(TALLY, &[("TALLY_CURRENCIES_USD", "2")]);
    let mut client = server.local();
    let document = Document::of(&mut client);
    let mut maker = Maker {
        document: &document,
        rng: Rng::of("openapi"),
        cursors: Vec::new(),
        keys: Vec::new(),
        webhooks: Vec::new(),
        members: rich(&mut client),
        holds: Vec::new(),
        movements: Vec::new(),
    };
    let (mut good, mut bad) = (0, 0);
    for number in 0..soak(REQUESTS) {
        let operation = maker.rng.pick(&document.operations).clone();
        let made = maker.make(&operation);
        let answer = client.send(&made.request);
        if let Err(why) = check(&document, &operation, &made, &answer) {
            panic!(
                "request {number}, {}: {why}\noutside: {:?}\nrequest: {}\nanswer: {} {:?} {}",
                operation.id,
                made.outside,
                shown(&made.request),
                answer.status,
                answer.headers,
                answer.text()
            );
        }
        if answer.status < 300 {
            good += 1
        } else {
            bad += 1
        }
        maker.learn(&answer);
    }
    // Neither half may become empty: then nothing is tested.
    assert!(good > soak(REQUESTS) / 5 && bad > soak(REQUESTS) / 5, "{good} good, {bad} bad");
}

/// Members with money.
fn rich(client: &mut Client) -> Vec<String> {
    let one = |name| {
        let made = client.post("/v1/members", &json!({"login_id": name, "name": name})).expect(201);
        client.post("/v1/deposits", &json!({"to": made["id"], "amount": 1_000})).expect(201);
        made["id"].as_str().expect("an id").to_owned()
    };
    ["ann", "bob"].map(one).to_vec()
}

fn check(document: &Document, operation: &Operation, made: &Made, answer: &Response) -> Result<(), String> {
    if answer.status == 500 {
        return Err("a fault".into());
    }
    document.check(operation, answer)?;
    let good = answer.status < 300;
    if good && !made.outside.is_empty() {
        return Err("it is outside the document and succeeds".into());
    }
    if good {
        for row in &made.bad_rows {
            if !answer.json()["results"][*row]["error"].is_object() {
                return Err(format!("row {row} is outside the document and succeeds"));
            }
        }
    }
    let malformed = [400, 413, 415].contains(&answer.status);
    if made.outside.is_empty() && malformed && !beyond_schemas(operation, answer) {
        return Err("it is within the document and is called malformed".into());
    }
    Ok(())
}

/// Rejections of requests that the schemas allow: they depend on the board, on the page before, or on two fields at once.
fn beyond_schemas(operation: &Operation, answer: &Response) -> bool {
    let body = answer.json();
    let pointers = body["errors"].as_array().cloned().unwrap_or_default();
    let pointers: Vec<&str> = pointers.iter().filter_map(|error| error["pointer"].as_str()).collect();
    let allowed = |pointer: &&str| match operation.id.as_str() {
        "submitScore" => ["/score", "/subscore", "/at"].contains(pointer),
        "correctPlayerScore" => ["/score", "/subscore"].contains(pointer),
        "listMembers" => ["login_id", "phone_number", "player"].contains(pointer),
        // It has more than spaces.
        "findPlayers" | "listContests" => *pointer == "prefix",
        "createMember" | "updateMember" => ["/login_id", "/phone_number", "/pin"].contains(pointer),
        "listScores" => ["offset", "min", "max"].contains(pointer),
        "importChunk" | "importMembers" | "importTransfers" => {
            let of_rows = ["/line", "/at", "/login_id", "/phone_number", "/pin"];
            of_rows.iter().any(|name| pointer.ends_with(name)) || *pointer == "/0/lines_after"
        }
        // Which prizes and times go together, and that a currency exists.
        "createContest" | "updateContest" | "createContestSeries" | "updateContestSeries" => true,
        "applyToContest" => *pointer == "/player",
        // That a currency exists, and that the key may make money.
        "createKey" => *pointer == "/mint_caps",
        // What an address must be.
        "createWebhook" | "updateWebhook" => *pointer == "/url",
        _ => false,
    };
    answer.code() == "invalid_cursor" || (!pointers.is_empty() && pointers.iter().all(allowed))
}

fn shown(request: &Request) -> String {
    let body = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()).into_owned();
    let target = String::from_utf8_lossy(&request.target).into_owned();
    format!(
        "{} {target} {:?} {}",
        request.method,
        request.headers,
        body.chars().take(2_000).collect::<String>()
    )
}

impl Maker<'_> {
    fn make(&mut self, operation: &Operation) -> Made {
        let mut made =
            Made { request: Request::new(&operation.method, ""), outside: Vec::new(), bad_rows: Vec::new() };
        let mut path = operation.path.clone();
        let mut query: Vec<String> = Vec::new();
        for parameter in &operation.parameters {
            let chance = if parameter.name == "cursor" { 10 } else { 30 };
            if parameter.place != "path" && !self.rng.percent(chance) {
                continue;
            }
            let text = self.parameter(parameter);
            self.note(&mut made, &parameter.name, &parameter.schema, &text);
            match parameter.place.as_str() {
                "path" => path = path.replace(&format!("{{{}}}", parameter.name), &segment(&text)),
                "query" => query.push(format!("{}={}", parameter.name, segment(&text))),
                _ => made.request.headers.push((parameter.name.clone(), text)),
            }
        }
        if operation.right.is_some() && self.rng.percent(4) {
            let wrong = ["nope=1", "limit=%zz", "limit=1&limit=1", "%FF", "Limit=1"];
            query.push((*self.rng.pick(&wrong)).to_owned());
            made.outside.push("the query".into());
        }
        let mark = if query.is_empty() { "" } else { "?" };
        made.request.target = format!("{path}{mark}{}", query.join("&")).into_bytes();
        self.body(operation, &mut made);
        made
    }

    /// A text for a parameter: mostly one that fits.
    fn parameter(&mut self, parameter: &Parameter) -> String {
        if self.rng.percent(90) {
            let value = self.value(&parameter.schema, &parameter.name);
            return value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        }
        let wrong = match parameter.place.as_str() {
            "path" => &TEXTS[1..],
            "query" => &TEXTS[..],
            _ => &["a b", "", "x"],
        };
        (*self.rng.pick(wrong)).to_owned()
    }

    fn note(&self, made: &mut Made, name: &str, schema: &Value, text: &str) {
        let value = self.document.typed(schema, text);
        if let Err(why) = self.document.schemas.check(schema, &value, Unnamed::AsSaid) {
            made.outside.push(format!("{name}: {why}"));
        }
    }

    fn body(&mut self, operation: &Operation, made: &mut Made) {
        let Some(body) = &operation.body else { return };
        if !body.required && self.rng.percent(50) {
            return;
        }
        let mut values = match &body.lines {
            None => vec![self.value(&body.schema, "")],
            Some(lines) => self.chunk(lines),
        };
        if self.rng.percent(30) {
            let at = self.below(values.len());
            self.spoil(&mut values[at]);
        }
        let mut wrong = Vec::new();
        for (number, value) in values.iter().enumerate() {
            let schema = match &body.lines {
                None => &body.schema,
                Some((first, _)) if number == 0 => first,
                Some((_, rest)) => rest,
            };
            if let Err(why) = self.document.schemas.check(schema, value, Unnamed::AsSaid) {
                wrong.push(why);
            }
        }
        let rows = match operation.id.as_str() {
            "submitBatch" => self.bad_rows(&values[0], ("scores", "BatchRow")),
            "transferBatch" => self.bad_rows(&values[0], ("transfers", "TransferRow")),
            _ => None,
        };
        match rows {
            Some(rows) => made.bad_rows = rows,
            None => made.outside.append(&mut wrong),
        }
        let mut text = values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let mut media = body.media.clone();
        if self.rng.percent(2) {
            // No JSON ends so, whatever was cut.
            text.truncate(text.floor_char_boundary(text.len() / 2));
            text.push('{');
            made.outside.push("cut".into());
        }
        if self.rng.percent(2) {
            media = "text/json".into();
            made.outside.push("the type".into());
        }
        made.request.headers.push(("Content-Type".into(), media));
        made.request.body = Some(text.into_bytes());
    }

    /// The rows of a batch that are outside the document, where nothing else of it can be: they fail alone.
    fn bad_rows(&self, batch: &Value, (list, schema): (&str, &str)) -> Option<Vec<usize>> {
        let row = &self.document.schemas.document["components"]["schemas"][schema];
        let rows = batch[list].as_array().filter(|rows| rows.iter().all(Value::is_object))?;
        let whole = !rows.is_empty() && batch.as_object().is_some_and(|object| object.len() == 1);
        let bad = |at: &usize| self.document.schemas.check(row, &rows[*at], Unnamed::AsSaid).is_err();
        whole.then(|| (0..rows.len()).filter(bad).collect())
    }

    /// Lines of an import that follow each other, mostly.
    fn chunk(&mut self, (first, rest): &(Value, Value)) -> Vec<Value> {
        let mut lines = vec![self.value(first, "")];
        let count = self.rng.below(4);
        lines[0]["lines_before"] = json!(0);
        lines[0]["lines_after"] = json!(count);
        for number in 1..=count {
            let mut line = self.value(rest, "");
            line["line"] = json!(number);
            lines.push(line);
        }
        lines
    }

    /// A value that fits a schema, small and likely to equal others.
    fn value(&mut self, schema: &Value, hint: &str) -> Value {
        let hint = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or(hint);
        if let Some(named) = self.named(hint) {
            return named;
        }
        let schema = self.document.schemas.resolve(schema).clone();
        if let Some(choices) = schema["enum"].as_array() {
            return self.rng.pick(choices).clone();
        }
        match schema["type"].as_str() {
            Some("object") => self.object(&schema),
            Some("array") => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                let count = least + self.rng.below(4);
                Value::Array((0..count).map(|_| self.value(&schema["items"], hint)).collect())
            }
            Some("integer") => {
                let least = schema["minimum"].as_i64().unwrap_or(0);
                let most = schema["maximum"].as_i64().unwrap_or(50).min(least + 50);
                json!(self.rng.between(least, most))
            }
            Some("boolean") => json!(self.rng.percent(50)),
            Some("string") => json!(*self.rng.pick(&["a", "all_time", "0 0 * * 1", "UTC"])),
            other => panic!("{hint}: the type {other:?} cannot be made here"),
        }
    }

    /// Values whose form a pattern says, by their name.
    fn named(&mut self, name: &str) -> Option<Value> {
        let score = |number: i64| if number % 3 == 0 { json!(number.to_string()) } else { json!(number) };
        let amount = score;
        Some(match name {
            "BoardId" => json!(*self.rng.pick(&BOARDS)),
            "PlayerId" => json!(*self.rng.pick(&PLAYERS)),
            "ScoreIn" if self.rng.percent(20) => self
                .rng
                .pick(&[json!(0.5), json!("inf"), json!(i64::MAX), json!("1e3"), json!("-.5")])
                .clone(),
            "ScoreIn" | "Int64In" => score(self.rng.between(-40, 40)),
            // The document cannot say that the least is not above the most.
            "amount_min" => json!(self.rng.between(1, 20).to_string()),
            "amount_max" => json!(self.rng.between(20, 40).to_string()),
            "min" | "max" => json!(self.rng.between(-40, 40).to_string()),
            "BalanceMarks" => self.rng.pick(&[json!({}), json!({"KRW": 5, "USD": "7"})]).clone(),
            "period" if self.rng.percent(80) => json!("all_time"),
            "InstantIn" => {
                let instants = [
                    "2020-02-29T23:59:59Z",
                    "1969-12-31t00:00:00.123456789+14:00",
                    "2026-01-01T00:00:00.5-00:00",
                ];
                json!(*self.rng.pick(&instants))
            }
            "IdempotencyKey" => json!(format!("k{}", self.rng.below(60))),
            "Cursor" if self.cursors.is_empty() => json!("bm9uZQ"),
            "Cursor" => json!(self.rng.pick(&self.cursors.clone())),
            "Digest" => json!(self.rng.pick(&["0", "a", "F"]).repeat(64)),
            "KeyId" if self.keys.is_empty() => json!("none"),
            "KeyId" => json!(self.rng.pick(&self.keys.clone())),
            "PhoneNumberIn" | "PhoneNumberOrNull" | "phone_number" => {
                json!(*self.rng.pick(&["010-1234", "+82 10 1111", "0049 30 123456"]))
            }
            "PasswordOrNull" => self.rng.pick(&[json!("a"), json!(null)]).clone(),
            "GivenPin" | "PinOrNull" => json!(*self.rng.pick(&["0042", "12345678"])),
            "ContestId" => json!(*self.rng.pick(&["cup", "cup.2", "x"])),
            "ActingPlayer" => json!(*self.rng.pick(&["p", "q", "a%40b"])),
            "InstantOrNull" => self.rng.pick(&[json!(null), json!("2020-02-29T23:59:59Z")]).clone(),
            "EntryFeeOrNull" => {
                self.rng.pick(&[json!(null), json!({"currency": "KRW", "amount": "1"})]).clone()
            }
            "PoolOrNull" => {
                let pool =
                    json!({"prizes": [{"from": 1, "to": 2, "share": 4_000}], "rake": 500, "min": "70"});
                self.rng.pick(&[json!(null), pool]).clone()
            }
            "PlayersMinOrNull" | "JoinSecondsOrNull" | "AttemptsMaxOrNull" => {
                self.rng.pick(&[json!(null), json!(1), json!(3)]).clone()
            }
            "ReviewOrNull" => self.rng.pick(&[json!(null), json!(0), json!(3_600)]).clone(),
            "DivisionSizeOrNull" => self.rng.pick(&[json!(null), json!(1), json!(50)]).clone(),
            "NewPin" => json!(*self.rng.pick(&["0042", "12345678"])),
            "WebhookId" => self.id(&self.webhooks.clone()),
            "WebhookUrl" => json!(*self.rng.pick(&["https://localhost:9/", "http://localhost:9/"])),
            "DeliveryId" => json!("b1.1.1"),
            "MemberId" => self.id(&self.members.clone()),
            "HoldId" => self.id(&self.holds.clone()),
            "TransactionId" => self.id(&self.movements.clone()),
            "Currency" => json!(*self.rng.pick(&["KRW", "KRW", "KRW", "USD"])),
            "AmountIn" => amount(self.rng.between(1, 40)),
            "avatar_url" => json!("https://example.com/a.png"),
            "metadata" => json!({"level": self.rng.below(9), "tags": ["a", null]}),
            _ => return None,
        })
    }

    /// One of these ids, or an unknown one.
    fn id(&mut self, known: &[String]) -> Value {
        let nobody = "0190f8a0-0000-7000-8000-000000000000".to_owned();
        if known.is_empty() || self.rng.percent(5) { json!(nobody) } else { json!(self.rng.pick(known)) }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut object = Map::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            // Most boards have no subscore, and this version has no periods.
            let chance = if ["subscore", "periods"].contains(&name.as_str()) { 10 } else { 40 };
            if required.contains(&json!(name)) || self.rng.percent(chance) {
                object.insert(name.clone(), self.value(member, name));
            }
        }
        Value::Object(object)
    }

    /// Changes one thing somewhere inside.
    fn spoil(&mut self, value: &mut Value) {
        let deeper = self.rng.percent(75);
        match value {
            Value::Object(object) if deeper && !object.is_empty() => {
                let name = object.keys().nth(self.below(object.len())).cloned().expect("it has so many");
                match self.rng.below(4) {
                    0 => drop(object.remove(&name)),
                    1 => drop(object.insert("nope".into(), json!(1))),
                    _ => self.spoil(&mut object[&name]),
                }
            }
            Value::Array(list) if deeper && !list.is_empty() => {
                let at = self.below(list.len());
                self.spoil(&mut list[at]);
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::String(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Null => *value = self.junk(),
        }
    }

    fn junk(&mut self) -> Value {
        let number: Value = serde_json::from_str("1e300").expect("a number");
        let all = [
            json!(null),
            json!(true),
            json!(-1),
            json!(0),
            json!(0.5),
            json!(u64::MAX),
            number,
            json!([]),
            json!({}),
            json!([{}]),
            json!({"a": {"b": []}}),
            json!("x".repeat(129)),
            json!("ä".repeat(1_200)),
        ];
        match self.rng.below(3) {
            0 => json!(*self.rng.pick(&TEXTS)),
            _ => self.rng.pick(&all).clone(),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.rng.below(end as u64)).expect("an index fits")
    }

    /// Cursors and ids that exist make better requests.
    fn learn(&mut self, answer: &Response) {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let Some(cursor) = body["next_cursor"].as_str() {
            self.cursors.push(cursor.to_owned());
        }
        if answer.status == 201 && body["key"].is_string() {
            self.keys.push(body["id"].as_str().expect("an id").to_owned());
        }
        if let Some(id) =
            body["id"].as_str().filter(|_| body["ended_at"].is_null() && body["created_at"].is_string())
        {
            self.holds.extend(body.get("captured").map(|_| id.to_owned()));
        }
        if answer.status == 201 && body["secret"].is_string() {
            self.webhooks.push(body["id"].as_str().expect("an id").to_owned());
        }
        self.movements.extend(body["group_id"].as_str().map(str::to_owned));
        for list in
            [&mut self.cursors, &mut self.keys, &mut self.webhooks, &mut self.holds, &mut self.movements]
        {
            if list.len() > 20 {
                list.remove(0);
            }
        }
    }
}
