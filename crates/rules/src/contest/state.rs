//! The state machine of a contest as one table: the actors and the effects of each event in each state.
//!
//! The table is printed into `docs/contests.md`, and a test compares the two. The permission is checked before the state, so a
//! caller without permission learns nothing. Not here: what an effect does, and when events of the clock are due ([`due`]).
//!
//! [`due`]: super::due

use crate::named;
use crate::rejection::Rejection;

named! {
    /// The state of a contest.
    pub enum ContestState { /// It is being prepared.
        Draft = "draft", /// It accepts applications.
        Open = "open", /// It is played.
        Running = "running", /// It is over and reviewed.
        Finished = "finished", /// Prizes are paid.
        Settled = "settled", /// It was called off.
        Cancelled = "cancelled" }
}
named! {
    /// What changes or uses a contest.
    pub enum ContestTrigger { /// Change its definition.
        Patch = "patch", /// Accept applications from now on.
        Open = "open", /// Apply to take part.
        Apply = "apply", /// Accept or reject an application.
        Decide = "accept, reject", /// Withdraw an application.
        Withdraw = "withdraw", /// Begin playing.
        Start = "start", /// Put a score on its board.
        Score = "score", /// Ban a member, or lift the ban.
        Ban = "ban, restore", /// End playing.
        Finish = "finish", /// Correct a score.
        Correct = "correct", /// Pay the prizes.
        Settle = "settle", /// Pay what could not be paid.
        Repay = "repay", /// Call it off.
        Cancel = "cancel" }
}
named! {
    /// The kind of actor.
    pub enum ActorKind { /// A key that may do everything.
        Admin = "admin", /// A key of a game server that names no player.
        Server = "server", /// A staff player, or a server's key that names one.
        Staff = "staff", /// A player, for itself.
        Player = "player", /// The clock.
        Clock = "clock" }
}
named! {
    /// A further effect of an event.
    pub enum Effect { /// Accepted applications become members, their fees are captured, the leaderboard is created.
        Enrol = "enrol", /// Applications are cleared, and their remaining holds are released.
        Clear = "clear", /// The leaderboard takes no more scores.
        Freeze = "freeze", /// Prizes are transferred from the account PRIZES into wallets.
        Pay = "pay", /// Captured fees are refunded.
        Refund = "refund" }
}

/// What an act on a contest needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContestRight {
    /// A player of the contest's staff, or a key of role `admin`.
    Staff,
    /// A key that manages contests.
    Key,
    /// The player itself, or a key that manages contests.
    Own,
}

/// One row: in `from`, each of `by` may do `event`. Then the contest is in `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: ContestState,
    /// The event.
    pub event: ContestTrigger,
    /// The actors that may do it.
    pub by: &'static [ActorKind],
    /// The state after.
    pub to: ContestState,
    /// The further effects.
    pub effects: &'static [Effect],
}

const KEYS: &[ActorKind] = &[ActorKind::Admin, ActorKind::Server];
const STAFF: &[ActorKind] = &[ActorKind::Admin, ActorKind::Staff];
const STAFF_OR_CLOCK: &[ActorKind] = &[ActorKind::Admin, ActorKind::Staff, ActorKind::Clock];
const APPLICANTS: &[ActorKind] = &[ActorKind::Admin, ActorKind::Server, ActorKind::Player];
const APPLICANTS_OR_STAFF: &[ActorKind] =
    &[ActorKind::Admin, ActorKind::Server, ActorKind::Staff, ActorKind::Player];

const fn row(
    from: ContestState,
    event: ContestTrigger,
    by: &'static [ActorKind],
    to: ContestState,
    effects: &'static [Effect],
) -> Transition {
    Transition { from, event, by, to, effects }
}

