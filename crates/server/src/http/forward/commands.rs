//! Commands of the Redis protocol for the leader: `POST /servers/commands`, signed by a server of the store.
//!
//! A request has the commands of a pipeline that run together, or a transaction, as their bytes. The query has what the session of
//! the caller is, and the signature covers it. The answer is the bytes of the replies, and the position of the leader after them.
//! It is no operation of the API: its form may change with every version. Not here: which commands go to the leader
//! (`resp/forward.rs`), and how they run there (`resp/forwarded.rs`).

use super::{Outcome, Outgoing, guard, problem, response, signed, wait_for_leader};
use crate::http::body::{Received, Unread};
use crate::http::response::Response;
use crate::metrics::Forwardings;
use crate::readiness::{Leader, Readiness};
use crate::resp::forwarded;
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use tally_service::follow::Position;
use tally_service::signed_requests::Behalf;
use tally_wire::Problem;
use tally_wire::resp::Protocol;

/// The path of commands for the leader.
pub(crate) const COMMANDS_PATH: &str = "/servers/commands";

/// The status of a transaction of which nothing was done. The body is its error.
pub(crate) const TRANSACTION_REFUSED: u16 = StatusCode::UNPROCESSABLE_ENTITY.as_u16();

/// The position of the leader after the commands.
const POSITION: &str = "tally-position";

/// More than a transaction has, or a command with those before it.
const COMMANDS_BYTES_MAX: usize = 72 << 20;

/// Commands with the state of their session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    /// The id of the caller's key. `None` is the machine of the follower in protected mode.
    pub(crate) key: Option<Arc<str>>,
    pub(crate) client: IpAddr,
    pub(crate) protocol: Protocol,
    pub(crate) relaxed: bool,
    /// Whether they are a transaction.
    pub(crate) atomic: bool,
    pub(crate) bytes: Bytes,
}

/// What became of commands.
pub(crate) enum Ran {
    /// This server leads now: it runs them.
    Here,
    /// The leader has answered.
    Answered { status: u16, position: Option<Position>, body: Bytes },
    /// Nothing was done.
    NotSent,
    /// The leader may have done them.
    Lost,
}

impl Commands {
    fn target(&self) -> String {
        let protocol = if self.protocol == Protocol::Resp3 { 3 } else { 2 };
        let Self { relaxed, atomic, .. } = self;
        let key = self.key.as_deref().unwrap_or_default();
        format!("{COMMANDS_PATH}?protocol={protocol}&relaxed={relaxed}&atomic={atomic}&key={key}")
    }

    fn parse(query: &str, client: IpAddr, bytes: Bytes) -> Option<Self> {
        let mut parts = query.split('&');
        let mut next = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let protocol = match next("protocol")? {
            "2" => Protocol::Resp2,
            "3" => Protocol::Resp3,
            _ => return None,
        };
        let (relaxed, atomic) = (next("relaxed")?.parse().ok()?, next("atomic")?.parse().ok()?);
        let key = next("key").filter(|key| !key.contains('&'))?;
        let key = (!key.is_empty()).then(|| key.into());
        Some(Self { key, client, protocol, relaxed, atomic, bytes })
    }

    fn behalf(&self) -> Behalf {
        if self.key.is_some() { Behalf::Client } else { Behalf::Local }
    }
}

/// Sends commands to the leader, once it is known. They are never sent again if it may have got them.
pub(crate) async fn send(readiness: &Readiness, commands: Commands) -> Ran {
    wait_for_leader(readiness).await;
    let Forwardings { answered, here, gave_up, unknown } = &readiness.metrics.forwarded;
    if readiness.leader() == Leader::Here {
        here.inc();
        return Ran::Here;
    }
    // A server that still loads has no keys.
    let (Some(forwarder), Some(keys)) = (readiness.forwarder.get(), readiness.keys()) else {
        gave_up.inc();
        return Ran::NotSent;
    };
    let ring = Arc::clone(keys.ring());
    drop(keys);
    let request = Outgoing {
        method: Method::POST,
        target: commands.target(),
        headers: HeaderMap::new(),
        behalf: commands.behalf(),
        client: commands.client,
        body: commands.bytes,
        is_repeatable: false,
    };
    match forwarder.forward(&|| readiness.leader(), &ring, &request).await {
        Outcome::Answered((head, body)) => {
            answered.inc();
            let position = head.headers.get(POSITION).and_then(|at| at.to_str().ok()?.parse().ok());
            Ran::Answered { status: head.status.as_u16(), position, body }
        }
        Outcome::Here => {
            here.inc();
            Ran::Here
        }
        Outcome::GaveUp => {
            gave_up.inc();
            Ran::NotSent
        }
        Outcome::Unknown => {
            unknown.inc();
            Ran::Lost
        }
    }
}

