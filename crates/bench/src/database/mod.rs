//! A MariaDB or MySQL for scenarios: the server of a URL, or one that the run starts.
//!
//! A scenario works in databases that it makes; they are dropped with the value. Not here: the tables of a scenario
//! ([`table`]), and starting a server ([`start`]).

mod start;
pub(crate) mod table;

use crate::error::{During, Error};
use crate::options::Options;
use crate::process::Started;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use std::path::Path;
use tokio::runtime::Runtime;

/// The prefix of an address; anything else is a program.
const SCHEME: &str = "mysql://";

/// A database server, and the runtime of the connections to it.
#[derive(Debug)]
pub(crate) struct Database {
    /// Its address without a database.
    server: Opts,
    pub(crate) runtime: Runtime,
    /// Names of databases to drop.
    made: Vec<String>,
    /// Dropped after the databases.
    own: Option<Started>,
}

/// Fails without a server or a program that could be one.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    if options.mysql.starts_with(SCHEME) || start::is_there(Path::new(&options.mysql)) {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "this scenario needs MariaDB or MySQL, and `{}` does not start; on Debian: apt-get install \
         mariadb-server-core; elsewhere give --mysql the program, or mysql://user:password@host:port of a server that \
         runs",
        options.mysql
    )))
}

impl Database {
    /// Opens the server of the options.
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        Self::open_with(options, None)
    }

    /// The same; a started server keeps its data in this folder, which may have some.
    pub(crate) fn open_at(options: &Options, data: &Path) -> Result<Self, Error> {
        Self::open_with(options, Some(data))
    }

    fn open_with(options: &Options, data: Option<&Path>) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.during("start a runtime")?;
        let (url, own) = if options.mysql.starts_with(SCHEME) {
            (options.mysql.clone(), None)
        } else {
            options.say(&format!("starting {}", options.mysql));
            let pool = options.pick(64, if data.is_some() { 4_096 } else { 1_024 });
            let own = start::start(Path::new(&options.mysql), pool, data)?;
            (format!("{SCHEME}root@{}", own.address), Some(own))
        };
        let server = Opts::from_url(&url).during("read the database's address")?;
        let database = Self { server, runtime, made: Vec::new(), own };
        database.prove_loads()?;
        Ok(database)
    }

    /// The server must accept files of its clients, which fill tables.
    fn prove_loads(&self) -> Result<(), Error> {
        let answer = self.runtime.block_on(async {
            let mut conn = Conn::new(self.server.clone()).await?;
            let loads: Option<u8> = conn.query_first("SELECT @@local_infile").await?;
            conn.disconnect().await?;
            Ok::<_, mysql_async::Error>(loads)
        });
        if answer.during("connect to the database")? == Some(1) {
            return Ok(());
        }
        Err(Error::Missing(
            "the database must take files of its clients: SET GLOBAL local_infile = 1".to_owned(),
        ))
    }

    /// Makes an empty database; returns its address for others.
    pub(crate) fn create(&mut self, name: &str) -> Result<String, Error> {
        let name = format!("tally_bench_{}_{name}", std::process::id());
        let url = self.make(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"), &name)?;
        self.made.push(name);
        Ok(url)
    }

    /// Makes a database that stays, if it is missing; returns its address for others.
    pub(crate) fn keep(&self, name: &str) -> Result<String, Error> {
        self.make(&format!("CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4"), name)
    }

    fn make(&self, statement: &str, name: &str) -> Result<String, Error> {
        self.runtime
            .block_on(async {
                let mut conn = Conn::new(self.server.clone()).await?;
                conn.query_drop(statement).await?;
                conn.disconnect().await
            })
            .during("make a database")?;
        let (host, port) = (self.server.ip_or_hostname(), self.server.tcp_port());
        let user = match (self.server.user().unwrap_or("root"), self.server.pass()) {
            (user, Some(password)) => format!("{user}:{password}"),
            (user, None) => user.to_owned(),
        };
        Ok(format!("{SCHEME}{user}@{host}:{port}/{name}"))
    }

    /// A connection without a database.
    pub(crate) async fn connect(&self) -> mysql_async::Result<Conn> {
        Conn::new(self.server.clone()).await
    }

    /// Its processor time in seconds, if this run started it and the system reports it.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        self.own.as_ref()?.process.cpu_s()
    }

    /// Its resident bytes, under the same conditions.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        self.own.as_ref()?.process.resident_bytes()
    }

    /// Its release, and the settings that decide its durability and speed.
    pub(crate) fn says(&self) -> Result<String, Error> {
        let answer = self.runtime.block_on(async {
            let mut conn = Conn::new(self.server.clone()).await?;
            let row: Option<(String, String, u8, u8, u64)> = conn
                .query_first(
                    "SELECT @@version, @@version_comment, @@innodb_flush_log_at_trx_commit, @@log_bin, \
                     @@innodb_buffer_pool_size DIV 1048576",
                )
                .await?;
            conn.disconnect().await?;
            Ok::<_, mysql_async::Error>(row)
        });
        let (version, comment, flush, binlog, pool) =
            answer.during("ask the database what it is")?.expect("one row");
        let (flush, binlog) = (words(flush == 1), words(binlog == 1));
        let own = if self.own.is_some() { "started for the run" } else { "given by --mysql" };
        Ok(format!(
            "the database: {version} ({comment}), {own}; flush at every commit {flush}, binlog {binlog}, buffer pool \
             {pool} MiB"
        ))
    }
}

fn words(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A server of this run ends with all its databases.
        if self.own.is_some() {
            return;
        }
        let names = std::mem::take(&mut self.made);
        // If the given server is unreachable by now, its databases stay.
        let _ = self.runtime.block_on(async {
            let mut conn = Conn::new(self.server.clone()).await?;
            for name in names {
                conn.query_drop(format!("DROP DATABASE IF EXISTS {name}")).await?;
            }
            conn.disconnect().await
        });
    }
}

/// A connection to an address, without compression and without a switch to a socket.
pub(crate) async fn connect(url: &str) -> mysql_async::Result<Conn> {
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).tcp_nodelay(true);
    Conn::new(opts).await
}
