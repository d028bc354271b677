//! The rows of one member and its player in all contests, a page of contests at a time. Blocks.
//!
//! [`page`] reads them, for the export of a member. [`of_name`] reads those that have the name of a player. `rename` gives them the
//! pseudonym of an erased member. It leaves contests alone that run or still pay: their tasks go through the members in order of
//! names. A payout is renamed once it is final. Not here: scores.

use super::application_store;
use super::read::{self, ListedMember};
use crate::failure::Failure;
use crate::members::erase::{is_named, run};
use crate::tally::Tally;
use tally_rules::PlayerId;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{Application, ContestId, ContestPlayer, ContestRecord, ContestState, Payout};
use tally_rules::ledger::erasure::pseudonym;
use tally_rules::ledger::{Member, MemberId, Uuid};
use tally_store::{
    CorruptRow, EntrantKey, LedgerReadSet, LedgerWriteSet, PayoutKey, ReadSet, Redacted, WindowKey, WriteSet,
};

/// Payouts, or contests, of one read.
const ROWS: usize = 500;

/// Contests that a list of those of a player reads at most.
const READ_MAX: usize = 2_000;

/// The person whose rows are read.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The member.
    pub member: MemberId,
    /// The name of its player now. Rows of contests that are over may have one from before.
    pub player: PlayerId,
    /// Whether rows with this name and without a member are its own: another member may have the name by now.
    pub owns_player: bool,
}

impl Subject {
    fn is_its(&self, of: Option<MemberId>) -> bool {
        of.map_or(self.owns_player, |of| of == self.member)
    }

    /// Whether a payout is its own, also one of a period that its player won without a member.
    fn is_paid(&self, payout: &Payout) -> bool {
        let member = payout.has_member().then_some(payout.member);
        self.is_its(member) && (member.is_some() || payout.player == self.player)
    }
}

/// A contest, and the rows of the person in it.
pub struct Entered {
    /// The name of the contest.
    pub id: ContestId,
    /// The contest.
    pub record: ContestRecord,
    /// Whether the player is staff.
    pub is_staff: bool,
    /// The application of the player.
    pub application: Option<Application>,
    /// The row as a member of the contest, with the name of the player that it has.
    pub enrolled: Option<ListedMember>,
}

/// A page of contests.
pub struct ContestsPage {
    /// Those that the person has a row in, or is staff of.
    pub entered: Vec<Entered>,
    /// Contests that cannot be read.
    pub damaged: Vec<CorruptRow>,
    /// The contest after which the next page begins, if there is one.
    pub next: Option<ContestId>,
}

