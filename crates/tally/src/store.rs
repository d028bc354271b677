//! The store of a command: which one its settings name, and opening it.
//!
//! Not here: what a store does.

use crate::config::{Config, Usage, list};
use crate::lead_or_follow;
use anyhow::{Context, Error, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tally_ranking::redis::{self, RankingError, RedisApplications, RedisBackend};
use tally_service::RankingBackend;
use tally_store::mysql::{self, MySqlStore};
use tally_store::shards::{Shards, check_alone};
use tally_store::sqlite::{self, SqliteStore};
use tally_store::{LostCommits, Store, StoreError};

/// How long to wait for a store that another process has locked.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The shortest lease: a shorter one would end at every pause of a busy machine.
const LEASE_MIN: Duration = Duration::from_secs(1);
/// The interval of checks whether the store was taken over; nothing is answered meanwhile.
const CHECK_PAUSE: Duration = Duration::from_millis(100);
/// The same of a follower: changes wait while no server leads.
const FOLLOWER_CHECK_PAUSE: Duration = Duration::from_millis(10);

/// The value for rankings in this process.
const MEMORY: &str = "memory";

/// The value for applications in the store.
const IN_STORE: &str = "store";

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// With the current schema.
    AsItIs,
    /// With an older schema too, which is migrated.
    Migrate,
    /// After it has lost commits that servers of this generation had acknowledged.
    Anew(u64),
}

/// Why a running server cannot continue with its store.
pub(crate) enum StoreLoss {
    /// This other process has taken it over.
    Taken(String),
    /// It has lost acknowledged commits.
    Lost(LostCommits),
    /// The server that this one follows does not lead any more.
    Leaderless(Leaderless),
}

/// How a follower has lost its leader.
#[derive(Clone, Debug)]
pub(crate) struct Leaderless {
    /// What happened.
    pub(crate) why: String,
    /// Whether the leader has ended and this server has every change of it.
    pub(crate) has_all: bool,
}

/// The kind and the address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreAddress {
    /// A file of this machine.
    Sqlite(PathBuf),
    /// A database of a server, by its URL.
    MySql(String),
    /// Several databases.
    Shards(Vec<String>),
}

/// An open store.
pub(crate) struct Opened {
    /// The store for use cases.
    pub(crate) store: Arc<dyn Store>,
    /// The same, if it is a file.
    embedded: Option<Arc<SqliteStore>>,
    /// The same, if it is a database, or several in order.
    pub(crate) databases: Vec<Arc<MySqlStore>>,
    /// Its URL, without a password.
    pub(crate) shown: String,
    /// Set once the server that this one follows does not lead any more.
    pub(crate) leaderless: Arc<OnceLock<Leaderless>>,
}

/// The Redis for applications of contests without money, if they are not in the store. It may be unavailable until it is
/// used.
pub(crate) fn applications(config: &Config) -> Result<Option<RedisApplications>> {
    let url = config.text("applications.url");
    let options = redis_options(config, "applications.timeout")?;
    if url == IN_STORE {
        return Ok(None);
    }
    RedisApplications::open(url, &options).map(Some).map_err(|error| not_reached(error, "applications"))
}

/// Whether this process has the rankings, so that no other server may write.
pub(crate) fn ranks_in_memory(config: &Config) -> bool {
    config.text("ranking.url") == MEMORY
}

fn redis_options(config: &Config, timeout: &'static str) -> Result<redis::Options> {
    Ok(redis::Options { response_timeout: config.duration(timeout)?, ..redis::Options::default() })
}

fn not_reached(error: RankingError, of: &str) -> anyhow::Error {
    match error {
        RankingError::Address(why) => Usage(format!("setting `{of}.url`: {why}")).into(),
        other => anyhow::Error::from(other).context(format!("connect to the Redis of `{of}.url`")),
    }
}

impl StoreAddress {
    /// The store of the settings; `data` is the data directory.
    pub(crate) fn of(config: &Config, data: &Path) -> Result<Self, Usage> {
        match config.text("store.url") {
            "" => Ok(Self::Sqlite(data.join("tally.db"))),
            url => Self::at(url),
        }
    }

