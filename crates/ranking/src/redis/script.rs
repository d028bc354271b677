//! The scripts that run inside Redis. Each is a file of its own, so that it can be read and tested alone.
//!
//! Those of orders know one rule, that the newer version wins; what a rank or a page is stays in `rules` and `read`. Those
//! of applications (`desk`) know that nothing is changed that is not as it was seen. They run by
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
    Watch,
    DeskBegin,
    DeskRead,
    DeskPage,
    DeskChange,
    DeskFreeze,
    DeskThaw,
    DeskRecall,
    DeskClear,
}

impl Script {
    /// In the order of their digests.
    pub(super) const ALL: [Self; 19] = [
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
        Self::Watch,
        Self::DeskBegin,
        Self::DeskRead,
        Self::DeskPage,
        Self::DeskChange,
        Self::DeskFreeze,
        Self::DeskThaw,
        Self::DeskRecall,
        Self::DeskClear,
    ];

    /// What is sent.
    pub(super) fn text(self) -> String {
        let (order, desk) = (include_str!("scripts/common.lua"), include_str!("scripts/desk.lua"));
        let newer = include_str!("scripts/newer.lua");
        let (common, body) = match self {
            Self::DeskBegin => (desk, include_str!("scripts/desk_begin.lua")),
            Self::DeskRead => (desk, include_str!("scripts/desk_read.lua")),
            Self::DeskPage => (desk, include_str!("scripts/desk_page.lua")),
            Self::DeskChange => (desk, include_str!("scripts/desk_change.lua")),
            Self::DeskFreeze => (desk, include_str!("scripts/desk_freeze.lua")),
            Self::DeskThaw => (desk, include_str!("scripts/desk_thaw.lua")),
            Self::DeskRecall => ("", include_str!("scripts/desk_recall.lua")),
            Self::DeskClear => ("", include_str!("scripts/desk_clear.lua")),
            Self::Ask => (order, include_str!("scripts/ask.lua")),
            Self::Page => (order, include_str!("scripts/page.lua")),
            Self::Probe => (order, include_str!("scripts/probe.lua")),
            Self::Scan => (order, include_str!("scripts/scan.lua")),
            Self::Publish => (order, include_str!("scripts/publish.lua")),
            Self::Bulk => (order, include_str!("scripts/bulk.lua")),
            Self::Begin => (order, include_str!("scripts/begin.lua")),
            Self::Finish => (order, include_str!("scripts/finish.lua")),
            Self::Purge => (order, include_str!("scripts/purge.lua")),
            Self::Forget => (order, include_str!("scripts/forget.lua")),
            Self::Watch => (order, include_str!("scripts/watch.lua")),
        };
        let newer = if matches!(self, Self::Publish | Self::Bulk | Self::Purge) { newer } else { "" };
        let watched = if self.is_watched() { include_str!("scripts/watched.lua") } else { "" };
        format!("{common}{watched}{newer}{body}")
    }

    /// Whether it has the keys of those who watch, behind the others.
    pub(super) fn is_watched(self) -> bool {
        matches!(self, Self::Publish | Self::Bulk | Self::Watch)
    }
}
