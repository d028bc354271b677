//! Lists of rows whose ids ascend with time, by filters: newest first, and a bounded part of a table for each request.
//!
//! Filters have no index, because it would be written with each row and serve few requests. Not here: the filters.

use crate::failure::Failure;
use tally_rules::Micros;
use tally_rules::ledger::Uuid;
use tally_store::{CorruptRow, Listing, StoreError};

/// Rows of one read.
const PAGE: usize = 1_000;

/// Rows that one request reads at most: a filter may fit few of them.
const READ_MAX: usize = 20_000;

/// Which part of a list is asked for.
#[derive(Clone, Debug, Default)]
pub struct ListRange {
    /// From this instant on.
    pub from: Option<Micros>,
    /// Before this instant.
    pub until: Option<Micros>,
    /// Before this id: the `next` of the page before.
    pub before: Option<Uuid>,
    /// At most as many rows.
    pub limit: usize,
}

/// A page of such a list.
#[derive(Clone, Debug)]
pub struct ScanPage<T> {
    /// The rows, newest first. There may be fewer than the limit, even none, and more may follow.
    pub rows: Vec<(Uuid, T)>,
    /// Corrupt rows that were left out.
    pub damaged: Vec<CorruptRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<Uuid>,
}

/// A page of the rows that `keep` returns. It gets rows in their order, and how many of them the page still takes.
pub(crate) fn scan<R, T>(
    span: &ListRange,
    read: impl Fn(Uuid, usize) -> Result<Listing<(Uuid, R)>, StoreError>,
    keep: impl Fn(Vec<(Uuid, R)>, usize) -> Result<Vec<(Uuid, T)>, Failure>,
) -> Result<ScanPage<T>, Failure> {
    let mut page = ScanPage { rows: Vec::new(), damaged: Vec::new(), next: None };
    let mut before = span.before.unwrap_or(Uuid([0xff; 16]));
    if let Some(until) = span.until {
        before = before.min(Uuid::new(until, 0));
    }
    // Without a filter the first read is the page.
    let (mut seen, mut limit) = (0, span.limit);
    while seen < READ_MAX {
        let Listing { mut rows, damaged } = read(before, limit)?;
        page.damaged.extend(damaged);
        let mut ends = rows.len() < limit;
        seen += rows.len();
        before = rows.last().map_or(before, |(id, _)| *id);
        if let Some(from) = span.from {
            let fit = rows.partition_point(|(id, _)| id.at() >= from);
            ends |= fit < rows.len();
            rows.truncate(fit);
        }
        page.rows.extend(keep(rows, span.limit - page.rows.len())?);
        if page.rows.len() >= span.limit {
            page.rows.truncate(span.limit);
            page.next = page.rows.last().map(|(id, _)| *id);
            return Ok(page);
        }
        if ends {
            return Ok(page);
        }
        limit = PAGE.min(READ_MAX - seen);
    }
    page.next = Some(before);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// As many rows, one a microsecond, newest first.
    fn table(rows: i64) -> Vec<(Uuid, i64)> {
        (1..=rows).rev().map(|at| (Uuid::new(Micros(at), 0), at)).collect()
    }

    /// The rows of a span that `every` divides, page by page, and the most rows that one page has read.
    fn scan_all(table: &[(Uuid, i64)], span: ListRange, every: i64) -> (Vec<i64>, usize) {
        let (mut span, mut found, mut most) = (span, Vec::new(), 0);
        loop {
            let seen = Cell::new(0);
            let read = |before, limit| {
                let rows = table.iter().filter(|(id, _)| *id < before).take(limit);
                let rows: Vec<_> = rows.copied().collect();
                seen.set(seen.get() + rows.len());
                Ok(rows.into())
            };
            let keep = |mut rows: Vec<(Uuid, i64)>, _| {
                rows.retain(|(_, at)| at % every == 0);
                Ok(rows)
            };
            let page = scan(&span, read, keep).unwrap();
            assert!(page.rows.len() <= span.limit);
            found.extend(page.rows.iter().map(|(_, at)| *at));
            most = most.max(seen.get());
            let Some(next) = page.next else { return (found, most) };
            span.before = Some(next);
        }
    }

    #[test]
    fn pages_give_each_row_once_and_read_a_bounded_part() {
        let table = table(45_000);
        for (limit, every, most) in
            [(7, 900, 20_000), (1_000, 1, 1_000), (20, 44_000, 20_000), (3, 50_000, 20_000)]
        {
            let wanted: Vec<i64> = (1..=45_000).rev().filter(|at| at % every == 0).collect();
            let (found, read) = scan_all(&table, ListRange { limit, ..ListRange::default() }, every);
            assert_eq!(found, wanted, "{limit} {every}");
            assert!(read <= most, "{read}");
        }
    }

    #[test]
    fn a_span_begins_at_its_first_instant_and_ends_before_its_last() {
        let table = table(3_000);
        let of = |from: Option<i64>, until: Option<i64>| {
            let span =
                ListRange { from: from.map(Micros), until: until.map(Micros), limit: 100, before: None };
            scan_all(&table, span, 1).0
        };
        assert_eq!(of(Some(2_998), None), [3_000, 2_999, 2_998]);
        assert_eq!(of(None, Some(3)), [2, 1]);
        assert_eq!(of(Some(5), Some(1_500)), (5..1_500).rev().collect::<Vec<_>>());
        assert!(of(Some(5), Some(5)).is_empty());
    }
}
