//! The tables `wallets` and `totals`: balances of members, and totals of accounts.

use super::fault::{column_text, damaged};
use super::table::{Rows, Table};
use crate::codec::{Input, credits, put_bytes, put_number, put_signed};
use crate::{Listing, StoreError};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::credit::Credits;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{Currency, MemberId, Uuid, Wallet, WalletKey};

/// Marks a wallet that has its credit at its end, in a journal alone: rows from before end without it.
const WITH_CREDITS: u8 = 0x40;

pub(super) const GET: &str = "SELECT balance, held, sequence, closed, spent_day, spent, credits FROM wallets \
     WHERE member = ?1 AND currency = ?2";
pub(super) const OF_MEMBER: &str = "SELECT balance, held, sequence, closed, spent_day, spent, credits, currency FROM wallets \
     WHERE member = ?1 ORDER BY currency";
pub(super) const PUT: &str = "REPLACE INTO wallets (member, currency, balance, held, sequence, closed, spent_day, spent, credits, \
     credit_due) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
pub(super) const DUE_CREDITS: &str = "SELECT member, currency FROM wallets INDEXED BY wallets_credit_due \
     WHERE credit_due IS NOT NULL AND credit_due <= ?1 ORDER BY credit_due";
pub(super) const REMOVE: &str = "DELETE FROM wallets WHERE member = ?1 AND currency = ?2";
pub(super) const ALL_TOTALS: &str =
    "SELECT debits, credits, account, currency FROM totals ORDER BY account, currency";
pub(super) const GET_TOTAL: &str = "SELECT debits, credits FROM totals WHERE account = ?1 AND currency = ?2";
pub(super) const PUT_TOTAL: &str =
    "REPLACE INTO totals (account, currency, debits, credits) VALUES (?1, ?2, ?3, ?4)";
pub(super) const REMOVE_TOTAL: &str = "DELETE FROM totals WHERE account = ?1 AND currency = ?2";

pub(super) fn get(connection: &Connection, key: &WalletKey) -> Result<Option<Wallet>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![key.member.0.0, key.currency.as_str()])?;
    rows.next()?.map(decode).transpose()
}

/// Every wallet of a member, in order of currency.
pub(super) fn of_member(
    connection: &Connection,
    member: MemberId,
) -> Result<Listing<(Currency, Wallet)>, StoreError> {
    let mut statement = connection.prepare_cached(OF_MEMBER)?;
    let mut rows = statement.query(params![member.0.0])?;
    let mut list = Listing::default();
    let read = |row: &Row<'_>| Ok((currency("wallets", &row.get::<_, String>(7)?)?, decode(row)?));
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(wallet) => list.rows.push(wallet),
            Err(error) => {
                let error: StoreError = error;
                list.leave_out(error.of_row("wallets", || format!("{}/{}", member.0, column_text(row, 7))))?;
            }
        }
    }
    Ok(list)
}

/// Decodes the columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<Wallet, StoreError> {
    Ok(Wallet {
        balance: row.get(0)?,
        held: row.get(1)?,
        sequence: counted("wallets", row.get(2)?)?,
        closed: boolean(row.get(3)?)?,
        spent: Spent { day: row.get(4)?, units: row.get(5)? },
        credits: row.get::<_, Option<Vec<u8>>>(6)?.map(|bytes| decode_credits(&bytes)).transpose()?,
    })
}

fn decode_credits(bytes: &[u8]) -> Result<Arc<Credits>, StoreError> {
    credits::decode(bytes).ok_or_else(|| damaged("wallets", "credit that cannot be"))
}

/// When credit is to be taken out of a wallet, if it is.
pub(super) fn credit_due(wallet: &Wallet) -> Option<i64> {
    wallet.credits.as_ref().and_then(|credits| credits.due()).map(|at| at.0)
}

/// Passes wallets with due credit to `each`, for as long as it returns true.
pub(super) fn due_credits(
    connection: &Connection,
    now: Micros,
    each: &mut dyn FnMut(WalletKey) -> bool,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(DUE_CREDITS)?;
    let mut rows = statement.query(params![now.0])?;
    while let Some(row) = rows.next()? {
        let member = MemberId(Uuid(row.get(0)?));
        if !each(WalletKey { member, currency: currency("wallets", &row.get::<_, String>(1)?)? }) {
            break;
        }
    }
    Ok(())
}

fn boolean(number: i64) -> Result<bool, StoreError> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(damaged("wallets", "closed is neither 0 nor 1")),
    }
}

/// Decodes a stored number of entries.
pub(super) fn counted(table: &'static str, number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| damaged(table, "a negative number of entries"))
}

/// Decodes a stored currency.
pub(super) fn currency(table: &'static str, text: &str) -> Result<Currency, StoreError> {
    Currency::parse(text).ok_or_else(|| damaged(table, "a currency that cannot be"))
}

pub(super) fn total(connection: &Connection, key: &AccountKey) -> Result<Option<Total>, StoreError> {
    let mut statement = connection.prepare_cached(GET_TOTAL)?;
    let mut rows = statement.query(params![key.account.number(), key.currency.as_str()])?;
    rows.next()?.map(decode_total).transpose()
}