/// The rows of a person in at most `limit` contests, from the first one after `after`.
pub fn page(
    tally: &Tally,
    subject: &Subject,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<ContestsPage, Failure> {
    read_page(tally, (&subject.player, Some(subject)), after, limit)
}

/// At most `limit` contests that have the name of a player, after `after`: applications, rows since the start, and staff. The page
/// ends early once it has read many contests, because no index has them by player.
pub fn of_name(
    tally: &Tally,
    player: &PlayerId,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<ContestsPage, Failure> {
    let mut all = ContestsPage { entered: Vec::new(), damaged: Vec::new(), next: after.cloned() };
    for _ in 0..READ_MAX / ROWS {
        let page = read_page(tally, (player, None), all.next.as_ref(), ROWS)?;
        all.entered.extend(page.entered);
        all.damaged.extend(page.damaged);
        all.next = page.next;
        if all.entered.len() > limit {
            all.entered.truncate(limit);
            all.next = all.entered.last().map(|one| one.id.clone());
            let last = all.next.as_ref().map_or("", ContestId::as_str);
            all.damaged.retain(|row| row.key.as_str() < last);
        }
        if all.next.is_none() || all.entered.len() == limit {
            break;
        }
    }
    Ok(all)
}

/// Rows with the name of a player; with a person, only its own, and those from when its player had another name.
fn read_page(
    tally: &Tally,
    (player, subject): (&PlayerId, Option<&Subject>),
    after: Option<&ContestId>,
    limit: usize,
) -> Result<ContestsPage, Failure> {
    let is_its = |member: Option<MemberId>| subject.is_none_or(|subject| subject.is_its(member));
    let listed = tally.store.ledger().list_contests(None, after, limit)?;
    let next = listed.rows.last().filter(|_| listed.rows.len() == limit).map(|(id, _)| id.clone());
    let key = |record: &ContestRecord| EntrantKey { contest: record.no, player: player.clone() };
    let begun = listed.rows.iter().filter(|(_, record)| record.report.is_some());
    let keys = tally_lanes::keys_to_load(begun.map(|(_, record)| key(record)));
    let found = tally.store.ledger().enrolled(&keys)?;
    let open: Vec<&ContestRecord> = listed
        .rows
        .iter()
        .map(|(_, record)| record)
        .filter(|record| record.state == ContestState::Open)
        .collect();
    let mut applications = application_store::of_player(tally, &open, player)?.into_iter();
    let mut entered = Vec::new();
    for (id, record) in listed.rows {
        let named = keys.binary_search(&key(&record)).ok().and_then(|at| found[at]);
        let named = named.filter(|row| is_its(row.member)).map(|row| (player.clone(), row));
        let enrolled = match subject.filter(|_| named.is_none()) {
            Some(subject) => under_another_name(tally, &record, subject)?,
            None => named,
        };
        let application = if record.state == ContestState::Open {
            applications.next().flatten().filter(|row| is_its(row.member))
        } else {
            None
        };
        let owns_player = subject.is_none_or(|subject| subject.owns_player);
        let is_staff = owns_player && record.contest.is_staff(player);
        if application.is_some() || enrolled.is_some() || is_staff {
            let enrolled = read::listed(tally, (&id, &record), enrolled.into_iter().collect())?.pop();
            entered.push(Entered { id, record, is_staff, application, enrolled });
        }
    }
    Ok(ContestsPage { entered, damaged: listed.damaged, next })
}

/// The row of a member whose player had another name when the contest started. Rows have their members if money is involved, and
/// are read all, because they are sorted by names.
fn under_another_name(
    tally: &Tally,
    record: &ContestRecord,
    subject: &Subject,
) -> Result<Option<(PlayerId, ContestPlayer)>, Failure> {
    let is_older = record.updated_at < Member::created_at(subject.member);
    if record.report.is_none() || !record.contest.needs_members() || is_older {
        return Ok(None);
    }
    let mut after: Option<PlayerId> = None;
    loop {
        let rows = tally.store.ledger().list_members(record.no, after.as_ref(), ROWS)?.rows;
        let last = rows.last().filter(|_| rows.len() == ROWS).map(|(player, _)| player.clone());
        let its = rows.into_iter().find(|(_, row)| row.member == Some(subject.member));
        match last {
            Some(last) if its.is_none() => after = Some(last),
            _ => return Ok(its),
        }
    }
}

/// The payouts of a person under the number of a contest or of the payment of a period, with their numbers.
pub fn payouts(tally: &Tally, no: Uuid, subject: &Subject) -> Result<Vec<(u32, Payout)>, Failure> {
    let (mut its, mut from) = (Vec::new(), 0);
    loop {
        let rows = tally.store.ledger().list_payouts(no, from, ROWS)?.rows;
        let last = rows.last().filter(|_| rows.len() == ROWS).map(|(no, _)| *no);
        its.extend(rows.into_iter().filter(|(_, payout)| subject.is_paid(payout)));
        match last {
            Some(last) => from = last + 1,
            None => return Ok(its),
        }
    }
}

/// How far a renaming came.
pub(crate) enum Renamed {
    /// A contest of this page still runs or pays.
    Waits,
    /// Up to this contest; `None` is the end.
    Upto(Option<ContestId>),
}

/// Gives the rows of an erased member its pseudonym, in a page of contests.
pub(crate) fn rename(
    tally: &Tally,
    subject: &Subject,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<Renamed, Failure> {
    let page = page(tally, subject, after, limit)?;
    let (member, mut waits) = (subject.member, false);
    for one in page.entered {
        let Some(ListedMember { player, enrolled, .. }) = one.enrolled else { continue };
        let (id, no) = (one.id, one.record.no);
        if is_busy(&one.record) {
            waits = true;
            continue;
        }
        let its = final_payouts(tally, no, subject)?;
        let entrant = |player: PlayerId| EntrantKey { contest: no, player };
        let mut entrants = Vec::new();
        if is_named(&player, member) {
            entrants = vec![(entrant(player), None), (entrant(pseudonym(member)), Some(enrolled))];
            entrants.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        if entrants.is_empty() && its.is_empty() {
            continue;
        }
        let mut ledger = LedgerReadSet::default();
        ledger.contests.contests.push(id);
        run(tally, ledger, |_, loaded| {
            // It was read before. A contest that is over does not run again.
            let record = loaded.ledger.contests.contests[0].as_ref();
            if record.is_none_or(is_busy) {
                return WriteSet::default();
            }
            let redacted = Redacted { entrants: entrants.clone(), ..Redacted::default() };
            WriteSet { ledger: paid(&its), redacted, ..WriteSet::default() }
        })?;
    }
    Ok(if waits { Renamed::Waits } else { Renamed::Upto(page.next) })
}

/// The same of prizes of periods; where the next page begins, if there is one.
pub(crate) fn rename_in_periods(
    tally: &Tally,
    subject: &Subject,
    after: Option<WindowKey>,
    limit: usize,
) -> Result<Option<WindowKey>, Failure> {
    let keys = tally.store.ledger().payments(false, after, limit)?;
    for key in &keys {
        let Some(payment) = tally.store.ledger().payment(*key)? else { continue };
        let its = final_payouts(tally, payment.no, subject)?;
        if !its.is_empty() {
            let mut ledger = LedgerReadSet::default();
            ledger.contests.payments.push(*key);
            run(tally, ledger, |_: &ReadSet, _| WriteSet { ledger: paid(&its), ..WriteSet::default() })?;
        }
    }
    Ok(keys.last().copied().filter(|_| keys.len() == limit))
}

fn is_busy(record: &ContestRecord) -> bool {
    record.state == ContestState::Running || record.work != ContestTask::None
}

fn paid(rows: &[(PayoutKey, Payout)]) -> LedgerWriteSet {
    let mut ledger = LedgerWriteSet::default();
    ledger.contests.payouts = rows.to_vec();
    ledger
}

/// The final payouts of a member that name its player, with its pseudonym.
fn final_payouts(tally: &Tally, no: Uuid, subject: &Subject) -> Result<Vec<(PayoutKey, Payout)>, Failure> {
    let (its, member) = (payouts(tally, no, subject)?.into_iter(), subject.member);
    let its = its.filter(|(_, payout)| is_final(payout) && is_named(&payout.player, member));
    let renamed = |payout| Payout { player: pseudonym(member), ..payout };
    Ok(its.map(|(number, payout)| (PayoutKey { contest: no, no: number }, renamed(payout))).collect())
}

/// Whether a payout of an erased member never changes again. A prize is not paid to a closed member, but a fee is paid back to it.
pub(crate) fn is_final(payout: &Payout) -> bool {
    match payout.paid {
        Some(Ok(_) | Err(UnpaidReason::Reversed | UnpaidReason::NoMember)) => true,
        Some(Err(UnpaidReason::MemberClosed)) => payout.rank > 0,
        Some(Err(UnpaidReason::LimitExceeded)) | None => false,
    }
}
