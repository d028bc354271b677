//! Members in the ledger's lane: making one with its first wallet, changing and closing it.

use super::command::{ChangeMember, CloseMember, Created, Done, MemberChange, NewMember, Request, Set};
use crate::blocking;
use crate::contests::entries;
use crate::failure::{Failure, Fault};
use crate::members::find;
use crate::requests::Running;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError};
use tally_rules::PlayerId;
use tally_rules::idempotency::Identity;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId};

/// How often a change is tried anew because another came between.
const TRIES: usize = 8;

/// Makes a member.
pub async fn create(tally: &Tally, new: NewMember) -> Result<Created, Failure> {
    let running = new.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    match tally.ledger.ask(Request::Create(new), running.into_iter().collect()).await? {
        Done::Created(created) => Ok(created),
        done => Err(unlike(&done)),
    }
}

/// Closes a member; once more changes nothing. Says whether that repeats an earlier answer.
pub async fn close(tally: &Tally, close: CloseMember) -> Result<bool, Failure> {
    let running = close.identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    let _changing = tally.members.cache.changing(close.member);
    match tally.ledger.ask(Request::Close(close), running.into_iter().collect()).await? {
        Done::Closed { replayed } => Ok(replayed),
        done => Err(unlike(&done)),
    }
}

/// Changes a member; says whether that repeats an earlier answer. Another that comes between is seen.
pub async fn change(
    tally: &Arc<Tally>,
    member: MemberId,
    change: MemberChange,
    identity: Option<Identity>,
) -> Result<bool, Failure> {
    for _ in 0..TRIES {
        let running = identity.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
        let asked = Arc::clone(tally);
        let before = blocking(move || find::by_id(&asked, member)).await?;
        let (change, identity) = (change.clone(), identity.clone());
        let handles = handles(&before, &change);
        let _changing = tally.members.cache.changing(member);
        let renamed = change.player.clone().filter(|player| *player != before.player);
        let request = Request::Change(ChangeMember { member, change, handles, identity });
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
    let mut handles = before.handles();
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
