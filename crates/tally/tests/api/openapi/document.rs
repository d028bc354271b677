//! The document as a test uses it: its operations, requests made of its examples, and whether an answer is in it.

use super::schema::{Schemas, Unnamed};
use serde_json::{Value, json};
use tally_testkit::http::segment;
use tally_testkit::{Client, Request, Response};

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];
/// Header fields of any answer that need no description.
const COMMON_HEADERS: [&str; 10] = [
    "cache-control",
    "connection",
    "content-length",
    "content-security-policy",
    "content-type",
    "date",
    "referrer-policy",
    "transfer-encoding",
    "vary",
    "x-content-type-options",
];

/// The document that a server serves.
pub(crate) struct Document {
    pub(crate) schemas: Schemas,
    pub(crate) operations: Vec<Operation>,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// `read`, `write`, `administer`, or nothing where no key is needed.
    pub(crate) right: Option<String>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) responses: Value,
}

/// A parameter in the path, the query or a header.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) place: String,
    pub(crate) schema: Value,
    pub(crate) example: Option<String>,
}

/// A request's body.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) media: String,
    pub(crate) required: bool,
    pub(crate) schema: Value,
    /// Schemas of the first line and of the others, where the body is lines.
    pub(crate) lines: Option<(Value, Value)>,
    pub(crate) examples: Vec<Value>,
}

/// The kind of an answer, for counting the observed ones.
pub(crate) type AnswerKind = (String, u16, String);

impl Document {
    /// Sends it to the server.
    pub(crate) fn of(client: &mut Client) -> Self {
        let schemas = Schemas::new(client.get("/openapi.json").expect(200));
        let mut operations = Vec::new();
        for (path, item) in schemas.document["paths"].as_object().expect("there are paths") {
            for method in METHODS {
                if let Some(operation) = item.get(method) {
                    operations.push(read_operation(&schemas, path, method, item, operation));
                }
            }
        }
        Self { schemas, operations }
    }

    /// The operation of this id.
    pub(crate) fn operation(&self, id: &str) -> &Operation {
        self.operations.iter().find(|one| one.id == id).unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// Every answer that the document has: operation, status, code.
    pub(crate) fn answers(&self) -> Vec<AnswerKind> {
        let mut all = Vec::new();
        for operation in &self.operations {
            for (status, response) in operation.responses.as_object().expect("there are responses") {
                let status: u16 = status.parse().expect("a status is a number");
                let problem = &self.schemas.resolve(response)["content"]["application/problem+json"];
                let codes = problem["schema"]["properties"]["code"]["enum"].as_array();
                let codes =
                    codes.map_or_else(|| vec![String::new()], |codes| codes.iter().map(text).collect());
                all.extend(codes.into_iter().map(|code| (operation.id.clone(), status, code)));
            }
        }
        all
    }

    /// Checks an answer against the document; returns its kind.
    pub(crate) fn check(&self, operation: &Operation, answer: &Response) -> Result<AnswerKind, String> {
        let response = operation.responses.get(answer.status.to_string());
        let response = response.ok_or_else(|| format!("the status {} is not documented", answer.status))?;
        self.check_response(response, answer)?;
        Ok((operation.id.clone(), answer.status, answer.code()))
    }

    /// Checks an answer that belongs to no operation.
    pub(crate) fn check_component(&self, name: &str, answer: &Response) -> Result<(), String> {
        self.check_response(&json!({"$ref": format!("#/components/responses/{name}")}), answer)
    }

    fn check_response(&self, response: &Value, answer: &Response) -> Result<(), String> {
        let response = self.schemas.resolve(response);
        self.check_headers(response, answer)?;
        let Some(content) = response["content"].as_object() else {
            let empty = answer.body.is_empty() && answer.header("content-type").is_none();
            return if empty { Ok(()) } else { Err(format!("there should be no body: {}", answer.text())) };
        };
        let given = answer.header("content-type").unwrap_or_default();
        let media = given.split(';').next().unwrap_or_default();
        let described = content.get(media).ok_or_else(|| format!("{given:?} is not documented"))?;
        let body = if media.ends_with("json") {
            serde_json::from_slice(&answer.body).map_err(|error| format!("no JSON: {error}"))?
        } else {
            Value::String(String::from_utf8(answer.body.clone()).map_err(|error| error.to_string())?)
        };
        self.schemas.check(&described["schema"], &body, Unnamed::Wrong)?;
        if media == "application/problem+json" { check_problem(&body, answer) } else { Ok(()) }
    }

    fn check_headers(&self, response: &Value, answer: &Response) -> Result<(), String> {
        let described = response["headers"].as_object().ok_or("no header is documented")?;
        for (name, header) in described {
            let header = self.schemas.resolve(header);
            match answer.header(name) {
                None if header["required"] == json!(true) => return Err(format!("there is no {name}")),
                None => {}
                Some(value) => self
                    .schemas
                    .check(&header["schema"], &self.typed(&header["schema"], value), Unnamed::AsSaid)
                    .map_err(|why| format!("{name}: {why}"))?,
            }
        }
        for (name, _) in &answer.headers {
            let known = described.keys().any(|known| known.eq_ignore_ascii_case(name));
            if !known && !COMMON_HEADERS.contains(&name.as_str()) {
                return Err(format!("the header {name} is not documented"));
            }
        }
        Ok(())
    }

    /// A text as the type its schema wants, if it is one.
    pub(crate) fn typed(&self, schema: &Value, text: &str) -> Value {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let whole = self.schemas.resolve(schema)["type"] == json!("integer");
        match text.parse::<u64>() {
            Ok(number) if whole && digits => json!(number),
            _ => json!(text),
        }
    }
}

impl Operation {
    /// A request made of the document's examples.
    pub(crate) fn example(&self, number: usize) -> Request {
        let mut path = self.path.clone();
        for parameter in self.parameters.iter().filter(|one| one.place == "path") {
            let example = parameter.example.as_deref().expect("a part of the path has an example");
            path = path.replace(&format!("{{{}}}", parameter.name), &segment(example));
        }
        let request = Request::new(&self.method, path);
        match &self.body {
            Some(body) => body.put(request, &body.examples[number]),
            None => request,
        }
    }

