//! A table in the order of its keys, row by row, read in pages.

use tally_store::StoreError;
use tally_store::snapshot::RowPage;

/// Rows of one page: large enough to hide the query, small enough to keep several.
pub(super) const PAGE_ROWS: usize = 5_000;

/// Rows of a page that are looked up by key.
pub(super) const LOOKUP_PAGE: usize = 1_000;

/// The position in a table.
#[derive(Debug)]
pub(super) struct SortedRows<K, V> {
    rows: std::vec::IntoIter<(K, V)>,
    last: Option<K>,
    ended: bool,
}

impl<K, V> Default for SortedRows<K, V> {
    fn default() -> Self {
        Self { rows: Vec::new().into_iter(), last: None, ended: false }
    }
}

impl<K: Clone, V> SortedRows<K, V> {
    /// The table from a key on, which is left out.
    pub(super) fn after(last: Option<K>) -> Self {
        Self { last, ..Self::default() }
    }

    /// Reads the next page when this one is used up; returns its number of rows.
    pub(super) fn fill(
        &mut self,
        page: impl FnOnce(Option<&K>, usize) -> RowPage<K, V>,
    ) -> Result<usize, StoreError> {
        if self.ended || !self.rows.as_slice().is_empty() {
            return Ok(0);
        }
        let rows = page(self.last.as_ref(), PAGE_ROWS)?;
        self.ended = rows.len() < PAGE_ROWS;
        self.last = rows.last().map(|(key, _)| key.clone());
        self.rows = rows.into_iter();
        Ok(self.rows.len())
    }

    /// The next row that was read.
    pub(super) fn peek(&self) -> Option<&(K, V)> {
        self.rows.as_slice().first()
    }

    /// Takes the next row that was read.
    pub(super) fn next(&mut self) -> Option<(K, V)> {
        self.rows.next()
    }
}
