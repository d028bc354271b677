//! Reading a window of a leaderboard: all time, a period in memory, or a closed one from its archive.

use super::archive::StoredWindow;
use super::prizes::has_prizes;
use super::{ALL_TIME_NAME, LiveWindow};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::scores::WindowInMemory;
use crate::servers;
use std::sync::Arc;
use tally_ranking::{ArchivedRanking, MemoryRanking, Reads, WindowRanking};
use tally_rules::period::TimeSpan;
use tally_rules::{Micros, Rejection};
use tally_store::plan::ALL_TIME;
use tally_store::{Store, Window, WindowRow};

/// The open period, whatever it is.
const PREVIOUS: &str = "previous";

/// A window of a leaderboard, to be read.
#[derive(Clone, Debug)]
pub struct View {
    /// The leaderboard that it belongs to.
    pub board: Arc<Board>,
    /// The public name of the window.
    pub name: String,
    of: Of,
}

#[derive(Clone, Debug)]
enum Of {
    AllTime,
    Live(Arc<LiveWindow>),
    /// Open or the one before, and without scores, as far as this server knows.
    Empty(Window),
    ArchivedRanking(WindowRow),
}

/// One line of the list of periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The public name of the period.
    pub period: String,
    /// The rule's name.
    pub name: String,
    /// Its first instant.
    pub start: Micros,
    /// The first instant of the next.
    pub end: Micros,
    /// `open`, `closing` from its end on, `closed` once that is stored.
    pub state: &'static str,
    /// How many players it has.
    pub total: u64,
}

impl View {
    /// The window of a name: nothing and `all_time`, `weekly`, `weekly:previous`, `weekly:2026-11-16`, or `weekly:` and
    /// an instant. `instant` reads RFC 3339.
    pub fn find(
        board: &Arc<Board>,
        period: Option<&str>,
        now: Micros,
        instant: impl Fn(&str) -> Option<Micros>,
    ) -> Result<Self, Rejection> {
        let periods = board.periods();
        let all_time = || Self { board: Arc::clone(board), name: ALL_TIME_NAME.into(), of: Of::AllTime };
        let text = match period {
            None | Some(ALL_TIME_NAME) if board.definition.all_time => return Ok(all_time()),
            None | Some(ALL_TIME_NAME) => periods.rules.first().map(|state| state.rule.name.clone()),
            Some(text) => Some(text.to_owned()),
        };
        let text = text.ok_or(Rejection::PeriodNotFound)?;
        let (name, which) =
            text.split_once(':').map_or((text.as_str(), None), |(name, which)| (name, Some(which)));
        let (state, which) = match periods.rule(name) {
            Some(state) => (state, which),
            // A date or an instant alone is that of the first period.
            None => (periods.rules.first().ok_or(Rejection::PeriodNotFound)?, Some(text.as_str())),
        };
        let current = state.span_at(now).ok_or(Rejection::PeriodNotFound)?;
        let at = match which {
            None => now,
            Some(PREVIOUS) => current.start.plus(-1),
            Some(text) => state
                .calendar
                .local_instant(text)
                .or_else(|| instant(text))
                .ok_or(Rejection::PeriodNotFound)?,
        };
        let span = state.span_at(at).ok_or(Rejection::PeriodNotFound)?;
        let window = state.target(span).window;
        let of = if let Some(live) = state.live(window) {
            Of::Live(Arc::clone(live))
        } else if let Some(row) = state.closed.iter().find(|row| row.window == window && row.version > 0) {
            Of::ArchivedRanking(*row)
        } else if span == current || (which == Some(PREVIOUS) && state.rule.keep > 0) {
            Of::Empty(window)
        } else {
            return Err(Rejection::PeriodNotFound);
        };
        Ok(Self { board: Arc::clone(board), name: state.name(span.start), of })
    }

    /// A closed window that is archived, under its name.
    pub(crate) fn of_closed(board: &Arc<Board>, name: &str, row: WindowRow) -> Self {
        Self { board: Arc::clone(board), name: name.to_owned(), of: Of::ArchivedRanking(row) }
    }

    /// Whether reading it blocks on the store.
    pub fn blocks(&self) -> bool {
        match &self.of {
            Of::AllTime => self.board.ranking.waits(),
            Of::Live(live) => live.ranking.waits(),
            Of::Empty(_) => self.board.is_shared(),
            Of::ArchivedRanking(_) => true,
        }
    }

    /// Its ranking, if it is in memory or in Redis.
    pub(crate) fn ranking(&self) -> Option<&WindowRanking> {
        match &self.of {
            Of::AllTime => Some(&self.board.ranking),
            Of::Live(live) => Some(&live.ranking),
            Of::Empty(_) | Of::ArchivedRanking(_) => None,
        }
    }

    /// Its ranking, if it is an open one.
    pub(crate) fn in_memory(&self) -> Option<WindowInMemory> {
        match &self.of {
            Of::AllTime => Some(WindowInMemory::AllTime(Arc::clone(&self.board))),
            Of::Live(live) => Some(WindowInMemory::Live(Arc::clone(live))),
            Of::Empty(_) | Of::ArchivedRanking(_) => None,
        }
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        match &self.of {
            Of::ArchivedRanking(row) => row.total,
            Of::Empty(_) => 0,
            Of::AllTime => self.board.ranking.total(),
            Of::Live(live) => live.ranking.total(),
        }
    }

