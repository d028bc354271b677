//! Verifying the store: whether balances, transfers and totals agree with their rows, and archives and periods with the records.
//!
//! Rows are read in the order of their keys from a snapshot of one moment, so memory is that of some pages however long the
//! ledger is. Every row that disagrees is reported; nothing is repaired.
//!
//! - `wallets`: balances against entries and open holds, wallets against members
//! - `handles`: the handles of members against members
//! - `transfers`: transfers against entries and captured holds, totals against transfers
//! - `reversals`: reversals against the transfers that they reverse
//! - `contests`, `periods`: fees, prizes and refunds against their transfers
//! - `pools`: pools of contests against their wallets
//! - `since`, `entries`: what comes after a checkpoint alone
//! - `owed`: unpaid debts of contests and periods, which are listed and no disagreement
//! - `scores`, `archives`, `schedule`: records against boards, periods and archives; archives against periods; periods against
//!   the calendar
//! - `applications`: applications against holds, and holds of fees against applications
//! - `erased`: rows that still name an erased member
//! - `owners`: rows of missing contests and periods
//! - `webhooks`: positions of webhooks against the events of their topics
//! - `ahead`: values in another order; `sorted_rows`: pages; `sum`: two sets of rows compared without keeping them
//!
//! A corrupt row is reported too, and is missing for the rest. Not here: ranks in a server's memory.

mod ahead;
mod applications;
mod archives;
mod contests;
mod entries;
mod erased;
mod handles;
mod owed;
mod owners;
mod periods;
mod pools;
mod reversals;
mod schedule;
mod scores;
mod since;
mod sorted_rows;
mod sum;
mod transfers;
mod wallets;
mod webhooks;

use crate::failure::Failure;
use crate::ledger::HOME_META;
use crate::members::index_names;
pub use owed::Owed;
pub use scores::ScoreCounts;
pub use since::{CLOCKS_APART_MICROS, Checkpoint, MonthCheckpoint};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tally_rules::Micros;
use tally_rules::ledger::account::{Account, AccountKey, Total, Totals};
use tally_rules::ledger::{Currency, Month, TransferId, WalletKey};
use tally_store::archive::{ArchivedMonth, ProvedWallet};
use tally_store::{CorruptRow, Snapshot, Store, StoreError};

/// Corrupt rows that are reported once; more are not kept in memory.
const REPORTED_MAX: usize = 100_000;

/// A row that disagrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The table of the row.
    pub table: &'static str,
    /// The key of the row, as text.
    pub row: String,
    /// With what, and how.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.table, self.row, self.what)
    }
}

/// The result of a reconciliation.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// Members that were compared.
    pub members: u64,
    /// Those that were erased.
    pub erased: u64,
    /// Those whose erasure still runs.
    pub being_erased: u64,
    /// Names, logins, phone numbers and players that find them.
    pub handles: u64,
    /// Wallets that were compared.
    pub wallets: u64,
    /// Entries that were compared.
    pub entries: u64,
    /// Transfers that were compared.
    pub transfers: u64,
    /// Those of them with an id from before the checkpoint. Their holds, links and contests were not compared.
    pub late: u64,
    /// Holds that were compared.
    pub holds: u64,
    /// Contests that have started.
    pub contests: u64,
    /// Applications for contests that are in the store.
    pub applications: u64,
    /// Records, periods and archives.
    pub scores: ScoreCounts,
    /// The sums of transfers, in order of account and currency.
    pub totals: Vec<(AccountKey, Total)>,
    /// The newest of the transfers.
    pub newest: Option<TransferId>,
    /// The last month that has files, and its digest.
    pub archived: Option<(Month, [u8; 32])>,
    /// What contests and periods have not paid.
    pub owed: Owed,
    /// How many rows disagree.
    pub disagreements: u64,
}

/// The receiver of the progress.
pub struct Listener<'a> {
    /// Each row that disagrees.
    pub found: &'a mut dyn FnMut(&Disagreement),
    /// Gets the number of rows since its last call.
    pub read: &'a mut dyn FnMut(u64),
    /// Gets each wallet in order, as its entries leave it.
    pub proved: &'a mut dyn FnMut(&WalletKey, &ProvedWallet) -> Result<(), StoreError>,
}

/// What every member has. It is read before the snapshot, because rows of before may lack it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// The currency that every member has a wallet in, once there is a member.
    home: Option<Currency>,
    /// Whether every open member has a handle of its name: those of earlier versions get it later.
    names: bool,
}

impl Expected {
    /// That of a store.
    pub fn of(store: &dyn Store) -> Result<Self, Failure> {
        let home = store.meta(HOME_META)?;
        let home = home.and_then(|bytes| Currency::parse(std::str::from_utf8(&bytes).ok()?));
        Ok(Self { home, names: index_names::is_done(store)? })
    }
}

