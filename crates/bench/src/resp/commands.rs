//! The commands: those of a sorted set, on random members, with the same bytes for both servers.
//!
//! Members are 16 bytes without a pattern. A write is for a member that exists, so the board keeps its size. Not
//! here: which connection sends them, and how often.

use crate::index::players::id;
use std::io::Write;
use tally_load::Random;
use tally_wire::resp::command;

/// The name of the key and of the board.
pub(super) const KEY: &str = "bench";
/// Scores are below the first; increments below the second.
const SCORE_END: u64 = 1_000_000_000;
const INCREMENT_END: u64 = 1_000;

/// A kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchCommand {
    Zadd,
    Zincrby,
    Zrevrank,
    Zscore,
    /// The best ten.
    Zrevrange,
    /// In ten commands six `ZADD` and four `ZREVRANK`, in random order.
    Mix,
}

impl BenchCommand {
    /// The name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Zadd => "ZADD",
            Self::Zincrby => "ZINCRBY",
            Self::Zrevrank => "ZREVRANK",
            Self::Zscore => "ZSCORE",
            Self::Zrevrange => "ZREVRANGE 0 9",
            Self::Mix => "60 % ZADD, 40 % ZREVRANK",
        }
    }
}

/// Random commands of one kind.
pub(super) struct Commands {
    kind: BenchCommand,
    members: u64,
    random: Random,
    number: Vec<u8>,
}

impl Commands {
    /// The commands of this seed, on a board with so many members.
    pub(super) fn new(kind: BenchCommand, members: u64, seed: u64) -> Self {
        Self { kind, members, random: Random::new(seed), number: Vec::new() }
    }

    /// Appends the next command.
    pub(super) fn append(&mut self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            BenchCommand::Mix if self.random.below(10) < 6 => BenchCommand::Zadd,
            BenchCommand::Mix => BenchCommand::Zrevrank,
            kind => kind,
        };
        let member = id(self.random.below(self.members));
        let key = KEY.as_bytes();
        match kind {
            BenchCommand::Zadd | BenchCommand::Mix => self.write(b"ZADD", SCORE_END, &member, out),
            BenchCommand::Zincrby => self.write(b"ZINCRBY", INCREMENT_END, &member, out),
            BenchCommand::Zrevrank => command(&[b"ZREVRANK", key, &member[..]], out),
            BenchCommand::Zscore => command(&[b"ZSCORE", key, &member[..]], out),
            BenchCommand::Zrevrange => command(&["ZREVRANGE", KEY, "0", "9", "WITHSCORES"], out),
        }
    }

    /// Appends the `ZADD` that gives the member of this number its first score.
    pub(super) fn append_first(&mut self, number: u64, out: &mut Vec<u8>) {
        self.write(b"ZADD", SCORE_END, &id(number), out);
    }

    fn write(&mut self, name: &[u8], end: u64, member: &[u8], out: &mut Vec<u8>) {
        self.number.clear();
        write!(self.number, "{}", self.random.below(end)).expect("a buffer takes everything");
        command(&[name, KEY.as_bytes(), &self.number, member], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn text(kind: BenchCommand, count: usize) -> String {
        let (mut commands, mut out) = (Commands::new(kind, 10, 1), Vec::new());
        (0..count).for_each(|_| commands.append(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_seed_repeats_and_every_number_is_another_member() {
        assert_eq!(text(BenchCommand::Mix, 100), text(BenchCommand::Mix, 100));
        let members: BTreeSet<_> = (0..10_000).map(id).collect();
        assert_eq!(members.len(), 10_000);
    }

    #[test]
    fn a_mix_has_both_in_its_measure() {
        let mix = text(BenchCommand::Mix, 10_000);
        let count = |name: &str| mix.matches(name).count();
        assert!((5_800..6_200).contains(&count("ZADD")), "{}", count("ZADD"));
        assert_eq!(count("ZADD") + count("ZREVRANK"), 10_000);
    }

    #[test]
    fn a_command_is_what_servers_read() {
        assert!(text(BenchCommand::Zincrby, 1).starts_with("*4\r\n$7\r\nZINCRBY\r\n$5\r\nbench\r\n$"));
        let top = "*5\r\n$9\r\nZREVRANGE\r\n$5\r\nbench\r\n$1\r\n0\r\n$1\r\n9\r\n$10\r\nWITHSCORES\r\n";
        assert_eq!(text(BenchCommand::Zrevrange, 1), top);
    }
}
