//! What committed transactions change of the state that servers keep in memory: for servers that follow the writer.
//!
//! [`Changes`] are states, not operations: the newest row of each key. So applying them twice, or to a state that is newer, ends
//! right. A store with a [`CommitTap`] hands over the changes of each transaction after its commit and before its answer. For each
//! key that is the order of the commits, because a key is changed by one thread at a time. A commit in doubt is handed over when it is
//! resolved.
//!
//! Not here: their numbers and their way to other servers (`tally-service`, `follow`).

use crate::StoreError;
use crate::codec::boards::{put_board, take_board};
use crate::codec::windows::{put_record, put_window, take_record, take_window};
use crate::codec::{Input, put_bytes, put_number, put_option};
use crate::plan::{
    BanKey, BatchId, BoardChange, BoardNo, BoardRow, Committed, Loaded, ScoreKey, Window, WindowKey,
    WindowRow, WriteSet,
};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tally_rules::{BoardId, Micros, PlayerId, Record};

/// The version of the bytes of [`Changes`].
pub const CHANGES_VERSION: u8 = 1;

/// Takes the changes of committed transactions.
pub trait CommitTap: Debug + Send + Sync {
    /// A transaction begins. Returns its ticket. Cheap, as the others.
    fn begun(&self) -> u64;

    /// The changes of one transaction, as [`Changes::decode`] reads them.
    fn committed(&self, changes: Vec<u8>);

    /// A transaction has ended: its changes were handed over, or it has none, or was not done.
    fn ended(&self, ticket: u64);
}

/// What one transaction changes of the state that servers keep in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Records: the newest of each key; `None` removes it.
    pub scores: Vec<(ScoreKey, Option<Record>)>,
    /// Whether a player is banned on a board. The records of one that is shown again are among the scores.
    pub bans: Vec<(BanKey, bool)>,
    /// Periods; `None` removes one.
    pub windows: Vec<(WindowKey, Option<WindowRow>)>,
    /// Boards.
    pub boards: Vec<BoardChange>,
    /// Whether API keys have changed.
    pub keys: bool,
    /// The transaction, if its marks are kept beside it.
    pub batch: Option<BatchId>,
    /// The revision of the boards that it has changed, if it is known.
    pub revision: Option<u64>,
}

const SCORES: u8 = 1;
const BANS: u8 = 2;
const WINDOWS: u8 = 3;
const CREATED: u8 = 4;
const REDEFINED: u8 = 5;
const DELETED: u8 = 6;
const KEYS: u8 = 7;
const BATCH: u8 = 8;
const REVISION: u8 = 9;

impl Changes {
    /// The bytes of what a transaction changes; `None` if no server has any of it in memory.
    pub(crate) fn encode(changes: &WriteSet) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        put_scores(&changes.scores, &mut out);
        put_list(BANS, &changes.bans, &mut out, |(key, banned), out| {
            put_number(key.board.0.into(), out);
            put_bytes(key.player.as_bytes(), out);
            out.push((*banned).into());
        });
        put_list(WINDOWS, &changes.windows, &mut out, |(key, row), out| {
            put_number(key.board.0.into(), out);
            put_number(key.window.0, out);
            put_option(row.as_ref(), out, put_window);
        });
        for change in &changes.boards {
            put_board_change(change, &mut out);
        }
        if !changes.keys.is_empty() {
            out.push(KEYS);
        }
        Some(out).filter(|out| !out.is_empty())
    }

    /// Reads bytes of this [version](CHANGES_VERSION); `None` for any others.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut input, mut changes) = (Input::new(bytes), Self::default());
        while !input.is_empty() {
            match input.byte()? {
                SCORES => changes.scores.extend(take_list(&mut input, take_scores)?.into_iter().flatten()),
                BANS => changes.bans.extend(take_list(&mut input, |input| {
                    let key = BanKey { board: BoardNo(input.small()?), player: take_player(input)? };
                    Some((key, input.boolean()?))
                })?),
                WINDOWS => changes.windows.extend(take_list(&mut input, |input| {
                    let key = WindowKey { board: BoardNo(input.small()?), window: Window(input.number()?) };
                    Some((key, input.option(take_window)?))
                })?),
                CREATED => changes.boards.push(BoardChange::Create(take_board(&mut input)?)),
                REDEFINED => {
                    let BoardRow { no, definition, .. } = take_board(&mut input)?;
                    changes.boards.push(BoardChange::Redefine(no, definition));
                }
                DELETED => changes.boards.push(BoardChange::Delete(BoardNo(input.small()?))),
                KEYS => changes.keys = true,
                BATCH => {
                    let (link, sequence) = (input.fixed()?, input.number()?);
                    changes.batch = Some(BatchId { link, sequence, ..BatchId::default() });
                }
                REVISION => changes.revision = Some(input.number()?),
                _ => return None,
            }
        }
        Some(changes)
    }
}

