//! Who has changed in a part, whichever server published it: for those who watch it here.
//!
//! A server that looks says so by a key that ends by itself; while it is there, the scripts that publish note the players. So
//! nobody has to tell servers of each other, and a part that nobody watches costs one look at a key. Only names are told: what a player's
//! record is by now is asked of the order. It is live: what happens while nobody looks is not noted, and what is noted is gone after
//! seconds.

use super::RankingError;
use super::client::Request;
use super::part::RedisWindow;
use super::reply;
use super::script::Script;
use tally_rules::PlayerId;

/// Players of one look at a partition; where there are more, the next look has them.
const NAMES_MAX: usize = 1_000;
/// How long a look says that another one follows.
const WATCHED_MS: u64 = 3_000;

/// When somebody has looked last, by the clock of Redis: at each partition.
#[derive(Debug, Default)]
pub struct Watched {
    last: Vec<Vec<u8>>,
}

/// Players who have changed since, each once, and whether some were forgotten: so many changed that nobody could be told in time.
pub type ChangedPlayers = (Vec<PlayerId>, bool);

impl RedisWindow {
    /// Looks who has changed since the last look; the first one finds nobody.
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
