//! The table `holds`: money that is promised.

use super::connect::Flavour;
use super::fault::damaged;
use super::row::{Answers, Fields};
use super::text::{Row, Script, keys_end};
use super::{found, wallets};
use crate::StoreError;
use crate::hold::Columns;
use tally_rules::Micros;
use tally_rules::ledger::{Hold, HoldId, Uuid, WalletKey};

/// Asks for holds; how many statements that takes. The keys ascend.
pub(super) fn select(script: &mut Script, keys: &[HoldId], locking: bool) -> usize {
    script.keys(
        "SELECT id, member, currency, amount, expires_at, state, captured, captured_to, transfer, ended_at \
         FROM holds FORCE INDEX (PRIMARY) WHERE id IN (",
        keys,
        keys_end(locking),
        put_key,
    )
}

fn put_key(row: &mut Row<'_>, id: &HoldId) {
    row.bytes(&id.0.0);
}

/// The answer.
pub(super) fn read(
    answers: &mut Answers,
    statements: usize,
    keys: &[HoldId],
) -> Result<Vec<Option<Hold>>, StoreError> {
    found(answers, statements, "holds", keys, decode)
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(HoldId, Hold), StoreError> {
    let (id, wallet) = (HoldId(Uuid(row.fixed()?)), wallets::key(row)?);
    let (amount, expires_at) = (row.signed()?, row.maybe_signed()?);
    let columns = Columns {
        state: row.tiny()?,
        captured: row.maybe_signed()?,
        captured_to: row.maybe_fixed()?,
        transfer: row.maybe_fixed()?,
        ended_at: row.maybe_signed()?,
    };
    let hold = columns.hold(wallet, amount, expires_at);
    Ok((id, hold.ok_or_else(|| damaged("holds", "a hold that cannot be"))?))
}

const HEAD: &str = "INSERT INTO holds (id, member, currency, amount, expires_at, state, captured, captured_to, \
     transfer, ended_at, due) VALUES ";

/// Writes holds. One that was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(HoldId, Hold)],
    absent: impl Fn(&HoldId) -> bool,
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (id, hold): &(HoldId, Hold)| {
        let columns = Columns::of(hold);
        put_key(row, id);
        wallets::put_key(row, &hold.wallet);
        row.signed(hold.amount).signed_or_null(hold.expires_at.map(|at| at.0));
        row.number(columns.state).signed_or_null(columns.captured);
        row.bytes_or_null(columns.captured_to.as_ref().map(|id| &id[..]));
        row.bytes_or_null(columns.transfer.as_ref().map(|id| &id[..]));
        row.signed_or_null(columns.ended_at);
        row.signed_or_null(hold.expires_at.filter(|_| hold.is_open()).map(|at| at.0));
    };
    script.rows(HEAD, rows.iter().filter(|(id, _)| absent(id)), "", put);
    let tail = |script: &mut Script| {
        flavour.replace(script, &["state", "captured", "captured_to", "transfer", "ended_at", "due"])
    };
    script.upserts(HEAD, rows.iter().filter(|(id, _)| !absent(id)), tail, put);
}

/// Fails where one of these holds is there by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a HoldId> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, id| {
        put_key(row, id);
        row.sql("'', '', 0, NULL, 0, NULL, NULL, NULL, NULL, NULL");
    });
    script.keys("DELETE FROM holds WHERE id IN (", absent, ")", put_key);
}

/// Asks for open holds whose time has run out.
pub(super) fn select_due(now: Micros, limit: usize) -> Script {
    let mut script = Script::default();
    script.sql("SELECT id, member, currency FROM holds WHERE due <= ").signed(now.0);
    script.sql(" ORDER BY due LIMIT ").number(limit as u64).end();
    script
}

/// The answer.
pub(super) fn read_due(mut answers: Answers) -> Result<Vec<(HoldId, WalletKey)>, StoreError> {
    let mut due = Vec::new();
    answers.each(1, "holds", |row| {
        due.push((HoldId(Uuid(row.fixed()?)), wallets::key(row)?));
        Ok(())
    })?;
    Ok(due)
}
