//! Boards: the live ones by name, and putting and deleting them.

use crate::failure::Failure;
use crate::keys::seen_before;
use crate::periods::{Periods, order};
use crate::scores::command::{Done, Redefine, Request};
use crate::tally::Tally;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tally_ranking::{Ranking, Standings};
use tally_rules::definition::Wish;
use tally_rules::idempotency::{Identity, Seen, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::{BoardId, Definition, Micros, PlayerId, Refusal};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardChange, BoardNo, BoardRow, Changes, Loaded, Part, Plan, ShardSet, Store};

/// How many boards a suggestion is chosen from.
const NEAREST_AMONG: usize = 200;
/// How many letters a suggestion may be away.
const NEAREST_MAX: usize = 3;

/// A live board.
#[derive(Debug)]
pub struct Board {
    /// Its number in the store.
    pub no: BoardNo,
    /// Its name.
    pub id: BoardId,
    /// What it is.
    pub definition: Definition,
    /// When it was created.
    pub created_at: Micros,
    /// The order over all time, without those who are hidden.
    pub order: Standings,
    /// Where its orders are kept.
    ranking: Ranking,
    /// Players who are hidden here. Changed by the lane only, with the order; it is not asked when a batch is decided,
    /// because a hidden player's submits count like any other.
    pub(crate) hidden: RwLock<HashSet<PlayerId>>,
    /// Whether it was made by its first score; a wish for it ends that.
    implicit: AtomicBool,
    /// Its periods; in `definition` are those of its creation.
    periods: RwLock<Periods>,
}

impl Board {
    /// A board without records; refused where a schedule cannot be read.
    pub fn new(row: BoardRow, hidden: Vec<PlayerId>, ranking: &Ranking) -> Result<Self, Refusal> {
        let order = ranking.of_part(row.no.0, ALL_TIME.0, &row.definition);
        let ranking = ranking.clone();
        let hidden = RwLock::new(hidden.into_iter().collect());
        let periods = RwLock::new(Periods::new(&row.definition).map_err(Refusal::InvalidDefinition)?);
        let BoardRow { no, id, definition, created_at } = row;
        let implicit = AtomicBool::new(definition.implicit);
        Ok(Self { no, id, definition, created_at, order, ranking, hidden, implicit, periods })
    }

    /// The order of a part that is new to this process.
    pub(crate) fn order_of_part(&self, part: Part) -> Standings {
        self.ranking.of_part(self.no.0, part.0, &self.definition)
    }

    /// What is kept of its orders elsewhere is not needed any more.
    pub(crate) fn forget_orders(&self) {
        self.order.forget();
        self.periods().rules.iter().flat_map(|state| &state.live).for_each(|live| live.order.forget());
    }

    /// Whether anybody may see it: one that was made by its first score is gone with its last player,
    /// shown or hidden.
    pub fn is_there(&self) -> bool {
        let hides = || !self.hidden.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        !self.is_implicit() || self.order.total() > 0 || hides()
    }

    /// Whether it was made by its first score, and nobody has wished for it since.
    pub fn is_implicit(&self) -> bool {
        self.implicit.load(Ordering::Acquire)
    }

    /// It stays from now on, with players or without.
    pub(crate) fn keep(&self) {
        self.implicit.store(false, Ordering::Release);
    }

    /// Its periods now.
    pub fn periods(&self) -> RwLockReadGuard<'_, Periods> {
        self.periods.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the lane and the keeper.
    pub(crate) fn periods_mut(&self) -> RwLockWriteGuard<'_, Periods> {
        self.periods.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The definition with its present periods.
    pub fn present_definition(&self) -> Definition {
        let periods = self.periods();
        Definition {
            periods: periods.rules.iter().map(|state| state.rule.clone()).collect(),
            rules_given: periods.rules_given,
            implicit: self.is_implicit(),
            ..self.definition.clone()
        }
    }

    /// Whether a player is hidden here.
    pub fn hides(&self, player: &PlayerId) -> bool {
        self.hidden.read().unwrap_or_else(PoisonError::into_inner).contains(player)
    }
}

/// Live boards by name and by number.
#[derive(Debug, Default)]
pub struct Boards {
    all: RwLock<Registry>,
    /// Changes with every board that comes or goes.
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct Registry {
    by_id: BTreeMap<BoardId, Arc<Board>>,
    by_no: BTreeMap<BoardNo, Arc<Board>>,
}

impl Boards {
    /// The board of that name, also one that has no players and is not [there](Board::is_there).
    pub fn get<Q: Ord + ?Sized>(&self, id: &Q) -> Option<Arc<Board>>
    where
        BoardId: Borrow<Q>,
    {
        self.read().by_id.get(id).cloned()
    }

