//! Properties of any configuration and of any text of a CSV file.
//!
//! The fuzz targets `settings` and `csv` run these functions, and the tests below run them on the corpus of the fuzzer. The
//! targets include this file and those that it uses by their paths, because a program has no library.

use crate::config::{Config, Usage};
use crate::{csv_text, limit_settings, member_settings, money_settings, trace_settings};
use tally_service::Settings;

/// A configuration file, then a line with `---`, then a variable in each line: each setting is valid, or the error names it.
pub(crate) fn settings(text: &str) {
    let (file, variables) = text.split_once("\n---\n").unwrap_or((text, ""));
    let mut config = Config::defaults();
    if let Err(why) = config.set_file(file) {
        assert!(!why.is_empty());
    }
    for (name, value) in variables.lines().filter_map(|line| line.split_once('=')) {
        config.set_variable(name, value);
    }
    assert!(config.warnings().iter().all(|warning| warning.contains("TALLY_")));
    named(limit_settings::limits(&config, false));
    named(limit_settings::connections(&config, "resp.connections_max"));
    named(member_settings::members(&config));
    named(member_settings::pin(&config));
    named(money_settings::ledger(&config, &Settings::default()));
    named(money_settings::contests_keep(&config));
    named(trace_settings::traces(&config));
    let shown = config.to_json();
    let shown = shown["store.url"]["value"].as_str().expect("every setting is shown");
    if let Some((user, _)) =
        config.text("store.url").strip_prefix("mysql://").and_then(|rest| rest.rsplit_once('@'))
    {
        // A user may be named like the mark that is shown instead of users.
        let is_hidden = user == "…" || !shown.contains(&format!("{user}@"));
        assert!(user.len() < 2 || is_hidden, "{shown}");
    }
}

fn named<T>(read: Result<T, Usage>) {
    if let Err(Usage(why)) = read {
        assert!(why.starts_with("setting"), "{why}");
    }
}

/// No exported text is a formula, and an import restores it.
pub(crate) fn csv(text: &str) {
    let exported = csv_text::escape(text);
    assert!(!exported.starts_with(['=', '+', '-', '@', '\t', '\r']));
    assert_eq!(csv_text::unescape(&exported), text);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    fn each(target: &str, run: fn(&str)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let entries = std::fs::read_dir(&folder).unwrap();
        let seeds: Vec<Vec<u8>> =
            entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
        assert!(!seeds.is_empty(), "{target} has no seeds");
        seeds.iter().filter_map(|seed| std::str::from_utf8(seed).ok()).for_each(run);
    }

    #[test]
    fn what_fuzzing_has_kept() {
        each("settings", super::settings);
        each("csv", super::csv);
    }
}
