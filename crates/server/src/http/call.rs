//! One request as its operation sees it: caller, path parameters, query, body and idempotency key.

use super::body::Unread;
use super::guard::{self, Authenticated};
use super::routes::Route;
use super::{problem, proxies};
use crate::listener::PeerAddress;
use crate::progress::Linger;
use crate::readiness::Readiness;
use crate::trust::Trust;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tally_rules::contest::ContestId;
use tally_rules::idempotency::{IdempotencyKey, RequestFingerprint, RequestKey};
use tally_rules::ledger::{MemberId, Uuid};
use tally_rules::role::Permission;
use tally_rules::scope::Scope;
use tally_rules::{BoardId, Micros, Origin, PlayerId};
use tally_service::{Caller, Tally};
use tally_wire::api::audit::{query_reason, take_reason};
use tally_wire::api::scores::read_key;
use tally_wire::api::wallets::read_id;
use tally_wire::fields::FieldError;
use tally_wire::numbers::Int64;
use tally_wire::query::{INVALID_PARAMETER, decode_segment};
use tally_wire::{Problem, Query};
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// The header with the player that an API key acts for.
const ACTING_PLAYER: &str = "Tally-Acting-Player";

/// The connection of a request.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: PeerAddress,
    /// `http` or `https`, for traces.
    pub(super) scheme: &'static str,
    /// How far its origin can be trusted.
    pub(super) trust: Trust,
    /// Closes the connection at once.
    pub(super) cut: Arc<Notify>,
    /// Makes the connection close in two steps.
    pub(super) linger: Linger,
    /// Whether its slot is reserved for health checks and this machine.
    pub(super) reserved: bool,
}

/// What is needed to authenticate the caller again during its response.
pub(super) struct CallerCheck {
    pub(super) readiness: Arc<Readiness>,
    pub(super) peer: Peer,
    headers: HeaderMap,
    route: &'static Route,
}

impl CallerCheck {
    /// Whether the token of a member has not expired. Does not read the store.
    pub(super) fn token_is_valid(&self) -> bool {
        guard::token_is_valid(&self.readiness, &self.headers)
    }

    /// Whether the same request would still be allowed, for the same caller.
    pub(super) async fn still_may(&self, caller: &Caller) -> bool {
        let authenticated =
            guard::authenticate(&self.readiness, self.peer.trust, &self.headers, self.route).await;
        match authenticated {
            Ok(authenticated) => authenticated.caller == *caller,
            // The store is unavailable. That revokes no permission, and nothing can be read meanwhile.
            Err(problem) => problem.status >= 500,
        }
    }
}

