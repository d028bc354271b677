//! The console: the files of `crates/server/console`, compiled in and served at `/` and `/console/…`.
//!
//! The files hold no data. So they need no key and are served in every state, in protected mode too. All data comes from
//! the public API. The files are one table of `include_str!`: an embedding crate would add a directory scan and a
//! procedural macro for some dozen files. Texts are in one file per language. Not here: what the files do.

use super::response::{self, Response};
use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use std::hash::{DefaultHasher, Hasher};
use std::sync::LazyLock;

/// Only files of this server, no script or style in a page, and no markup from text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// One file: its path, its type and its content.
struct File {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

macro_rules! file {
    ($name:literal $kind:ident) => {
        File {
            path: concat!("/console/", $name),
            content_type: $kind,
            text: include_str!(concat!("../../console/", $name)),
        }
    };
}

const PAGE: File = File { path: "/", content_type: HTML, text: include_str!("../../console/index.html") };

const FILES: &[File] = &[
    PAGE,
    file!("acts.js" SCRIPT),
    file!("adjust.js" SCRIPT),
    file!("amount.js" SCRIPT),
    file!("api.js" SCRIPT),
    file!("app.js" SCRIPT),
    file!("attention.js" SCRIPT),
    file!("audit.js" SCRIPT),
    file!("ban.js" SCRIPT),
    file!("base.css" CSS),
    file!("board.js" SCRIPT),
    file!("board_bans.js" SCRIPT),
    file!("board_changes.js" SCRIPT),
    file!("board_export.js" SCRIPT),
    file!("board_form.js" SCRIPT),
    file!("board_import.js" SCRIPT),
    file!("board_periods.js" SCRIPT),
    file!("board_player.js" SCRIPT),
    file!("board_prizes.js" SCRIPT),
    file!("boards.js" SCRIPT),
    file!("chart.js" SCRIPT),
    file!("contest.js" SCRIPT),
    file!("contest_acts.js" SCRIPT),
    file!("contest_applications.js" SCRIPT),
    file!("contest_facts.js" SCRIPT),
    file!("contest_form.js" SCRIPT),
    file!("contest_payments.js" SCRIPT),
    file!("contest_players.js" SCRIPT),
    file!("contests.js" SCRIPT),
    file!("csv.js" SCRIPT),
    file!("definition.js" SCRIPT),
    file!("dialog.js" SCRIPT),
    file!("digits.js" SCRIPT),
    file!("dom.js" SCRIPT),
    file!("form.js" SCRIPT),
    file!("format.js" SCRIPT),
    file!("holds.js" SCRIPT),
    file!("icon.svg" SVG),
    file!("ids.js" SCRIPT),
    file!("live.js" SCRIPT),
    file!("member_data.js" SCRIPT),
    file!("member_form.js" SCRIPT),
    file!("members.js" SCRIPT),
    file!("metrics.js" SCRIPT),
    file!("movement.js" SCRIPT),
    file!("overview.js" SCRIPT),
    file!("owed.js" SCRIPT),
    file!("parts.css" CSS),
    file!("period_rule.js" SCRIPT),
    file!("period_zone.js" SCRIPT),
    file!("player.js" SCRIPT),
    file!("player_contests.js" SCRIPT),
    file!("player_history.js" SCRIPT),
    file!("player_money.js" SCRIPT),
    file!("player_owed.js" SCRIPT),
    file!("player_ranks.js" SCRIPT),
    file!("players.js" SCRIPT),
    file!("prize_rows.js" SCRIPT),
    file!("ranking.js" SCRIPT),
    file!("repay.js" SCRIPT),
    file!("rights.js" SCRIPT),
    file!("samples.js" SCRIPT),
    file!("schedules.js" SCRIPT),
    file!("series.js" SCRIPT),
    file!("series_form.js" SCRIPT),
    file!("series_one.js" SCRIPT),
    file!("server.js" SCRIPT),
    file!("settings.js" SCRIPT),
    file!("sha256.js" SCRIPT),
    file!("table.js" SCRIPT),
    file!("texts.js" SCRIPT),
    file!("texts_en.js" SCRIPT),
    file!("texts_ko.js" SCRIPT),
    file!("theme.js" SCRIPT),
    file!("wallet.js" SCRIPT),
    file!("wallet_history.js" SCRIPT),
    file!("wallets.js" SCRIPT),
    file!("warnings.js" SCRIPT),
    file!("webhook.js" SCRIPT),
    file!("webhooks.js" SCRIPT),
    file!("zones.js" SCRIPT),
];

/// The `ETag` of each file: a digest of its content, equal on every server of a build.
static TAGS: LazyLock<Vec<HeaderValue>> =
    LazyLock::new(|| FILES.iter().map(|file| tag_of(file.text)).collect());

/// The `ETag` of a text.
pub(super) fn tag_of(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    HeaderValue::try_from(format!("\"{:016x}\"", hasher.finish())).expect("digits and quotes")
}

/// Whether the console has this path. Every request calls it, and the prefix decides nearly all of them.
pub(super) fn has(path: &str) -> bool {
    let may_be = path == PAGE.path || path.starts_with("/console/");
    may_be && FILES.iter().any(|file| file.path == path)
}

/// The console's file at this path, if there is one; 304 if the browser has it.
pub(super) fn file(path: &str, headers: &HeaderMap) -> Option<Response> {
    let at = FILES.iter().position(|file| file.path == path)?;
    Some(answer(FILES[at].content_type, FILES[at].text, &TAGS[at], headers))
}

/// A file under the policy of the console; 304 if the browser has it.
pub(super) fn answer(
    content_type: &'static str,
    text: &'static str,
    tag: &HeaderValue,
    headers: &HeaderMap,
) -> Response {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let known = known.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    let is_known = known.into_iter().any(|known| known == "*" || known.as_bytes() == tag.as_bytes());
    let mut response = if is_known {
        let mut unchanged = response::none();
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        response::with(StatusCode::OK, content_type, text)
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag.clone());
    // The next request may reach another version, so the browser keeps files but validates them each time.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// What a file may not contain: markup or code made from text, and anything from outside.
    const FORBIDDEN: [&str; 12] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "setHTML",
        "DOMParser",
        "srcdoc",
        "eval(",
        "new Function",
        "@import",
        "https://",
        "javascript:",
    ];

