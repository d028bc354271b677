//! The pages of `docs/http` against the document: each operation has one row, with the names of its query parameters.
//!
//! A row names its operations in its first cell, each as `METHOD /path?query` in backticks. Not here: whether the sentences of
//! a row are true, and links.

use super::{document, operations};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a row may name that is no operation of the document: the page of the console.
const CONSOLE: &str = "GET /";

/// The pages by name, and the first one apart, which leads to the others.
fn pages() -> (String, Vec<(String, String)>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http");
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("it can be read");
        let text = std::fs::read_to_string(entry.path()).expect("it is text");
        (entry.file_name().to_string_lossy().into_owned(), text)
    };
    let (first, pages): (Vec<_>, Vec<_>) = files.map(read).partition(|(name, _)| name == "README.md");
    (first.into_iter().next().expect("there is a first page").1, pages)
}

/// The operations that the rows of a page name, as `METHOD /path` and the query behind it.
fn named(page: &str) -> Vec<(&str, &str)> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let spans = cells.flat_map(|cell| cell.split('`').step_by(2));
    let operations = spans.filter(|span| {
        span.split_once(' ').is_some_and(|(method, path)| {
            method.chars().all(|c| c.is_ascii_uppercase()) && path.starts_with('/')
        })
    });
    operations.map(|span| span.split_once('?').unwrap_or((span, ""))).collect()
}

/// The names of the query parameters of an operation.
fn query<'a>(document: &'a Value, item: &'a Value, operation: &'a Value) -> Vec<&'a str> {
    let lists = [&item["parameters"], &operation["parameters"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    let resolved = all.map(|one| match one["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect("it leads somewhere"),
        None => one,
    });
    resolved.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str()).collect()
}

#[test]
fn every_operation_is_in_one_row_with_its_query_parameters() {
    let document = document();
    let (first, pages) = pages();
    let mut known = BTreeSet::from([CONSOLE.to_owned()]);
    for ((method, path), operation) in operations(&document) {
        let what = format!("{method} {path}");
        let rows: Vec<_> = pages
            .iter()
            .flat_map(|(name, page)| {
                named(page).into_iter().map(move |(row, query)| (name, page, row, query))
            })
            .filter(|(_, _, row, _)| *row == what)
            .collect();
        let files: Vec<_> = rows.iter().map(|(name, ..)| name).collect();
        assert_eq!(rows.len(), 1, "docs/http needs `{what}` in the first cell of one row, not in {files:?}");
        let (name, page, _, given) = rows[0];
        let given: Vec<&str> =
            given.split(['&', '|']).filter_map(|one| one.trim_end_matches('\\').split('=').next()).collect();
        for parameter in query(&document, &document["paths"][&path], operation) {
            let told = given.contains(&parameter) || page.contains(&format!("`{parameter}`"));
            assert!(told, "docs/http/{name} does not name the parameter `{parameter}` of `{what}`");
        }
        let line = first
            .lines()
            .find(|line| line.contains(&format!("`{path}`")) && line.contains(&format!("({name})")));
        assert!(line.is_some(), "the routes of docs/http/README.md need `{path}` in the row of {name}");
        known.insert(what);
    }
    for (name, page) in &pages {
        for (row, _) in named(page) {
            assert!(known.contains(row), "docs/http/{name}: `{row}` is no operation");
        }
    }
}

#[test]
fn operations_are_read_from_rows_alone() {
    let page = "`GET /a`\n| `GET /b?x=&y=1\\|2` `{\"z\"}`, `POST /c`, `x` | `GET /d` |\n| `GET` | |\n";
    assert_eq!(named(page), [("GET /b", "x=&y=1\\|2"), ("POST /c", "")]);
}
