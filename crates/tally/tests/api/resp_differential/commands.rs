//! Random commands: every command and option, edge scores, many ties, and errors.

use std::fmt;
use tally_testkit::rng::Rng;

/// One command.
pub(crate) struct Command {
    pub(crate) args: Vec<Vec<u8>>,
}

impl Command {
    /// Whether this is its name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.args[0].eq_ignore_ascii_case(name.as_bytes())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for arg in &self.args {
            write!(f, "\"{}\" ", arg.escape_ascii())?;
        }
        Ok(())
    }
}

const KEYS: [&str; 4] = ["a", "b", "c:long key", "missing"];
/// All members of it have one score: ranges of members are specified there.
const LEX_KEY: &str = "lex";
const MEMBERS: [&str; 14] =
    ["", "a", "b", "c", "aa", "ab", "z", "é", "日本", "m 1", "m\r\n2", "[x", "(y", "-"];
/// Not here: hexadecimal ones, which Redis takes and Valkey does not.
const SCORES: [&str; 29] = [
    "0",
    "1",
    "1",
    "1",
    "2",
    "2",
    "3",
    "-1",
    "-1",
    "10",
    "0.1",
    "0.1",
    "1.5",
    "-2.25",
    "3.141592653589793",
    "1e3",
    "inf",
    "+inf",
    "-inf",
    "1e300",
    "-1e300",
    "5e-324",
    "17179869184",
    "9007199254740993",
    "1e-7",
    "123456789.125",
    "-0",
    "1e17",
    "1e21",
];
const WRONG_SCORES: [&str; 8] = ["", "abc", "nan", "1 ", " 1", "1e400", "--1", "1,5"];
const BOUNDS: [&str; 17] = [
    "-inf", "+inf", "inf", "0", "1", "(1", "2", "(2", "-1", "(-1", "0.1", "(0.1", "10", "(inf", "(-inf",
    "1e300", "1.5",
];
const WRONG_BOUNDS: [&str; 4] = ["abc", "((1", "nan", "(x"];
const LEX_BOUNDS: [&str; 11] = ["-", "+", "[a", "(a", "[b", "(c", "[aa", "[", "(", "[zz", "(é"];
const WRONG_LEX_BOUNDS: [&str; 4] = ["a", "", "--", "1"];
const INDEXES: [&str; 13] = ["0", "1", "2", "3", "5", "9", "-1", "-2", "-3", "-9", "100", "-100", "1"];
const WRONG_INDEXES: [&str; 5] = ["x", "", "1.5", "9223372036854775808", "+1"];

/// Makes commands.
pub(crate) struct Commands {
    rng: Rng,
}

impl Commands {
    pub(crate) fn new(rng: Rng) -> Self {
        Self { rng }
    }

    /// Some commands to be sent at once.
    pub(crate) fn pipeline(&mut self) -> Vec<Command> {
        let length = match self.rng.below(4) {
            0 => 1,
            1 => 1 + self.rng.below(5),
            2 => 1 + self.rng.below(40),
            _ => 1 + self.rng.below(300),
        };
        let mut all = Vec::new();
        while (all.len() as u64) < length {
            if self.rng.percent(4) {
                self.transaction(&mut all);
            } else {
                all.push(self.one(false));
            }
        }
        all
    }

    fn transaction(&mut self, all: &mut Vec<Command>) {
        all.push(command(&["MULTI"]));
        for _ in 0..self.rng.below(12) {
            all.push(self.one(true));
        }
        // No MULTI within: Redis rejects nesting, and Valkey uses another message and aborts.
        all.push(command(&[if self.rng.percent(90) { "EXEC" } else { "DISCARD" }]));
    }

    fn one(&mut self, in_transaction: bool) -> Command {
        let mut one = match self.rng.below(100) {
            0..=24 => self.add(),
            25..=31 => self.incr(),
            32..=39 => self.remove(),
            40..=44 => self.pop(),
            45..=49 => self.remove_range(),
            50..=64 => self.member(),
            65..=84 => self.range(),
            85..=89 => self.lex(),
            90..=93 if !in_transaction => self.random(),
            _ => self.general(in_transaction),
        };
        // Any case; now and then an argument too few or too many.
        if self.rng.percent(10) {
            one.args[0] = one.args[0].to_ascii_lowercase();
        }
        if self.rng.percent(1) && one.args.len() > 1 && !one.is("DEL") && !one.is("UNLINK") {
            one.args.pop();
        }
        if self.rng.percent(1) && !one.is("CLIENT") {
            one.args.push(b"extra".to_vec());
        }
        one
    }

