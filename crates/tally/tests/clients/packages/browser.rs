//! The package for TypeScript in a browser, on a page that has one origin with the server.
//!
//! The page runs `browser.mts` of the package: calls, a retry, pages, streams, a sign-in, and a queue that the next load of the page
//! finds in the storage of the browser. Not here: what the package promises everywhere, which its story has.

use super::{compile_typescript, package};
use crate::TALLY;
use crate::libraries::spawn;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use tally_testkit::{Page, TestTally};

const HTML: &str = include_str!("page.html");

#[test]
fn typescript_in_a_browser() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    std::fs::copy(package("typescript/tests/browser.mts"), folder.path().join("browser.mts"))
        .expect("copied");
    compile_typescript(&folder, &["browser.mts"]);
    std::fs::write(folder.path().join("index.html"), HTML).expect("the page can be written");

    let server = TestTally::start(TALLY);
    let address = server.address();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/packages/serve.mjs");
    let mut serve = Command::new("node");
    serve.arg(script).arg(folder.path()).arg(address.ip().to_string()).arg(address.port().to_string());
    let mut pages = spawn(&mut serve);
    let mut printed = String::new();
    BufReader::new(pages.stdout.take().expect("it is piped"))
        .read_line(&mut printed)
        .expect("it prints text");
    let origin = printed.trim();

    let mut page = Page::open(origin);
    // The story asks for a leaderboard that is not there, and the browser logs that.
    page.allow("status of 404");
    for (file, part) in [("index.html", "first"), ("index.html?again", "afterReload")] {
        page.go(&format!("{origin}/page/{file}"));
        page.wait(&format!("location.href.endsWith('/{file}') && globalThis.story !== undefined"));
        page.eval(&format!("story.{part}()"));
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);
    // The end of its standard input ends it.
    drop(pages.stdin.take());
    pages.wait().expect("it ends");
}
