//! Texts of clients: the properties of `body.rs` on random texts, and on the corpus of the fuzzer.

mod body;

use proptest::prelude::*;
use std::path::Path;
use tally_wire::host;

/// Every seed of a target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let all: Vec<_> = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(!all.is_empty(), "{target} has no seeds");
    all
}

#[test]
fn what_fuzzing_has_kept() {
    corpus("bodies").iter().for_each(|seed| body::bodies(seed));
    corpus("cursors").iter().for_each(|seed| body::cursors(seed));
    corpus("queries").iter().for_each(|seed| body::queries(seed));
    corpus("hosts").iter().for_each(|seed| body::hosts(seed));
}

/// JSON with names that operations know.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,12}".prop_map(Into::into),
        "[0-9]{1,25}".prop_map(Into::into),
    ];
    let name = prop_oneof![
        Just("player"),
        Just("score"),
        Just("amount"),
        Just("to"),
        Just("from"),
        Just("periods"),
        Just("role"),
        Just("login_id"),
        Just("phone_number"),
        Just("pin"),
        Just("template"),
        Just("fee"),
        Just("prizes"),
        Just("at"),
        Just("id"),
        Just("title"),
        Just("expires_at"),
        Just("line"),
        Just("board"),
        Just("x"),
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((name.clone(), inner), 0..8).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_by_each_operation(value in value()) {
        body::bodies(value.to_string().as_bytes());
    }

    #[test]
    fn any_text_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]a-z0-9:.@%&=+_-]{0,40}") {
        for bytes in [&bytes[..], text.as_bytes()] {
            body::cursors(bytes);
            body::queries(bytes);
            body::hosts(bytes);
        }
    }
}

#[test]
fn hosts_have_a_name_or_none() {
    for (text, name) in [
        ("localhost", "localhost"),
        ("localhost:8420", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::1]:8420", "[::1]"),
        ("tally.example", "tally.example"),
    ] {
        assert_eq!(host::name(text), Some(name), "{text}");
    }
    for text in [
        "",
        ":80",
        "a:",
        "a:b",
        "a:80:80",
        "a:65536",
        "a:+80",
        "a@b",
        "[::1",
        "::1",
        "[::1].evil",
        "[::1]x:80",
        "[a]",
    ] {
        assert_eq!(host::name(text), None, "{text}");
    }
}
