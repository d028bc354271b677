//! What each Redis reports of itself, queried every second: whether ranks and applications are answered, and its memory.
//!
//! Health checks and scrapes read the last report, so that none of them waits for a Redis that does not respond. Requests do not
//! read it: each finds out by itself. Not here: which values are good (`tally doctor`), and the repair of rankings (`periods/catch_up`).

use crate::background::Next;
use crate::failure::Failure;
use crate::periods::catch_up;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tally_ranking::{Probe, RankingBackend, RankingError};

/// The interval of queries.
const PAUSE: Duration = Duration::from_secs(1);

/// The last report of one Redis, or cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisState {
    /// Why it cannot answer all requests; it names addresses.
    pub failure: Option<String>,
    /// The report of each node. Empty while it is unavailable.
    pub nodes: Vec<Probe>,
}

/// The last reports. Before the first one, each Redis counts as available: the start has used it.
#[derive(Debug, Default)]
pub struct RedisHealth {
    ranking: RwLock<Arc<RedisState>>,
    applications: RwLock<Arc<RedisState>>,
}

impl RedisHealth {
    /// The Redis of rankings. In memory they are always there.
    pub fn ranking(&self) -> Arc<RedisState> {
        Arc::clone(&self.ranking.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The Redis of applications. In the store they are always there.
    pub fn applications(&self) -> Arc<RedisState> {
        Arc::clone(&self.applications.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Starts the background task, if there is a Redis.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    if tally.settings.applications.is_none() && !catch_up::are_in_redis(tally) {
        return Ok(());
    }
    tally.tasks.redis.start("redis", tally, Next::After(Duration::ZERO), |tally| {
        if let RankingBackend::Redis(redis) = &tally.settings.ranking {
            let mut state = state(redis.probe());
            if state.failure.is_none() {
                let refusal = redis.refusal().map(str::to_owned);
                state.failure = refusal.or_else(|| lagging(catch_up::lagging(tally)));
            }
            set(&tally.redis.ranking, state);
        }
        if let Some(redis) = &tally.settings.applications {
            set(&tally.redis.applications, state(redis.probe()));
        }
        Next::After(PAUSE)
    })
}

fn set(last: &RwLock<Arc<RedisState>>, state: RedisState) {
    *last.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
}

fn state(probed: Result<Vec<Probe>, RankingError>) -> RedisState {
    match probed {
        Ok(nodes) => {
            let loading = nodes.iter().find(|node| node.number("loading") == Some(1));
            let failure = loading.map(|node| format!("{} is loading its data", node.node));
            RedisState { failure, nodes }
        }
        Err(error) => RedisState { failure: Some(error.to_string()), nodes: Vec::new() },
    }
}

fn lagging(rankings: usize) -> Option<String> {
    let one = if rankings == 1 { "ranking lags" } else { "rankings lag" };
    (rankings > 0).then(|| format!("{rankings} {one} behind the store, and will be read again soon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_that_loads_or_lags_does_not_answer() {
        let node = |loading: &str| Probe {
            node: "here:1".into(),
            says: [("loading".to_owned(), loading.to_owned())].into(),
        };
        assert_eq!(state(Ok(vec![node("0"), node("0")])).failure, None);
        let loads = state(Ok(vec![node("0"), node("1")]));
        assert_eq!(loads.failure.as_deref(), Some("here:1 is loading its data"));
        let away = state(Err(RankingError::Unavailable("x".into())));
        assert_eq!((away.failure.as_deref(), away.nodes.len()), (Some("Redis is unavailable: x"), 0));
        assert_eq!(lagging(0), None);
        assert!(lagging(2).is_some_and(|text| text.starts_with("2 rankings lag ")));
    }
}
