//! The actions on contests that the ledger's lane does, and their replies.
//!
//! A transaction reads by key. So the caller reads the contest first and names what the action may touch. If the contest has
//! changed under its lock, the reply is [`ActionResult::Outdated`], nothing was done, and the caller reads again. Not here: what an
//! action does (`decide`).

use super::pay_again;
use crate::audit;
use crate::boards::Board;
use crate::failure::Failure;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::start::InvalidApplication;
use tally_rules::contest::{
    ActorKind, Application, ContestId, ContestPlayer, ContestRecord, ContestState, Payout, Status,
};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::MemberId;
use tally_rules::{Definition, Micros, Origin, PlayerId, Rejection};
use tally_store::{BoardNo, BoardRow};

/// About as many bytes of names are in the row of a decision. A decision concerns 1,000 players at most.
const NAMES_BYTES_MAX: usize = 150;

/// One action on one contest.
#[derive(Clone, Debug)]
pub struct ContestRequest {
    /// The contest.
    pub id: ContestId,
    /// The contest as it was read; `None` if one is made.
    pub observed: Option<Box<ContestRecord>>,
    /// The actor's role.
    pub by: ActorKind,
    /// The actor, and the id of the act in the audit log.
    pub audited: Audited,
    /// The instant of the action, if it is not now.
    pub at: Option<Micros>,
    /// The action itself.
    pub action: Action,
    /// Leaderboards whose scores depend on the change: no score of theirs is decided meanwhile.
    pub boards: Vec<Arc<Board>>,
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<IdempotencyKey>,
}

/// An application as it was read.
pub type ObservedApplication = (PlayerId, Option<Application>);

/// An action on a contest.
#[derive(Clone, Debug)]
pub enum Action {
    /// Makes the contest.
    Create {
        /// Its requested definition.
        spec: Box<ContestSpec>,
        /// The series that makes it.
        series: Option<ContestId>,
    },
    /// Changes its definition; if it runs, on these leaderboards.
    Patch(Box<ContestSpec>, Vec<(BoardNo, Definition)>),
    /// Takes applications, in this application store.
    Open(ApplicationLocation),
    /// A player applies, or joins if the contest runs.
    Apply {
        /// The player that applies.
        player: PlayerId,
        /// The member whose wallet pays a fee, if the contest is for members.
        member: Option<MemberId>,
        /// Accepts the application at once, if there is room and so many leaderboards may still be made. One that joins may make as many.
        accept: Option<u32>,
    },
    /// Players are accepted, or rejected.
    Decide {
        /// Players with their applications.
        rows: Vec<ObservedApplication>,
        /// Accepts them, if so many leaderboards may still be made; rejects them without a number.
        accept: Option<u32>,
    },
    /// Leaves the row of a decision on applications that are not in the store, before it is made there.
    NoteDecision {
        /// Whether players are accepted.
        accept: bool,
        /// The players, for people.
        detail: Arc<str>,
    },
    /// A player takes the application back.
    Withdraw(ObservedApplication),
    /// Makes members of the accepted players, in order of acceptance.
    Start(Vec<(PlayerId, Application)>),
    /// Ends playing on these leaderboards.
    Finish(Vec<(BoardNo, Definition)>),
    /// Cancels it; if it runs, on these leaderboards.
    Cancel(Vec<(BoardNo, Definition)>),
    /// Clears applications; the flag marks the last step.
    Clear(Vec<(PlayerId, Application)>, bool),
    /// Closes the review on these leaderboards.
    Settle(Vec<(BoardNo, Definition)>),
    /// Stores what is to be paid; from that number on, it is of the pool.
    Determine(Vec<Payout>, u32),
    /// Pays the next prizes, beginning with that number.
    Pay(u32, Vec<Payout>),
    /// Pays fees back to the next members; the flag marks the last step.
    Refund(Vec<(PlayerId, ContestPlayer)>, bool),
    /// Pays prizes or fees that were left unpaid.
    Repay(Vec<(u32, Payout)>),
    /// Notes a change of applications that are not in the store.
    External(ExternalChange),
}

/// A change of applications that are not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalChange {
    /// No earlier start that has read them counts any more.
    Thaw,
    /// They were lost when it was time to start.
    Lost,
    /// They were cleared.
    Cleared,
}

