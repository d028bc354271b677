//! Prizes of closed periods: who is owed what is written down once, and then paid a piece at a time.
//!
//! A closed period is owed its prizes where its rule had some before it was closed: those that stood there then, so they are
//! written down before a rule changes. Whether they were written down is asked of the store, so a crash between closing and that loses nothing, and two servers write it down once: the ledger's lane finds the other's.
//! A contest that was cancelled before a period was over owes none for it.
//! Pieces say where they begin, and the payment's row says where the next one does. Players who are no members get nothing, and
//! nobody moves up for them. A period is not forgotten before it is paid. Blocks.

use super::view::View;
use super::{LivePart, Periods, RuleState, keeper};
use crate::boards::Board;
use crate::contests::settle::{PAGE, page, ranked};
use crate::contests::work::{PIECE, payouts};
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use crate::wallets::command::{Done, Request};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tally_rules::contest::Payout;
use tally_rules::contest::prize::{Share, last_rank, shares};
use tally_rules::definition::Ranking;
use tally_rules::ledger::MemberId;
use tally_rules::ledger::member::Handle;
use tally_rules::period::{Payment, PeriodPrizes};
use tally_rules::{BoardId, Micros, PlayerId};
use tally_store::{BoardNo, Part, PartKey, PartRow, Store};

/// Open payments of one look.
const LOOK: usize = 100;

/// What is asked of the ledger's lane.
#[derive(Clone, Debug)]
pub(crate) struct PaymentOrder {
    /// Which period.
    pub(crate) key: PartKey,
    /// What.
    pub(crate) act: PaymentAct,
}

/// A period that is over.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    /// Of which board.
    pub(crate) board: BoardId,
    /// Its name.
    pub(crate) period: String,
    /// Since when it takes no more scores.
    pub(crate) since: Micros,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum PaymentAct {
    /// What is to be paid becomes known, if it is not yet.
    Begin(Over, Vec<Payout>),
    /// The next prizes are paid, the first of them being of that number.
    Pay(u32, Vec<Payout>),
    /// Prizes of a payment that were left unpaid by mistake are paid.
    Repay(Payment, Vec<(u32, Payout)>),
}

impl PaymentOrder {
    /// How many prizes it is about.
    pub(crate) fn rows(&self) -> usize {
        match &self.act {
            PaymentAct::Begin(_, rows) | PaymentAct::Pay(_, rows) => rows.len(),
            PaymentAct::Repay(_, rows) => rows.len(),
        }
    }
}

/// Closed periods of each board that are known to be paid, so that nobody asks the store for them again.
#[derive(Debug, Default)]
pub(crate) struct Paid {
    known: Mutex<HashMap<BoardNo, HashSet<Part>>>,
}

impl Paid {
    /// Those of a board; whoever took them sets them again.
    fn take(&self, board: BoardNo) -> HashSet<Part> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&board).unwrap_or_default()
    }

    fn set(&self, board: BoardNo, paid: HashSet<Part>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(board, paid);
    }
}

/// Whether a period has prizes, which have perhaps been paid. One in which all are banned has none to pay, which is written down
/// too: a restored player gets none afterwards.
pub(super) fn has_prizes(state: &RuleState, row: &PartRow) -> bool {
    row.version > 0 && state.rule.prizes.are_for(state.due(row.span))
}

/// Whether a period has prizes that were not all paid.
pub(super) fn is_unpaid(
    store: &dyn Store,
    board: &Board,
    state: &RuleState,
    row: &PartRow,
) -> Result<bool, Failure> {
    if !has_prizes(state, row) {
        return Ok(false);
    }
    let payment = store.ledger().payment(PartKey { board: board.no, part: row.part })?;
    Ok(payment.is_none_or(|payment| payment.is_open()))
}

/// Pays everything that is due now, unless the clock is in doubt: what was closed may be open by another time. What fails does not keep others from it.
pub fn pay_due(tally: &Tally) -> Result<(), Failure> {
    if tally.believed_now().is_none() {
        return Ok(());
    }
    let (mut done, mut after) = (Ok(()), None);
    loop {
        let open = tally.store.ledger().payments(true, after, LOOK)?;
        for key in &open {
            done = go_on(tally, *key).and(done);
        }
        after = open.last().copied();
        if open.len() < LOOK {
            break;
        }
    }
    for board in tally.boards.list(None, usize::MAX) {
        done = of_board(tally, &board).and(done);
    }
    done
}

/// A closed period of a board with its prizes.
type Closed = (PartRow, Over, PeriodPrizes);

/// Those of a board that have prizes: which are among the known ones, and the others.
fn closed(board: &Board, known: &HashSet<Part>) -> (HashSet<Part>, Vec<Closed>) {
    let (mut among, mut others) = (HashSet::new(), Vec::new());
    for state in &board.periods().rules {
        for row in state.closed.iter().filter(|row| has_prizes(state, row)) {
            if known.contains(&row.part) {
                among.insert(row.part);
            } else {
                let (period, since) = (state.name(row.span.start), state.due(row.span));
                let over = Over { board: board.id.clone(), period, since };
                others.push((*row, over, state.rule.prizes.clone()));
            }
        }
    }
    (among, others)
}

/// Closes what is over of a board and writes its prizes down, whatever becomes of its rules; which periods those are. Blocks.
pub(crate) fn write_down(tally: &Tally, board: &Arc<Board>) -> Result<HashSet<Part>, Failure> {
    if board.periods().rules.iter().all(|state| state.rule.prizes.table.is_empty()) {
        return Ok(HashSet::new());
    }
    keeper::close_due_of(tally, board)?;
    keeper::refresh_due_of(tally, board)?;
    let (_, closed) = closed(board, &HashSet::new());
    closed.iter().try_for_each(|one| begin(tally, board, one))?;
    Ok(closed.into_iter().map(|(row, ..)| row.part).collect())
}