/// The state machine. An event without a row is refused.
pub const TABLE: &[Transition] = &[
    row(ContestState::Draft, ContestTrigger::Patch, KEYS, ContestState::Draft, &[]),
    row(ContestState::Draft, ContestTrigger::Open, STAFF_OR_CLOCK, ContestState::Open, &[]),
    row(ContestState::Draft, ContestTrigger::Cancel, STAFF, ContestState::Cancelled, &[]),
    row(ContestState::Open, ContestTrigger::Patch, KEYS, ContestState::Open, &[]),
    row(ContestState::Open, ContestTrigger::Apply, APPLICANTS, ContestState::Open, &[]),
    row(ContestState::Open, ContestTrigger::Decide, STAFF, ContestState::Open, &[]),
    row(ContestState::Open, ContestTrigger::Withdraw, APPLICANTS_OR_STAFF, ContestState::Open, &[]),
    row(
        ContestState::Open,
        ContestTrigger::Start,
        STAFF_OR_CLOCK,
        ContestState::Running,
        &[Effect::Enrol, Effect::Clear],
    ),
    // The clock cancels at the start, with too few members.
    row(
        ContestState::Open,
        ContestTrigger::Cancel,
        STAFF_OR_CLOCK,
        ContestState::Cancelled,
        &[Effect::Clear],
    ),
    row(ContestState::Running, ContestTrigger::Patch, KEYS, ContestState::Running, &[]),
    // While players may still join ([`ContestRecord::check_may_apply`](super::ContestRecord::check_may_apply)).
    row(ContestState::Running, ContestTrigger::Apply, APPLICANTS, ContestState::Running, &[Effect::Enrol]),
    row(ContestState::Running, ContestTrigger::Score, KEYS, ContestState::Running, &[]),
    row(ContestState::Running, ContestTrigger::Ban, STAFF, ContestState::Running, &[]),
    row(
        ContestState::Running,
        ContestTrigger::Finish,
        STAFF_OR_CLOCK,
        ContestState::Finished,
        &[Effect::Freeze],
    ),
    row(
        ContestState::Running,
        ContestTrigger::Cancel,
        STAFF,
        ContestState::Cancelled,
        &[Effect::Freeze, Effect::Refund],
    ),
    row(ContestState::Finished, ContestTrigger::Patch, KEYS, ContestState::Finished, &[]),
    // The review: ranks are final once the prizes are determined ([`ContestRecord::is_in_review`](super::ContestRecord::is_in_review)).
    row(ContestState::Finished, ContestTrigger::Ban, STAFF, ContestState::Finished, &[]),
    row(ContestState::Finished, ContestTrigger::Correct, STAFF, ContestState::Finished, &[]),
    row(
        ContestState::Finished,
        ContestTrigger::Settle,
        STAFF_OR_CLOCK,
        ContestState::Settled,
        &[Effect::Pay],
    ),
    row(ContestState::Finished, ContestTrigger::Cancel, STAFF, ContestState::Cancelled, &[Effect::Refund]),
    // Repeated in their own end state: they return the contest unchanged.
    row(ContestState::Settled, ContestTrigger::Settle, STAFF, ContestState::Settled, &[]),
    row(ContestState::Settled, ContestTrigger::Repay, STAFF, ContestState::Settled, &[Effect::Pay]),
    row(ContestState::Cancelled, ContestTrigger::Repay, STAFF, ContestState::Cancelled, &[Effect::Refund]),
    row(ContestState::Cancelled, ContestTrigger::Cancel, STAFF, ContestState::Cancelled, &[]),
];

/// What an event needs that a refused actor has not: in each state an event is for the same actors, but for the clock.
pub fn needed(event: ContestTrigger) -> ContestRight {
    let by = |kind| TABLE.iter().any(|row| row.event == event && row.by.contains(&kind));
    match (by(ActorKind::Player), by(ActorKind::Staff)) {
        (true, _) => ContestRight::Own,
        (false, true) => ContestRight::Staff,
        (false, false) => ContestRight::Key,
    }
}

/// The row of this event, or why there is none.
pub fn transition(
    state: ContestState,
    event: ContestTrigger,
    by: ActorKind,
) -> Result<&'static Transition, Rejection> {
    let mut of_event = TABLE.iter().filter(|row| row.event == event);
    if !of_event.clone().any(|row| row.by.contains(&by)) {
        return Err(Rejection::Forbidden(needed(event)));
    }
    of_event.find(|row| row.from == state && row.by.contains(&by)).ok_or(Rejection::ContestState(state))
}

/// Says in which states an event is possible, for a contest in another one; `None` if it is possible in this one too.
pub fn out_of_place(event: ContestTrigger, state: ContestState) -> Option<String> {
    let what = match event {
        ContestTrigger::Patch => "a contest can be changed while it is",
        ContestTrigger::Open => "a contest can be opened while it is",
        ContestTrigger::Apply => "players can apply while a contest is",
        ContestTrigger::Decide => "applications can be accepted and rejected while a contest is",
        ContestTrigger::Withdraw => "an application can be withdrawn while a contest is",
        ContestTrigger::Start => "a contest can be started while it is",
        ContestTrigger::Score => "scores count while a contest is",
        ContestTrigger::Ban => "players can be banned and restored while a contest is",
        ContestTrigger::Finish => "a contest can be finished while it is",
        ContestTrigger::Correct => "scores can be corrected while a contest is",
        ContestTrigger::Settle => "a contest can be settled while it is",
        ContestTrigger::Repay => "payments can be repeated while a contest is",
        ContestTrigger::Cancel => "a contest can be cancelled while it is",
    };
    // A repetition in the end state changes nothing.
    let of_event = || TABLE.iter().filter(move |row| row.event == event);
    let is_step = of_event().any(|row| row.from != row.to);
    let from: Vec<ContestState> =
        of_event().filter(|row| !is_step || row.from != row.to).map(|row| row.from).collect();
    if from.contains(&state) {
        return None;
    }
    let states: Vec<&str> = from.iter().map(|one| one.as_str()).collect();
    let states = match states.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => return None,
    };
    Some(format!("{what} {states}, and this one is {state}"))
}

