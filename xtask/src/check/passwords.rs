//! Passwords on command lines: no command of a document has one, because the list of processes shows arguments to every
//! account. Files and settings have passwords.
//!
//! It reads blocks of commands in Markdown. Not here: blocks of settings and SQL, which are files of their reader.

use super::Violation;
use super::repository::{File, Repository};

pub(super) const RULE: &str = "passwords";

const FENCE: &str = "```";

/// Languages of blocks with commands.
const COMMANDS: [&str; 6] = ["", "sh", "bash", "shell", "console", "text"];

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    repository.files.iter().filter(|file| file.path.ends_with(".md")).flat_map(of_document).collect()
}

fn of_document(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    // The language of the block that these lines are in.
    let mut block: Option<&str> = None;
    for (number, line) in file.lines() {
        if let Some(language) = line.trim_start().strip_prefix(FENCE) {
            // A word behind the language names the block for a test.
            let language = language.split_whitespace().next().unwrap_or_default();
            block = if block.is_some() { None } else { Some(language) };
        } else if block.is_some_and(|language| COMMANDS.contains(&language)) {
            found.extend(secret_of(line).map(|what| {
                let message =
                    format!("{what} is in the list of processes: give it in a file, as `--key-file` and `store.url_file` do");
                Violation::new(RULE, &file.path, number, message)
            }));
        }
    }
    found
}

/// What a command line shows.
fn secret_of(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let follows = |flag: &str, value: &str| {
        words.windows(2).any(|pair| pair[0] == flag && pair[1].starts_with(value))
            || words.iter().any(|word| {
                word.strip_prefix(flag).is_some_and(|rest| rest.starts_with(&format!("={value}")))
            })
    };
    if words.iter().any(|word| has_password(word)) {
        return Some("a URL with a password");
    }
    if words.contains(&"--password") || follows("--password", "") {
        return Some("`--password`");
    }
    follows("--key", "tally_").then_some("an API key")
}

/// Whether a URL in the word has `user:password@` before its host.
fn has_password(word: &str) -> bool {
    word.match_indices("://").any(|(at, mark)| {
        let rest = &word[at + mark.len()..];
        let end = rest.find(['/', '?', '#', '"', '\'', '`']).unwrap_or(rest.len());
        rest[..end].rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&files(&[("docs/a.md", text)])).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_password_in_a_command_is_a_violation() {
        for command in [
            "tally serve --store mysql://tally:PASSWORD@db.example/tally",
            "tally serve --store 'mysql://tally:$PASSWORD@db.example:3306/tally?ssl-mode=required'",
            "tally serve --ranking=redis://:secret@redis.example:6379",
            "mysqldump --user=tally --password=secret tally",
            "mysqldump --user tally --password secret tally",
            "tally keys list --url https://tally.example --key tally_0f1e2d3c4b5a_abc",
            "tally keys list --url https://tally.example --key=tally_0f1e2d3c4b5a_abc",
        ] {
            for language in ["", "sh", "sh dump", "text"] {
                assert_eq!(lines(&format!("Text.\n\n```{language}\n{command}\n```\n")), [4], "{command}");
            }
        }
    }

    #[test]
    fn files_and_settings_may_have_passwords() {
        for text in [
            "```toml\nurl = \"mysql://tally:PASSWORD@db.example/tally\"\n```\n",
            "```sql\nCREATE USER 'tally' IDENTIFIED BY 'PASSWORD';\n```\n",
            "```sh\ntally serve --store mysql://db.example:3306/tally\n```\n",
            "```sh\ntally serve --store mysql://tally@db.example:3306/tally\n```\n",
            "```sh\ncurl http://127.0.0.1:8420/v1/leaderboards/b?at=a:b@c\n```\n",
            "```sh\ntally keys list --url https://tally.example --key-file admin.key\n```\n",
            "```sh\ntally load scores --passwords 3\n```\n`--password` is no flag.\n",
        ] {
            assert!(lines(text).is_empty(), "{text}");
        }
        assert!(check(&files(&[("a.rs", "```\nx --password y\n```\n")])).is_empty());
    }
}
