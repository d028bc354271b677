//! The tables `wallets` and `totals`: balances of members, and totals of accounts.
//!
//! A total is split into several slots, and a connection adds to its own slot. Otherwise every transaction would wait for
//! the commit of the one before.

use super::MySqlStore;
use super::connect::Flavour;
use super::fault::damaged;
use super::lists::all;
use super::row::Fields;
use super::table::{self, Table, pairs};
use super::text::{RowScript, Script};
use crate::StoreError;
use crate::codec::credits;
use tally_rules::Micros;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::credit::Credits;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{Currency, MemberId, Uuid, Wallet, WalletKey};

/// The number of rows of a total.
const SLOTS: u8 = 16;

pub(super) struct Wallets;

impl Table for Wallets {
    const NAME: &'static str = "wallets";
    const KEY: &'static str = "(member, currency)";
    const READ: &'static str = "member, currency, balance, held, sequence, closed, spent_day, spent, credits";
    const WRITTEN: &'static str =
        "member, currency, balance, held, sequence, closed, spent_day, spent, credits, credit_due";
    const REPLACED: &'static [&'static str] =
        &["balance", "held", "sequence", "closed", "spent_day", "spent", "credits", "credit_due"];
    const BLANK: &'static str = "0, 0, 0, 0, 0, 0, NULL, NULL";
    type Key = WalletKey;
    type Value = Wallet;

    fn put_key(row: &mut RowScript<'_>, key: &WalletKey) {
        row.bytes(&key.member.0.0).bytes(key.currency.as_str().as_bytes());
    }

    fn put(row: &mut RowScript<'_>, wallet: &Wallet) {
        row.signed(wallet.balance).signed(wallet.held).number(wallet.sequence);
        row.number(u8::from(wallet.closed)).signed(wallet.spent.day.into()).signed(wallet.spent.units);
        let credits = wallet.credits.as_deref();
        row.bytes_or_null(credits.map(credits::encode).as_deref());
        row.signed_or_null(credits.and_then(Credits::due).map(|at| at.0));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(WalletKey, Wallet), StoreError> {
        let key = key(row)?;
        let wallet = Wallet {
            balance: row.signed()?,
            held: row.signed()?,
            sequence: row.number()?,
            closed: row.boolean()?,
            spent: Spent { day: day("wallets", row.signed()?)?, units: row.signed()? },
            credits: match row.maybe_bytes()? {
                None => None,
                Some(bytes) => {
                    Some(credits::decode(bytes).ok_or_else(|| damaged("wallets", "credit that cannot be"))?)
                }
            },
        };
        Ok((key, wallet))
    }
}

/// Decodes a day since 1970.
pub(super) fn day(table: &'static str, number: i64) -> Result<i32, StoreError> {
    i32::try_from(number).map_err(|_| damaged(table, "a day that there is not"))
}

/// Reads the next two columns as the key of a wallet.
pub(super) fn key(row: &mut Fields<'_>) -> Result<WalletKey, StoreError> {
    Ok(WalletKey { member: MemberId(Uuid(row.fixed()?)), currency: row.choice(Currency::parse)? })
}

/// Queries every wallet of a member.
pub(super) fn of_member(member: MemberId) -> Script {
    let mut script = Script::default();
    script.sql("SELECT ").sql(Wallets::READ).sql(" FROM wallets WHERE member = ").bytes(&member.0.0);
    script.sql(" ORDER BY currency").end();
    script
}

/// Wallets with credit that is to be taken out.
pub(super) fn due_credits(
    store: &MySqlStore,
    now: Micros,
    limit: usize,
) -> Result<Vec<WalletKey>, StoreError> {
    let mut script = Script::default();
    script.sql("SELECT member, currency FROM wallets WHERE credit_due <= ").signed(now.0);
    script.sql(" ORDER BY credit_due LIMIT ").number(limit as u64).end();
    all(store, &script, "wallets", key)
}

/// For a cached wallet that is open and without holds and credit, before and after: most are. The columns `cached_…` are compared and
/// never stored.
const PLAIN_HEAD: &str =
    "INSERT INTO wallets (member, currency, balance, sequence, spent_day, spent, cached_balance) VALUES ";

