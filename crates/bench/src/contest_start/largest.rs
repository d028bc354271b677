//! The largest contests, started and settled for real: the time and the memory, and the longest transfer meanwhile.
//!
//! Every member has a score and a prize. The members' wallets and applications are written as rows, because no request waits for
//! them here. Holds, scores, the start and the settling are the service's.

use super::ours::{Ours, id, no};
use super::peak;
use crate::error::{During, Error, prove};
use crate::set_at_end::SetAtEnd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_load::player;
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::definition::Fee;
use tally_rules::contest::{Contest, ContestId, ContestRecord, ContestState, Prize};
use tally_rules::ledger::{
    Amount, Currency, HoldId, MemberId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, Origin, PlayerId};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{finish, read, settle, start};
use tally_service::ledger::holds::NewHold;
use tally_service::ledger::transfers::NewTransfer;
use tally_service::ledger::{holds, transfers};
use tally_service::scores::submit::{NewScore, submit};
use tally_service::{Failure, Tally};
use tally_store::{LedgerWriteSet, ReadSet, WriteSet};
use tokio::runtime::Runtime;

/// The number of the contest, after those of the scenario.
const CONTEST: u32 = 1_000_000;
/// Requests that wait together, and rows of one transaction while filling.
const TOGETHER: usize = 1_000;
/// The fee of a member, if there is one.
const FEE: i64 = 10;
/// How long transfers are measured with nothing else running.
const IDLE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Large {
    pub(super) members: u32,
    pub(super) fee: bool,
    /// Seconds.
    pub(super) started: f64,
    pub(super) settled: f64,
    /// The longest other transfer, alone, during the start, and during the settling: milliseconds.
    pub(super) waits: [f64; 3],
    pub(super) grew_kib: Option<u64>,
}

/// Starts and settles one contest.
pub(super) fn measure(ours: &Ours, runtime: &Runtime, members: u32, fee: bool) -> Result<Large, Error> {
    let numbers: Vec<u64> = (0..u64::from(members) + 2).collect();
    let payers =
        [numbers[numbers.len() - 2], numbers[numbers.len() - 1]].map(|number| member(members, number));
    fill(ours, runtime, (members, fee), &numbers)?;
    let contest = id(CONTEST + members);
    let (tally, admin) = (&ours.tally, &ContestActor::ADMIN);
    let (idle, ()) = beside(ours, runtime, payers, || {
        std::thread::sleep(IDLE);
        Ok(())
    })?;
    let before = peak::begin();
    let began = Instant::now();
    let (starting, ()) = beside(ours, runtime, payers, || {
        start::start(tally, &contest, admin, None).during("start the contest").map(drop)
    })?;
    let started = began.elapsed().as_secs_f64();
    let grew_start = before.and_then(peak::grown_kib);
    runtime.block_on(score(tally, &contest, members)).during("submit scores")?;
    finish::finish(tally, &contest, admin, None).during("finish the contest")?;
    let before = peak::begin();
    let began = Instant::now();
    let (settling, ()) = beside(ours, runtime, payers, || {
        settle::settle(tally, &contest, admin, None).during("settle the contest").map(drop)
    })?;
    let settled = began.elapsed().as_secs_f64();
    let grew_kib = grew_start.max(before.and_then(peak::grown_kib));
    let paid = paid(tally, &contest)?;
    prove(paid == members, || format!("{paid} of {members} prizes are paid"))?;
    Ok(Large { members, fee, started, settled, waits: [idle, starting, settling], grew_kib })
}

/// Runs `with` beside transfers; returns the longest transfer in milliseconds.
fn beside<T>(
    ours: &Ours,
    runtime: &Runtime,
    [from, to]: [MemberId; 2],
    with: impl FnOnce() -> Result<T, Error>,
) -> Result<(f64, T), Error> {
    let stop = AtomicBool::new(false);
    let transfers = || {
        let mut longest = Duration::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let sent_at = Instant::now();
            runtime
                .block_on(transfers::post(&ours.tally, movement(TransferKind::Transfer { from, to }, 1)))?;
            longest = longest.max(sent_at.elapsed());
        }
        Ok::<_, Failure>(longest)
    };
    let (longest, done) = std::thread::scope(|scope| {
        let end = SetAtEnd(&stop);
        let transfers = scope.spawn(transfers);
        let done = with();
        drop(end);
        (transfers.join().expect("it does not panic"), done)
    });
    Ok((longest.during("transfer")?.as_secs_f64() * 1_000.0, done?))
}

fn won() -> Currency {
    Currency::parse("KRW").expect("a currency")
}

