//! What one arrival does: calls in a row, on one connection, as one member or as the game's server.
//!
//! Not here: when it begins, and its figures.

use crate::draws::{Draws, Skew};
use crate::people::{self, People};
use crate::random::Random;
use crate::request::Common;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Range;

/// The highest amount of a transfer, so that members do not soon run out of money.
const AMOUNT_MAX: u64 = 100;
/// Transactions of a page.
const PAGE: u32 = 20;
/// Scores are below this.
const SCORE_END: u64 = 1_000_000_000;

/// What arrivals do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journey {
    /// A transfer to a phone number.
    Transfers,
    /// A score, or a page around a player.
    Scores,
    /// Profile, wallet and ranks.
    MainPage,
    /// Sign-in, main page, list of transactions, transfer to a phone number: six calls.
    Mixed,
}

const SIGN_IN: Call = Call { name: "sign-in", change: true };
const PROFILE: Call = Call { name: "profile", change: false };
const WALLET: Call = Call { name: "wallet", change: false };
const RANKS: Call = Call { name: "ranks", change: false };
const LIST: Call = Call { name: "transactions", change: false };
const TRANSFER: Call = Call { name: "transfer", change: true };
const SCORE: Call = Call { name: "score", change: true };
const AROUND: Call = Call { name: "around", change: false };

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: &'static str,
    change: bool,
}

impl Journey {
    /// Its calls, in order; an arrival of `Scores` makes one of them.
    pub(super) const fn calls(self) -> &'static [Call] {
        match self {
            Self::Transfers => &[TRANSFER],
            Self::Scores => &[SCORE, AROUND],
            Self::MainPage => &[PROFILE, WALLET, RANKS],
            Self::Mixed => &[SIGN_IN, PROFILE, WALLET, RANKS, LIST, TRANSFER],
        }
    }

    /// The names of its calls, in order.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        self.calls().iter().map(|call| call.name).collect()
    }

    /// Whether members must have signed in before it begins.
    pub(super) fn needs_tokens(self) -> bool {
        matches!(self, Self::Transfers | Self::MainPage)
    }
}

/// The protocol of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// The Redis protocol; only for [`Journey::Scores`].
    Redis,
}

/// The server, the members and the requests.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The protocol of the server.
    pub protocol: Protocol,
    /// Where the server listens.
    pub address: SocketAddr,
    /// What arrivals do.
    pub journey: Journey,
    /// The members that act.
    pub people: People,
    /// The number of members that act; any member can receive money.
    pub members: u64,
    /// The distribution of recipients of money, and of players that score.
    pub skew: Skew,
    /// A key of the game's server, for scores.
    pub key: Option<String>,
    /// The leaderboard of scores.
    pub board: String,
    /// The percentage of arrivals of `Scores` that read a page of five players on either side of a player.
    pub reads: u32,
    /// A word that is unique to this run, so that its transfers are not taken for retries.
    pub run: String,
    /// Equal seeds give equal requests.
    pub seed: u64,
}

/// Draws the member of each iteration, and writes the requests.
pub(super) struct Director {
    scene: Scene,
    /// Headers of each signed-in member.
    tokens: Vec<Common>,
    signed_out: Common,
    actors: Draws,
    any_member: Draws,
    random: Random,
    number: u64,
    /// Reused.
    body: String,
}

/// The member of an iteration.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    member: u64,
    /// Set after a sign-in of this iteration.
    token: Option<Common>,
}

impl Director {
    pub(super) fn new(scene: Scene, tokens: &[String]) -> Self {
        let headers = |token: &String| Common::new(scene.address, Some(token));
        Self {
            tokens: tokens.iter().map(headers).collect(),
            signed_out: Common::new(scene.address, scene.key.as_deref()),
            actors: Draws::new(Skew::Uniform, scene.members),
            any_member: Draws::new(scene.skew, scene.people.count),
            random: Random::new(scene.seed),
            number: 0,
            body: String::new(),
            scene,
        }
    }

    /// The member that acts next.
    pub(super) fn actor(&mut self) -> Actor {
        Actor { member: self.actors.draw(&mut self.random), token: None }
    }

    /// Which of the journey's calls the next arrival makes.
    pub(super) fn calls(&mut self) -> Range<usize> {
        match self.scene.journey {
            Journey::Scores if self.random.below(100) < u64::from(self.scene.reads) => 1..2,
            Journey::Scores => 0..1,
            journey => 0..journey.calls().len(),
        }
    }

