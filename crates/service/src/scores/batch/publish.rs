//! Publishing a batch: the rankings change as it was decided, in order, leaderboard by leaderboard and window by window.

use super::kind::{Decision, ScoreRequest, on_kind};
use super::revision_guard::OnShard;
use super::state::RecordChange;
use super::targets::Targets;
use crate::boards::Board;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use tally_ranking::{Published, RankingChange, WindowRanking};
use tally_rules::{PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Store, Window};

/// The versions of what a batch has committed: one, or one of each shard.
pub(crate) struct Versions<'a> {
    each: Vec<u64>,
    store: &'a dyn Store,
}

impl<'a> Versions<'a> {
    pub(super) fn of(done: &[OnShard], store: &'a dyn Store) -> Self {
        let each = match done {
            [one] => vec![one.committed.version],
            done => {
                let mut each = vec![0; store.shards()];
                done.iter().for_each(|one| each[one.shard] = one.committed.version);
                each
            }
        };
        Self { each, store }
    }

    pub(crate) fn of_player(&self, player: &PlayerId) -> u64 {
        match &self.each[..] {
            [one] => *one,
            each => each.get(self.store.shard_of(player)).copied().unwrap_or_default(),
        }
    }

    /// Publishes changes of a window, each in the version of its shard.
    fn publish(
        &self,
        ranking: &WindowRanking,
        changes: &[RankingChange],
        mut published: impl FnMut(usize, Published),
    ) {
        if let ([_], _) | (_, Some(_)) = (&self.each[..], ranking.memory()) {
            return ranking.publish(changes, self.each[0], published);
        }
        for (shard, version) in self.each.iter().enumerate() {
            let here = changes.iter().enumerate();
            let here = here.filter(|(_, moved)| self.store.shard_of(&moved.player) == shard);
            let (places, some): (Vec<_>, Vec<_>) = here.map(|(at, moved)| (at, moved.clone())).unzip();
            if !some.is_empty() {
                ranking.publish(&some, *version, |nth, ranks| published(places[nth], ranks));
            }
        }
    }
}

/// What a decision does to the rankings of one leaderboard.
pub(crate) enum Effect<'a> {
    /// Records of several players in some windows have changed.
    Changes(&'a [RecordChange]),
    /// A player's records are these now. The request gets the ranks around the first one if it is `ranked`.
    Scores { player: &'a PlayerId, records: &'a [(Window, Record)], ranked: bool },
    /// A player leaves these windows.
    Leave(&'a PlayerId, &'a [Window]),
    /// A player leaves every window.
    LeaveAll(&'a PlayerId),
    /// A player is banned.
    Ban(&'a PlayerId),
    /// A player is shown again, with these records.
    Restore(&'a PlayerId, &'a [(Window, Record)]),
}

/// The effects on one leaderboard in order, each with its request.
type OnBoard<'a> = (&'a Arc<Board>, Vec<(usize, Effect<'a>)>);

/// The effects of neighbours, by leaderboard.
#[derive(Default)]
pub(crate) struct Effects<'a> {
    boards: BTreeMap<BoardNo, OnBoard<'a>>,
    /// The request whose effects are added.
    request: usize,
}

impl<'a> Effects<'a> {
    pub(crate) fn add(&mut self, board: &'a Arc<Board>, effect: Effect<'a>) {
        let (_, effects) = self.boards.entry(board.no).or_insert_with(|| (board, Vec::new()));
        effects.push((self.request, effect));
    }
}

/// Changes of one window, and the request that each is reported to.
type WindowChanges = (Vec<RankingChange>, Vec<Option<usize>>);

/// Publishes a batch; returns the ranks around the ranked change of each request.
pub(super) fn publish(
    batch: &mut [ScoreRequest],
    decisions: &mut [Decision],
    targets: &Targets,
    versions: &Versions<'_>,
) -> Vec<Published> {
    let mut ranks = vec![Published::default(); batch.len()];
    let mut from = 0;
    for at in 0..batch.len() {
        if on_kind!(&batch[at], one => one.is_serial()) {
            publish_together(batch, decisions, (targets, versions), from..at, &mut ranks);
            batch[at].publish_serially(&mut decisions[at], targets, versions);
            from = at + 1;
        }
    }
    publish_together(batch, decisions, (targets, versions), from..batch.len(), &mut ranks);
    ranks
}

/// Publishes neighbours whose replies need no more than the ranks around them.
fn publish_together(
    batch: &[ScoreRequest],
    decisions: &[Decision],
    (targets, versions): (&Targets, &Versions<'_>),
    which: Range<usize>,
    ranks: &mut [Published],
) {
    let mut effects = Effects::default();
    for at in which {
        effects.request = at;
        batch[at].publish(&decisions[at], targets.of(at), &mut effects);
    }
    for (board, effects) in effects.boards.into_values() {
        for (window, (changes, owners)) in changes_by_window(board, effects) {
            // A window that is closed by now has no ranking in memory: the caller writes its archive again.
            let Some(memory) = targets.ranking_of(board, window) else { continue };
            versions.publish(memory.ranking(), &changes, |at, published| {
                if let Some(owner) = owners[at] {
                    ranks[owner] = published;
                }
            });
            if board.live.is_watched() && !memory.ranking().waits() && board.shows_live(window) {
                board.live.note(window, changes.iter().map(|moved| &moved.player));
            }
        }
    }
}

/// Effects as changes of each window. A banned player does not move.
fn changes_by_window(board: &Board, effects: Vec<(usize, Effect<'_>)>) -> BTreeMap<Window, WindowChanges> {
    let mut banned = board.banned.write().unwrap_or_else(PoisonError::into_inner);
    let mut by_window: BTreeMap<Window, WindowChanges> = BTreeMap::new();
    let mut put = |window: Window, player: &PlayerId, record: Option<Record>, owner: Option<usize>| {
        let (changes, owners) = by_window.entry(window).or_default();
        changes.push(RankingChange { player: player.clone(), record, ranked: owner.is_some() });
        owners.push(owner);
    };
    for (request, effect) in effects {
        match effect {
            Effect::Changes(some) => {
                let shown = some.iter().filter(|(_, player, _)| !banned.contains(player));
                shown.for_each(|(window, player, record)| put(*window, player, *record, None));
            }
            Effect::Scores { player, .. } | Effect::Leave(player, _) | Effect::LeaveAll(player)
                if banned.contains(player) => {}
            Effect::Scores { player, records, ranked } => {
                for (nth, (window, record)) in records.iter().enumerate() {
                    put(*window, player, Some(*record), (ranked && nth == 0).then_some(request));
                }
            }
            Effect::Leave(player, windows) => {
                windows.iter().for_each(|window| put(*window, player, None, None))
            }
            Effect::LeaveAll(player) => leave_all(board, |window| put(window, player, None, None)),
            Effect::Ban(player) => {
                banned.insert(player.clone());
                leave_all(board, |window| put(window, player, None, None));
            }
            Effect::Restore(player, records) => {
                banned.remove(player);
                records.iter().for_each(|(window, record)| put(*window, player, Some(*record), None));
            }
        }
    }
    by_window
}

/// Every window of a leaderboard in memory.
fn leave_all(board: &Board, mut leave: impl FnMut(Window)) {
    leave(ALL_TIME);
    board.live().iter().for_each(|live| leave(live.window));
}
