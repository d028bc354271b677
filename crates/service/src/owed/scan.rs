//! A scan over what is owed that stops after a bounded number of reads, and returns where it continues.
//!
//! So a page may be short, or empty, and not the last one. Running payments come first, because the store finds them by an
//! index. Rejected ones are among the rows of contests and periods that have ended, which are scanned by name. Not here:
//! the payment of what is owed.

use super::{Debt, DebtFilter, DebtPage, Debtor};
use crate::damaged::Listing;
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::BTreeSet;
use std::fmt;
use tally_rules::PlayerId;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{ContestId, ContestPlayer, ContestRecord, ContestState};
use tally_rules::ledger::Uuid;
use tally_store::{BoardNo, StoreError, Window, WindowKey};

/// Reads of one page.
const READS_MAX: usize = 200;

/// Contests or periods of one read.
const NAMES: usize = 100;

/// Rows of one read.
const ROWS: usize = 500;

/// A stage of the scan.
#[derive(Clone, Copy)]
enum Stage {
    Contests(ContestState),
    /// Periods with prizes that were not tried yet, or all other periods.
    Periods {
        open: bool,
    },
}

const STAGES: [Stage; 5] = [
    Stage::Contests(ContestState::Finished),
    Stage::Periods { open: true },
    Stage::Contests(ContestState::Cancelled),
    Stage::Contests(ContestState::Settled),
    Stage::Periods { open: false },
];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Contest(ContestId),
    Period(WindowKey),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RowPosition {
    /// After all of it.
    After,
    /// With the payment of that number.
    Payout(u32),
    /// With the members after that one, whose fees are to be paid back.
    Fee(Option<PlayerId>),
}

/// The start of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebtPosition {
    stage: usize,
    /// A contest or a period; `None` is before all of them.
    of: Option<Key>,
    row: RowPosition,
}

impl DebtPosition {
    /// Reads its text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut windows = text.splitn(3, '/');
        let stage = windows.next()?.parse().ok()?;
        let of = match (STAGES.get(stage)?, windows.next()?) {
            (_, "") => None,
            (Stage::Contests(_), id) => Some(Key::Contest(ContestId::new(id).ok()?)),
            (Stage::Periods { .. }, key) => {
                let (board, window) = key.split_once('.')?;
                let (board, window) = (BoardNo(board.parse().ok()?), Window(window.parse().ok()?));
                Some(Key::Period(WindowKey { board, window }))
            }
        };
        let row = match windows.next()?.split_at_checked(1) {
            None => RowPosition::After,
            Some(("p", no)) => RowPosition::Payout(no.parse().ok()?),
            Some(("f", "")) => RowPosition::Fee(None),
            Some(("f", player)) => RowPosition::Fee(Some(PlayerId::new(player).ok()?)),
            Some(_) => return None,
        };
        Some(Self { stage, of, row })
    }
}

impl fmt::Display for DebtPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.stage)?;
        match &self.of {
            None => {}
            Some(Key::Contest(id)) => f.write_str(id.as_str())?,
            Some(Key::Period(WindowKey { board, window })) => write!(f, "{}.{}", board.0, window.0)?,
        }
        match &self.row {
            RowPosition::After => f.write_str("/"),
            RowPosition::Payout(no) => write!(f, "/p{no}"),
            RowPosition::Fee(after) => write!(f, "/f{}", after.as_ref().map_or("", PlayerId::as_str)),
        }
    }
}

/// The row at which a scan stops; `None` if it continues.
type Stopped = Result<Option<RowPosition>, Failure>;

pub(super) struct DebtScan<'a> {
    tally: &'a Tally,
    limit: usize,
    filter: &'a DebtFilter,
    reads: usize,
    pub(super) page: DebtPage,
    /// Contests and periods that have a payment marked `member_closed`.
    pub(super) marked: BTreeSet<Key>,
}

