//! Finding a member: by its id, by one of its handles, or in a list of all. Blocks on the store.

use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::Rejection;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Member, MemberId, Uuid};
use tally_store::Listing;

/// The member of that id.
pub fn by_id(tally: &Tally, id: MemberId) -> Result<Member, Failure> {
    tally.store.ledger().member(id)?.ok_or(Failure::Rejected(Rejection::MemberNotFound))
}

/// The member that a login, a phone number or a player finds.
pub fn by_handle(tally: &Tally, handle: &Handle) -> Result<Option<(MemberId, Member)>, Failure> {
    let Some(id) = tally.store.ledger().member_of(handle)? else { return Ok(None) };
    Ok(Some((id, by_id(tally, id)?)))
}

/// At most `limit` members, newest first, from the first one before `before`.
pub fn list(
    tally: &Tally,
    before: Option<MemberId>,
    limit: usize,
) -> Result<Listing<(MemberId, Member)>, Failure> {
    let before = before.unwrap_or(MemberId(Uuid([0xff; 16])));
    Ok(tally.store.ledger().newest_members(before, limit)?)
}