pub(super) fn totals(connection: &Connection) -> Result<Vec<(AccountKey, Total)>, StoreError> {
    let mut statement = connection.prepare_cached(ALL_TOTALS)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let account = Account::of_number(row.get(2)?).ok_or_else(|| damaged("totals", "no such account"))?;
        let currency = currency("totals", &row.get::<_, String>(3)?)?;
        found.push((AccountKey { account, currency }, decode_total(row)?));
    }
    Ok(found)
}

pub(super) fn decode_total(row: &Row<'_>) -> Result<Total, StoreError> {
    let number = |column: usize| -> Result<u128, StoreError> {
        let text: String = row.get(column)?;
        text.parse().map_err(|_| damaged("totals", "a total that is no number"))
    };
    Ok(Total { debits: number(0)?, credits: number(1)? })
}

/// The table `wallets` for the journal.
pub(super) struct Wallets;

impl Table for Wallets {
    const TAG: u8 = 12;
    type Key = WalletKey;
    type Value = Wallet;

    fn check(_key: &WalletKey, wallet: Option<&Wallet>) -> Result<(), StoreError> {
        match wallet {
            Some(wallet) if wallet.held < 0 || wallet.held > wallet.balance => {
                Err(StoreError::Row("wallets: what is held is not within the balance".into()))
            }
            Some(wallet) if wallet.credits.as_ref().is_some_and(|one| one.sum() > wallet.balance) => {
                Err(StoreError::Row("wallets: credit is not within the balance".into()))
            }
            Some(wallet) if i64::try_from(wallet.sequence).is_err() => {
                Err(StoreError::Row("wallets: more entries than can be counted".into()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn put_key(key: &WalletKey, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.member.0.0);
        out.extend_from_slice(&key.currency.bytes());
    }

    fn take_key(input: &mut Input<'_>) -> Option<WalletKey> {
        Some(WalletKey {
            member: MemberId(Uuid(input.fixed()?)),
            currency: Currency::of_bytes(input.fixed()?)?,
        })
    }

    fn put_value(value: &Wallet, out: &mut Vec<u8>) {
        put_signed(value.balance, out);
        put_signed(value.held, out);
        put_number(value.sequence, out);
        let credits = value.credits.as_deref();
        out.push(u8::from(value.closed) | if credits.is_some() { WITH_CREDITS } else { 0 });
        put_signed(value.spent.day.into(), out);
        put_signed(value.spent.units, out);
        if let Some(credits) = credits {
            put_bytes(&credits::encode(credits), out);
        }
    }

    fn take_value(input: &mut Input<'_>) -> Option<Wallet> {
        let (balance, held, sequence) = (input.signed()?, input.signed()?, input.number()?);
        let marks = input.byte()?;
        let spent = Spent { day: input.signed()?.try_into().ok()?, units: input.signed()? };
        let credits = match marks & WITH_CREDITS {
            0 => None,
            _ => Some(credits::decode(input.bytes()?)?),
        };
        let closed = match marks & !WITH_CREDITS {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Wallet { balance, held, sequence, closed, spent, credits })
    }

    fn age(wallet: &Wallet) -> Option<i64> {
        credit_due(wallet)
    }

    fn heap_bytes(_key: &WalletKey, value: Option<&Wallet>) -> usize {
        let credits = value.and_then(|wallet| wallet.credits.as_ref());
        credits.map_or(0, |credits| 64 + 16 * credits.open.len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT)?;
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (key, wallet) in rows {
            let (member, currency) = (key.member.0.0, key.currency.as_str());
            match wallet {
                Some(wallet) => put.execute(params![
                    member,
                    currency,
                    wallet.balance,
                    wallet.held,
                    wallet.sequence.cast_signed(),
                    wallet.closed,
                    wallet.spent.day,
                    wallet.spent.units,
                    wallet.credits.as_deref().map(credits::encode),
                    credit_due(wallet),
                ])?,
                None => remove.execute(params![member, currency])?,
            };
        }
        Ok(())
    }
}

/// The table `totals` for the journal.
pub(super) struct Totals;

impl Table for Totals {
    const TAG: u8 = 13;
    type Key = AccountKey;
    type Value = Total;

    fn check(_key: &AccountKey, _value: Option<&Total>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &AccountKey, out: &mut Vec<u8>) {
        out.push(key.account.number());
        out.extend_from_slice(&key.currency.bytes());
    }

    fn take_key(input: &mut Input<'_>) -> Option<AccountKey> {
        let account = Account::of_number(input.byte()?)?;
        Some(AccountKey { account, currency: Currency::of_bytes(input.fixed()?)? })
    }

    fn put_value(value: &Total, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.debits.to_le_bytes());
        out.extend_from_slice(&value.credits.to_le_bytes());
    }

    fn take_value(input: &mut Input<'_>) -> Option<Total> {
        let debits = u128::from_le_bytes(input.fixed()?);
        Some(Total { debits, credits: u128::from_le_bytes(input.fixed()?) })
    }

    fn heap_bytes(_key: &AccountKey, _value: Option<&Total>) -> usize {
        0
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, total) in rows {
            let (account, currency) = (key.account.number(), key.currency.as_str());
            match total {
                Some(total) => connection.prepare_cached(PUT_TOTAL)?.execute(params![
                    account,
                    currency,
                    total.debits.to_string(),
                    total.credits.to_string()
                ])?,
                None => connection.prepare_cached(REMOVE_TOTAL)?.execute(params![account, currency])?,
            };
        }
        Ok(())
    }
}
