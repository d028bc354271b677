//! The start: which accepted applications become members, and why others do not.
//!
//! Each application is checked by itself, so a reply names every bad one. With `reject` one bad application prevents the
//! start; with `skip` the good ones start. Not here: what is written.

use super::application::{Application, Status};
use super::definition::OnInvalid;
use crate::ids::PlayerId;
use crate::instant::Micros;
use crate::ledger::Hold;
use crate::named;
use crate::rejection::Rejection;

named! {
    /// Why an accepted application cannot become a member.
    pub enum InvalidReason { /// There is no accepted application of that player.
        NotApplied = "not_applied", /// The member was closed.
        MemberClosed = "member_closed", /// The player became staff.
        Staff = "staff_cannot_apply", /// The hold was ended, or has expired.
        HoldGone = "hold_gone" }
}

impl InvalidReason {
    /// A sentence for people.
    pub fn detail(self) -> &'static str {
        match self {
            Self::NotApplied => "there is no accepted application of this player",
            Self::MemberClosed => "the member was closed",
            Self::Staff => "the player is staff of the contest, and staff does not take part",
            Self::HoldGone => "the fee is not held any more: the hold was ended, or its time has run out",
        }
    }
}

/// A bad application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvalidApplication {
    /// The player.
    pub player: PlayerId,
    /// The reason.
    pub why: InvalidReason,
}

/// The facts that decide whether an accepted application starts.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The application.
    pub application: Option<&'a Application>,
    /// Whether its member, if one is needed, exists and is open.
    pub member_is_open: bool,
    /// Whether the player is staff now.
    pub is_staff: bool,
    /// The hold for its fee, if there is one.
    pub hold: Option<&'a Hold>,
}

/// Why an application cannot start, if it cannot. `fee`: the contest has a fee; `needs_member`: players must be members.
pub fn invalid_reason(facts: Facts<'_>, fee: bool, needs_member: bool, now: Micros) -> Option<InvalidReason> {
    let accepted = facts.application.filter(|application| application.status == Status::Accepted);
    let Some(application) = accepted else { return Some(InvalidReason::NotApplied) };
    if facts.is_staff {
        return Some(InvalidReason::Staff);
    }
    if needs_member && (application.member.is_none() || !facts.member_is_open) {
        return Some(InvalidReason::MemberClosed);
    }
    let holds = |hold: &&Hold| hold.is_open() && !hold.is_due(now);
    if fee && (application.hold.is_none() || facts.hold.filter(holds).is_none()) {
        return Some(InvalidReason::HoldGone);
    }
    None
}

/// The players that start, and the applications that do not.
pub type Selection<T> = (Vec<(PlayerId, T)>, Vec<InvalidApplication>);

/// The players that start, from applications in order of acceptance, and those that do not. Or a rejection of the start.
pub fn select_members<T>(
    rows: impl IntoIterator<Item = (PlayerId, T, Option<InvalidReason>)>,
    on_invalid: OnInvalid,
) -> Result<Selection<T>, Rejection> {
    let (mut good, mut failed) = (Vec::new(), Vec::new());
    for (player, row, bad) in rows {
        match bad {
            None => good.push((player, row)),
            Some(why) => failed.push(InvalidApplication { player, why }),
        }
    }
    if on_invalid == OnInvalid::Reject && !failed.is_empty() {
        return Err(Rejection::InvalidApplications { accepted: good.len() + failed.len(), failed });
    }
    Ok((good, failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Origin;
    use crate::ledger::hold::HoldEnd;
    use crate::ledger::{Currency, HoldId, MemberId, Uuid, WalletKey};

    #[test]
    fn what_makes_a_row_bad() {
        let member = MemberId(Uuid([1; 16]));
        let application = |status, hold: bool, has_member: bool| Application {
            status,
            place: 1,
            applied_at: Micros(1),
            member: has_member.then_some(member),
            hold: hold.then_some(HoldId(Uuid([2; 16]))),
        };
        let wallet = WalletKey { member, currency: Currency::parse("KRW").unwrap() };
        let hold = |expires: Option<i64>, end| Hold {
            wallet,
            amount: 5,
            expires_at: expires.map(Micros),
            origin: Origin::default(),
            end: Option::map(end, |end| (end, Micros(3))),
            ended_by: Origin::default(),
        };
        let (open, voided) = (hold(None, None), hold(None, Some(HoldEnd::Voided)));
        let (expired, later) = (hold(Some(10), None), hold(Some(11), None));
        let paid = application(Status::Accepted, true, true);
        let (free, unknown) =
            (application(Status::Accepted, false, true), application(Status::Accepted, false, false));
        let pending = application(Status::Pending, true, true);
        let now = Micros(10);
        // (application, whether its member is open, hold; fee, needs a member; the reason)
        let rows = [
            (Some(&paid), true, Some(&open), true, true, None),
            (Some(&paid), true, Some(&later), true, true, None),
            (Some(&paid), true, Some(&expired), true, true, Some(InvalidReason::HoldGone)),
            (Some(&paid), true, Some(&voided), true, true, Some(InvalidReason::HoldGone)),
            (Some(&paid), true, None, true, true, Some(InvalidReason::HoldGone)),
            (Some(&free), true, None, true, true, Some(InvalidReason::HoldGone)),
            (Some(&paid), false, Some(&voided), true, true, Some(InvalidReason::MemberClosed)),
            (Some(&free), false, None, false, true, Some(InvalidReason::MemberClosed)),
            (Some(&unknown), true, None, false, true, Some(InvalidReason::MemberClosed)),
            (Some(&free), true, None, false, true, None),
            (Some(&unknown), false, None, false, false, None),
            (Some(&pending), true, Some(&open), true, true, Some(InvalidReason::NotApplied)),
            (None, true, Some(&open), true, true, Some(InvalidReason::NotApplied)),
        ];
        for (place, (application, member_is_open, hold, fee, needs_member, wanted)) in
            rows.into_iter().enumerate()
        {
            let facts = Facts { application, member_is_open, is_staff: false, hold };
            assert_eq!(invalid_reason(facts, fee, needs_member, now), wanted, "row {place}");
            let is_accepted = wanted != Some(InvalidReason::NotApplied);
            let wanted = if is_accepted { InvalidReason::Staff } else { InvalidReason::NotApplied };
            assert_eq!(
                invalid_reason(Facts { is_staff: true, ..facts }, fee, needs_member, now),
                Some(wanted)
            );
        }
    }

    #[test]
    fn reject_names_every_bad_row_and_skip_starts_the_others() {
        let player = |name| PlayerId::new(name).unwrap();
        let rows = || {
            let bad = [None, Some(InvalidReason::HoldGone), None, Some(InvalidReason::MemberClosed)];
            ["a", "b", "c", "d"]
                .map(player)
                .into_iter()
                .zip(1..)
                .zip(bad)
                .map(|((id, no), bad)| (id, no, bad))
        };
        let failed: Vec<InvalidApplication> =
            [("b", InvalidReason::HoldGone), ("d", InvalidReason::MemberClosed)]
                .map(|(name, why)| InvalidApplication { player: player(name), why })
                .to_vec();
        assert_eq!(
            select_members(rows(), OnInvalid::Reject),
            Err(Rejection::InvalidApplications { accepted: 4, failed: failed.clone() })
        );
        let good = vec![(player("a"), 1), (player("c"), 3)];
        assert_eq!(select_members(rows(), OnInvalid::Skip), Ok((good.clone(), failed)));
        let fine = || rows().filter(|(_, _, bad)| bad.is_none());
        assert_eq!(select_members(fine(), OnInvalid::Reject), Ok((good, Vec::new())));
    }
}
