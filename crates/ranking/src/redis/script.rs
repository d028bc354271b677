//! The scripts that run inside Redis. Each is a file of its own, so that it can be read and tested alone.
//!
//! They know one rule, that the newer version wins; what a rank or a page is stays in `rules` and `read`. They run by
//! their digest, which a server tells when they are loaded, once per connection.

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Ask,
    Page,
    Probe,
    Scan,
    Publish,
    Bulk,
    Begin,
    Finish,
    Purge,
    Forget,
}

impl Script {
    /// In the order of their digests.
    pub(super) const ALL: [Self; 10] = [
        Self::Ask,
        Self::Page,
        Self::Probe,
        Self::Scan,
        Self::Publish,
        Self::Bulk,
        Self::Begin,
        Self::Finish,
        Self::Purge,
        Self::Forget,
    ];

    /// What is sent.
    pub(super) fn text(self) -> String {
        let common = include_str!("scripts/common.lua");
        let newer = include_str!("scripts/newer.lua");
        let body = match self {
            Self::Ask => include_str!("scripts/ask.lua"),
            Self::Page => include_str!("scripts/page.lua"),
            Self::Probe => include_str!("scripts/probe.lua"),
            Self::Scan => include_str!("scripts/scan.lua"),
            Self::Publish => include_str!("scripts/publish.lua"),
            Self::Bulk => include_str!("scripts/bulk.lua"),
            Self::Begin => include_str!("scripts/begin.lua"),
            Self::Finish => include_str!("scripts/finish.lua"),
            Self::Purge => include_str!("scripts/purge.lua"),
            Self::Forget => include_str!("scripts/forget.lua"),
        };
        let newer = if matches!(self, Self::Publish | Self::Bulk | Self::Purge) { newer } else { "" };
        format!("{common}{newer}{body}")
    }
}