    /// Whether a board is still the one of its name: orders of others may be gone, and who asked too late is told so.
    pub fn has(&self, board: &Board) -> bool {
        self.read().by_no.contains_key(&board.no)
    }

    /// Whoever remembers a board asks whether this has changed.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The board of that name, or a refusal that says which name is near.
    pub fn find(&self, id: &BoardId) -> Result<Arc<Board>, Refusal> {
        let found = self.get(id).filter(|board| board.is_there());
        found.ok_or_else(|| Refusal::LeaderboardNotFound(self.nearest(id)))
    }

    /// A name that is a slip of the finger away, among the first ones only: a guess is not worth a walk.
    fn nearest(&self, id: &BoardId) -> Option<String> {
        let distance = |board: &Arc<Board>| strsim::damerau_levenshtein(board.id.as_str(), id.as_str());
        let boards = self.list(None, NEAREST_AMONG);
        let (far, board) = boards.iter().map(|board| (distance(board), board)).min_by_key(|(far, _)| *far)?;
        (far <= NEAREST_MAX).then(|| board.id.as_str().to_owned())
    }

    /// Boards in order of their names' bytes, at most `limit`, from the first after `after`.
    pub fn list(&self, after: Option<&BoardId>, limit: usize) -> Vec<Arc<Board>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.read();
        let there = all.by_id.range::<BoardId, _>((from, Bound::Unbounded)).map(|(_, board)| board);
        there.filter(|board| board.is_there()).take(limit).cloned().collect()
    }

