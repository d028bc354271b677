//! Reading a part of a board: all time, a period in memory, or a closed one from its blocks.

use super::order::StoredPart;
use super::{ALL_TIME_NAME, LivePart};
use crate::boards::Board;
use crate::failure::Failure;
use std::sync::Arc;
use tally_ranking::{Among, Closed, Page, PageQuery, PartOrder, Ranked};
use tally_rules::period::Span;
use tally_rules::{Micros, PlayerId, Record, Refusal};
use tally_store::{PartRow, Store, StoreError};

/// The open period, whatever it is.
const PREVIOUS: &str = "previous";

/// One part of a board, to be read.
#[derive(Clone, Debug)]
pub struct View {
    /// The board.
    pub board: Arc<Board>,
    /// What users call the part.
    pub name: String,
    of: Of,
}

#[derive(Clone, Debug)]
enum Of {
    AllTime,
    Live(Arc<LivePart>),
    /// Open, and nobody has scored yet.
    Empty,
    Closed(PartRow),
}

/// One line of the list of periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What users call it.
    pub period: String,
    /// The rule's name.
    pub name: String,
    /// Its first instant.
    pub start: Micros,
    /// The first instant of the next.
    pub end: Micros,
    /// `open`, `closing` or `closed`.
    pub state: &'static str,
    /// How many players it has.
    pub total: u64,
}

impl View {
    /// The part that a name stands for: nothing and `all_time`, `weekly`, `weekly:previous`, `weekly:2026-11-16`,
    /// or `weekly:` and an instant. `instant` reads RFC 3339.
    pub fn find(
        board: &Arc<Board>,
        period: Option<&str>,
        now: Micros,
        instant: impl Fn(&str) -> Option<Micros>,
    ) -> Result<Self, Refusal> {
        let periods = board.periods();
        let all_time = || Self { board: Arc::clone(board), name: ALL_TIME_NAME.into(), of: Of::AllTime };
        let text = match period {
            None | Some(ALL_TIME_NAME) if board.definition.all_time => return Ok(all_time()),
            None | Some(ALL_TIME_NAME) => periods.rules.first().map(|state| state.rule.name.clone()),
            Some(text) => Some(text.to_owned()),
        };
        let text = text.ok_or(Refusal::PeriodNotFound)?;
        let (name, which) =
            text.split_once(':').map_or((text.as_str(), None), |(name, which)| (name, Some(which)));
        let (state, which) = match periods.rule(name) {
            Some(state) => (state, which),
            // A date or an instant alone is that of the first period.
            None => (periods.rules.first().ok_or(Refusal::PeriodNotFound)?, Some(text.as_str())),
        };
        let current = state.span_at(now).ok_or(Refusal::PeriodNotFound)?;
        let at = match which {
            None => now,
            Some(PREVIOUS) => current.start.plus(-1),
            Some(text) => {
                state.calendar.local_instant(text).or_else(|| instant(text)).ok_or(Refusal::PeriodNotFound)?
            }
        };
        let span = state.span_at(at).ok_or(Refusal::PeriodNotFound)?;
        let part = state.aimed(span).part;
        let of = if let Some(live) = state.live(part) {
            Of::Live(Arc::clone(live))
        } else if let Some(row) = state.closed.iter().find(|row| row.part == part && row.version > 0) {
            Of::Closed(*row)
        } else if span == current {
            Of::Empty
        } else {
            return Err(Refusal::PeriodNotFound);
        };
        Ok(Self { board: Arc::clone(board), name: state.name(span.start), of })
    }

    /// Whether reading it blocks on the store.
    pub fn blocks(&self) -> bool {
        matches!(self.of, Of::Closed(_))
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        match &self.of {
            Of::Closed(row) => row.total,
            Of::Empty => 0,
            Of::AllTime | Of::Live(_) => self.order().map_or(0, PartOrder::total),
        }
    }

