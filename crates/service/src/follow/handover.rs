//! Leading with the rankings of a follower.
//!
//! The database is at rest: the leader before has lost its lease, and no other server held it since. If that one told that it ends,
//! the follower has everything. Else it may have committed what it did not send any more. Leaderboards that have changed show
//! another revision, and are loaded anew. Changed records are named by marks, which the database keeps for a while, and are read by
//! their keys. Not here: whether the marks reach far enough ([`Following::can_catch_up`](super::Following::can_catch_up)).

use super::KnownOf;
use super::apply::publish;
use crate::boards::Boards;
use crate::clock::ClockReading;
use crate::contests::play;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::rebuild::{self, Rebuilt};
use crate::settings::Settings;
use crate::tally::Tally;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tally_rules::Micros;
use tally_store::{BoardNo, Changes, OutboxContent, ScoreKey, Store};

/// Records that are read at once.
const KEYS_AT_ONCE: usize = 2_000;

/// The rankings of a follower for the server that leads from now on.
#[derive(Clone, Debug)]
pub struct Handover {
    boards: Arc<Boards>,
    /// The newest instant of their records.
    newest: Micros,
    /// What is known of the leader before, if it may have committed more.
    missed: Option<KnownOf>,
}

impl Handover {
    /// Of a service that followed, and does nothing more; `has_all` if the leader has ended and nothing is missing.
    pub fn of(tally: &Tally, has_all: bool) -> Option<Self> {
        let following = tally.following.as_ref()?;
        let missed = (!has_all).then(|| following.known_of().clone());
        let newest = Micros(following.newest.load(Ordering::Acquire));
        Some(Self { boards: Arc::clone(&tally.boards), newest, missed })
    }

    /// What a start needs to know. The contests of leaderboards are read again, because a follower does not follow them.
    pub(crate) fn resume(
        &self,
        store: &dyn Store,
        settings: &Settings,
        time: ClockReading,
        progress: &Progress,
    ) -> Result<Rebuilt, Failure> {
        let mut newest = self.newest;
        if let Some(known) = &self.missed {
            let keys = self.changed_records(store)?;
            let outdated = self.outdated(store, known)?;
            newest = newest.max(self.reload((store, settings), &outdated, time, progress)?);
            newest = newest.max(self.read(store, &keys)?);
        }
        for board in self.boards.from_no(BoardNo(0), usize::MAX) {
            play::load(store, &board)?;
        }
        Ok(Rebuilt { boards: Arc::clone(&self.boards), newest, claim: None })
    }

    /// The records that marks name.
    fn changed_records(&self, store: &dyn Store) -> Result<Vec<ScoreKey>, Failure> {
        let (mut keys, mut after) = (BTreeSet::new(), None);
        loop {
            let marks = store.outbox(Duration::ZERO, after)?;
            let Some(last) = marks.last() else { return Ok(keys.into_iter().collect()) };
            after = Some(last.batch);
            for mark in marks {
                match mark.what {
                    OutboxContent::Records(some) => keys.extend(some),
                    // Too many records were changed at once to name them: their leaderboard is loaded anew.
                    OutboxContent::Windows(some) => {
                        some.iter()
                            .filter_map(|window| self.boards.by_no(window.board))
                            .for_each(|board| self.boards.set_gone(&board));
                    }
                }
            }
        }
    }

    /// Leaderboards that are not here as they are stored. One that is stored no more is removed.
    fn outdated(&self, store: &dyn Store, known: &KnownOf) -> Result<BTreeSet<BoardNo>, Failure> {
        let stored = store.board_revisions()?;
        for board in self.boards.from_no(BoardNo(0), usize::MAX) {
            if !stored.iter().any(|(no, _)| *no == board.no) {
                self.boards.set_gone(&board);
            }
        }
        let is_known = |(no, revision): &(BoardNo, u64)| {
            known.revisions.get(no) == Some(revision) && self.boards.by_no(*no).is_some()
        };
        Ok(stored.into_iter().filter(|one| !is_known(one)).map(|(no, _)| no).collect())
    }

    /// Loads these leaderboards; returns the newest instant of their records.
    fn reload(
        &self,
        (store, settings): (&dyn Store, &Settings),
        which: &BTreeSet<BoardNo>,
        time: ClockReading,
        progress: &Progress,
    ) -> Result<Micros, Failure> {
        let mut newest = self.newest;
        if which.is_empty() {
            return Ok(newest);
        }
        for row in store.boards()?.into_iter().filter(|row| which.contains(&row.no)) {
            if let Some(board) = self.boards.by_no(row.no) {
                self.boards.set_gone(&board);
            }
            let board = rebuild::load((store, &settings.ranking, false), row, time, &mut newest, progress)?;
            self.boards.set(&board.id.clone(), Some(Arc::new(board)));
        }
        Ok(newest)
    }

    /// Reads records by their keys, and makes the rankings have them; returns their newest instant.
    fn read(&self, store: &dyn Store, keys: &[ScoreKey]) -> Result<Micros, Failure> {
        let mut newest = self.newest;
        for some in keys.chunks(KEYS_AT_ONCE) {
            let states = store.states(some)?.into_iter().map(|state| state.and_then(|(record, _)| record));
            let scores: Vec<_> = some.iter().cloned().zip(states).collect();
            newest =
                scores.iter().filter_map(|(_, record)| Some(record.as_ref()?.at)).fold(newest, Micros::max);
            publish(&self.boards, &Changes { scores, ..Changes::default() });
        }
        Ok(newest)
    }
}
