//! Commands at a server that follows another one: the leader runs those that change something.
//!
//! The collected commands go there as one request (`http/forward/commands.rs`), and their replies come back as they are. A read
//! after a write is among them. Later reads go there, too, until this server has the state that the leader has answered with. So a
//! connection sees its own writes, whatever server it has reached. What concerns the connection itself is answered here.
//!
//! Not here: what runs at the leader (`forwarded.rs`), and repeated attempts (`http/forward`).

use super::args::{Args, Log};
use super::counts::Class;
use super::error::{self, ErrorReply};
use super::run::REPLIES_BYTES_MAX;
use super::session::Session;
use super::spec::{self, CommandKind, ConnectionCommand, Spec};
use crate::http::BEHIND_MAX;
use crate::http::forward::commands::{self, Commands, Ran};
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use tally_rules::Actor;
use tally_service::follow::Following;
use tally_service::scores::steps::TAKE_ALL_MAX;
use tally_wire::resp::{Encoder, Quota, Replies, command, number};
use tokio::time::timeout;

impl Session {
    /// The state of this server as a follower, if it is one and is loaded.
    fn following(&self) -> Option<&Arc<Following>> {
        self.serving.as_ref()?.tally.as_ref()?.following.as_ref()
    }

    /// Whether the leader runs changes: this server follows it, or takes its place at this moment.
    pub(super) fn follows(&self) -> bool {
        let is_loaded = self.serving.as_ref().is_some_and(|serving| serving.tally.is_some());
        if is_loaded { self.following().is_some() } else { self.listener.readiness.takes_over() }
    }

    /// Whether a command may be on its way to a leader while this server has no recent state itself.
    pub(super) fn may_wait_for_leader(&self, spec: &Spec) -> bool {
        let is_sent = match spec.kind {
            CommandKind::Now(_) => self.multi.is_some(),
            CommandKind::Read(_) => self.multi.is_some() || self.is_behind(),
            CommandKind::Connection(_) | CommandKind::Write(_) | CommandKind::Remove(_) => true,
        };
        is_sent && self.follows()
    }

    /// Whether the state here is older than it may be, or than one of the leader that this connection has seen.
    pub(super) fn is_behind(&self) -> bool {
        let is_older = |following: &Arc<Following>| {
            !following.may_answer() || self.seen.is_some_and(|seen| following.position() < seen)
        };
        self.following().is_some_and(is_older)
    }

    /// Whether the leader runs collected commands: they change something, or read a state that this server does not have yet.
    pub(super) fn is_for_leader(&self, log: &Log) -> bool {
        let is_behind = self.is_behind();
        let is_for_leader =
            |spec: &Spec| spec.writes() || is_behind && matches!(spec.kind, CommandKind::Read(_));
        self.follows() && log.iter().any(|args| spec::find(args.get(0)).is_some_and(is_for_leader))
    }

    /// Lets the leader run collected commands and writes their replies. Returns `None` if they are to run here.
    pub(super) async fn run_at_leader(
        &mut self,
        log: &Log,
        atomic: bool,
        out: &mut Vec<u8>,
    ) -> Option<error::Result> {
        loop {
            if !self.is_for_leader(log) {
                return None;
            }
            let mut sent = Vec::new();
            for args in log.iter().filter(|args| !is_local(*args, atomic)) {
                append(args, &mut sent);
                self.budget.bytes(args.bytes());
                self.budget.yield_if_spent().await;
            }
            // `None`: this server leads by now.
            let changes = log.iter().any(|args| spec::find(args.get(0)).is_some_and(Spec::writes));
            let Some(replies) = self.forward(sent, atomic, !changes).await else { continue };
            if let (Err(error), true) = (&replies, atomic) {
                return Some(Err(error.clone()));
            }
            self.write_replies(log, atomic, replies, out).await;
            return Some(Ok(()));
        }
    }

