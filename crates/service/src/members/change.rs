//! Changing a member.
//!
//! The handles of a member are looked up before, because a transaction reads by key, and compared in the transaction.

use super::{ATTEMPTS_MAX, create, find};
use crate::audit;
use crate::contests::entries;
use crate::failure::{Failure, Fault, blocking};
use crate::ledger::LedgerSettings;
use crate::ledger::request::LedgerRequest;
use crate::ledger::state::BatchState;
use crate::outcomes;
use crate::requests::KeyGuard;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError};
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::{Handle, Phone, Pin};
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{Member, MemberId, NameKey, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, Origin, PlayerId, Rejection};
use tally_store::ReadSet;

/// A change of something that may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Set<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It becomes this, or nothing.
    To(Option<T>),
}

/// What changes of a member.
#[derive(Clone, Debug, Default)]
pub struct MemberChange {
    /// Its new name.
    pub name: Option<Arc<str>>,
    /// Its new player.
    pub player: Option<PlayerId>,
    /// Its phone number.
    pub phone: Set<Phone>,
    /// The digest of its password; changing it ends every token.
    pub password: Set<Arc<str>>,
    /// Its PIN; changing it forgets attempts at the last one.
    pub pin: Set<Pin>,
    /// Whether attempts at the PIN are forgotten.
    pub unlock_pin: bool,
    /// Whether tokens that were given until now end.
    pub sign_out: bool,
    /// Another digest of the same password; it ends no token.
    pub rehashed: Option<Rehashed>,
}

impl MemberChange {
    /// The names of what changes.
    fn fields(&self) -> String {
        let fields = [
            ("name", self.name.is_some()),
            ("player", self.player.is_some()),
            ("phone_number", matches!(self.phone, Set::To(_))),
            ("password", matches!(self.password, Set::To(_))),
            ("pin", matches!(self.pin, Set::To(_))),
            ("unlock_pin", self.unlock_pin),
            ("sign_out", self.sign_out),
        ];
        let changed: Vec<&str> = fields.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        changed.join(", ")
    }
}

/// A new digest for an old one; if the old one was replaced meanwhile, the password was changed.
#[derive(Clone, Debug)]
pub struct Rehashed {
    /// The digest before.
    pub from: Arc<str>,
    /// The digest from now on.
    pub to: Arc<str>,
}

struct ChangeMember {
    member: MemberId,
    change: MemberChange,
    /// The handles before and after the change: sorted, without duplicates.
    handles: Vec<Handle>,
    /// `None` for a change that the server makes by itself.
    audited: Option<Audited>,
    idempotency: Option<IdempotencyKey>,
}

impl LedgerRequest for ChangeMember {
    /// Whether this repeats an earlier reply; `None` if the member has other handles by now.
    type Answer = Option<bool>;

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], _settings: &LedgerSettings) {
        outcomes::read(plan, self.idempotency.as_ref());
        plan.ledger.members.push(self.member);
        plan.ledger.handles.extend(self.handles.iter().cloned());
    }

    fn decide(&self, state: &mut BatchState<'_>, _ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        if state.outcomes.replay(self.idempotency.as_ref())?.is_some() {
            return Ok(Some(true));
        }
        let before = state.members.get(&self.member).cloned().ok_or(Rejection::MemberNotFound)?;
        if before.closed_at.is_some() {
            return Err(Rejection::MemberClosed(self.member));
        }
        let after = changed(&before, &self.change, state.time.now);
        let (had, has) = (before.handles(self.member), after.handles(self.member));
        if had.iter().chain(&has).any(|handle| self.handles.binary_search(handle).is_err()) {
            return Ok(None);
        }
        for handle in has.iter().filter(|handle| !had.contains(handle)) {
            if state.handles.get(handle).is_some_and(|holder| *holder != self.member) {
                return Err(create::taken(handle));
            }
        }
        release_handles(state, self.member, had.iter().filter(|handle| !has.contains(handle)));
        has.iter().for_each(|handle| state.handles.set(handle, Some(self.member)));
        state.members.set(&self.member, Some(after));
        let row = |act: &Audited| {
            act.row(AuditAction::MemberChanged, self.member.0.to_string(), Some(self.change.fields().into()))
        };
        state.added.audit.extend(self.audited.as_ref().map(row));
        state.outcomes.remember(self.idempotency.as_ref(), Outcome::Removed);
        Ok(Some(false))
    }
}

