//! Members in the ledger's lane: making one with its first wallet, changing and closing it.
//!
//! What finds a member is read before, because a transaction reads by key, and compared in the transaction.

use super::command::{ChangeMember, CloseMember, Created, Done, MemberChange, NewMember, Request, Set};
use crate::blocking;
use crate::contests::entries::{self, Look};
use crate::contests::staff;
use crate::failure::{Failure, Fault};
use crate::members::find;
use crate::requests::Running;
use crate::tally::Tally;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId};
use tally_rules::{PlayerId, Rejection};

/// How often a change is tried anew because another came between.
pub(super) const TRIES: usize = 8;

/// Makes a member. A player's name that a closed member released is refused while that member's entries are open or run. A member that closes
/// meanwhile is seen; one that gets the name, applies and closes meanwhile is not.
pub async fn create(tally: &Arc<Tally>, new: NewMember) -> Result<Created, Failure> {
    for _ in 0..TRIES {
        let running = new.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
        let mut taken = None;
        if !new.player_is_id {
            let mut look = look(tally, [new.member.player.clone()].into()).await?;
            if let Some((_, contest)) = look.left_behind.pop()
                && !is_repeated(tally, new.identity.as_ref()).await?
            {
                return Err(Rejection::PlayerInContest(contest.as_str().into()).into());
            }
            taken = look.taken.pop();
        }
        let request = Request::Create(new.clone(), taken);
        match tally.ledger.ask(request, running.into_iter().collect()).await? {
            Done::Created(created) => return Ok(created),
            Done::Stale => {}
            done => return Err(unlike(&done)),
        }
    }
    Err(Fault::Overloaded.into())
}

/// See [`entries::look`].
pub(super) async fn look(tally: &Arc<Tally>, players: BTreeSet<PlayerId>) -> Result<Look, Failure> {
    let tally = Arc::clone(tally);
    blocking(move || entries::look(&tally, &players)).await
}

/// Whether a request was done before.
async fn is_repeated(tally: &Tally, identity: Option<&IdempotencyKey>) -> Result<bool, Failure> {
    match identity {
        Some(identity) => Ok(tally.stored(identity).await?.is_some()),
        None => Ok(false),
    }
}

/// Closes a member, which ends its tokens, releases what finds it and takes it from the staff of contests; once more changes nothing. `force` says whether there
/// may be money in its wallets. Says whether that repeats an earlier answer.
pub async fn close(
    tally: &Arc<Tally>,
    member: MemberId,
    force: bool,
    identity: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let request = |before: &Member| {
        Request::Close(CloseMember { member, force, handles: before.names(), identity: identity.clone() })
    };
    let replayed = of_member(tally, member, identity.as_ref(), request).await?;
    let of = Arc::clone(tally);
    let left = blocking(move || staff::leave(&of, &find::by_id(&of, member)?.player)).await;
    // It is closed, whatever becomes of this.
    if let Err(failure) = left {
        tracing::warn!(%failure, member = %member.0, "take a closed member from the staff of contests: close it again");
    }
    Ok(replayed)
}

/// Changes a member; says whether that repeats an earlier answer. Another that comes between is seen.
pub async fn change(
    tally: &Arc<Tally>,
    member: MemberId,
    change: MemberChange,
    identity: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let request = |before: &Member| {
        let (handles, change) = (handles(before, &change), change.clone());
        Request::Change(ChangeMember { member, change, handles, identity: identity.clone() })
    };
    of_member(tally, member, identity.as_ref(), request).await
}

/// Asks for what is made of a member as it is, until that is still so in the transaction.
async fn of_member(
    tally: &Arc<Tally>,
    member: MemberId,
    identity: Option<&IdempotencyKey>,
    request: impl Fn(&Member) -> Request,
) -> Result<bool, Failure> {
    for _ in 0..TRIES {
        let running = identity.map(|one| tally.begin(&one.key)).transpose()?;
        let asked = Arc::clone(tally);
        let before = blocking(move || find::by_id(&asked, member)).await?;
        let _changing = tally.members.cache.changing(member);
        let request = request(&before);
        let renamed = match &request {
            Request::Change(asked) => asked.change.player.clone().filter(|player| *player != before.player),
            _ => None,
        };
        let done = match renamed {
            Some(player) => rename(tally, [before.player.clone(), player], request, running).await?,
            None => tally.ledger.ask(request, running.into_iter().collect()).await?,
        };
        match done {
            Done::Changed { replayed } => return Ok(replayed),
            Done::Stale => {}
            done => return Err(unlike(&done)),
        }
    }
    Err(Fault::Overloaded.into())
}

/// A change of the player: neither the old one nor the new one may have an entry in a contest.
async fn rename(
    tally: &Arc<Tally>,
    players: [PlayerId; 2],
    request: Request,
    running: Option<Running>,
) -> Result<Done, Failure> {
    let tally = Arc::clone(tally);
    let rename = move || {
        let _running = running;
        let _alone = tally.contests.renaming.write().unwrap_or_else(PoisonError::into_inner);
        entries::refuse(&tally, &players)?;
        tally.ledger.ask_blocking(request)
    };
    blocking(rename).await
}

/// What it is found by before and after a change.
fn handles(before: &Member, change: &MemberChange) -> Vec<Handle> {
    let mut handles = before.names();
    if let Set::To(Some(phone)) = &change.phone {
        handles.push(Handle::Phone(phone.clone()));
    }
    handles.extend(change.player.clone().map(Handle::Player));
    handles.sort_unstable();
    handles.dedup();
    handles
}

fn unlike(done: &Done) -> Failure {
    Fault::Broken(format!("a request is answered by its own kind, not by {done:?}")).into()
}
