//! Names that earlier versions stored, corrected by the first start on such a store.
//!
//! A closed member kept its login, phone number and player for ever: they are released. Its wallets and history stay.
//!
//! A number sent as `0000123456` was stored as `00123456` and read as `123456`. No request named it, and a change of its member
//! took `123456` from another. So a stored number that begins with 00 is removed. Its member gets the number that it was read
//! as, unless another member has that. If several rows claim one number, its owner is unknown, and all of them lose it. Each
//! corrected member is logged.
//!
//! The rows may be in a journal, which no migration of the schema reads. The store records that it was done. Every transaction
//! is idempotent, so servers may start side by side.

use crate::failure::{Failure, Fault};
use crate::ledger::HOME_META;
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::ledger::member::{Handle, Phone};
use tally_rules::ledger::{Member, MemberId};
use tally_store::{
    LedgerLoaded, LedgerReadSet, LedgerWriteSet, ReadSet, ShardSet, Store, StoreError, WriteSet,
};

/// The name under which the store remembers it.
const CORRECTED_META: &str = "names_mended";

/// Rows that are read at once, and numbers that are corrected in one round.
const PAGE: usize = 1_000;

/// How often a transaction is retried after a conflict.
const ATTEMPTS_MAX: usize = 8;

/// Corrects all of them, once.
pub(crate) fn names(store: &dyn Store, country: Option<&str>) -> Result<(), Failure> {
    // Without a home currency there was never a member.
    if store.meta(HOME_META)?.is_none() || store.meta(CORRECTED_META)?.is_some() {
        return Ok(());
    }
    release_closed(store)?;
    correct_phones(store, country)?;
    Ok(store.set_meta(CORRECTED_META, b"1")?)
}

/// Releases what finds closed members.
fn release_closed(store: &dyn Store) -> Result<(), Failure> {
    let mut released = 0;
    each_page(store, |page| {
        let closed = page.iter().filter(|(_, member)| member.closed_at.is_some());
        let handles: BTreeSet<Handle> = closed.clone().flat_map(|(id, member)| member.names(*id)).collect();
        let ids: BTreeSet<MemberId> = closed.map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let ledger = LedgerReadSet { handles: handles.into_iter().collect(), ..LedgerReadSet::default() };
        let changed = run(store, ledger, &mut |plan, loaded| {
            let found = plan.handles.iter().zip(&loaded.handles);
            let theirs = found.filter(|(_, owner)| owner.is_some_and(|owner| ids.contains(&owner)));
            let handles = theirs.map(|(handle, _)| (handle.clone(), None)).collect();
            LedgerWriteSet { handles, ..LedgerWriteSet::default() }
        })?;
        released += changed.handles.len();
        Ok(())
    })?;
    if released > 0 {
        tracing::info!(released, "logins, phone numbers and players of closed members were released");
    }
    Ok(())
}

/// Corrects phone numbers that no request can name.
fn correct_phones(store: &dyn Store, country: Option<&str>) -> Result<(), Failure> {
    loop {
        let misread = misread(store)?;
        if misread.is_empty() {
            return Ok(());
        }
        let mut claims = claims(store, &misread, country)?;
        for (phone, owner) in misread {
            let corrected = phone.corrected(country);
            let members = claims.entry(corrected.clone()).or_default();
            members.insert(owner);
            correct(store, &phone, corrected.as_ref(), members, country)?;
        }
    }
}

/// The first numbers that no request can name, and the member that each finds.
fn misread(store: &dyn Store) -> Result<Vec<(Phone, MemberId)>, Failure> {
    let after = Handle::Phone(Phone::before_misread());
    let page = store.ledger().snapshot()?.handles(Some(&after), PAGE)?;
    let phones = page.into_iter().map_while(|(handle, member)| match handle {
        Handle::Phone(phone) if phone.is_misread() => Some((phone, member)),
        _ => None,
    });
    Ok(phones.collect())
}

/// The members whose rows claim one of these numbers after the correction.
fn claims(
    store: &dyn Store,
    misread: &[(Phone, MemberId)],
    country: Option<&str>,
) -> Result<BTreeMap<Option<Phone>, BTreeSet<MemberId>>, Failure> {
    let mut claims: BTreeMap<_, BTreeSet<_>> =
        misread.iter().map(|(phone, _)| (phone.corrected(country), BTreeSet::new())).collect();
    each_page(store, |page| {
        for (id, member) in page {
            if let Some(corrected) = member.phone.as_ref().and_then(|phone| phone.corrected(country))
                && let Some(members) = claims.get_mut(&Some(corrected))
            {
                members.insert(*id);
            }
        }
        Ok(())
    })?;
    Ok(claims)
}

