//! Contests and prizes of periods against the ledger: each fee of a member was captured once, and each prize and refund is one
//! transfer of its wallet. No entry refers to a contest or a period that does not have it.
//!
//! Entries are scanned in the order of their wallets and have their contest or period as reference. The payments of those are
//! collected in that order, in rounds of bounded size, beside a wallet's own entries of both. Not here: which players should
//! have won, which is not stored; the payments of periods (`periods`); rows of missing contests (`owners`).

use super::ahead::{Ahead, Put};
use super::entries::Entries;
use super::owed::Marked;
use super::sorted_rows::{PAGE_ROWS, SortedRows};
use super::wallets::name_of_entry;
use super::{Run, periods};
use crate::failure::Failure;
use crate::owed::{Debt, Debtor};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, ContestRecord, ContestState, Payout, division};
use tally_rules::ledger::account::Account;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::{Entry, EntryKind, MemberId, TransferId, Uuid, WalletKey};
use tally_rules::{BoardId, Micros, PlayerId};
use tally_store::{BoardRow, Snapshot, StoreError};

/// Payments of contests that are kept in memory.
const IN_MEMORY_MAX: usize = 200_000;

/// Of which wallet, of what (a digest of it), and what: a fee, a prize or a refund.
pub(super) type About = (WalletKey, [u8; 16], u8);

/// One payment of a wallet in a contest or a period.
#[derive(Clone, Debug)]
pub(super) struct RecordedPayment {
    /// The contest, or the period as references name it.
    pub(super) of: Arc<str>,
    pub(super) player: PlayerId,
    pub(super) kind: EntryKind,
    pub(super) amount: i64,
    /// The transfer, if it is known.
    pub(super) transfer: Option<TransferId>,
    /// Whether it may be from before the checkpoint, where no entry of it is read.
    pub(super) may_be_earlier: bool,
    /// How often it is there.
    pub(super) times: u32,
}

/// An entry with its contest or period.
struct Entered {
    key: EntryKey,
    /// As a sentence names it.
    of: String,
    kind: EntryKind,
    amount: i64,
    transfer: TransferId,
}

/// Compares both; contests without money cost only a scan of them.
pub(super) fn reconcile(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), Failure> {
    check_counts(snapshot, run)?;
    let periods = periods::check(snapshot, run)?;
    let paid = snapshot.totals()?.iter().any(|(key, _)| key.account == Account::Prizes);
    if run.reconciled.contests == 0 && periods == 0 && !paid {
        return Ok(());
    }
    let from = run.after();
    let earlier = run.since.as_ref().map(|since| Earlier::of(snapshot, since.started_until())).transpose()?;
    let terms = (from, earlier.as_ref());
    let mut recorded = Ahead::collect(IN_MEMORY_MAX, again, |put| collect(snapshot, terms, put))?;
    let (mut entries, mut wallet) = (Entries::of(run), BTreeMap::<About, Vec<Entered>>::new());
    loop {
        entries.fill(snapshot)?;
        let next = entries.next();
        let is_another = |(about, _, _): &About| next.as_ref().is_none_or(|(key, _)| key.wallet != *about);
        if wallet.first_key_value().is_some_and(|(about, _)| is_another(about)) {
            for (about, found) in std::mem::take(&mut wallet) {
                let mut passed = |_, recorded| compare(run, Some(&recorded), &[]);
                let wanted = recorded.at(&about, |put| collect(snapshot, terms, put), &mut passed)?;
                compare(run, wanted.as_ref(), &found);
            }
        }
        let Some((key, entry)) = next else { break };
        let of = of_entry(key.wallet, &entry).filter(|_| Some(entry.transfer) > from);
        if let Some((about, of)) = of {
            let Entry { kind, amount, transfer, .. } = entry;
            wallet.entry(about).or_default().push(Entered { key, of, kind, amount, transfer });
        }
    }
    recorded
        .rest(|put| collect(snapshot, terms, put), &mut |_, recorded| compare(run, Some(&recorded), &[]))?;
    Ok(())
}

