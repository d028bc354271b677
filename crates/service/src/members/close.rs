//! Closing a member.

use super::{change, find};
use crate::audit;
use crate::contests::staff;
use crate::failure::{Failure, blocking};
use crate::ledger::LedgerSettings;
use crate::ledger::request::LedgerRequest;
use crate::ledger::state::BatchState;
use crate::outcomes;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::event::{Event, EventKind};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId, Uuid, WalletKey};
use tally_rules::outcome::Outcome;
use tally_rules::{Origin, Rejection};
use tally_store::{ReadSet, Topic};

/// A member that is closed or erased, as it was found.
pub(super) struct Leaving {
    pub(super) member: MemberId,
    /// What the member was found by: sorted, each once.
    pub(super) handles: Vec<Handle>,
    pub(super) audited: Audited,
    pub(super) idempotency: Option<IdempotencyKey>,
}

impl Leaving {
    /// Reads the member with its handles and all its wallets.
    pub(super) fn read(&self, plan: &mut ReadSet, settings: &LedgerSettings) {
        let wallet = |currency| WalletKey { member: self.member, currency };
        outcomes::read(plan, self.idempotency.as_ref());
        plan.ledger.members.push(self.member);
        plan.ledger.handles.extend(self.handles.iter().cloned());
        plan.ledger.wallets.extend(settings.currencies.all().map(wallet));
    }

    /// The stored member, or the reply without it: that of a retry, or `None` if the member has other handles by now.
    pub(super) fn stored(&self, state: &BatchState<'_>) -> Result<Result<Member, Option<bool>>, Rejection> {
        if state.outcomes.replay(self.idempotency.as_ref())?.is_some() {
            return Ok(Err(Some(true)));
        }
        let member = state.members.get(&self.member).cloned().ok_or(Rejection::MemberNotFound)?;
        let is_new = |handle: &Handle| self.handles.binary_search(handle).is_err();
        Ok(if member.names(self.member).iter().any(is_new) { Err(None) } else { Ok(member) })
    }

    /// Adds the event that the member was closed, unless it was closed before.
    pub(super) fn add_event(&self, state: &mut BatchState<'_>, before: &Member) {
        if before.closed_at.is_none() {
            let event = Event { at: state.time.now, what: EventKind::MemberClosed };
            state.added.events.push((Topic::Member(self.member), event));
        }
    }
}

struct CloseMember {
    of: Leaving,
    /// Whether there may be money in its wallets.
    force: bool,
}

impl LedgerRequest for CloseMember {
    /// Whether this repeats an earlier reply; `None` if the member has other handles by now.
    type Answer = Option<bool>;

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        self.of.read(plan, settings);
    }

    fn decide(&self, state: &mut BatchState<'_>, _ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        let member = match self.of.stored(state)? {
            Ok(member) => member,
            Err(reply) => return Ok(reply),
        };
        let id = self.of.member;
        state.book.close(id, self.force)?;
        // One that is being erased keeps the name of its player until nothing is left under it.
        if member.erasure(id).is_none() {
            change::release_handles(state, id, member.names(id).iter());
        }
        self.of.add_event(state, &member);
        let is_open = member.closed_at.is_none();
        let closed_at = member.closed_at.or(Some(state.time.now));
        state.members.set(&id, Some(Member { closed_at, ..member }));
        if is_open {
            let detail = self.force.then(|| "force".into());
            state.added.audit.push(self.of.audited.row(AuditAction::MemberClosed, id.0.to_string(), detail));
        }
        state.outcomes.remember(self.of.idempotency.as_ref(), Outcome::Removed);
        Ok(Some(false))
    }
}

/// Closes a member: its tokens end, its handles are released, and it leaves the staff of contests. A second time changes
/// nothing, and is no act of the audit log. `force` allows money in its wallets. Returns whether that repeats an earlier reply.
pub async fn close(
    tally: &Arc<Tally>,
    member: MemberId,
    force: bool,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let audited = audit::begin(origin, tally.now())?;
    let request = |before: &Member| {
        let (handles, idempotency) = (before.names(member), idempotency.clone());
        let of = Leaving { member, handles, audited: audited.clone(), idempotency };
        (CloseMember { of, force }, None)
    };
    let replayed = change::of_member(tally, member, idempotency.as_ref(), request).await?;
    let of = Arc::clone(tally);
    let left = blocking(move || staff::leave(&of, &find::by_id(&of, member)?.player)).await;
    // It is closed, whatever the result of this.
    if let Err(failure) = left {
        tracing::warn!(%failure, member = %member.0, "take a closed member from the staff of contests: close it again");
    }
    Ok(replayed)
}
