//! The documentation as a site: every page in HTML with a table of contents, and a search in the browser.
//!
//! The files are the same below `/docs/guide/` of a server and in a folder (`cargo xtask docs`). They have nothing inline and
//! load nothing from outside. The text is the Markdown of the repository, compiled in: it says what this release does. A crate
//! of its own keeps the parser of Markdown out of the others. Not here: serving.

mod contents;
mod frame;
mod markdown;
mod site;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What the search of the browser reads.
const INDEX: &str = "search.json";

/// The files that pages use: name, type and content.
const PARTS: &[(&str, &str, &str)] = &[
    ("guide.css", CSS, include_str!("../site/guide.css")),
    ("guide.js", SCRIPT, include_str!("../site/guide.js")),
    ("search.js", SCRIPT, include_str!("../site/search.js")),
    ("theme.js", SCRIPT, include_str!("../site/theme.js")),
];

/// A file of the site.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its type, as a header of HTTP has it.
    pub content_type: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// The names of all files, from the root of the site; the first page is `index.html`.
pub fn names() -> impl Iterator<Item = &'static str> {
    let pages = site::entries().iter().map(|entry| entry.address.as_str());
    pages.chain(PARTS.iter().map(|(name, ..)| *name)).chain([INDEX])
}

/// The file of this name, if there is one. A page is rendered at its first request.
#[must_use]
pub fn file(name: &str) -> Option<File> {
    if name == INDEX {
        return Some(File { content_type: "application/json", text: site::index() });
    }
    let part = PARTS.iter().find(|(part, ..)| *part == name);
    let part = part.map(|&(_, content_type, text)| File { content_type, text });
    part.or_else(|| Some(File { content_type: HTML, text: site::page(name)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_file_and_no_other() {
        for name in names() {
            assert!(file(name).is_some_and(|file| !file.text.is_empty()), "{name}");
        }
        for name in ["", "index", "docs/tutorial.md", "tutorial.md", "http/", "../index.html"] {
            assert!(file(name).is_none(), "{name}");
        }
    }

    #[test]
    fn nothing_is_inline_and_nothing_comes_from_outside() {
        for name in names().filter(|name| name.ends_with(".html")) {
            let text = file(name).expect("it is there").text;
            for inline in ["<style", " style=", "<script>", " onload=", " onclick=", "<img", "<iframe"] {
                assert!(!text.contains(inline), "{name}: {inline}");
            }
            for address in text.split(" src=\"").skip(1) {
                assert!(!address.starts_with("http"), "{name}");
            }
        }
        for (name, _, text) in PARTS {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "@import",
                "url(",
                "http://",
                "https://",
            ] {
                assert!(!text.contains(word), "{name}: {word}");
            }
            assert!(text.lines().count() <= 300, "{name} is long");
            assert!(text.starts_with("// ") || text.starts_with("/* "), "{name} does not say what it is");
        }
    }
}
