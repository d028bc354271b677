//! Stories: one request a line, and its result.
//!
//! `transfer A B 30 -> 70` moves 30 from A to B and leaves A 70; a code is a rejection. An amount may be followed by `USD` or
//! another currency. `wait 60` is a minute. A line that begins with `chain` is one request of a chain, which ends with `end`.

use crate::world::{World, code, member};
use std::collections::BTreeMap;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::hold::{Ending, HoldEnd};
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::money::{AMOUNT_MAX, BALANCE_MAX};
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, Hold, HoldId, MemberId, TransferId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::{Micros, Rejection};

/// Runs a story on a world of its own.
pub(crate) fn tell(limits: CurrencyLimits, story: &str) -> World {
    let mut world = World::new(limits);
    continue_with(&mut world, story);
    world
}

pub(crate) fn continue_with(world: &mut World, story: &str) {
    let mut holds = BTreeMap::new();
    let lines: Vec<_> = story.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        if let Some(seconds) = line.strip_prefix("wait ") {
            world.now = world.now.plus(seconds.parse::<i64>().unwrap() * 1_000_000);
            continue;
        }
        let mut chain = vec![line];
        if line.starts_with("chain ") {
            while let Some(next) = lines.next_if(|next| next.starts_with("chain ") || *next == "end") {
                chain.push(next);
            }
            chain.pop();
        }
        let now = world.now;
        world.transact(|book, id| {
            let mark = book.savepoint();
            let mut failed = false;
            for line in &chain {
                let (words, wanted) = line.split_once("->").unwrap_or_else(|| panic!("{line}"));
                let words: Vec<&str> = words.trim_start_matches("chain ").split_whitespace().collect();
                let got = one(book, id, &mut holds, &words, now);
                failed |= got.is_err();
                let got = got.unwrap_or_else(|rejection| rejection.code().to_owned());
                assert_eq!(got, wanted.trim(), "{line}");
            }
            if chain.len() > 1 && failed {
                book.roll_back(mark);
            }
        });
    }
}

pub(crate) fn named(name: &str) -> MemberId {
    member(name.as_bytes()[0] - b'A')
}

fn one(
    book: &mut LedgerWorkingSet<'_>,
    id: &mut dyn FnMut() -> Uuid,
    holds: &mut BTreeMap<String, HoldId>,
    words: &[&str],
    now: Micros,
) -> Result<String, Rejection> {
    let currency = |at: usize| {
        let is_code = |word: &&&str| word.starts_with(char::is_alphabetic);
        words.get(at).filter(is_code).map_or(code("KRW"), |word| code(word))
    };
    let amount = |at: usize| Amount::new(words[at].parse().unwrap());
    let post = |book: &mut LedgerWorkingSet<'_>, id: Uuid, what, at: usize| {
        let order = TransferRequest {
            what,
            currency: currency(at + 1),
            amount: amount(at)?,
            reference: Some("r".into()),
        };
        let posted = book.post(TransferId(id), &order, now)?;
        assert_eq!(book.wallet(&posted.key.wallet).unwrap().balance, posted.entry.after);
        assert_eq!(posted.entry.reference, order.reference);
        Ok(posted.entry.after.to_string())
    };
    let hold_of =
        |holds: &BTreeMap<String, HoldId>| holds.get(words[1]).copied().unwrap_or(HoldId(Uuid([0xff; 16])));
    match words[0] {
        "member" => {
            book.open(named(words[1]));
            Ok("ok".into())
        }
        "close" => book.close(named(words[1]), words.len() > 2).map(|()| "ok".into()),
        "deposit" => post(book, id(), TransferKind::Deposit { to: named(words[1]) }, 2),
        "promote" => {
            let expires_at = now.plus(words[3].parse::<i64>().unwrap() * 1_000_000);
            post(book, id(), TransferKind::Promotion { to: named(words[1]), expires_at }, 2)
        }
        "cash" => post(book, id(), TransferKind::PlainWithdrawal { from: named(words[1]) }, 2),
        "lapse" => {
            let key = WalletKey { member: named(words[1]), currency: code("KRW") };
            let posted = book.expire_credit(TransferId(id()), key);
            Ok(posted.map_or("none".into(), |posted| posted.entry.amount.to_string()))
        }
        "credit" => {
            let wallet = book.wallet(&WalletKey { member: named(words[1]), currency: code("KRW") });
            let credits = wallet.unwrap().credits.as_deref().cloned().unwrap_or_default();
            Ok(format!("{} {} {}", credits.unexpired(), credits.covered, credits.lapsed))
        }
        "withdraw" => post(book, id(), TransferKind::Withdrawal { from: named(words[1]) }, 2),
        "fee" => post(book, id(), TransferKind::Fee { from: named(words[1]) }, 2),
        "prize" => post(book, id(), TransferKind::Prize { to: named(words[1]) }, 2),
        "refund" => post(book, id(), TransferKind::Refund { to: named(words[1]) }, 2),
        "transfer" => {
            post(book, id(), TransferKind::Transfer { from: named(words[1]), to: named(words[2]) }, 3)
        }
        "hold" => {
            let new = HoldId(id());
            let wallet = WalletKey { member: named(words[1]), currency: currency(4) };
            let expires_at =
                words.get(5).map(|seconds| now.plus(seconds.parse::<i64>().unwrap() * 1_000_000));
            book.place(new, wallet, amount(2)?, expires_at, now)?;
            holds.insert(words[3].to_owned(), new);
            Ok("ok".into())
        }
        "capture" => {
            let amount = words.get(2).filter(|word| **word != "all").map(|_| amount(2)).transpose()?;
            let ending = Ending::Capture { amount, to: words.get(3).map(|name| named(name)) };
            Ok(show(&book.end(hold_of(holds), ending, TransferId(id()), DecisionTime::trusted(now))?))
        }
        "void" => {
            Ok(show(&book.end(hold_of(holds), Ending::Void, TransferId(id()), DecisionTime::trusted(now))?))
        }
        "expire" => Ok(book.expire(hold_of(holds), now).map_or("not due".into(), |hold| show(&hold))),
        "free" => {
            let wallet = book.wallet(&WalletKey { member: named(words[1]), currency: currency(2) });
            Ok(wallet.map_or("none".into(), |wallet| wallet.available().to_string()))
        }
        other => panic!("{other}?"),
    }
}

