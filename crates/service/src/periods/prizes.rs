//! Prizes of closed periods: the payouts are stored once, and then paid a piece at a time.
//!
//! A closed period owes the prizes that its rule had when it closed, so they are stored before a rule changes. The store
//! records whether they were stored. So a crash between closing and storing loses nothing, and two servers store them once. A
//! contest that was cancelled before a period was over owes none for it. Pieces name their start, and the payment's row names
//! the start of the next one. A player that is no member has a row all the same and gets nothing, and no player moves up for it. A
//! period is not deleted before it is paid. Blocks. Not here: paying again what could not be paid (`pay_again`).

use super::payments::{Over, PaymentAction, PaymentRequest};
use super::view::View;
use super::{LiveWindow, Periods, RuleState, scheduler};
use crate::boards::Board;
use crate::contests::bounded_steps::{STEP_ROWS, payouts};
use crate::contests::settle::{PAGE, page, ranked};
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tally_rules::contest::Payout;
use tally_rules::contest::prize::{Share, last_rank, shares};
use tally_rules::definition::Ranking;
use tally_rules::ledger::MemberId;
use tally_rules::ledger::member::Handle;
use tally_rules::period::PeriodPrizes;
use tally_rules::{Micros, PlayerId};
use tally_store::{BoardNo, Store, Window, WindowKey, WindowRow};

/// Winners without a member that have a row, of one period. A rank may be shared by a whole leaderboard, of which none is a member.
const NO_MEMBER_MAX: usize = 1_000;

/// Open payments of one round.
const OPEN_PAGE: usize = 100;

/// Closed periods of each board that are paid, cached so that the store is not queried for them again.
#[derive(Debug, Default)]
pub(crate) struct PaidPeriods {
    known: Mutex<HashMap<BoardNo, HashSet<Window>>>,
}

impl PaidPeriods {
    /// Those of a board; the caller sets them again.
    fn take(&self, board: BoardNo) -> HashSet<Window> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&board).unwrap_or_default()
    }

    fn set(&self, board: BoardNo, paid: HashSet<Window>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(board, paid);
    }
}

/// Whether a period has prizes, which have perhaps been paid. One in which all players are banned has none to pay, which is
/// stored too: a restored player gets none afterwards.
pub(super) fn has_prizes(state: &RuleState, row: &WindowRow) -> bool {
    row.version > 0 && state.rule.prizes.are_for(state.due(row.span))
}

/// Whether a period has prizes that were not all paid.
pub(super) fn is_unpaid(
    store: &dyn Store,
    board: &Board,
    state: &RuleState,
    row: &WindowRow,
) -> Result<bool, Failure> {
    if !has_prizes(state, row) {
        return Ok(false);
    }
    let payment = store.ledger().payment(WindowKey { board: board.no, window: row.window })?;
    Ok(payment.is_none_or(|payment| payment.is_open()))
}

/// Pays everything that is due now, unless the clock is in doubt: a closed period may be open by another time. A failed period
/// does not delay others.
pub fn pay_due(tally: &Tally) -> Result<(), Failure> {
    if tally.trusted_now().is_none() {
        return Ok(());
    }
    let (mut done, mut after) = (Ok(()), None);
    loop {
        let open = tally.store.ledger().payments(true, after, OPEN_PAGE)?;
        for key in &open {
            done = run_remaining_steps(tally, *key).and(done);
        }
        after = open.last().copied();
        if open.len() < OPEN_PAGE {
            break;
        }
    }
    for board in tally.boards.list(None, usize::MAX) {
        done = of_board(tally, &board).and(done);
    }
    done
}

/// A closed period of a board with its prizes.
type Closed = (WindowRow, Over, PeriodPrizes);

/// The closed periods of a board with prizes: which are among the known ones, and the others.
fn closed(board: &Board, known: &HashSet<Window>) -> (HashSet<Window>, Vec<Closed>) {
    let (mut among, mut others) = (HashSet::new(), Vec::new());
    for state in &board.periods().rules {
        for row in state.closed.iter().filter(|row| has_prizes(state, row)) {
            if known.contains(&row.window) {
                among.insert(row.window);
            } else {
                let (period, since) = (state.name(row.span.start), state.due(row.span));
                let over = Over { board: board.id.clone(), period, since };
                others.push((*row, over, state.rule.prizes.clone()));
            }
        }
    }
    (among, others)
}

