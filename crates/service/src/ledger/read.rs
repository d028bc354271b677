//! Reading money: wallets, their history, transfers, and the totals of accounts.
//!
//! A history is a range of numbers: entries are numbered without a gap and never change. So a page that begins below a number
//! is the same whenever it is read. Not here: permissions.

use crate::failure::{Failure, blocking};
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::ledger::account::{Account, Total, Totals};
use tally_rules::ledger::{
    Currency, Entry, EntryKey, MemberId, ReversalLink, Transfer, TransferId, Uuid, Wallet, WalletKey,
};
use tally_rules::{Origin, Rejection};
use tally_store::{Listing, Store, StoreError};

/// A page of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// The entries, newest first.
    pub entries: Listing<Entry>,
    /// The origin of each entry's transfer, if the caller asks for origins.
    pub origins: Vec<Origin>,
    /// The names of the counterparties.
    pub names: MemberNames,
    /// The next number below the page, if there are older entries.
    pub more_below: Option<u64>,
}

/// A transfer with its entries: the debited and the credited side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferWithEntries {
    /// The id of the transfer.
    pub id: TransferId,
    /// The transfer itself.
    pub transfer: Transfer,
    /// Its entry on each side.
    pub entries: [Option<Entry>; 2],
    /// Its reversals, or the transfer that it reverses.
    pub link: Option<ReversalLink>,
    /// The names of its members.
    pub names: MemberNames,
}

impl TransferWithEntries {
    /// The caller's reference.
    pub fn reference(&self) -> Option<&Arc<str>> {
        self.entries.iter().flatten().find_map(|entry| entry.reference.as_ref())
    }

    /// The reason. That of a reversal from before reasons of transfers is in its link.
    pub fn reason(&self) -> Option<&str> {
        let of_link = match &self.link {
            Some(ReversalLink::Reverses { reason, .. }) => reason.as_deref(),
            Some(ReversalLink::Reversed(_)) | None => None,
        };
        self.transfer.origin.reason.as_deref().or(of_link)
    }
}

/// Every wallet of a member, in order of currency.
pub async fn wallets(tally: &Tally, member: MemberId) -> Result<Listing<(Currency, Wallet)>, Failure> {
    let store = Arc::clone(&tally.store);
    let mut all = blocking(move || Ok(store.ledger().list_wallets(member)?)).await?;
    // What has expired cannot be spent, even before the background task takes it out.
    if let Some(now) = tally.trusted_now() {
        all.rows.iter_mut().for_each(|(_, wallet)| wallet.settle(now));
    }
    // Every member has one from the start.
    if all.rows.is_empty() && all.damaged.is_empty() {
        Err(Rejection::MemberNotFound.into())
    } else {
        Ok(all)
    }
}

/// A member's wallet.
pub async fn wallet(tally: &Tally, key: WalletKey) -> Result<Wallet, Failure> {
    let currencies = &tally.settings.ledger.currencies;
    let missing = || currencies.check(key.currency).err().unwrap_or(Rejection::WalletNotFound(key.currency));
    let mut all = wallets(tally, key.member).await?;
    let Some(at) = all.rows.iter().position(|(currency, _)| *currency == key.currency) else {
        // It may be a corrupt one.
        all.whole()?;
        return Err(missing().into());
    };
    Ok(all.rows.swap_remove(at).1)
}

/// At most `limit` entries of a wallet below a number, or the newest; with the origins of their transfers, if asked for.
pub async fn history(
    tally: &Tally,
    key: WalletKey,
    (below, limit): (Option<u64>, usize),
    with_origins: bool,
) -> Result<HistoryPage, Failure> {
    let newest = wallet(tally, key).await?.sequence;
    let until = below.unwrap_or(u64::MAX).min(newest.saturating_add(1));
    let from = until.saturating_sub(limit as u64).max(1);
    let store = Arc::clone(&tally.store);
    let found = blocking(move || {
        let entries = store.ledger().list_entries(key, from..until)?.map(|(_, entry)| entry);
        let origins = if with_origins { origins(&*store, &entries.rows)? } else { Vec::new() };
        let names = names(&*store, entries.rows.iter().filter_map(|entry| entry.counterparty))?;
        Ok((entries, origins, names))
    });
    let (entries, origins, names) = found.await?;
    let more_below = Some(from).filter(|number| *number > 1 && from < until);
    Ok(HistoryPage { entries, origins, names, more_below })
}

