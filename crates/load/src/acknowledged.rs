//! What the server has promised to keep: the last acknowledged score of each player.
//!
//! It is exact because each player belongs to one connection, which has one request on its way at a time. A submit that
//! was sent and never answered leaves its player unknown: both scores would be right.

/// The promises of one board.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    players: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Score(i64),
    Unknown,
}

impl Acknowledged {
    /// Of a board without scores.
    #[must_use]
    pub fn new(players: u64) -> Self {
        let players = usize::try_from(players).expect("players fit in memory");
        Self { players: vec![State::Absent; players] }
    }

    /// How many players the board may have.
    #[must_use]
    pub fn players(&self) -> u64 {
        self.players.len() as u64
    }

    /// The score that was promised last, where that is known.
    #[must_use]
    pub fn score(&self, player: u64) -> Option<i64> {
        match self.players[player as usize] {
            State::Score(score) => Some(score),
            State::Absent | State::Unknown => None,
        }
    }

    pub(crate) fn promise(&mut self, player: u64, score: i64) {
        self.players[player as usize] = State::Score(score);
    }

    pub(crate) fn forget(&mut self, player: u64) {
        self.players[player as usize] = State::Unknown;
    }
}