/// The payment of an entry, if it refers to a contest or a period.
fn of_entry(wallet: WalletKey, entry: &Entry) -> Option<(About, String)> {
    // The wallet of a pool has its own check.
    if wallet.member.is_pool() {
        return None;
    }
    // Earlier releases wrote the fee of a contest as a capture.
    let kind = match entry.kind {
        EntryKind::Capture | EntryKind::Fee => EntryKind::Fee,
        // A player may have a prize of the pool beside another one.
        EntryKind::Prize if entry.counterparty.is_some_and(MemberId::is_pool) => EntryKind::PrizeOut,
        kind @ (EntryKind::Prize | EntryKind::Refund) => kind,
        _ => return None,
    };
    let reference = entry.reference.as_ref()?;
    let contest = BoardId::new(reference).ok().and_then(|board| ContestId::of_board(&board));
    if let Some((contest, _)) = contest {
        let about = about(wallet, &[contest.as_str().as_bytes()], kind);
        return Some((about, format!("contest {}", contest.as_str())));
    }
    let is_of_period = entry.kind == EntryKind::Prize && reference.contains('/');
    is_of_period.then(|| (periods::about(wallet, reference, entry.transfer), format!("period {reference}")))
}

pub(super) fn about(wallet: WalletKey, of: &[&[u8]], kind: EntryKind) -> About {
    let mut hasher = blake3::Hasher::new();
    for window in of {
        hasher.update(window);
    }
    let digest = hasher.finalize();
    let (half, _) = digest.as_bytes().split_first_chunk().expect("a digest of 32 bytes");
    (wallet, *half, kind.number())
}

fn again(known: &mut RecordedPayment, _more: RecordedPayment) {
    known.times += 1;
}

/// Each contest that has started.
pub(super) fn each(
    snapshot: &mut dyn Snapshot,
    mut with: impl FnMut(&mut dyn Snapshot, ContestId, &ContestRecord) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut contests = SortedRows::default();
    loop {
        contests.fill(|after: Option<&ContestId>, limit| snapshot.contests(after, limit))?;
        let Some((id, record)) = contests.next() else { return Ok(()) };
        if record.report.is_some() {
            with(snapshot, id, &record)?;
        }
    }
}

pub(super) fn each_member(
    snapshot: &mut dyn Snapshot,
    record: &ContestRecord,
    mut with: impl FnMut(PlayerId, Option<MemberId>),
) -> Result<(), StoreError> {
    let mut members = SortedRows::default();
    loop {
        members.fill(|after: Option<&PlayerId>, limit| snapshot.contest_members(record.no, after, limit))?;
        let Some((player, enrolled)) = members.next() else { return Ok(()) };
        with(player, enrolled.member);
    }
}

/// Each prize under a number, and each fee paid back.
pub(super) fn each_payout(
    snapshot: &mut dyn Snapshot,
    no: Uuid,
    mut with: impl FnMut(u32, Payout),
) -> Result<(), StoreError> {
    let mut from = 0;
    loop {
        let page = snapshot.payouts(no, from, PAGE_ROWS)?;
        let last = page.last().map(|(no, _)| *no).filter(|_| page.len() == PAGE_ROWS);
        page.into_iter().for_each(|(no, payout)| with(no, payout));
        let Some(next) = last.and_then(|last| last.checked_add(1)) else { return Ok(()) };
        from = next;
    }
}

/// Which contests may have taken fees before a checkpoint.
///
/// The first fees are taken at the start, which makes the first leaderboard. A record has the instant of its state alone.
struct Earlier {
    until: Micros,
    /// When the leaderboards of contests were made.
    boards: BTreeMap<BoardId, Micros>,
}

impl Earlier {
    fn of(snapshot: &mut dyn Snapshot, until: Micros) -> Result<Self, StoreError> {
        let made = |row: BoardRow| ContestId::of_board(&row.id).map(|_| (row.id, row.created_at));
        let boards = snapshot.boards()?.into_iter().filter_map(|(_, row)| row.and_then(made)).collect();
        Ok(Self { until, boards })
    }

    /// Whether a contest may have. One without its leaderboard did not before it was created.
    fn may_have(&self, id: &ContestId, record: &ContestRecord) -> bool {
        let first = id.board(division::of(0, record.contest.division_size));
        let started = self.boards.get(&first).copied().unwrap_or(record.created_at);
        started.max(record.created_at) <= self.until
    }
}

