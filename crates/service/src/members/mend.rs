//! Phone numbers that earlier versions stored and read as others, corrected by the first start on such a store.
//!
//! A number sent as `0000123456` was stored as `00123456` and read as `123456`: no request named it, and a change of its member
//! took `123456` from the member that had it. So a stored number that begins with 00 goes. Its member gets the number that it was
//! read as, unless another member has that. Where several rows have one number, nothing says whose it is, and all of them
//! lose it. Each corrected member is logged.
//!
//! The store remembers that it was done. Every transaction is right done twice, so servers may start side by side.

use crate::failure::{Failure, Fault};
use crate::wallets::HOME_META;
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::ledger::member::{Handle, Phone};
use tally_rules::ledger::{Member, MemberId};
use tally_store::{Changes, LedgerChanges, LedgerLoaded, LedgerPlan, Plan, ShardSet, Store};

/// The name under which the store remembers it.
const MENDED_META: &str = "phones_mended";

/// Rows that are read at once, and numbers that are mended in one round.
const PAGE: usize = 1_000;

/// How often a transaction is tried again that another came between.
const TRIES: usize = 8;

/// Mends all of them, once.
pub(crate) fn phones(store: &dyn Store, country: Option<&str>) -> Result<(), Failure> {
    // Without a home currency there was never a member.
    if store.meta(HOME_META)?.is_none() || store.meta(MENDED_META)?.is_some() {
        return Ok(());
    }
    loop {
        let misread = misread(store)?;
        if misread.is_empty() {
            return Ok(store.set_meta(MENDED_META, b"1")?);
        }
        let mut claims = claims(store, &misread, country)?;
        for (phone, owner) in misread {
            let mended = phone.mended(country);
            let members = claims.entry(mended.clone()).or_default();
            members.insert(owner);
            mend(store, &phone, mended.as_ref(), members, country)?;
        }
    }
}

/// The first numbers that no request can name, and the member that each finds.
fn misread(store: &dyn Store) -> Result<Vec<(Phone, MemberId)>, Failure> {
    let after = Handle::Phone(Phone::before_misread());
    let page = store.ledger().books()?.handles(Some(&after), PAGE)?;
    let phones = page.into_iter().map_while(|(handle, member)| match handle {
        Handle::Phone(phone) if phone.is_misread() => Some((phone, member)),
        _ => None,
    });
    Ok(phones.collect())
}

/// The members whose rows have a number that becomes one of those.
fn claims(
    store: &dyn Store,
    misread: &[(Phone, MemberId)],
    country: Option<&str>,
) -> Result<BTreeMap<Option<Phone>, BTreeSet<MemberId>>, Failure> {
    let mut claims: BTreeMap<_, BTreeSet<_>> =
        misread.iter().map(|(phone, _)| (phone.mended(country), BTreeSet::new())).collect();
    let mut books = store.ledger().books()?;
    let mut after = None;
    loop {
        let page = books.members(after, PAGE)?;
        for (id, member) in &page {
            if let Some(mended) = member.phone.as_ref().and_then(|phone| phone.mended(country))
                && let Some(members) = claims.get_mut(&Some(mended))
            {
                members.insert(*id);
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE => after = Some(*last),
            _ => return Ok(claims),
        }
    }
}

/// Removes one number, and settles whose the mended one is.
fn mend(
    store: &dyn Store,
    phone: &Phone,
    mended: Option<&Phone>,
    members: &BTreeSet<MemberId>,
    country: Option<&str>,
) -> Result<(), Failure> {
    let mut handles: Vec<Handle> =
        [Some(phone), mended].into_iter().flatten().cloned().map(Handle::Phone).collect();
    handles.sort_unstable();
    let ledger = LedgerPlan { handles, members: members.iter().copied().collect(), ..LedgerPlan::default() };
    let plan = Plan { ledger, shards: ShardSet::of(0), ..Plan::default() };
    for _ in 0..TRIES {
        let mut mending = Mending::default();
        let done = store.run(&plan, &mut |loaded| {
            mending = Mending::of(&plan.ledger, &loaded.ledger, mended, country);
            let (handles, members) = (mending.handles.clone(), mending.members.clone());
            Changes {
                ledger: LedgerChanges { handles, members, ..LedgerChanges::default() },
                ..Changes::default()
            }
        });
        match done {
            Ok(_) => {
                mending.report(phone);
                return Ok(());
            }
            Err(tally_store::StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Fault::Overloaded.into())
}

/// What one transaction changes.
#[derive(Default)]
struct Mending {
    handles: Vec<(Handle, Option<MemberId>)>,
    members: Vec<(MemberId, Member)>,
}

impl Mending {
    fn of(plan: &LedgerPlan, loaded: &LedgerLoaded, mended: Option<&Phone>, country: Option<&str>) -> Self {
        let claims = |member: &Member| {
            member.phone.as_ref().is_some_and(|phone| phone.mended(country).as_ref() == mended)
        };
        let claimants: Vec<(MemberId, &Member)> = plan
            .members
            .iter()
            .zip(&loaded.members)
            .filter_map(|(id, member)| Some((*id, member.as_ref().filter(|member| claims(member))?)))
            .collect();
        let open = claimants.iter().filter(|(_, member)| member.closed_at.is_none());
        // A row that has the number itself comes before one that has the misread number.
        let (exact, misread): (Vec<_>, Vec<_>) =
            open.partition(|(_, member)| member.phone.as_ref() == mended);
        let first = if exact.is_empty() { misread } else { exact };
        let owner = if let ([(id, _)], Some(_)) = (&first[..], mended) { Some(*id) } else { None };
        let is_mended = |handle: &Handle| matches!(handle, Handle::Phone(phone) if Some(phone) == mended);
        let handle = |handle: &Handle| (handle.clone(), owner.filter(|_| is_mended(handle)));
        let member = |(id, member): &(MemberId, &Member)| {
            let phone = mended.filter(|_| owner == Some(*id)).cloned();
            (*id, Member { phone, ..(*member).clone() })
        };
        let changed =
            claimants.iter().map(member).zip(&claimants).filter(|(after, before)| after.1 != *before.1);
        Self {
            handles: plan.handles.iter().map(handle).collect(),
            members: changed.map(|(after, _)| after).collect(),
        }
    }

    fn report(&self, phone: &Phone) {
        let stored = phone.as_str();
        for (id, member) in &self.members {
            let now = member.phone.as_ref().map_or("none", Phone::as_str);
            tracing::warn!(
                member = %id.0, stored, now,
                "a phone number that an earlier version stored and misread was mended; where it is `none`, set it anew"
            );
        }
        if self.members.is_empty() {
            tracing::warn!(
                stored,
                "a phone number that an earlier version stored and misread was removed; no member had it"
            );
        }
    }
}
