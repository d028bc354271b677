//! What is around each page: its head, the table of contents, and the pages before and after.
//!
//! The frame is a file with marks (`site/page.html`), because a template engine would be larger than all pages need. Not here:
//! the text of a page.

use crate::markdown::{Rendered, escape};
use crate::site::{Entry, entries};

const FRAME: &str = include_str!("../site/page.html");

/// The whole page with the number `at`.
pub(crate) fn page(at: usize, rendered: &Rendered) -> String {
    let entry = &entries()[at];
    let before = at.checked_sub(1).and_then(|before| entries().get(before));
    let turns = turn(entry, before, "prev", "Back") + &turn(entry, entries().get(at + 1), "next", "Next");
    let marks = [
        ("{title}", escape(entry.title)),
        ("{contents}", contents(at, rendered)),
        ("{turns}", turns),
        ("{root}", entry.root()),
    ];
    let framed = marks.into_iter().fold(FRAME.to_owned(), |page, (mark, text)| page.replace(mark, &text));
    // The text comes last, because it may have a mark in it.
    framed.replacen("{text}", &rendered.html, 1)
}

/// The link to the page before or after.
fn turn(from: &Entry, to: Option<&Entry>, relation: &str, word: &str) -> String {
    let Some(to) = to else { return String::new() };
    let (root, address, title) = (from.root(), &to.address, escape(to.title));
    format!("<a rel=\"{relation}\" href=\"{root}{address}\"><small>{word}</small> {title}</a>\n")
}

/// All pages by section. The present one is marked, and has its headings below it.
fn contents(at: usize, rendered: &Rendered) -> String {
    let (mut list, root) = (String::new(), entries()[at].root());
    let mut section = "";
    for (number, entry) in entries().iter().enumerate() {
        if entry.section != section {
            let end = if section.is_empty() { "" } else { "</ul>\n" };
            section = entry.section;
            list.push_str(&format!("{end}<h2>{}</h2>\n<ul>\n", escape(section)));
        }
        let (address, title) = (&entry.address, escape(entry.title));
        if number != at {
            list.push_str(&format!("<li><a href=\"{root}{address}\">{title}</a></li>\n"));
            continue;
        }
        list.push_str(&format!("<li><a href=\"{root}{address}\" aria-current=\"page\">{title}</a>\n"));
        let headings: Vec<String> = rendered
            .parts
            .iter()
            .filter(|part| part.level == 2)
            .map(|part| format!("<li><a href=\"#{}\">{}</a></li>\n", part.id, escape(&part.heading)))
            .collect();
        if !headings.is_empty() {
            list.push_str(&format!("<ul>\n{}</ul>\n", headings.concat()));
        }
        list.push_str("</li>\n");
    }
    list + "</ul>\n"
}
