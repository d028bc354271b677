//! Wallets against their rows: entries add up to the balance, open holds to the held amount, and each has its
//! member.

use super::ahead::{Ahead, Put};
use super::entries::Entries;
use super::sorted_rows::{PAGE_ROWS, SortedRows};
use super::sum::{Sum, TransferSide};
use super::{Run, erased, since};
use crate::failure::Failure;
use std::collections::BTreeMap;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::id::Side;
use tally_rules::ledger::{Currency, Entry, EntryKind, HoldId, Member, MemberId, Wallet, WalletKey};
use tally_store::archive::ProvedWallet;
use tally_store::{Snapshot, StoreError};

/// Wallets with an open hold that are kept in memory.
const HELD_MAX: usize = 200_000;

/// The results that later checks need.
#[derive(Debug, Default)]
pub(super) struct WalletScan {
    pub(super) entries: Sum,
    /// What all members are found by.
    pub(super) handles: Sum,
    /// What all wallets have.
    pub(super) balances: BTreeMap<Currency, i128>,
    /// How many of them are of pools.
    pub(super) pools: u64,
}

pub(super) fn name(key: &WalletKey) -> String {
    format!("{}/{}", key.member.0, key.currency)
}

pub(super) fn name_of_entry(key: &EntryKey) -> String {
    format!("{}/{}", name(&key.wallet), key.sequence)
}

/// Scans members, wallets and entries side by side.
pub(super) fn reconcile(
    snapshot: &mut dyn Snapshot,
    home: Option<Currency>,
    run: &mut Run<'_>,
) -> Result<WalletScan, Failure> {
    let mut held = Ahead::collect(HELD_MAX, add, |put| open_holds(snapshot, put))?;
    let (mut wallets, mut scan) = (SortedRows::default(), WalletScan::default());
    let mut members = Members { rows: SortedRows::default(), present: None, handles: Sum::default(), home };
    let mut entries = Entries::of(run);
    loop {
        let read = wallets.fill(|after, limit| snapshot.wallets(after.copied(), limit))?;
        run.read(read);
        let Some((key, wallet)) = wallets.next() else { break };
        run.reconciled.wallets += 1;
        scan.pools += u64::from(key.member.is_pool());
        members.reach(snapshot, &key, &wallet, run)?;
        let mut no_wallet = |key, units| report_held(run, &key, units);
        let promised = held.at(&key, |put| open_holds(snapshot, put), &mut no_wallet)?;
        let of_entries = of_wallet(snapshot, &mut entries, (&key, &wallet), (&mut scan.entries, run))?;
        compare(run, &key, &wallet, (of_entries, promised.unwrap_or_default()));
        let (balance, sequence) = (wallet.balance, wallet.sequence);
        (run.listener.proved)(&key, &ProvedWallet { balance, sequence, credit: of_entries.credit })?;
        *scan.balances.entry(key.currency).or_default() += i128::from(wallet.balance);
    }
    held.rest(|put| open_holds(snapshot, put), &mut |key, units| report_held(run, &key, units))?;
    without_wallet(snapshot, &mut entries, None, (&mut scan.entries, run))?;
    since::pass(run, None)?;
    scan.handles = members.finish(snapshot, run)?;
    Ok(scan)
}

fn add(sum: &mut i128, more: i128) {
    *sum += more;
}

/// The amounts of open holds, by wallet.
fn open_holds(snapshot: &mut dyn Snapshot, put: &mut Put<'_, WalletKey, i128>) -> Result<(), StoreError> {
    let mut after: Option<HoldId> = None;
    loop {
        let page = snapshot.holds(after, PAGE_ROWS)?;
        let open = page.iter().filter(|(_, hold)| hold.is_open());
        open.for_each(|(_, hold)| put(hold.wallet, i128::from(hold.amount)));
        match page.last() {
            Some((last, _)) if page.len() == PAGE_ROWS => after = Some(*last),
            _ => return Ok(()),
        }
    }
}

fn report_held(run: &mut Run<'_>, key: &WalletKey, units: i128) {
    run.found("holds", name(key), format!("{units} is held of a wallet that is not there"));
}

