//! Why a use case has no result: a rejection or a fault.

use crate::{stages, traces};
use tally_ranking::RankingError;
use tally_rules::Rejection;
use tally_store::{CorruptRow, StoreError, WindowKey};
use tokio::runtime::Handle;

/// A request without a result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// A rejection by a rule.
    #[error("{}", .0.detail())]
    Rejected(Rejection),
    /// Something is at fault, not the request.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The fault, by what the caller can do about it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// A queue is full: nothing was done, try again later.
    #[error("too much is waiting already")]
    Overloaded,
    /// The service is shutting down: nothing was done, retry on another server or later.
    #[error("the service is shutting down")]
    Draining,
    /// The store cannot be used now: nothing was done, try again later.
    #[error("the store is unavailable: {0}")]
    StoreUnavailable(String),
    /// Other servers change the same rows too often: nothing was done, try again.
    #[error("other requests changed the same rows each time: {0}")]
    Contention(String),
    /// A part of the store is unavailable: nothing was done, try again later; the other parts work.
    #[error("{shard} of the store is unavailable: {why}")]
    ShardUnavailable {
        /// The number of the shard, from 1.
        shard: String,
        /// The cause.
        why: String,
    },
    /// Rows of these deleted periods are not purged yet: nothing was done, try again later.
    #[error("rows of a period that was forgotten are still being deleted")]
    Purging(Vec<WindowKey>),
    /// A period with prizes is over and not closed yet, because the clock is in doubt or another server closes it: nothing
    /// was done, try again later.
    #[error("a period with prizes is over and not closed yet, and its prizes come first")]
    NotClosed,
    /// The Redis that has a contest's applications cannot be used now: nothing was done, try again later.
    #[error("applications are unavailable: {0}")]
    ApplicationsUnavailable(String),
    /// Ranks are not exact now: try again later.
    #[error("ranks are unavailable now: {0}")]
    RanksUnavailable(String),
    /// Redis rejects this server: an operator must fix that before ranks are available.
    #[error("ranks are unavailable: {0}")]
    RanksRefused(String),
    /// It is unknown whether the change was made; a retry with the same idempotency key returns its outcome.
    #[error("the store was lost while it committed: {0}")]
    OutcomeUnknown(String),
    /// A row that the request needs is corrupt: nothing was done; other requests are done.
    #[error("damaged: {0}")]
    Damaged(Box<CorruptRow>),
    /// A file of the archived ledger, or of a checkpoint, cannot be used: nothing was done; requests that do not need it can succeed.
    #[error("the file `{file}` cannot be used: {what}")]
    Archive {
        /// The name of the file.
        file: String,
        /// Why.
        what: String,
    },
    /// A bug or a corrupt file: nothing the caller can do.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// The fault of a request that is done in part: a fault that says that nothing was done would be wrong.
    pub(crate) fn after_a_window(self) -> Self {
        match self {
            Self::Fault(fault @ (Fault::OutcomeUnknown(_) | Fault::Damaged(_) | Fault::Broken(_))) => {
                Self::Fault(fault)
            }
            Self::Fault(fault) => {
                Self::Fault(Fault::OutcomeUnknown(format!("a part of it is done; then: {fault}")))
            }
            Self::Rejected(rejection) => Self::Rejected(rejection),
        }
    }

    /// Its fault. A rejection of internal work is a defect of the server.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Self::Fault(fault) => fault,
            Self::Rejected(rejection) => Fault::Broken(rejection.detail()),
        }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(why) => Self::Contention(why),
            StoreError::Unavailable(why) | StoreError::NoAccess(why) | StoreError::Locked(why) => {
                Self::StoreUnavailable(why)
            }
            StoreError::ShardUnavailable { shard, why, .. } => Self::ShardUnavailable { shard, why },
            StoreError::InDoubt { why, .. } => Self::OutcomeUnknown(why),
            StoreError::Partly(_) => Self::OutcomeUnknown(error.to_string()),
            StoreError::CorruptRow(row) => Self::Damaged(row),
            StoreError::Archive { file, what } => Self::Archive { file, what },
            StoreError::Row(_)
            | StoreError::Corrupt(_)
            | StoreError::Layout(_)
            | StoreError::Skewed(_)
            | StoreError::Replication(_)
            | StoreError::TooNew { .. }
            | StoreError::TooOld { .. }
            | StoreError::NotOurs(_) => Self::Broken(error.to_string()),
        }
    }
}

impl From<RankingError> for Fault {
    fn from(error: RankingError) -> Self {
        match error {
            RankingError::Refused(_) | RankingError::Address(_) => Self::RanksRefused(error.to_string()),
            _ => Self::RanksUnavailable(error.to_string()),
        }
    }
}

impl From<RankingError> for Failure {
    fn from(error: RankingError) -> Self {
        Self::Fault(error.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// What the lane does next, by the kind of the store's fault.
pub(crate) fn in_lane(error: StoreError) -> tally_lanes::BatchFailure<Fault> {
    use tally_lanes::BatchFailure;
    match error {
        StoreError::Conflict(_) => BatchFailure::Retry(error.into()),
        StoreError::Row(_) | StoreError::CorruptRow(_) | StoreError::Archive { .. } => {
            BatchFailure::PoisonRequest(error.into())
        }
        StoreError::InDoubt { .. } => BatchFailure::Unknown(error.into()),
        // Other requests of the batch may be possible.
        StoreError::ShardUnavailable { alone: false, .. } => BatchFailure::PoisonRequest(error.into()),
        StoreError::ShardUnavailable { .. } | StoreError::Partly(_) => BatchFailure::Piece(error.into()),
        StoreError::Unavailable(_)
        | StoreError::NoAccess(_)
        | StoreError::Corrupt(_)
        | StoreError::Layout(_)
        | StoreError::Locked(_)
        | StoreError::Skewed(_)
        | StoreError::Replication(_)
        | StoreError::TooNew { .. }
        | StoreError::TooOld { .. }
        | StoreError::NotOurs(_) => BatchFailure::Unavailable(error.into()),
    }
}

/// Runs work that blocks on the store outside of the threads that serve connections. A caller without a runtime has none of
/// those.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let sink = traces::current_sink();
    if Handle::try_current().is_err() {
        return traces::with_sink_blocking(sink, work);
    }
    let measured = move || stages::measure_blocking(|| traces::with_sink_blocking(sink, work));
    match tokio::task::spawn_blocking(measured).await {
        Ok((done, spent)) => {
            stages::add(spent);
            done
        }
        Err(error) => Err(Fault::Broken(error.to_string()).into()),
    }
}

/// The fault of a whole list: that of its first row, if every row has one.
pub fn common_fault<T>(results: &[Result<T, Failure>]) -> Option<Fault> {
    let fault = |one: &Result<T, Failure>| match one {
        Err(Failure::Fault(fault)) => Some(fault.clone()),
        Ok(_) | Err(Failure::Rejected(_)) => None,
    };
    let first = results.first().and_then(fault)?;
    results.iter().all(|one| fault(one).is_some()).then_some(first)
}
