//! Applying, joining and scoring in a story.

use super::Story;
use crate::wallets::histories::paper::FEE;
use tally_rules::contest::ContestState;
use tally_rules::score::ScoreInput;
use tally_rules::{PlayerId, Rejection};
use tally_service::contests::apply;
use tally_service::contests::execute::ContestActor;
use tally_service::scores::submit::{self, NewScore};

impl Story {
    /// An application, or a decision on one.
    pub(super) fn apply_or_decide(&mut self, at: usize, name: &PlayerId) {
        let (id, kind, admin) = (self.cups[at].id.clone(), self.rng.below(10), &ContestActor::ADMIN);
        let name = std::slice::from_ref(name);
        drop(self.ask(|tally, _, key| {
            let key = key.as_ref();
            match kind {
                0..5 => apply::apply(tally, &id, &ContestActor::SERVER, &name[0], key).map(drop),
                5..8 => apply::decide(tally, &id, admin, name, true, key).map(drop),
                8 => apply::decide(tally, &id, admin, name, false, key).map(drop),
                _ => apply::withdraw(tally, &id, admin, &name[0], key).map(drop),
            }
        }));
    }

    /// A player joins a contest that runs, if it may.
    pub(super) fn join(&mut self, at: usize, name: &PlayerId) {
        let id = self.cups[at].id.clone();
        let done = self.ask(|tally, _, key| {
            apply::apply(tally, &id, &ContestActor::SERVER, name, key.as_ref()).map(drop)
        });
        if let Err(rejection) = done {
            assert!(!matches!(rejection, Rejection::NotAMember { .. }), "{rejection:?}");
            return;
        }
        let member = self.holder(name).map(|one| one.member).filter(|_| self.cups[at].needs_members());
        let cup = &mut self.cups[at];
        assert!(cup.joins, "{name:?} has joined {cup:?}");
        assert_eq!(cup.members.insert(name.clone(), member), None, "{name:?} has joined twice");
        let (currency, fee) = (cup.currency, cup.fee);
        if let Some(member) = member.filter(|_| fee) {
            self.add(member, currency, -FEE);
        }
        self.note("join");
    }

    pub(super) fn score(&mut self, at: usize, name: &PlayerId) {
        let (id, units) = (self.cups[at].id.clone(), self.rng.below(1_000) as i64 * 1_000);
        // No two are the same.
        let units = units + self.asked as i64 % 1_000;
        let done = self.ask(|tally, runtime, idempotency| {
            let (board, player, score) = (id.board(None), name.clone(), ScoreInput::Int(units));
            let new = NewScore { board, player, score, subscore: None, at: None, idempotency };
            runtime.block_on(submit::submit(tally, new)).map(drop)
        });
        let cup = &mut self.cups[at];
        let is_player = cup.state == ContestState::Running && cup.members.contains_key(name);
        let attempts = cup.attempts.entry(name.clone()).or_default();
        let may = is_player && cup.attempts_max.is_none_or(|most| *attempts < most);
        assert_eq!(done.is_ok(), may, "{done:?} of {name:?} in {cup:?}");
        if may {
            *attempts += 1;
            for scores in [&mut cup.scores, &mut cup.of_day] {
                let best = scores.entry(name.clone()).or_insert(units);
                *best = units.max(*best);
            }
        }
        if is_player && !may {
            self.note("no attempts left");
        }
    }
}