/// Closes ended periods of a board and stores their prizes, before its rules change; returns these periods. Blocks.
pub(crate) fn write_down(tally: &Tally, board: &Arc<Board>) -> Result<HashSet<Window>, Failure> {
    if board.periods().rules.iter().all(|state| state.rule.prizes.table.is_empty()) {
        return Ok(HashSet::new());
    }
    scheduler::close_due_of(tally, board)?;
    scheduler::refresh_due_of(tally, board)?;
    let (_, closed) = closed(board, &HashSet::new());
    closed.iter().try_for_each(|one| begin(tally, board, one))?;
    Ok(closed.into_iter().map(|(row, ..)| row.window).collect())
}

/// Whether a period is over that has prizes and is none of those that are stored.
pub(crate) fn owes(periods: &Periods, now: Micros, written: &HashSet<Window>) -> bool {
    periods.rules.iter().any(|state| {
        let promised = |span| state.rule.prizes.are_for(state.due(span));
        // A sealed period is in memory until its archive is written.
        let late = |live: &Arc<LiveWindow>| !state.takes(live.span, now) && promised(live.span);
        let owed = |row: &WindowRow| has_prizes(state, row) && !written.contains(&row.window);
        state.live.iter().any(late) || state.closed.iter().any(owed)
    })
}

fn of_board(tally: &Tally, board: &Arc<Board>) -> Result<(), Failure> {
    // Paid ones are neither named nor copied in each round.
    let (mut paid, owed) = closed(board, &tally.contests.paid.take(board.no));
    let mut done = Ok(());
    for one in &owed {
        let key = WindowKey { board: board.no, window: one.0.window };
        match begin(tally, board, one).and_then(|()| run_remaining_steps(tally, key)) {
            Ok(()) => drop(paid.insert(key.window)),
            Err(failure) => done = Err(failure),
        }
    }
    if !paid.is_empty() {
        tally.contests.paid.set(board.no, paid);
    }
    done
}

/// Stores the payouts, unless that was done.
fn begin(tally: &Tally, board: &Arc<Board>, (row, over, prizes): &Closed) -> Result<(), Failure> {
    let key = WindowKey { board: board.no, window: row.window };
    if tally.store.ledger().payment(key)?.is_some() {
        return Ok(());
    }
    if row.stale {
        return Err(Fault::RanksUnavailable(
            "a closed period has changed, and its prizes wait for its archive".into(),
        )
        .into());
    }
    let view = View::of_closed(board, &over.period, *row);
    let alone = board.definition.ranking == Ranking::Ordinal;
    let ranked = ranked(alone, last_rank(&prizes.table) as usize, |from| {
        view.read(&*tally.store, |ranking| page(ranking, from))
    })?;
    let (mut payouts, mut others) = (Vec::new(), 0);
    for page in shares(&prizes.table, prizes.ties, &ranked).chunks(PAGE) {
        let members = members_of(tally, page.iter().map(|share| &share.player))?;
        for Share { player, rank, currency, amount } in page {
            let member = match members.get(player) {
                Some(member) => *member,
                None if others == NO_MEMBER_MAX => continue,
                None => Payout::NO_MEMBER,
            };
            others += usize::from(member == Payout::NO_MEMBER);
            let (player, rank, currency, amount) = (player.clone(), *rank, *currency, *amount);
            payouts.push(Payout { player, member, division: None, rank, currency, amount, paid: None });
        }
    }
    let action = PaymentAction::Begin(over.clone(), payouts);
    tally.ledger.ask_blocking(PaymentRequest::of_server(key, action))?;
    Ok(())
}

/// Those of some players that are members, in one query.
pub(super) fn members_of<'a>(
    tally: &Tally,
    players: impl Iterator<Item = &'a PlayerId>,
) -> Result<BTreeMap<PlayerId, MemberId>, Failure> {
    let players: BTreeSet<&PlayerId> = players.collect();
    let handles: Vec<Handle> = players.iter().map(|player| Handle::Player((*player).clone())).collect();
    let found = tally.store.ledger().members_of(&handles)?;
    let member = |(player, member): (&PlayerId, Option<MemberId>)| Some((player.clone(), member?));
    Ok(players.into_iter().zip(found).filter_map(member).collect())
}

