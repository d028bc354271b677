//! A private MariaDB or MySQL server for a test, with its own port and data, removed with the value; or one that tests share.
//!
//! It starts on a copy of a data directory from `cargo xtask packages`, because making one takes seconds. A commit is on the
//! disk before it is answered, as a store needs it. There is no binary log unless arguments of the test turn it on; they come
//! last and override. `root` has no password. MariaDB's default character set is that of its own release (latin1), not of a
//! distribution; a test that needs another must set it.
//!
//! Not here: a driver. [`ScratchDatabase::sql`] runs the server's own client program.

use crate::command;
use crate::process::{self, ProcessPlan, Server};
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// MariaDB 10.11.
    MariaDb10,
    /// MySQL 9.
    MySql9,
}

/// The arguments of both kinds. Small caches: many servers run at once.
const SETTINGS: &[&str] = &[
    "--user=root",
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--pid-file=pid",
    "--max-connections=500",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--secure-file-priv=",
];

/// Databases that a shared server makes at once: a start of the client program takes longer than all of them.
const MADE_AT_ONCE: u64 = 16;

/// The most starts of a MariaDB with Spider.
const SPIDER_STARTS: usize = 4;

impl DatabaseKind {
    /// The program, for a test that starts it itself.
    ///
    /// # Panics
    ///
    /// If it is missing; the message names the command to run.
    #[track_caller]
    pub fn program(self) -> PathBuf {
        process::program(self.server())
    }

    fn server(self) -> &'static str {
        match self {
            Self::MariaDb10 => "mariadbd",
            Self::MySql9 => "mysqld",
        }
    }

    fn client(self) -> &'static str {
        match self {
            Self::MariaDb10 => "mariadb",
            Self::MySql9 => "mysql",
        }
    }

    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb10 => &["--innodb-log-file-size=32M"],
            Self::MySql9 => &[
                "--innodb-redo-log-capacity=32M",
                "--disable-log-bin",
                "--mysqlx=OFF",
                "--performance-schema=OFF",
            ],
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct ScratchDatabase {
    kind: DatabaseKind,
    server: Server,
    /// Whether all tests of the process share it, so that nothing kills it or replaces its data.
    is_shared: bool,
    databases: Mutex<Databases>,
}

/// The databases of a server.
#[derive(Debug, Default)]
struct Databases {
    made: u64,
    /// The numbers of those that no test has.
    free: Vec<u64>,
}

impl ScratchDatabase {
    /// A server that is ready.
    ///
    /// # Panics
    ///
    /// If it is missing or does not start; the message has its log, or the command to run.
    #[track_caller]
    pub fn start(kind: DatabaseKind) -> Self {
        Self::start_with(kind, &[])
    }

    /// The same with more arguments.
    #[track_caller]
    pub fn start_with(kind: DatabaseKind, args: &[&str]) -> Self {
        let program = kind.program();
        let fresh = program.with_file_name(format!("{}.data", kind.server()));
        let server = Server::start(kind.server(), |folder, port| {
            let data = folder.join("data");
            copy(&fresh, &data).unwrap_or_else(|error| {
                panic!("copy {}: {error}; run `cargo xtask packages`", fresh.display())
            });
            let mut all: Vec<OsString> = vec!["--no-defaults".into(), format!("--port={port}").into()];
            // A MariaDB empties its folder of temporary tables at start; a shared one would be that of all others.
            let paths =
                [("datadir", &data), ("socket", &folder.join("socket")), ("tmpdir", &folder.to_owned())];
            for (name, path) in paths {
                let mut arg = OsString::from(format!("--{name}="));
                arg.push(path);
                all.push(arg);
            }
            all.extend([SETTINGS, kind.settings(), args].concat().iter().map(OsString::from));
            ProcessPlan { program: program.clone(), args: all, ready: "ready for connections" }
        });
        Self { kind, server, is_shared: false, databases: Mutex::default() }
    }

    /// A MariaDB with the engine Spider, which the arguments load as docs/deploy/spider.md says.
    ///
    /// `INSTALL SONAME` in a running server has crashed this release. At a start the engine rarely fails to load, and the
    /// server runs without it. Then this starts another one, as an operator would.
    ///
    /// # Panics
    ///
    /// If several starts in a row run without it; the message has the log of the last.
    #[track_caller]
    pub fn start_with_spider(args: &[&str]) -> Self {
        let mut server = Self::start_with(DatabaseKind::MariaDb10, args);
        for _ in 0..SPIDER_STARTS {
            let engines = "SELECT support FROM information_schema.engines WHERE engine = 'SPIDER'";
            if server.sql(engines) == "YES" {
                return server;
            }
            server = Self::start_with(DatabaseKind::MariaDb10, args);
        }
        panic!("no MariaDB of {SPIDER_STARTS} had Spider; the log of another:\n{}", server.log());
    }

