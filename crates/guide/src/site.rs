//! The pages by their addresses below the root of the site: rendered at their first request, and kept.
//!
//! A page renders in less than a millisecond, so nothing is rendered while building. A build script would compile the parser of
//! Markdown for the machine of the build, and a start would be no faster. Links are relative, so that the same files work in a
//! folder and below any path of a server. Not here: headers and connections.

use crate::contents::{GuidePage, SECTIONS};
use crate::frame;
use crate::markdown::{self, LinkTarget, Rendered};
use serde_json::{Value, json};
use std::sync::{LazyLock, OnceLock};

/// A page of the site.
pub(crate) struct Entry {
    page: &'static GuidePage,
    pub(crate) section: &'static str,
    pub(crate) title: &'static str,
    /// From the root of the site.
    pub(crate) address: String,
    html: OnceLock<String>,
}

/// All pages in the order of the table of contents.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let pages = SECTIONS.iter().flat_map(|section| section.pages.iter().map(|page| (section.title, page)));
    pages.map(|(section, page)| Entry::new(section, page)).collect()
});

static INDEX: OnceLock<String> = OnceLock::new();

impl Entry {
    fn new(section: &'static str, page: &'static GuidePage) -> Self {
        let first = page.source.lines().next().unwrap_or_default();
        let title = first.strip_prefix("# ").filter(|_| page.path.ends_with(".md")).unwrap_or("Settings");
        let below = page.path.strip_prefix("docs/").unwrap_or(page.path);
        let stem = below.rsplit_once('.').map_or(below, |(stem, _)| stem);
        let address = match stem.strip_suffix("README") {
            Some(folder) => format!("{folder}index.html"),
            None => format!("{stem}.html"),
        };
        Self { page, section, title, address, html: OnceLock::new() }
    }

    /// The way from this page to the root of the site.
    pub(crate) fn root(&self) -> String {
        "../".repeat(self.address.matches('/').count())
    }

    fn rendered(&self) -> Rendered {
        let target = |link: &str| self.target(link);
        if self.page.path.ends_with(".toml") {
            return markdown::render(&settings(self.page.source), target);
        }
        markdown::render(self.page.source, target)
    }

    /// Where a link of this page leads.
    fn target(&self, link: &str) -> LinkTarget {
        if link.contains("://") || link.starts_with("mailto:") || link.starts_with('#') {
            return LinkTarget::Address(link.to_owned());
        }
        let (path, anchor) = link.split_once('#').map_or((link, ""), |(path, _)| (path, &link[path.len()..]));
        let path = resolve(self.page.path, path);
        match entries().iter().find(|entry| entry.page.path == path) {
            Some(entry) => LinkTarget::Address(format!("{}{}{anchor}", self.root(), entry.address)),
            None => LinkTarget::Repository(path),
        }
    }
}

/// The pages in their order.
pub(crate) fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The page at this address, in HTML.
pub(crate) fn page(address: &str) -> Option<&'static str> {
    let at = entries().iter().position(|entry| entry.address == address)?;
    let html = entries()[at].html.get_or_init(|| frame::page(at, &entries()[at].rendered()));
    Some(html.as_str())
}

/// What the search in the browser reads: for each page its address, its title, and the anchor, heading and text of each part.
pub(crate) fn index() -> &'static str {
    INDEX.get_or_init(|| {
        let page = |entry: &Entry| {
            let parts = entry.rendered().parts;
            let parts = parts.iter().map(|part| json!([part.id, part.heading, part.text]));
            json!([entry.address, entry.title, parts.collect::<Value>()])
        };
        entries().iter().map(page).collect::<Value>().to_string()
    })
}

