//! The leaderboards of a player, by name, with its ranks. It reads the rankings; with Redis it blocks, and reads many at once.
//!
//! A banned player has no rank. Its records are read from the store, so that a person can see what a ban hides. Not here: ranks in
//! closed periods, which are read one by one (`periods::view`).

use crate::boards::Board;
use crate::failure::Failure;
use crate::periods::view::View;
use crate::periods::{ALL_TIME_NAME, LiveWindow};
use crate::scores::score_key;
use crate::scores::submit::CountedWindow;
use crate::tally::Tally;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tally_ranking::{Ranked, WindowRanking};
use tally_rules::ledger::member::Handle;
use tally_rules::{BoardId, Micros, PlayerId, Record, Rejection};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, ScoreKey, Window};

/// Windows that one page reads; after that the page ends early.
const SCANNED_MAX: usize = 10_000;

/// Kept periods of one leaderboard that are looked into: the newest.
const KEPT_MAX: usize = 1_000;

/// Rankings that are read at once in Redis: few enough that no other request waits long there.
const AT_ONCE: usize = 200;

/// Records that are read at once.
pub(super) const RECORDS_AT_ONCE: usize = 1_000;

/// Which windows of a leaderboard are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowChoice {
    /// All time, on leaderboards that rank the player.
    AllTime,
    /// All time and the open periods, also on leaderboards that have banned the player.
    Open(Micros),
    /// The same, and without a window the leaderboards that have the player in other kept periods alone.
    Kept(Micros),
}

/// A leaderboard, and what it has of the player.
pub struct BoardRanks {
    /// The leaderboard.
    pub board: Arc<Board>,
    /// Whether it has banned the player.
    pub banned: bool,
    /// The windows that have a record of the player.
    pub windows: Vec<WindowRank>,
}

/// The record of the player in a window.
pub struct WindowRank {
    /// The public name of the window.
    pub period: String,
    /// The record.
    pub record: Record,
    /// The rank; `None` if the player is banned.
    pub ranked: Option<Ranked>,
}

/// What the windows of a leaderboard have of the player.
#[derive(Default)]
struct OfBoard {
    /// The number of windows that were read.
    read: usize,
    windows: Vec<WindowRank>,
    /// Whether a kept period that was not read for its rank has a record.
    is_kept: bool,
}

/// A page of leaderboards.
pub struct BoardRanksPage {
    /// The leaderboards that have the player.
    pub items: Vec<BoardRanks>,
    /// The leaderboard after which the next page begins, if there may be more.
    pub next: Option<BoardId>,
}

/// A window of a leaderboard that is open.
pub(super) struct OpenWindow {
    board: Arc<Board>,
    window: Window,
    /// `None` for all time.
    live: Option<(Arc<LiveWindow>, String)>,
}

impl OpenWindow {
    fn ranking(&self) -> &WindowRanking {
        self.live.as_ref().map_or(&self.board.ranking, |(live, _)| &live.ranking)
    }

    pub(super) fn window(&self) -> Window {
        self.window
    }

    fn into_rank(self, record: Record, ranked: Option<Ranked>) -> WindowRank {
        let period = self.live.map_or_else(|| ALL_TIME_NAME.into(), |(_, name)| name);
        WindowRank { period, record, ranked }
    }
}

/// The leaderboards after `after` that have the player.
pub fn of_player(
    tally: &Tally,
    player: &PlayerId,
    windows: WindowChoice,
    after: Option<&BoardId>,
    limit: usize,
) -> Result<BoardRanksPage, Failure> {
    let mut page = BoardRanksPage { items: Vec::new(), next: None };
    let boards = tally.boards.list(after, SCANNED_MAX);
    // In memory a batch saves nothing, so no ranking is read in vain.
    let waits = boards.first().is_some_and(|board| board.ranking.waits());
    let at_once = if waits || matches!(windows, WindowChoice::Kept(_)) { AT_ONCE } else { 1 };
    let (mut rest, mut scanned) = (boards.as_slice(), 0);
    let mut hidden = Vec::new();
    while !rest.is_empty() && page.next.is_none() {
        let (mut some, mut slots, mut kept) = (0, Vec::new(), Vec::new());
        let mut kept_count = 0;
        while some < rest.len() && (some == 0 || slots.len() < at_once && kept_count < RECORDS_AT_ONCE) {
            slots.extend(slots_of(&rest[some], windows));
            if matches!(windows, WindowChoice::Kept(_)) {
                let of_board = rest[some].periods().newest_windows(KEPT_MAX);
                kept_count += of_board.len();
                kept.push((rest[some].no, of_board));
            }
            some += 1;
        }
        let mut found = read(player, slots)?;
        note_kept(tally, player, kept, &mut found)?;
        for board in &rest[..some] {
            let of_board = found.remove(&board.no).unwrap_or_default();
            scanned += of_board.read.max(1);
            let banned = windows != WindowChoice::AllTime && board.is_banned(player);
            if banned || !of_board.windows.is_empty() || of_board.is_kept {
                let windows = if banned { Vec::new() } else { of_board.windows };
                hidden.extend(banned.then_some(page.items.len()));
                page.items.push(BoardRanks { board: Arc::clone(board), banned, windows });
            }
            let is_last = boards.last().is_some_and(|last| last.no == board.no);
            let is_over = page.items.len() == limit || scanned >= SCANNED_MAX;
            // A list that was cut may go on after its last board.
            if is_over && !is_last || is_last && boards.len() == SCANNED_MAX {
                page.next = Some(board.id.clone());
                break;
            }
        }
        rest = &rest[some..];
    }
    show_hidden(tally, player, &mut page.items, &hidden, windows)?;
    Ok(page)
}