/// The table as it is in the documentation.
pub fn markdown() -> String {
    fn names<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> String {
        all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ")
    }
    let line = |row: &Transition| {
        let (by, effects) = (names(row.by, ActorKind::as_str), names(row.effects, Effect::as_str));
        format!("| `{}` | {} | {by} | `{}` | {effects} |\n", row.from, row.event, row.to)
    };
    let head = "| in | may be done | by | then it is | and |\n|---|---|---|---|---|\n";
    TABLE.iter().map(line).fold(head.to_owned(), |text, line| text + &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_there_once_and_names_no_actor_twice() {
        for (at, row) in TABLE.iter().enumerate() {
            let like = |other: &&Transition| (other.from, other.event) == (row.from, row.event);
            assert!(TABLE[..at].iter().find(like).is_none(), "{row:?}");
            assert!(row.by.is_sorted_by(|a, b| a < b), "{row:?}");
        }
    }

    #[test]
    fn an_event_says_the_states_in_which_it_is_possible() {
        for (event, state, wanted) in [
            (
                ContestTrigger::Start,
                ContestState::Running,
                "a contest can be started while it is open, and this one is running",
            ),
            (
                ContestTrigger::Settle,
                ContestState::Cancelled,
                "a contest can be settled while it is finished, and this one is cancelled",
            ),
            (
                ContestTrigger::Cancel,
                ContestState::Settled,
                "a contest can be cancelled while it is draft, open, running or finished, and this one is settled",
            ),
            (
                ContestTrigger::Repay,
                ContestState::Open,
                "payments can be repeated while a contest is settled or cancelled, and this one is open",
            ),
        ] {
            assert_eq!(out_of_place(event, state).as_deref(), Some(wanted));
        }
        assert_eq!(out_of_place(ContestTrigger::Ban, ContestState::Finished), None);
    }

    /// The contract in other form: the states in which each event is possible.
    #[test]
    fn the_states_of_each_event() {
        let rows: &[(ContestTrigger, &[ContestState])] = &[
            (
                ContestTrigger::Patch,
                &[ContestState::Draft, ContestState::Open, ContestState::Running, ContestState::Finished],
            ),
            (ContestTrigger::Open, &[ContestState::Draft]),
            (ContestTrigger::Apply, &[ContestState::Open, ContestState::Running]),
            (ContestTrigger::Decide, &[ContestState::Open]),
            (ContestTrigger::Withdraw, &[ContestState::Open]),
            (ContestTrigger::Start, &[ContestState::Open]),
            (ContestTrigger::Score, &[ContestState::Running]),
            (ContestTrigger::Ban, &[ContestState::Running, ContestState::Finished]),
            (ContestTrigger::Finish, &[ContestState::Running]),
            (ContestTrigger::Correct, &[ContestState::Finished]),
            (ContestTrigger::Settle, &[ContestState::Finished, ContestState::Settled]),
            (ContestTrigger::Repay, &[ContestState::Settled, ContestState::Cancelled]),
            (
                ContestTrigger::Cancel,
                &[
                    ContestState::Draft,
                    ContestState::Open,
                    ContestState::Running,
                    ContestState::Finished,
                    ContestState::Cancelled,
                ],
            ),
        ];
        assert_eq!(rows.len(), ContestTrigger::ALL.len());
        for (event, states) in rows {
            for state in ContestState::ALL {
                let done = transition(*state, *event, ActorKind::Admin);
                match states.contains(state) {
                    true => assert_eq!(done.map(|row| row.from), Ok(*state), "{event} in {state}"),
                    false => assert_eq!(done, Err(Rejection::ContestState(*state)), "{event} in {state}"),
                }
            }
        }
    }

    #[test]
    fn a_forbidden_actor_learns_nothing_of_the_state() {
        for state in ContestState::ALL {
            for (event, by) in [
                (ContestTrigger::Start, ActorKind::Player),
                (ContestTrigger::Start, ActorKind::Server),
                (ContestTrigger::Settle, ActorKind::Player),
                (ContestTrigger::Repay, ActorKind::Server),
                (ContestTrigger::Correct, ActorKind::Server),
                (ContestTrigger::Decide, ActorKind::Server),
                (ContestTrigger::Patch, ActorKind::Staff),
                (ContestTrigger::Score, ActorKind::Player),
                (ContestTrigger::Cancel, ActorKind::Server),
                (ContestTrigger::Apply, ActorKind::Staff),
            ] {
                assert_eq!(
                    transition(*state, event, by),
                    Err(Rejection::Forbidden(needed(event))),
                    "{event} by {by} in {state}"
                );
            }
        }
        use ContestRight::{Key, Own, Staff};
        for (event, right) in [
            (ContestTrigger::Start, Staff),
            (ContestTrigger::Score, Key),
            (ContestTrigger::Patch, Key),
            (ContestTrigger::Apply, Own),
        ] {
            assert_eq!(needed(event), right, "{event}");
        }
        assert_eq!(
            transition(ContestState::Settled, ContestTrigger::Settle, ActorKind::Clock),
            Err(Rejection::ContestState(ContestState::Settled))
        );
    }

    #[test]
    fn the_documentation_has_this_table() {
        let text = include_str!("../../../../docs/contests.md");
        let (begin, end) = ("<!-- the table of states -->\n", "<!-- end -->");
        let shown = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).map(|(table, _)| table);
        assert_eq!(shown, Some(markdown().as_str()), "put this into docs/contests.md:\n{}", markdown());
    }
}
