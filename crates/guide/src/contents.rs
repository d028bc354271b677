//! The table of contents: which pages the site has, and in which order.
//!
//! Each page is compiled in as it is in the repository. A test compares the table with the folder `docs`. Not here: pages about
//! decisions, which are for people with the source at hand.

/// One page of the repository.
pub(crate) struct GuidePage {
    /// From the root of the repository.
    pub(crate) path: &'static str,
    pub(crate) source: &'static str,
}

/// The pages below one heading of the table of contents.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) pages: &'static [GuidePage],
}

macro_rules! section {
    ($title:literal: $($path:literal)+) => {
        Section {
            title: $title,
            pages: &[$(GuidePage { path: $path, source: include_str!(concat!("../../../", $path)) }),+],
        }
    };
}

pub(crate) const SECTIONS: &[Section] = &[
    section!("Start": "docs/README.md" "docs/tutorial.md" "docs/glossary.md" "docs/faq.md"),
    section!("How to":
        "docs/how-to/README.md"
        "docs/how-to/friends.md"
        "docs/how-to/names.md"
        "docs/how-to/ties.md"
        "docs/how-to/seasons.md"
        "docs/how-to/many-scores.md"
        "docs/how-to/sign-in.md"
        "docs/how-to/money.md"
        "docs/how-to/shop.md"
        "docs/how-to/contest.md"
        "docs/how-to/series.md"
        "docs/how-to/support.md"
        "docs/how-to/cheaters.md"
        "docs/how-to/take-back.md"
        "docs/how-to/owed.md"
        "docs/how-to/erase.md"
        "docs/how-to/keys.md"
        "docs/how-to/coming-from.md"
    ),
    section!("Packages":
        "clients/README.md"
        "clients/typescript/README.md"
        "clients/python/README.md"
        "clients/csharp/README.md"
    ),
    section!("Concepts":
        "docs/concepts.md"
        "docs/contests.md"
        "docs/events.md"
        "docs/webhooks.md"
        "docs/console.md"
        "docs/assumptions.md"
    ),
    section!("HTTP":
        "docs/http/README.md"
        "docs/http/leaderboards.md"
        "docs/http/scores.md"
        "docs/http/players.md"
        "docs/http/members.md"
        "docs/http/compatibility.md"
        "docs/http/wallets.md"
        "docs/http/ledger.md"
        "docs/http/contests.md"
        "docs/http/events.md"
        "docs/http/webhooks.md"
        "docs/http/imports.md"
        "docs/http/keys.md"
        "docs/http/service.md"
    ),
    section!("More reference": "docs/redis.md" "docs/tally.toml" "docs/metrics.md" "docs/traces.md"),
    section!("Deployment":
        "docs/deploy/one-file.md"
        "docs/deploy/one-database.md"
        "docs/deploy/two-machines.md"
        "docs/deploy/replication.md"
        "docs/deploy/shards.md"
        "docs/deploy/spider.md"
        "docs/deploy/cluster.md"
        "docs/deploy/billion.md"
    ),
    section!("Operation":
        "docs/operate/README.md"
        "docs/operate/install.md"
        "docs/operate/size.md"
        "docs/operate/alerts.md"
        "docs/operate/another-store.md"
        "docs/operate/backup.md"
        "docs/operate/failures.md"
        "docs/operate/ledger-archives.md"
        "docs/operate/logs.md"
        "docs/operate/memory.md"
        "docs/operate/personal-data.md"
        "docs/operate/rows.md"
        "docs/operate/secret.md"
        "docs/operate/security.md"
        "docs/operate/slow-requests.md"
        "docs/operate/starts-and-ends.md"
        "docs/operate/upgrades.md"
    ),
    section!("How it is made": "docs/map.md" "docs/bench.md"),
];