fn show(hold: &Hold) -> String {
    match hold.end {
        None => "open".into(),
        Some((HoldEnd::Captured { amount, .. }, _)) => format!("captured {amount}"),
        Some((HoldEnd::Voided, _)) => "voided".into(),
        Some((HoldEnd::Expired, _)) => "expired".into(),
    }
}

#[test]
fn money_comes_moves_and_goes() {
    let world = tell(
        CurrencyLimits::default(),
        "member A -> ok
         member B -> ok
         deposit A 100 -> 100
         transfer A B 30 -> 70
         transfer B A 30 -> 0
         withdraw A 40 -> 60
         fee A 10 -> 50
         refund A 10 -> 60
         prize B 5 -> 5
         free C -> none",
    );
    let totals = world.totals.rows().map(|(key, total)| (key.account.as_str(), total.debits, total.credits));
    let wanted = [("BANK_ASSET", 100, 40), ("BANK_PAYABLE", 110, 175), ("FEES", 10, 10), ("PRIZES", 5, 0)];
    assert_eq!(totals.collect::<Vec<_>>(), wanted);
}

/// Everything is wrong at first; each line corrects the rejection of the line before.
#[test]
fn the_first_reason_is_the_answer() {
    let limits = CurrencyLimits { per_transfer: Some(500), per_day: Some(600), ..CurrencyLimits::default() };
    let mut world = tell(
        limits,
        "transfer A A 0 EUR -> invalid_amount
         transfer A A 1000000000000001 EUR -> limit_exceeded
         transfer A A 1000 EUR -> currency_mismatch
         transfer A A 1000 USD -> member_not_found
         member A -> ok
         transfer A A 1000 USD -> same_wallet
         transfer A B 1000 USD -> recipient_not_found
         member B -> ok
         close B -> ok
         transfer A B 1000 USD -> wallet_not_found
         deposit A 100 USD -> 100
         transfer A B 1000 USD -> member_closed",
    );
    let order: Vec<Rejection> = vec![
        Rejection::InvalidAmount,
        Rejection::CurrencyMismatch { currency: code("EUR"), known: Vec::new() },
        Rejection::NotTransferable(code("USD")),
        Rejection::NotWithdrawable(code("USD")),
        Rejection::MemberNotFound,
        Rejection::SameWallet(named("A")),
        Rejection::RecipientNotFound,
        Rejection::WalletNotFound(code("USD")),
        Rejection::MemberClosed(named("B")),
        Rejection::LimitExceeded(tally_rules::rejection::Limit::PerTransfer { max: 1, amount: 2 }),
        Rejection::LimitExceeded(tally_rules::rejection::Limit::PerDay { max: 1, left: 1, amount: 2 }),
        Rejection::LimitExceeded(tally_rules::rejection::Limit::Balance),
        Rejection::InsufficientFunds { needed: 1, available: 0 },
    ];
    assert!(order.is_sorted(), "the order of the enum is that of the story");
    continue_with(
        &mut world,
        "member C -> ok
         transfer A C 501 USD -> limit_exceeded
         transfer A C 101 USD -> insufficient_funds
         transfer A C 100 USD -> 0",
    );
    let rich = WalletKey { member: named("C"), currency: code("KRW") };
    let mut book = LedgerWorkingSet::new(&world.currencies, &world.limits);
    let home = |units| Some(Wallet { balance: units, ..Wallet::default() });
    book.load_wallet(rich, home(BALANCE_MAX));
    book.load_wallet(WalletKey { member: named("A"), ..rich }, home(0));
    let amount = Amount::new(1).unwrap();
    let what = TransferKind::Transfer { from: named("A"), to: named("C") };
    let order = TransferRequest { what, currency: code("KRW"), amount, reference: None };
    let refused = book.post(TransferId(Uuid([0; 16])), &order, Micros(0)).unwrap_err();
    assert_eq!(refused, Rejection::LimitExceeded(tally_rules::rejection::Limit::Balance));
    assert!(book.into_writes().wallets.is_empty());
}

