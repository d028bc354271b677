//! Contests against the ledger: each fee of a member was captured once, each prize and each fee paid back is one movement of
//! its wallet, and no entry says that it is of a contest which knows nothing of it.
//!
//! Entries pass in the order of their wallets and name their contest as their reference; what contests say of a wallet is
//! gathered in that order, in rounds of bounded size. Kept besides are a wallet's own entries of contests. Not here: who
//! should have won, which is not stored, and rows of contests that are not there.

use super::Run;
use super::ahead::{Ahead, Put};
use super::walk::{PAGE_ROWS, Walk};
use super::wallets::name_of_entry;
use crate::failure::Failure;
use std::collections::BTreeMap;
use tally_rules::contest::record::Work;
use tally_rules::contest::{ContestId, Payout, Record, State};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::{Kind, MemberId, TransferId, WalletKey};
use tally_rules::{BoardId, PlayerId};
use tally_store::{Books, StoreError};

/// What contests say that is kept in memory.
const SAID_MAX: usize = 200_000;

/// Of which wallet, which contest (a digest of its name), and what: a capture, a prize or a refund.
type About = (WalletKey, [u8; 16], u8);

/// What a contest says of one movement of a wallet.
#[derive(Clone, Debug)]
struct Said {
    contest: ContestId,
    player: PlayerId,
    kind: Kind,
    amount: i64,
    /// Which, where it knows.
    transfer: Option<TransferId>,
    /// How often it is said.
    times: u32,
}

/// An entry that says it is of a contest.
type OfContest = (EntryKey, ContestId, Kind, i64, TransferId);

/// Compares both; contests without money cost a walk of them alone.
pub(super) fn replay(books: &mut dyn Books, run: &mut Run<'_>) -> Result<(), Failure> {
    check_counts(books, run)?;
    if run.replayed.contests == 0 {
        return Ok(());
    }
    let mut said = Ahead::gather(SAID_MAX, again, |put| say(books, put))?;
    let (mut entries, mut wallet) = (Walk::default(), BTreeMap::<About, Vec<OfContest>>::new());
    loop {
        entries.fill(|after: Option<&EntryKey>, limit| books.entries(after.copied(), limit))?;
        let next = entries.next();
        let is_another = |(about, _, _): &About| next.as_ref().is_none_or(|(key, _)| key.wallet != *about);
        if wallet.first_key_value().is_some_and(|(about, _)| is_another(about)) {
            for (about, found) in std::mem::take(&mut wallet) {
                let mut passed = |_, said| compare(run, Some(&said), &[]);
                let wanted = said.at(&about, |put| say(books, put), &mut passed)?;
                compare(run, wanted.as_ref(), &found);
            }
        }
        let Some((key, entry)) = next else { break };
        let contest = entry.reference.as_ref().and_then(|text| BoardId::new(text).ok());
        let contest = contest.and_then(|board| ContestId::of_board(&board)).map(|(id, _)| id);
        let is_of_contests = matches!(entry.kind, Kind::Capture | Kind::Prize | Kind::Refund);
        if let Some(contest) = contest.filter(|_| is_of_contests) {
            let about = about(key.wallet, &contest, entry.kind);
            let row = (key, contest, entry.kind, entry.amount, entry.transfer);
            wallet.entry(about).or_default().push(row);
        }
    }
    said.rest(|put| say(books, put), &mut |_, said| compare(run, Some(&said), &[]))?;
    Ok(())
}

fn about(wallet: WalletKey, contest: &ContestId, kind: Kind) -> About {
    let digest = blake3::hash(contest.as_str().as_bytes());
    let (half, _) = digest.as_bytes().split_first_chunk().expect("a digest of 32 bytes");
    (wallet, *half, kind.number())
}

fn again(known: &mut Said, _more: Said) {
    known.times += 1;
}

