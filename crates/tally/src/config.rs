//! Settings: one table with defaults and help. A flag overrides the environment, that the file, and that the default.
//!
//! All settings are text until they are read, so every source is treated alike. An unknown setting of a file is an error that
//! names the nearest one. An unknown variable is a warning, because other programs set variables too. Those that Kubernetes
//! sets for a Service with the name `tally` are ignored.
//!
//! Not here: reading the file, variables and flags (`sources`).

use crate::memory::{self, Limit};
pub(crate) use crate::settings::SETTINGS;
use crate::settings::{BY_CURRENCY, CURRENCIES_REFERENCE, Setting};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Variables of flags, tests and tools, which are no settings.
const OTHER_VARIABLES: [&str; 7] = [
    "TALLY_CONFIG",
    "TALLY_KEY",
    "TALLY_KEY_FILE",
    "TALLY_SECRET",
    "TALLY_SOAK",
    "TALLY_SEED",
    "TALLY_WRITE_DOCS",
];

/// The source of a value that was not set.
const DEFAULT: &str = "default";

/// An error in the command or the file: exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Settings in force, each with its source.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    values: BTreeMap<&'static str, (String, &'static str)>,
    /// Settings whose names end with a currency code, by the name before it and the code: the value, and its source.
    by_currency: BTreeMap<(&'static str, String), (String, &'static str)>,
    /// Warnings about unknown variables.
    warnings: Vec<String>,
    /// The memory that bounds with the value `auto` follow.
    memory: Limit,
}

impl Config {
    /// Every setting at its default.
    pub(crate) fn defaults() -> Self {
        Self {
            values: SETTINGS.iter().map(|one| (one.name, (one.default.to_owned(), DEFAULT))).collect(),
            by_currency: BTreeMap::new(),
            warnings: Vec::new(),
            memory: Limit::NONE,
        }
    }

    /// Sets the values of a configuration file.
    pub(crate) fn set_file(&mut self, text: &str) -> Result<(), String> {
        for (name, value) in flatten(text)? {
            self.set(&name, value, "file").map_err(|why| why.0)?;
        }
        Ok(())
    }

    /// Sets the value of an environment variable, if it is for tally. An unknown one is a warning.
    pub(crate) fn set_variable(&mut self, name: &str, value: &str) {
        if !name.starts_with("TALLY_") || OTHER_VARIABLES.contains(&name) || is_of_kubernetes(name) {
            return;
        }
        let setting = SETTINGS.iter().find(|one| one.variable() == name);
        let dotted = setting.map_or_else(|| undotted(name), |one| one.name.to_owned());
        if let Err(why) = self.set(&dotted, value.to_owned(), "environment") {
            self.warnings.push(format!("environment variable {name} is left out: {why}"));
        }
    }

    /// Sets a value from one of the sources.
    pub(crate) fn set(&mut self, name: &str, value: String, source: &'static str) -> Result<(), Usage> {
        let of_currency = |before: &&'static str| Some((*before, name.strip_prefix(*before)?.to_uppercase()));
        // Names of variables were converted to lower case.
        if let Some(key) = BY_CURRENCY.iter().find_map(of_currency) {
            self.by_currency.insert(key, (value, source));
            return Ok(());
        }
        let Some(slot) = SETTINGS.iter().find(|one| one.name == name) else {
            return Err(Usage(unknown(name)));
        };
        self.values.insert(slot.name, (value, source));
        Ok(())
    }

    /// Takes a setting over from another configuration.
    pub(crate) fn take(&mut self, name: &'static str, from: &Self) {
        self.values.extend(from.values.get(name).map(|value| (name, value.clone())));
    }

