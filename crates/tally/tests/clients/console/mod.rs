//! The console in a real browser: every page in both themes and on a phone, every action, names that resemble markup.
//!
//! The tests use pages by their visible text. An error in the log of a page, an exception, or a request to another address fails
//! the test. Pictures of the pages are in the target folder (`tmp/console`), for inspection. Not here: the effects of the
//! operations behind it.

mod axe;
mod boards;
mod contests;
mod docs;
mod keys;
mod markup;
mod modules;
mod money;
mod players;
mod serving;
mod walk;
mod webhooks;

use crate::TALLY;
use serde_json::{Value, json};
use std::path::PathBuf;
use tally_testkit::{Page, TestTally};

const HELP: &str = include_str!("help.js");

/// A server with a browser on its console.
struct Console {
    page: Page,
    server: TestTally,
}

impl Console {
    /// On an empty server.
    fn empty() -> Self {
        Self::on(TestTally::start(TALLY))
    }

    /// On the demo's data.
    fn demo() -> Self {
        Self::on(TestTally::start_with(TALLY, &["--demo"]))
    }

    fn on(server: TestTally) -> Self {
        let origin = format!("http://{}", server.address());
        let mut page = Page::open(&origin);
        page.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": HELP}));
        page.resize(1280, 900, false);
        page.prefer("light");
        page.go(&format!("{origin}/"));
        let mut console = Self { page, server };
        console.sees("Overview");
        console
    }

    /// Goes to a page of the console, and waits until the one before is gone.
    #[track_caller]
    fn show(&mut self, hash: &str) {
        self.page.eval(&format!("help.go({})", json!(hash)));
        self.page.wait(&format!(
            "document.querySelector('main h1') !== null && document.querySelector('main > [data-before]') === null \
             && location.hash === {}",
            json!(hash)
        ));
    }

    /// Waits for a text, on the page or in a message since the last click.
    #[track_caller]
    fn sees(&mut self, text: &str) {
        self.page.wait(&format!("help.sees({})", json!(text)));
    }

    /// Waits for a row of a table that has all of these words.
    #[track_caller]
    fn sees_row(&mut self, words: &[&str]) {
        self.page.wait(&format!("help.row(...{}) !== null", json!(words)));
    }

    /// Presses a button or follows a link, by its name.
    #[track_caller]
    fn click(&mut self, name: &str) {
        self.page.wait(&format!("help.click({})", json!(name)));
    }

    /// Fills a field, by its label.
    #[track_caller]
    fn fill(&mut self, label: &str, value: impl Into<Value>) {
        self.page.wait(&format!("help.fill({}, {})", json!(label), value.into()));
    }

    /// Confirms an action that cannot be undone.
    #[track_caller]
    fn confirm(&mut self, name: &str, label: &str) {
        self.page.wait("document.querySelector('dialog[open] input') !== null");
        let too_early = self.page.eval(&format!("help.click({})", json!(label)));
        assert_eq!(too_early, json!(false), "it may only be pressed when the name is typed");
        self.page.insert(name);
        self.click(label);
        self.page.wait("document.querySelector('dialog[open]') === null");
    }

    /// Keeps a picture of the whole page at this width.
    #[track_caller]
    fn picture(&mut self, name: &str) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
        std::fs::create_dir_all(&folder).expect("the folder of pictures can be made");
        self.page.picture(&folder.join(format!("{name}.png")));
    }

    /// No fault for a screen reader, a keyboard or a small window.
    #[track_caller]
    fn check(&mut self, what: &str) {
        let faults = self.page.eval("help.faults()");
        assert_eq!(faults, json!([]), "{what}");
    }

    /// Ends it regularly; the page did nothing forbidden.
    #[track_caller]
    fn end(mut self) {
        assert_eq!(self.page.complaints(), Vec::<String>::new());
        self.server.terminate();
    }
}
