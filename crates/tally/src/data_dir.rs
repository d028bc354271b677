//! The data directory: the embedded store, the secret, and the address of the running server.

use crate::config::{Config, Usage};
use crate::sources::variable;
use crate::store::StoreAddress;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tally_service::rotation;
use tally_service::secret::{Secret, hex};
use tally_store::{Store, sqlite};

/// The address of a server of this data directory, and the token for local commands.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Its address.
    pub(crate) http: String,
    pub(crate) token: String,
}

/// Where the secrets of a store are given.
#[derive(Debug)]
pub(crate) enum SecretPlace {
    /// `TALLY_SECRET`.
    Variable,
    /// A file.
    File(PathBuf),
}

impl std::fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable => f.write_str("TALLY_SECRET"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The data directory of a command.
#[derive(Clone)]
pub(crate) struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// The directory of the settings, for a command that makes no store.
    pub(crate) fn with_store(config: &Config) -> Result<Self> {
        Self::of(config).check_store(config)?;
        Self::open(config)
    }

    /// Refuses an embedded store that does not exist: its directory may be mistyped.
    pub(crate) fn check_store(&self, config: &Config) -> Result<(), Usage> {
        let StoreAddress::Sqlite(store) = self.place(config)? else { return Ok(()) };
        if sqlite::is_there(&store) {
            return Ok(());
        }
        let place = if store.parent() == Some(self.path()) { self.path() } else { store.as_path() };
        Err(Usage(format!("no store in {}; `tally serve` creates one", place.display())))
    }

    /// The directory of the settings; creates it if it is missing.
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let path = PathBuf::from(config.text("data.dir"));
        // Other accounts of this machine must not read what is in it, except for scores.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("make the data directory {}", path.display()))?;
        Ok(Self { path })
    }

    /// The same without creating it.
    pub(crate) fn of(config: &Config) -> Self {
        Self { path: PathBuf::from(config.text("data.dir")) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The default path of the secret.
    pub(crate) fn secret_path(&self) -> PathBuf {
        self.path.join("secret")
    }

    /// The file whose time is that of the last complete backup.
    pub(crate) fn backup_path(&self) -> PathBuf {
        self.path.join("last-backup")
    }

    /// Notes that a backup is complete.
    pub(crate) fn note_backup(&self) -> Result<()> {
        let now = tally_wire::time::format(tally_service::clock::system().now());
        write_private(&self.backup_path(), format!("{now}\n").as_bytes())
    }

    /// The source of a given or stored secret.
    pub(crate) fn secret_given(&self, config: &Config) -> Option<String> {
        match self.secret_place(config) {
            SecretPlace::Variable => Some("TALLY_SECRET".into()),
            SecretPlace::File(path) => path.exists().then(|| path.display().to_string()),
        }
    }

    /// Where secrets are given.
    pub(crate) fn secret_place(&self, config: &Config) -> SecretPlace {
        let given = config.text("secret.file");
        match variable("TALLY_SECRET") {
            Some(_) => SecretPlace::Variable,
            None if given.is_empty() => SecretPlace::File(self.secret_path()),
            None => SecretPlace::File(PathBuf::from(given)),
        }
    }

    /// The place of the store of the settings.
    pub(crate) fn place(&self, config: &Config) -> Result<StoreAddress, Usage> {
        StoreAddress::of(config, &self.path)
    }

    /// The given secrets, one or two; `None` if there is no file.
    pub(crate) fn secrets_given(&self, config: &Config) -> Result<Option<Vec<Secret>>> {
        let place = self.secret_place(config);
        let text = match &place {
            SecretPlace::Variable => std::env::var("TALLY_SECRET").context("read TALLY_SECRET")?,
            SecretPlace::File(path) => match fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => {
                    return Err(error).with_context(|| format!("read the secret {}", path.display()));
                }
            },
        };
        let read = Secret::parse_all(&text);
        let digits =
            "must be 64 hexadecimal digits, or two different secrets of 64 with a space between them";
        read.map(Some).with_context(|| format!("{place} {digits}"))
    }

    /// The secrets of a server: the given ones, or a new one for a new store.
    pub(crate) fn secrets(&self, config: &Config, store: &dyn Store) -> Result<Vec<Secret>> {
        if let Some(given) = self.secrets_given(config)? {
            return Ok(given);
        }
        let place = self.secret_place(config);
        if rotation::read(store)?.is_some() {
            bail!(
                "the secret of this store is missing: {place} (restore it from your backup, or give it as TALLY_SECRET or \
                 --secret-file). If it is lost for good, `tally secret reset` says what is lost with it and makes a new one"
            );
        }
        match place {
            SecretPlace::File(path) if config.text("secret.file").is_empty() => {
                let secret = Secret::random().context("make a secret")?;
                write_secrets(&path, &[&secret])?;
                Ok(vec![secret])
            }
            _ => bail!("there is no secret in {place}"),
        }
    }

    /// Writes the addresses and the token of the server into its file.
    pub(crate) fn announce(&self, http: &str, resp: Option<&str>, token: &str) -> Result<()> {
        let running = json!({"http": http, "resp": resp, "token": token, "pid": std::process::id()});
        write_private(&self.running_path(), running.to_string().as_bytes())
    }

    /// Removes the file of the server.
    pub(crate) fn retract(&self) {
        // Another server may have taken the store over, and with it this directory.
        let ours = |value: &Value| value["pid"] == std::process::id();
        if self.announced().as_ref().is_some_and(ours) {
            // A command with a stale file gets no response from its address and says so.
            let _ = fs::remove_file(self.running_path());
        }
    }

    /// The server of the file; it may have been killed since.
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

/// A new token for local commands.
pub(crate) fn new_token() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("make a token")?;
    Ok(hex(&bytes))
}

/// Writes the file of secrets.
pub(crate) fn write_secrets(path: &Path, secrets: &[&Secret]) -> Result<()> {
    let text: Vec<String> = secrets.iter().map(|secret| secret.to_hex()).collect();
    write_private(path, text.join("\n").as_bytes())
}

/// Writes a file atomically that only its owner reads.
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