    /// The names of settings whose values differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let of_all = self.values.iter().filter(|(name, (value, _))| other.text(name) != value);
        let mut names: Vec<String> = of_all.map(|(name, _)| format!("`{name}`")).collect();
        let keys = self.by_currency.keys().chain(other.by_currency.keys());
        let value = |config: &Self, key| config.by_currency.get(key).map(|(value, _)| value.clone());
        let differ = keys.filter(|key| value(self, *key) != value(other, *key));
        names.extend(differ.map(|(before, code)| format!("`{before}{code}`")));
        names.sort();
        names.dedup();
        names
    }

    /// Warnings about unknown variables.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A setting's text.
    pub(crate) fn text(&self, name: &'static str) -> &str {
        &self.values.get(name).expect("every setting has a value").0
    }

    /// Every code and value of a setting for single currencies.
    pub(crate) fn of_currencies(&self, before: &'static str) -> impl Iterator<Item = (&str, &str)> {
        let all = self.by_currency.iter().filter(move |((name, _), _)| *name == before);
        all.map(|((_, code), (value, _))| (code.as_str(), value.as_str()))
    }

    /// Whether it was set: its value is not the default.
    pub(crate) fn is_said(&self, name: &'static str) -> bool {
        self.values.get(name).is_some_and(|(_, source)| *source != DEFAULT)
    }

    /// A setting's list.
    pub(crate) fn list(&self, name: &'static str) -> Vec<String> {
        list(self.text(name))
    }

    /// A setting as a number or a truth value.
    pub(crate) fn parse<T: FromStr>(&self, name: &'static str, what: &str) -> Result<T, Usage> {
        self.text(name).parse().map_err(|_| self.wrong(name, what))
    }

    /// A setting that is a number of at least one.
    pub(crate) fn count(&self, name: &'static str) -> Result<usize, Usage> {
        let count: usize = self.parse(name, "a whole number")?;
        if count == 0 { Err(self.wrong(name, "a whole number of at least 1")) } else { Ok(count) }
    }

    /// A bound that may follow the memory.
    pub(crate) fn bound(&self, name: &'static str) -> Result<usize, Usage> {
        if self.text(name) == memory::AUTO
            && let Some(bound) = memory::bound(self.memory.bytes, name)
        {
            return Ok(usize::try_from(bound).unwrap_or(usize::MAX));
        }
        self.count(name).map_err(|_| self.wrong(name, "a whole number of at least 1, or auto"))
    }

    /// The memory that this process may use.
    pub(crate) fn memory(&self) -> Limit {
        self.memory
    }

    /// Sets it.
    pub(crate) fn set_memory(&mut self, limit: Limit) {
        self.memory = limit;
    }

    /// A setting as a duration.
    pub(crate) fn duration(&self, name: &'static str) -> Result<Duration, Usage> {
        let what = "a time such as 500ms, 30s or 24h";
        let parsed = self.text(name).parse::<jiff::SignedDuration>().ok();
        let positive =
            parsed.and_then(|parsed| Duration::try_from(parsed).ok()).filter(|time| !time.is_zero());
        positive.ok_or_else(|| self.wrong(name, what))
    }

    /// A setting as a duration, or `None` for this word.
    pub(crate) fn duration_or(&self, name: &'static str, none: &str) -> Result<Option<Duration>, Usage> {
        if self.text(name) == none { Ok(None) } else { self.duration(name).map(Some) }
    }

    /// The error of an invalid setting.
    pub(crate) fn wrong(&self, name: &str, what: &str) -> Usage {
        Usage(format!("setting `{name}` is `{}` and must be {what}", self.text(find(name).name)))
    }

    /// Every setting with its value and source, for `/v1/status`.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let one = |(name, (value, source)): (&&str, &(String, &str))| {
            let shown = match *name {
                "traces.header" if !value.is_empty() => "…".to_owned(),
                _ if name.ends_with(".url") => without_passwords(value),
                _ => value.clone(),
            };
            ((*name).to_owned(), serde_json::json!({"value": shown, "source": source}))
        };
        let mut all: serde_json::Map<_, _> = self.values.iter().map(one).collect();
        all.extend(self.by_currency.iter().map(|((before, code), (value, source))| {
            (format!("{before}{code}"), serde_json::json!({"value": value, "source": source}))
        }));
        serde_json::Value::Object(all)
    }
}

/// The parts of a comma-separated text.
pub(crate) fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn find(name: &str) -> &'static Setting {
    SETTINGS.iter().find(|one| one.name == name).expect("only known names are asked for")
}

/// A file with every setting at its default, for `docs/` and for copying.
pub(crate) fn reference() -> String {
    let mut text = String::from(
        "# tally.toml: every setting with its default. Precedence: flag > environment > file > default.\n",
    );
    let mut section = "";
    for setting in SETTINGS {
        let (here, name) = setting.name.split_once('.').expect("every name has a section");
        if here != section {
            text.push_str(&format!("\n[{here}]\n"));
            section = here;
        }
        let plain = setting.default.parse::<i64>().is_ok()
            || ["true", "false"].contains(&setting.default)
            || is_fraction(setting.name);
        let value = if plain { setting.default.to_owned() } else { format!("\"{}\"", setting.default) };
        text.push_str(&format!(
            "# {}\n# Environment: {}\n{name} = {value}\n",
            setting.help,
            setting.variable()
        ));
    }
    text.push_str(CURRENCIES_REFERENCE);
    text
}

