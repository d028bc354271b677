//! The scripts that run inside Redis. Each is a file of its own, so that it can be read and tested alone.
//!
//! Scripts of rankings know one rule: the newer version wins. Ranks and pages are computed in `rules` and `reads`.
//! Scripts of applications (`desk`) change nothing that is not as the caller read it. All run by their digest, which a
//! server returns when they are loaded, once per connection.

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    PartitionQuery,
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
        Self::PartitionQuery,
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

    /// The source text.
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
            Self::PartitionQuery => (order, include_str!("scripts/ask.lua")),
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

    /// Whether it takes the keys of watches, after the others.
    pub(super) fn is_watched(self) -> bool {
        matches!(self, Self::Publish | Self::Bulk | Self::Watch)
    }
}