/// What some windows have, by leaderboard.
type ByBoard = HashMap<BoardNo, OfBoard>;

fn read(player: &PlayerId, slots: Vec<OpenWindow>) -> Result<ByBoard, Failure> {
    let rankings: Vec<(&WindowRanking, &PlayerId)> =
        slots.iter().map(|slot| (slot.ranking(), player)).collect();
    let answers = WindowRanking::ranked_in(&rankings);
    let mut found = ByBoard::new();
    for (slot, ranked) in slots.into_iter().zip(answers) {
        let of_board = found.entry(slot.board.no).or_default();
        of_board.read += 1;
        if let Some(ranked) = ranked? {
            of_board.windows.push(slot.into_rank(ranked.record, Some(ranked)));
        }
    }
    Ok(found)
}

/// Looks into these kept periods of the leaderboards that have the player in none of the windows read.
fn note_kept(
    tally: &Tally,
    player: &PlayerId,
    kept: Vec<(BoardNo, Vec<Window>)>,
    found: &mut ByBoard,
) -> Result<(), Failure> {
    let mut keys: Vec<ScoreKey> = Vec::new();
    for (board, windows) in kept {
        let of_board = found.entry(board).or_default();
        if of_board.windows.is_empty() {
            of_board.read += windows.len();
            keys.extend(windows.into_iter().map(|window| score_key(board, window, player)));
        }
    }
    keys.sort_unstable();
    for some in keys.chunks(RECORDS_AT_ONCE) {
        let records = tally.store.records(some)?;
        for (key, _) in some.iter().zip(records).filter(|(_, record)| record.is_some()) {
            found.entry(key.board).or_default().is_kept = true;
        }
    }
    Ok(())
}

/// The windows of a leaderboard that are read, all time first.
pub(super) fn slots_of(board: &Arc<Board>, windows: WindowChoice) -> Vec<OpenWindow> {
    let slot = |window, live| OpenWindow { board: Arc::clone(board), window, live };
    let mut slots = Vec::new();
    if windows == WindowChoice::AllTime || board.definition.all_time {
        slots.push(slot(ALL_TIME, None));
    }
    let (WindowChoice::Open(now) | WindowChoice::Kept(now)) = windows else { return slots };
    for state in &board.periods().rules {
        let Some(span) = state.span_at(now) else { continue };
        let window = state.target(span).window;
        if let Some(live) = state.live(window) {
            slots.push(slot(window, Some((Arc::clone(live), state.name(span.start)))));
        }
    }
    slots
}

/// Gives the leaderboards that have banned the player its records, which no ranking has.
fn show_hidden(
    tally: &Tally,
    player: &PlayerId,
    items: &mut [BoardRanks],
    hidden: &[usize],
    windows: WindowChoice,
) -> Result<(), Failure> {
    let mut wanted: Vec<(ScoreKey, usize, OpenWindow)> = Vec::new();
    for at in hidden {
        let slots = slots_of(&items[*at].board, windows).into_iter();
        wanted.extend(slots.map(|slot| (score_key(slot.board.no, slot.window, player), *at, slot)));
    }
    let records = records_of(tally, wanted.iter().map(|(key, ..)| key.clone()).collect())?;
    for (key, at, slot) in wanted {
        items[at].windows.extend(records.get(&key).map(|record| slot.into_rank(*record, None)));
    }
    Ok(())
}

/// The stored records under these keys, in any order. Blocks.
fn records_of(tally: &Tally, mut keys: Vec<ScoreKey>) -> Result<BTreeMap<ScoreKey, Record>, Failure> {
    keys.sort_unstable();
    keys.dedup();
    let mut records = BTreeMap::new();
    for some in keys.chunks(RECORDS_AT_ONCE) {
        let found = some.iter().zip(tally.store.records(some)?);
        records.extend(found.filter_map(|(key, record)| Some((key.clone(), record?))));
    }
    Ok(records)
}

