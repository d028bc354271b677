//! Links in Markdown to files of the repository must have a target.
//!
//! A small parser of `[text](target)`, `![text](target)` and `[name]: target`, which skips code. It knows links and not
//! the rest of Markdown. A folder is a valid target; a path outside the repository is not.
//!
//! Not here: addresses on the web, which change from day to day, and the part after `#`.

use super::Violation;
use super::repository::Repository;

pub(super) const RULE: &str = "markdown-link";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in targets(&file.text) {
            let Some(path) = local_path(target) else { continue };
            let broken = match resolve(&file.path, path) {
                Some(resolved) => !exists(repository, &resolved),
                None => true,
            };
            if broken {
                found.push(Violation::new(
                    RULE,
                    &file.path,
                    line,
                    format!("`{target}` leads nowhere in this repository"),
                ));
            }
        }
    }
    found
}

/// The path in a target; `None` for an address or an anchor in the same file.
fn local_path(target: &str) -> Option<&str> {
    let path = target.split('#').next().unwrap_or_default();
    let address = path.contains("://") || path.starts_with("mailto:");
    (!path.is_empty() && !address).then_some(path)
}

/// The target from the root of the repository; `None` outside of it.
fn resolve(from: &str, target: &str) -> Option<String> {
    let folder =
        if target.starts_with('/') { "" } else { from.rsplit_once('/').map_or("", |(folder, _)| folder) };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn exists(repository: &Repository, path: &str) -> bool {
    let folder = format!("{path}/");
    path.is_empty() || repository.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
}

/// The targets of all links with their line numbers.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in outside_fences(text) {
        in_line(line, |target| found.push((number, target)));
    }
    found
}

/// The lines of Markdown outside code blocks, with their numbers.
pub(super) fn outside_fences(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fence = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => found.push((index + 1, line)),
            (Some(_), Some(_) | None) => {}
        }
    }
    found
}

fn in_line<'a>(line: &'a str, mut push: impl FnMut(&'a str)) {
    if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
        push(first_word(target));
    }
    for (at, _) in line.match_indices("](") {
        // An odd number of backticks before it means that the brackets are code.
        if line[..at].matches('`').count().is_multiple_of(2)
            && let Some((target, _)) = line[at + 2..].split_once(')')
        {
            push(first_word(target));
        }
    }
}

/// The target without its title and its angle brackets.
fn first_word(target: &str) -> &str {
    target.split_whitespace().next().unwrap_or_default().trim_start_matches('<').trim_end_matches('>')
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<String> {
        let repository =
            files(&[(path, text), ("docs/a.md", ""), ("docs/pics/b.png", ""), ("README.md", "")]);
        let found = check(&repository);
        found.into_iter().map(|violation| format!("{}:{}", violation.line, violation.message)).collect()
    }

    #[test]
    fn links_that_find_something_pass() {
        let text = "[a](a.md) ![b](pics/b.png 'title') [c](../README.md#top) [d](pics) [e](/docs/)\n[f]: <a.md>\n[g](#here)\n\
                    [h](https://example.org/x.md) [i](mailto:a@example.org)\n";
        assert_eq!(broken("docs/index.md", text), Vec::<String>::new());
    }

    #[test]
    fn links_that_find_nothing_are_violations() {
        let found =
            broken("docs/index.md", "\n[a](b.md) and [c](a.md)\n[d]: gone.md\n[e](../../outside.md)\n");
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("2:`b.md`"), "{found:?}");
        assert!(found[1].starts_with("3:`gone.md`"), "{found:?}");
        assert!(found[2].starts_with("4:`../../outside.md`"), "{found:?}");
    }

    #[test]
    fn code_is_not_a_link() {
        assert_eq!(
            broken("x.md", "```\n[a](b)\n```\n`[a](b)`\n~~~\n```\n[a](b)\n~~~\n"),
            Vec::<String>::new()
        );
    }
}
