//! Errors of rankings and contest applications in Redis.

/// The errors that callers distinguish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RankingError {
    /// Redis cannot be reached, did not answer in time, or is between two masters. The next request tries again.
    #[error("Redis is unavailable: {0}")]
    Unavailable(String),
    /// Redis became unavailable during a change. The outcome is in doubt.
    #[error("Redis was lost while it changed something: {0}")]
    Unknown(String),
    /// The loaded data is missing, at least in part: it must be loaded again.
    #[error("Redis has lost its data")]
    Lost,
    /// A server is loading it.
    #[error("the ranking is loading")]
    Loading,
    /// Another load of the same window began after this one.
    #[error("another load of this part began meanwhile")]
    Superseded,
    /// The address is invalid.
    #[error("{0}")]
    Address(String),
    /// The server is not authenticated: its certificate is wrong, or it does not use TLS. The next request tries again.
    #[error("Redis is not trusted: {0}")]
    Untrusted(String),
    /// Redis refused, or sent an answer that cannot be decoded.
    #[error("Redis answered: {0}")]
    Refused(String),
}
