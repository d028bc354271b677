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

struct CloseMember {
    member: MemberId,
    /// Whether there may be money in its wallets.
    force: bool,
    /// What the member was found by: sorted, each once.
    handles: Vec<Handle>,
    audited: Audited,
    identity: Option<IdempotencyKey>,
}

impl LedgerRequest for CloseMember {
    /// Whether this repeats an earlier reply; `None` if the member has other handles by now.
    type Answer = Option<bool>;

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        let wallet = |currency| WalletKey { member: self.member, currency };
        outcomes::read(plan, self.identity.as_ref());
        plan.ledger.members.push(self.member);
        plan.ledger.handles.extend(self.handles.iter().cloned());
        plan.ledger.wallets.extend(settings.currencies.all().map(wallet));
    }

    fn decide(&self, state: &mut BatchState<'_>, _ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        if state.outcomes.replay(self.identity.as_ref())?.is_some() {
            return Ok(Some(true));
        }
        let member = state.members.get(&self.member).cloned().ok_or(Rejection::MemberNotFound)?;
        let names = member.names();
        if names.iter().any(|handle| self.handles.binary_search(handle).is_err()) {
            return Ok(None);
        }
        state.book.close(self.member, self.force)?;
        // One that is being erased keeps the name of its player until nothing is left under it.
        if member.erasure(self.member).is_none() {
            change::release_handles(state, self.member, names.iter());
        }
        if member.closed_at.is_none() {
            let event = Event { at: state.time.now, what: EventKind::MemberClosed };
            state.added.events.push((Topic::Member(self.member), event));
        }
        let closed_at = member.closed_at.or(Some(state.time.now));
        state.members.set(&self.member, Some(Member { closed_at, ..member }));
        let detail = self.force.then(|| "force".into());
        state.added.audit.push(self.audited.row(
            AuditAction::MemberClosed,
            self.member.0.to_string(),
            detail,
        ));
        state.outcomes.remember(self.identity.as_ref(), Outcome::Removed);
        Ok(Some(false))
    }
}

/// Closes a member: its tokens end, its handles are released, and it leaves the staff of contests. A second time changes
/// nothing. `force` allows money in its wallets. Returns whether that repeats an earlier reply.
pub async fn close(
    tally: &Arc<Tally>,
    member: MemberId,
    force: bool,
    origin: Origin,
    identity: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let audited = audit::begin(origin, tally.now())?;
    let request = |before: &Member| {
        let (handles, identity) = (before.names(), identity.clone());
        let request = CloseMember { member, force, handles, audited: audited.clone(), identity };
        (request, None)
    };
    let replayed = change::of_member(tally, member, identity.as_ref(), request).await?;
    let of = Arc::clone(tally);
    let left = blocking(move || staff::leave(&of, &find::by_id(&of, member)?.player)).await;
    // It is closed, whatever the result of this.
    if let Err(failure) = left {
        tracing::warn!(%failure, member = %member.0, "take a closed member from the staff of contests: close it again");
    }
    Ok(replayed)
}
