//! The audit log: one row for each administrative act, stored with the act.
//!
//! Transfers and holds have their actor in their own rows, so the log has those of administrators only. Not here: who may act.

use crate::actor::Origin;
use crate::instant::Micros;
use crate::ledger::Uuid;
use crate::named;
use std::sync::Arc;

named! {
    /// An administrative act.
    pub enum AuditAction { /// An API key was made.
        KeyCreated = "key.created", /// An API key was revoked.
        KeyRevoked = "key.revoked", /// A leaderboard was made.
        BoardCreated = "leaderboard.created", /// Its definition was changed.
        BoardChanged = "leaderboard.changed", /// It was deleted.
        BoardDeleted = "leaderboard.deleted", /// A player was banned on a leaderboard.
        PlayerBanned = "player.banned", /// A ban was lifted.
        PlayerRestored = "player.restored", /// A player was erased everywhere.
        PlayerErased = "player.erased", /// A member was changed.
        MemberChanged = "member.changed", /// It was closed.
        MemberClosed = "member.closed", /// A contest was made.
        ContestCreated = "contest.created", /// Its definition was changed.
        ContestChanged = "contest.changed", /// It was opened.
        ContestOpened = "contest.opened", /// Players were accepted.
        ContestAccepted = "contest.accepted", /// Players were rejected.
        ContestRejected = "contest.rejected", /// It was started.
        ContestStarted = "contest.started", /// It was finished.
        ContestFinished = "contest.finished", /// Its prizes were determined.
        ContestSettled = "contest.settled", /// It was cancelled.
        ContestCancelled = "contest.cancelled", /// A series of contests was made.
        SeriesCreated = "series.created", /// It was changed.
        SeriesChanged = "series.changed", /// It was deleted.
        SeriesDeleted = "series.deleted", /// The store was migrated, or its records were moved to other databases.
        StoreMigrated = "store.migrated", /// Its journal was repaired.
        StoreRepaired = "store.repaired", /// It was restored from a copy.
        StoreRestored = "store.restored", /// A score was corrected in the review of its contest.
        ScoreCorrected = "score.corrected", /// A webhook was made.
        WebhookCreated = "webhook.created", /// It was changed, disabled or enabled, or got a new secret.
        WebhookChanged = "webhook.changed", /// It was deleted.
        WebhookDeleted = "webhook.deleted", /// A member was erased.
        MemberErased = "member.erased", /// The data of a member were exported.
        MemberExported = "member.exported", /// Another secret makes from then on.
        SecretRotated = "secret.rotated", /// The secret before it was dropped.
        SecretDropped = "secret.dropped", /// A lost secret was replaced.
        SecretReset = "secret.reset", /// Months of the ledger were archived.
        LedgerArchived = "ledger.archived", /// Unpaid prizes of a closed period were paid.
        PrizesRepaid = "prizes.repaid", /// Unpaid prizes or fees of a contest were paid.
        ContestRepaid = "contest.repaid", /// An administrator made a member.
        MemberCreated = "member.created", /// It deposited money.
        MoneyDeposited = "money.deposited", /// It withdrew money.
        MoneyWithdrawn = "money.withdrawn", /// It moved money from one member to another.
        MoneyTransferred = "money.transferred", /// It reversed a transfer.
        MoneyReversed = "money.reversed", /// A player was removed from a leaderboard.
        PlayerRemoved = "player.removed", /// A prize or a fee was paid to a player after an earlier try had failed.
        PlayerPaid = "player.paid" }
}

