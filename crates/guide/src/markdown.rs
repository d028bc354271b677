//! Markdown as HTML, with an anchor on each heading and the plain text below it.
//!
//! Anchors are those that code hosts give to the same heading, so that a link works there and here. Markup in a source is text,
//! apart from comments, which are left out. Not here: where a link leads, which `site.rs` decides.

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd, html};

/// Where a link leads.
#[derive(Debug, PartialEq)]
pub(crate) enum LinkTarget {
    /// An address on the web, or a page of the site as seen from the page of the link.
    Address(String),
    /// A file of the repository that the site does not have.
    Repository(String),
}

/// A heading, and the text up to the next one.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) level: usize,
    pub(crate) id: String,
    pub(crate) heading: String,
    pub(crate) text: String,
}

/// A page in HTML and as text.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) html: String,
    pub(crate) parts: Vec<Part>,
}

/// Renders a page whose links lead where `target` says.
pub(crate) fn render(source: &str, target: impl Fn(&str) -> LinkTarget) -> Rendered {
    let events: Vec<Event<'_>> = Parser::new_ext(source, Options::ENABLE_TABLES).collect();
    let mut parts: Vec<Part> = Vec::new();
    let mut shown: Vec<Event<'_>> = Vec::with_capacity(events.len());
    // Links do not contain links.
    let mut in_repository = false;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let heading = text_of(&events[at + 1..], TagEnd::Heading(*level));
                let id = unused(&parts, &slug(&heading));
                shown.push(Event::Start(Tag::Heading {
                    level: *level,
                    id: Some(id.clone().into()),
                    classes: Vec::new(),
                    attrs: Vec::new(),
                }));
                parts.push(Part { level: *level as usize, id, heading, text: String::new() });
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => match target(dest_url) {
                LinkTarget::Address(address) => shown.push(Event::Start(Tag::Link {
                    link_type: *link_type,
                    dest_url: address.into(),
                    title: title.clone(),
                    id: id.clone(),
                })),
                LinkTarget::Repository(path) => {
                    in_repository = true;
                    let title = escape(&format!("{path} of the repository"));
                    shown.push(Event::InlineHtml(format!("<span class=\"file\" title=\"{title}\">").into()));
                }
            },
            Event::End(TagEnd::Link) if std::mem::take(&mut in_repository) => {
                shown.push(Event::InlineHtml("</span>".into()));
            }
            // An alignment would be a style in the page, which its policy forbids. A wide table scrolls in its frame.
            Event::Start(Tag::Table(columns)) => {
                shown.push(Event::Html("<div class=\"wide\">".into()));
                shown.push(Event::Start(Tag::Table(vec![Alignment::None; columns.len()])));
            }
            Event::End(TagEnd::Table) => {
                shown.push(event.clone());
                shown.push(Event::Html("</div>\n".into()));
            }
            Event::Html(markup) | Event::InlineHtml(markup) => {
                if !markup.trim_start().starts_with("<!--") {
                    shown.push(Event::Text(markup.clone()));
                }
            }
            other => shown.push(other.clone()),
        }
        if let Some(part) = parts.last_mut() {
            add_text(&mut part.text, event);
        }
    }
    for part in &mut parts {
        // The heading itself comes first.
        part.text = part.text.strip_prefix(&part.heading).unwrap_or(&part.text).trim().to_owned();
    }
    let mut markup = String::with_capacity(source.len() * 2);
    html::push_html(&mut markup, shown.into_iter());
    Rendered { html: markup, parts }
}

/// The text of the events up to the first `end`.
fn text_of(events: &[Event<'_>], end: TagEnd) -> String {
    let mut text = String::new();
    for event in events.iter().take_while(|event| **event != Event::End(end)) {
        add_text(&mut text, event);
    }
    text
}

/// Adds what a reader sees of an event.
fn add_text(text: &mut String, event: &Event<'_>) {
    match event {
        Event::Text(more) | Event::Code(more) => text.push_str(more),
        Event::SoftBreak | Event::HardBreak => text.push(' '),
        Event::End(
            TagEnd::Heading(_) | TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock,
        ) => text.push(' '),
        _ => {}
    }
}

/// The anchor of a heading: its letters, digits, hyphens and low lines, with a hyphen for each space.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The anchor itself, or with a number if the page has it already.
fn unused(parts: &[Part], slug: &str) -> String {
    let taken = |id: &str| parts.iter().any(|part| part.id == id);
    let numbered = (1..).map(|number| format!("{slug}-{number}"));
    std::iter::once(slug.to_owned()).chain(numbered).find(|id| !taken(id)).expect("numbers do not end")
}

/// Text inside an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(source: &str) -> Rendered {
        render(source, |link| match link.strip_prefix("../") {
            Some(path) => LinkTarget::Repository(path.to_owned()),
            None => LinkTarget::Address(format!("at/{link}")),
        })
    }

    #[test]
    fn a_heading_has_the_anchor_that_code_hosts_give_it() {
        let page = plain("# A `key` & its end\n\nOne.\n\n## Twice\n\nTwo.\n\n## Twice\n\n- three\n- four\n");
        let parts: Vec<_> =
            page.parts.iter().map(|part| (part.level, part.id.as_str(), part.text.as_str())).collect();
        assert_eq!(
            parts,
            [(1, "a-key--its-end", "One."), (2, "twice", "Two."), (2, "twice-1", "three four")]
        );
        assert_eq!(page.parts[0].heading, "A key & its end");
        assert!(page.html.contains("<h2 id=\"twice-1\">Twice</h2>"), "{}", page.html);
    }

    #[test]
    fn links_lead_where_they_are_said_to() {
        let page = plain("[a](b.md#c) and [d `e`](../f\"g)\n");
        assert_eq!(
            page.html,
            "<p><a href=\"at/b.md#c\">a</a> and <span class=\"file\" title=\"f&quot;g of the repository\">d \
             <code>e</code></span></p>\n"
        );
    }

    #[test]
    fn nothing_of_a_source_becomes_a_style_or_markup() {
        let page = plain(
            "| a | b |\n|---:|:-:|\n| `1\\|2` | <b onclick=x>3</b> |\n\n<!-- left out -->\n\n<script>4</script>\n",
        );
        for word in ["style=", "<b ", "<script", "left out"] {
            assert!(!page.html.contains(word), "{word}: {}", page.html);
        }
        for word in
            ["<div class=\"wide\"><table>", "<code>1|2</code>", "&lt;b onclick=x&gt;3", "&lt;script&gt;4"]
        {
            assert!(page.html.contains(word), "{word}: {}", page.html);
        }
    }
}
