//! Which crate may use which: the column "may use" of the table in ARCHITECTURE.md.
//!
//! The purpose of a crate is what it may not use, so this table is the architecture. A change here is a decision; its
//! commit must say so. `edge_rules.rs` compares it with what cargo reports, and `map.rs` with ARCHITECTURE.md.
//!
//! Not here: dev-dependencies. A test may use whatever its crate links, directly or through others, and the test kit.

use Outside::{Any, Never, Only};

/// One crate: the crates of this workspace and the outside packages that it may use.
pub(super) struct Edges {
    pub(super) name: &'static str,
    pub(super) inside: &'static [&'static str],
    pub(super) outside: Outside,
}

pub(super) enum Outside {
    Any,
    /// Only these, in the manifest.
    Only(&'static [&'static str]),
    /// None of these, not even through another package.
    Never(&'static [&'static str]),
}

/// The crate that may only be a dev-dependency, of any other.
pub(super) const TESTKIT: &str = "tally-testkit";

#[rustfmt::skip]
pub(super) const EDGES: &[Edges] = &[
    Edges { name: "tally-rules", inside: &[], outside: Only(&[]) },
    Edges { name: "tally-index", inside: &[], outside: Only(&["hashbrown", "foldhash"]) },
    Edges { name: "tally-lanes", inside: &[], outside: Only(&["foldhash"]) },
    Edges { name: "tally-memory", inside: &[], outside: Only(&["libmimalloc-sys", "mimalloc"]) },
    Edges { name: "tally-disk", inside: &[], outside: Only(&[]) },
    Edges { name: "tally-tls", inside: &[], outside: Only(&["tokio", "tokio-rustls", "webpki-roots"]) },
    Edges { name: "tally-traces", inside: &["tally-tls"], outside: Never(&["rusqlite", "redis", "tonic", "reqwest"]) },
    Edges { name: "tally-store", inside: &["tally-rules", "tally-disk", "tally-tls"], outside: Never(&["hyper"]) },
    Edges { name: "tally-ranking", inside: &["tally-rules", "tally-index", "tally-tls"], outside: Never(&["hyper", "rusqlite"]) },
    Edges { name: "tally-wire", inside: &["tally-rules"], outside: Never(&["tokio", "hyper", "rusqlite"]) },
    Edges { name: "tally-guide", inside: &[], outside: Only(&["pulldown-cmark", "serde_json"]) },
    Edges { name: "tally-service", inside: &["tally-rules", "tally-store", "tally-ranking", "tally-lanes", "tally-memory"], outside: Never(&["hyper"]) },
    Edges { name: "tally-server", inside: &["tally-guide", "tally-memory", "tally-rules", "tally-service", "tally-tls", "tally-traces", "tally-wire"], outside: Any },
    Edges { name: "tally-load", inside: &["tally-wire"], outside: Never(&["rusqlite"]) },
    Edges { name: "tally-bench", inside: &["tally-rules", "tally-index", "tally-lanes", "tally-memory", "tally-store", "tally-ranking", "tally-service", "tally-wire", "tally-load"], outside: Any },
    Edges { name: TESTKIT, inside: &["tally-rules", "tally-disk", "tally-wire"], outside: Any },
    Edges { name: "tally", inside: &["tally-rules", "tally-index", "tally-lanes", "tally-memory", "tally-store", "tally-ranking", "tally-service", "tally-traces", "tally-wire", "tally-server", "tally-load"], outside: Any },
    Edges { name: "xtask", inside: &[], outside: Only(&["anyhow", "serde_json"]) },
];

/// Packages from outside that only these crates may name in their manifests.
#[rustfmt::skip]
pub(super) const HOLDERS: &[(&str, &[&str])] = &[
    ("anyhow", &["tally", "xtask"]),                // libraries have named errors, so that callers can tell them apart
    ("clap", &["tally", "tally-bench"]),             // the command lines
    ("hyper", &["tally-server", "tally-traces"]),   // the HTTP listener and requests to webhooks; the span exporter
    ("mysql_async", &["tally-store", "tally-bench"]), // as rusqlite
    ("opentelemetry-proto", &["tally-traces"]),     // the span exporter; other crates use its types
    ("redis", &["tally-ranking"]),                  // rankings in Redis; other crates use the protocol of tally-wire
    ("rusqlite", &["tally-store", "tally-bench", "tally-testkit"]),  // the store; the baselines of the benchmarks; the simulated disk is a VFS of SQLite
];
