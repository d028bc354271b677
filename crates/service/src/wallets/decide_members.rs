//! What a batch does of members: making, changing and closing them, and what one of them pays by itself.
//!
//! Pure, like the rest of a batch. A PIN is judged here, where the member is locked, before anything else is looked at, and
//! the attempt is written whatever the answer is: guesses at the same time count. What was read before the batch (who has a
//! phone number, since when tokens are good) is compared with what is; where it is not so any more the answer is
//! [`Done::Stale`], and whoever asks reads again.

use super::command::{
    ChangeMember, CloseMember, Created, Done, MemberChange, Moved, NewMember, NewPayment, Rehashed, Set,
};
use super::decide::{Decision, Ids, State, next};
use std::sync::Arc;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::pin::{self, Attempts};
use tally_rules::ledger::{Member, MemberId, TransferId, TransferKind, TransferRequest};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, PlayerId, Rejection};

/// A new member with its player.
pub(super) fn named(new: &NewMember, id: MemberId) -> Member {
    let player =
        new.player_is_id.then(|| PlayerId::new(&id.0.to_string()).expect("the text of an id is short"));
    Member { player: player.unwrap_or_else(|| new.member.player.clone()), ..new.member.clone() }
}

/// Somebody else has it.
fn taken(handle: &Handle) -> Rejection {
    match handle {
        Handle::Login(_) => Rejection::LoginTaken,
        Handle::Phone(_) => Rejection::PhoneTaken,
        Handle::Player(_) => Rejection::PlayerTaken,
    }
}

impl State<'_> {
    /// Whether one of these players, which had a member when somebody looked, has none by now: it may have left entries.
    pub(super) fn is_free_since(&self, had: &[Handle]) -> bool {
        had.iter().any(|handle| self.handles.get(handle).is_none())
    }

    pub(super) fn create(&mut self, new: &NewMember, had: &[Handle], ids: Ids<'_, '_>) -> Decision {
        let id = MemberId(next(ids));
        if let Some(Outcome::MemberMade(id)) = self.replay(new.identity.as_ref())? {
            return Ok(Done::Created(Created { id, replayed: true }));
        }
        if self.is_free_since(had) {
            return Ok(Done::Stale);
        }
        let member = named(new, id);
        // In the order of handles, which is that of the rejections.
        for handle in member.handles() {
            if self.handles.get(&handle).is_some() {
                return Err(taken(&handle));
            }
        }
        for handle in member.handles() {
            self.handles.set(&handle, Some(id));
        }
        self.members.load(id, None);
        self.members.set(&id, Some(member));
        self.book.open(id);
        self.remember(new.identity.as_ref(), Outcome::MemberMade(id));
        Ok(Done::Created(Created { id, replayed: false }))
    }

    pub(super) fn close(&mut self, close: &CloseMember) -> Decision {
        if self.replay(close.identity.as_ref())?.is_some() {
            return Ok(Done::Changed { replayed: true });
        }
        let member = self.members.get(&close.member).cloned().ok_or(Rejection::MemberNotFound)?;
        let names = member.names();
        if names.iter().any(|handle| close.handles.binary_search(handle).is_err()) {
            return Ok(Done::Stale);
        }
        self.book.close(close.member, close.force)?;
        self.take_handles(close.member, names.iter());
        let closed_at = member.closed_at.or(Some(self.now));
        self.members.set(&close.member, Some(Member { closed_at, ..member }));
        self.remember(close.identity.as_ref(), Outcome::Removed);
        Ok(Done::Changed { replayed: false })
    }

    pub(super) fn change(&mut self, change: &ChangeMember) -> Decision {
        if self.replay(change.identity.as_ref())?.is_some() {
            return Ok(Done::Changed { replayed: true });
        }
        let before = self.members.get(&change.member).cloned().ok_or(Rejection::MemberNotFound)?;
        if before.closed_at.is_some() {
            return Err(Rejection::MemberClosed);
        }
        let after = changed(&before, &change.change, self.now);
        let (had, has) = (before.handles(), after.handles());
        if had.iter().chain(&has).any(|handle| change.handles.binary_search(handle).is_err()) {
            return Ok(Done::Stale);
        }
        for handle in has.iter().filter(|handle| !had.contains(handle)) {
            if self.handles.get(handle).is_some_and(|holder| *holder != change.member) {
                return Err(taken(handle));
            }
        }
        self.take_handles(change.member, had.iter().filter(|handle| !has.contains(handle)));
        has.iter().for_each(|handle| self.handles.set(handle, Some(change.member)));
        self.members.set(&change.member, Some(after));
        self.remember(change.identity.as_ref(), Outcome::Removed);
        Ok(Done::Changed { replayed: false })
    }

    /// Takes from a member what finds it, and from no other.
    fn take_handles<'h>(&mut self, member: MemberId, handles: impl Iterator<Item = &'h Handle>) {
        for handle in handles {
            if self.handles.get(handle) == Some(&member) {
                self.handles.set(handle, None);
            }
        }
    }

    pub(super) fn pay(&mut self, pay: &NewPayment, ids: Ids<'_, '_>) -> Decision {
        let id = TransferId(next(ids));
        let member = self.members.get(&pay.from).cloned().ok_or(Rejection::MemberNotFound)?;
        if member.tokens_from != pay.tokens_from || member.closed_at.is_some() {
            return Ok(Done::Stale);
        }
        let right = member.pin.is_some_and(|pin| pay.guess.is(&pin));
        let (attempts, judged) = pin::attempt(member.attempts, right, self.now, self.pin);
        if attempts != member.attempts {
            self.members.set(&pay.from, Some(Member { attempts, ..member }));
        }
        judged?;
        if let Some(Outcome::Posted(key)) = self.replay(pay.identity.as_ref())? {
            return Ok(Done::Paid(Moved::Replayed(key)));
        }
        let holder = self.handles.get(&Handle::Phone(pay.phone.clone())).copied();
        if holder != pay.to {
            return Ok(Done::Stale);
        }
        // Money first: a member that cannot pay does not learn which numbers others have.
        if holder != Some(pay.from) {
            self.book.can_transfer(pay.from, (pay.currency, pay.amount), self.now)?;
        }
        let to = holder.ok_or(Rejection::RecipientNotFound)?;
        let what = TransferKind::Transfer { from: pay.from, to };
        let order = TransferRequest { what, currency: pay.currency, amount: pay.amount, reference: None };
        let posted = self.book.post(id, &order, self.now)?;
        self.remember(pay.identity.as_ref(), Outcome::Posted(posted.key));
        Ok(Done::Paid(Moved::Posted(posted)))
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
