//! The second message of a transaction: one statement for each table, the commit marker, COMMIT.
//!
//! A key that had no row when it was read is inserted without ON DUPLICATE KEY. So a row that another transaction inserted
//! meanwhile is a conflict. A key that had none and gets none is guarded: inserted and deleted again. So the rows of the
//! decision hold until the end, without a lock on missing ones. Not here: changes that refer to existing boards and keys,
//! which `run` reads first, and bans, which take the revision.

use super::audit::{self, Audit};
use super::connect::Flavour;
use super::contests::Members as Entrants;
use super::imports::Imports;
use super::load::Absent;
use super::profiles::Profiles;
use super::requests::Requests;
use super::table::{self, changed, pairs, written};
use super::text::Script;
use super::transfers::Transfers;
use super::windows::{self, Blocks, Windows};
use super::{Version, ledger, scores};
use crate::plan::WriteSet;
use crate::redacted::Redacted;
use tally_rules::ledger::{Wallet, WalletKey};

/// Writes changes of every table but boards, keys and bans. The wallets of `cached` were not read in this transaction.
pub(super) fn rows(
    script: &mut Script,
    changes: &WriteSet,
    (absent, cached): (&Absent, &[(WalletKey, Wallet)]),
    (flavour, version): (Flavour, Version),
    slot: u8,
) {
    guard(script, Some(changes), absent);
    table::write::<Requests>(script, written(&changes.requests), &absent.requests, flavour);
    table::write::<Imports>(script, written(&changes.imports), &absent.imports, flavour);
    table::write::<Profiles>(script, changed(&changes.profiles), &absent.profiles, flavour);
    scores::write(
        script,
        &changes.scores,
        |key| absent.scores.binary_search(key).is_ok(),
        (flavour, version),
    );
    table::write::<Windows>(script, changed(&changes.windows), &[], flavour);
    table::upsert::<Blocks>(script, pairs(&changes.blocks), flavour);
    windows::write_gone(script, &changes.garbage);
    table::insert::<Audit>(script, pairs(&changes.audit));
    redacted(script, &changes.redacted, flavour);
    ledger::write(script, &changes.ledger, (&absent.ledger, cached), (flavour, slot));
}

/// Replaces rows that lose what names an erased person.
fn redacted(script: &mut Script, rows: &Redacted, flavour: Flavour) {
    audit::replace(script, &rows.audit);
    table::upsert::<Transfers>(script, pairs(&rows.transfers), flavour);
    table::write::<Entrants>(script, changed(&rows.entrants), &[], flavour);
}

/// Fails if a key that had no row, and gets none by the changes, has a row now.
pub(super) fn guard(script: &mut Script, changes: Option<&WriteSet>, absent: &Absent) {
    let none = WriteSet::default();
    let changes = changes.unwrap_or(&none);
    table::guard::<Requests>(script, &absent.requests, written(&changes.requests));
    table::guard::<Imports>(script, &absent.imports, written(&changes.imports));
    table::guard::<Profiles>(script, &absent.profiles, changed(&changes.profiles));
    let scores = table::unwritten(&absent.scores, changed(&changes.scores));
    scores::guard(script, scores.into_iter());
    ledger::guard(script, &changes.ledger, &absent.ledger);
}