    fn add(&mut self) -> Command {
        let mut args = vec!["ZADD".to_owned(), self.key()];
        for option in ["NX", "XX", "GT", "lt", "CH", "INCR"] {
            if self.rng.percent(8) {
                args.push(option.into());
            }
        }
        for _ in 0..=self.rng.below(3) {
            args.push(self.score());
            args.push(self.member_name());
        }
        owned(args)
    }

    fn incr(&mut self) -> Command {
        let (key, score, member) = (self.key(), self.score(), self.member_name());
        owned(vec!["ZINCRBY".into(), key, score, member])
    }

    fn remove(&mut self) -> Command {
        let mut args = vec!["ZREM".to_owned(), self.any_key()];
        for _ in 0..=self.rng.below(3) {
            args.push(self.member_name());
        }
        owned(args)
    }

    fn pop(&mut self) -> Command {
        let name = *self.rng.pick(&["ZPOPMIN", "ZPOPMAX"]);
        let mut args = vec![name.to_owned(), self.any_key()];
        if self.rng.percent(50) {
            args.push((*self.rng.pick(&["0", "1", "2", "5", "100", "-1", "x"])).into());
        }
        owned(args)
    }

    fn remove_range(&mut self) -> Command {
        match self.rng.below(3) {
            0 => {
                let (key, from, to) = (self.any_key(), self.index(), self.index());
                owned(vec!["ZREMRANGEBYRANK".into(), key, from, to])
            }
            1 => {
                let (key, from, to) = (self.any_key(), self.bound(), self.bound());
                owned(vec!["ZREMRANGEBYSCORE".into(), key, from, to])
            }
            _ => {
                let (from, to) = (self.lex_bound(), self.lex_bound());
                owned(vec!["ZREMRANGEBYLEX".into(), LEX_KEY.into(), from, to])
            }
        }
    }

    fn member(&mut self) -> Command {
        let (key, member) = (self.any_key(), self.member_name());
        match self.rng.below(5) {
            0 => owned(vec!["ZSCORE".into(), key, member]),
            1 => owned(vec!["ZMSCORE".into(), key, member, self.member_name()]),
            2 => owned(vec!["ZCARD".into(), key]),
            _ => {
                let name = *self.rng.pick(&["ZRANK", "ZREVRANK"]);
                let mut args = vec![name.to_owned(), key, member];
                if self.rng.percent(30) {
                    args.push((*self.rng.pick(&["WITHSCORE", "withscore", "WITHSCORES"])).into());
                }
                owned(args)
            }
        }
    }