/// The sums of the entries of one wallet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Story {
    pub(super) balance: i128,
    pub(super) last: u64,
    /// Promotional credit without what has expired: the most that there can be.
    pub(super) credit: i128,
}

impl Story {
    /// What an entry adds.
    pub(super) fn change(entry: &Entry) -> i128 {
        match entry.kind.side() {
            Side::Out => -i128::from(entry.amount),
            Side::In => i128::from(entry.amount),
        }
    }

    /// With one more entry.
    pub(super) fn after(self, key: &EntryKey, entry: &Entry) -> Self {
        let credit = match entry.kind {
            EntryKind::Promotion | EntryKind::Expiry => self.credit + Self::change(entry),
            _ => self.credit,
        };
        Self { balance: entry.after.into(), last: key.sequence, credit }
    }
}

fn compare(run: &mut Run<'_>, key: &WalletKey, wallet: &Wallet, (story, promised): (Story, i128)) {
    if i128::from(wallet.balance) != story.balance {
        let what = format!("its balance is {}, and its entries leave {}", wallet.balance, story.balance);
        run.found("wallets", name(key), what);
    }
    if wallet.sequence != story.last {
        // Then the file of the checkpoint has more of them.
        let is_fewer =
            wallet.sequence < story.last && run.since.as_ref().is_some_and(|since| since.file().is_some());
        let or = if is_fewer { since::RESTORED } else { "" };
        let what = format!("it counts {} entries, and the last is {}{or}", wallet.sequence, story.last);
        run.found("wallets", name(key), what);
    }
    if i128::from(wallet.held) != promised {
        run.found("wallets", name(key), format!("{} is held, and open holds are {promised}", wallet.held));
    }
    let credits = wallet.credits.as_deref().cloned().unwrap_or_default();
    if i128::from(credits.sum()) > story.credit || credits.sum() > wallet.balance {
        let what = format!(
            "its credit is {} of a balance of {}, and its entries leave at most {}",
            credits.sum(),
            wallet.balance,
            story.credit
        );
        run.found("wallets", name(key), what);
    }
    let is_held = credits.lapsed > 0 && wallet.held > wallet.balance - credits.lapsed;
    if credits.covered > wallet.held || is_held {
        let what = format!("holds reserve {}, and {} has lapsed", credits.covered, credits.lapsed);
        run.found("wallets", name(key), what);
    }
    if wallet.held < 0 || wallet.held > wallet.balance {
        let what = format!("{} is held of a balance of {}", wallet.held, wallet.balance);
        run.found("wallets", name(key), what);
    }
}

