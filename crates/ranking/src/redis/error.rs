//! Why an order, or the applications of a contest, in Redis cannot be asked or changed.

/// What a caller can tell apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RankingError {
    /// It cannot be reached, did not answer in time, or is between two masters. It is tried again by whoever asks next.
    #[error("Redis is unavailable: {0}")]
    Away(String),
    /// It went away with a change under way, which may have been made.
    #[error("Redis was lost while it changed something: {0}")]
    Unknown(String),
    /// What was loaded is not there, or not all of it: it has to be loaded again.
    #[error("Redis has lost its data")]
    Lost,
    /// Somebody is loading it.
    #[error("the ranking is loading")]
    Loading,
    /// Another load of the same part began after this one.
    #[error("another load of this part began meanwhile")]
    Superseded,
    /// The address is none.
    #[error("{0}")]
    Address(String),
    /// Whoever answers there is not believed to be it: its certificate, or no TLS at all. It is tried again by whoever asks
    /// next.
    #[error("Redis is not trusted: {0}")]
    Untrusted(String),
    /// It refused, or answered what we do not understand.
    #[error("Redis answered: {0}")]
    Refused(String),
}