#[test]
fn what_is_transferred_on_a_day_is_limited() {
    let mut world = tell(
        CurrencyLimits { per_transfer: None, per_day: Some(100), ..CurrencyLimits::default() },
        "member A -> ok
         member B -> ok
         deposit A 500 -> 500
         transfer A B 100 -> 400
         transfer A B 1 -> limit_exceeded
         transfer B A 50 -> 50
         withdraw A 200 -> 250",
    );
    world.now = world.now.plus(86_400_000_000);
    continue_with(&mut world, "transfer A B 100 -> 150");
}

/// A clock was a day ahead: what was spent then counts until the day after it. No day begins twice.
#[test]
fn a_day_in_the_future_goes_on_until_the_clock_is_past_it() {
    let day = 86_400_000_000;
    let mut world =
        World::new(CurrencyLimits { per_transfer: None, per_day: Some(100), ..CurrencyLimits::default() });
    world.now = world.now.plus(day);
    continue_with(
        &mut world,
        "member A -> ok
         member B -> ok
         deposit A 500 -> 500
         transfer A B 60 -> 440",
    );
    // The right time is a day before.
    world.now = world.now.plus(-day);
    continue_with(
        &mut world,
        "transfer A B 41 -> limit_exceeded
         transfer A B 30 -> 410",
    );
    world.now = world.now.plus(day);
    continue_with(
        &mut world,
        "transfer A B 11 -> limit_exceeded
         transfer A B 10 -> 400",
    );
    world.now = world.now.plus(day);
    continue_with(&mut world, "transfer A B 100 -> 300");
}

#[test]
fn each_currency_has_limits_of_its_own() {
    let mut world = World::new(CurrencyLimits::default());
    world.limits.insert(
        code("KRW"),
        CurrencyLimits { per_transfer: Some(60), per_day: Some(100), ..CurrencyLimits::default() },
    );
    continue_with(
        &mut world,
        "member A -> ok
         member B -> ok
         deposit A 500 -> 500
         deposit A 500 USD -> 500
         transfer A B 60 -> 440
         transfer A B 61 -> limit_exceeded
         transfer A B 61 USD -> 439
         transfer A B 61 USD -> 378
         transfer A B 41 -> limit_exceeded
         transfer A B 40 -> 400",
    );
}

#[test]
fn members_do_not_transfer_a_currency_that_forbids_it() {
    let mut world = World::new(CurrencyLimits::default());
    let rules = CurrencyLimits { no_transfers: true, ..CurrencyLimits::default() };
    world.limits.insert(code("USD"), rules);
    continue_with(
        &mut world,
        "member A -> ok
         member B -> ok
         deposit A 100 -> 100
         deposit A 100 USD -> 100
         transfer A A 1 USD -> not_transferable
         transfer A B 1 -> 99
         hold A 50 h USD -> ok
         capture h 1 A -> not_transferable
         capture h 1 B -> not_transferable
         capture h 10 -> captured 10
         fee A 10 USD -> 80
         withdraw A 20 USD -> 60
         prize B 5 USD -> 5
         refund B 5 USD -> 10",
    );
    let now = world.now;
    let may = world.transact(|book, _| {
        ["USD", "KRW"].map(|text| book.can_transfer(named("A"), (code(text), Amount::new(1).unwrap()), now))
    });
    assert_eq!(may, [Err(Rejection::NotTransferable(code("USD"))), Ok(())]);
    world.limits.insert(code("USD"), CurrencyLimits { no_withdrawals: true, ..CurrencyLimits::default() });
    continue_with(
        &mut world,
        "withdraw A 1 USD -> not_withdrawable
         withdraw A 1 -> 98
         transfer A B 20 USD -> 40",
    );
}

