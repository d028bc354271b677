//! Opening the one database of servers with ranks in memory: the first one leads, and the others follow.
//!
//! Not here: how a server follows (`serve/follow`).

use crate::config::Config;
use crate::store::{Opening, holder, open_database, options};
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use tally_store::mysql::{MySqlStore, Options};

/// A server that leads after a killed one needs the names of what that one has changed since it answered last: for the lease, a
/// renewal, and this time.
const MARKS_MORE: Duration = Duration::from_secs(4);

/// Whether this server follows the one that writes, if there is one.
pub(crate) fn may_follow(config: &Config) -> bool {
    !config.text("follow.advertise").is_empty()
}

/// Opens a database with these options. If another server is the only writer, this one follows it, or is refused.
pub(crate) fn open(url: &str, config: &Config, alone: Options) -> Result<Arc<MySqlStore>> {
    if alone.writer.is_none() || !may_follow(config) {
        return open_database(url, &alone);
    }
    let marks = Some(alone.lease * 2 + MARKS_MORE);
    match open_database(url, &Options { marks, ..alone }) {
        Err(error) if holder(&error).is_some() => {
            open_database(url, &Options { follows: true, ..options(config, Opening::AsItIs, None)? })
        }
        opened => opened,
    }
}
