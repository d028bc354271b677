//! The last acknowledged score of each player, which the server must keep.
//!
//! The scores are exact: each player belongs to one connection, which has one request in flight at a time. A submit
//! without a response leaves its player unknown, because both scores would be right.

/// The acknowledged scores of one board.
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
    /// For a board without scores.
    #[must_use]
    pub fn new(players: u64) -> Self {
        let players = usize::try_from(players).expect("players fit in memory");
        Self { players: vec![State::Absent; players] }
    }

    /// The number of players that the board may have.
    #[must_use]
    pub fn players(&self) -> u64 {
        self.players.len() as u64
    }

    /// The last acknowledged score; `None` if it is unknown.
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
