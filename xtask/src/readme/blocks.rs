//! The shell blocks of the README, and which of them run when.
//!
//! A block tagged `sh` has commands that this tool knows (serve the demo, run the tests); a block tagged `sh demo` runs
//! against the demo server. An unknown command is an error, because no test would run it. A block that must not run has
//! another tag or none.
//!
//! Not here: running anything.

use anyhow::{Result, bail};

/// Serves the demo. The README must have exactly this command.
pub(super) const SERVE: &str = "cargo run --release -- serve --demo";

/// Runs all tests; `cargo xtask ci` does exactly that.
const TEST: &str = "cargo xtask test";

#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) serve: String,
    /// The `sh demo` blocks, one after the other.
    pub(crate) demo: String,
}

/// Parses the README into what to run.
pub(crate) fn plan(readme: &str) -> Result<Plan> {
    let mut demo = String::new();
    let mut named = Vec::new();
    for block in blocks(readme) {
        match block.tag {
            "sh demo" => demo.push_str(&block.text),
            "sh" => named.extend(commands(&block.text)),
            _ => {}
        }
    }
    if let Some(unknown) = named.iter().find(|command| !matches!(command.as_str(), SERVE | TEST)) {
        bail!("nothing runs `{unknown}`: tag its block `sh demo`, or with something other than `sh`");
    }
    for needed in [SERVE, TEST] {
        if !named.iter().any(|command| command == needed) {
            bail!("no block tagged `sh` has the command `{needed}`");
        }
    }
    if demo.is_empty() {
        bail!("no block tagged `sh demo` says what to try against the demo");
    }
    Ok(Plan { serve: SERVE.to_owned(), demo })
}

struct Block<'a> {
    tag: &'a str,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for line in markdown.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(tag)) => open = Some(Block { tag: tag.trim(), text: String::new() }),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    found.extend(open);
    found
}

/// The commands of a block, without comments and empty lines; lines that end in a backslash are joined.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" #").next().unwrap_or_default());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# tally\n```sh\n# the demo\ncargo run --release -- serve --demo   # port 8420\n```\n\
        text\n```sh demo\ncurl a \\\n  -d b\n```\n```sh demo\ncurl c\n```\n```sh\ncargo xtask test\n```\n```toml\nx = 1\n```\n";

    #[test]
    fn blocks_are_sorted_by_their_tags() {
        let plan = plan(GOOD).unwrap();
        assert_eq!(plan, Plan { serve: SERVE.into(), demo: "curl a \\\n  -d b\ncurl c\n".into() });
    }

    #[test]
    fn an_unlisted_command_is_refused() {
        let error = plan(&format!("{GOOD}```sh\nmake\n```\n")).unwrap_err().to_string();
        assert!(error.starts_with("nothing runs `make`"), "{error}");
    }

    #[test]
    fn the_promised_commands_must_be_there() {
        let without = |text: &str| plan(&GOOD.replace(text, "")).unwrap_err().to_string();
        assert!(without("cargo xtask test").contains("`cargo xtask test`"));
        assert!(without(SERVE).contains(SERVE));
        assert!(plan(&GOOD.replace("sh demo", "text")).unwrap_err().to_string().contains("`sh demo`"));
    }

    #[test]
    fn long_commands_are_one_command() {
        assert_eq!(commands("a \\\n   b\n\n# c\nd  e\n"), ["a b", "d e"]);
    }
}
