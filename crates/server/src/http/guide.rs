//! The guide: the documentation of this release as a site below `/docs/guide/`, with a search.
//!
//! Like the files of the console it holds no data: it needs no key, and is served in every state under the same policy. Not here:
//! the pages, which `tally-guide` makes.

use super::console;
use super::response::{self, Response};
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue, LOCATION};
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// Where the guide begins. Links between its pages are relative, so its first page needs the slash at the end.
const ROOT: &str = "/docs/guide/";

/// The `ETag` of each file by its name, made at the first request for the file, as a page is.
static TAGS: LazyLock<HashMap<&str, OnceLock<HeaderValue>>> =
    LazyLock::new(|| tally_guide::names().map(|name| (name, OnceLock::new())).collect());

/// Whether the guide has this path. Every request calls it, and the prefix decides nearly all of them.
pub(super) fn has(path: &str) -> bool {
    path == ROOT.trim_end_matches('/')
        || name_of(path).is_some_and(|name| tally_guide::names().any(|known| known == name))
}

/// The guide's file at this path, if there is one; 304 if the browser has it.
pub(super) fn file(path: &str, headers: &HeaderMap) -> Option<Response> {
    if path == ROOT.trim_end_matches('/') {
        let mut moved = response::none();
        *moved.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        moved.headers_mut().insert(LOCATION, HeaderValue::from_static(ROOT));
        return Some(moved);
    }
    let name = name_of(path)?;
    let file = tally_guide::file(name)?;
    Some(console::answer(file.content_type, file.text, tag(name, file.text)?, headers))
}

/// The `ETag` of a file with this text.
fn tag(name: &str, text: &str) -> Option<&'static HeaderValue> {
    Some(TAGS.get(name)?.get_or_init(|| console::tag_of(text)))
}

/// The name of the file at a path of the guide.
fn name_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix(ROOT)?;
    Some(if name.is_empty() { "index.html" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};

    fn get(path: &str) -> Option<Response> {
        assert_eq!(has(path), file(path, &HeaderMap::new()).is_some(), "{path}");
        file(path, &HeaderMap::new())
    }

    #[test]
    fn pages_have_the_policy_of_the_console() {
        let console = console::file("/", &HeaderMap::new()).expect("it is there");
        for (path, content_type) in [
            ("/docs/guide/", "text/html; charset=utf-8"),
            ("/docs/guide/http/index.html", "text/html; charset=utf-8"),
            ("/docs/guide/guide.css", "text/css; charset=utf-8"),
            ("/docs/guide/search.json", "application/json"),
        ] {
            let page = get(path).unwrap_or_else(|| panic!("{path} is there"));
            assert_eq!(
                (page.status(), &page.headers()[CONTENT_TYPE]),
                (StatusCode::OK, &content_type.parse().expect("a header"))
            );
            assert_eq!(page.headers()[CONTENT_SECURITY_POLICY], console.headers()[CONTENT_SECURITY_POLICY]);
            let known: HeaderMap = [(IF_NONE_MATCH, page.headers()[ETAG].clone())].into_iter().collect();
            let again = file(path, &known).expect("it is there");
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        }
    }

    #[test]
    fn a_file_is_digested_once() {
        let tag_of = |name: &str| tag(name, tally_guide::file(name)?.text);
        for name in tally_guide::names() {
            let (first, again) = (tag_of(name).expect("a tag"), tag_of(name).expect("a tag"));
            assert!(std::ptr::eq(first, again), "{name}");
        }
        assert_ne!(tag_of("index.html"), tag_of("search.json"));
        assert_eq!(tag_of("nothing.html"), None);
    }

    #[test]
    fn the_first_page_is_at_the_root_and_nothing_is_elsewhere() {
        let moved = get("/docs/guide").expect("it leads on");
        assert_eq!(
            (moved.status(), &moved.headers()[LOCATION]),
            (StatusCode::TEMPORARY_REDIRECT, &HeaderValue::from_static(ROOT))
        );
        for path in [
            "/docs/guide/nothing.html",
            "/docs/guide/http",
            "/docs/guidebook",
            "/docs/guide/tutorial.md",
            "/docs",
        ] {
            assert!(get(path).is_none(), "{path}");
        }
    }
}