/// The reply to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestDone {
    /// The contest after the action.
    pub record: Box<ContestRecord>,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
    /// Whether its state has changed.
    pub state_changed: bool,
    /// What the reply has beside the contest.
    pub result: ActionResult,
}

/// What a reply has beside the contest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionResult {
    /// No more than the contest.
    Nothing,
    /// The contest has changed since it was read; nothing was done.
    Outdated,
    /// The application that was made.
    Applied(Application),
    /// The application that became a member at once, and the leaderboard that was made.
    Joined(Application, Option<BoardRow>),
    /// The outcome of each row of a decision on applications.
    Decided(Vec<Result<Status, Rejection>>),
    /// The outcome of each payment.
    Paid(Vec<Result<(), UnpaidReason>>),
    /// Players that did not become members, and the leaderboards that were made.
    Started(Vec<InvalidApplication>, Vec<BoardRow>),
}

fn of_decision(accept: bool) -> AuditAction {
    if accept { AuditAction::ContestAccepted } else { AuditAction::ContestRejected }
}

/// What the audit log says of a decision: how many players it concerns, and the first of them. `None` if it concerns none.
pub(super) fn detail_of<'a>(
    players: impl Iterator<Item = &'a PlayerId>,
    results: &[Result<Status, Rejection>],
) -> Option<Arc<str>> {
    let decided = players.zip(results).filter(|(_, result)| result.is_ok());
    let (mut names, mut named, mut count) = (String::new(), 0, 0);
    for (player, _) in decided {
        let fits = named == count && names.len() + player.as_str().len() <= NAMES_BYTES_MAX;
        if count == 0 || fits {
            names.push_str(if count == 0 { "" } else { ", " });
            names.push_str(player.as_str());
            named += 1;
        }
        count += 1;
    }
    let more = if named < count { ", …" } else { "" };
    let noun = if count == 1 { "player" } else { "players" };
    (count > 0).then(|| format!("{count} {noun}: {names}{more}").into())
}

impl Action {
    /// Whether scores depend on the change.
    pub(super) fn concerns_scores(&self) -> bool {
        matches!(self, Self::Patch(..) | Self::Finish(_) | Self::Settle(_) | Self::Cancel(_))
    }
}

impl ContestRequest {
    /// An action of the clock on a contest as it was read.
    pub(super) fn by_clock(
        id: &ContestId,
        observed: ContestRecord,
        action: Action,
        now: Micros,
    ) -> Result<Self, Failure> {
        let (id, observed, boards) = (id.clone(), Some(Box::new(observed)), Vec::new());
        let (by, audited) = (ActorKind::Clock, audit::begin(Origin::BACKGROUND, now)?);
        Ok(Self { id, observed, by, audited, at: None, action, boards, idempotency: None })
    }

    /// What the audit log says of the action. `advanced`: it has changed the state of the contest, closed its review, or opened it
    /// again with other applications. The bounded steps that follow an action are no acts of their own.
    pub(crate) fn audit_action(
        &self,
        result: &ActionResult,
        advanced: bool,
    ) -> Option<(AuditAction, Option<Arc<str>>)> {
        let action = match &self.action {
            Action::Create { series, .. } => {
                return Some((
                    AuditAction::ContestCreated,
                    series.as_ref().map(|series| series.as_str().into()),
                ));
            }
            Action::Decide { rows, accept } => {
                let ActionResult::Decided(results) = result else { return None };
                let detail = detail_of(rows.iter().map(|(player, _)| player), results)?;
                return Some((of_decision(accept.is_some()), Some(detail)));
            }
            Action::NoteDecision { accept, detail } => {
                return Some((of_decision(*accept), Some(Arc::clone(detail))));
            }
            Action::Apply { player, .. } => {
                let (ActionResult::Applied(Application { status: Status::Accepted, .. })
                | ActionResult::Joined(..)) = result
                else {
                    return None;
                };
                let detail = detail_of(std::iter::once(player), &[Ok(Status::Accepted)])?;
                return Some((of_decision(true), Some(detail)));
            }
            Action::Repay(_) => {
                // The server itself pays what an earlier release left unpaid.
                let ActionResult::Paid(became) = result else { return None };
                let detail = pay_again::detail_of(became).filter(|_| self.by != ActorKind::Clock)?;
                return Some((AuditAction::ContestRepaid, Some(detail.into())));
            }
            Action::Patch(..) => AuditAction::ContestChanged,
            _ if !advanced => return None,
            Action::Open(_) => AuditAction::ContestOpened,
            Action::Start(_) if matches!(result, ActionResult::Started(..)) => AuditAction::ContestStarted,
            // It lacked members.
            Action::Start(_) => AuditAction::ContestCancelled,
            Action::Finish(_) => AuditAction::ContestFinished,
            Action::Settle(_) => AuditAction::ContestSettled,
            Action::Cancel(_) => AuditAction::ContestCancelled,
            Action::Withdraw(_)
            | Action::Clear(..)
            | Action::Determine(..)
            | Action::Pay(..)
            | Action::Refund(..)
            | Action::External(_) => return None,
        };
        Some((action, None))
    }