    /// A player's place.
    pub fn ranked(&self, store: &dyn Store, player: &PlayerId) -> Result<Option<Ranked>, Failure> {
        self.read(store, |order| order.ranked(player), |closed| closed.ranked(player), None)
    }

    /// The rank that a record of this player has or would have among the others.
    pub fn rank_of(&self, store: &dyn Store, player: &PlayerId, record: &Record) -> Result<u64, Failure> {
        let first = 1;
        self.read(
            store,
            |order| order.rank_of(player, record),
            |closed| closed.rank_of(player, record),
            first,
        )
    }

    /// A stretch of the order.
    pub fn page(&self, store: &dyn Store, query: &PageQuery) -> Result<Page, Failure> {
        let empty = Page { total: 0, entries: Vec::new(), more: false };
        self.read(store, |order| order.page(query), |closed| closed.page(query), empty)
    }

    /// The places around a player.
    pub fn around(
        &self,
        store: &dyn Store,
        player: &PlayerId,
        above: usize,
        below: usize,
    ) -> Result<Option<Page>, Failure> {
        self.read(
            store,
            |order| order.around(player, above, below),
            |closed| closed.around(player, above, below),
            None,
        )
    }

    /// These players among each other.
    pub fn among(&self, store: &dyn Store, players: &[PlayerId]) -> Result<Among, Failure> {
        let nobody = || PartOrder::new(&self.board.definition).among(players);
        match &self.of {
            Of::Empty => Ok(nobody()),
            _ => self.read(store, |order| order.among(players), |closed| closed.among(players), nobody()),
        }
    }

    fn order(&self) -> Option<&PartOrder> {
        match &self.of {
            Of::AllTime => Some(&self.board.order),
            Of::Live(live) => Some(&live.order),
            Of::Empty | Of::Closed(_) => None,
        }
    }

    fn read<T>(
        &self,
        store: &dyn Store,
        live: impl FnOnce(&PartOrder) -> T,
        closed: impl Fn(&Closed<'_, StoredPart<'_>>) -> Result<T, StoreError>,
        empty: T,
    ) -> Result<T, Failure> {
        if let Some(order) = self.order() {
            return Ok(live(order));
        }
        let Of::Closed(row) = self.of else { return Ok(empty) };
        self.read_closed(store, row, closed)
    }

    /// Reads a closed part again where its order was stored anew in the middle of it.
    fn read_closed<T>(
        &self,
        store: &dyn Store,
        mut row: PartRow,
        read: impl Fn(&Closed<'_, StoredPart<'_>>) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        loop {
            let source = StoredPart { store, board: self.board.no, row };
            let error = match read(&Closed::new(&self.board.definition, row.total, &source)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.board.periods().closed(row.part) {
                Some(present) if present.version > row.version => row = *present,
                Some(_) => return Err(error.into()),
                None => return Err(Refusal::PeriodNotFound.into()),
            }
        }
    }
}

/// Every period of a board, newest first; past ones without players are not there.
pub fn list(board: &Board, now: Micros) -> Vec<Listed> {
    let periods = board.periods();
    let mut all = Vec::new();
    for state in &periods.rules {
        let listed = |span: Span, total: u64| Listed {
            period: state.name(span.start),
            name: state.rule.name.clone(),
            start: span.start,
            end: span.end,
            state: match now {
                _ if !state.takes(span, now) => "closed",
                now if now < span.end => "open",
                _ => "closing",
            },
            total,
        };
        let closed = state.closed.iter().filter(|row| row.version > 0);
        all.extend(closed.map(|row| listed(row.span, row.total)));
        all.extend(state.live.iter().map(|live| listed(live.span, live.order.total())));
        let known =
            |span: &Span| state.live(state.aimed(*span).part).is_some() || state.closed(*span).is_some();
        let current = state.span_at(now).filter(|span| !known(span));
        all.extend(current.map(|span| listed(span, 0)));
    }
    all.retain(|one| one.total > 0 || one.state == "open");
    all.sort_by(|a, b| (b.start, &a.name).cmp(&(a.start, &b.name)));
    all
}