    fn range(&mut self) -> Command {
        let key = self.any_key();
        match self.rng.below(5) {
            0 => {
                let name = *self.rng.pick(&["ZRANGE", "ZREVRANGE"]);
                let mut args = vec![name.to_owned(), key, self.index(), self.index()];
                self.options(&mut args, &["WITHSCORES", "REV", "BYSCORE", "BYLEX", "LIMIT"]);
                owned(args)
            }
            1 => {
                let mut args = vec!["ZRANGE".to_owned(), key, self.bound(), self.bound(), "BYSCORE".into()];
                self.options(&mut args, &["REV", "WITHSCORES", "LIMIT", "BYLEX"]);
                owned(args)
            }
            2 | 3 => {
                let name = *self.rng.pick(&["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]);
                let mut args = vec![name.to_owned(), key, self.bound(), self.bound()];
                self.options(&mut args, &["WITHSCORES", "LIMIT"]);
                owned(args)
            }
            _ => {
                let (from, to) = (self.bound(), self.bound());
                owned(vec!["ZCOUNT".into(), key, from, to])
            }
        }
    }

    fn lex(&mut self) -> Command {
        let (from, to) = (self.lex_bound(), self.lex_bound());
        match self.rng.below(4) {
            0 => {
                let member = self.member_name();
                owned(vec!["ZADD".into(), LEX_KEY.into(), "0".into(), member])
            }
            1 => owned(vec!["ZLEXCOUNT".into(), LEX_KEY.into(), from, to]),
            2 => {
                let mut args = vec!["ZRANGE".to_owned(), LEX_KEY.into(), from, to, "BYLEX".into()];
                self.options(&mut args, &["REV", "LIMIT", "WITHSCORES"]);
                owned(args)
            }
            _ => {
                let name = *self.rng.pick(&["ZRANGEBYLEX", "ZREVRANGEBYLEX"]);
                let mut args = vec![name.to_owned(), LEX_KEY.into(), from, to];
                self.options(&mut args, &["LIMIT"]);
                owned(args)
            }
        }
    }

    fn random(&mut self) -> Command {
        let mut args = vec!["ZRANDMEMBER".to_owned(), self.any_key()];
        if self.rng.percent(80) {
            args.push((*self.rng.pick(&["0", "1", "3", "50", "-3", "-1", "x"])).into());
            if self.rng.percent(40) {
                args.push("WITHSCORES".into());
            }
        }
        owned(args)
    }

    fn general(&mut self, in_transaction: bool) -> Command {
        let key = self.any_key();
        match self.rng.below(16) {
            0 => owned(vec!["EXISTS".into(), key, self.any_key()]),
            1 => owned(vec!["TYPE".into(), key]),
            2 => owned(vec![(*self.rng.pick(&["DEL", "UNLINK"])).into(), key]),
            3 => command(&["DBSIZE"]),
            4 if !in_transaction => owned(vec![
                "KEYS".into(),
                (*self.rng.pick(&["*", "a*", "[ab]", "?", "c:*", "nothing"])).into(),
            ]),
            5 => command(&["PING"]),
            6 => command(&["PING", "x y"]),
            7 => command(&["ECHO", "message"]),
            8 => owned(vec!["SELECT".into(), (*self.rng.pick(&["0", "x", "0"])).into()]),
            9 => command(&["NOSUCH", "thing", "with args"]),
            10 => command(&["CLIENT", "SETNAME", *self.rng.pick(&["name", "bad name", ""])]),
            11 => command(&["CLIENT", "GETNAME"]),
            12 if !in_transaction => command(&[*self.rng.pick(&["EXEC", "DISCARD"])]),
            13 => command(&["CLIENT", "NO-EVICT", *self.rng.pick(&["on", "off", "maybe"])]),
            14 => command(&["CLIENT", "NO-TOUCH", "on"]),
            _ => command(&["CLIENT", "SETINFO", *self.rng.pick(&["LIB-NAME", "lib-ver", "x"]), "value"]),
        }
    }

    fn options(&mut self, args: &mut Vec<String>, options: &[&str]) {
        for option in options {
            if !self.rng.percent(35) {
                continue;
            }
            args.push((*option).to_owned());
            if *option == "LIMIT" {
                for _ in 0..2 {
                    let number = *self.rng.pick(&["0", "1", "2", "10", "-1", "x"]);
                    args.push(number.into());
                }
            }
        }
        if self.rng.percent(2) {
            args.push("NONSENSE".into());
        }
    }

    fn key(&mut self) -> String {
        (*self.rng.pick(&KEYS[..3])).into()
    }

    fn any_key(&mut self) -> String {
        (*self.rng.pick(&KEYS)).into()
    }

    /// No name of a player is empty, so neither is a member here.
    fn member_name(&mut self) -> String {
        if self.rng.percent(60) {
            return format!("m{}", self.rng.below(40));
        }
        (*self.rng.pick(&MEMBERS[1..])).into()
    }

    fn score(&mut self) -> String {
        if self.rng.percent(3) {
            return (*self.rng.pick(&WRONG_SCORES)).into();
        }
        if self.rng.percent(30) {
            return self.rng.between(-20, 20).to_string();
        }
        (*self.rng.pick(&SCORES)).into()
    }

    fn bound(&mut self) -> String {
        let wrong = self.rng.percent(2);
        (*self.rng.pick(if wrong { &WRONG_BOUNDS[..] } else { &BOUNDS[..] })).into()
    }

    fn lex_bound(&mut self) -> String {
        let wrong = self.rng.percent(2);
        (*self.rng.pick(if wrong { &WRONG_LEX_BOUNDS[..] } else { &LEX_BOUNDS[..] })).into()
    }

    fn index(&mut self) -> String {
        let wrong = self.rng.percent(2);
        (*self.rng.pick(if wrong { &WRONG_INDEXES[..] } else { &INDEXES[..] })).into()
    }
}

fn command(args: &[&str]) -> Command {
    Command { args: args.iter().map(|arg| arg.as_bytes().to_vec()).collect() }
}

fn owned(args: Vec<String>) -> Command {
    Command { args: args.into_iter().map(String::into_bytes).collect() }
}