    /// Writes a call of an actor.
    pub(super) fn request(&mut self, out: &mut Vec<u8>, call: Call, actor: &Actor) {
        let headers = actor.token.as_ref().or_else(|| self.tokens.get(actor.member as usize));
        let headers = headers.unwrap_or(&self.signed_out);
        match call {
            SIGN_IN => {
                let one = self.scene.people.person(actor.member);
                sign_in(&mut self.body, &one.login, &one.password);
                self.signed_out.send(out, "POST", format_args!("/auth/signin"), self.body.as_bytes());
            }
            TRANSFER => {
                let to = other(&self.any_member, &mut self.random, actor.member);
                let (one, to) = (self.scene.people.person(actor.member), self.scene.people.person(to));
                let amount = 1 + self.random.below(AMOUNT_MAX);
                self.body.clear();
                // The PIN as a number, as scripts of clients send it: a PIN with a leading 0 has fewer digits then.
                let pin: u64 = one.pin.parse().unwrap_or_default();
                let (phone, body) = (&to.phone, &mut self.body);
                write!(body, "{{\"phoneNumber\":\"{phone}\",\"amount\":{amount},\"password\":{pin}}}")
                    .expect("a string takes everything");
                self.number += 1;
                let key = format_args!("idempotency-key: {}-{}\r\n", self.scene.run, self.number);
                headers.send_with(
                    out,
                    "POST",
                    format_args!("/transfer/phone-num"),
                    key,
                    self.body.as_bytes(),
                );
            }
            SCORE => {
                let (player, score) = (self.player(), self.random.below(SCORE_END));
                let board = &self.scene.board;
                if self.scene.protocol == Protocol::Redis {
                    out.clear();
                    return command(out, &["LB.SUBMIT", board, &player, &score.to_string()]);
                }
                self.body.clear();
                write!(self.body, "{{\"player\":\"{player}\",\"score\":{score}}}")
                    .expect("a string takes everything");
                let path = format_args!("/v1/leaderboards/{board}/scores");
                self.signed_out.send(out, "POST", path, self.body.as_bytes());
            }
            AROUND => {
                let (player, board) = (self.player(), &self.scene.board);
                if self.scene.protocol == Protocol::Redis {
                    out.clear();
                    return command(out, &["LB.AROUND", board, &player, "5", "5"]);
                }
                let path = format_args!("/v1/leaderboards/{board}/players/{player}/around?above=5&below=5");
                self.signed_out.get(out, path);
            }
            PROFILE => headers.get(out, format_args!("/v1/me")),
            WALLET => headers.get(out, format_args!("/v1/me/wallet")),
            RANKS => headers.get(out, format_args!("/v1/me/ranks")),
            _ => headers.get(out, format_args!("/v1/me/transactions?limit={PAGE}")),
        }
    }

    fn player(&mut self) -> String {
        people::player(self.any_member.draw(&mut self.random) + 1)
    }

    /// Keeps the token of a sign-in; `None` if its response has none.
    pub(super) fn answered(&self, call: Call, actor: &mut Actor, body: &[u8]) -> Option<()> {
        if call == SIGN_IN {
            actor.token = Some(Common::new(self.scene.address, Some(&token(body)?)));
        }
        Some(())
    }

    /// The sign-in of a member before the run.
    pub(super) fn first_sign_in(&mut self, out: &mut Vec<u8>, member: u64) {
        self.request(out, SIGN_IN, &Actor { member, token: None });
    }
}

/// Appends a command of the Redis protocol.
pub(super) fn command(out: &mut Vec<u8>, words: &[&str]) {
    let written = write!(out, "*{}\r\n", words.len());
    let each = |word: &&str| write!(out, "${}\r\n{word}\r\n", word.len());
    written.and_then(|()| words.iter().try_for_each(each)).expect("a buffer takes everything");
}

fn sign_in(body: &mut String, login: &str, password: &str) {
    body.clear();
    let (login, password) = (serde_json::Value::from(login), serde_json::Value::from(password));
    write!(body, "{{\"loginId\":{login},\"password\":{password}}}").expect("a string takes everything");
}

/// Another member. If there is only one, it returns that one, and the server rejects the transfer.
fn other(any_member: &Draws, random: &mut Random, than: u64) -> u64 {
    for _ in 0..100 {
        let drawn = any_member.draw(random);
        if drawn != than {
            return drawn;
        }
    }
    than
}

