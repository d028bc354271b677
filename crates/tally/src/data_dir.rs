//! The data directory: the embedded store, the secret, and where the running server answers.

use crate::config::{Config, Usage};
use crate::store::Place;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tally_service::secret::{Secret, hex};
use tally_store::Store;

/// Where a server of this data directory answers, and the token of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Its address.
    pub(crate) http: String,
    /// The token.
    pub(crate) token: String,
}

/// The data directory of a command.
#[derive(Clone)]
pub(crate) struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// The directory of the settings; it is made where it is missing.
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let path = PathBuf::from(config.text("data.dir"));
        // Scores are for players, the rest is not for every account of this machine.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("make the data directory {}", path.display()))?;
        Ok(Self { path })
    }

    /// The same without making it.
    pub(crate) fn of(config: &Config) -> Self {
        Self { path: PathBuf::from(config.text("data.dir")) }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the secret is kept, if nobody says otherwise.
    pub(crate) fn secret_path(&self) -> PathBuf {
        self.path.join("secret")
    }

    /// Where a secret was given or is kept.
    pub(crate) fn secret_given(&self, config: &Config) -> Option<String> {
        if std::env::var_os("TALLY_SECRET").is_some() {
            return Some("TALLY_SECRET".into());
        }
        let given = config.text("secret.file");
        let path = if given.is_empty() { self.secret_path() } else { PathBuf::from(given) };
        path.exists().then(|| path.display().to_string())
    }

    /// Where the store of the settings is.
    pub(crate) fn place(&self, config: &Config) -> Result<Place, Usage> {
        Place::of(config, &self.path)
    }

    /// The secret: of the environment, of its file, or for a new store a new one.
    pub(crate) fn secret(&self, config: &Config, store: &dyn Store) -> Result<Secret> {
        let digits = "must be 64 hexadecimal digits";
        if let Ok(text) = std::env::var("TALLY_SECRET") {
            return Secret::parse(&text).with_context(|| format!("TALLY_SECRET {digits}"));
        }
        let given = config.text("secret.file");
        let path = if given.is_empty() { self.secret_path() } else { PathBuf::from(given) };
        match fs::read_to_string(&path) {
            Ok(text) => Secret::parse(&text).with_context(|| format!("{} {digits}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && given.is_empty() => {
                if store.meta(tally_service::tally::SECRET_META)?.is_some() {
                    bail!(
                        "the secret of this store is missing: {} (restore it from your backup, or give it as \
                         TALLY_SECRET or --secret-file)",
                        path.display()
                    );
                }
                let secret = Secret::random().context("make a secret")?;
                write_private(&path, secret.to_hex().as_bytes())?;
                Ok(secret)
            }
            Err(error) => Err(error).with_context(|| format!("read the secret {}", path.display())),
        }
    }

    /// Says where the server answers; gives the token.
    pub(crate) fn announce(&self, http: &str, resp: Option<&str>, token: &str) -> Result<()> {
        let running = json!({"http": http, "resp": resp, "token": token, "pid": std::process::id()});
        write_private(&self.running_path(), running.to_string().as_bytes())
    }

    /// Takes back what was announced.
    pub(crate) fn retract(&self) {
        // Another server may have taken the store over, and this directory with it.
        let ours = |value: &Value| value["pid"] == std::process::id();
        if self.announced().as_ref().is_some_and(ours) {
            // Whoever finds a stale file gets no answer at its address and says so.
            let _ = fs::remove_file(self.running_path());
        }
    }

    /// Where a server of this directory says that it answers; it may have been killed since.
    pub(crate) fn running(&self) -> Option<Running> {
        let value = self.announced()?;
        let field = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        Some(Running { http: field("http")?, token: field("token")? })
    }

    fn announced(&self) -> Option<Value> {
        let text = fs::read_to_string(self.running_path()).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn running_path(&self) -> PathBuf {
        self.path.join("server.json")
    }
}

/// A new token of this machine.
pub(crate) fn new_token() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("make a token")?;
    Ok(hex(&bytes))
}

/// Writes a file that only its owner reads: whole or not at all.
fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let written = || -> std::io::Result<()> {
        // A left-over of a killed process may have another mode.
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().with_context(|| format!("write {}", path.display()))
}