    /// Whether no score may be decided meanwhile. With several servers the action is a change of the leaderboards instead, so a
    /// batch that was planned before it is planned again.
    pub(crate) fn excludes_scores(&self) -> bool {
        self.boards.iter().any(|board| !board.is_shared())
    }

    /// The division whose leaderboard it may make, for a player that joins.
    pub(crate) fn new_division(&self) -> Option<u32> {
        let observed = self.observed.as_deref().filter(|_| matches!(self.action, Action::Apply { .. }))?;
        Some(observed).filter(|observed| observed.state == ContestState::Running)?.new_division()
    }

    /// The fee, as it was read.
    pub(crate) fn fee(&self) -> Option<Fee> {
        self.observed.as_ref()?.contest.entry_fee
    }

    /// How many ids it may use.
    pub(crate) fn ids(&self) -> usize {
        match &self.action {
            Action::Create { .. } | Action::Determine(..) => 1,
            // A hold, and its capture by one that joins.
            Action::Apply { .. } => 2,
            Action::Start(rows) => rows.len(),
            Action::Pay(_, rows) => rows.len(),
            Action::Refund(rows, _) => rows.len(),
            Action::Repay(rows) => rows.len(),
            Action::Patch(..)
            | Action::Open(_)
            | Action::External(_)
            | Action::Decide { .. }
            | Action::NoteDecision { .. }
            | Action::Withdraw(_)
            | Action::Finish(_)
            | Action::Cancel(_)
            | Action::Clear(..)
            | Action::Settle(_) => 0,
        }
    }

    /// How many rows it reads or writes, about.
    pub(crate) fn rows(&self) -> usize {
        match &self.action {
            Action::Decide { rows, .. } => rows.len(),
            Action::Start(rows) | Action::Clear(rows, _) => rows.len(),
            Action::Determine(rows, _) | Action::Pay(_, rows) => rows.len(),
            Action::Repay(rows) => rows.len(),
            Action::Refund(rows, _) => rows.len(),
            Action::Create { .. }
            | Action::Patch(..)
            | Action::Open(_)
            | Action::External(_)
            | Action::Apply { .. }
            | Action::NoteDecision { .. }
            | Action::Withdraw(_)
            | Action::Finish(_)
            | Action::Settle(_)
            | Action::Cancel(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_a_decision_names_the_first_players() {
        let names = |count: usize| -> Vec<PlayerId> {
            (0..count).map(|no| PlayerId::new(&format!("{no:0>9}")).unwrap()).collect()
        };
        let detail = |players: &[PlayerId], results: &[_]| detail_of(players.iter(), results);
        let (yes, no) = (Ok(Status::Accepted), Err(Rejection::NotApplied));
        assert_eq!(detail(&names(2), &[no.clone(), no.clone()]), None);
        assert_eq!(detail(&names(2), &[no.clone(), yes.clone()]).as_deref(), Some("1 player: 000000001"));
        let some = detail(&names(3), &[yes.clone(), no, yes.clone()]);
        assert_eq!(some.as_deref(), Some("2 players: 000000000, 000000002"));
        let many = detail(&names(1_000), &vec![yes.clone(); 1_000]).unwrap();
        assert!(many.starts_with("1000 players: 000000000, 000000001, "), "{many}");
        assert!(many.ends_with(", 000000013, …") && many.len() < 180, "{many}");
        let longest = [PlayerId::new(&"x".repeat(128)).unwrap(), PlayerId::new("y").unwrap()];
        let both = detail(&longest, &[yes.clone(), yes]).unwrap();
        assert!(both.ends_with("x, y"), "{both}");
    }
}