    /// Its number; `None` if it has no scores yet.
    pub fn window(&self) -> Option<Window> {
        match &self.of {
            Of::AllTime => Some(ALL_TIME),
            Of::Live(live) => Some(live.window),
            Of::ArchivedRanking(row) => Some(row.window),
            Of::Empty(_) => None,
        }
    }

    /// Reads it; again if the archive of a closed window was rewritten during the read.
    pub fn read<T>(&self, store: &dyn Store, with: impl Fn(&dyn Reads) -> T) -> Result<T, Failure> {
        self.read_once(store, &with).or_else(|failure| self.read_anew(store, with, failure))
    }

    /// Reads its present replacement after this failure; if there is none, the failure stays.
    pub fn read_anew<T>(
        &self,
        store: &dyn Store,
        with: impl Fn(&dyn Reads) -> T,
        mut failure: Failure,
    ) -> Result<T, Failure> {
        let mut newer: Option<Self> = None;
        loop {
            let row = newer.as_ref().unwrap_or(self).renewed(store)?.ok_or(failure)?;
            let view = newer.insert(Self { of: Of::ArchivedRanking(row), ..self.clone() });
            failure = match view.read_once(store, &with) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
        }
    }

    /// Reads it without blocking a thread, if it is in Redis; see [`read_anew`](Self::read_anew) after a failure.
    pub async fn read_later<T>(&self, with: impl Fn(&dyn Reads) -> T) -> Option<Result<T, Failure>> {
        Some(self.ranking()?.remote()?.read_later(with).await.map_err(Failure::from))
    }

    /// Reads it once; see [`is_stale`](Self::is_stale) after a failure.
    pub fn read_once<T>(&self, store: &dyn Store, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, Failure> {
        match &self.of {
            Of::AllTime => Ok(self.board.ranking.read(with)?),
            Of::Live(live) => Ok(live.ranking.read(with)?),
            Of::Empty(window) => {
                // Another server may have opened or closed it a moment ago.
                servers::renew(store, &self.board)?;
                let periods = self.board.periods();
                if let Some(row) = periods.closed(*window).filter(|row| row.version > 0) {
                    return Self { of: Of::ArchivedRanking(*row), ..self.clone() }.read_once(store, with);
                }
                let live = periods.live(*window).cloned();
                match live.filter(|live| live.ranking.waits()) {
                    Some(live) => Ok(live.ranking.read(with)?),
                    None => Ok(MemoryRanking::new(&self.board.definition).read(with)),
                }
            }
            Of::ArchivedRanking(row) => {
                if self.board.is_lagging(row.window) {
                    let why = "a closed period has changed, and its archive is not rewritten yet";
                    return Err(Fault::RanksUnavailable(why.into()).into());
                }
                let source = StoredWindow { store, board: self.board.no, row: *row };
                Ok(ArchivedRanking::new(&self.board.definition, row.total, &source).read(with)?)
            }
        }
    }

    /// Whether the archive of this closed window was rewritten since the view was found.
    pub fn is_stale(&self, store: &dyn Store) -> bool {
        self.renewed(store).is_ok_and(|row| row.is_some())
    }

    /// The newer archive of a window that is closed by now, if there is one; rejected if the window is deleted. Another
    /// server may have written it.
    fn renewed(&self, store: &dyn Store) -> Result<Option<WindowRow>, Failure> {
        let (window, version) = match &self.of {
            Of::ArchivedRanking(row) => (row.window, row.version),
            Of::Live(live) if live.ranking.waits() => (live.window, 0),
            Of::AllTime | Of::Live(_) | Of::Empty(_) => return Ok(None),
        };
        servers::renew(store, &self.board)?;
        let periods = self.board.periods();
        match periods.closed(window) {
            Some(present) if present.version > version => Ok(Some(*present)),
            None if periods.live(window).is_none() => Err(Rejection::PeriodNotFound.into()),
            _ => Ok(None),
        }
    }
}

/// Every period of a board, newest first; past ones without players are not there, unless they have prizes.
pub fn list(board: &Board, now: Micros) -> Vec<Listed> {
    list_with(board, now, |live| live.ranking.total())
}

/// The same for a caller that holds some of the rankings and knows their numbers of players.
pub fn list_with(board: &Board, now: Micros, total: impl Fn(&LiveWindow) -> u64) -> Vec<Listed> {
    let periods = board.periods();
    let mut all = Vec::new();
    for state in &periods.rules {
        let listed = |span: TimeSpan, total: u64| Listed {
            period: state.name(span.start),
            name: state.rule.name.clone(),
            start: span.start,
            end: span.end,
            // By the stored state: a clock that is ahead closes nothing.
            state: match now {
                _ if state.is_closed(span) => "closed",
                now if now < span.end => "open",
                _ => "closing",
            },
            total,
        };
        // A ban may take the last player of a closed period. What the period pays stays.
        let is_shown = |row: &&WindowRow| row.version > 0 && (row.total > 0 || has_prizes(state, row));
        all.extend(state.closed.iter().filter(is_shown).map(|row| listed(row.span, row.total)));
        let has_some = |one: &Listed| one.total > 0 || one.state == "open";
        all.extend(state.live.iter().map(|live| listed(live.span, total(live))).filter(has_some));
        let known = |span: &TimeSpan| {
            state.live(state.target(*span).window).is_some() || state.closed(*span).is_some()
        };
        let current = state.span_at(now).filter(|span| !known(span));
        all.extend(current.map(|span| listed(span, 0)).filter(has_some));
    }
    all.sort_by(|a, b| (b.start, &a.name).cmp(&(a.start, &b.name)));
    all
}