/// Each contest that has started.
fn each(
    books: &mut dyn Books,
    mut with: impl FnMut(&mut dyn Books, ContestId, &Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut contests = Walk::default();
    loop {
        contests.fill(|after: Option<&ContestId>, limit| books.contests(after, limit))?;
        let Some((id, record)) = contests.next() else { return Ok(()) };
        if record.report.is_some() {
            with(books, id, &record)?;
        }
    }
}

fn each_member(
    books: &mut dyn Books,
    record: &Record,
    mut with: impl FnMut(PlayerId, Option<MemberId>),
) -> Result<(), StoreError> {
    let mut members = Walk::default();
    loop {
        members.fill(|after: Option<&PlayerId>, limit| books.contest_members(record.no, after, limit))?;
        let Some((player, enrolled)) = members.next() else { return Ok(()) };
        with(player, enrolled.member);
    }
}

fn each_payout(
    books: &mut dyn Books,
    record: &Record,
    mut with: impl FnMut(u32, Payout),
) -> Result<(), StoreError> {
    let mut from = 0;
    loop {
        let page = books.payouts(record.no, from, PAGE_ROWS)?;
        let last = page.last().map(|(no, _)| *no).filter(|_| page.len() == PAGE_ROWS);
        page.into_iter().for_each(|(no, payout)| with(no, payout));
        let Some(next) = last.and_then(|last| last.checked_add(1)) else { return Ok(()) };
        from = next;
    }
}

/// What contests say of movements.
fn say(books: &mut dyn Books, put: &mut Put<'_, About, Said>) -> Result<(), StoreError> {
    each(books, |books, contest, record| {
        let said = |player, kind, amount, transfer| Said {
            contest: contest.clone(),
            player,
            kind,
            amount,
            transfer,
            times: 1,
        };
        if let Some(fee) = record.contest.entry_fee {
            each_member(books, record, |player, member| {
                let Some(member) = member else { return };
                let wallet = WalletKey { member, currency: fee.currency };
                let amount = fee.amount.units();
                put(about(wallet, &contest, Kind::Capture), said(player, Kind::Capture, amount, None));
            })?;
        }
        each_payout(books, record, |_, row| {
            let Some(Ok(transfer)) = row.paid else { return };
            let kind = if row.rank == 0 { Kind::Refund } else { Kind::Prize };
            let wallet = WalletKey { member: row.member, currency: row.currency };
            let one = said(row.player, kind, row.amount.units(), Some(transfer));
            put(about(wallet, &contest, kind), one);
        })
    })
}

/// How many members and prizes each contest has against how many it counts.
fn check_counts(books: &mut dyn Books, run: &mut Run<'_>) -> Result<(), StoreError> {
    each(books, |books, id, record| {
        run.replayed.contests += 1;
        let (mut members, mut unpaying) = (0_u64, Vec::new());
        let needs = record.contest.needs_members();
        each_member(books, record, |player, member| {
            members += 1;
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
        let (mut rows, mut open) = (0_u64, Vec::new());
        each_payout(books, record, |no, payout| {
            rows += 1;
            open.extend(payout.paid.is_none().then_some(no));
        })?;
        let ended = record.work == Work::None;
        let wanted = match record.state {
            State::Cancelled if ended && record.contest.entry_fee.is_some() => {
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

/// What a contest says of a wallet against the entries that say so.
fn compare(run: &mut Run<'_>, said: Option<&Said>, found: &[OfContest]) {
    let Some(said) = said else {
        for (key, contest, kind, ..) in found {
            let what = format!("it is a {kind} of the contest {}, which has none here", contest.as_str());
            run.found("entries", name_of_entry(key), what);
        }
        return;
    };
    let row = format!("{}/{}", said.contest.as_str(), said.player.as_str());
    let (table, what) = match said.kind {
        Kind::Capture => ("contest_members", "its fee"),
        Kind::Prize => ("contest_prizes", "its prize"),
        _ => ("contest_prizes", "its fee back"),
    };
    if said.times > 1 {
        run.found(table, &row, format!("{what} is there {} times", said.times));
    }
    match found {
        [] => run.found(table, &row, format!("{what}, {}, is no movement", said.amount)),
        [(.., amount, transfer)] => {
            if *amount != said.amount {
                run.found(table, &row, format!("{what} is {}, and its movement {amount}", said.amount));
            }
            if said.transfer.is_some_and(|wanted| wanted != *transfer) {
                run.found(table, &row, format!("{what} is another movement: {}", transfer.0));
            }
        }
        more => run.found(table, &row, format!("{what} is {} movements", more.len())),
    }
}
