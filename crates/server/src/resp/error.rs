//! Errors in the form of Redis: a code, a space, a sentence.

use tally_rules::Rejection;
use tally_service::{Failure, Fault};

pub(super) const SYNTAX: &str = "ERR syntax error";
pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub(super) const NOT_A_FLOAT: &str = "ERR value is not a valid float";
pub(super) const NOT_A_RANGE: &str = "ERR min or max is not a float";
pub(super) const NOT_A_LEX_RANGE: &str = "ERR min or max not valid string range item";
pub(super) const NOT_A_SORTED_SET: &str =
    "ERR ranges of members need a sorted set: a leaderboard that ZADD has made, or one defined like it";
pub(super) const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";
/// For one reply, for all replies of a transaction, or for those of collected commands.
pub(super) const TOO_LARGE: &str = "ERR the replies would take more than 64 MiB: ask for them in pieces";
pub(super) const OUT_OF_RANGE: &str = "ERR value is out of range";
pub(super) const NAN: &str = "ERR resulting score is not a number (NaN)";
pub(super) const OVERFLOW: &str = "ERR increment would leave the range of the leaderboard's scores";
pub(super) const NO_AUTH: &str = "NOAUTH Authentication required.";
pub(super) const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";
pub(super) const UNSURE: &str = "LOADING the store does not answer, or another server has taken it over";
pub(super) const BEHIND: &str = "LOADING this server follows another one, which does not answer";
pub(super) const DRAINING: &str = "TRYAGAIN the server is shutting down";
/// No server leads for longer than a takeover lasts, or this one cannot reach it.
pub(super) const NO_LEADER: &str = "TRYAGAIN the leader cannot be reached now; nothing was done";
pub(super) const LEADER_LOST: &str =
    "TRYAGAIN the leader was lost before it answered; it is not known whether the changes were made";
pub(super) const BUSY: &str = "BUSY too many writes are waiting, try again later";
pub(super) const LOST: &str =
    "LOADING the database has lost commits that it had acknowledged: everything is read anew";
pub(super) const LOADING: &str = "LOADING Redis is loading the dataset in memory";
pub(super) const READ_ONLY: &str = "READONLY a period of a leaderboard can only be read";
/// The archive of a closed period was rewritten during the read.
pub(super) const AGAIN: &str = "TRYAGAIN the archive of the period is being rewritten";
/// Never sent: the command runs again on a blocking thread.
pub(super) const WAITS: &str = "ERR internal error: this read waits for the store";
pub(super) const NO_BOARD: &str = "ERR no such leaderboard";
pub(super) const EXEC_ABORT: &str = "EXECABORT Transaction discarded because of previous errors.";
pub(super) const NOT_IN_MULTI: &str = "ERR this command cannot be part of a transaction";
pub(super) const TOO_MANY_IN_MULTI: &str =
    "ERR more members than one transaction may remove; remove them outside of MULTI";
/// The error of Redis Cluster for keys, with the reason.
pub(super) const CROSS_SLOT: &str = "CROSSSLOT Players in transaction are in several databases of the store, or are chosen \
     by rank; nothing was done";
pub(super) const DENIED: &str = "DENIED tally is running in protected mode because no API key exists. In this mode \
     connections are only accepted on Unix sockets, and from the loopback interface with --demo or keys.required = false. Make a key on the host itself \
     with: tally keys create --role server";

/// An error, formatted when it is needed.
pub(super) type ErrorReply = std::borrow::Cow<'static, str>;

/// The result of a command.
pub(super) type Result<T = ()> = std::result::Result<T, ErrorReply>;

pub(super) fn arity(name: &str) -> ErrorReply {
    format!("ERR wrong number of arguments for '{name}' command").into()
}

/// The error of a key whose period cannot be one, with at most 64 characters of it.
pub(super) fn invalid_period(period: &str) -> ErrorReply {
    let shown: String = period.chars().take(64).filter(|one| !one.is_control()).collect();
    format!("ERR invalid period '{shown}': send a rule such as weekly, weekly:previous or weekly:2026-11-16")
        .into()
}

/// The error of an invalid `EXEC`.
pub(super) fn exec_abort(error: &ErrorReply) -> ErrorReply {
    let why = error.split_once(' ').map_or("", |(_, why)| why);
    format!("EXECABORT Transaction discarded because of: {why}").into()
}

/// In the form of Redis, with at most 128 bytes of the word.
pub(super) fn unknown_subcommand(command: &str, word: &[u8]) -> ErrorReply {
    let word = String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    let command = command.to_ascii_uppercase();
    format!("ERR unknown subcommand '{word}'. Try {command} HELP.").into()
}

pub(super) fn no_permission(name: &str) -> ErrorReply {
    format!("NOPERM this key has no permissions to run the '{name}' command").into()
}