/// Takes from a member what finds it, and from no other.
pub(super) fn release_handles<'h>(
    state: &mut BatchState<'_>,
    member: MemberId,
    handles: impl Iterator<Item = &'h Handle>,
) {
    for handle in handles {
        if state.handles.get(handle) == Some(&member) {
            state.handles.set(handle, None);
        }
    }
}

/// A member as a change leaves it.
fn changed(before: &Member, change: &MemberChange, now: Micros) -> Member {
    fn set<T: Clone>(before: &Option<T>, change: &Set<T>) -> Option<T> {
        match change {
            Set::Keep => before.clone(),
            Set::To(value) => value.clone(),
        }
    }
    // Tokens that were given until now end with the password; not even a clock set back makes the instant an old one.
    let ends_tokens = change.sign_out || change.password != Set::Keep;
    let tokens_from = if ends_tokens { now.max(before.tokens_from.plus(1)) } else { before.tokens_from };
    let mut password = set(&before.password, &change.password);
    if let Some(Rehashed { from, to }) = &change.rehashed
        && password.as_ref() == Some(from)
    {
        password = Some(Arc::clone(to));
    }
    let fresh = change.unlock_pin || matches!(change.pin, Set::To(_));
    Member {
        login: before.login.clone(),
        phone: set(&before.phone, &change.phone),
        player: change.player.clone().unwrap_or_else(|| before.player.clone()),
        name: change.name.clone().unwrap_or_else(|| before.name.clone()),
        password,
        pin: set(&before.pin, &change.pin),
        attempts: if fresh { Attempts::default() } else { before.attempts },
        tokens_from,
        closed_at: before.closed_at,
    }
}

/// Changes a member; returns whether that repeats an earlier reply. It builds on another change in between. A
/// change without an origin is no act: the server stores a stronger digest.
pub async fn change(
    tally: &Arc<Tally>,
    member: MemberId,
    change: MemberChange,
    origin: Option<Origin>,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let audited = origin.map(|origin| audit::begin(origin, tally.now())).transpose()?;
    let request = |before: &Member| {
        let player = change.player.clone().filter(|player| *player != before.player);
        let (handles, change) = (handles(member, before, &change), change.clone());
        (
            ChangeMember {
                member,
                change,
                handles,
                audited: audited.clone(),
                idempotency: idempotency.clone(),
            },
            player,
        )
    };
    of_member(tally, member, idempotency.as_ref(), request).await
}

/// Sends the lane a request for the present state of a member, until that state holds in the transaction. The request has the
/// new name of the player, if it changes.
pub(super) async fn of_member<R: LedgerRequest<Answer = Option<bool>>>(
    tally: &Arc<Tally>,
    member: MemberId,
    idempotency: Option<&IdempotencyKey>,
    request: impl Fn(&Member) -> (R, Option<PlayerId>),
) -> Result<bool, Failure> {
    for _ in 0..ATTEMPTS_MAX {
        let running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
        let shared = Arc::clone(tally);
        let before = blocking(move || find::by_id(&shared, member)).await?;
        let _changing = tally.members.cache.changing(member);
        let (request, renamed) = request(&before);
        let done = match renamed {
            Some(player) => rename(tally, [before.player.clone(), player], request, running).await?,
            None => tally.ledger.ask(request, running.into_iter().collect()).await?,
        };
        if let Some(replayed) = done {
            return Ok(replayed);
        }
    }
    Err(Fault::Overloaded.into())
}

/// A change of the player: neither the old one nor the new one may have an entry in a contest.
async fn rename<R: LedgerRequest>(
    tally: &Arc<Tally>,
    players: [PlayerId; 2],
    request: R,
    running: Option<KeyGuard>,
) -> Result<R::Answer, Failure> {
    let tally = Arc::clone(tally);
    let rename = move || {
        let _running = running;
        let _alone = tally.contests.renaming.write().unwrap_or_else(PoisonError::into_inner);
        entries::refuse(&tally, &players)?;
        tally.ledger.ask_blocking(request)
    };
    blocking(rename).await
}

/// The handles of a member before and after a change.
fn handles(id: MemberId, before: &Member, change: &MemberChange) -> Vec<Handle> {
    let mut handles = before.names(id);
    handles.extend(change.name.as_deref().map(|name| Handle::Name(NameKey::new(name, id))));
    if let Set::To(Some(phone)) = &change.phone {
        handles.push(Handle::Phone(phone.clone()));
    }
    handles.extend(change.player.clone().map(Handle::Player));
    handles.sort_unstable();
    handles.dedup();
    handles
}