/// The origins of the transfers of some entries. An entry without its transfer is damage, which `verify` reports.
fn origins(store: &dyn Store, entries: &[Entry]) -> Result<Vec<Origin>, Failure> {
    let ids = tally_lanes::keys_to_load(entries.iter().map(|entry| entry.transfer));
    let found = sound(&ids, |ids| store.ledger().transfers(ids))?;
    let of = |entry: &Entry| {
        let at = ids.binary_search(&entry.transfer).ok();
        at.and_then(|at| found[at].as_ref()).map(|transfer| transfer.origin.clone()).unwrap_or_default()
    };
    Ok(entries.iter().map(of).collect())
}

/// Names of members.
pub type MemberNames = BTreeMap<MemberId, Arc<str>>;

/// The names of members, in one read.
pub(crate) fn names(
    store: &dyn Store,
    members: impl IntoIterator<Item = MemberId>,
) -> Result<MemberNames, Failure> {
    let ids = tally_lanes::keys_to_load(members);
    let found = sound(&ids, |ids| store.ledger().members(ids))?;
    Ok(ids.into_iter().zip(found).filter_map(|(id, member)| Some((id, member?.name))).collect())
}

/// The rows of keys for a page. A corrupt row costs its own place, and not the page.
pub(super) fn sound<K, V>(
    keys: &[K],
    read: impl Fn(&[K]) -> Result<Vec<Option<V>>, StoreError>,
) -> Result<Vec<Option<V>>, StoreError> {
    let alone = |key| match read(std::slice::from_ref(key)) {
        Err(StoreError::CorruptRow(_)) => Ok(None),
        found => Ok(found?.pop().flatten()),
    };
    match read(keys) {
        Err(StoreError::CorruptRow(_)) => keys.iter().map(alone).collect(),
        found => found,
    }
}

/// A transfer, by its id or that of one of its entries.
pub async fn transfer(tally: &Tally, id: Uuid) -> Result<TransferWithEntries, Failure> {
    let (store, of) = (Arc::clone(&tally.store), TransferId::of(id));
    let found = blocking(move || {
        let ledger = store.ledger();
        let Some(transfer) = ledger.transfer(of)? else { return Ok(None) };
        let keys: Vec<EntryKey> = transfer.entries().into_iter().flatten().collect();
        let mut entries = ledger.entries(&keys)?.into_iter();
        let entries = transfer.entries().map(|key| key.and_then(|_| entries.next().flatten()));
        let members = [transfer.debit, transfer.credit].into_iter().flatten().map(|(member, _)| member);
        let names = names(&*store, members)?;
        Ok(Some(TransferWithEntries { id: of, transfer, entries, link: ledger.reversal(of)?, names }))
    });
    let is_of = |found: &TransferWithEntries| {
        found.id.0 == id || found.entries.iter().flatten().any(|one| one.id() == id)
    };
    Ok(found.await?.filter(is_of).ok_or(Rejection::TransactionNotFound)?)
}

/// The total of every account, in each currency that is configured or was used.
pub async fn accounts(tally: &Tally) -> Result<Totals, Failure> {
    let store = Arc::clone(&tally.store);
    let stored = blocking(move || Ok(store.ledger().totals()?)).await?;
    let mut totals = Totals::default();
    for currency in tally.settings.ledger.currencies.all() {
        Account::ALL.iter().for_each(|account| totals.account(*account, currency, Total::default()));
    }
    totals.extend(stored);
    Ok(totals)
}
