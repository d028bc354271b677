//! The audit log: the actor and the id of an act before it is done, and the log by filters.
//!
//! A row is stored in the transaction of its act (`tally_rules::audit`). Not here: the rows of each kind of act, which its own
//! file adds; transfers and holds, which have their actor themselves.

use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, AuditEntry, AuditId, Audited};
use tally_rules::ledger::Uuid;
use tally_rules::{Actor, Micros, Origin};
use tally_store::{CorruptRow, Listing};

/// Rows of one read.
const PAGE: usize = 1_000;

/// Rows that one call reads at most: a filter may fit few of them.
const READ_MAX: usize = 20_000;

/// An act of this origin, of now.
pub(crate) fn begin(origin: Origin, now: Micros) -> Result<Audited, Failure> {
    let mut node = [0; 8];
    getrandom::fill(&mut node)
        .map_err(|error| Fault::Broken(format!("no random numbers for the audit log: {error}")))?;
    Ok(Audited::new(origin, now, u64::from_le_bytes(node)))
}

/// Which rows are asked for; `None` does not choose.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those of this actor.
    pub actor: Option<Actor>,
    /// Those of this action.
    pub action: Option<AuditAction>,
    /// Those on this subject.
    pub subject: Option<Arc<str>>,
    /// Those from this instant on.
    pub from: Option<Micros>,
    /// Those before this instant.
    pub until: Option<Micros>,
}

impl Filter {
    fn fits(&self, entry: &AuditEntry) -> bool {
        self.actor.is_none_or(|actor| actor == entry.origin.actor)
            && self.action.is_none_or(|action| action == entry.action)
            && self.subject.as_ref().is_none_or(|subject| *subject == entry.subject)
    }
}

/// A page of the log.
#[derive(Clone, Debug, Default)]
pub struct AuditPage {
    /// The rows, newest first. There may be fewer than asked for, even none, and more behind them.
    pub rows: Vec<(AuditId, AuditEntry)>,
    /// Corrupt rows that were left out.
    pub damaged: Vec<CorruptRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<AuditId>,
}

/// At most `limit` rows before an id that fit a filter. Blocks on the store.
pub fn list(
    tally: &Tally,
    filter: &Filter,
    before: Option<AuditId>,
    limit: usize,
) -> Result<AuditPage, Failure> {
    let (mut page, mut read) = (AuditPage::default(), 0);
    let mut before = before.unwrap_or(AuditId(Uuid([0xff; 16])));
    if let Some(until) = filter.until {
        before = before.min(AuditId(Uuid::new(until, 0)));
    }
    while read < READ_MAX {
        let Listing { rows, damaged } = tally.store.list_audit(before, PAGE)?;
        page.damaged.extend(damaged);
        let ends = rows.len() < PAGE;
        read += rows.len();
        for (id, entry) in rows {
            if filter.from.is_some_and(|from| id.0.at() < from) {
                return Ok(page);
            }
            before = id;
            if filter.fits(&entry) {
                page.rows.push((id, entry));
            }
            if page.rows.len() == limit {
                page.next = Some(before);
                return Ok(page);
            }
        }
        if ends {
            return Ok(page);
        }
    }
    page.next = Some(before);
    Ok(page)
}