/// A member of the contest with so many members.
fn member(of: u32, number: u64) -> MemberId {
    let mut bytes = [1; 16];
    bytes[4..8].copy_from_slice(&of.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    MemberId(Uuid(bytes))
}

fn amount(units: i64) -> Amount {
    Amount::new(units).expect("an amount")
}

fn movement(what: TransferKind, units: i64) -> NewTransfer {
    let order = TransferRequest { what, currency: won(), amount: amount(units), reference: None };
    NewTransfer { order, origin: Origin::default(), idempotency: None, mint_cap: None }
}

/// Wallets with money, and a contest whose applications are all accepted.
fn fill(ours: &Ours, runtime: &Runtime, (members, fee): (u32, bool), numbers: &[u64]) -> Result<(), Error> {
    let key = |number: &u64| WalletKey { member: member(members, *number), currency: won() };
    for some in numbers.chunks(TOGETHER) {
        let wallets = some.iter().map(|number| (key(number), Wallet::default())).collect();
        let ledger = LedgerWriteSet { wallets, ..LedgerWriteSet::default() };
        let change = |_: &_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() };
        ours.store.run(&ReadSet::default(), &mut { change }).during("make wallets")?;
        let deposit = |number: &u64| {
            (movement(TransferKind::Deposit { to: member(members, *number) }, 1_000_000), false)
        };
        let all = runtime.block_on(transfers::post_all(&ours.tally, some.iter().map(deposit).collect()));
        all.during("pay money in")?.into_iter().try_for_each(|one| one.map(drop)).during("pay money in")?;
    }
    let held =
        if fee { runtime.block_on(hold(&ours.tally, members)).during("hold fees")? } else { Vec::new() };
    let prize = Prize { from: 1, to: members, currency: won(), amount: amount(1) };
    let definition = Contest {
        title: "A large one".into(),
        capacity: members,
        entry_fee: fee.then(|| Fee { currency: won(), amount: amount(FEE) }),
        prizes: vec![prize],
        ..Contest::default()
    };
    let mut record = ContestRecord::new(no(CONTEST + members), definition, None, Micros(1));
    record.state = ContestState::Open;
    record.applications =
        ApplicationCounts { accepted: members, places: members.into(), ..ApplicationCounts::default() };
    ours.fill(CONTEST + members, record, |place, application| {
        application.member = Some(member(members, place.into()));
        application.hold = held.get(place as usize).copied();
    })
}

/// Holds a fee of every member.
async fn hold(tally: &Arc<Tally>, members: u32) -> Result<Vec<HoldId>, Failure> {
    let mut all = Vec::with_capacity(members as usize);
    for first in (0..u64::from(members)).step_by(TOGETHER) {
        let end = u64::from(members).min(first + TOGETHER as u64);
        let place = |number| {
            let (tally, wallet) =
                (Arc::clone(tally), WalletKey { member: member(members, number), currency: won() });
            let new = NewHold {
                wallet,
                amount: amount(FEE),
                expires_at: None,
                origin: Origin::default(),
                idempotency: None,
            };
            tokio::spawn(async move { holds::place(&tally, new).await })
        };
        let placed: Vec<_> = (first..end).map(place).collect();
        for one in placed {
            all.push(one.await.expect("it does not panic")?.id);
        }
    }
    Ok(all)
}

/// A score of every member.
async fn score(tally: &Arc<Tally>, contest: &ContestId, members: u32) -> Result<(), Failure> {
    for first in (0..members).step_by(TOGETHER) {
        let one = |number: u32| {
            let (tally, board) = (Arc::clone(tally), contest.board(None));
            let player = PlayerId::new(&player(number.into())).expect("a good name");
            let (score, subscore, at, idempotency) = (ScoreInput::Int(number.into()), None, None, None);
            let new = NewScore { board, player, score, subscore, at, idempotency };
            tokio::spawn(async move { submit(&tally, new).await.map(drop) })
        };
        let submits: Vec<_> = (first..members.min(first + TOGETHER as u32)).map(one).collect();
        for submit in submits {
            submit.await.expect("it does not panic")?;
        }
    }
    Ok(())
}

/// The number of paid prizes.
fn paid(tally: &Tally, contest: &ContestId) -> Result<u32, Error> {
    let (mut paid, mut from) = (0, 0);
    loop {
        let page = read::prizes(tally, contest, from, TOGETHER).during("read prizes")?.rows;
        paid += page.iter().filter(|(_, row)| matches!(row.paid, Some(Ok(_)))).count();
        match page.last() {
            Some((last, _)) if page.len() == TOGETHER => from = last + 1,
            _ => return Ok(u32::try_from(paid).expect("so many members")),
        }
    }
}