/// Whether a period is over that has prizes and is none of those that are written down.
pub(crate) fn owes(periods: &Periods, now: Micros, written: &HashSet<Part>) -> bool {
    periods.rules.iter().any(|state| {
        let promised = |span| state.rule.prizes.are_for(state.due(span));
        // One that is sealed is in memory until it is packed.
        let late = |live: &Arc<LivePart>| !state.takes(live.span, now) && promised(live.span);
        let owed = |row: &PartRow| has_prizes(state, row) && !written.contains(&row.part);
        state.live.iter().any(late) || state.closed.iter().any(owed)
    })
}

fn of_board(tally: &Tally, board: &Arc<Board>) -> Result<(), Failure> {
    // Those that are paid are neither named nor copied at every look.
    let (mut paid, owed) = closed(board, &tally.contests.paid.take(board.no));
    let mut done = Ok(());
    for one in &owed {
        let key = PartKey { board: board.no, part: one.0.part };
        match begin(tally, board, one).and_then(|()| go_on(tally, key)) {
            Ok(()) => drop(paid.insert(key.part)),
            Err(failure) => done = Err(failure),
        }
    }
    if !paid.is_empty() {
        tally.contests.paid.set(board.no, paid);
    }
    done
}

/// Writes down what is to be paid, where that was not done yet.
fn begin(tally: &Tally, board: &Arc<Board>, (row, over, prizes): &Closed) -> Result<(), Failure> {
    let key = PartKey { board: board.no, part: row.part };
    if tally.store.ledger().payment(key)?.is_some() {
        return Ok(());
    }
    if row.stale {
        return Err(Fault::RanksAway(
            "a closed period has changed, and its prizes wait for its order".into(),
        )
        .into());
    }
    let view = View::of_closed(board, &over.period, *row);
    let alone = board.definition.ranking == Ranking::Ordinal;
    let ranked = ranked(alone, last_rank(&prizes.table) as usize, |from| {
        view.read(&*tally.store, |order| page(order, from))
    })?;
    let mut payouts = Vec::new();
    for page in shares(&prizes.table, prizes.ties, &ranked).chunks(PAGE) {
        let members = members_of(tally, page)?;
        for Share { who, rank, currency, amount } in page {
            let Some(member) = members.get(who).copied() else { continue };
            let (player, rank, currency, amount) = (who.clone(), *rank, *currency, *amount);
            payouts.push(Payout { player, member, division: None, rank, currency, amount, paid: None });
        }
    }
    ask(tally, PaymentOrder { key, act: PaymentAct::Begin(over.clone(), payouts) })
}

/// Which of the players of some prizes are members, in one question.
fn members_of(tally: &Tally, shares: &[Share<PlayerId>]) -> Result<BTreeMap<PlayerId, MemberId>, Failure> {
    let players: BTreeSet<&PlayerId> = shares.iter().map(|share| &share.who).collect();
    let handles: Vec<Handle> = players.iter().map(|player| Handle::Player((*player).clone())).collect();
    let found = tally.store.ledger().members_of(&handles)?;
    let member = |(player, member): (&PlayerId, Option<MemberId>)| Some((player.clone(), member?));
    Ok(players.into_iter().zip(found).filter_map(member).collect())
}

/// Pays until nothing is left.
fn go_on(tally: &Tally, key: PartKey) -> Result<(), Failure> {
    loop {
        let ledger = tally.store.ledger();
        let Some(payment) = ledger.payment(key)?.filter(|payment| payment.is_open()) else { return Ok(()) };
        let rows = ledger.payouts(payment.no, payment.done, PIECE)?;
        if rows.is_empty() {
            let (board, period) = (payment.board.as_str(), &payment.period);
            return Err(Fault::Broken(format!("prizes of `{board}` {period} are not there")).into());
        }
        ask(tally, PaymentOrder { key, act: PaymentAct::Pay(payment.done, payouts(rows)) })?;
    }
}

pub(crate) fn ask(tally: &Tally, order: PaymentOrder) -> Result<(), Failure> {
    match tally.ledger.ask_blocking(Request::Payment(Box::new(order)))? {
        Done::Payment => Ok(()),
        done => Err(Fault::Broken(format!("a payment is answered as one, not as {done:?}")).into()),
    }
}

/// What was written down for a period: at most `limit` prizes with their numbers, best rank first, from that number on, none before it is closed; and
/// whether all of them had their turn.
pub fn prizes(
    tally: &Tally,
    view: &View,
    from: u32,
    limit: usize,
) -> Result<(Vec<(u32, Payout)>, bool), Failure> {
    let ledger = tally.store.ledger();
    let payment = match view.part() {
        Some(part) => ledger.payment(PartKey { board: view.board.no, part })?,
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
    use tally_rules::period::{PeriodRule, Span};

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
        let (none, part, rule) = (HashSet::new(), Part(7), 0);
        let span = Span { start: Micros(0), end: Micros(DAY) };
        let due = Micros(DAY + 60_000_000);
        let order = || WindowRanking::Memory(MemoryRanking::new(&Definition::default()));
        let live = || Arc::new(LivePart::new(part, rule, span, order()));
        let row = |version, total| PartRow { part, rule, span, closed: true, version, stale: false, total };
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
        assert!(!owes(&periods, due, &HashSet::from([part])));
        periods.rules[0].closed = vec![row(1, 0)];
        assert!(owes(&periods, due, &none), "all are banned");
        // It was over before there were prizes.
        let mut late = days(due.0);
        late.rules[0].live.push(live());
        late.rules[0].closed.push(row(1, 3));
        assert!(!owes(&late, due, &none));
    }
}