/// Reconciles all of it, or what came after a checkpoint. Also checks the positions of webhooks, which follow no snapshot.
pub fn reconcile(
    store: &dyn Store,
    snapshot: &mut dyn Snapshot,
    (expected, now, checkpoint): (Expected, Micros, Option<Checkpoint>),
    listener: Listener<'_>,
) -> Result<Reconciled, Failure> {
    let (reconciled, reported) = (Reconciled::default(), BTreeSet::new());
    if let Some(month) = checkpoint.as_ref().and_then(Checkpoint::left_out) {
        snapshot.leave_out(month)?;
    }
    let (erased, since) = (erased::Erased::default(), checkpoint.map(since::Since::new));
    let mut run = Run { listener, reconciled, reported, key: sum::key()?, erased, since };
    scores::reconcile(snapshot, now, &mut run)?;
    run.damaged(snapshot);
    let scan = wallets::reconcile(snapshot, expected.home, &mut run)?;
    handles::reconcile(snapshot, (scan.handles, expected.names), &mut run)?;
    let totals = transfers::reconcile(snapshot, scan.entries, &mut run)?;
    contests::reconcile(snapshot, &mut run)?;
    pools::check(snapshot, scan.pools, &mut run)?;
    applications::reconcile(snapshot, &mut run)?;
    owners::reconcile(snapshot, &mut run)?;
    erased::reconcile(snapshot, &mut run)?;
    webhooks::check(store, &mut run)?;
    check_totals(&totals, &snapshot.totals()?, &scan.balances, &mut run);
    since::check(&mut run);
    run.damaged(snapshot);
    run.reconciled.totals = totals.into_rows();
    run.reconciled.archived = newest_archive(snapshot)?;
    Ok(run.reconciled)
}

/// The last month that has files, and its digest.
fn newest_archive(snapshot: &mut dyn Snapshot) -> Result<Option<(Month, [u8; 32])>, StoreError> {
    let digest = |(month, row): (Month, ArchivedMonth)| Some((month, row.files?.digest));
    Ok(snapshot.archived_months()?.into_iter().filter_map(digest).next_back())
}

/// The results so far.
struct Run<'a> {
    listener: Listener<'a>,
    reconciled: Reconciled,
    /// Corrupt rows that were reported.
    reported: BTreeSet<(&'static str, String)>,
    key: [u8; 32],
    erased: erased::Erased,
    since: Option<since::Since>,
}

impl Run<'_> {
    /// Reports rows that could not be read.
    fn damaged(&mut self, snapshot: &mut dyn Snapshot) {
        for CorruptRow { table, key, what } in snapshot.corrupt_rows() {
            if self.reported.len() < REPORTED_MAX && self.reported.insert((table, key.clone())) {
                self.found(table, key, format!("it is damaged: {what}"));
            }
        }
    }

    /// Transfers up to this id are not checked.
    fn after(&self) -> Option<TransferId> {
        self.since.as_ref().map(since::Since::last)
    }

    fn found(&mut self, table: &'static str, row: impl fmt::Display, what: impl Into<String>) {
        self.reconciled.disagreements += 1;
        (self.listener.found)(&Disagreement { table, row: row.to_string(), what: what.into() });
    }

    fn read(&mut self, rows: usize) {
        (self.listener.read)(rows as u64);
    }
}

/// Totals as stored against those of all transfers, debits against credits, and what the bank owes against all balances.
fn check_totals(
    summed: &Totals,
    stored: &[(AccountKey, Total)],
    balances: &BTreeMap<Currency, i128>,
    run: &mut Run<'_>,
) {
    let name = |key: &AccountKey| format!("{}/{}", key.account, key.currency);
    let shown = |total: &Total| format!("debits {} and credits {}", total.debits, total.credits);
    let mut wanted: BTreeMap<AccountKey, Total> = summed.rows().map(|(key, total)| (*key, *total)).collect();
    let mut debits: BTreeMap<Currency, (u128, u128)> = BTreeMap::new();
    for (key, total) in stored {
        let sums = debits.entry(key.currency).or_default();
        *sums = (sums.0.saturating_add(total.debits), sums.1.saturating_add(total.credits));
        let of_transfers = wanted.remove(key).unwrap_or_default();
        if of_transfers != *total {
            run.found(
                "totals",
                name(key),
                format!("{}, and its movements come to {}", shown(total), shown(&of_transfers)),
            );
        }
    }
    for (key, total) in wanted {
        run.found("totals", name(&key), format!("is not there, and its movements come to {}", shown(&total)));
    }
    for (currency, (debits, credits)) in debits {
        if debits != credits {
            run.found("totals", currency, format!("debits are {debits} and credits {credits}"));
        }
    }
    let mut owed: BTreeMap<Currency, i128> = balances.keys().map(|code| (*code, 0)).collect();
    for (key, total) in stored.iter().filter(|(key, _)| key.account == Account::BankPayable) {
        // A total that does not fit was found above.
        owed.insert(key.currency, total.credits.cast_signed().wrapping_sub(total.debits.cast_signed()));
    }
    for (currency, owed) in owed {
        let have = balances.get(&currency).copied().unwrap_or_default();
        if owed != have {
            let row = format!("{}/{currency}", Account::BankPayable);
            run.found("totals", row, format!("{owed} is owed, and wallets have {have}"));
        }
    }
}