    /// The same for a command that runs alone. Returns whether the leader has run it, or nothing has.
    pub(super) async fn run_one_at_leader(&mut self, args: Args<'_>, out: &mut Vec<u8>) -> bool {
        while self.follows() {
            let replied = if pops_too_many(args) {
                Some(Err("ERR a follower removes at most 1000000 members at once".into()))
            } else {
                let mut sent = Vec::new();
                append(args, &mut sent);
                self.forward(sent, false, false).await
            };
            match replied {
                None => continue,
                Some(Ok(reply)) if is_whole(&reply) => out.extend_from_slice(&reply),
                Some(Ok(_)) => Encoder::new(out, self.protocol).error(error::LEADER_LOST),
                Some(Err(error)) => Encoder::new(out, self.protocol).error(error.as_bytes()),
            }
            return true;
        }
        false
    }

    /// Sends commands to the leader. Returns their replies, or one error for all of them, or `None` if this server leads.
    async fn forward(&mut self, sent: Vec<u8>, atomic: bool, is_read: bool) -> Option<error::Result<Bytes>> {
        let caller = match self.require_caller() {
            Ok(caller) => caller,
            Err(error) => return Some(Err(error.into())),
        };
        let key = (caller.actor != Actor::Local).then(|| Arc::clone(&caller.scope));
        let (protocol, relaxed, client) = (self.protocol, self.relaxed, self.client.peer.ip());
        let sent = Commands { key, client, protocol, relaxed, atomic, bytes: sent.into() };
        let readiness = Arc::clone(&self.listener.readiness);
        // A takeover waits until nothing holds the service of a follower.
        self.end();
        let ran = commands::send(&readiness, sent);
        let ran = if is_read { timeout(BEHIND_MAX, ran).await.unwrap_or(Ran::NotSent) } else { ran.await };
        self.begin();
        Some(match ran {
            Ran::Here => return None,
            Ran::Answered { status: 200, position, body } => {
                self.seen = self.seen.max(position);
                Ok(body)
            }
            Ran::Answered { status, body, .. } => Err(refused(status, &body)),
            Ran::NotSent | Ran::Lost if is_read => Err(error::BEHIND.into()),
            Ran::NotSent => Err(error::NO_LEADER.into()),
            Ran::Lost => Err(error::LEADER_LOST.into()),
        })
    }

    /// Writes the reply of every command: those of the leader, and those of this server between them.
    async fn write_replies(
        &mut self,
        log: &Log,
        atomic: bool,
        replies: error::Result<Bytes>,
        out: &mut Vec<u8>,
    ) {
        let quota = Quota::new(REPLIES_BYTES_MAX);
        let (mut rest, missing) = match replies {
            Ok(bytes) => (bytes, error::LEADER_LOST.into()),
            Err(error) => (Bytes::new(), error),
        };
        out.reserve(rest.len());
        for args in log.iter() {
            let start = out.len();
            if is_local(args, atomic) {
                match self.check(args) {
                    Ok(spec) if matches!(spec.kind, CommandKind::Now(_)) => {
                        self.answer(spec, args, out, &quota);
                    }
                    // It was collected because it could not run, and can by now.
                    Ok(_) => Encoder::new(out, self.protocol).error(error::NO_LEADER),
                    Err(error) => Encoder::new(out, self.protocol).error(error.as_bytes()),
                }
            } else {
                match Replies::new().next(&rest) {
                    Ok(Some(length)) => out.extend_from_slice(&rest.split_to(length)),
                    Ok(None) | Err(_) => Encoder::new(out, self.protocol).error(missing.as_bytes()),
                }
            }
            self.pipeline_counts.answered(Class::of(spec::find(args.get(0))), &out[start..]);
            self.budget.bytes(out.len() - start);
            self.budget.yield_if_spent().await;
        }
    }
}

/// Whether a collected command is answered by the server that has the connection.
fn is_local(args: Args<'_>, atomic: bool) -> bool {
    match spec::find(args.get(0)).map(|spec| spec.kind) {
        None | Some(CommandKind::Now(_)) => true,
        Some(CommandKind::Connection(ConnectionCommand::Delete)) => !atomic,
        Some(CommandKind::Connection(_)) => true,
        Some(CommandKind::Read(_) | CommandKind::Write(_) | CommandKind::Remove(_)) => false,
    }
}

fn append(args: Args<'_>, to: &mut Vec<u8>) {
    let args: Vec<&[u8]> = args.from(0).collect();
    command(&args, to);
}