impl<'a> DebtScan<'a> {
    /// Scans from a position on, to at most `limit` debts.
    pub(super) fn from(
        tally: &'a Tally,
        place: Option<DebtPosition>,
        limit: usize,
        filter: &'a DebtFilter,
    ) -> Result<Self, Failure> {
        let (page, marked) = (DebtPage::default(), BTreeSet::new());
        let mut scan = Self { tally, limit, filter, reads: 0, page, marked };
        scan.go(place.unwrap_or(DebtPosition { stage: 0, of: None, row: RowPosition::After }))?;
        Ok(scan)
    }

    fn is_full(&self) -> bool {
        self.page.rows.len() >= self.limit
    }

    fn may_read(&self) -> bool {
        self.reads < READS_MAX && !self.is_full()
    }

    fn read<T>(&mut self, list: Result<Listing<T>, StoreError>) -> Result<Vec<T>, Failure> {
        self.reads += 1;
        let Listing { rows, damaged } = list?;
        self.page.damaged.extend(damaged);
        Ok(rows)
    }

    fn go(&mut self, from: DebtPosition) -> Result<(), Failure> {
        let DebtPosition { stage, mut of, mut row } = from;
        for (stage, what) in STAGES.iter().enumerate().skip(stage) {
            loop {
                if let Some(key) = of.clone()
                    && let Some(row) =
                        self.one(*what, &key, std::mem::replace(&mut row, RowPosition::After))?
                {
                    self.page.next = Some(DebtPosition { stage, of: Some(key), row });
                    return Ok(());
                }
                if !self.may_read() {
                    self.page.next = Some(DebtPosition { stage, of, row: RowPosition::After });
                    return Ok(());
                }
                let names = self.names(*what, of.as_ref())?;
                let is_last = names.len() < NAMES;
                for (key, record) in names {
                    let stopped = match (&key, record) {
                        (Key::Contest(id), Some(record)) => {
                            self.contest(id, &record, RowPosition::Payout(0))?
                        }
                        _ => self.one(*what, &key, RowPosition::Payout(0))?,
                    };
                    if let Some(row) = stopped {
                        self.page.next = Some(DebtPosition { stage, of: Some(key), row });
                        return Ok(());
                    }
                    of = Some(key);
                }
                if is_last {
                    break;
                }
            }
            of = None;
        }
        Ok(())
    }

    /// The next contests or periods.
    fn names(
        &mut self,
        what: Stage,
        after: Option<&Key>,
    ) -> Result<Vec<(Key, Option<ContestRecord>)>, Failure> {
        let ledger = self.tally.store.ledger();
        match what {
            Stage::Contests(state) => {
                let after = after.and_then(|key| if let Key::Contest(id) = key { Some(id) } else { None });
                let rows = self.read(ledger.list_contests(Some(state), after, NAMES))?;
                Ok(rows.into_iter().map(|(id, record)| (Key::Contest(id), Some(record))).collect())
            }
            Stage::Periods { open } => {
                let after = after.and_then(|key| if let Key::Period(key) = key { Some(*key) } else { None });
                let keys = self.read(ledger.payments(open, after, NAMES).map(Listing::from))?;
                Ok(keys.into_iter().map(|key| (Key::Period(key), None)).collect())
            }
        }
    }

    /// The remaining debts of one contest or period, from a row on.
    fn one(&mut self, what: Stage, key: &Key, from: RowPosition) -> Stopped {
        if from == RowPosition::After {
            return Ok(None);
        }
        if !self.may_read() {
            return Ok(Some(from));
        }
        let ledger = self.tally.store.ledger();
        match (key, what) {
            (Key::Contest(id), _) => match self.found(ledger.contest(id))? {
                Some(record) => self.contest(id, &record, from),
                None => Ok(None),
            },
            (Key::Period(period), Stage::Periods { open }) => match self.found(ledger.payment(*period))? {
                Some(payment) if payment.is_open() == open => {
                    let of = Debtor::Period { board: payment.board, period: payment.period };
                    self.payouts(key, &of, payment.no, from)
                }
                // The other stage has it.
                _ => Ok(None),
            },
            (Key::Period(_), Stage::Contests(_)) => Ok(None),
        }
    }

