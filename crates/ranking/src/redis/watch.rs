//! The players that changed in a window, whichever server published it, for the subscribers of this server.
//!
//! A server that polls sets a key that expires. While the key exists, the scripts that publish record the changed
//! players. So servers need not know each other, and a window that no server watches costs one check of a key. Only ids
//! are recorded; the current records are read from the ranking. Changes while no server polls are not recorded, and
//! recorded ones expire after seconds.

use super::RankingError;
use super::client::Request;
use super::reply;
use super::script::Script;
use super::window::RedisWindow;
use tally_rules::PlayerId;

/// Players of one poll of a partition. The next poll returns the rest.
const NAMES_MAX: usize = 1_000;
/// How long a poll keeps a window watched.
const WATCHED_MS: u64 = 3_000;

/// The time of the last poll of each partition, by the clock of Redis.
#[derive(Debug, Default)]
pub struct Watched {
    last: Vec<Vec<u8>>,
}

/// Players that changed since, each once, and whether some were dropped because too many changed.
pub type ChangedPlayers = (Vec<PlayerId>, bool);

impl RedisWindow {
    /// The players that changed since the last poll. The first poll returns none.
    pub fn changed(&self, watched: &mut Watched) -> Result<ChangedPlayers, RankingError> {
        watched.last.resize(self.partitions(), Vec::new());
        let request = |(at, last): (usize, &Vec<u8>)| {
            let text = |number: u64| number.to_string().into_bytes();
            self.request(Script::Watch, at, vec![last.clone(), text(NAMES_MAX as u64), text(WATCHED_MS)])
        };
        let requests: Vec<Request> = watched.last.iter().enumerate().map(request).collect();
        let (mut players, mut forgotten) = (Vec::new(), false);
        for (last, answer) in watched.last.iter_mut().zip(self.redis().all(&requests)) {
            let mut values = reply::list(answer?)?.into_iter();
            *last = reply::bytes(reply::next(&mut values)?)?;
            forgotten |= reply::number(&reply::next(&mut values)?)? > 0;
            for field in values {
                players.extend(self.codec().player(&reply::bytes(field)?));
            }
        }
        Ok((players, forgotten))
    }
}