/// For any other cached wallet.
const CACHED_HEAD: &str = "INSERT INTO wallets (member, currency, balance, held, sequence, closed, spent_day, spent, \
     credits, credit_due, cached_balance, cached_held) VALUES ";

/// Writes wallets. A wallet that did not exist when it was read must not exist now. A wallet of `cached` has no lock, so its
/// balance and its holds must still equal the cached ones. Otherwise the new balance is null, which is refused. A sequence
/// that grew meanwhile is not lowered: the entries with the same numbers are refused.
pub(super) fn write(
    script: &mut Script,
    rows: &[(WalletKey, Wallet)],
    absent: &[WalletKey],
    cached: &[(WalletKey, Wallet)],
    flavour: Flavour,
) {
    let before = |key: &WalletKey| cached.binary_search_by(|(other, _)| other.cmp(key)).ok();
    let is_new = |key: &WalletKey| absent.binary_search(key).is_ok();
    table::insert::<Wallets>(script, pairs(rows).filter(|(key, _)| is_new(key)));
    let read = pairs(rows).filter(|(key, _)| !is_new(key) && before(key).is_none());
    table::upsert::<Wallets>(script, read, flavour);
    let known = || rows.iter().filter_map(|row| Some((row, &cached[before(&row.0)?].1)));
    let plain = |wallet: &Wallet| wallet.held == 0 && !wallet.closed && wallet.credits.is_none();
    let is_plain = |((_, new), old): &(&(WalletKey, Wallet), &Wallet)| plain(new) && plain(old);
    script.upserts(
        PLAIN_HEAD,
        known().filter(is_plain),
        |script| guarded(script, flavour, true),
        |row, ((key, new), old)| {
            Wallets::put_key(row, key);
            row.signed(new.balance).number(new.sequence);
            row.signed(new.spent.day.into()).signed(new.spent.units).signed(old.balance);
        },
    );
    script.upserts(
        CACHED_HEAD,
        known().filter(|row| !is_plain(row)),
        |script| guarded(script, flavour, false),
        |row, ((key, new), old)| {
            Wallets::put_key(row, key);
            Wallets::put(row, new);
            row.signed(old.balance).signed(old.held);
        },
    );
}

/// Ends an insert of cached wallets. The first assignment is the guard: it sees the row before the change.
fn guarded(script: &mut Script, flavour: Flavour, plain: bool) {
    flavour.replace(script, &[]);
    script.sql(" ON DUPLICATE KEY UPDATE balance = IF(wallets.balance = ");
    flavour.put_new(script, "cached_balance");
    if plain {
        script.sql(" AND wallets.held = 0 AND wallets.closed = 0");
    } else {
        script.sql(" AND wallets.held = ");
        flavour.put_new(script, "cached_held");
    }
    script.sql(", ");
    flavour.put_new(script, "balance");
    script.sql(", NULL), sequence = GREATEST(wallets.sequence, ");
    flavour.put_new(script, "sequence");
    script.sql(")");
    let columns: &[&'static str] = if plain {
        &["spent_day", "spent"]
    } else {
        &["held", "closed", "spent_day", "spent", "credits", "credit_due"]
    };
    for column in columns {
        script.sql(", ").sql(column).sql(" = ");
        flavour.put_new(script, column);
    }
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

/// Queries every total.
pub(super) fn select_totals() -> Script {
    let mut script = Script::default();
    script.statement(
        "SELECT account, currency, SUM(debits), SUM(credits) FROM totals GROUP BY account, currency \
         ORDER BY account, currency",
    );
    script
}

/// Reads a row of the answer of [`select_totals`].
pub(super) fn decode_total(row: &mut Fields<'_>) -> Result<(AccountKey, Total), StoreError> {
    let account = Account::of_number(row.tiny()?).ok_or_else(|| damaged("totals", "no such account"))?;
    let currency = row.choice(Currency::parse)?;
    Ok((AccountKey { account, currency }, Total { debits: row.large()?, credits: row.large()? }))
}