    /// A row; `None` if it is corrupt.
    fn found<T>(&mut self, found: Result<Option<T>, StoreError>) -> Result<Option<T>, Failure> {
        self.reads += 1;
        match found {
            Err(StoreError::CorruptRow(row)) => {
                self.page.damaged.push(*row);
                Ok(None)
            }
            found => Ok(found?),
        }
    }

    fn contest(&mut self, id: &ContestId, record: &ContestRecord, from: RowPosition) -> Stopped {
        let key = Key::Contest(id.clone());
        let of = Debtor::Contest(id.clone());
        let mut after = match from {
            RowPosition::After => return Ok(None),
            RowPosition::Fee(after) => after,
            RowPosition::Payout(_) => {
                let has_rows = record.prizes.is_some_and(|count| count > 0)
                    || record.state == ContestState::Cancelled && record.members > 0;
                if has_rows && let Some(stopped) = self.payouts(&key, &of, record.no, from)? {
                    return Ok(Some(stopped));
                }
                None
            }
        };
        // Those before were paid meanwhile.
        let Some(due) = record.fees_due() else { return Ok(None) };
        after = after.max(due.cloned());
        loop {
            if !self.may_read() {
                return Ok(Some(RowPosition::Fee(after)));
            }
            let rows = self.tally.store.ledger().list_members(record.no, after.as_ref(), ROWS);
            let rows: Vec<(PlayerId, ContestPlayer)> = self.read(rows)?;
            let is_last = rows.len() < ROWS;
            for (player, enrolled) in rows {
                if self.is_full() {
                    return Ok(Some(RowPosition::Fee(after)));
                }
                after = Some(player.clone());
                if self.filter.is_for(&player) {
                    self.page.rows.extend(Debt::of_fee(&of, record, player, enrolled.member));
                }
            }
            if is_last {
                return Ok(None);
            }
        }
    }

    /// Payments under a number.
    fn payouts(&mut self, key: &Key, of: &Debtor, no: Uuid, from: RowPosition) -> Stopped {
        let RowPosition::Payout(mut from) = from else { return Ok(None) };
        loop {
            if !self.may_read() {
                return Ok(Some(RowPosition::Payout(from)));
            }
            let rows = self.read(self.tally.store.ledger().list_payouts(no, from, ROWS))?;
            let next = rows.last().filter(|_| rows.len() == ROWS).and_then(|(last, _)| last.checked_add(1));
            for (place, payout) in rows {
                if !self.filter.is_for(&payout.player) {
                    continue;
                }
                let debt = if self.filter.with_winners {
                    Debt::unpaid(of, payout)
                } else {
                    Debt::of_payout(of, payout)
                };
                let Some(debt) = debt else { continue };
                if self.is_full() {
                    return Ok(Some(RowPosition::Payout(place)));
                }
                if debt.why == Some(UnpaidReason::MemberClosed) {
                    self.marked.insert(key.clone());
                }
                self.page.rows.push(debt);
            }
            match next {
                Some(next) => from = next,
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_itself_and_nothing_else_is_one() {
        for text in ["0//", "0/cup/", "2/cup/p7", "3/cup/f", "2/cup/fa/b", "1/7.9/p0", "4/7.9/"] {
            assert_eq!(DebtPosition::parse(text).map(|place| place.to_string()).as_deref(), Some(text));
        }
        for text in [
            "", "0", "0/", "5//", "x//", "0/cup", "0/c p/", "1/cup/", "1/7/", "1/7.x/", "0/cup/p", "0/cup/x1",
        ] {
            assert_eq!(DebtPosition::parse(text), None, "{text}");
        }
    }
}