#[test]
fn a_balance_has_the_limit_of_its_currency() {
    let mut world = World::new(CurrencyLimits::default());
    world.limits.insert(code("USD"), CurrencyLimits { balance: Some(100), ..CurrencyLimits::default() });
    continue_with(
        &mut world,
        "member A -> ok
         member B -> ok
         deposit A 1000 -> 1000
         deposit A 101 USD -> limit_exceeded
         deposit A 100 USD -> 100
         deposit A 1 USD -> limit_exceeded
         prize A 1 USD -> limit_exceeded
         deposit B 50 USD -> 50
         transfer B A 1 USD -> limit_exceeded
         transfer A B 51 USD -> limit_exceeded
         hold B 50 h USD -> ok
         capture h 1 A -> limit_exceeded
         fee A 10 USD -> 90
         capture h 10 A -> captured 10
         refund A 10 USD -> 110
         withdraw A 1 USD -> 109
         prize A 1 USD -> limit_exceeded
         deposit A 1000 -> 2000",
    );
}

#[test]
fn another_wallet_appears_with_its_first_credit() {
    tell(
        CurrencyLimits::default(),
        "member A -> ok
         member B -> ok
         free A -> 0
         free A USD -> none
         withdraw A 1 USD -> wallet_not_found
         hold A 1 h USD -> wallet_not_found
         deposit A 7 USD -> 7
         transfer A B 7 USD -> 0
         free B USD -> 7",
    );
}

#[test]
fn a_hold_ends_once() {
    let mut world = tell(
        CurrencyLimits::default(),
        "member A -> ok
         member B -> ok
         deposit A 100 -> 100
         hold A 101 h -> insufficient_funds
         hold A 60 h -> ok
         hold A 30 v -> ok
         free A -> 10
         transfer A B 11 -> insufficient_funds
         capture h 61 -> exceeds_hold
         capture h all A -> same_wallet
         capture h all D -> recipient_not_found
         capture h 20 B -> captured 20
         capture h 20 B -> captured 20
         capture h 20 -> hold_resolved
         capture h all B -> hold_resolved
         void h -> hold_resolved
         free A -> 50
         free B -> 20
         void v -> voided
         void v -> voided
         capture v all -> hold_resolved
         expire v -> not due
         free A -> 80
         void nothing -> hold_not_found
         hold A 80 p KRW -1 -> hold_expiry_in_past",
    );
    continue_with(
        &mut world,
        "hold A 80 e KRW 10 -> ok
         expire e -> not due",
    );
    assert_eq!(world.holds.len(), 3);
}

#[test]
fn an_expired_hold_is_released() {
    let mut world =
        tell(CurrencyLimits::default(), "member A -> ok\ndeposit A 100 -> 100\nhold A 80 e KRW 10 -> ok");
    let id = *world.holds.keys().next().unwrap();
    world.now = world.now.plus(10_000_000);
    let now = world.now;
    let time = DecisionTime::trusted(now);
    let refused = world.transact(|book, new| book.end(id, Ending::Void, TransferId(new()), time));
    assert_eq!(refused, Err(Rejection::HoldExpired));
    for wanted in [Some("expired".to_owned()), None] {
        let got = world.transact(|book, _| book.expire(id, now)).map(|hold| show(&hold));
        assert_eq!(got, wanted);
    }
    continue_with(&mut world, "free A -> 100");
}

#[test]
fn a_closed_member_keeps_what_it_has_and_gives_nothing() {
    tell(
        CurrencyLimits::default(),
        "member A -> ok
         member B -> ok
         deposit A 100 -> 100
         hold A 10 h -> ok
         close A -> wallet_not_empty
         close A force -> ok
         close A -> ok
         transfer A B 1 -> member_closed
         transfer B A 1 -> member_closed
         deposit A 1 -> member_closed
         hold A 1 x -> member_closed
         capture h all B -> captured 10
         withdraw A 90 -> 0
         close C -> member_not_found",
    );
}

#[test]
fn a_chain_is_done_whole_or_not_at_all() {
    let world = tell(
        CurrencyLimits::default(),
        "member A -> ok
         member B -> ok
         member C -> ok
         deposit A 100 -> 100
         chain transfer A B 60 -> 40
         chain transfer B C 60 USD -> wallet_not_found
         chain transfer B C 60 -> 0
         end
         free A -> 100
         free C -> 0
         chain transfer A B 60 -> 40
         chain transfer B C 50 -> 10
         chain deposit C 5 -> 55
         end
         free A -> 40
         free C -> 55",
    );
    assert_eq!(world.transfers.len(), 4);
}

#[test]
fn the_largest_amount_moves() {
    let story = format!(
        "member A -> ok
         deposit A {AMOUNT_MAX} -> {AMOUNT_MAX}
         deposit A {AMOUNT_MAX} -> {}
         withdraw A {AMOUNT_MAX} -> {AMOUNT_MAX}",
        2 * AMOUNT_MAX
    );
    tell(CurrencyLimits::default(), &story);
}
