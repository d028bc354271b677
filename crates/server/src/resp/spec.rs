//! The only table of commands: name, arity, permission, kind, and the fields of `COMMAND`.

use super::args::Args;
use super::error;
use super::{client, info, keys, lb, run, session, target, zset};
use tally_rules::role::Permission;
use tally_rules::scope::Scope;
use tally_wire::resp::Encoder;

/// How a pipeline runs a command.
#[derive(Clone, Copy)]
pub(super) enum CommandKind {
    /// Answered from the state of the connection, in order.
    Now(fn(&mut session::Session, Args<'_>, &mut Encoder<'_>) -> error::Result),
    /// Changes the meaning of the commands after it, so all commands before it run first. Not allowed in a transaction.
    Connection(ConnectionCommand),
    /// A read of the rankings of one or more boards.
    Read(target::ReadCommand),
    /// A change that goes through the lane.
    Write(run::Write),
    /// The same, but alone and in as many requests as it needs; one request in a transaction.
    Remove(run::Write),
}

/// Commands that change the connection, or boards as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionCommand {
    Auth,
    Hello,
    Reset,
    Quit,
    Multi,
    Exec,
    Discard,
    Watch,
    /// `LB.DURABILITY`
    Durability,
    /// `LB.CREATE`
    Create,
    /// `DEL`, `UNLINK`
    Delete,
}

/// One command.
pub(super) struct Spec {
    /// In lower case.
    pub(super) name: &'static str,
    /// The number of arguments with the name; a negative number is a minimum.
    pub(super) arity: i32,
    /// The permission that the caller needs, if any.
    pub(super) permission: Option<Permission>,
    pub(super) kind: CommandKind,
    /// Whether it runs while ranks are not exact yet.
    pub(super) loading: bool,
    /// First key, last key and step, as in `COMMAND`.
    pub(super) keys: (i32, i32, i32),
    /// The family.
    pub(super) group: &'static str,
    /// One line.
    pub(super) summary: &'static str,
}

/// Arities of subcommands; other words are refused.
const SUBCOMMANDS: [(&str, &str, i32); 13] = [
    ("client", "getname", 2),
    ("client", "id", 2),
    ("client", "info", 2),
    ("client", "list", -2),
    ("client", "no-evict", 3),
    ("client", "no-touch", 3),
    ("client", "setinfo", 4),
    ("client", "setname", 3),
    ("command", "count", 2),
    ("command", "docs", -2),
    ("command", "info", -2),
    ("command", "list", -2),
    ("config", "get", -3),
];

fn fits(arity: i32, count: usize) -> bool {
    let wanted = arity.unsigned_abs() as usize;
    if arity < 0 { count >= wanted } else { count == wanted }
}

impl Spec {
    /// Refuses a wrong number of arguments, and unknown subcommands.
    pub(super) fn check(&self, args: Args<'_>) -> error::Result {
        if !fits(self.arity, args.len()) {
            let error = error::arity(self.name);
            return Err(match self.kind {
                CommandKind::Connection(ConnectionCommand::Exec) => error::exec_abort(&error),
                _ => error,
            });
        }
        let mut subcommands = SUBCOMMANDS.iter().filter(|(of, _, _)| *of == self.name).peekable();
        if subcommands.peek().is_none() || args.len() == 1 {
            return Ok(());
        }
        match subcommands.find(|(_, word, _)| args.is(1, word)) {
            Some((_, _, arity)) if fits(*arity, args.len()) => Ok(()),
            Some((_, word, _)) => Err(error::arity(&format!("{}|{word}", self.name))),
            None => Err(error::unknown_subcommand(self.name, args.get(1))),
        }
    }

    /// Whether it changes something.
    pub(super) fn writes(&self) -> bool {
        matches!(
            self.kind,
            CommandKind::Write(_)
                | CommandKind::Remove(_)
                | CommandKind::Connection(ConnectionCommand::Create | ConnectionCommand::Delete)
        )
    }
}

/// The command with this name, in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0_u8; 24];
    let lower = lower.get_mut(..name.len())?;
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    let at = TABLE.binary_search_by(|spec| spec.name.as_bytes().cmp(lower)).ok()?;
    Some(&TABLE[at])
}

const NO_KEY: (i32, i32, i32) = (0, 0, 0);
const ONE_KEY: (i32, i32, i32) = (1, 1, 1);
const ALL_KEYS: (i32, i32, i32) = (1, -1, 1);

