//! File descriptors: the limit of the process is raised, and connections leave enough of them for the store.
//!
//! A connection takes a descriptor, and so does each file of the store. A server without a free one neither accepts a health
//! check nor opens its journal. So a start lowers the limits of connections until all fit, and warns.
//!
//! Not here: an accept that fails all the same, see `accept.rs` of the listeners.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tally_server::ConnectionLimits;

/// Descriptors of the embedded store, threads, listeners, logs, Redis and the collector of traces.
const RESERVED: usize = 96;
/// The fewest connections of a protocol, with those that wait, for which a server starts.
const CONNECTIONS_MIN: usize = 20;
/// One of so many connections may wait if there are few descriptors.
const WAITING_OF: usize = 8;
/// What an operator can do.
const ADVICE: &str =
    "raise it (`LimitNOFILE=` of systemd, `--ulimit nofile=` of a container, `ulimit -Hn` of a shell)";

/// Raises the soft limit of this process to the hard one. Returns the limit.
pub(crate) fn raise() -> usize {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    // Some systems have a lower bound of their own. Then the soft limit stays.
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { raised } else { before };
    limit.current.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Lowers the limits of connections until they fit beside so many connections to databases. Returns the warning, if there is one.
///
/// # Errors
///
/// If too few descriptors are left for connections.
pub(crate) fn fit(
    limit: usize,
    databases: usize,
    protocols: &mut [&mut ConnectionLimits],
) -> Result<Option<String>, String> {
    let reserved = RESERVED + databases;
    let all: usize = protocols.iter().map(|one| one.all).sum();
    let wanted = all + protocols.iter().map(|one| one.waiting).sum::<usize>();
    if reserved + wanted <= limit {
        return Ok(None);
    }
    let (free, least) = (limit.saturating_sub(reserved), CONNECTIONS_MIN * protocols.len());
    if free < least.min(wanted) {
        let needed = reserved + least.min(wanted);
        return Err(format!(
            "the limit of file descriptors is {limit}, and a server needs {needed}: {ADVICE}"
        ));
    }
    for one in protocols.iter_mut() {
        let share = free * one.all / all;
        one.waiting = one.waiting.min(share / WAITING_OF);
        let fitting = (share - one.waiting).clamp(1, one.all);
        one.address = (one.address * fitting / one.all).max(1);
        one.all = fitting;
    }
    let counts: Vec<String> = protocols.iter().map(|one| one.all.to_string()).collect();
    Ok(Some(format!(
        "the limit of file descriptors is {limit}, and `http.connections_max`, `resp.connections_max` and the store need {}: \
         {} connections are served; {ADVICE} or lower the settings",
        reserved + wanted,
        counts.join(" and ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(limit: usize, databases: usize) -> (Result<Option<String>, String>, [ConnectionLimits; 2]) {
        let of = |all: usize| ConnectionLimits { all, address: all / 4, loopback: None, waiting: 512 };
        let (mut http, mut resp) = (of(10_000), of(5_000));
        let warning = fit(limit, databases, &mut [&mut http, &mut resp]);
        (warning, [http, resp])
    }

    #[test]
    fn limits_that_fit_stay() {
        let needed = 15_000 + 2 * 512 + RESERVED + 8;
        let (warning, [http, resp]) = fitted(needed, 8);
        assert_eq!((warning, http.all, resp.all, resp.waiting), (Ok(None), 10_000, 5_000, 512));
        assert!(fitted(needed - 1, 8).0.is_ok_and(|warning| warning.is_some()));
    }

    #[test]
    fn connections_never_take_what_is_reserved() {
        for limit in [RESERVED + 50, 256, 1_024, 4_096, 16_000] {
            let (warning, all) = fitted(limit, 8);
            let http = &all[0];
            assert!(warning.is_ok_and(|warning| warning.is_some_and(|text| text.contains("LimitNOFILE"))));
            let taken: usize = all.iter().map(|one| one.all + one.waiting).sum();
            assert!(taken + RESERVED + 8 <= limit, "{limit}: {all:?}");
            // One that has all it wants leaves the rest of its share.
            assert!(taken + RESERVED + 8 + 2 >= limit || http.all == 10_000, "{limit}: {all:?}");
            assert!(all.iter().all(|one| one.address >= 1 && one.address <= one.all / 4 + 1), "{all:?}");
        }
    }

    #[test]
    fn too_few_are_an_error_that_names_the_limit() {
        let (error, _) = fitted(RESERVED + 2 * CONNECTIONS_MIN - 1, 0);
        assert!(error.is_err_and(|text| text.contains("136") && text.contains("LimitNOFILE")));
    }
}