    /// Boards in order of number, at most `limit`, from the first that is not before `from`; all that were there all
    /// the while are met by a walk.
    pub fn from_no(&self, from: BoardNo, limit: usize) -> Vec<Arc<Board>> {
        self.read().by_no.range(from..).take(limit).map(|(_, board)| Arc::clone(board)).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.read().by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn insert(&self, board: Arc<Board>) {
        let mut all = self.write();
        all.by_no.insert(board.no, Arc::clone(&board));
        let old = all.by_id.insert(board.id.clone(), board);
        if let Some(old) = &old {
            all.by_no.remove(&old.no);
        }
        drop(all);
        if let Some(old) = old {
            old.forget_orders();
        }
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    fn remove(&self, id: &BoardId) {
        let mut all = self.write();
        let old = all.by_id.remove(id);
        if let Some(old) = &old {
            all.by_no.remove(&old.no);
        }
        drop(all);
        if let Some(old) = old {
            old.forget_orders();
        }
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    fn read(&self) -> RwLockReadGuard<'_, Registry> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of putting a board.
#[derive(Clone, Debug)]
pub struct Put {
    /// The board.
    pub board: Arc<Board>,
    /// Whether it is new.
    pub created: bool,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}

/// Creates a board, finds that it is there as wished, or changes its periods. Blocks on the store and the lane.
pub fn put(tally: &Tally, id: &BoardId, wish: &Wish, identity: Option<&Identity>) -> Result<Put, Failure> {
    let running = identity.map(|one| tally.running.begin(&one.key)).transpose()?;
    let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
    if id.is_reserved() {
        return Err(Refusal::ReservedName.into());
    }
    if let Some(board) = tally.boards.get(id).filter(|board| board.is_there()) {
        let identity = identity.cloned();
        let request = Request::Redefine(Redefine { board: Arc::clone(&board), wish: wish.clone(), identity });
        let done = tokio::runtime::Handle::current().block_on(tally.lane.ask(request, running))?;
        let Done::Redefined { created, replayed } = done else {
            unreachable!("a redefinition is answered as one")
        };
        return Ok(Put { board, created, replayed });
    }
    create(tally, id, || wish.create(), identity)
}

/// The board of that name, made as a sorted set if there is none. Blocks on the store.
pub fn sorted_set(tally: &Tally, id: &BoardId) -> Result<Arc<Board>, Failure> {
    let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
    if id.is_reserved() {
        return Err(Refusal::ReservedName.into());
    }
    match tally.boards.get(id) {
        Some(board) => Ok(board),
        None => Ok(create(tally, id, || Ok(Definition::sorted_set()), None)?.board),
    }
}

/// Makes a board, in place of one of that name that is not there any more.
fn create(
    tally: &Tally,
    id: &BoardId,
    definition: impl Fn() -> Result<Definition, Refusal>,
    identity: Option<&Identity>,
) -> Result<Put, Failure> {
    let now = tally.now();
    if tally.boards.len() >= tally.settings.boards_max {
        sweep(tally)?;
    }
    let full = tally.boards.len() >= tally.settings.boards_max;
    let mut new = None;
    let stored = tally.once(&plan(id, identity), identity, now, |loaded, changes| {
        if full {
            return Err(Refusal::TooManyBoards);
        }
        let row =
            BoardRow { no: loaded.next_board, id: id.clone(), definition: definition()?, created_at: now };
        new = Some(Board::new(row.clone(), Vec::new(), &tally.settings.ranking)?);
        changes.boards.extend(loaded.board_names[0].iter().map(|old| BoardChange::Delete(old.no)));
        changes.boards.push(BoardChange::Create(row));
        Ok(Outcome::BoardPut { created: true })
    })?;
    if let (None, Some(board)) = (&stored, new) {
        let board = Arc::new(board);
        if board.definition.all_time {
            // Where that fails it is done again with the next look at what is behind.
            drop(order::begin(&*tally.store, &board, ALL_TIME, &board.order));
        }
        tally.boards.insert(Arc::clone(&board));
        return Ok(Put { board, created: true, replayed: false });
    }
    // It was deleted since: the first answer showed it new and empty.
    let created_at = stored.as_ref().map_or(now, |stored| stored.at);
    let row = BoardRow { no: BoardNo(0), id: id.clone(), definition: definition()?, created_at };
    let created = stored.is_some_and(|stored| matches!(stored.outcome, Outcome::BoardPut { created: true }));
    Ok(Put { board: Arc::new(Board::new(row, Vec::new(), &Ranking::Memory)?), created, replayed: true })
}

/// Lets boards go that nobody sees any more: they stay until their room is needed. Whoever is about to write to one is
/// told by the lane that it is gone, and makes it again.
fn sweep(tally: &Tally) -> Result<(), Failure> {
    let unseen = tally.boards.from_no(BoardNo(0), usize::MAX).into_iter().filter(|board| !board.is_there());
    for board in unseen {
        let id = board.id.clone();
        let asked = tokio::runtime::Handle::current().block_on(tally.lane.ask(Request::Vanish(board), None));
        if matches!(asked?, Done::Vanished(true)) {
            tally.boards.remove(&id);
        }
    }
    tally.maintenance.wake();
    Ok(())
}

/// Deletes a board. Blocks on the store. Says whether it was a replay.
pub fn delete(tally: &Tally, id: &BoardId, identity: Option<&Identity>) -> Result<bool, Failure> {
    let _running = identity.map(|one| tally.running.begin(&one.key)).transpose()?;
    let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
    let now = (tally.clock)();
    let stored = tally.once(&plan(id, identity), identity, now, |loaded, changes| {
        let there = tally.boards.get(id).is_some_and(|board| board.is_there());
        let present = loaded.board_names[0].as_ref().filter(|_| there);
        let present = present.ok_or(Refusal::LeaderboardNotFound(None))?;
        changes.boards.push(BoardChange::Delete(present.no));
        Ok(Outcome::Removed)
    })?;
    if stored.is_none() {
        tally.boards.remove(id);
        tally.maintenance.wake();
    }
    Ok(stored.is_some())
}

fn plan(id: &BoardId, identity: Option<&Identity>) -> Plan {
    Plan {
        board_names: vec![id.clone()],
        requests: identity.iter().map(|one| one.key.clone()).collect(),
        // Of no player.
        shards: ShardSet::of(0),
        ..Plan::default()
    }
}

/// Runs a change and stores its outcome under its identity, in one transaction; gives what was stored where the same
/// request was done before, and then changes nothing.
pub(crate) fn run_once(
    store: &dyn Store,
    plan: &Plan,
    identity: Option<&Identity>,
    now: Micros,
    keep_micros: i64,
    mut change: impl FnMut(&Loaded, &mut Changes) -> Result<Outcome, Refusal>,
) -> Result<Option<Stored>, Failure> {
    let mut result = Ok(None);
    store.run(plan, &mut |loaded| {
        let mut changes = Changes::default();
        let stored = loaded.requests.first().and_then(Option::as_ref);
        let done = match seen_before(identity, stored, now, keep_micros) {
            Ok(Seen::Replay(_)) => {
                result = Ok(stored.cloned());
                return changes;
            }
            Ok(Seen::New) => change(loaded, &mut changes),
            Err(refusal) => Err(refusal),
        };
        match done {
            Ok(outcome) => {
                result = Ok(None);
                changes.requests.extend(
                    identity.map(|one| {
                        (one.key.clone(), Stored { fingerprint: one.fingerprint, at: now, outcome })
                    }),
                );
                changes
            }
            Err(refusal) => {
                result = Err(refusal);
                Changes::default()
            }
        }
    })?;
    Ok(result?)
}