/// Reads all members, some at a time.
fn each_page(
    store: &dyn Store,
    mut each: impl FnMut(&[(MemberId, Member)]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut snapshot, mut after) = (store.ledger().snapshot()?, None);
    loop {
        let page = snapshot.members(after, PAGE)?;
        each(&page)?;
        match page.last() {
            Some((last, _)) if page.len() == PAGE => after = Some(*last),
            _ => return Ok(()),
        }
    }
}

/// Reads and changes in one transaction, with retries after conflicts. Returns the changes.
fn run(
    store: &dyn Store,
    ledger: LedgerReadSet,
    decide: &mut dyn FnMut(&LedgerReadSet, &LedgerLoaded) -> LedgerWriteSet,
) -> Result<LedgerWriteSet, Failure> {
    let plan = ReadSet { ledger, shards: ShardSet::of(0), ..ReadSet::default() };
    for _ in 0..ATTEMPTS_MAX {
        let mut changed = LedgerWriteSet::default();
        let done = store.run(&plan, &mut |loaded| {
            changed = decide(&plan.ledger, &loaded.ledger);
            WriteSet { ledger: changed.clone(), ..WriteSet::default() }
        });
        match done {
            Ok(_) => return Ok(changed),
            Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Fault::Overloaded.into())
}

/// Removes one number, and decides which member gets the corrected one.
fn correct(
    store: &dyn Store,
    phone: &Phone,
    corrected: Option<&Phone>,
    members: &BTreeSet<MemberId>,
    country: Option<&str>,
) -> Result<(), Failure> {
    let mut handles: Vec<Handle> =
        [Some(phone), corrected].into_iter().flatten().cloned().map(Handle::Phone).collect();
    handles.sort_unstable();
    let ledger =
        LedgerReadSet { handles, members: members.iter().copied().collect(), ..LedgerReadSet::default() };
    let changed = run(store, ledger, &mut |plan, loaded| settled(plan, loaded, corrected, country))?;
    for (id, member) in &changed.members {
        let (stored, now) = (phone.as_str(), member.phone.as_ref().map_or("none", Phone::as_str));
        tracing::warn!(
            member = %id.0, stored, now,
            "a phone number that an earlier version stored and misread was corrected; where it is `none`, set it anew"
        );
    }
    if changed.members.is_empty() {
        let stored = phone.as_str();
        tracing::warn!(
            stored,
            "a phone number that an earlier version stored and misread was removed; no member had it"
        );
    }
    Ok(())
}

/// The write of one transaction: the number finds no member any more, and the corrected one the only member that claims it.
fn settled(
    plan: &LedgerReadSet,
    loaded: &LedgerLoaded,
    corrected: Option<&Phone>,
    country: Option<&str>,
) -> LedgerWriteSet {
    let claims = |member: &&Member| {
        let phone = member.phone.as_ref().filter(|_| member.closed_at.is_none());
        phone.is_some_and(|phone| phone.corrected(country).as_ref() == corrected)
    };
    let rows = plan.members.iter().zip(&loaded.members);
    let claimants: Vec<(MemberId, &Member)> =
        rows.filter_map(|(id, member)| Some((*id, member.as_ref().filter(claims)?))).collect();
    // A row with the number itself takes precedence over one with the misread number.
    let (exact, misread): (Vec<_>, Vec<_>) =
        claimants.iter().partition(|(_, member)| member.phone.as_ref() == corrected);
    let first = if exact.is_empty() { misread } else { exact };
    let owner = if let ([(id, _)], Some(_)) = (&first[..], corrected) { Some(*id) } else { None };
    let is_corrected = |handle: &Handle| matches!(handle, Handle::Phone(phone) if Some(phone) == corrected);
    let handles = plan.handles.iter().map(|handle| (handle.clone(), owner.filter(|_| is_corrected(handle))));
    let members = claimants.iter().filter_map(|(id, before)| {
        let phone = corrected.filter(|_| owner == Some(*id)).cloned();
        (phone != before.phone).then(|| (*id, Member { phone, ..(*before).clone() }))
    });
    LedgerWriteSet { handles: handles.collect(), members: members.collect(), ..LedgerWriteSet::default() }
}
