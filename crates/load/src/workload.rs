//! The requests: their kinds, and which connection sends for which players.
//!
//! Each connection submits for players of its own: those whose number leaves its remainder. So the last acknowledged
//! score is known without the order in which the server handled connections. Reads are of any player.

use crate::draws::{Draws, Skew};
use crate::random::Random;
use crate::request::Common;
use std::io::Write;
use std::net::SocketAddr;

/// Scores are below this, so that players meet and pass each other.
const SCORE_END: u64 = 1_000_000_000;

/// The server and the board.
#[derive(Clone, Debug)]
pub struct LoadTarget {
    /// Where the server listens.
    pub address: SocketAddr,
    /// An API key, if the server needs one.
    pub token: Option<String>,
    /// The board: letters, digits and `-`.
    pub board: String,
    /// Its number of players.
    pub players: u64,
}

impl LoadTarget {
    pub(crate) fn common(&self) -> Common {
        Common::new(self.address, self.token.as_deref())
    }
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A random score for a random player, durable when answered.
    Submit,
    /// The best ten.
    Top,
    /// A random player's rank.
    Rank,
    /// A random player with five neighbours on either side.
    Around,
    /// In ten requests four submits, two tops, two ranks and two arounds, in random order.
    Mix,
    /// As many submits as arounds, in random order.
    Half,
}

impl RequestKind {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Top => "top 10",
            Self::Rank => "rank",
            Self::Around => "around ±5",
            Self::Mix => "mix",
            Self::Half => "half ±5, half submits",
        }
    }
}

/// The name of a player: 16 bytes.
#[must_use]
pub fn player(number: u64) -> String {
    format!("player{number:010}")
}

/// A submit in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) player: u64,
    pub(crate) score: i64,
}

/// The requests of one connection.
pub(crate) struct Requests {
    common: Common,
    kind: RequestKind,
    board: String,
    connection: u64,
    connections: u64,
    /// All players, and those of this connection.
    any_player: Draws,
    own: Draws,
    random: Random,
    request: Vec<u8>,
    body: Vec<u8>,
}

impl Requests {
    /// The requests of connection `number` of several.
    ///
    /// # Panics
    ///
    /// If there are more connections than players: then some would have none.
    pub(crate) fn new(
        target: &LoadTarget,
        (kind, skew): (RequestKind, Skew),
        (connection, connections): (u64, u64),
        seed: u64,
    ) -> Self {
        assert!(connections <= target.players, "each connection needs a player of its own");
        Self {
            common: target.common(),
            kind,
            board: target.board.clone(),
            connection,
            connections,
            any_player: Draws::new(skew, target.players),
            own: Draws::new(skew, (target.players - connection).div_ceil(connections)),
            random: Random::new(seed ^ (connection << 32)),
            request: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Makes the next request; returns its submit, if it is one.
    pub(crate) fn next(&mut self) -> Option<Sent> {
        let kind = match self.kind {
            RequestKind::Mix => self.mixed(),
            RequestKind::Half if self.random.below(2) == 0 => RequestKind::Submit,
            RequestKind::Half => RequestKind::Around,
            kind => kind,
        };
        let board = &self.board;
        match kind {
            RequestKind::Submit | RequestKind::Mix | RequestKind::Half => return Some(self.submit()),
            RequestKind::Top => {
                let path = format_args!("/v1/leaderboards/{board}/scores?limit=10");
                self.common.get(&mut self.request, path);
            }
            RequestKind::Rank => {
                let number = self.any_player.draw(&mut self.random);
                let path = format_args!("/v1/leaderboards/{board}/players/player{number:010}");
                self.common.get(&mut self.request, path);
            }
            RequestKind::Around => {
                let number = self.any_player.draw(&mut self.random);
                let path = format_args!(
                    "/v1/leaderboards/{board}/players/player{number:010}/around?above=5&below=5"
                );
                self.common.get(&mut self.request, path);
            }
        }
        None
    }

    /// The bytes of the last request.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.request
    }

    fn mixed(&mut self) -> RequestKind {
        match self.random.below(10) {
            0..4 => RequestKind::Submit,
            4..6 => RequestKind::Top,
            6..8 => RequestKind::Rank,
            _ => RequestKind::Around,
        }
    }

    fn submit(&mut self) -> Sent {
        let player = self.own.draw(&mut self.random) * self.connections + self.connection;
        let score = self.random.below(SCORE_END) as i64;
        self.body.clear();
        write!(self.body, "{{\"player\":\"player{player:010}\",\"score\":{score}}}")
            .expect("a buffer takes everything");
        let path = format_args!("/v1/leaderboards/{}/scores", self.board);
        self.common.send(&mut self.request, "POST", path, &self.body);
        Sent { player, score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn requests(kind: RequestKind, connection: u64) -> Requests {
        let address = "127.0.0.1:8420".parse().unwrap();
        let target = LoadTarget { address, token: None, board: "b".into(), players: 10 };
        Requests::new(&target, (kind, Skew::Uniform), (connection, 4), 1)
    }

    #[test]
    fn every_player_belongs_to_one_connection() {
        let mut owners = Vec::new();
        for connection in 0..4 {
            let mut mine = requests(RequestKind::Submit, connection);
            let players: BTreeSet<u64> = (0..500).map(|_| mine.next().unwrap().player).collect();
            assert!(players.iter().all(|player| player % 4 == connection));
            owners.extend(players);
        }
        owners.sort_unstable();
        assert_eq!(owners, Vec::from_iter(0..10));
    }

    #[test]
    fn a_request_is_what_a_server_reads() {
        let mut submit = requests(RequestKind::Submit, 0);
        let sent = submit.next().unwrap();
        let text = std::str::from_utf8(submit.bytes()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1/leaderboards/b/scores HTTP/1.1\r\nhost: 127.0.0.1:8420\r\n"));
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["player"], player(sent.player));
        assert_eq!(body["score"], sent.score);
    }

    #[test]
    fn a_mix_has_reads_and_submits() {
        let mut mix = requests(RequestKind::Mix, 0);
        let submits = (0..1_000).filter(|_| mix.next().is_some()).count();
        assert!((350..450).contains(&submits), "{submits}");
        let mut half = requests(RequestKind::Half, 0);
        let submits = (0..1_000).filter(|_| half.next().is_some()).count();
        assert!((450..550).contains(&submits), "{submits}");
    }
}