/// Pays until nothing is left.
fn run_remaining_steps(tally: &Tally, key: WindowKey) -> Result<(), Failure> {
    loop {
        let ledger = tally.store.ledger();
        let Some(payment) = ledger.payment(key)?.filter(|payment| payment.is_open()) else { return Ok(()) };
        let rows = ledger.payouts(payment.no, payment.done, STEP_ROWS)?;
        if rows.is_empty() {
            let (board, period) = (payment.board.as_str(), &payment.period);
            return Err(Fault::Broken(format!("prizes of `{board}` {period} are not there")).into());
        }
        let action = PaymentAction::Pay(payment.done, payouts(rows));
        tally.ledger.ask_blocking(PaymentRequest::of_server(key, action))?;
    }
}

/// The stored prizes of a period: at most `limit` with their numbers, best rank first, from that number on; none before it is
/// closed. Also whether the payment of all was tried.
pub fn prizes(
    tally: &Tally,
    view: &View,
    from: u32,
    limit: usize,
) -> Result<(Vec<(u32, Payout)>, bool), Failure> {
    let ledger = tally.store.ledger();
    let payment = match view.window() {
        Some(window) => ledger.payment(WindowKey { board: view.board.no, window })?,
        None => None,
    };
    match payment {
        Some(payment) => Ok((ledger.payouts(payment.no, from, limit)?, !payment.is_open())),
        None => Ok((Vec::new(), false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_ranking::{MemoryRanking, WindowRanking};
    use tally_rules::Definition;
    use tally_rules::contest::{Prize, PrizeTies};
    use tally_rules::ledger::{Amount, Currency};
    use tally_rules::period::{PeriodRule, TimeSpan};

    const DAY: i64 = 86_400_000_000;

    /// A board whose days pay something to those that are over after `from`.
    fn days(from: i64) -> Periods {
        let (currency, amount) = (Currency::parse("KRW").unwrap(), Amount::new(1).unwrap());
        let table = vec![Prize { from: 1, to: 1, currency, amount }];
        let prizes = PeriodPrizes { table, ties: PrizeTies::Split, from: Some(Micros(from)) };
        let (name, schedule, time_zone) = ("daily".into(), "0 0 * * *".into(), "UTC".into());
        let rule = PeriodRule { no: 0, name, schedule, time_zone, keep: 1, grace_s: 60, prizes };
        Periods { rules: vec![RuleState::new(rule).unwrap()], rules_given: 1 }
    }

    #[test]
    fn what_is_over_is_owed_until_it_is_written_down() {
        let (none, window, rule) = (HashSet::new(), Window(7), 0);
        let span = TimeSpan { start: Micros(0), end: Micros(DAY) };
        let due = Micros(DAY + 60_000_000);
        let ranking = || WindowRanking::Memory(MemoryRanking::new(&Definition::default()));
        let live = || Arc::new(LiveWindow::new(window, rule, span, ranking()));
        let row =
            |version, total| WindowRow { window, rule, span, closed: true, version, stale: false, total };
        let mut periods = days(5);
        assert!(!owes(&periods, due, &none));
        // Over, and not closed yet; sealed, and not packed yet; closed, with players or without.
        periods.rules[0].live.push(live());
        assert!(!owes(&periods, Micros(due.0 - 1), &none));
        assert!(owes(&periods, due, &none));
        periods.rules[0].closed.push(row(0, 0));
        assert!(owes(&periods, Micros(5), &none), "it stays closed, whatever the clock says");
        periods.rules[0].live.clear();
        periods.rules[0].closed = vec![row(1, 3)];
        assert!(owes(&periods, due, &none));
        assert!(!owes(&periods, due, &HashSet::from([window])));
        periods.rules[0].closed = vec![row(1, 0)];
        assert!(owes(&periods, due, &none), "all are banned");
        // It was over before there were prizes.
        let mut late = days(due.0);
        late.rules[0].live.push(live());
        late.rules[0].closed.push(row(1, 3));
        assert!(!owes(&late, due, &none));
    }
}
