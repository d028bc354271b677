//! The server of a command. It is one elsewhere, the running server of its data directory, or else one that
//! lives as long as the command.
//!
//! So every command uses the wire, and never changes the store behind a running server.

use crate::cli::{Cli, TargetArgs};
use crate::client::Client;
use crate::config::{Config, Usage};
use crate::data_dir::DataDir;
use crate::serve::{Listen, Server, UNIX};
use crate::sources::{secret_of, variable};
use anyhow::{Context, Result, bail};
use std::path::Path;
use tally_server::readiness::LOCAL_PREFIX;

/// What a command does if the settings name no existing store.
#[derive(Clone, Copy)]
enum Missing {
    /// A mistyped directory is an error.
    Refused,
    /// The command is there to fill a store, so it makes one.
    Made,
}

/// The server of a command.
pub(crate) struct TargetServer {
    pub(crate) client: Client,
    own: Option<Server>,
}

impl TargetServer {
    /// Finds a running server; an error without one.
    pub(crate) fn running(cli: &Cli, args: &TargetArgs) -> Result<Self> {
        let config = Config::load(cli)?;
        match Self::present(&config, args, Missing::Refused)? {
            (Some(running), _) => Ok(running),
            (None, data) => bail!(
                "no server runs on {}: start `tally serve` there, or give --url",
                data.map_or_else(|| "that data directory".into(), |data| data.path().display().to_string())
            ),
        }
    }

    /// Finds or starts the server.
    pub(crate) fn find(cli: &Cli, args: &TargetArgs) -> Result<Self> {
        Self::find_on(cli, args, Missing::Refused)
    }

    /// The same, and makes a missing store.
    pub(crate) fn find_or_make(cli: &Cli, args: &TargetArgs) -> Result<Self> {
        Self::find_on(cli, args, Missing::Made)
    }

    fn find_on(cli: &Cli, args: &TargetArgs, missing: Missing) -> Result<Self> {
        let config = Config::load(cli)?;
        let data = match Self::present(&config, args, missing)? {
            (Some(running), _) => return Ok(running),
            (None, data) => data.context("open the data directory")?,
        };
        let server = Server::listen(&config, &Listen::own(), (false, false))?;
        server.load_now(&config)?;
        let running = data.running().context("find the server just started")?;
        Ok(Self { client: local(&running.http, &running.token)?, own: Some(server) })
    }

    /// The data directory, if neither a running server there nor one of a URL serves it. It may have no store yet.
    pub(crate) fn unserved(config: &Config, args: &TargetArgs) -> Result<Option<DataDir>> {
        let (served, data) = Self::present(config, args, Missing::Made)?;
        Ok(data.filter(|_| served.is_none()))
    }

    /// The server elsewhere or of the data directory, if there is one; and the directory, if there is no URL.
    fn present(
        config: &Config,
        args: &TargetArgs,
        missing: Missing,
    ) -> Result<(Option<Self>, Option<DataDir>)> {
        let key = args.key.clone().filter(|key| !key.is_empty());
        let key_file = args.key_file.as_ref().filter(|path| !path.is_empty()).map(Path::new);
        if let Some(url) = &args.url {
            let key = match (key, key_file) {
                (Some(_), Some(_)) => bail!(Usage(
                    "--key (TALLY_KEY) and --key-file (TALLY_KEY_FILE) exclude each other".into()
                )),
                (None, Some(path)) => Some(secret_of("--key-file", path)?),
                (key, None) => key,
            };
            if let Some(path) = url.strip_prefix(UNIX) {
                return Ok((Some(Self { client: Client::unix(path, key), own: None }), None));
            }
            if !url.starts_with("http://") && !url.starts_with("https://") {
                bail!(Usage("--url must begin with https://, http:// or unix:".into()));
            }
            let url = url.trim_end_matches('/').to_owned();
            let client = Client::new(url, key, args.ca.as_deref())?;
            return Ok((Some(Self { client, own: None }), None));
        }
        let flags =
            [("--key", "TALLY_KEY", key.is_some()), ("--key-file", "TALLY_KEY_FILE", key_file.is_some())];
        for (flag, name, is_given) in flags {
            if is_given && variable(name).is_none() {
                bail!(Usage(format!("{flag} is for a server given by --url")));
            }
        }
        let data = DataDir::of(config);
        if let Some(running) = data.running() {
            let client = local(&running.http, &running.token)?;
            if client.is_there() {
                client.wait_until_ready()?;
                return Ok((Some(Self { client, own: None }), Some(data)));
            }
        }
        let data = match missing {
            Missing::Refused => DataDir::with_store(config)?,
            Missing::Made => {
                // Its directory may be mistyped.
                if data.check_store(config).is_err() {
                    let store = data.place(config)?.file("seed")?;
                    eprintln!("There is no store {}: this makes a new one", store.display());
                }
                DataDir::open(config)?
            }
        };
        Ok((None, Some(data)))
    }

    /// Whether the command started the server.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Stops a server that the command started.
    pub(crate) fn finish(self) {
        if let Some(server) = self.own {
            server.stop();
        }
    }
}

fn local(http: &str, token: &str) -> Result<Client> {
    let key = Some(format!("{LOCAL_PREFIX}{token}"));
    match http.strip_prefix(UNIX) {
        Some(path) => Ok(Client::unix(path, key)),
        None => Client::new(format!("http://{http}"), key, None),
    }
}
