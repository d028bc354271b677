//! What one change after the other would have found, computed from counts that were asked for all of them at once.
//!
//! Every partition was asked how many members are below some bounds before anything of the batch was written. At the turn
//! of a change the changes in front of it have moved members across its bounds; that is added here. Pure: nothing is asked.

use super::asks::Look;
use super::looks::Count;
use super::part::RedisWindow;
use super::publish::VersionedMovement;
use crate::memory::Published;
use std::collections::HashMap;
use tally_rules::PlayerId;

/// A member that goes and one that comes.
type Change = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The batch, change by change.
#[derive(Debug, Default)]
pub(super) struct Turns {
    changes: Vec<Change>,
    turns: Vec<Turn>,
}

/// A change whose ranks are wanted. A bound stands for the member there is; the number says how many changes are in front.
#[derive(Debug)]
struct Turn {
    movement: usize,
    before: (Option<Vec<u8>>, usize),
    after: (Option<Vec<u8>>, usize),
}

impl Turns {
    /// Takes the batch in its order; `looks` is what was there of each player.
    pub(super) fn new(
        part: &RedisWindow,
        movements: &[VersionedMovement],
        looks: &HashMap<&PlayerId, Option<Look>>,
    ) -> Self {
        let mut turns = Self::default();
        let mut present: HashMap<&PlayerId, (u64, Option<Vec<u8>>)> = HashMap::new();
        for (player, look) in looks {
            if let Some(look) = look {
                present.insert(player, (look.version, look.seen.as_ref().map(|seen| seen.member.clone())));
            }
        }
        for (at, VersionedMovement { movement, version, .. }) in movements.iter().enumerate() {
            let player = &movement.player;
            let known = present.get(player);
            let old = known.and_then(|(_, member)| member.clone());
            let newer = known.is_none_or(|(known, _)| version > known);
            let new = if newer {
                movement.record.map(|record| part.codec().member(player, &record))
            } else {
                old.clone()
            };
            if movement.ranked {
                let bound = |member: &Option<Vec<u8>>| Some(part.bound(member.as_ref()?, Count::Ahead));
                let changes = turns.changes.len();
                let before = (bound(&old), changes);
                turns.turns.push(Turn {
                    movement: at,
                    before,
                    after: (bound(&new), changes + usize::from(newer)),
                });
            }
            if newer {
                present.insert(player, (*version, new.clone()));
                turns.changes.push((old, new));
            }
        }
        turns
    }

    /// Every bound whose count is needed.
    pub(super) fn bounds(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.turns.iter().flat_map(|turn| turn.before.0.iter().chain(&turn.after.0))
    }

    /// The ranks around each, from the counts of all bounds before the batch.
    pub(super) fn ranks(&self, counts: &HashMap<Vec<u8>, u64>) -> Vec<(usize, Published)> {
        let rank = |(bound, changes): &(Option<Vec<u8>>, usize)| {
            let bound = bound.as_ref()?;
            let mut count = counts.get(bound).copied()?;
            let below =
                |member: &Option<Vec<u8>>| u64::from(member.as_ref().is_some_and(|member| member < bound));
            for (old, new) in &self.changes[..*changes] {
                // What goes was counted, unless it went between two questions.
                count = (count + below(new)).saturating_sub(below(old));
            }
            Some(count + 1)
        };
        let one =
            |turn: &Turn| (turn.movement, Published { before: rank(&turn.before), after: rank(&turn.after) });
        self.turns.iter().map(one).collect()
    }
}
