//! Publishing a batch: what was decided, in order, board by board and part by part.

use super::aim::{Aims, PartInMemory};
use super::command::Request;
use super::decide::Decision;
use super::orders::Orders;
use super::redefine::{Change, Redefinition};
use super::standing::OnDatabase;
use super::steps::{Commands, Move, Step, StepDone, StepReply};
use crate::boards::Board;
use crate::contests::play;
use crate::periods::{LivePart, Periods, RuleState};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use tally_ranking::{LockedRanking, Movement, Published, WindowRanking};
use tally_rules::{PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Part, Store};

/// The versions of what a batch has committed: one, or that of each database.
pub(super) struct Versions<'a> {
    each: Vec<u64>,
    store: &'a dyn Store,
}

impl<'a> Versions<'a> {
    pub(super) fn of(done: &[OnDatabase], store: &'a dyn Store) -> Self {
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

    /// That of a player's database.
    fn of_player(&self, player: &PlayerId) -> u64 {
        match &self.each[..] {
            [one] => *one,
            each => each.get(self.store.shard_of(player)).copied().unwrap_or_default(),
        }
    }

    /// Publishes movements of a part, each in its version.
    fn publish(
        &self,
        order: &WindowRanking,
        movements: &[Movement],
        mut published: impl FnMut(usize, Published),
    ) {
        if let ([_], _) | (_, Some(_)) = (&self.each[..], order.memory()) {
            return order.publish(movements, self.each[0], published);
        }
        for (shard, version) in self.each.iter().enumerate() {
            let here = movements.iter().enumerate();
            let here = here.filter(|(_, moved)| self.store.shard_of(&moved.player) == shard);
            let (places, some): (Vec<_>, Vec<_>) = here.map(|(at, moved)| (at, moved.clone())).unzip();
            if !some.is_empty() {
                order.publish(&some, *version, |nth, ranks| published(places[nth], ranks));
            }
        }
    }
}

/// What a decision does to the orders of one board.
enum Effect<'a> {
    /// Several players' records in some parts are these now.
    Moves(&'a [Move]),
    /// The player's records in these parts are these now.
    Move(PlayerId, Vec<(Part, Option<Record>)>),
    /// The player is hidden everywhere.
    Hide(PlayerId),
    /// The player is shown again, with these records.
    Show(PlayerId, Vec<(Part, Record)>),
}

/// The effects on one board, in order, each with the request that hears the ranks around it.
type Effects<'a> = (&'a Arc<Board>, Vec<(Option<usize>, Effect<'a>)>);

/// Movements of one part, and who hears of each.
type PartMoves = (Vec<Movement>, Vec<Option<usize>>);

/// Publishes a batch; gives the ranks of every submit in the part that it names. Commands that ask something are
/// published one by one, at their place.
pub(super) fn publish(
    batch: &mut [Request],
    decisions: &mut [Decision],
    aims: &Aims,
    versions: &Versions<'_>,
) -> Vec<Published> {
    let mut ranks = vec![Published::default(); batch.len()];
    let mut from = 0;
    for at in 0..batch.len() {
        if matches!(&batch[at], Request::Commands(commands) if commands.in_turn()) {
            publish_together(batch, decisions, (aims, versions), from..at, &mut ranks);
            if let (Request::Commands(commands), Decision::Commands(dones)) =
                (&mut batch[at], &mut decisions[at])
            {
                publish_in_turn(commands, dones, aims, versions);
            }
            from = at + 1;
        }
    }
    publish_together(batch, decisions, (aims, versions), from..batch.len(), &mut ranks);
    ranks
}

/// Publishes neighbours whose answers need no more than the ranks around them: board by board, part by part.
fn publish_together(
    batch: &[Request],
    decisions: &[Decision],
    (aims, versions): (&Aims, &Versions<'_>),
    which: Range<usize>,
    ranks: &mut [Published],
) {
    for (board, effects) in effects_by_board(batch, decisions, aims, which.clone()).into_values() {
        for (part, (movements, owners)) in movements(board, effects) {
            // A part that is closed by now has no order in memory: its blocks are written anew by whoever asked.
            let Some(memory) = aims.order_of(board, part) else { continue };
            versions.publish(memory.order(), &movements, |at, published| {
                if let Some(owner) = owners[at] {
                    ranks[owner] = published;
                }
            });
            if board.live.is_watched() && !memory.order().waits() && board.shows_live(part) {
                board.live.note(part, movements.iter().map(|moved| &moved.player));
            }
        }
    }
    for at in which {
        if let (Request::Redefine(redefine), Decision::Redefine { change: Change::To(change), .. }) =
            (&batch[at], &decisions[at])
        {
            redefine_board(&redefine.board, change);
        }
    }
}

/// Publishes the steps one after the other, the orders they change held until the last one.
fn publish_in_turn(commands: &mut Commands, dones: &mut [StepDone], aims: &Aims, versions: &Versions<'_>) {
    let mut parts: Vec<(BoardNo, Part, PartInMemory)> = Vec::new();
    for (step, done) in commands.steps.iter().zip(dones.iter()) {
        let Some(board) = step.board() else { continue };
        for (part, _, _) in &done.moves {
            if !parts.iter().any(|known| known.0 == board.no && known.1 == *part) {
                parts.extend(aims.order_of(board, *part).map(|order| (board.no, *part, order)));
            }
        }
    }
    // Everybody who holds several takes them in one order.
    parts.sort_by_key(|one| (one.0, one.1));
    let mut held: Vec<_> =
        parts.iter().map(|(board, part, order)| (*board, *part, order.order().hold())).collect();
    for (step, done) in commands.steps.iter_mut().zip(dones.iter_mut()) {
        let ranked = matches!(step, Step::Submit(_));
        let ranks = step.board().map(|board| move_held(board, &done.moves, ranked, (&mut held, versions)));
        let ranks = ranks.unwrap_or_default();
        match (step, &mut done.reply) {
            (Step::Read(question), reply) => {
                *reply = StepReply::Read(question.ask(&Orders::held(&held)));
            }
            (Step::Submit(_), StepReply::Submitted(submitted)) => {
                submitted.rank = ranks.after;
                if let Some(previous) = &mut submitted.previous {
                    previous.rank = ranks.before;
                }
            }
            (_, _) => {}
        }
    }
    for (step, done) in commands.steps.iter().zip(dones.iter()) {
        let watched = |board: &&Arc<Board>| board.live.is_watched() && !board.is_shared();
        let Some(board) = step.board().filter(watched) else { continue };
        for (part, player, _) in done.moves.iter().filter(|(part, ..)| board.shows_live(*part)) {
            board.live.note(*part, std::iter::once(player));
        }
    }
}

/// Publishes moves in orders that are held; gives the ranks around the first if they are wanted.
fn move_held(
    board: &Board,
    moves: &[Move],
    ranked: bool,
    (held, versions): (&mut [(BoardNo, Part, LockedRanking<'_>)], &Versions<'_>),
) -> Published {
    let hidden = board.hidden.read().unwrap_or_else(PoisonError::into_inner);
    let mut first = Published::default();
    for (nth, (part, player, record)) in moves.iter().enumerate() {
        let order = held.iter_mut().find(|one| one.0 == board.no && one.1 == *part);
        let Some((_, _, order)) = order.filter(|_| !hidden.contains(player)) else { continue };
        let ranked = ranked && nth == 0;
        let moved = Movement { player: player.clone(), record: *record, ranked };
        let published = order.publish(&moved, versions.of_player(player));
        first = published.unwrap_or(first);
    }
    first
}

fn effects_by_board<'a>(
    batch: &'a [Request],
    decisions: &'a [Decision],
    aims: &Aims,
    which: Range<usize>,
) -> BTreeMap<BoardNo, Effects<'a>> {
    let mut all: BTreeMap<BoardNo, Effects<'a>> = BTreeMap::new();
    let mut add = |board: &'a Arc<Board>, owner: Option<usize>, effect: Effect<'a>| {
        all.entry(board.no).or_insert_with(|| (board, Vec::new())).1.push((owner, effect));
    };
    let some = |parts: &[(Part, Record)]| parts.iter().map(|(part, record)| (*part, Some(*record))).collect();
    for at in which {
        match (&batch[at], &decisions[at]) {
            (Request::Submit(submit), Decision::Submit { parts, replayed: None, .. }) => {
                add(&submit.board, Some(at), Effect::Move(submit.write.player.clone(), some(parts)));
            }
            (Request::Remove(remove), Decision::Remove { replayed: false }) => {
                // Only what was open: a period that is due keeps the player.
                let parts = aims.rows[at][0].parts.iter().map(|part| (*part, None)).collect();
                add(&remove.board, None, Effect::Move(remove.player.clone(), parts));
            }
            (Request::Ban(ban), Decision::Ban { replayed: false, records }) => {
                let player = ban.player.clone();
                let effect =
                    if ban.hidden { Effect::Hide(player) } else { Effect::Show(player, records.clone()) };
                add(&ban.board, None, effect);
            }
            (Request::Erase(erase), Decision::Erase { replayed: false }) => {
                for board in &erase.boards {
                    add(board, None, Effect::Move(erase.player.clone(), every_part(board)));
                    // In a contest a ban stays.
                    if !play::of(board) {
                        add(board, None, Effect::Show(erase.player.clone(), Vec::new()));
                    }
                }
            }
            (Request::Import(chunk), Decision::Import { records, .. }) => {
                for (player, parts) in records {
                    add(&chunk.board, None, Effect::Move(player.clone(), some(parts)));
                }
            }
            (Request::Commands(commands), Decision::Commands(dones)) => {
                for (step, done) in commands.steps.iter().zip(dones) {
                    if let Some(board) = step.board().filter(|_| !done.moves.is_empty()) {
                        add(board, None, Effect::Moves(&done.moves));
                    }
                }
            }
            // Refused, or done in an earlier batch: nothing moves.
            (_, _) => {}
        }
    }
    all
}

/// Every part of a board in memory, with nobody in it.
fn every_part(board: &Board) -> Vec<(Part, Option<Record>)> {
    std::iter::once(ALL_TIME)
        .chain(board.live().iter().map(|live| live.part))
        .map(|part| (part, None))
        .collect()
}

/// Effects as movements of each part's order, where a hidden player does not move. The first part of a request tells
/// its ranks.
fn movements(board: &Board, effects: Vec<(Option<usize>, Effect<'_>)>) -> BTreeMap<Part, PartMoves> {
    let mut hidden = board.hidden.write().unwrap_or_else(PoisonError::into_inner);
    let mut moves: BTreeMap<Part, PartMoves> = BTreeMap::new();
    for (owner, effect) in effects {
        let (player, parts) = match effect {
            Effect::Moves(some) => {
                for (part, player, record) in some.iter().filter(|(_, player, _)| !hidden.contains(player)) {
                    let (movements, owners) = moves.entry(*part).or_default();
                    movements.push(Movement { player: player.clone(), record: *record, ranked: false });
                    owners.push(None);
                }
                continue;
            }
            Effect::Move(player, _) if hidden.contains(&player) => continue,
            Effect::Move(player, parts) => (player, parts),
            Effect::Hide(player) => {
                hidden.insert(player.clone());
                (player, every_part(board))
            }
            Effect::Show(player, records) => {
                hidden.remove(&player);
                (player, records.into_iter().map(|(part, record)| (part, Some(record))).collect())
            }
        };
        for (nth, (part, record)) in parts.into_iter().enumerate() {
            let (movements, owners) = moves.entry(part).or_default();
            let owner = owner.filter(|_| nth == 0);
            movements.push(Movement { player: player.clone(), record, ranked: owner.is_some() });
            owners.push(owner);
        }
    }
    moves
}

/// Puts a board's new rules into force; periods of rules that stay, stay.
fn redefine_board(board: &Board, change: &Redefinition) {
    let Redefinition { definition, ends, gone } = change;
    if !definition.implicit {
        board.keep();
    }
    let mut periods = board.periods_mut();
    let mut old: HashMap<u32, RuleState> =
        periods.rules.drain(..).map(|state| (state.rule.no, state)).collect();
    let Ok(mut fresh) = Periods::new(definition) else {
        unreachable!("the definition was checked when it was decided")
    };
    for state in &mut fresh.rules {
        if let Some(before) = old.remove(&state.rule.no) {
            state.live = before.live;
            state.closed = before.closed;
        }
        let forgotten = state.live.iter().filter(|live| gone.contains(&live.part));
        forgotten.for_each(|live| live.order.forget());
        state.live.retain(|live| !gone.contains(&live.part));
        state.closed.retain(|row| !gone.contains(&row.part));
        // A present period in which nobody has scored yet has a stored end now too.
        for row in ends.iter().filter(|row| row.rule == state.rule.no) {
            if state.live(row.part).is_none() {
                let (part, rule, span) = (row.part, row.rule, row.span);
                let order = board.order_of_part(part);
                state.live.push(Arc::new(LivePart::new(part, rule, span, order)));
            }
        }
        state.live.sort_by_key(|live| live.span.start);
    }
    *periods = fresh;
}