/// Answers commands that another server has forwarded.
pub(in crate::http) async fn answer(
    readiness: &Arc<Readiness>,
    request: Request<Unread>,
) -> Result<Response, Problem> {
    let (parts, mut body) = request.into_parts();
    if parts.method != Method::POST {
        return Err(Problem::new(405, "method_not_allowed", "this path has: POST").header("allow", "POST"));
    }
    let signed = signed(readiness, &parts)?;
    let signed =
        signed.ok_or_else(|| guard::unauthorized("only servers of this store send commands here"))?;
    body.expect(signed);
    let Received { bytes, part } = body.receive_up_to(readiness, COMMANDS_BYTES_MAX).await?;
    let malformed =
        || Problem::new(400, "bad_request", "these are no commands of a server that follows this one");
    let query = parts.uri.query().unwrap_or_default();
    let commands = Commands::parse(query, signed.client, bytes).ok_or_else(malformed)?;
    if commands.behalf() != signed.behalf {
        return Err(guard::unauthorized("this request is not one of a server for a client"));
    }
    let tally = readiness.ready().map_err(|not_ready| problem::of_not_ready(&not_ready))?;
    let changes = tally.changes.clone();
    drop(tally);
    let changes = changes.ok_or_else(|| problem::not_leader("this server leads no other one"))?;
    // They run to their end, as those of a connection do, also if the follower is lost.
    let ran = tokio::spawn(forwarded::run(Arc::clone(readiness), commands)).await;
    drop(part);
    match ran {
        Ok(forwarded::Outcome::Replies(replies)) => {
            let mut answer = response::with(StatusCode::OK, "application/octet-stream", replies);
            if let Ok(position) = HeaderValue::try_from(changes.position().to_string()) {
                answer.headers_mut().insert(POSITION, position);
            }
            Ok(answer)
        }
        Ok(forwarded::Outcome::Refused(error)) => {
            Ok(response::with(StatusCode::UNPROCESSABLE_ENTITY, "text/plain", error))
        }
        Ok(forwarded::Outcome::NotNow) => {
            Err(problem::not_leader("this server stops leading; nothing was done"))
        }
        Ok(forwarded::Outcome::Malformed) => Err(malformed()),
        Err(panicked) => {
            tracing::error!(%panicked, "forwarded commands");
            Err(Problem::new(500, "internal", "this is a bug; the log has more"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_of_a_caller_travels_with_its_commands() {
        let client = IpAddr::from([192, 0, 2, 7]);
        for (key, behalf) in [(Some("0123456789ab"), Behalf::Client), (None, Behalf::Local)] {
            for (protocol, relaxed, atomic) in
                [(Protocol::Resp2, false, true), (Protocol::Resp3, true, false)]
            {
                let key = key.map(Arc::from);
                let bytes = Bytes::from_static(b"*1\r\n$4\r\nPING\r\n");
                let sent = Commands { key, client, protocol, relaxed, atomic, bytes };
                let target = sent.target();
                let (path, query) = target.split_once('?').unwrap();
                assert_eq!((path, sent.behalf()), (COMMANDS_PATH, behalf));
                assert_eq!(Commands::parse(query, client, sent.bytes.clone()), Some(sent));
            }
        }
        for wrong in
            ["", "protocol=4&relaxed=true&atomic=true&key=", "protocol=2&relaxed=1&atomic=true&key=a"]
        {
            assert_eq!(Commands::parse(wrong, client, Bytes::new()), None, "{wrong}");
        }
    }
}