/// The token in a response to a sign-in.
pub(super) fn token(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(answer["data"]["accessToken"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn director(journey: Journey, tokens: usize) -> Director {
        let scene = Scene {
            address: "127.0.0.1:8420".parse().unwrap(),
            journey,
            people: People::seeded(10),
            members: 4,
            skew: Skew::Uniform,
            key: Some("tally_1_2".into()),
            protocol: Protocol::Http,
            board: "goals".into(),
            reads: 0,
            run: "r1".into(),
            seed: 1,
        };
        let tokens: Vec<String> = (0..tokens).map(|number| format!("token-{number}")).collect();
        Director::new(scene, &tokens)
    }

    fn text(director: &mut Director, call: Call, actor: &Actor) -> (String, serde_json::Value) {
        let mut out = Vec::new();
        director.request(&mut out, call, actor);
        let text = String::from_utf8(out).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), serde_json::from_str(body).unwrap_or_default())
    }

    #[test]
    fn a_transfer_is_what_a_phone_sends() {
        let mut director = director(Journey::Transfers, 4);
        let (mut keys, mut actors) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..100 {
            let actor = director.actor();
            actors.insert(actor.member);
            let (head, body) = text(&mut director, TRANSFER, &actor);
            assert!(head.starts_with("POST /transfer/phone-num HTTP/1.1\r\n"), "{head}");
            assert!(head.contains(&format!("authorization: Bearer token-{}\r\n", actor.member)), "{head}");
            let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap();
            assert!(keys.insert(key.to_owned()), "each has a key of its own");
            let own = director.scene.people.person(actor.member);
            assert_ne!(body["phoneNumber"], own.phone);
            assert!(body["password"].is_number());
            assert!((1..=AMOUNT_MAX).contains(&body["amount"].to_string().parse().unwrap()));
        }
        assert_eq!(actors, BTreeSet::from([0, 1, 2, 3]));
    }

    #[test]
    fn a_signed_in_member_uses_that_token() {
        let mut director = director(Journey::Mixed, 0);
        let mut actor = director.actor();
        let (head, body) = text(&mut director, SIGN_IN, &actor);
        assert!(head.starts_with("POST /auth/signin "));
        let own = director.scene.people.person(actor.member);
        assert_eq!((&body["loginId"], &body["password"]), (&own.login.into(), &own.password.into()));
        assert_eq!(director.answered(SIGN_IN, &mut actor, b"{}"), None);
        let answer = br#"{"data":{"accessToken":"abc","tokenType":"Bearer","expiresIn":3600}}"#;
        assert_eq!(director.answered(SIGN_IN, &mut actor, answer), Some(()));
        for call in [PROFILE, WALLET, RANKS, LIST] {
            let (head, _) = text(&mut director, call, &actor);
            assert!(head.starts_with("GET /v1/me") && head.ends_with("Bearer abc"), "{head}");
        }
    }

    #[test]
    fn a_score_goes_with_the_key_of_the_server() {
        let mut director = director(Journey::Scores, 0);
        let actor = director.actor();
        let (head, body) = text(&mut director, SCORE, &actor);
        assert!(head.starts_with("POST /v1/leaderboards/goals/scores ") && head.contains("Bearer tally_1_2"));
        assert!(body["player"].is_string() && body["score"].is_number());
        let (head, _) = text(&mut director, AROUND, &actor);
        assert!(head.starts_with("GET /v1/leaderboards/goals/players/player00000000"), "{head}");
        assert!(head.contains("/around?above=5&below=5 HTTP/1.1"), "{head}");
        assert!((0..100).all(|_| director.calls() == (0..1)), "without reads only scores");
        director.scene.reads = 30;
        let reads = (0..10_000).filter(|_| director.calls() == (1..2)).count();
        assert!((2_500..3_500).contains(&reads), "{reads}");
    }

    #[test]
    fn both_go_in_the_redis_protocol_as_well() {
        let mut director = director(Journey::Scores, 0);
        director.scene.protocol = Protocol::Redis;
        let (actor, mut out) = (director.actor(), Vec::new());
        director.request(&mut out, AROUND, &actor);
        let text = String::from_utf8(out.clone()).unwrap();
        assert!(text.starts_with("*5\r\n$9\r\nLB.AROUND\r\n$5\r\ngoals\r\n$"), "{text}");
        director.request(&mut out, SCORE, &actor);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("*4\r\n$9\r\nLB.SUBMIT\r\n$5\r\ngoals\r\n$"), "{text}");
    }
}
