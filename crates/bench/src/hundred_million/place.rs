//! The stores of the run, which all steps share, and the server on one of them.

use super::Run;
use crate::database::Database;
use crate::error::{During, Error, prove};
use crate::process::free_port;
use crate::server::Server;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tally_load::LoadTarget;
use tally_store::Store;
use tally_store::mysql::{MySqlStore, Options as MySqlOptions};
use tally_store::sqlite::{Options as SqliteOptions, SqliteStore};

/// The database of the run.
const DATABASE: &str = "tally_hundred_million";

/// A store of scores.
pub(super) struct Place<'r> {
    pub(super) run: &'r Run<'r>,
    pub(super) name: &'static str,
    /// The parent of the data directory.
    pub(super) folder: PathBuf,
    /// The address of the database, and its process; `None` for SQLite.
    database: Option<(String, Database)>,
}

/// A started server with the figures of its start.
pub(super) struct Start {
    pub(super) server: Server,
    pub(super) seconds: f64,
    /// When each phase was first seen, in seconds from the start.
    pub(super) phases: Vec<(String, f64)>,
}

impl<'r> Place<'r> {
    pub(super) fn sqlite(run: &'r Run<'r>) -> Result<Self, Error> {
        let folder = run.path("sqlite");
        std::fs::create_dir_all(&folder).during("make a folder")?;
        Ok(Self { run, name: "SQLite", folder, database: None })
    }

    pub(super) fn mariadb(run: &'r Run<'r>) -> Result<Self, Error> {
        let folder = run.path("mariadb");
        std::fs::create_dir_all(&folder).during("make a folder")?;
        let database = Database::open_at(run.options, &folder.join("database"))?;
        let url = database.keep(DATABASE)?;
        Ok(Self { run, name: "MariaDB", folder, database: Some((url, database)) })
    }

    /// Arguments of a command for this store.
    fn store_args(&self) -> Vec<String> {
        self.database.as_ref().map_or_else(Vec::new, |(url, _)| vec!["--store".to_owned(), url.clone()])
    }

    /// A command of the binary, on this store.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.run.binary);
        command.args(words).arg("--data").arg(self.folder.join("data")).args(self.store_args());
        command
    }

    /// Starts the server and waits until ranks are exact.
    pub(super) fn start(&self) -> Result<Start, Error> {
        let (began, port) = (Instant::now(), free_port()?);
        let http = SocketAddr::from(([127, 0, 0, 1], port));
        let looking = std::thread::spawn(move || phases(http, began));
        let server = Server::start_at(self.run.binary, &self.folder, http, &self.store_args())?;
        let seconds = began.elapsed().as_secs_f64();
        let phases = looking.join().expect("looking does not panic");
        Ok(Start { server, seconds, phases })
    }

    /// The store itself; no server may run on it meanwhile.
    pub(super) fn open(&self) -> Result<Box<dyn Store>, Error> {
        Ok(match &self.database {
            Some((url, _)) => {
                Box::new(MySqlStore::open(url, &MySqlOptions::default()).during("open the store")?)
            }
            None => {
                let path = self.folder.join("data").join("tally.db");
                Box::new(SqliteStore::open(&path, &SqliteOptions::default()).during("open the store")?)
            }
        })
    }

    /// Bytes of the files with its rows; the logs of a database are left out, because a setting
    /// decides their size.
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        let folder = match &self.database {
            Some(_) => self.folder.join("database").join(DATABASE),
            None => self.folder.join("data"),
        };
        size(&folder).during("measure files")
    }

    pub(super) fn database(&self) -> Option<&Database> {
        self.database.as_ref().map(|(_, database)| database)
    }
}

fn size(folder: &std::path::Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() { size(&entry.path())? } else { kind.len() };
    }
    Ok(bytes)
}

/// Polls `/readyz` until the server is ready.
fn phases(http: SocketAddr, began: Instant) -> Vec<(String, f64)> {
    let mut phases: Vec<(String, f64)> = Vec::new();
    // The longest possible start: a server that died does not respond.
    while began.elapsed() < Duration::from_secs(1800) {
        if let Ok((_, body)) = tally_load::get_json(http, "/readyz") {
            let phase = body["phase"].as_str().unwrap_or_default().to_owned();
            let ready = phase == "ready";
            if phases.last().is_none_or(|(last, _)| *last != phase) {
                phases.push((phase, began.elapsed().as_secs_f64()));
            }
            if ready {
                break;
            }
        } else if !phases.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    phases
}

/// The response of a server to a path.
pub(super) fn get(server: &Server, path: &str) -> Result<Value, Error> {
    let (status, body) = tally_load::get_json(server.listens.http, path).during("ask the server")?;
    prove(status == 200, || format!("{path} was answered with {status}: {body}"))?;
    Ok(body)
}

/// The board, for a load of so many players.
pub(super) fn target(server: &Server, players: u64) -> LoadTarget {
    LoadTarget { address: server.listens.http, token: None, board: super::BOARD.to_owned(), players }
}