/// The path from the root of the repository of a link in the file `from`.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The file of all settings as Markdown, with a heading for each of its tables.
fn settings(toml: &str) -> String {
    let mut text = String::from("# Settings\n");
    for (at, table) in toml.split("\n[").enumerate() {
        let (heading, open) = match table.split_once(']') {
            Some((name, _)) if at > 0 => (format!("\n## {name}\n"), "["),
            _ => (String::new(), ""),
        };
        text.push_str(&format!("{heading}\n```toml\n{open}{}\n```\n", table.trim_end()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    fn entry(path: &str) -> &'static Entry {
        entries().iter().find(|entry| entry.page.path == path).expect("the page is there")
    }

    /// The pages of Markdown below a folder of the repository, without decisions.
    fn pages_below(folder: &str, found: &mut BTreeSet<String>) {
        for file in std::fs::read_dir(Path::new(ROOT).join(folder)).expect("the folder is there") {
            let file = file.expect("it can be read");
            let path = format!("{folder}/{}", file.file_name().to_string_lossy());
            if file.path().is_dir() {
                if path != "docs/decisions" {
                    pages_below(&path, found);
                }
            } else if path.ends_with(".md") {
                found.insert(path);
            }
        }
    }

    /// The values of an attribute in a page.
    fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
        let behind = html.split(attribute).skip(1);
        behind.filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn every_page_of_the_documentation_is_in_the_table_of_contents_once() {
        let mut wanted = BTreeSet::new();
        pages_below("docs", &mut wanted);
        let listed: Vec<&str> = entries().iter().map(|entry| entry.page.path).collect();
        for path in &wanted {
            assert!(listed.contains(&path.as_str()), "{path} is missing in crates/guide/src/contents.rs");
        }
        let once: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len(), "a page is listed twice");
        let titles: BTreeSet<(&str, &str)> =
            entries().iter().map(|entry| (entry.section, entry.title)).collect();
        assert_eq!(titles.len(), listed.len(), "two pages of a section have one title");
    }

    #[test]
    fn every_link_and_anchor_of_every_page_is_there() {
        let pages: BTreeMap<&str, &str> = entries()
            .iter()
            .map(|entry| (entry.address.as_str(), page(&entry.address).expect("it is there")))
            .collect();
        for (address, html) in &pages {
            let ids = values(html, " id=\"");
            let once: BTreeSet<&&str> = ids.iter().collect();
            assert_eq!(once.len(), ids.len(), "{address}: an anchor is there twice: {ids:?}");
            let links = values(html, " href=\"").into_iter().chain(values(html, " src=\""));
            for link in links.filter(|link| !link.contains("://") && !link.starts_with("data:")) {
                // The page of the API, which a server has beside the site.
                if link == "/docs" {
                    continue;
                }
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if path.is_empty() { (*address).to_owned() } else { resolve(address, path) };
                if let Some(target_page) = pages.get(target.as_str()) {
                    let found = anchor.is_empty() || values(target_page, " id=\"").contains(&anchor);
                    assert!(found, "{address}: {link} leads to no anchor");
                } else {
                    assert!(crate::file(&target).is_some(), "{address}: {link} leads nowhere");
                }
            }
        }
    }

    #[test]
    fn what_the_site_does_not_have_is_a_file_of_the_repository() {
        for entry in entries() {
            let html = page(&entry.address).expect("it is there");
            for title in values(html, "<span class=\"file\" title=\"") {
                let path = title.strip_suffix(" of the repository").expect("it says what it is");
                assert!(Path::new(ROOT).join(path).exists(), "{}: {path}", entry.page.path);
                let is_page = path.starts_with("docs/") && path.ends_with(".md");
                let listed = !is_page || path.starts_with("docs/decisions/");
                assert!(listed, "{}: {path} is a page that the site does not have", entry.page.path);
            }
        }
    }

    #[test]
    fn links_lead_from_folder_to_folder() {
        let tutorial = entry("docs/tutorial.md");
        let webhooks = entry("docs/http/webhooks.md");
        assert_eq!((tutorial.root().as_str(), webhooks.root().as_str()), ("", "../"));
        for (from, link, address) in [
            (tutorial, "http/README.md#errors", "http/index.html#errors"),
            (tutorial, "#here", "#here"),
            (tutorial, "../clients/python/README.md", "clients/python/index.html"),
            (webhooks, "../webhooks.md", "../webhooks.html"),
            (webhooks, "README.md", "../http/index.html"),
            (webhooks, "../tally.toml", "../tally.html"),
            (webhooks, "https://example.org/a.md", "https://example.org/a.md"),
        ] {
            assert_eq!(from.target(link), LinkTarget::Address(address.to_owned()), "{link}");
        }
        let outside = LinkTarget::Repository("deploy/prometheus".to_owned());
        assert_eq!(webhooks.target("../../deploy/prometheus/"), outside);
    }

    #[test]
    fn the_settings_have_a_heading_for_each_table() {
        let text = settings("# All.\n\n[a]\nb = 1\n\n[c]\n# d\n");
        let wanted = "# Settings\n\n```toml\n# All.\n```\n\n## a\n\n```toml\n[a]\nb = 1\n```\n\n## c\n\n```toml\n[c]\n# d\n```\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn the_index_has_the_text_of_every_page() {
        let index: Value = serde_json::from_str(index()).expect("it is JSON");
        let pages = index.as_array().expect("a list");
        assert_eq!(pages.len(), entries().len());
        let errors = pages.iter().find(|page| page[0] == "http/index.html").expect("it is there");
        let part = errors[2].as_array().expect("a list").iter().find(|part| part[0] == "errors");
        let text = part.expect("it is there")[2].as_str().expect("text");
        assert!(text.contains("idempotency_key_reused") && !text.contains("Errors"), "{text}");
    }
}