/// Appends records, grouped by window: neighbours share it.
fn put_scores(scores: &[(ScoreKey, Option<Record>)], out: &mut Vec<u8>) {
    let groups: Vec<_> =
        scores.chunk_by(|(a, _), (b, _)| (a.board, a.window) == (b.board, b.window)).collect();
    put_list(SCORES, &groups, out, |group, out| {
        let (first, _) = &group[0];
        put_number(first.board.0.into(), out);
        put_number(first.window.0, out);
        put_number(group.len() as u64, out);
        for (key, record) in *group {
            put_bytes(key.player.as_bytes(), out);
            put_option(record.as_ref(), out, put_record);
        }
    });
}

fn take_scores(input: &mut Input<'_>) -> Option<Vec<(ScoreKey, Option<Record>)>> {
    let (board, window) = (BoardNo(input.small()?), Window(input.number()?));
    take_list(input, |input| {
        let key = ScoreKey { board, window, player: take_player(input)? };
        Some((key, input.option(take_record)?))
    })
}

fn take_player(input: &mut Input<'_>) -> Option<PlayerId> {
    PlayerId::new(input.text()?).ok()
}

fn put_board_change(change: &BoardChange, out: &mut Vec<u8>) {
    match change {
        BoardChange::Create(row) => {
            out.push(CREATED);
            put_board(row, out);
        }
        BoardChange::Redefine(no, definition) => {
            out.push(REDEFINED);
            // A name and a time of creation never change: only the number and the definition are read.
            let id = BoardId::new("redefined").expect("a valid name");
            let definition = definition.clone();
            put_board(&BoardRow { no: *no, id, definition, created_at: Micros(0) }, out);
        }
        BoardChange::Delete(no) => {
            out.push(DELETED);
            put_number(no.0.into(), out);
        }
    }
}

fn put_list<T>(tag: u8, rows: &[T], out: &mut Vec<u8>, mut put: impl FnMut(&T, &mut Vec<u8>)) {
    if !rows.is_empty() {
        out.push(tag);
        put_number(rows.len() as u64, out);
        rows.iter().for_each(|row| put(row, out));
    }
}

fn take_list<T>(input: &mut Input<'_>, mut take: impl FnMut(&mut Input<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = input.number()?;
    let mut rows = Vec::new();
    for _ in 0..count {
        rows.push(take(input)?);
    }
    Some(rows)
}

/// Appends what is known of the commit.
fn of_commit(mut changes: Vec<u8>, committed: &Committed) -> Vec<u8> {
    if let Some(BatchId { link, sequence, .. }) = committed.outbox {
        changes.push(BATCH);
        changes.extend(link);
        put_number(sequence, &mut changes);
    }
    if committed.revision > 0 {
        changes.push(REVISION);
        put_number(committed.revision, &mut changes);
    }
    changes
}

/// The tap of a store, and the changes whose commit is in doubt.
#[derive(Debug, Default)]
pub struct Tapped {
    tap: RwLock<Option<Arc<dyn CommitTap>>>,
    in_doubt: Mutex<BTreeMap<BatchId, (Vec<u8>, Began)>>,
}

/// A transaction that has begun, until it is dropped.
#[derive(Debug)]
struct Began {
    tap: Arc<dyn CommitTap>,
    ticket: u64,
}

impl Drop for Began {
    fn drop(&mut self) {
        self.tap.ended(self.ticket);
    }
}

impl Tapped {
    /// Sets the tap, in place of the one of an attempt to start that failed.
    pub fn set(&self, tap: Arc<dyn CommitTap>) {
        *self.tap.write().unwrap_or_else(PoisonError::into_inner) = Some(tap);
    }

    fn tap(&self) -> Option<Arc<dyn CommitTap>> {
        self.tap.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a transaction, and hands its changes over.
    pub fn run(
        &self,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
        run: impl FnOnce(&mut dyn FnMut(&Loaded) -> WriteSet) -> Result<Committed, StoreError>,
    ) -> Result<Committed, StoreError> {
        let Some(tap) = self.tap() else { return run(decide) };
        let began = Began { ticket: tap.begun(), tap: Arc::clone(&tap) };
        let mut decided = None;
        let done = run(&mut |loaded| {
            let changes = decide(loaded);
            decided = Changes::encode(&changes);
            changes
        });
        match (&done, decided) {
            (Ok(committed), Some(changes)) => tap.committed(of_commit(changes, committed)),
            (Err(StoreError::InDoubt { batch, .. }), Some(changes)) => {
                self.in_doubt().insert(*batch, (changes, began));
            }
            _ => {}
        }
        done
    }

    /// A transaction in doubt is resolved: it was done, or never will be.
    pub fn resolved(&self, batch: &BatchId, is_done: bool) {
        let Some(tap) = self.tap() else { return };
        let Some((changes, _began)) = self.in_doubt().remove(batch) else { return };
        if is_done {
            // Its revision is unknown.
            tap.committed(of_commit(changes, &Committed { outbox: Some(*batch), ..Committed::default() }));
        }
    }

    /// The transactions in doubt.
    pub fn all_in_doubt(&self) -> Vec<BatchId> {
        self.in_doubt().keys().copied().collect()
    }

    fn in_doubt(&self) -> MutexGuard<'_, BTreeMap<BatchId, (Vec<u8>, Began)>> {
        self.in_doubt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
