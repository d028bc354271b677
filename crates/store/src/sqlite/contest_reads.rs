//! Reads of contests, inside and outside of a transaction: merged reads of the memtable and the tables.
//!
//! Lists are bounded, and so is their work. Rows of the tables come in order by a key or an index. Of the memtable, a list
//! in order of keys takes no more live rows than it returns. A list in another order (applications by place, due contests)
//! reads all matching rows of the memtable, so one large page is cheaper than many. A row of the tables with a newer state
//! in the memtable is skipped.

use super::SqliteStore;
use super::contests::{
    self, Applications, Enrollments, Payouts, application, decode, decode_application, decode_member,
    decode_prize, member,
};
use super::fault::column_text;
use super::memtable::Memtables;
use super::payments;
use super::reads::{MemtableStates, fill, one};
use super::run::states;
use super::series::{self, AllSeries};
use super::table::Table;
use crate::contest_reads::{ContestReads, Due, DueAfter};
use crate::contests::{ContestLoaded, ContestReadSet, EntrantKey, PayoutKey};
use crate::{Listing, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeMap;
use std::ops::Bound;
use tally_rules::contest::application::Status;
use tally_rules::contest::{
    Application, ContestId, ContestPlayer, ContestRecord, ContestState, Payout, SeriesRecord,
};
use tally_rules::ledger::Uuid;
use tally_rules::period::PeriodPayment;
use tally_rules::{Micros, PlayerId};

pub(super) const LIST: &str = "SELECT no, state, body, id FROM contests WHERE id > ?1 ORDER BY id";
pub(super) const LIST_STATE: &str = "SELECT no, state, body, id FROM contests INDEXED BY contests_by_state \
     WHERE id > ?1 AND state = ?2 ORDER BY id";
pub(super) const IN_STATE: &str =
    "SELECT 1 FROM contests INDEXED BY contests_by_state WHERE state = ?1 LIMIT ?2";
pub(super) const STATE: &str = "SELECT state FROM contests WHERE id = ?1";
pub(super) const DUE: &str = "SELECT due, id FROM contests INDEXED BY contests_due \
     WHERE due IS NOT NULL AND due <= ?1 AND (due, id) > (?2, ?3) ORDER BY due, id";
pub(super) const IN_STATUS: &str = "SELECT status, place, applied_at, member, hold, player \
     FROM contest_applications INDEXED BY contest_applications_by_place \
     WHERE contest = ?1 AND status = ?2 AND place > ?3 ORDER BY place";
pub(super) const FIRST: &str = "SELECT status, place, applied_at, member, hold, player \
     FROM contest_applications WHERE contest = ?1 AND player > ?2 ORDER BY player";
pub(super) const MEMBERS: &str = "SELECT place, division, member, player FROM contest_members \
     WHERE contest = ?1 AND player > ?2 ORDER BY player";
pub(super) const PRIZES: &str = "SELECT player, member, division, rank, currency, amount, transfer, unpaid, no \
     FROM contest_prizes WHERE contest = ?1 AND no >= ?2 ORDER BY no";

/// The rows of a plan in the memtable.
pub(super) struct MemtableContests {
    contests: MemtableStates<ContestRecord>,
    applications: MemtableStates<Application>,
    members: MemtableStates<ContestPlayer>,
    series: MemtableStates<SeriesRecord>,
    payments: MemtableStates<PeriodPayment>,
}

/// Reads the memtable.
pub(super) fn in_memory(memtables: &Memtables, plan: &ContestReadSet) -> MemtableContests {
    MemtableContests {
        contests: states::<contests::Contests>(memtables, plan.contests.iter().cloned()),
        applications: states::<Applications>(memtables, plan.applications.iter().cloned()),
        members: states::<Enrollments>(memtables, plan.members.iter().cloned()),
        series: states::<AllSeries>(memtables, plan.series.iter().cloned()),
        payments: states::<payments::Payments>(memtables, plan.payments.iter().copied()),
    }
}

/// Reads the rest from the tables.
pub(super) fn load(
    newer: MemtableContests,
    plan: &ContestReadSet,
    tables: &Connection,
) -> Result<ContestLoaded, StoreError> {
    Ok(ContestLoaded {
        contests: fill("contests", newer.contests, &plan.contests, |id| contests::get(tables, id))?,
        applications: fill("contest_applications", newer.applications, &plan.applications, |key| {
            application(tables, key)
        })?,
        members: fill("contest_members", newer.members, &plan.members, |key| member(tables, key))?,
        series: fill("contest_series", newer.series, &plan.series, |id| series::get(tables, id))?,
        payments: fill("period_payments", newer.payments, &plan.payments, |key| payments::get(tables, *key))?,
    })
}

/// The first rows in the order of `order`, merged from `newer` and from a statement that returns its rows in that order. If
/// that is the order of keys, `newer` may end with the `limit`th live row. Corrupt rows are left out.
pub(super) fn merged<K: Ord + Clone, O: Ord, T>(
    newer: BTreeMap<K, Option<T>>,
    order: impl Fn(&K, &T) -> O,
    rows: &mut rusqlite::Rows<'_>,
    decode: impl Fn(&Row<'_>) -> Result<Option<(K, T)>, StoreError>,
    limit: usize,
) -> Result<Listing<(K, T)>, StoreError> {
    let mut list = Listing::default();
    while list.rows.len() < limit
        && let Some(row) = rows.next()?
    {
        match decode(row) {
            Ok(Some((key, value))) if !newer.contains_key(&key) => list.rows.push((key, value)),
            Ok(_) => {}
            Err(error) => list.leave_out(error)?,
        }
    }
    let found = &mut list.rows;
    found.extend(newer.into_iter().filter_map(|(key, value)| Some((key, value?))));
    found.sort_by_key(|(key, value)| order(key, value));
    found.truncate(limit);
    Ok(list)
}

/// Decodes a row of a contest's player; `player` is the column of the player.
pub(super) fn entrant<T>(
    contest: Uuid,
    row: &Row<'_>,
    player: usize,
    decode: fn(&Row<'_>) -> Result<(PlayerId, T), StoreError>,
) -> Result<Option<(PlayerId, T)>, StoreError> {
    let name = || format!("{contest}/{}", column_text(row, player));
    decode(row).map(Some).map_err(|error| error.of_row("", name))
}

/// Removes the times that are not after `after`. The names stay, because their rows were changed.
pub(super) fn only_behind(newer: &mut BTreeMap<ContestId, Option<Micros>>, after: DueAfter<'_>) {
    let Some(after) = after else { return };
    for (id, at) in newer {
        *at = at.filter(|at| (*at, id.as_str()) > after);
    }
}

/// The unflushed rows of one contest, up to the `most`th row that `pick` accepts.
fn of_contest<T: Table<Key = EntrantKey>>(
    memtables: &Memtables,
    (contest, after): (Uuid, Option<&PlayerId>),
    pick: impl Fn(&T::Value) -> Option<T::Value>,
    most: usize,
) -> BTreeMap<PlayerId, Option<T::Value>> {
    let key = |player: PlayerId| EntrantKey { contest, player };
    let from = match after {
        Some(player) => Bound::Excluded(key(player.clone())),
        // The smallest possible name.
        None => Bound::Included(key(PlayerId::new("\0").expect("a name of one byte"))),
    };
    let rows = memtables.first::<T, _>(from, |key| key.contest == contest, pick, most);
    rows.into_iter().map(|(key, row)| (key.player, row)).collect()
}

impl ContestReads for SqliteStore {
    fn contest(&self, id: &ContestId) -> Result<Option<ContestRecord>, StoreError> {
        let in_memory = |memtables: &Memtables| memtables.get::<contests::Contests>(id).cloned();
        one(&self.shared, "contests", in_memory, id, contests::get)
    }

    fn list_contests(
        &self,
        state: Option<ContestState>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, ContestRecord)>, StoreError> {
        let wanted = |record: &ContestRecord| state.is_none_or(|state| record.state == state);
        let in_memory = |memtables: &Memtables| {
            let from = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.clone()));
            let pick = |record: &ContestRecord| wanted(record).then(|| record.clone());
            memtables.first::<contests::Contests, _>(from, |_| true, pick, limit)
        };
        let after = after.map_or("", ContestId::as_str);
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(if state.is_some() { LIST_STATE } else { LIST })?;
            let mut rows = match state {
                Some(state) => statement.query(params![after, state.as_str()])?,
                None => statement.query(params![after])?,
            };
            merged(
                newer,
                |id: &ContestId, _: &ContestRecord| id.clone(),
                &mut rows,
                |row| decode(row).map(Some),
                limit,
            )
        })
    }

    fn due_contests(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let due = |record: &ContestRecord| record.due().map(|(at, _)| at).filter(|at| *at <= now);
            memtables.first::<contests::Contests, _>(Bound::Unbounded, |_| true, due, usize::MAX)
        };
        self.shared.read(in_memory, |mut newer, tables| {
            only_behind(&mut newer, after);
            let mut statement = tables.prepare_cached(DUE)?;
            let (at, id) = after.unwrap_or((Micros(i64::MIN), ""));
            let mut rows = statement.query(params![now.0, at.0, id])?;
            let decode = |row: &Row<'_>| {
                let id = ContestId::new(&row.get::<_, String>(1)?);
                let id = id.map_err(|bad| super::fault::damaged("contests", bad.0))?;
                Ok((id, Micros(row.get(0)?)))
            };
            let order = |id: &ContestId, at: &Micros| (*at, id.clone());
            let found = merged(newer, order, &mut rows, |row| decode(row).map(Some), limit)?.whole()?;
            Ok(found.into_iter().map(|(id, at)| (at, id)).collect())
        })
    }

    fn count_contests(&self, most: usize) -> Result<Vec<usize>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            memtables.range::<contests::Contests>(Bound::Unbounded, |_| true, usize::MAX).0
        };
        self.shared.read(in_memory, |newer, tables| {
            let mut counts = Vec::with_capacity(ContestState::ALL.len());
            // Each unflushed row may remove one row of the tables from the count.
            let bound = i64::try_from(most.saturating_add(newer.len())).unwrap_or(i64::MAX);
            let mut in_state = tables.prepare_cached(IN_STATE)?;
            for state in ContestState::ALL {
                let (mut rows, mut count) = (in_state.query(params![state.as_str(), bound])?, 0);
                while rows.next()?.is_some() {
                    count += 1;
                }
                counts.push(count);
            }
            let mut stored = tables.prepare_cached(STATE)?;
            for (id, record) in newer {
                let before: Option<String> = stored.query_row([id.as_str()], |row| row.get(0)).optional()?;
                let before = before.and_then(|state| ContestState::parse(&state));
                for (state, count) in ContestState::ALL.iter().zip(&mut counts) {
                    *count -= usize::from(before == Some(*state)).min(*count);
                    *count += usize::from(record.as_ref().is_some_and(|record| record.state == *state));
                }
            }
            Ok(counts.into_iter().map(|count| count.min(most)).collect())
        })
    }

    fn list_applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, StoreError> {
        // Rows that do not match any more must be known too, because the table may still have them.
        let pick = |row: &Application| (row.status == status && row.place > above).then_some(*row);
        let in_memory =
            |memtables: &Memtables| of_contest::<Applications>(memtables, (contest, None), pick, usize::MAX);
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(IN_STATUS)?;
            let above = i64::try_from(above).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![contest.0, status.as_str(), above])?;
            let order = |_: &PlayerId, row: &Application| row.place;
            merged(newer, order, &mut rows, |row| entrant(contest, row, 5, decode_application), limit)
        })
    }

    fn first_applications(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError> {
        let all = |row: &Application| Some(*row);
        let in_memory =
            |memtables: &Memtables| of_contest::<Applications>(memtables, (contest, after), all, limit);
        self.shared.read(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(FIRST)?;
            let mut rows = statement.query(params![contest.0, after.map_or("", PlayerId::as_str)])?;
            let order = |player: &PlayerId, _: &Application| player.clone();
            merged(newer, order, &mut rows, |row| entrant(contest, row, 5, decode_application), limit)?
                .whole()
        })
    }

    fn applications_of(&self, keys: &[EntrantKey]) -> Result<Vec<Option<Application>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Applications>(memtables, keys.iter().cloned());
        self.shared.read(in_memory, |found, tables| {
            fill("contest_applications", found, keys, |key| application(tables, key))
        })
    }

    fn list_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Listing<(PlayerId, ContestPlayer)>, StoreError> {
        let all = |row: &ContestPlayer| Some(*row);
        let in_memory =
            |memtables: &Memtables| of_contest::<Enrollments>(memtables, (contest, after), all, limit);
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(MEMBERS)?;
            let mut rows = statement.query(params![contest.0, after.map_or("", PlayerId::as_str)])?;
            let order = |player: &PlayerId, _: &ContestPlayer| player.clone();
            merged(newer, order, &mut rows, |row| entrant(contest, row, 3, decode_member), limit)
        })
    }

    fn enrolled(&self, keys: &[EntrantKey]) -> Result<Vec<Option<ContestPlayer>>, StoreError> {
        let in_memory = |memtables: &Memtables| states::<Enrollments>(memtables, keys.iter().cloned());
        self.shared
            .read(in_memory, |found, tables| fill("contest_members", found, keys, |key| member(tables, key)))
    }

    fn list_payouts(
        &self,
        contest: Uuid,
        from: u32,
        limit: usize,
    ) -> Result<Listing<(u32, Payout)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let first = Bound::Included(PayoutKey { contest, no: from });
            let all = |payout: &Payout| Some(payout.clone());
            memtables.first::<Payouts, _>(first, |key| key.contest == contest, all, limit)
        };
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(PRIZES)?;
            let mut rows = statement.query(params![contest.0, from])?;
            let decode = |row: &Row<'_>| Ok((PayoutKey { contest, no: row.get(8)? }, decode_prize(row)?));
            let name = |row: &Row<'_>| format!("{contest}/{}", column_text(row, 8));
            let decode = |row: &Row<'_>| {
                decode(row).map_err(|error: StoreError| error.of_row("contest_prizes", || name(row)))
            };
            let order = |key: &PayoutKey, _: &Payout| key.no;
            let found = merged(newer, order, &mut rows, |row| decode(row).map(Some), limit)?;
            Ok(found.map(|(key, payout)| (key.no, payout)))
        })
    }
}
