//! Making a member, with its first wallet.
//!
//! The handles of a member are looked up before, because a transaction reads by key, and compared in the transaction.

use super::ATTEMPTS_MAX;
use crate::audit;
use crate::contests::entries::{self, NameLookup};
use crate::failure::{Failure, Fault, blocking};
use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::BatchState;
use crate::outcomes;
use crate::tally::Tally;
use std::collections::BTreeSet;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Currency, Member, MemberId, Uuid, WalletKey};
use tally_rules::outcome::Outcome;
use tally_rules::{Origin, PlayerId, Rejection};
use tally_store::ReadSet;

/// A member to be made.
#[derive(Clone, Debug)]
pub struct NewMember {
    /// The member; without a player it is its own id.
    pub member: Member,
    /// Whether the player is to be the member's id.
    pub player_is_id: bool,
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<IdempotencyKey>,
}

/// A member that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its id.
    pub id: MemberId,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// A member to be made, as the lane does it.
struct CreateMember {
    new: NewMember,
    /// The player, if it had a member at the lookup: if it is free by now, the lookup is repeated.
    taken: Option<Handle>,
    /// The act that it is, if its actor is an administrator.
    act: Option<Audited>,
}

impl LedgerRequest for CreateMember {
    /// `None` if the player is free by now.
    type Answer = Option<Created>;

    fn needs(&self) -> Needs {
        Needs { rows: 1 + usize::from(self.act.is_some()), ids: 1, makes_members: true, ..Needs::default() }
    }

    fn read(&self, plan: &mut ReadSet, ids: &[Uuid], settings: &LedgerSettings) {
        outcomes::read(plan, self.new.idempotency.as_ref());
        read(&self.new, plan, MemberId(ids[0]), settings.currencies.home());
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        let made = decide(&self.new, self.taken.as_slice(), state, MemberId(ids[0]))?;
        if let (Some(act), Some(Created { id, replayed: false })) = (&self.act, &made) {
            state.added.audit.push(act.row(AuditAction::MemberCreated, id.0.to_string(), None));
        }
        Ok(made)
    }
}

/// Reads what a new member with that id touches.
pub(crate) fn read(new: &NewMember, plan: &mut ReadSet, id: MemberId, home: Currency) {
    plan.ledger.handles.extend(new.with_id(id).handles(id));
    plan.ledger.wallets.push(WalletKey { member: id, currency: home });
}

/// Makes a member with that id; `None` if a player that `had` a member is free by now.
pub(crate) fn decide(
    new: &NewMember,
    had: &[Handle],
    state: &mut BatchState<'_>,
    id: MemberId,
) -> Result<Option<Created>, Rejection> {
    if let Some(Outcome::MemberMade(id)) = state.outcomes.replay(new.idempotency.as_ref())? {
        return Ok(Some(Created { id, replayed: true }));
    }
    if is_free_since(state, had) {
        return Ok(None);
    }
    let member = new.with_id(id);
    // By the order of handles, which decides between rejections.
    for handle in member.handles(id) {
        if state.handles.get(&handle).is_some() {
            return Err(taken(&handle));
        }
    }
    for handle in member.handles(id) {
        state.handles.set(&handle, Some(id));
    }
    state.members.load(id, None);
    state.members.set(&id, Some(member));
    state.book.open(id);
    state.outcomes.remember(new.idempotency.as_ref(), Outcome::MemberMade(id));
    Ok(Some(Created { id, replayed: false }))
}

impl NewMember {
    /// The member with its player.
    fn with_id(&self, id: MemberId) -> Member {
        let player = match self.player_is_id {
            true => PlayerId::new(&id.0.to_string()).expect("the text of an id is short"),
            false => self.member.player.clone(),
        };
        Member { player, ..self.member.clone() }
    }
}

/// Whether one of these players, which had a member at the lookup, has none by now: it may have left entries.
pub(crate) fn is_free_since(state: &BatchState<'_>, had: &[Handle]) -> bool {
    had.iter().any(|handle| state.handles.get(handle).is_none())
}

/// The rejection of a handle that another member has.
pub(super) fn taken(handle: &Handle) -> Rejection {
    match handle {
        // No name is taken: its handle has the id of its member.
        Handle::Name(name) => Rejection::LoginTaken(name.name().into()),
        Handle::Login(login) => Rejection::LoginTaken(login.as_str().into()),
        Handle::Phone(number) => Rejection::PhoneTaken(number.as_str().into()),
        Handle::Player(player) => Rejection::PlayerTaken(player.clone()),
    }
}

/// Makes a member. A player's name that a closed member released is rejected while that member's entries are open or run.
/// This notices a member that closes meanwhile, but not one that gets the name, applies and closes meanwhile.
pub async fn create(tally: &Arc<Tally>, new: NewMember, origin: &Origin) -> Result<Created, Failure> {
    for _ in 0..ATTEMPTS_MAX {
        let running = new.idempotency.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
        let mut taken = None;
        if !new.player_is_id {
            let mut found = look_up_names(tally, [new.member.player.clone()].into()).await?;
            if let Some((_, contest)) = found.left_behind.pop()
                && !is_repeated(tally, new.idempotency.as_ref()).await?
            {
                return Err(Rejection::PlayerInContest(contest.as_str().into()).into());
            }
            taken = found.taken.pop();
        }
        let request = CreateMember { new: new.clone(), taken, act: audit::of_admin(tally, origin)? };
        if let Some(created) = tally.ledger.ask(request, running.into_iter().collect()).await? {
            return Ok(created);
        }
    }
    Err(Fault::Overloaded.into())
}

/// See [`entries::look_up`].
pub(crate) async fn look_up_names(
    tally: &Arc<Tally>,
    players: BTreeSet<PlayerId>,
) -> Result<NameLookup, Failure> {
    let tally = Arc::clone(tally);
    blocking(move || entries::look_up(&tally, &players)).await
}

/// Whether a request was done before.
async fn is_repeated(tally: &Tally, idempotency: Option<&IdempotencyKey>) -> Result<bool, Failure> {
    match idempotency {
        Some(idempotency) => Ok(tally.stored(idempotency).await?.is_some()),
        None => Ok(false),
    }
}