/// Passes the payments of contests and periods that may be after a transfer. Fees of earlier contests may be before it.
fn collect(
    snapshot: &mut dyn Snapshot,
    (from, earlier): (Option<TransferId>, Option<&Earlier>),
    put: &mut Put<'_, About, RecordedPayment>,
) -> Result<(), StoreError> {
    periods::collect(snapshot, from, put)?;
    each(snapshot, |snapshot, contest, record| {
        let name: Arc<str> = contest.as_str().into();
        let about = |wallet, kind| about(wallet, &[contest.as_str().as_bytes()], kind);
        let may_be_earlier = earlier.is_some_and(|earlier| earlier.may_have(&contest, record));
        let recorded = |player, kind, amount, transfer| RecordedPayment {
            of: Arc::clone(&name),
            player,
            kind,
            amount,
            transfer,
            may_be_earlier: may_be_earlier && transfer.is_none(),
            times: 1,
        };
        if let Some(fee) = record.contest.entry_fee {
            each_member(snapshot, record, |player, member| {
                let Some(member) = member else { return };
                let wallet = WalletKey { member, currency: fee.currency };
                let amount = fee.amount.units();
                put(about(wallet, EntryKind::Fee), recorded(player, EntryKind::Fee, amount, None));
            })?;
        }
        each_payout(snapshot, record.no, |no, row| {
            let Some(Ok(transfer)) = row.paid.filter(|paid| paid.is_ok_and(|id| Some(id) > from)) else {
                return;
            };
            let kind = match row.rank {
                0 => EntryKind::Refund,
                _ if record.is_of_pool(no) => EntryKind::PrizeOut,
                _ => EntryKind::Prize,
            };
            let wallet = WalletKey { member: row.member, currency: row.currency };
            let one = recorded(row.player, kind, row.amount.units(), Some(transfer));
            put(about(wallet, kind), one);
        })
    })
}

/// How many members and prizes each contest has against how many it counts.
fn check_counts(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), StoreError> {
    each(snapshot, |snapshot, id, record| {
        run.reconciled.contests += 1;
        let (mut members, mut unpaying) = (0_u64, Vec::new());
        let needs = record.contest.needs_members();
        let of = Debtor::Contest(id.clone());
        let from = record.fees_due();
        each_member(snapshot, record, |player, member| {
            members += 1;
            let is_due = from.is_some_and(|after| after.is_none_or(|after| player > *after));
            if is_due {
                run.reconciled.owed.add(Debt::of_fee(&of, record, player.clone(), member));
            }
            unpaying.extend((needs && member.is_none()).then_some(player));
        })?;
        for player in unpaying {
            let row = format!("{}/{}", id.as_str(), player.as_str());
            run.found("contest_members", row, "it has no wallet, and the contest has a fee or prizes");
        }
        if members != u64::from(record.members) {
            let what = format!("it counts {} members, and there are {members}", record.members);
            run.found("contests", id.as_str(), what);
        }
        let (mut rows, mut open, mut marked) = (0_u64, Vec::new(), Marked::default());
        each_payout(snapshot, record.no, |no, payout| {
            rows += 1;
            marked.note(no, &payout);
            open.extend(payout.paid.is_none().then_some(no));
            run.reconciled.owed.add(Debt::of_payout(&of, payout));
        })?;
        marked.check(snapshot, run, id.as_str())?;
        let ended = record.work == ContestTask::None;
        let wanted = match record.state {
            ContestState::Cancelled if ended && record.contest.entry_fee.is_some() => {
                Some(u64::from(record.members))
            }
            _ => record.prizes.map(u64::from),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != rows) {
            let what = format!("{wanted} were to be paid, and there are {rows}");
            run.found("contests", id.as_str(), what);
        }
        for no in open.into_iter().filter(|_| ended) {
            run.found("contest_prizes", format!("{}/{no}", id.as_str()), "it was never paid");
        }
        Ok(())
    })
}

/// A payment of a wallet in a contest or a period against the entries that refer to it.
fn compare(run: &mut Run<'_>, recorded: Option<&RecordedPayment>, found: &[Entered]) {
    let Some(recorded) = recorded else {
        for Entered { key, of, kind, .. } in found {
            let what = format!("it is a {kind} of the {of}, which has none here");
            run.found("entries", name_of_entry(key), what);
        }
        return;
    };
    let row = format!("{}/{}", recorded.of, recorded.player.as_str());
    let (table, what) = match recorded.kind {
        EntryKind::Fee => ("contest_members", "its fee"),
        EntryKind::Prize => ("contest_prizes", "its prize"),
        EntryKind::PrizeOut => ("contest_prizes", "its prize of the pool"),
        _ => ("contest_prizes", "its fee back"),
    };
    if recorded.times > 1 {
        run.found(table, &row, format!("{what} is there {} times", recorded.times));
    }
    match found {
        [] if recorded.may_be_earlier => {}
        [] => run.found(table, &row, format!("{what}, {}, is no movement", recorded.amount)),
        [Entered { amount, transfer, .. }] => {
            if *amount != recorded.amount {
                run.found(table, &row, format!("{what} is {}, and its movement {amount}", recorded.amount));
            }
            if recorded.transfer.is_some_and(|wanted| wanted != *transfer) {
                run.found(table, &row, format!("{what} is another movement: {}", transfer.0));
            }
        }
        more => run.found(table, &row, format!("{what} is {} movements", more.len())),
    }
}