    /// The store of a URL, or of several with commas.
    pub(crate) fn at(url: &str) -> Result<Self, Usage> {
        match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("mysql", _)) => {
                let urls = list(url);
                match urls.as_slice() {
                    [one] => Ok(Self::MySql(one.clone())),
                    _ if urls.iter().all(|url| url.starts_with("mysql:")) => Ok(Self::Shards(urls)),
                    _ => Err(Usage("the shards of a store are all databases mysql://…".into())),
                }
            }
            _ => {
                let scheme = url.split(':').next().unwrap_or_default();
                Err(Usage(format!(
                    "store `{scheme}:…` is not known; there are sqlite:PATH and mysql://user:password@host:port/database"
                )))
            }
        }
    }

    /// The backend of the rankings. A Redis may be unavailable: a start waits for it.
    pub(crate) fn ranking(&self, config: &Config) -> Result<RankingBackend> {
        if ranks_in_memory(config) {
            return Ok(RankingBackend::Memory);
        }
        let url = config.text("ranking.url");
        if matches!(self, Self::Sqlite(_)) {
            bail!(Usage(
                "a ranking in Redis needs a store in MySQL or MariaDB: with a store in a file, ranks are kept in memory"
                    .into()
            ));
        }
        let options = redis_options(config, "ranking.timeout")?;
        let connected = RedisBackend::open(url, &options);
        Ok(RankingBackend::Redis(connected.map_err(|error| not_reached(error, "ranking"))?))
    }

    /// The file of an embedded store, for the command `what`.
    pub(crate) fn file(self, what: &str) -> Result<PathBuf, Usage> {
        match self {
            Self::Sqlite(path) => Ok(path),
            Self::MySql(_) | Self::Shards(_) => Err(Usage(format!(
                "`tally {what}` is for a store in a file; a database has tools of its own for that (mysqldump, \
                 mariadb-backup)"
            ))),
        }
    }

    /// The number of its databases; a file is none.
    pub(crate) fn databases(&self) -> usize {
        match self {
            Self::Sqlite(_) => 0,
            Self::MySql(_) => 1,
            Self::Shards(urls) => urls.len(),
        }
    }

    pub(crate) fn open(&self, config: &Config, data: &Path, opening: Opening) -> Result<Opened> {
        match self {
            Self::Sqlite(path) => {
                let store = open_file(path, config)?;
                let shown = format!("sqlite:{}", path.display());
                Ok(Opened {
                    store: Arc::<SqliteStore>::clone(&store),
                    embedded: Some(store),
                    databases: Vec::new(),
                    shown,
                    leaderless: Arc::default(),
                })
            }
            Self::MySql(url) => {
                // Rankings in memory are right only while no other server writes.
                let alone = ranks_in_memory(config);
                let options = writing(config, opening, Some((writer(data), alone)))?;
                let store = lead_or_follow::open(url, config, options)?;
                check_alone(&store)?;
                let shown = store.url().to_owned();
                Ok(Opened {
                    store: Arc::<MySqlStore>::clone(&store),
                    embedded: None,
                    databases: vec![store],
                    shown,
                    leaderless: Arc::default(),
                })
            }
            Self::Shards(urls) => {
                let options = writing(config, opening, Some((writer(data), ranks_in_memory(config))))?;
                let store =
                    Shards::open_reporting(urls, &options, &mut print_notice).context("open the store")?;
                let store = Arc::new(store);
                let shown: Vec<&str> = store.each().iter().map(|one| one.url()).collect();
                let (shown, databases) = (shown.join(","), store.each().to_vec());
                Ok(Opened { store, embedded: None, databases, shown, leaderless: Arc::default() })
            }
        }
    }
}

/// Prints what this process waits for.
pub(crate) fn print_notice(what: &str) {
    crate::log::notice(&format!("tally: {what}"));
}

/// Opens a database. `writer` is a name and whether it must be the only writer; `None` opens it beside other writers.
pub(crate) fn connect(
    url: &str,
    config: &Config,
    opening: Opening,
    writer: Option<(String, bool)>,
) -> Result<Arc<MySqlStore>> {
    open_database(url, &writing(config, opening, writer)?)
}

pub(crate) fn open_database(url: &str, options: &mysql::Options) -> Result<Arc<MySqlStore>> {
    Ok(Arc::new(MySqlStore::open_reporting(url, options, &mut print_notice).context("open the store")?))
}

/// The process that has the store, if that is why it could not be opened.
pub(crate) fn holder(error: &Error) -> Option<String> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(StoreError::Locked(holder)) => Some(holder.clone()),
        _ => None,
    })
}

/// The options of a database with this writer, a name and whether it must be the only one.
fn writing(config: &Config, opening: Opening, writer: Option<(String, bool)>) -> Result<mysql::Options> {
    let (writer, beside) = match writer {
        Some((who, true)) => (Some(who), None),
        Some((who, false)) => (None, Some(who)),
        None => (None, None),
    };
    Ok(mysql::Options { beside, ..options(config, opening, writer)? })
}