/// Whether Kubernetes gives this variable to every container, for a Service with the name `tally`
/// (<https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>).
fn is_of_kubernetes(variable: &str) -> bool {
    let name = variable.trim_start_matches("TALLY_");
    let is_port = |name: &str| name == "PORT" || name.starts_with("PORT_");
    name == "SERVICE_HOST" || is_port(name) || name.strip_prefix("SERVICE_").is_some_and(is_port)
}

fn undotted(variable: &str) -> String {
    let name = variable.trim_start_matches("TALLY_").to_lowercase();
    name.replacen('_', ".", 1)
}

fn unknown(name: &str) -> String {
    let nearest = SETTINGS.iter().min_by_key(|one| strsim::damerau_levenshtein(one.name, name));
    match nearest {
        Some(nearest) => format!("unknown setting `{name}`; did you mean `{}`?", nearest.name),
        None => format!("unknown setting `{name}`"),
    }
}

/// URLs without their passwords, for a status page.
fn without_passwords(urls: &str) -> String {
    let shown: Vec<String> = urls.split(',').map(without_password).collect();
    shown.join(",")
}

/// The same for one URL.
pub(crate) fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}://…@{}", &url[..scheme], &url[at + 1..]),
        _ => url.to_owned(),
    }
}

/// The values of a TOML file by dotted names.
fn flatten(text: &str) -> Result<Vec<(String, String)>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut values = Vec::new();
    for (section, value) in table {
        let toml::Value::Table(inner) = value else {
            return Err(format!("`{section}` must be a section such as [http]"));
        };
        for (name, value) in inner {
            let name = format!("{section}.{name}");
            let text = scalar(&value)
                .or_else(|| value.as_float().filter(|_| is_fraction(&name)).map(|number| number.to_string()))
                .ok_or_else(|| format!("`{name}` must be text, a number, true, false or a list of texts"))?;
            values.push((name, text));
        }
    }
    Ok(values)
}

/// Whether a setting is a number that need not be whole; for others a fraction is an error.
fn is_fraction(name: &str) -> bool {
    name == "traces.ratio"
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        toml::Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_sections() {
        let values =
            flatten("[http]\nlisten = \"0.0.0.0:1\"\nhosts = [\"a\", \"b\"]\n[limits]\nboards = 5\n")
                .unwrap();
        let pairs: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("http.hosts", "a,b"), ("http.listen", "0.0.0.0:1"), ("limits.boards", "5")]);
        assert_eq!(
            flatten("[traces]\nratio = 0.5\n").unwrap(),
            [("traces.ratio".to_owned(), "0.5".to_owned())]
        );
        assert!(flatten("listen = 1").is_err());
        assert!(flatten("[http]\nlisten = 1.5").is_err());
    }

    #[test]
    fn an_unknown_setting_suggests_the_nearest() {
        assert_eq!(unknown("http.lisen"), "unknown setting `http.lisen`; did you mean `http.listen`?");
        assert_eq!(undotted("TALLY_HTTP_LISEN"), "http.lisen");
    }

    #[test]
    fn every_variable_leads_back_to_its_setting() {
        for setting in SETTINGS {
            let same = SETTINGS.iter().filter(|one| one.variable() == setting.variable()).count();
            assert_eq!(same, 1, "{}", setting.name);
            assert!(!setting.help.is_empty());
        }
        let variable = |name| SETTINGS.iter().find(|one| one.name == name).unwrap().variable();
        assert_eq!(variable("http.listen"), "TALLY_HTTP_LISTEN");
        assert_eq!(variable("store.url"), "TALLY_STORE_URL");
    }

    /// `TALLY_WRITE_DOCS=1 cargo test -p tally` writes the file anew.
    #[test]
    fn the_reference_in_docs_is_that_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tally.toml");
        if std::env::var_os("TALLY_WRITE_DOCS").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), reference(), "docs/tally.toml is out of date");
        let values = flatten(&reference()).unwrap();
        assert_eq!(values.len(), SETTINGS.len());
    }

    #[test]
    fn passwords_in_urls_are_not_shown() {
        assert_eq!(without_password("mysql://root:secret@db:3306/x"), "mysql://…@db:3306/x");
        assert_eq!(without_password("sqlite:/a@b/tally.db"), "sqlite:/a@b/tally.db");
    }
}