    /// The server that all tests of this process share, each in its own database. It ends with the process.
    #[track_caller]
    pub fn shared(kind: DatabaseKind) -> &'static Self {
        static MARIADB: OnceLock<ScratchDatabase> = OnceLock::new();
        static MYSQL: OnceLock<ScratchDatabase> = OnceLock::new();
        let shared = match kind {
            DatabaseKind::MariaDb10 => &MARIADB,
            DatabaseKind::MySql9 => &MYSQL,
        };
        shared.get_or_init(|| Self { is_shared: true, ..Self::start(kind) })
    }

    /// Its kind.
    pub fn kind(&self) -> DatabaseKind {
        self.kind
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Its folder, with its log and its data.
    pub fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The URL of one of its databases, which need not exist.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@{}/{database}", self.address())
    }

    /// Makes an empty database with a unique name; returns its URL.
    #[track_caller]
    pub fn create_database(&self) -> String {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        if databases.free.is_empty() {
            let more = if self.is_shared { MADE_AT_ONCE } else { 1 };
            let new = databases.made..databases.made + more;
            self.sql(
                &new.clone().map(|number| format!("CREATE DATABASE tally_{number};")).collect::<String>(),
            );
            databases.made = new.end;
            databases.free.extend(new.rev());
        }
        let number = databases.free.pop().expect("some were made");
        self.url(&format!("tally_{number}"))
    }

    /// Runs statements and returns the rows: columns separated by tabs, no headings.
    ///
    /// # Panics
    ///
    /// If one of them fails.
    #[track_caller]
    pub fn sql(&self, text: &str) -> String {
        self.try_sql(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The same, for a test that expects an error.
    ///
    /// # Errors
    ///
    /// The client's message for the first statement that fails.
    #[track_caller]
    pub fn try_sql(&self, text: &str) -> Result<String, String> {
        self.try_sql_through(self.address(), text)
    }

    /// The same through another address of this server, such as a proxy.
    ///
    /// # Errors
    ///
    /// The same.
    #[track_caller]
    pub fn try_sql_through(&self, address: SocketAddr, text: &str) -> Result<String, String> {
        let output = command::output(self.client(address, text));
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(words(&output.stdout)) } else { Err(words(&output.stderr)) }
    }

    /// Starts the client program, which runs statements.
    #[track_caller]
    pub(crate) fn client(&self, address: SocketAddr, text: &str) -> Child {
        let mut command = Command::new(process::program(self.kind.client()));
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        command.args(["--no-defaults", "--protocol=tcp", "--host", &ip, "--port", &port, "--user=root"]);
        command.args(["--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4"]);
        // Settings of the developer for other servers.
        command.env_remove("MYSQL_PWD").env("MYSQL_TEST_LOGIN_FILE", "/dev/null");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the launcher starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        let text = text.to_owned();
        // A client that stops at an error reports it itself.
        std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
        child
    }

    /// Kills it with SIGKILL.
    ///
    /// # Panics
    ///
    /// If it is not running.
    #[track_caller]
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it after a kill, on the same port and data.
    ///
    /// # Panics
    ///
    /// If it is running, or does not start.
    #[track_caller]
    pub fn restart(&mut self) {
        self.server.restart();
    }

    /// Copies its data for [`Self::put_copy_back`], in place of an earlier copy. It is killed for this, so the copy is what a
    /// disk has after a power cut.
    ///
    /// # Panics
    ///
    /// If it is not running, or its data cannot be copied.
    #[track_caller]
    pub fn keep_copy(&mut self) {
        self.kill();
        self.put_data("data", "kept");
        self.restart();
    }

    /// Kills it and starts it on the copy of its data: it has lost everything since then.
    ///
    /// # Panics
    ///
    /// If it is not running, or there is no copy.
    #[track_caller]
    pub fn put_copy_back(&mut self) {
        self.kill();
        self.put_data("kept", "data");
        self.restart();
    }

    fn put_data(&self, from: &str, to: &str) {
        let [from, to] = [from, to].map(|name| self.folder().join(name));
        if to.exists() {
            std::fs::remove_dir_all(&to).expect("the old data can be deleted");
        }
        copy(&from, &to).unwrap_or_else(|error| panic!("copy {}: {error}", from.display()));
    }

    /// Suspends it: connections stay, the system accepts new ones, and nothing replies.
    #[track_caller]
    pub fn freeze(&self) {
        self.server.freeze();
    }

    /// Resumes it.
    #[track_caller]
    pub fn thaw(&self) {
        self.server.thaw();
    }
}

/// A folder with its contents.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &place)?;
        } else {
            std::fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
