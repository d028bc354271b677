//! The events of the clock: a contest opens, starts, finishes and settles.
//!
//! A missed event counts as of its scheduled time, so the following events keep their order: a missed start comes right
//! after its opening. A start that passes while the contest is a draft without an opening time is over: opening it later by
//! hand does not start it. No event waits for the instant of the state before it: a clock that was ahead may have begun it.
//! Not here: when a series creates contests, and that an event is not dated before the state that it ends.

use super::definition::Contest;
use super::state::{ContestState, ContestTrigger};
use crate::instant::Micros;

/// The next event of the clock, and when. `since` is when the contest came into its state. The clock settles contests with a
/// review, and those of a series.
pub fn next(
    state: ContestState,
    since: Micros,
    contest: &Contest,
    in_series: bool,
) -> Option<(Micros, ContestTrigger)> {
    let at = |at: Option<Micros>, event| Some((at?, event));
    match state {
        ContestState::Draft => at(contest.opens_at, ContestTrigger::Open),
        ContestState::Open => at(contest.starts_at.filter(|at| *at >= since), ContestTrigger::Start),
        ContestState::Running => at(contest.ends_at, ContestTrigger::Finish),
        ContestState::Finished => {
            let seconds = contest.review_s.or(in_series.then_some(0))?;
            let ended = contest.ends_at.unwrap_or(since).min(since);
            Some((ended.plus(i64::from(seconds) * 1_000_000), ContestTrigger::Settle))
        }
        ContestState::Settled | ContestState::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(opens: Option<i64>, starts: Option<i64>, ends: Option<i64>) -> Contest {
        let [opens_at, starts_at, ends_at] = [opens, starts, ends].map(|at| at.map(Micros));
        Contest { opens_at, starts_at, ends_at, ..Contest::default() }
    }

    #[test]
    fn each_moment_belongs_to_a_state() {
        let all = contest(Some(10), Some(20), Some(30));
        let none = contest(None, None, None);
        let rows = [
            (ContestState::Draft, 5, Some((10, ContestTrigger::Open))),
            (ContestState::Open, 10, Some((20, ContestTrigger::Start))),
            (ContestState::Open, 20, Some((20, ContestTrigger::Start))),
            // It passed while the contest was a draft.
            (ContestState::Open, 21, None),
            (ContestState::Running, 20, Some((30, ContestTrigger::Finish))),
            // It started late, or by a clock that was ahead.
            (ContestState::Running, 40, Some((30, ContestTrigger::Finish))),
            (ContestState::Finished, 40, Some((30, ContestTrigger::Settle))),
            (ContestState::Draft, 40, Some((10, ContestTrigger::Open))),
            (ContestState::Settled, 1, None),
            (ContestState::Cancelled, 1, None),
        ];
        for (state, since, wanted) in rows {
            let wanted = wanted.map(|(at, event)| (Micros(at), event));
            assert_eq!(next(state, Micros(since), &all, true), wanted, "{state} since {since}");
            assert_eq!(next(state, Micros(since), &none, false), None, "{state}");
        }
        assert_eq!(
            next(ContestState::Finished, Micros(30), &all, true),
            Some((Micros(30), ContestTrigger::Settle))
        );
        assert_eq!(next(ContestState::Finished, Micros(30), &all, false), None);
    }

    #[test]
    fn a_review_is_as_long_as_it_was_promised_in_a_series_or_not() {
        for (ends, since, seconds, wanted) in [
            (Some(30), 30, 0, 30),
            (Some(30), 30, 2, 2_000_030),
            // Ended by hand: before its time, late, and without one.
            (Some(30), 20, 2, 2_000_020),
            (Some(30), 40, 2, 2_000_030),
            (None, 20, 2, 2_000_020),
        ] {
            let contest = Contest { review_s: Some(seconds), ..contest(None, None, ends) };
            for in_series in [true, false] {
                let settles = next(ContestState::Finished, Micros(since), &contest, in_series);
                assert_eq!(
                    settles,
                    Some((Micros(wanted), ContestTrigger::Settle)),
                    "{ends:?} {since} {seconds}"
                );
            }
        }
    }

    /// A contest that missed all events goes through its states in order, each as of its scheduled time.
    #[test]
    fn missed_moments_come_in_order() {
        let events_of = |contest: &Contest| {
            let (mut state, mut since, mut seen) = (ContestState::Draft, Micros(1), Vec::new());
            while let Some((at, event)) = next(state, since, contest, true) {
                seen.push((at.0, event));
                let by = super::super::state::ActorKind::Clock;
                state = super::super::state::transition(state, event, by).unwrap().to;
                since = at;
            }
            seen
        };
        let events =
            [ContestTrigger::Open, ContestTrigger::Start, ContestTrigger::Finish, ContestTrigger::Settle];
        let times = [10, 20, 30, 30];
        let wanted: Vec<_> = times.into_iter().zip(events).collect();
        assert_eq!(events_of(&contest(Some(10), Some(20), Some(30))), wanted);
        // A draft without an opening time: all events pass.
        assert_eq!(events_of(&contest(None, Some(20), Some(30))), []);
        assert_eq!(events_of(&contest(Some(10), None, Some(30))), [(10, ContestTrigger::Open)]);
    }
}