impl AuditAction {
    /// The number that is stored.
    pub fn number(self) -> u8 {
        match self {
            Self::KeyCreated => 1,
            Self::KeyRevoked => 2,
            Self::BoardCreated => 10,
            Self::BoardChanged => 11,
            Self::BoardDeleted => 12,
            Self::PlayerBanned => 20,
            Self::PlayerRestored => 21,
            Self::PlayerErased => 22,
            Self::MemberChanged => 30,
            Self::MemberClosed => 31,
            Self::ContestCreated => 40,
            Self::ContestChanged => 41,
            Self::ContestOpened => 42,
            Self::ContestAccepted => 43,
            Self::ContestRejected => 44,
            Self::ContestStarted => 45,
            Self::ContestFinished => 46,
            Self::ContestSettled => 47,
            Self::ContestCancelled => 48,
            Self::SeriesCreated => 50,
            Self::SeriesChanged => 51,
            Self::SeriesDeleted => 52,
            Self::StoreMigrated => 60,
            Self::StoreRepaired => 61,
            Self::StoreRestored => 62,
            Self::ScoreCorrected => 23,
            Self::WebhookCreated => 70,
            Self::WebhookChanged => 71,
            Self::WebhookDeleted => 72,
            Self::MemberErased => 32,
            Self::MemberExported => 33,
            Self::SecretRotated => 63,
            Self::SecretDropped => 64,
            Self::SecretReset => 65,
            Self::LedgerArchived => 80,
            Self::PrizesRepaid => 13,
            Self::ContestRepaid => 49,
            Self::MemberCreated => 34,
            Self::MoneyDeposited => 90,
            Self::MoneyWithdrawn => 91,
            Self::MoneyTransferred => 92,
            Self::MoneyReversed => 93,
            Self::PlayerRemoved => 24,
            Self::PlayerPaid => 25,
        }
    }

    /// Whether the subject of its rows is a player.
    pub fn is_of_player(self) -> bool {
        matches!(
            self,
            Self::PlayerBanned
                | Self::PlayerRestored
                | Self::PlayerErased
                | Self::PlayerRemoved
                | Self::PlayerPaid
                | Self::ScoreCorrected
        )
    }

    /// Whether the details of its rows name the members on both sides, by their ids.
    pub fn is_of_money(self) -> bool {
        matches!(
            self,
            Self::MoneyDeposited | Self::MoneyWithdrawn | Self::MoneyTransferred | Self::MoneyReversed
        )
    }

    /// The action of a stored number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.number() == number)
    }
}

/// The id of a row: the instant at which the server took the request, and random bits. Rows are listed in its order. The row of one
/// payment of an act has the id of its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditId(pub Uuid);

/// The subject of acts on the whole store.
pub const STORE: &str = "store";

/// A row of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The actor, and the reason that the caller gave.
    pub origin: Origin,
    /// The act.
    pub action: AuditAction,
    /// The name of what it acted on: a key, a leaderboard, a player, a member, a transfer, a contest or a series; [`STORE`] of the store.
    pub subject: Arc<str>,
    /// More about it, for people.
    pub detail: Option<Arc<str>>,
}

impl AuditEntry {
    /// Whether it is an act with money whose detail names this member.
    pub fn names_side(&self, member: &str) -> bool {
        let has_members = self.action.is_of_money() || self.action == AuditAction::PlayerPaid;
        has_members && self.detail.as_ref().is_some_and(|detail| detail.contains(member))
    }
}

/// The origin and the id of an act that is about to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// The actor, and the reason that the caller gave.
    pub origin: Origin,
    /// The id of its row; rows of its payments have those of the transfers.
    pub id: AuditId,
}

impl Audited {
    /// An act of now; `node` is random.
    pub fn new(origin: Origin, now: Micros, node: u64) -> Self {
        Self { origin, id: AuditId(Uuid::new(now, node)) }
    }

    /// The row of the act.
    pub fn row(
        &self,
        action: AuditAction,
        subject: impl Into<Arc<str>>,
        detail: Option<Arc<str>>,
    ) -> (AuditId, AuditEntry) {
        (self.id, AuditEntry { origin: self.origin.clone(), action, subject: subject.into(), detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_numbers_are_pinned() {
        let numbers: Vec<u8> = AuditAction::ALL.iter().map(|one| one.number()).collect();
        let wanted = [
            1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 40, 41, 42, 43, 44, 45, 46, 47, 48, 50, 51, 52, 60, 61, 62,
            23, 70, 71, 72, 32, 33, 63, 64, 65, 80, 13, 49, 34, 90, 91, 92, 93, 24, 25,
        ];
        assert_eq!(numbers, wanted);
        assert!(AuditAction::ALL.iter().all(|one| AuditAction::of_number(one.number()) == Some(*one)));
        assert_eq!(AuditAction::of_number(3), None);
    }
}