/// A request of an authenticated caller.
pub(super) struct Call {
    pub(super) readiness: Arc<Readiness>,
    pub(super) caller: Caller,
    pub(super) peer: Peer,
    /// The instant from which the tokens of this member are valid.
    pub(super) tokens_from: Micros,
    pub(super) query: Query,
    route: &'static Route,
    parts: Parts,
    body: Unread,
    /// The share of the body in the memory for all bodies.
    body_part: Option<OwnedSemaphorePermit>,
    params: Vec<(&'static str, String)>,
}

impl Call {
    pub(super) fn new(
        readiness: Arc<Readiness>,
        (authenticated, peer): (Authenticated, Peer),
        route: &'static Route,
        parts: Parts,
        body: Unread,
        params: Vec<(&'static str, String)>,
    ) -> Self {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let Authenticated { caller, tokens_from } = authenticated;
        Self { readiness, caller, peer, tokens_from, query, route, parts, body, body_part: None, params }
    }

    /// The service, if it can answer.
    pub(super) fn tally(&self) -> Result<Arc<Tally>, Problem> {
        self.readiness.ready().map_err(|not_ready| problem::of_not_ready(&not_ready))
    }

    /// The address of the client, behind trusted proxies.
    pub(super) fn client_address(&self) -> IpAddr {
        proxies::client(self.peer.address.ip(), &self.parts.headers, &self.readiness.limits.trusted_proxies)
    }

    /// The origin of what the request changes. The idempotency key is of its caller already.
    pub(super) fn origin(&self, reason: Option<Arc<str>>) -> Origin {
        Origin { actor: self.caller.actor, reason, metadata: None }
    }

    /// The same of an act with the reason in its body, which is taken from it.
    pub(super) fn origin_of(&self, body: &mut Value) -> Result<Origin, Problem> {
        Ok(self.origin(take_reason(body).map_err(Problem::fields)?))
    }

    /// The body of an act without its reason, the idempotency key, and the origin. The fingerprint has the reason.
    pub(super) async fn act(
        &mut self,
        tally: &Tally,
    ) -> Result<(Value, Option<IdempotencyKey>, Origin), Problem> {
        let mut body = self.json().await?;
        let idempotency = self.idempotency(tally, Some(&body))?;
        let origin = self.origin_of(&mut body)?;
        Ok((body, idempotency, origin))
    }

    /// The origin of an act without a body, with the reason in its query.
    pub(super) fn origin_of_query(&mut self) -> Origin {
        let reason = query_reason(&mut self.query);
        self.origin(reason)
    }

    /// Whether the caller may read money: balances, wallets and transfers.
    pub(super) fn reads_money(&self) -> bool {
        self.caller.may(Permission::Scope(Scope::MoneyRead))
    }

    /// The board in the path.
    pub(super) fn board(&self) -> Result<BoardId, Problem> {
        BoardId::new(&self.param("board")?).map_err(|bad| bad_parameter("board", bad.0))
    }

    /// The player in the path.
    pub(super) fn player(&self) -> Result<PlayerId, Problem> {
        PlayerId::new(&self.param("player")?).map_err(|bad| bad_parameter("player", bad.0))
    }

    /// The series of contests in the path.
    pub(super) fn series(&self) -> Result<ContestId, Problem> {
        ContestId::of_series(&self.param("series")?).map_err(|bad| bad_parameter("series", bad.0))
    }

    /// The contest in the path.
    pub(super) fn contest(&self) -> Result<ContestId, Problem> {
        ContestId::new(&self.param("contest")?).map_err(|bad| bad_parameter("contest", bad.0))
    }

    /// The player that an API key acts for.
    pub(super) fn acting_player(&self) -> Result<Option<PlayerId>, Problem> {
        let Some(text) = self.header(ACTING_PLAYER)? else { return Ok(None) };
        // Encoded like a path parameter: names may have bytes that headers may not.
        let text = decode_segment(&text)
            .ok_or_else(|| bad_parameter(ACTING_PLAYER, "must be percent-encoded UTF-8"))?;
        PlayerId::new(&text).map(Some).map_err(|bad| bad_parameter(ACTING_PLAYER, bad.0))
    }

    /// The member in the path.
    pub(super) fn member(&self) -> Result<MemberId, Problem> {
        Ok(MemberId(self.id("member")?))
    }

    /// A server-made id in the path. Its form is not documented, so a malformed id is an unknown id.
    pub(super) fn id(&self, name: &'static str) -> Result<Uuid, Problem> {
        Ok(read_id(&self.param(name)?))
    }

    /// A decoded path parameter.
    pub(super) fn param(&self, name: &'static str) -> Result<String, Problem> {
        let (_, raw) = self.params.iter().find(|(other, _)| *other == name).expect("the route has it");
        decode_segment(raw).ok_or_else(|| bad_parameter(name, "must be percent-encoded UTF-8"))
    }

    /// The JSON form of 64-bit integers that the caller wants.
    pub(super) fn int64(&self) -> Result<Int64, Problem> {
        match self.header("Tally-Int64")? {
            None => Ok(Int64::Number),
            Some(text) if text == "number" => Ok(Int64::Number),
            Some(text) if text == "string" => Ok(Int64::String),
            Some(_) => Err(bad_parameter("Tally-Int64", "must be `number` or `string`")),
        }
    }

    /// Ends reading the query: refuses parameters that the operation has not read.
    pub(super) fn finish_query(&mut self) -> Result<(), Problem> {
        self.query.finish().map_err(Problem::fields)
    }

    /// The whole body, within its limit.
    pub(super) async fn bytes(&mut self) -> Result<Bytes, Problem> {
        self.bytes_within(self.readiness.limits.body_bytes_max).await
    }

    async fn bytes_within(&mut self, bytes_max: usize) -> Result<Bytes, Problem> {
        let began = Instant::now();
        let received = self.body.receive(&self.readiness, bytes_max).await;
        tally_service::stages::add_body(began.elapsed());
        let received = received?;
        self.body_part = received.part;
        Ok(received.bytes)
    }

    /// The body as JSON.
    pub(super) async fn json(&mut self) -> Result<Value, Problem> {
        self.json_within(self.readiness.limits.body_bytes_max).await
    }

    /// The same within a smaller limit.
    pub(super) async fn json_within(&mut self, bytes_max: usize) -> Result<Value, Problem> {
        self.check_content_type("application/json")?;
        let bytes = self.bytes_within(bytes_max).await?;
        serde_json::from_slice(&bytes).map_err(|error| malformed(&error))
    }

    /// The body as JSON, if there is one.
    pub(super) async fn json_or_none(&mut self) -> Result<Option<Value>, Problem> {
        let bytes = self.bytes().await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.check_content_type("application/json")?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| malformed(&error))
    }

