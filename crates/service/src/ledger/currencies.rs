//! Whether the settings have every currency that the store uses: a start rejects settings that lack one.
//!
//! Money in a currency that is not configured could neither be moved nor paid out. So the check names each use, and how to
//! end it. Contests and series with corrupt rows are left out, and do not prevent the start. Not here: that the home currency
//! never changes (`lane`).

use crate::boards::Boards;
use crate::contests::bounded_steps::STEP_ROWS;
use crate::failure::{Failure, Fault};
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::Micros;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{Contest, ContestId, ContestRecord, ContestState, Payout};
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::{Currencies, Currency, Uuid};
use tally_rules::period::PeriodRule;
use tally_store::{Store, StoreError};

/// Rows of one read.
const PAGE: usize = 500;

/// Uses of a currency that a message names.
const NAMED_MAX: usize = 5;

/// Uses of currencies that are not configured.
struct Missing<'a> {
    currencies: &'a Currencies,
    uses: BTreeMap<Currency, BTreeSet<String>>,
}

impl Missing<'_> {
    fn note(&mut self, used: impl IntoIterator<Item = Currency>, whose: impl Fn() -> String) {
        for currency in used {
            if self.currencies.digits(currency).is_none() {
                self.uses.entry(currency).or_default().insert(whose());
            }
        }
    }
}

/// Rejects settings that lack a currency in use.
pub(crate) fn check(store: &dyn Store, boards: &Boards, currencies: &Currencies) -> Result<(), Failure> {
    let mut missing = Missing { currencies, uses: BTreeMap::new() };
    let has_money = |(key, total): &(AccountKey, Total)| {
        key.account == Account::BankPayable && total.debits != total.credits
    };
    let held = store.ledger().totals()?.into_iter().filter(has_money).map(|(key, _)| key.currency);
    missing.note(held, || "members have money in it (pay it out)".into());
    of_boards(store, boards, &mut missing).or_else(pass_damage)?;
    of_contests(store, &mut missing).or_else(pass_damage)?;
    of_series(store, &mut missing).or_else(pass_damage)?;
    of_payments(store, &mut missing).or_else(pass_damage)?;
    let Some((currency, uses)) = missing.uses.into_iter().next() else { return Ok(()) };
    let named: Vec<String> = uses.iter().take(NAMED_MAX).cloned().collect();
    let more =
        if uses.len() > NAMED_MAX { format!("; and {} more", uses.len() - NAMED_MAX) } else { String::new() };
    Err(Fault::Broken(format!(
        "`currencies` lacks {currency}, which is in use: {}{more}. Keep it among `currencies`, such as {currency} = 2, until \
         nothing uses it",
        named.join("; ")
    ))
    .into())
}

/// The currencies of an unreadable row are unknown.
fn pass_damage(error: StoreError) -> Result<(), StoreError> {
    match error {
        StoreError::CorruptRow(row) => {
            tracing::warn!(%row, "the currencies of this row are not checked");
            Ok(())
        }
        error => Err(error),
    }
}

fn of_rules(rules: &[PeriodRule]) -> impl Iterator<Item = Currency> {
    rules.iter().flat_map(|rule| &rule.prizes.table).map(|prize| prize.currency)
}

fn of_boards(store: &dyn Store, boards: &Boards, missing: &mut Missing<'_>) -> Result<(), StoreError> {
    for board in boards.list(None, usize::MAX) {
        let rules = board.present_definition().periods;
        let contest = of_rules(&rules).next().and_then(|_| ContestId::of_board(&board.id));
        let contest = contest.map(|(id, _)| store.ledger().contest(&id)).transpose()?.flatten();
        // The periods of a cancelled contest pay nothing.
        if contest.is_none_or(|record| record.state != ContestState::Cancelled) {
            missing.note(of_rules(&rules), || {
                format!("periods of the leaderboard `{}` have prizes in it (change them)", board.id.as_str())
            });
        }
    }
    Ok(())
}

fn of_contest(contest: &Contest) -> impl Iterator<Item = Currency> {
    let fee = contest.entry_fee.map(|fee| fee.currency);
    let prizes = contest.prizes.iter().map(|prize| prize.currency);
    fee.into_iter().chain(prizes).chain(of_rules(&contest.leaderboard.periods))
}

fn of_contests(store: &dyn Store, missing: &mut Missing<'_>) -> Result<(), StoreError> {
    let whose = |id: &str, record: &ContestRecord| {
        format!(
            "the contest `{id}`, which is {}, has a fee or prizes in it (settle or cancel it)",
            record.state
        )
    };
    for state in [ContestState::Draft, ContestState::Open, ContestState::Running, ContestState::Finished] {
        let mut after = None;
        loop {
            let page = store.ledger().contests(Some(state), after.as_ref(), PAGE)?;
            for (id, record) in &page {
                missing.note(of_contest(&record.contest), || whose(id.as_str(), record));
            }
            let is_last = page.len() < PAGE;
            after = page.into_iter().next_back().map(|(id, _)| id);
            if is_last {
                break;
            }
        }
    }
    // Contests that have ended and still pay.
    let mut after = None::<(Micros, ContestId)>;
    loop {
        let behind = after.as_ref().map(|(at, id)| (*at, id.as_str()));
        let due = store.ledger().due_contests(Micros(i64::MAX), behind, PAGE)?;
        for (_, id) in &due {
            let record = store.ledger().contest(id)?;
            if let Some(record) = record.filter(|record| record.work != ContestTask::None) {
                missing.note(of_contest(&record.contest), || whose(id.as_str(), &record));
            }
        }
        let is_last = due.len() < PAGE;
        after = due.into_iter().next_back();
        if is_last {
            return Ok(());
        }
    }
}

fn of_series(store: &dyn Store, missing: &mut Missing<'_>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        // A series that cannot be read makes no contests.
        let page = store.ledger().list_series(after.as_ref(), PAGE)?.rows;
        for (id, record) in &page {
            missing.note(of_contest(&record.series.template), || {
                format!("the series `{}` makes contests with it (change its template)", id.as_str())
            });
        }
        if page.len() < PAGE {
            return Ok(());
        }
        after = page.into_iter().next_back().map(|(id, _)| id);
    }
}

fn of_payments(store: &dyn Store, missing: &mut Missing<'_>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = store.ledger().payments(true, after, PAGE)?;
        for key in &page {
            let Some(payment) = store.ledger().payment(*key)? else { continue };
            each_payout(store, payment.no, payment.done, |_, row| {
                missing.note([row.currency], || {
                    let (board, period) = (payment.board.as_str(), &payment.period);
                    format!("prizes of the period {period} of `{board}` in it are not paid")
                });
            })?;
        }
        after = page.last().copied();
        if page.len() < PAGE {
            return Ok(());
        }
    }
}

/// Each prize or refunded fee of an owner, from that number on.
pub(crate) fn each_payout(
    store: &dyn Store,
    no: Uuid,
    mut from: u32,
    mut with: impl FnMut(u32, Payout),
) -> Result<(), StoreError> {
    loop {
        let page = store.ledger().payouts(no, from, STEP_ROWS)?;
        let (count, last) = (page.len(), page.last().map(|(place, _)| *place));
        page.into_iter().for_each(|(place, payout)| with(place, payout));
        match last.and_then(|last| last.checked_add(1)) {
            Some(next) if count == STEP_ROWS => from = next,
            _ => return Ok(()),
        }
    }
}