    pub(crate) fn has(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|one| one.name == parameter)
    }
}

impl Body {
    fn put(&self, request: Request, value: &Value) -> Request {
        let lines = value.as_str().filter(|_| self.lines.is_some());
        request.body(&self.media, lines.map_or_else(|| value.to_string(), str::to_owned))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read_operation(schemas: &Schemas, path: &str, method: &str, item: &Value, operation: &Value) -> Operation {
    let lists = [&item["parameters"], &operation["parameters"]];
    let parameters = lists.iter().filter_map(|list| list.as_array()).flatten();
    Operation {
        id: text(&operation["operationId"]),
        method: method.to_uppercase(),
        path: path.to_owned(),
        right: operation["x-tally-right"].as_str().map(str::to_owned),
        parameters: parameters.map(|one| read_parameter(schemas.resolve(one))).collect(),
        body: operation.get("requestBody").map(read_body),
        responses: operation["responses"].clone(),
    }
}

fn read_parameter(parameter: &Value) -> Parameter {
    Parameter {
        name: text(&parameter["name"]),
        place: text(&parameter["in"]),
        schema: parameter["schema"].clone(),
        example: parameter["example"].as_str().map(str::to_owned),
    }
}

fn read_body(body: &Value) -> Body {
    let content = body["content"].as_object().expect("a body has a type");
    let (media, described) = content.iter().next().expect("a body has a type");
    let lines = &described["x-tally-lines"];
    let several =
        described["examples"].as_object().map(|all| all.values().map(|one| one["value"].clone()).collect());
    Body {
        media: media.clone(),
        required: body["required"] != json!(false),
        schema: described["schema"].clone(),
        lines: lines.is_object().then(|| (lines["first"].clone(), lines["rest"].clone())),
        examples: several.unwrap_or_else(|| vec![described["example"].clone()]),
    }
}

/// Rules that a schema cannot express: parts of a problem agree with its answer.
fn check_problem(problem: &Value, answer: &Response) -> Result<(), String> {
    for (member, value) in [
        ("status", json!(answer.status)),
        ("request_id", json!(answer.header("x-request-id"))),
        ("type", json!(format!("urn:tally:problem:{}", answer.code()))),
    ] {
        if problem[member] != value {
            return Err(format!("`{member}` is not {value}: {problem}"));
        }
    }
    match problem["errors"][0].get("code") {
        Some(code) if *code != problem["code"] => Err(format!("the first error has another code: {problem}")),
        _ => Ok(()),
    }
}
