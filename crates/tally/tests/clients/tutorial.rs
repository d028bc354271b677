//! `docs/tutorial.md` in Python and in JavaScript: the blocks of a language are one program, which prints what the page shows.

use super::TALLY;
use super::libraries::{node, run};
use std::process::Command;
use tally_testkit::TestTally;

const PAGE: &str = include_str!("../../../../docs/tutorial.md");

/// The blocks of a language, one after the other.
fn blocks(language: &str) -> String {
    let mut lines = PAGE.lines();
    let mut found = String::new();
    let begin = format!("```{language}");
    while lines.any(|line| line == begin) {
        for line in lines.by_ref().take_while(|line| *line != "```") {
            found += line;
            found.push('\n');
        }
    }
    assert!(!found.is_empty(), "the page has no {language}");
    found
}

/// The output of a program on a server of its own, where requests need a key.
fn printed(program: &mut Command) -> String {
    let server = TestTally::start(TALLY);
    let made = server.local().post("/v1/keys", &serde_json::json!({"role": "admin"})).expect(201);
    program.env("TALLY_URL", format!("http://{}", server.address()));
    run(program.env("TALLY_KEY", made["key"].as_str().expect("it is shown once")), "")
}

#[test]
fn the_tutorial_in_python() {
    // Any Python will do: it needs no library.
    assert_eq!(printed(Command::new("python3").arg("-c").arg(blocks("python"))), blocks("text"));
}

#[test]
fn the_tutorial_in_javascript() {
    assert_eq!(printed(&mut node(&blocks("js"), "tutorial.mjs")), blocks("text"));
}