/// A query for one rank.
pub struct RankQuery {
    /// The leaderboard.
    pub board: BoardId,
    /// The player.
    pub player: PlayerId,
    /// The window, as [`View::find`] reads it.
    pub period: Option<String>,
}

/// A window, and the rank in it if there is one.
pub type Found = (View, Option<Ranked>);

/// The answer to each query, or its own failure. Windows in Redis are read at once, closed periods one by one. Blocks.
pub fn of_many(
    tally: &Tally,
    queries: &[RankQuery],
    instant: impl Fn(&str) -> Option<Micros>,
) -> Vec<Result<Found, Failure>> {
    let now = tally.now();
    let find = |one: &RankQuery| {
        let board = tally.boards.find(&one.board)?;
        View::find(&board, one.period.as_deref(), now, &instant)
    };
    let views: Vec<Result<View, Rejection>> = queries.iter().map(find).collect();
    let items: Vec<(&WindowRanking, &PlayerId)> = views
        .iter()
        .zip(queries)
        .filter_map(|(view, one)| Some((view.as_ref().ok()?.ranking()?, &one.player)))
        .collect();
    let mut ranked = WindowRanking::ranked_in(&items).into_iter();
    let answer = |(view, one): (Result<View, Rejection>, &RankQuery)| {
        let view = view?;
        let ranked = match view.ranking() {
            Some(_) => ranked.next().expect("an answer for each query")?,
            None => view.read(&*tally.store, |ranking| ranking.ranked(&one.player))?,
        };
        Ok((view, ranked))
    };
    views.into_iter().zip(queries).map(answer).collect()
}

/// The windows that a submit counted for, by leaderboard and player.
pub type Counted = (BoardId, PlayerId, Vec<CountedWindow>);

/// The ranks of now in the windows that each submit counted for. A window is left out if its ranking cannot be read now, or if a retry finds
/// no record there. Blocks.
pub fn of_counted(tally: &Tally, submits: Vec<Counted>) -> Vec<Vec<WindowRank>> {
    let of_submit = |(board, player, windows): &Counted| {
        let one = |window: &CountedWindow| RankQuery {
            board: board.clone(),
            player: player.clone(),
            period: Some(window.period.clone()),
        };
        windows.iter().map(one).collect::<Vec<_>>()
    };
    let queries: Vec<RankQuery> = submits.iter().flat_map(of_submit).collect();
    let found: Vec<Result<Found, Failure>> =
        queries.chunks(AT_ONCE).flat_map(|some| of_many(tally, some, |_| None)).collect();
    // No ranking has the record of a banned player, and a retry does not know it.
    let hidden = |((window, one), found): ((&CountedWindow, &RankQuery), &Result<Found, Failure>)| {
        let (view, ranked) = found.as_ref().ok()?;
        let is_hidden = window.record.is_none() && ranked.is_none() && view.board.is_banned(&one.player);
        let window = view.window().filter(|_| is_hidden)?;
        Some(score_key(view.board.no, window, &one.player))
    };
    let windows = submits.iter().flat_map(|(.., windows)| windows);
    let keys: Vec<Option<ScoreKey>> = windows.zip(&queries).zip(&found).map(hidden).collect();
    let stored = records_of(tally, keys.iter().flatten().cloned().collect()).unwrap_or_default();
    let mut found = found.into_iter().zip(keys);
    let mut rank = |window: CountedWindow| {
        let (found, key) = found.next().expect("an answer for each query");
        let (_, ranked) = found.ok()?;
        let known = ranked.as_ref().map(|ranked| ranked.record).or(window.record);
        let record = known.or_else(|| stored.get(&key?).copied())?;
        Some(WindowRank { period: window.period, record, ranked })
    };
    submits.into_iter().map(|(.., windows)| windows.into_iter().filter_map(&mut rank).collect()).collect()
}

/// Whether anything is known of a player without a profile: a member, an open score, a ban, or a score in the kept periods that one
/// page reads. Blocks.
pub fn is_known(tally: &Tally, player: &PlayerId) -> Result<bool, Failure> {
    if tally.store.ledger().member_of(&Handle::Player(player.clone()))?.is_some() {
        return Ok(true);
    }
    let now = tally.now();
    // Most players have an open score, which costs less to find.
    let mut after = None;
    loop {
        let page = of_player(tally, player, WindowChoice::Open(now), after.as_ref(), 1)?;
        match page.next {
            _ if !page.items.is_empty() => return Ok(true),
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok(!of_player(tally, player, WindowChoice::Kept(now), None, 1)?.items.is_empty())
}
