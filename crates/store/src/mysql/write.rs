//! The second message of a transaction: one statement for each table, the row of the batch, COMMIT.
//!
//! A key that had no row when it was read is inserted without a word about duplicates, so somebody else's row that came
//! meanwhile is a conflict. A key that had none and gets none is guarded: inserted and deleted again. So what was
//! decided on holds until the end, without a lock on what is not there. Not here: changes that refer to boards and
//! keys that are there, which `run` reads first, and bans, which take the revision.

use super::connect::Flavour;
use super::load::Absent;
use super::text::Script;
use super::{Version, imports, ledger, parts, profiles, requests, scores};
use crate::plan::Changes;
use tally_rules::ledger::{Wallet, WalletKey};

/// Writes changes of every table but boards, keys and bans. Of the wallets, `cached` were not read in this transaction.
pub(super) fn rows(
    script: &mut Script,
    changes: &Changes,
    (absent, cached): (&Absent, &[(WalletKey, Wallet)]),
    (flavour, version): (Flavour, Version),
    slot: u8,
) {
    guard(script, Some(changes), absent);
    requests::write(script, &changes.requests, |key| absent.requests.binary_search(key).is_ok(), flavour);
    imports::write(script, &changes.imports, |key| absent.imports.binary_search(key).is_ok(), flavour);
    profiles::write(script, &changes.profiles, |key| absent.profiles.binary_search(key).is_ok(), flavour);
    scores::write(
        script,
        &changes.scores,
        |key| absent.scores.binary_search(key).is_ok(),
        (flavour, version),
    );
    parts::write(script, &changes.parts, flavour);
    parts::write_blocks(script, &changes.blocks, flavour);
    parts::write_gone(script, &changes.gone);
    ledger::write(script, &changes.ledger, (&absent.ledger, cached), (flavour, slot));
}

/// Fails where a key that had no row, and is not given one by the changes, has one by now.
pub(super) fn guard(script: &mut Script, changes: Option<&Changes>, absent: &Absent) {
    let none = Changes::default();
    let changes = changes.unwrap_or(&none);
    let is_written = |key: &_| {
        let at = changes.requests.binary_search_by(|(other, _)| other.cmp(key));
        at.is_ok()
    };
    requests::guard(script, absent.requests.iter().filter(|key| !is_written(*key)));
    let is_written = |key: &_| changes.imports.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
    imports::guard(script, absent.imports.iter().filter(|key| !is_written(*key)));
    let is_written = |key: &_| {
        let at = changes.profiles.binary_search_by(|(other, _)| other.cmp(key));
        at.is_ok_and(|at| changes.profiles[at].1.is_some())
    };
    profiles::guard(script, absent.profiles.iter().filter(|key| !is_written(*key)));
    let is_written = |key: &_| {
        let at = changes.scores.binary_search_by(|(other, _)| other.cmp(key));
        at.is_ok_and(|at| changes.scores[at].1.is_some())
    };
    scores::guard(script, absent.scores.iter().filter(|key| !is_written(*key)));
    ledger::guard(script, &changes.ledger, &absent.ledger);
}