/// The options of a database, from the settings.
pub(crate) fn options(config: &Config, opening: Opening, writer: Option<String>) -> Result<mysql::Options> {
    let options = mysql::Options {
        pool_max: config.count("store.pool_max")?,
        connect_timeout: config.duration("store.connect_timeout")?,
        query_timeout: config.duration("store.query_timeout")?,
        lock_wait: config.duration("store.lock_wait")?,
        migrate: opening == Opening::Migrate,
        writer,
        beside: None,
        follows: false,
        marks: None,
        anew: match opening {
            Opening::Anew(known) => Some(known),
            Opening::AsItIs | Opening::Migrate => None,
        },
        archives: archives(config),
        lease: config.duration("store.lease")?,
    };
    if options.lock_wait >= options.query_timeout {
        bail!(Usage("setting `store.lock_wait` must be shorter than `store.query_timeout`".into()));
    }
    if options.lease < LEASE_MIN {
        bail!(Usage(format!("setting `store.lease` must be {LEASE_MIN:?} at least")));
    }
    Ok(options)
}

impl Opened {
    /// The number of score lanes: a file has one writer, and with a database each lane needs a connection.
    pub(crate) fn lanes(&self, config: &Config) -> Result<usize, Usage> {
        let (lanes, links): (usize, usize) = (config.count("store.lanes")?, config.count("store.pool_max")?);
        if lanes > links && config.is_said("store.lanes") {
            let why =
                "setting `store.lanes` must not be more than `store.pool_max`: each lane needs a connection";
            return Err(Usage(why.into()));
        }
        Ok(if self.embedded.is_some() { 1 } else { lanes.min(links) })
    }

    /// Stores the address of this process, for the message of a process that finds the store taken.
    pub(crate) fn announce(&self, address: &str) -> Result<(), StoreError> {
        self.embedded.as_ref().map_or(Ok(()), |store| store.announce(address))?;
        // Only the first database has the address, because every server opens that one first.
        self.databases.first().map_or(Ok(()), |store| store.announce(address))
    }

    /// Releases the store for the next process, if that cannot detect the end of this one.
    pub(crate) fn release(&self) {
        // A server takes the first one first, so that is released last.
        self.databases.iter().rev().for_each(|store| store.release());
    }

    /// Waits until this process cannot continue with the store; returns the reason. Logs while the store does not respond.
    /// Never returns for a store in a file.
    pub(crate) async fn loss(&self) -> StoreLoss {
        if self.databases.is_empty() {
            return std::future::pending().await;
        }
        let mut sure = true;
        let follows = self.databases.iter().any(|store| store.follows());
        let pause = if follows { FOLLOWER_CHECK_PAUSE } else { CHECK_PAUSE };
        loop {
            if let Some(lost) = self.store.lost() {
                return StoreLoss::Lost(lost);
            }
            if let Some(holder) = self.databases.iter().find_map(|store| store.taken_by()) {
                return StoreLoss::Taken(holder);
            }
            if let Some(how) = self.leaderless.get() {
                return StoreLoss::Leaderless(how.clone());
            }
            let now = self.store.may_answer();
            if std::mem::replace(&mut sure, now) != now {
                if now {
                    tracing::info!("the store answers, and no other server has taken it over: ready again");
                } else {
                    tracing::warn!("the store has not answered for `store.lease`: not ready until it does");
                }
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// The name of this process, for the message of a process that finds the store taken.
pub(crate) fn writer(data: &Path) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let host = if host.trim().is_empty() { "this host" } else { host.trim() };
    format!("process {} on {host} with data directory {}", std::process::id(), data.display())
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.release();
    }
}

/// The options of a store in a file.
pub(crate) fn file_options(config: &Config) -> Result<sqlite::Options> {
    let mib = |name| -> Result<u64> { Ok(u64::try_from(config.count(name)?)? << 20) };
    let bound = |name| -> Result<u64> { Ok(u64::try_from(config.bound(name)?)? << 20) };
    Ok(sqlite::Options {
        cache_bytes: bound("store.cache_mib")?,
        wal_bytes_max: mib("store.wal_mib")?,
        memtable_bytes_max: bound("store.memtable_mib")?,
        journal_bytes_max: mib("store.journal_mib")?,
        archives: archives(config),
        ..sqlite::Options::default()
    })
}

/// The folder of the archives of the ledger, if a setting names it.
pub(crate) fn archives(config: &Config) -> Option<PathBuf> {
    Some(config.text("archive.dir")).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn open_file(path: &Path, config: &Config) -> Result<Arc<SqliteStore>> {
    let options = file_options(config)?;
    let begun = Instant::now();
    loop {
        match SqliteStore::open(path, &options) {
            Ok(store) => return Ok(Arc::new(store)),
            // The system holds the lock of a killed server until it has removed the process.
            Err(StoreError::Locked(_)) if begun.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(error).with_context(|| format!("open {}", path.display())),
        }
    }
}
