//! The scripts that run inside Redis. Each is a file of its own, so that it can be read and tested alone.
//!
//! Scripts of rankings know one rule: the newer version wins. Ranks and pages are computed in `rules` and `reads`.
//! Scripts of applications change nothing that is not as the caller read it. All run by their digest, which a server
//! returns when they are loaded, once per connection.

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
    Claim,
    ApplicationsBegin,
    ApplicationsRead,
    ApplicationsPage,
    ApplicationsChange,
    ApplicationsFreeze,
    ApplicationsThaw,
    ApplicationsRecall,
    ApplicationsClear,
}

impl Script {
    /// In the order of their digests.
    pub(super) const ALL: [Self; 20] = [
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
        Self::Claim,
        Self::ApplicationsBegin,
        Self::ApplicationsRead,
        Self::ApplicationsPage,
        Self::ApplicationsChange,
        Self::ApplicationsFreeze,
        Self::ApplicationsThaw,
        Self::ApplicationsRecall,
        Self::ApplicationsClear,
    ];

    /// The source text.
    pub(super) fn text(self) -> String {
        let (rankings, applications) =
            (include_str!("scripts/common.lua"), include_str!("scripts/applications.lua"));
        let newer = include_str!("scripts/newer.lua");
        let (common, body) = match self {
            Self::ApplicationsBegin => (applications, include_str!("scripts/applications_begin.lua")),
            Self::ApplicationsRead => (applications, include_str!("scripts/applications_read.lua")),
            Self::ApplicationsPage => (applications, include_str!("scripts/applications_page.lua")),
            Self::ApplicationsChange => (applications, include_str!("scripts/applications_change.lua")),
            Self::ApplicationsFreeze => (applications, include_str!("scripts/applications_freeze.lua")),
            Self::ApplicationsThaw => (applications, include_str!("scripts/applications_thaw.lua")),
            Self::ApplicationsRecall => ("", include_str!("scripts/applications_recall.lua")),
            Self::Claim => ("", include_str!("scripts/claim.lua")),
            Self::ApplicationsClear => ("", include_str!("scripts/applications_clear.lua")),
            Self::PartitionQuery => (rankings, include_str!("scripts/partition_query.lua")),
            Self::Page => (rankings, include_str!("scripts/page.lua")),
            Self::Probe => (rankings, include_str!("scripts/probe.lua")),
            Self::Scan => (rankings, include_str!("scripts/scan.lua")),
            Self::Publish => (rankings, include_str!("scripts/publish.lua")),
            Self::Bulk => (rankings, include_str!("scripts/bulk.lua")),
            Self::Begin => (rankings, include_str!("scripts/begin.lua")),
            Self::Finish => (rankings, include_str!("scripts/finish.lua")),
            Self::Purge => (rankings, include_str!("scripts/purge.lua")),
            Self::Forget => (rankings, include_str!("scripts/forget.lua")),
            Self::Watch => (rankings, include_str!("scripts/watch.lua")),
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