/// An entry: name, arity, kind, keys, summary; the other fields are the same for a family.
macro_rules! table {
    ($($group:literal, $permission:expr, $loading:literal: [$($name:literal $arity:literal $kind:expr, $keys:expr, $summary:literal;)*])*) => {
        [$($(Spec {
            name: $name, arity: $arity, permission: $permission, kind: $kind, loading: $loading, keys: $keys,
            group: $group, summary: $summary,
        },)*)*]
    };
}

const READ: Option<Permission> = Some(Permission::Read);
const SCORES: Option<Permission> = Some(Permission::Scope(Scope::ScoresWrite));
const BOARDS: Option<Permission> = Some(Permission::Scope(Scope::BoardsAdmin));

/// The number of commands.
const COUNT: usize = UNSORTED.len();

/// Every command, by name.
pub(super) static TABLE: [Spec; COUNT] = sorted(UNSORTED);

const fn less(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

/// Sorts the table at compile time, so that the source lists it by family.
const fn sorted(mut all: [Spec; COUNT]) -> [Spec; COUNT] {
    let mut at = 1;
    while at < COUNT {
        let mut back = at;
        while back > 0 && less(all[back].name.as_bytes(), all[back - 1].name.as_bytes()) {
            all.swap(back, back - 1);
            back -= 1;
        }
        at += 1;
    }
    all
}

#[rustfmt::skip]
const UNSORTED: [Spec; 55] = table! {
    "connection", None, true: [
        "auth" -2 CommandKind::Connection(ConnectionCommand::Auth), NO_KEY, "Presents an API key.";
        "hello" -1 CommandKind::Connection(ConnectionCommand::Hello), NO_KEY, "Chooses the protocol, presents a key, names the connection.";
        "quit" -1 CommandKind::Connection(ConnectionCommand::Quit), NO_KEY, "Closes the connection.";
        "reset" 1 CommandKind::Connection(ConnectionCommand::Reset), NO_KEY, "Brings the connection back to how it began.";
    ]
    "connection", READ, true: [
        "client" -2 CommandKind::Now(client::client), NO_KEY, "What connections there are, and this one's name.";
        "select" 2 CommandKind::Now(client::select), NO_KEY, "Database 0 is the only one.";
    ]
    "connection", READ, false: [
        "echo" 2 CommandKind::Now(client::echo), NO_KEY, "Says the same.";
        "ping" -1 CommandKind::Now(client::ping), NO_KEY, "Says PONG, or the same.";
    ]
    "server", READ, true: [
        "command" -1 CommandKind::Now(info::command), NO_KEY, "What commands there are.";
        "config" -2 CommandKind::Now(info::config), NO_KEY, "Settings that Redis clients ask for.";
        "info" -1 CommandKind::Now(info::info), NO_KEY, "The state of the server.";
    ]
    "server", READ, false: [
        "dbsize" 1 CommandKind::Read(keys::dbsize), NO_KEY, "How many boards there are.";
        "time" 1 CommandKind::Now(info::time), NO_KEY, "The server's time.";
    ]
    "transactions", READ, false: [
        "multi" 1 CommandKind::Connection(ConnectionCommand::Multi), NO_KEY, "Begins a transaction.";
        "exec" 1 CommandKind::Connection(ConnectionCommand::Exec), NO_KEY, "Does the commands of a transaction, as one unit.";
        "discard" 1 CommandKind::Connection(ConnectionCommand::Discard), NO_KEY, "Forgets the commands of a transaction.";
        "watch" -2 CommandKind::Connection(ConnectionCommand::Watch), ALL_KEYS, "Refused: use the conditions of ZADD.";
    ]
    "generic", READ, false: [
        "exists" -2 CommandKind::Read(keys::exists), ALL_KEYS, "How many of these keys exist.";
        "keys" 2 CommandKind::Read(keys::keys), NO_KEY, "Names of boards by a pattern.";
        "scan" -2 CommandKind::Read(keys::scan), NO_KEY, "Names of boards, some at a time.";
        "type" 2 CommandKind::Read(keys::kind), ONE_KEY, "zset or none.";
    ]
    "generic", BOARDS, false: [
        "del" -2 CommandKind::Connection(ConnectionCommand::Delete), ALL_KEYS, "Deletes boards.";
        "unlink" -2 CommandKind::Connection(ConnectionCommand::Delete), ALL_KEYS, "Deletes boards.";
    ]
    "sorted-set", SCORES, false: [
        "zadd" -4 CommandKind::Write(zset::add::zadd), ONE_KEY, "Sets scores, or submits them.";
        "zincrby" 4 CommandKind::Write(zset::add::zincrby), ONE_KEY, "Adds to a score.";
        "zrem" -3 CommandKind::Write(zset::remove::zrem), ONE_KEY, "Removes members.";
        "zpopmin" -2 CommandKind::Remove(zset::remove::zpopmin), ONE_KEY, "Removes those of the lowest scores.";
        "zpopmax" -2 CommandKind::Remove(zset::remove::zpopmax), ONE_KEY, "Removes those of the highest scores.";
        "zremrangebyrank" 4 CommandKind::Remove(zset::remove::by_rank), ONE_KEY, "Removes a range of places.";
        "zremrangebyscore" 4 CommandKind::Remove(zset::remove::by_score), ONE_KEY, "Removes a range of scores.";
        "zremrangebylex" 4 CommandKind::Remove(zset::remove::by_lex), ONE_KEY, "Removes a range of members of one score.";
    ]
    "sorted-set", READ, false: [
        "zcard" 2 CommandKind::Read(zset::score::zcard), ONE_KEY, "How many members.";
        "zcount" 4 CommandKind::Read(zset::range::zcount), ONE_KEY, "How many members in a range of scores.";
        "zlexcount" 4 CommandKind::Read(zset::range::zlexcount), ONE_KEY, "How many members in a range of members.";
        "zmscore" -3 CommandKind::Read(zset::score::zmscore), ONE_KEY, "Scores of several members.";
        "zrandmember" -2 CommandKind::Read(zset::scan::zrandmember), ONE_KEY, "Some members by chance.";
        "zrange" -4 CommandKind::Read(zset::range::zrange), ONE_KEY, "A range of places, scores or members.";
        "zrangebylex" -4 CommandKind::Read(zset::range::zrangebylex), ONE_KEY, "A range of members of one score.";
        "zrangebyscore" -4 CommandKind::Read(zset::range::zrangebyscore), ONE_KEY, "A range of scores.";
        "zrank" -3 CommandKind::Read(zset::score::zrank), ONE_KEY, "The place from the lowest score.";
        "zrevrange" -4 CommandKind::Read(zset::range::zrevrange), ONE_KEY, "A range of places from the highest score.";
        "zrevrangebylex" -4 CommandKind::Read(zset::range::zrevrangebylex), ONE_KEY, "The same backwards.";
        "zrevrangebyscore" -4 CommandKind::Read(zset::range::zrevrangebyscore), ONE_KEY, "The same backwards.";
        "zrevrank" -3 CommandKind::Read(zset::score::zrevrank), ONE_KEY, "The place from the highest score.";
        "zscan" -3 CommandKind::Read(zset::scan::zscan), ONE_KEY, "Members, some at a time.";
        "zscore" 3 CommandKind::Read(zset::score::zscore), ONE_KEY, "A member's score.";
    ]
    "leaderboard", READ, false: [
        "lb.among" -3 CommandKind::Read(lb::read::among), ONE_KEY, "Players among each other.";
        "lb.around" 5 CommandKind::Read(lb::read::around), ONE_KEY, "The ranks around a player.";
        "lb.durability" 2 CommandKind::Connection(ConnectionCommand::Durability), NO_KEY, "When writes of this connection are answered.";
        "lb.periods" 2 CommandKind::Read(lb::read::periods), ONE_KEY, "The periods of a board.";
        "lb.rank" 3 CommandKind::Read(lb::read::rank), ONE_KEY, "A player's rank.";
        "lb.top" 3 CommandKind::Read(lb::read::top), ONE_KEY, "The best.";
    ]
    "leaderboard", BOARDS, false: [
        "lb.create" -2 CommandKind::Connection(ConnectionCommand::Create), ONE_KEY, "Makes a board.";
    ]
    "leaderboard", SCORES, false: [
        "lb.submit" -4 CommandKind::Write(lb::submit::submit), ONE_KEY, "Submits a score.";
        "lb.msubmit" -4 CommandKind::Write(lb::submit::submit_many), ONE_KEY, "Submits several scores.";
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_found_by_name_in_any_case() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(find(b"ZrevRange").map(|spec| spec.name), Some("zrevrange"));
        assert!(find(b"zrang").is_none() && find(&[b'z'; 99]).is_none());
    }
}
