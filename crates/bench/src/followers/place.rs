//! The database of the run, the folders of its servers, and how they are started.

use super::{AGE_MAX, BOARD, PATIENCE, SUMS, Sizes};
use crate::database::Database;
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::server::Server;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tally_load::{Client, LoadTarget};
use tempfile::TempDir;

/// The servers: the first one leads at first.
pub(super) const NAMES: [&str; 2] = ["one", "two"];
/// Players with names that closed loops know; the others are those of `tally seed`.
const KNOWN: u64 = 1_000;
/// The secret of the store, which all its servers have.
const SECRET: (&str, &str) =
    ("TALLY_SECRET", "0909090909090909090909090909090909090909090909090909090909090909");

/// Where servers of the run work.
pub(super) struct Place<'r> {
    pub(super) options: &'r Options,
    pub(super) sizes: Sizes,
    binary: &'r Path,
    folder: TempDir,
    url: String,
    database: Database,
}

impl<'r> Place<'r> {
    /// Starts the database.
    pub(super) fn open(options: &'r Options, sizes: Sizes) -> Result<Self, Error> {
        let (binary, folder) = (options.binary("followers")?, options.folder()?);
        let mut database = Database::open(options)?;
        let url = database.create("followers")?;
        Ok(Self { options, sizes, binary, folder, url, database })
    }

    /// What the database is.
    pub(super) fn says(&self) -> Result<String, Error> {
        self.database.says()
    }

    /// Starts a server; with an advertised address it leads or follows, else it is alone.
    pub(super) fn start(&self, name: &str, advertise: Option<&str>) -> Result<Server, Error> {
        let folder = self.folder(name);
        std::fs::create_dir_all(&folder).during("make a folder for a server")?;
        let lease = format!("{}s", self.sizes.lease_s);
        let mut settings =
            vec![SECRET, ("TALLY_STORE_LEASE", lease.as_str()), ("TALLY_FOLLOW_AGE_MAX", AGE_MAX)];
        settings.extend(advertise.map(|url| ("TALLY_FOLLOW_ADVERTISE", url)));
        Server::start_with(self.binary, &folder, &["--store".to_owned(), self.url.clone()], &settings)
    }

    /// Makes the leaderboards and their players.
    pub(super) fn fill(&self) -> Result<(), Error> {
        self.options.say("filling");
        let server = self.start(NAMES[0], None)?;
        tally_load::fill(&self.known(&server), self.options.seed, &mut |_| {})
            .during("make a leaderboard")?;
        let mut client = Client::new(server.listens.http, PATIENCE).during("make a client")?;
        let body = json!({"update": "sum"});
        let made = client.send("PUT", &format!("/v1/leaderboards/{SUMS}"), None, &body);
        let (status, body) = made.during("make a leaderboard of sums")?;
        prove(status == 201, || format!("a leaderboard of sums was answered with {status}: {body}"))?;
        server.stop()?;
        let mut command = Command::new(self.binary);
        command.args(["seed", "scores", BOARD, "--players", &self.sizes.players.to_string()]);
        command.arg("--data").arg(self.folder(NAMES[0]).join("data")).args(["--store", &self.url]);
        command.envs([SECRET]).stdin(Stdio::null());
        let seeded = command.output().during("seed scores")?;
        let errors = String::from_utf8_lossy(&seeded.stderr);
        prove(seeded.status.success(), || {
            format!("`tally seed scores` ended with {}: {errors}", seeded.status)
        })
    }

    /// The players of closed loops.
    pub(super) fn known(&self, server: &Server) -> LoadTarget {
        let address = server.listens.http;
        LoadTarget { address, token: None, board: BOARD.to_owned(), players: KNOWN }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
