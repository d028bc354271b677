//! The tables `wallets` and `totals`: what members have, and what accounts came to.
//!
//! A total is in several slots, and a connection adds to its own: else every transaction would wait for the commit of the
//! one before.

use super::connect::Flavour;
use super::fault::damaged;
use super::found;
use super::row::{Answers, Fields};
use super::text::{Row, Script};
use crate::StoreError;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{Currency, MemberId, Uuid, Wallet, WalletKey};

/// In how many rows a total is.
const SLOTS: u8 = 16;

const COLUMNS: &str = "member, currency, balance, held, sequence, closed, spent_day, spent";

/// Asks for wallets and locks them; how many statements that takes. The keys ascend.
pub(super) fn select(script: &mut Script, keys: &[WalletKey]) -> usize {
    script.keys(
        "SELECT member, currency, balance, held, sequence, closed, spent_day, spent FROM wallets \
         FORCE INDEX (PRIMARY) WHERE (member, currency) IN (",
        keys,
        ") FOR UPDATE",
        put_key,
    )
}

/// The answer.
pub(super) fn read(
    answers: &mut Answers,
    statements: usize,
    keys: &[WalletKey],
) -> Result<Vec<Option<Wallet>>, StoreError> {
    found(answers, statements, "wallets", keys, decode)
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(WalletKey, Wallet), StoreError> {
    let key = key(row)?;
    let wallet = Wallet {
        balance: row.signed()?,
        held: row.signed()?,
        sequence: row.number()?,
        closed: row.truth()?,
        spent: Spent { day: day(row.signed()?)?, units: row.signed()? },
    };
    Ok((key, wallet))
}

fn day(number: i64) -> Result<i32, StoreError> {
    i32::try_from(number).map_err(|_| damaged("wallets", "a day that there is not"))
}

/// The next two columns as the key of a wallet.
pub(super) fn key(row: &mut Fields<'_>) -> Result<WalletKey, StoreError> {
    Ok(WalletKey { member: MemberId(Uuid(row.fixed()?)), currency: row.choice(Currency::parse)? })
}

pub(super) fn put_key(row: &mut Row<'_>, key: &WalletKey) {
    row.bytes(&key.member.0.0).bytes(key.currency.as_str().as_bytes());
}

/// Asks for every wallet of a member.
pub(super) fn of_member(member: MemberId) -> Script {
    let mut script = Script::default();
    script.sql("SELECT ").sql(COLUMNS).sql(" FROM wallets WHERE member = ").bytes(&member.0.0);
    script.sql(" ORDER BY currency").end();
    script
}

const HEAD: &str =
    "INSERT INTO wallets (member, currency, balance, held, sequence, closed, spent_day, spent) VALUES ";

const COLUMNS_WRITTEN: [&str; 6] = ["balance", "held", "sequence", "closed", "spent_day", "spent"];

/// With what the cache said of the row: those columns are compared and never stored.
const CACHED_HEAD: &str = "INSERT INTO wallets (member, currency, balance, held, sequence, closed, spent_day, spent, \
     cached_balance, cached_held, cached_sequence) VALUES ";

/// Writes wallets. One that was not there when it was read must not be there now. One that was read from the `cached` rows has
/// no lock, so its row must still be as it was there: else the balance is null, which is refused.
pub(super) fn write(
    script: &mut Script,
    rows: &[(WalletKey, Wallet)],
    absent: impl Fn(&WalletKey) -> bool,
    cached: &[(WalletKey, Wallet)],
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (key, wallet): &(WalletKey, Wallet)| {
        put_key(row, key);
        row.signed(wallet.balance).signed(wallet.held).number(wallet.sequence);
        row.number(u8::from(wallet.closed)).signed(wallet.spent.day.into()).signed(wallet.spent.units);
    };
    let before = |key: &WalletKey| cached.binary_search_by(|(other, _)| other.cmp(key)).ok();
    script.rows(HEAD, rows.iter().filter(|(key, _)| absent(key)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &COLUMNS_WRITTEN);
    let read = rows.iter().filter(|(key, _)| !absent(key) && before(key).is_none());
    script.upserts(HEAD, read, tail, put);
    let guarded = |script: &mut Script| {
        flavour.replace(script, &[]);
        for (at, column) in ["balance", "held", "sequence"].into_iter().enumerate() {
            script.sql(if at == 0 {
                " ON DUPLICATE KEY UPDATE balance = IF(wallets."
            } else {
                " AND wallets."
            });
            script.sql(column).sql(" = ");
            flavour.put_new(script, ["cached_balance", "cached_held", "cached_sequence"][at]);
        }
        script.sql(", ");
        flavour.put_new(script, "balance");
        script.sql(", NULL)");
        for column in &COLUMNS_WRITTEN[1..] {
            script.sql(", ").sql(column).sql(" = ");
            flavour.put_new(script, column);
        }
    };
    let known = rows.iter().filter_map(|row| Some((row, &cached[before(&row.0)?].1)));
    script.upserts(CACHED_HEAD, known, guarded, |row, (new, old)| {
        put(row, new);
        row.signed(old.balance).signed(old.held).number(old.sequence);
    });
}

/// Fails where one of these wallets is there by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a WalletKey> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, key| {
        put_key(row, key);
        row.sql("0, 0, 0, 0, 0, 0");
    });
    script.keys("DELETE FROM wallets WHERE (member, currency) IN (", absent, ")", put_key);
}

/// Adds to totals, in one of their slots.
pub(super) fn add(script: &mut Script, rows: &[(AccountKey, Total)], flavour: Flavour, slot: u8) {
    let tail = |script: &mut Script| {
        flavour.replace(script, &[]);
        script.sql(" ON DUPLICATE KEY UPDATE debits = totals.debits + ");
        flavour.put_new(script, "debits");
        script.sql(", credits = totals.credits + ");
        flavour.put_new(script, "credits");
    };
    let head = "INSERT INTO totals (account, currency, slot, debits, credits) VALUES ";
    script.upserts(head, rows, tail, |row, (key, total)| {
        row.number(key.account.number()).bytes(key.currency.as_str().as_bytes()).number(slot % SLOTS);
        row.large(total.debits).large(total.credits);
    });
}

/// Asks for every total.
pub(super) fn select_totals() -> Script {
    let mut script = Script::default();
    script.statement(
        "SELECT account, currency, SUM(debits), SUM(credits) FROM totals GROUP BY account, currency \
         ORDER BY account, currency",
    );
    script
}

/// The answer.
pub(super) fn read_totals(mut answers: Answers) -> Result<Vec<(AccountKey, Total)>, StoreError> {
    let mut all = Vec::new();
    answers.each(1, "totals", |row| {
        let account = Account::of_number(row.tiny()?).ok_or_else(|| damaged("totals", "no such account"))?;
        let currency = row.choice(Currency::parse)?;
        all.push((AccountKey { account, currency }, Total { debits: row.large()?, credits: row.large()? }));
        Ok(())
    })?;
    Ok(all)
}