pub(super) fn of_rejection(rejection: &Rejection) -> ErrorReply {
    match rejection {
        Rejection::LeaderboardNotFound(_) => NO_BOARD.into(),
        Rejection::LeaderboardDamaged => format!("ERR {} {}", rejection.code(), rejection.detail()).into(),
        Rejection::DefinitionConflict(_)
        | Rejection::IdempotencyKeyReused
        | Rejection::IdempotencyInProgress
        | Rejection::InvalidDefinition(_)
        | Rejection::ReservedName
        | Rejection::TooManyBoards
        | Rejection::TooManyKeys
        | Rejection::TooManyWebhooks
        | Rejection::PeriodHasHistory(_)
        | Rejection::PeriodNotFound
        | Rejection::PeriodClosed(_)
        | Rejection::AtInFuture(_)
        | Rejection::ScoreOverflow(_)
        | Rejection::TooManyAtOnce(_)
        | Rejection::PlayerNotRanked
        | Rejection::PlayerNotFound
        | Rejection::KeyNotFound
        | Rejection::WebhookNotFound
        | Rejection::DeliveryNotFound
        | Rejection::DeliveryWaits
        | Rejection::LastAdminKey
        | Rejection::ImportRepeated { .. }
        | Rejection::ImportOutOfOrder(_)
        // Rejections of money, which RESP does not transfer.
        | Rejection::PinLocked { .. }
        | Rejection::InvalidPin
        | Rejection::InvalidAmount
        | Rejection::TransactionNotFound
        | Rejection::HoldNotFound
        | Rejection::HoldExpired
        | Rejection::HoldResolved(..)
        | Rejection::ExceedsHold { .. }
        | Rejection::NotReversible
        | Rejection::ExceedsReversible { .. }
        | Rejection::HoldExpiryInPast { .. }
        | Rejection::CreditExpiryInPast { .. }
        | Rejection::CurrencyMismatch { .. }
        | Rejection::NotTransferable(_)
        | Rejection::NotWithdrawable(_)
        | Rejection::SameWallet(_)
        | Rejection::MemberNotFound
        | Rejection::RecipientNotFound
        | Rejection::WalletNotFound(_)
        | Rejection::MemberClosed(_)
        | Rejection::LimitExceeded(_)
        | Rejection::MintCapReached(_)
        | Rejection::InsufficientFunds { .. }
        | Rejection::LinkedFailed { .. }
        | Rejection::LoginTaken(_)
        | Rejection::PhoneTaken(_)
        | Rejection::PlayerTaken(_)
        | Rejection::PlayerInContest(_)
        | Rejection::WalletNotEmpty(_)
        // Rejections of contests.
        | Rejection::ContestNotFound
        | Rejection::SeriesNotFound
        | Rejection::ContestExists(_)
        | Rejection::SeriesExists(_)
        | Rejection::Forbidden(_)
        | Rejection::ContestState(_)
        | Rejection::ContestFrozen { .. }
        | Rejection::InvalidContest(_)
        | Rejection::ContestTooLarge(_)
        | Rejection::ApplicationsLost
        | Rejection::AlreadyApplied(_)
        | Rejection::NoAttemptsLeft { .. }
        | Rejection::AlreadyRejected
        | Rejection::StaffCannotApply
        | Rejection::ContestFull(_)
        | Rejection::NotApplied
        | Rejection::PlayerWithoutWallet(_)
        | Rejection::InvalidApplications { .. }
        | Rejection::NotAMember { .. } => format!("ERR {} {}", rejection.code(), rejection.detail()).into(),
        Rejection::BoardInUse(_) => format!("READONLY {}", rejection.detail()).into(),
        Rejection::InvalidScore(why) => format!("ERR score {why}").into(),
        Rejection::InvalidSubscore(why) => format!("ERR subscore {why}").into(),
    }
}

/// The error of a fault: a later retry may succeed.
pub(super) fn of_fault(fault: &Fault) -> ErrorReply {
    match fault {
        Fault::Overloaded => BUSY.into(),
        Fault::Draining => DRAINING.into(),
        Fault::RanksUnavailable(_) | Fault::RanksRefused(_) => LOADING.into(),
        Fault::Purging(_) => {
            "TRYAGAIN rows of a period that was forgotten are still being deleted; nothing was done".into()
        }
        Fault::NotClosed => {
            "TRYAGAIN a period with prizes is over and not closed yet; nothing was done".into()
        }
        Fault::StoreUnavailable(_) => "TRYAGAIN the store cannot be used now; nothing was done".into(),
        Fault::Contention(_) => {
            "TRYAGAIN other requests changed the same rows at the same time; nothing was done, try again"
                .into()
        }
        Fault::ApplicationsUnavailable(_) => {
            "TRYAGAIN the applications are unavailable; nothing was done".into()
        }
        Fault::ShardUnavailable { shard, .. } => {
            format!("TRYAGAIN {shard} of the store cannot be used now; nothing was done").into()
        }
        Fault::OutcomeUnknown(_) => {
            "TRYAGAIN the store was lost while it committed; it is not known whether the change was made"
                .into()
        }
        Fault::Damaged(row) => {
            let table = row.table;
            format!("ERR damaged: a stored row that this command needs is damaged (table `{table}`); nothing was done")
                .into()
        }
        Fault::Archive { file, .. } => {
            format!("ERR `{file}` of the ledger's archive cannot be used; the log has more").into()
        }
        Fault::Broken(_) => "ERR internal error: this is a bug; the log has more".into(),
    }
}

pub(super) fn of_failure(failure: &Failure) -> ErrorReply {
    crate::faults::log(failure);
    match failure {
        Failure::Rejected(rejection) => of_rejection(rejection),
        Failure::Fault(fault) => of_fault(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TRYAGAIN` is what clients of Redis Cluster retry. The words of the database stay in the log.
    #[test]
    fn contention_is_to_be_tried_again_and_says_that_nothing_was_done() {
        let fault = Fault::Contention("Lock wait timeout exceeded; try restarting transaction".into());
        let words =
            "TRYAGAIN other requests changed the same rows at the same time; nothing was done, try again";
        assert_eq!(of_fault(&fault), words);
        assert_eq!(of_failure(&Failure::Fault(fault)), words);
    }
}