/// Whether a command may have a reply that is too large to be passed on.
fn pops_too_many(args: Args<'_>) -> bool {
    let pops = args.is(0, "zpopmin") || args.is(0, "zpopmax");
    pops && number::integer(args.get(2)).is_some_and(|count| count > TAKE_ALL_MAX as i64)
}

fn is_whole(reply: &[u8]) -> bool {
    Replies::new().next(reply) == Ok(Some(reply.len()))
}

/// The error of an answer without replies.
fn refused(status: u16, body: &[u8]) -> ErrorReply {
    if status == commands::TRANSACTION_REFUSED {
        return String::from_utf8_lossy(body).into_owned().into();
    }
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    match (status, problem["code"].as_str()) {
        (503, Some("overloaded")) => error::BUSY.into(),
        // It has done nothing in the time in which another server could have taken over.
        (503, Some("not_leader" | "draining" | "loading")) => error::NO_LEADER.into(),
        (400..500, Some(_)) => {
            let why = problem["detail"].as_str().unwrap_or_default();
            format!("ERR the leader has refused the commands: {why}").into()
        }
        _ => error::LEADER_LOST.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(commands: &[&[&str]]) -> Log {
        let (mut log, mut bytes) = (Log::default(), Vec::new());
        commands.iter().for_each(|args| command(args, &mut bytes));
        super::super::forwarded::read(&bytes, &mut log).unwrap();
        log
    }

    #[test]
    fn what_concerns_the_connection_stays_on_its_server() {
        let log = log(&[&["ZADD", "b", "1", "x"], &["zscore", "b", "x"], &["ZPOPMIN", "b"]]);
        assert!(log.iter().all(|args| !is_local(args, false)));
        let log = self::log(&[&["client", "id"], &["NONE"], &["PING"], &["HELLO"], &["LB.CREATE", "b"]]);
        assert!(log.iter().all(|args| is_local(args, false) && is_local(args, true)));
        let log = self::log(&[&["DEL", "b"]]);
        let delete = log.iter().next().unwrap();
        assert_eq!([false, true].map(|atomic| is_local(delete, atomic)), [true, false]);
    }

    #[test]
    fn commands_arrive_as_they_were() {
        let sent = log(&[&["ZADD", "b", "1", "a b"], &["", "\r\n", "x"]]);
        let mut bytes = Vec::new();
        sent.iter().for_each(|args| append(args, &mut bytes));
        let mut arrived = Log::default();
        super::super::forwarded::read(&bytes, &mut arrived).unwrap();
        let all = |log: &Log| -> Vec<Vec<Vec<u8>>> {
            log.iter().map(|args| args.from(0).map(<[u8]>::to_vec).collect()).collect()
        };
        assert_eq!(all(&arrived), all(&sent));
        assert!(super::super::forwarded::read(&bytes[..bytes.len() - 1], &mut Log::default()).is_none());
    }

    #[test]
    fn a_large_number_of_members_is_not_popped_through_a_follower() {
        for (count, refused) in [("1000000", false), ("1000001", true), ("x", false)] {
            let log = log(&[&["ZPOPMAX", "b", count], &["ZADD", "b", count, "x"]]);
            let found: Vec<bool> = log.iter().map(pops_too_many).collect();
            assert_eq!(found, [refused, false], "{count}");
        }
    }

    #[test]
    fn an_answer_without_replies_says_whether_anything_was_done() {
        let problem = |code: &str| format!("{{\"code\":\"{code}\",\"detail\":\"why\"}}").into_bytes();
        assert_eq!(refused(503, &problem("not_leader")), error::NO_LEADER);
        assert_eq!(refused(503, &problem("overloaded")), error::BUSY);
        assert_eq!(refused(503, &problem("other")), error::LEADER_LOST);
        assert_eq!(refused(502, b"<html>"), error::LEADER_LOST);
        assert_eq!(
            refused(413, &problem("payload_too_large")),
            "ERR the leader has refused the commands: why"
        );
        assert_eq!(refused(commands::TRANSACTION_REFUSED, b"CROSSSLOT no"), "CROSSSLOT no");
    }
}
