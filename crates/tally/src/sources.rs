//! Sources of settings: the configuration file, the environment, and flags over both.
//!
//! Not here: the settings and their values (`settings`, `config`), which are fuzzed without this.

use crate::cli::{Cli, Command, LogFormat};
use crate::config::{Config, Usage, without_password};
use crate::memory;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Settings that may have a password, with the settings for files that have them.
const SECRET: [(&str, &str); 4] = [
    ("store.url", "store.url_file"),
    ("ranking.url", "ranking.url_file"),
    ("applications.url", "applications.url_file"),
    ("traces.header", "traces.header_file"),
];

/// A variable of the environment that is no setting. An empty one counts as not set, like an empty setting with a password.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The text of a file with a secret; `name` is the setting or the flag that named the file.
pub(crate) fn secret_of(name: &str, path: &Path) -> Result<String, Usage> {
    let wrong = |why: &str| Usage(format!("{name} is `{}`, which {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|why| wrong(&format!("cannot be read: {why}")))?;
    match text.trim() {
        "" => Err(wrong("is empty")),
        text => Ok(text.to_owned()),
    }
}

impl Config {
    /// Reads all sources.
    pub(crate) fn load(cli: &Cli) -> Result<Self> {
        let mut config = Self::defaults();
        config.set_memory(memory::limit(Path::new("/")));
        let file =
            cli.config.clone().or_else(|| Some(PathBuf::from("tally.toml")).filter(|path| path.is_file()));
        if let Some(path) = &file {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("read the configuration file {}", path.display()))?;
            config.set_file(&text).map_err(|why| Usage(format!("{}: {why}", path.display())))?;
        }
        for (name, value) in std::env::vars_os() {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
                config.set_variable(name, value);
            }
        }
        if !matches!(cli.command, Command::Serve(_)) {
            // `serve` logs them.
            config.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
        }
        config.set_flags(cli)?;
        if config.text("data.dir").is_empty() {
            return Err(config.wrong("data.dir", "the path of a directory").into());
        }
        config.read_files()?;
        Ok(config)
    }

    /// Takes secret settings from their files.
    fn read_files(&mut self) -> Result<()> {
        for (name, of_file) in SECRET {
            let path = self.text(of_file).to_owned();
            if path.is_empty() {
                continue;
            }
            if self.is_said(name) && !self.text(name).is_empty() {
                return Err(Usage(format!("settings `{name}` and `{of_file}` exclude each other")).into());
            }
            let text = secret_of(&format!("setting `{of_file}`"), Path::new(&path))?;
            self.set(name, text, "its file")?;
        }
        Ok(())
    }

    fn set_flags(&mut self, cli: &Cli) -> Result<()> {
        let path = |path: &Path| path.to_str().map(str::to_owned).context("a path must be UTF-8");
        if let Some(data) = &cli.data {
            self.set("data.dir", path(data)?, "flag")?;
        }
        if let Some(secret) = &cli.secret_file {
            self.set("secret.file", path(secret)?, "flag")?;
        }
        match cli.store.as_slice() {
            [] => {}
            [one] => self.set("store.url", one.clone(), "flag")?,
            several => {
                if let Some(other) = several.iter().find(|url| !url.starts_with("mysql:")) {
                    let why = "several --store are the shards of one store, each a database mysql://…";
                    return Err(Usage(format!("{why}, not `{}`", without_password(other))).into());
                }
                self.set("store.url", several.join(","), "flag")?;
            }
        }
        if let Some(format) = cli.log {
            let format = match format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            };
            self.set("log.format", format.into(), "flag")?;
        }
        if let Command::Serve(serve) = &cli.command {
            let flags = [
                ("http.listen", &serve.http),
                ("ranking.url", &serve.ranking),
                ("applications.url", &serve.applications),
                ("resp.listen", &serve.resp),
                ("resp.durability", &serve.resp_durability),
            ];
            for (name, value) in flags {
                if let Some(value) = value {
                    self.set(name, value.clone(), "flag")?;
                }
            }
        }
        Ok(())
    }
}
