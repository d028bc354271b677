//! Ranks, as tally reads them: one by one, many of one board in a script, one of each of many boards at once.
//!
//! Boards are dense: those are in one slot each on a cluster too, so the boards of a page are spread over all nodes.

use super::{LOOKUPS, Pages, Way, prove_page};
use crate::error::{During, Error, prove};
use std::time::{Duration, Instant};
use tally_ranking::page::Ranked;
use tally_ranking::redis::{Options, RedisWindow};
use tally_ranking::{RankingError, RedisBackend};
use tally_rules::definition::{Definition, Ranking};
use tally_rules::{Micros, PlayerId, Record};

/// Scores are distinct below this many players.
const PRIME: u64 = 1_009;
const STEP: u64 = 7_919;

/// Boards in a Redis or in a cluster.
pub(super) struct Ranks {
    ranking: RedisBackend,
    windows: Vec<RedisWindow>,
    players: Vec<PlayerId>,
    ranks: Vec<u64>,
}

impl Ranks {
    /// Connects and loads a board with so many players for each look-up of a page.
    pub(super) fn fill(url: &str, players: u64) -> Result<Self, Error> {
        Self::try_fill(url, players).during("load boards into Redis")
    }

    fn try_fill(url: &str, players: u64) -> Result<Self, RankingError> {
        let ranking = RedisBackend::connect(url, &Options::default())?;
        let definition = Definition { ranking: Ranking::Dense, ..Definition::default() };
        // One more, which is not loaded.
        let boards = 0..=LOOKUPS as u64;
        let windows: Vec<RedisWindow> = boards.map(|window| ranking.window(1, window, &definition)).collect();
        let score = |number: u64| number * STEP % PRIME;
        for window in &windows[..LOOKUPS] {
            let mut loader = window.load(1)?;
            for number in 0..players {
                let record = Record { score: score(number) as i64, subscore: 0, at: Micros(0) };
                loader.push(&id(number), &record, 1)?;
            }
            loader.finish()?;
        }
        let better = |own: u64| (0..players).filter(|other| score(*other) > score(own)).count() as u64;
        let numbers = 0..LOOKUPS as u64;
        let (players, ranks) =
            (numbers.clone().map(id).collect(), numbers.map(|own| 1 + better(own)).collect());
        Ok(Self { ranking, windows, players, ranks })
    }
}

fn id(number: u64) -> PlayerId {
    PlayerId::new(&format!("player-{number}")).expect("it is short")
}

/// The rank of a player; 0, which no player has, if there is none.
fn rank(answer: Result<Option<Ranked>, RankingError>) -> u64 {
    answer.ok().flatten().map_or(0, |ranked| ranked.rank)
}

impl Pages for Ranks {
    fn read(&mut self, way: Way, lookups: usize) -> Result<Duration, Error> {
        let players = &self.players[..lookups];
        let items: Vec<(&RedisWindow, &PlayerId)> = self.windows.iter().zip(players).collect();
        let sent_at = Instant::now();
        let answers = match way {
            Way::Loop => items.iter().flat_map(|item| self.ranking.ranks(&[*item])).collect(),
            Way::Command => self.windows[0].ranks(players),
            Way::Pipeline => self.ranking.ranks(&items),
        };
        let took = sent_at.elapsed();
        let ranks: Vec<u64> = answers.into_iter().map(rank).collect();
        prove_page(&ranks, &self.ranks[..lookups], way)?;
        Ok(took)
    }

    fn prove_alone(&mut self) -> Result<(), Error> {
        let mut items: Vec<(&RedisWindow, &PlayerId)> = self.windows.iter().zip(&self.players).collect();
        items[LOOKUPS / 2].0 = &self.windows[LOOKUPS];
        let mut answers = self.ranking.ranks(&items);
        let lost = answers.remove(LOOKUPS / 2);
        prove(lost == Err(RankingError::Lost), || format!("a board that was never loaded says {lost:?}"))?;
        let mut known = self.ranks.clone();
        known.remove(LOOKUPS / 2);
        let ranks: Vec<u64> = answers.into_iter().map(rank).collect();
        prove_page(&ranks, &known, Way::Pipeline)
    }
}
