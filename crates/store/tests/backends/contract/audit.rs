//! The audit log: read back newest first, by pages, wherever its rows are, and stored with its act or not at all.

use super::*;
use tally_rules::audit::{AuditAction, AuditEntry, AuditId};
use tally_rules::ledger::Uuid;
use tally_rules::{Actor, KeyId, Origin};

/// Actions of the first schema with the log. Its fixtures have a row of each, and are never written again.
const FIRST: i64 = 22;

/// A row of that microsecond.
pub(crate) fn row(at: i64) -> (AuditId, AuditEntry) {
    let actor = if at % 2 == 0 { Actor::Key(KeyId([7; 6])) } else { Actor::Background };
    let origin = Origin { actor, reason: (at % 5 == 0).then(|| "Beschwerde №5".into()), metadata: None };
    let index = if at <= FIRST { at % FIRST } else { (at - 1) % AuditAction::ALL.len() as i64 };
    let action = AuditAction::ALL[index.unsigned_abs() as usize];
    let detail = (at % 3 == 0).then(|| "Grüße\0'".into());
    let entry = AuditEntry { origin, action, subject: format!("subject {at}").into(), detail };
    (AuditId(Uuid::new(Micros(at), 0)), entry)
}

/// A row of each action, one a microsecond.
pub(crate) fn rows() -> Vec<(AuditId, AuditEntry)> {
    (1..).take(AuditAction::ALL.len()).map(row).collect()
}

/// The rows of fixtures.
pub(crate) fn rows_of_fixtures() -> Vec<(AuditId, AuditEntry)> {
    (1..=FIRST).map(row).collect()
}

/// After all rows.
pub(crate) const LAST: AuditId = AuditId(Uuid([0xff; 16]));

fn write_rows(store: &dyn Store, audit: Vec<(AuditId, AuditEntry)>) {
    write(store, &WriteSet { audit, ..WriteSet::default() }).unwrap();
}

pub(crate) fn acts_read_back_newest_first(backend: &dyn Backend) {
    let store = open(backend);
    assert_eq!(store.list_audit(LAST, 9).unwrap().rows, []);
    let rows = rows();
    // Later ones are stored first, and others are in the memtable of the embedded store.
    write_rows(&*store, rows[7..].to_vec());
    store.checkpoint().unwrap();
    write_rows(&*store, rows[..7].to_vec());
    let newest: Vec<_> = rows.iter().rev().cloned().collect();
    let check = |store: &dyn Store| {
        for limit in [1, 3, 7, 1_000] {
            let (mut before, mut all) = (LAST, Vec::new());
            loop {
                let page = store.list_audit(before, limit).unwrap();
                assert_eq!(page.damaged, []);
                assert!(page.rows.len() <= limit);
                let Some((last, _)) = page.rows.last() else { break };
                before = *last;
                all.extend(page.rows);
            }
            assert_eq!(all, newest, "pages of {limit}");
        }
        assert_eq!(store.list_audit(rows[3].0, 2).unwrap().rows, newest[newest.len() - 3..newest.len() - 1]);
    };
    check(&*store);
    drop(store);
    let store = open(backend);
    check(&*store);
    store.checkpoint().unwrap();
    check(&*store);
}

/// A transaction that fails leaves no row.
pub(crate) fn an_act_that_is_refused_leaves_no_row(backend: &dyn Backend) {
    let store = open(backend);
    let bad = ledger::wallet_key(1, "KRW");
    let wallet = tally_rules::ledger::Wallet { balance: -1, ..Default::default() };
    let ledger = tally_store::LedgerWriteSet { wallets: vec![(bad, wallet)], ..Default::default() };
    let changes = WriteSet { audit: rows(), ledger, ..WriteSet::default() };
    assert!(write(&*store, &changes).is_err());
    assert_eq!(store.list_audit(LAST, 99).unwrap().rows, []);
}