    #[test]
    fn every_file_of_the_folder_is_served_and_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
        let names = std::fs::read_dir(folder).expect("the folder is there");
        let names: BTreeSet<String> = names
            .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
            .collect();
        let served: BTreeSet<String> = FILES
            .iter()
            .map(|file| file.path.trim_start_matches("/console/").replace('/', "index.html"))
            .collect();
        assert_eq!(served, names);
        for file in FILES.iter().filter(|file| file.path != "/") {
            let name = file.path.trim_start_matches("/console/");
            let uses = |other: &&File| {
                other.text.contains(&format!("\"./{name}\""))
                    || other.text.contains(&format!("\"{}\"", file.path))
            };
            assert!(FILES.iter().any(|other| uses(&other)), "nothing uses {name}");
        }
    }

    #[test]
    fn nothing_is_inline_nothing_comes_from_outside_and_text_is_never_markup() {
        for file in FILES {
            for word in FORBIDDEN {
                assert!(!file.text.contains(word), "{}: {word}", file.path);
            }
            // The name of an XML namespace, which no browser fetches.
            let text = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://"), "{}", file.path);
        }
        for inline in ["<style", "style=", "<script>", " onload", " onclick"] {
            assert!(!PAGE.text.contains(inline), "{inline}");
        }
    }

    #[test]
    fn modules_are_small() {
        for file in FILES {
            let lines = file.text.lines().count();
            let is_texts = file.path.starts_with("/console/texts_");
            assert!(is_texts || lines <= 300, "{} has {lines} lines", file.path);
            let head = file.text.starts_with("// ") || file.content_type != SCRIPT;
            assert!(head, "{} does not say what it is", file.path);
        }
    }

    /// The entries of a file of texts: their keys and their values, one line each.
    fn entries(path: &str) -> BTreeMap<&'static str, &'static str> {
        let file = FILES.iter().find(|file| file.path == path).expect("it is there");
        let lines = file.text.lines().filter_map(|line| line.strip_prefix("  \""));
        let entries = lines.map(|line| line.split_once("\": ").expect("a key and its text"));
        let mut found = BTreeMap::new();
        for (key, text) in entries {
            assert_eq!(found.insert(key, text), None, "{key} is there twice in {path}");
        }
        found
    }

    /// The names between braces, which values replace.
    fn places(text: &str) -> BTreeSet<&str> {
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        text.split('{')
            .filter_map(|rest| rest.split_once('}'))
            .map(|(name, _)| name)
            .filter(is_name)
            .collect()
    }

    #[test]
    fn every_text_is_used_and_there_in_both_languages_with_the_same_places() {
        let (english, korean) = (entries("/console/texts_en.js"), entries("/console/texts_ko.js"));
        let keys = |texts: &BTreeMap<&'static str, &str>| texts.keys().copied().collect::<Vec<_>>();
        assert_eq!(keys(&english), keys(&korean));
        let code = || FILES.iter().filter(|file| !file.path.starts_with("/console/texts_"));
        for (key, text) in &english {
            assert_eq!(places(text), places(korean[key]), "{key}");
            // A key is written whole, or its last part is chosen: `state.${state}`.
            let chosen = key.rsplit_once('.').map(|(section, _)| format!("`{section}.${{"));
            let uses = |file: &File| {
                file.text.contains(&format!("\"{key}\""))
                    || chosen.as_ref().is_some_and(|chosen| file.text.contains(chosen))
            };
            assert!(code().any(uses), "nothing uses {key}");
        }
        for file in code() {
            for (at, call) in file.text.match_indices("t(\"") {
                // `tt(` as well, but not the end of another name.
                let before = file.text[..at].trim_end_matches('t').chars().next_back();
                let key = file.text[at + call.len()..].split('"').next().unwrap_or_default();
                let is_call = before.is_some_and(|before| !before.is_ascii_alphanumeric() && before != '.');
                assert!(!is_call || english.contains_key(key), "{} uses {key}, which has no text", file.path);
            }
        }
    }

    /// The server writes English, so a code without a sentence is English for a Korean operator.
    #[test]
    fn every_rejection_has_a_sentence_in_korean() {
        let (_, codes) =
            include_str!("../../../rules/src/rejection.rs").split_once("fn code(").expect("codes");
        let code = |line: &'static str| Some(line.split_once("=> \"")?.1.split_once('"')?.0);
        let codes: BTreeSet<&str> = codes.lines().filter_map(code).collect();
        assert!(codes.len() > 60, "{codes:?}");
        let korean = entries("/console/texts_ko.js");
        let without: Vec<_> =
            codes.iter().filter(|code| !korean.contains_key(format!("error.{code}").as_str())).collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        let fresh = file("/console/app.js", &HeaderMap::new()).expect("it is there");
        assert_eq!(
            (fresh.status(), &fresh.headers()[CONTENT_SECURITY_POLICY]),
            (StatusCode::OK, &POLICY.parse().expect("a header"))
        );
        let tag = &fresh.headers()[ETAG];
        for known in
            [tag.clone(), format!("\"x\", W/{}", tag.to_str().expect("text")).parse().expect("a header")]
        {
            let headers: HeaderMap = [(IF_NONE_MATCH, known)].into_iter().collect();
            let response = file("/console/app.js", &headers).expect("it is there");
            assert_eq!((response.status(), &response.headers()[ETAG]), (StatusCode::NOT_MODIFIED, tag));
        }
        let other: HeaderMap = [(IF_NONE_MATCH, HeaderValue::from_static("\"other\""))].into_iter().collect();
        assert_eq!(file("/", &other).expect("it is there").status(), StatusCode::OK);
        assert!(file("/console/nothing.js", &other).is_none());
    }
}