    /// Refuses a body: an operation without one must not seem to have read it.
    pub(super) async fn no_body(&mut self) -> Result<(), Problem> {
        match self.json_or_none().await? {
            None => Ok(()),
            Some(Value::Object(object)) if object.is_empty() => Ok(()),
            Some(_) => Err(Problem::field(
                "",
                "must be empty or `{}`: this request takes its values from the path and the query",
            )),
        }
    }

    /// Refuses a body of another type.
    pub(super) fn check_content_type(&self, wanted: &'static str) -> Result<(), Problem> {
        let given = self.parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = given.map(|given| given.split(';').next().unwrap_or_default().trim());
        if essence.is_some_and(|given| given.eq_ignore_ascii_case(wanted)) {
            return Ok(());
        }
        let detail = format!("the body must be sent as `Content-Type: {wanted}`");
        Err(Problem::new(415, "unsupported_media_type", detail))
    }

    /// The idempotency key, if the request has one.
    pub(super) fn key(&self) -> Result<Option<RequestKey>, Problem> {
        let Some(key) = self.header("Idempotency-Key")? else { return Ok(None) };
        let key = read_key(&key).map_err(|why| bad_parameter("Idempotency-Key", why))?;
        Ok(Some(self.key_of(&key)))
    }

    /// A key in this caller's scope.
    pub(super) fn key_of(&self, key: &str) -> RequestKey {
        RequestKey { scope: Arc::clone(&self.caller.scope), key: key.into() }
    }

    /// The idempotency key of this request, with its fingerprint.
    pub(super) fn idempotency(
        &self,
        tally: &Tally,
        body: Option<&Value>,
    ) -> Result<Option<IdempotencyKey>, Problem> {
        let Some(key) = self.key()? else { return Ok(None) };
        Ok(Some(IdempotencyKey { key, fingerprint: self.fingerprint(tally, body)? }))
    }

    /// The same for an act without a body: another reason makes another request, as if it were in a body.
    pub(super) fn idempotency_of(
        &self,
        tally: &Tally,
        origin: &Origin,
    ) -> Result<Option<IdempotencyKey>, Problem> {
        self.idempotency(tally, reason_body(origin).as_ref())
    }

    fn fingerprint(&self, tally: &Tally, body: Option<&Value>) -> Result<RequestFingerprint, Problem> {
        // The route and the decoded path parameters, not their spelling.
        let mut path = self.route.path.to_owned();
        for (name, _) in &self.params {
            path.push('\0');
            path.push_str(&self.param(name)?);
        }
        // Secrets are included: a retry with another password is another request. The digest is keyed.
        let body = body.map_or_else(|| Value::Null.to_string(), Value::to_string);
        Ok(tally.fingerprints.of(self.parts.method.as_str(), &path, body.as_bytes()))
    }

    /// What is needed to authenticate the caller again.
    pub(super) fn caller_check(&self) -> CallerCheck {
        let (readiness, peer) = (Arc::clone(&self.readiness), self.peer.clone());
        CallerCheck { readiness, peer, headers: self.parts.headers.clone(), route: self.route }
    }

    pub(super) fn header(&self, name: &'static str) -> Result<Option<String>, Problem> {
        let mut all = self.parts.headers.get_all(name).iter();
        let Some(value) = all.next() else { return Ok(None) };
        match (value.to_str(), all.next()) {
            (Ok(text), None) => Ok(Some(text.to_owned())),
            (_, _) => Err(bad_parameter(name, "must be sent once, in visible ASCII characters")),
        }
    }
}

/// The reason of an act without a body, as a body would have it.
pub(super) fn reason_body(origin: &Origin) -> Option<Value> {
    origin.reason.as_deref().map(|reason| json!({"reason": reason}))
}

/// 400 for a path parameter, a query parameter or a header.
pub(super) fn bad_parameter(name: &str, detail: &str) -> Problem {
    Problem::fields(vec![FieldError { pointer: name.into(), code: INVALID_PARAMETER, detail: detail.into() }])
}

fn malformed(error: &serde_json::Error) -> Problem {
    Problem::new(400, "malformed_json", format!("the body is not JSON: {error}"))
}
