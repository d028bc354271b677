//! Commands that a follower has forwarded: they run here as on a connection of their caller.
//!
//! What they may do is judged here, by the key of the caller as it is now. Not here: the request that brings them
//! (`http/forward/commands.rs`).

use super::args::{Args, Log};
use super::error;
use super::session::Session;
use super::spec::{self, CommandKind, ConnectionCommand, Spec};
use crate::http::forward::commands::Commands;
use crate::readiness::Readiness;
use std::sync::Arc;
use tally_wire::resp::{DecodeLimits, Decoder, Replies};

/// What became of forwarded commands.
pub(crate) enum Outcome {
    /// The reply of each command.
    Replies(Vec<u8>),
    /// The error of the whole transaction, of which nothing was done.
    Refused(String),
    /// Nothing was done: this server cannot do it now.
    NotNow,
    /// They are no commands that a follower forwards.
    Malformed,
}

/// Runs commands of another server.
pub(crate) async fn run(readiness: Arc<Readiness>, sent: Commands) -> Outcome {
    let mut log = Log::default();
    let is_read = read(&sent.bytes, &mut log).is_some();
    if !is_read || !log.iter().all(|args| is_forwarded(args, log.len() == 1, sent.atomic)) {
        return Outcome::Malformed;
    }
    let mut session = Session::forwarded(&readiness, sent.client, sent.key.as_deref());
    (session.protocol, session.relaxed) = (sent.protocol, sent.relaxed);
    session.begin();
    // It must not send them on.
    if session.follows() || session.tally().is_err() {
        return Outcome::NotNow;
    }
    let (log, mut out) = (Arc::new(log), Vec::new());
    let first = Args::Logged(&log, 0);
    let alone = session.check(first).ok().filter(|spec| {
        let runs_alone = matches!(spec.kind, CommandKind::Remove(_) | CommandKind::Connection(_));
        runs_alone && !sent.atomic && log.len() == 1
    });
    match alone {
        Some(spec) => {
            session.alone(spec, first, &mut out).await;
        }
        None => {
            if let Err(error) = session.run(&log, sent.atomic, &mut out).await {
                return Outcome::Refused(error.into_owned());
            }
        }
    }
    if is_not_now(&log, &out) { Outcome::NotNow } else { Outcome::Replies(out) }
}

/// Reads commands; `None` if they are not whole.
pub(super) fn read(bytes: &[u8], to: &mut Log) -> Option<()> {
    let (mut decoder, mut at) = (Decoder::new(), 0);
    while at < bytes.len() {
        let length = decoder.next(&bytes[at..], &DecodeLimits::FULL).ok()??;
        to.push(Args::Wire(&decoder, &bytes[at..]));
        at += length;
    }
    (!to.is_empty()).then_some(())
}

/// Whether a command is one that a follower forwards, alone or in a transaction.
fn is_forwarded(args: Args<'_>, is_alone: bool, atomic: bool) -> bool {
    match spec::find(args.get(0)).map(|spec| spec.kind) {
        None | Some(CommandKind::Now(_)) => false,
        Some(CommandKind::Connection(ConnectionCommand::Delete)) => is_alone || atomic,
        Some(CommandKind::Connection(ConnectionCommand::Create)) => is_alone && !atomic,
        Some(CommandKind::Connection(_)) => false,
        Some(CommandKind::Read(_) | CommandKind::Write(_) | CommandKind::Remove(_)) => true,
    }
}

/// Whether no change was made, because this server ends or may not lead any more. Without a change, whether no read was answered.
fn is_not_now(log: &Log, replies: &[u8]) -> bool {
    let is_change = |args: Args<'_>| spec::find(args.get(0)).is_some_and(Spec::writes);
    let has_changes = log.iter().any(is_change);
    let mut rest = replies;
    for args in log.iter() {
        let Ok(Some(length)) = Replies::new().next(rest) else { return false };
        let (reply, after) = rest.split_at(length);
        rest = after;
        if (!has_changes || is_change(args)) && !is_refusal(reply) {
            return false;
        }
    }
    true
}

fn is_refusal(reply: &[u8]) -> bool {
    let error = reply.strip_prefix(b"-").unwrap_or_default();
    error.starts_with(b"LOADING ") || error.strip_suffix(b"\r\n") == Some(error::DRAINING.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_wire::resp::command;

    fn log(commands: &[&[&str]]) -> Log {
        let (mut log, mut bytes) = (Log::default(), Vec::new());
        commands.iter().for_each(|args| command(args, &mut bytes));
        read(&bytes, &mut log).unwrap();
        log
    }

    #[test]
    fn only_what_followers_forward_runs() {
        let allowed =
            |args: &[&str], is_alone, atomic| is_forwarded(Args::Logged(&log(&[args]), 0), is_alone, atomic);
        for (args, wanted) in [
            (&["ZADD", "b", "1", "x"][..], [true, true, true]),
            (&["ZSCORE", "b", "x"], [true, true, true]),
            (&["DEL", "b"], [true, false, true]),
            (&["LB.CREATE", "b"], [true, false, false]),
            (&["AUTH", "x"], [false, false, false]),
            (&["EXEC"], [false, false, false]),
            (&["CLIENT", "LIST"], [false, false, false]),
            (&["NONE"], [false, false, false]),
        ] {
            let found = [(true, false), (false, false), (false, true)]
                .map(|(is_alone, atomic)| allowed(args, is_alone, atomic));
            assert_eq!(found, wanted, "{args:?}");
        }
        assert!(read(b"", &mut Log::default()).is_none());
    }

    #[test]
    fn commands_are_tried_again_only_if_no_change_was_made() {
        let both = log(&[&["ZADD", "b", "1", "x"], &["ZSCORE", "b", "x"], &["ZADD", "b", "1", "y"]]);
        let draining = format!("-{}\r\n", error::DRAINING);
        let loading = format!("-{}\r\n", error::LOADING);
        let replies = |all: [&str; 3]| all.concat().into_bytes();
        assert!(is_not_now(&both, &replies([&draining, &draining, &loading])));
        assert!(is_not_now(&both, &replies([&draining, "$1\r\n1\r\n", &draining])));
        assert!(!is_not_now(&both, &replies([":1\r\n", &draining, &draining])));
        assert!(!is_not_now(&both, &replies(["-ERR no\r\n", &draining, &draining])));
        let reads = log(&[&["ZSCORE", "b", "x"], &["ZCARD", "b"]]);
        assert!(is_not_now(&reads, format!("{loading}{loading}").as_bytes()));
        assert!(!is_not_now(&reads, format!("{loading}:0\r\n").as_bytes()));
    }
}
