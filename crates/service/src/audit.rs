//! The audit log: the actor and the id of an act before it is done, and the log by filters.
//!
//! A row is stored in the transaction of its act (`tally_rules::audit`). Not here: the rows of each kind of act, which its own
//! file adds; holds and transfers of games, which have their actor themselves.

use crate::clock;
use crate::failure::{Failure, Fault};
use crate::scan::{ListRange, ScanPage, scan};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, AuditEntry, AuditId, Audited, STORE};
use tally_rules::ledger::MemberId;
use tally_rules::ledger::erasure::lists;
use tally_rules::{Actor, Micros, Origin, PlayerId};
use tally_store::{ReadSet, ShardSet, Store, WriteSet};

/// An act of this origin, of now.
pub(crate) fn begin(origin: Origin, now: Micros) -> Result<Audited, Failure> {
    let mut node = [0; 8];
    getrandom::fill(&mut node)
        .map_err(|error| Fault::Broken(format!("no random numbers for the audit log: {error}")))?;
    Ok(Audited::new(origin, now, u64::from_le_bytes(node)))
}

/// The same of an act with members or money, or of a removal from a leaderboard. It is an act if a key of role `admin` does it, or a
/// caller on this machine gives a reason. `None` for all others: the acts of a game would add as many rows as it makes transfers.
pub(crate) fn of_admin(tally: &Tally, origin: &Origin) -> Result<Option<Audited>, Failure> {
    let is_act = match origin.actor {
        Actor::Key(key) => tally.keys.is_admin(key),
        Actor::Local | Actor::CommandLine => origin.reason.is_some(),
        Actor::Unknown | Actor::Member(_) | Actor::Background => false,
    };
    let origin = || Origin { metadata: None, ..origin.clone() };
    is_act.then(|| begin(origin(), tally.now())).transpose()
}

/// The row of a command that acts on the store without a server. It stores the row itself.
pub fn of_command(
    action: AuditAction,
    detail: &str,
    reason: Option<&str>,
) -> Result<(AuditId, AuditEntry), Failure> {
    let origin = Origin { actor: Actor::CommandLine, reason: reason.map(Into::into), metadata: None };
    Ok(begin(origin, clock::system().now())?.row(action, STORE, Some(detail.into())))
}

/// Stores a row by itself. Blocks on the store.
pub fn append(store: &dyn Store, row: (AuditId, AuditEntry)) -> Result<(), Failure> {
    let plan = ReadSet { shards: ShardSet::of(0), ..ReadSet::default() };
    store.run(&plan, &mut |_| WriteSet { audit: vec![row.clone()], ..WriteSet::default() })?;
    Ok(())
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
    /// Those on subjects that begin so.
    pub subject_prefix: Option<Arc<str>>,
}

impl Filter {
    fn fits(&self, entry: &AuditEntry) -> bool {
        self.actor.is_none_or(|actor| actor == entry.origin.actor)
            && self.action.is_none_or(|action| action == entry.action)
            && self.subject.as_ref().is_none_or(|subject| *subject == entry.subject)
            && self.subject_prefix.as_ref().is_none_or(|prefix| entry.subject.starts_with(&**prefix))
    }
}

/// A page of the log by a filter. Blocks on the store.
pub fn list(tally: &Tally, filter: &Filter, span: &ListRange) -> Result<ScanPage<AuditEntry>, Failure> {
    listed(tally, span, |entry| filter.fits(entry))
}

/// A page of the rows that are acts of a member, or name it or its player. Blocks on the store.
pub fn about(
    tally: &Tally,
    (member, player): (MemberId, Option<&PlayerId>),
    span: &ListRange,
) -> Result<ScanPage<AuditEntry>, Failure> {
    let id = member.0.to_string();
    listed(tally, span, |entry| {
        entry.origin.actor == Actor::Member(member)
            || *entry.subject == *id
            || entry.names_side(&id)
            || player.is_some_and(|player| names(entry, player.as_str()))
    })
}

fn names(entry: &AuditEntry, player: &str) -> bool {
    entry.action.is_of_player() && *entry.subject == *player
        || entry.detail.as_ref().is_some_and(|detail| lists(detail, player))
}

fn listed(
    tally: &Tally,
    span: &ListRange,
    fits: impl Fn(&AuditEntry) -> bool,
) -> Result<ScanPage<AuditEntry>, Failure> {
    let read = |before, limit| {
        let rows = tally.store.list_audit(AuditId(before), limit)?;
        Ok(rows.map(|(id, entry)| (id.0, entry)))
    };
    scan(span, read, |rows, _| Ok(rows.into_iter().filter(|(_, entry)| fits(entry)).collect()))
}