/// Adds up the entries of a wallet; those before it have none.
fn of_wallet(
    snapshot: &mut dyn Snapshot,
    entries: &mut Entries,
    (wallet, row): (&WalletKey, &Wallet),
    (sum, run): (&mut Sum, &mut Run<'_>),
) -> Result<Story, Failure> {
    without_wallet(snapshot, entries, Some(wallet), (sum, run))?;
    let mut story = since::known(run, wallet)?;
    while let Some((key, entry)) = next(snapshot, entries, |key| key.wallet == *wallet, (sum, run))? {
        let before = i128::from(entry.after) - Story::change(&entry);
        let known = match story {
            Some(story) => since::go_on(snapshot, (wallet, story, key.sequence), run)?,
            None => since::begin(run, wallet, (before, key.sequence.saturating_sub(1))),
        };
        if key.sequence != known.last + 1 {
            let what = format!("it follows entry {}: what is between is missing", known.last);
            run.found("entries", name_of_entry(&key), what);
        }
        if before != known.balance {
            let what =
                format!("the balance before it is {before}, and the one below leaves {}", known.balance);
            run.found("entries", name_of_entry(&key), what);
        }
        if entry.amount <= 0 || entry.after < 0 {
            let what = format!("an amount of {} that leaves {}", entry.amount, entry.after);
            run.found("entries", name_of_entry(&key), what);
        }
        story = Some(known.after(&key, &entry));
    }
    Ok(match story {
        Some(story) => since::go_on(snapshot, (wallet, story, row.sequence.saturating_add(1)), run)?,
        None => since::begin(run, wallet, (row.balance.into(), row.sequence)),
    })
}

/// Reports entries of wallets that are not there, each wallet once.
fn without_wallet(
    snapshot: &mut dyn Snapshot,
    entries: &mut Entries,
    until: Option<&WalletKey>,
    (sum, run): (&mut Sum, &mut Run<'_>),
) -> Result<(), Failure> {
    let is_before = |key: &EntryKey| until.is_none_or(|until| key.wallet < *until);
    let mut last = None;
    while let Some((key, _)) = next(snapshot, entries, is_before, (sum, run))? {
        if last.replace(key.wallet) != Some(key.wallet) {
            run.found("entries", name_of_entry(&key), "its wallet is not there");
        }
    }
    Ok(())
}

/// The next entry, if it is `wanted`.
fn next(
    snapshot: &mut dyn Snapshot,
    entries: &mut Entries,
    wanted: impl Fn(&EntryKey) -> bool,
    (sum, run): (&mut Sum, &mut Run<'_>),
) -> Result<Option<(EntryKey, Entry)>, Failure> {
    let read = entries.fill(snapshot)?;
    run.read(read);
    if !entries.peek().is_some_and(|(key, _)| wanted(key)) {
        return Ok(None);
    }
    let Some((key, entry)) = entries.next() else { return Ok(None) };
    run.reconciled.entries += 1;
    sum.add(&run.key, &side(&key, &entry));
    since::note(run, entry.transfer)?;
    Ok(Some((key, entry)))
}

pub(super) fn side(key: &EntryKey, entry: &Entry) -> TransferSide {
    let Entry { transfer, kind, amount, counterparty, .. } = entry;
    TransferSide { key: *key, transfer: *transfer, kind: *kind, amount: *amount, counterparty: *counterparty }
}

/// Members, beside the wallets.
struct Members {
    rows: SortedRows<MemberId, Member>,
    /// The member whose wallets are being read, and whether the one in the home currency was there.
    present: Option<(MemberId, Member, bool)>,
    /// What those that passed are found by.
    handles: Sum,
    home: Option<Currency>,
}

impl Members {
    /// Advances to the member of a wallet.
    fn reach(
        &mut self,
        snapshot: &mut dyn Snapshot,
        key: &WalletKey,
        wallet: &Wallet,
        run: &mut Run<'_>,
    ) -> Result<(), StoreError> {
        while self.present.as_ref().is_none_or(|(id, ..)| *id < key.member) {
            self.leave(run);
            if !self.next(snapshot, run)? {
                break;
            }
        }
        match &mut self.present {
            Some((id, member, at_home)) if *id == key.member => {
                if self.home.is_none_or(|home| home == key.currency) {
                    *at_home = true;
                    let (closed, is_closed) = (wallet.closed, member.closed_at.is_some());
                    if closed != is_closed && self.home.is_some() {
                        let word = |closed| if closed { "closed" } else { "open" };
                        let what = format!("it is {}, and its member is {}", word(closed), word(is_closed));
                        run.found("wallets", name(key), what);
                    }
                }
            }
            _ if key.member.is_pool() => {}
            _ => run.found("wallets", name(key), "its member is not there"),
        }
        Ok(())
    }

    fn next(&mut self, snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<bool, StoreError> {
        let read = self.rows.fill(|after, limit| snapshot.members(after.copied(), limit))?;
        run.read(read);
        let next = self.rows.next();
        if let Some((id, member)) = &next {
            run.reconciled.members += 1;
            erased::note(run, *id, member);
            member.handles(*id).iter().for_each(|handle| self.handles.add_handle(&run.key, handle, *id));
        }
        self.present = next.map(|(id, member)| (id, member, false));
        Ok(self.present.is_some())
    }

    fn leave(&mut self, run: &mut Run<'_>) {
        if let Some((id, _, false)) = self.present.take() {
            run.found("members", id.0, "its wallet is not there");
        }
    }

    fn finish(mut self, snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<Sum, StoreError> {
        self.leave(run);
        while self.next(snapshot, run)? {
            self.leave(run);
        }
        Ok(self.handles)
    }
}
