//! The table `batches`: the last transaction of each connection, for whoever lost the answer to its COMMIT.
//!
//! A transaction writes the row (connection, number) with its changes. Whoever wants to know what became of it inserts
//! that row as a fence: where it is there already the transaction was done; where it was not, the fence makes the
//! transaction's own insert fail should its message still arrive, and the statements after a failed one are not run. An
//! insert waits for an undecided one. Asking twice gives the same answer. Not here: when to ask.

use super::fault::corrupt;
use super::leases;
use super::pool::Pool;
use super::row::{Answers, Fields};
use super::text::Script;
use crate::StoreError;
use crate::plan::{BatchId, BoardNo};

pub(super) type Batch = BatchId;

/// How old rows of connections that are gone become: longer than anyone asks.
const KEEP_MICROS: u64 = 7 * 24 * 3600 * 1_000_000;

/// Rows of transactions that are published, deleted with one transaction, and how many must wait for it to be worth a
/// statement of the only writer: one for each transaction would cost as much as five records.
pub(super) const SETTLED_MAX: usize = 64;
pub(super) const SETTLED_MIN: usize = 16;

/// Writes the row of a transaction. With a lease's number and boards it is refused where the lease has another number, or
/// one of the boards is not live.
pub(super) fn put(
    script: &mut Script,
    batch: &Batch,
    (version, marks): (super::Version, Option<&[u8]>),
    only_where: Option<(u64, &[BoardNo])>,
) {
    script.sql("INSERT INTO batches (link, sequence, version, marks, fence) SELECT ").bytes(&batch.link);
    script.sql(", ").number(batch.sequence).sql(", ");
    version.put(script);
    script.sql(", ");
    match marks {
        Some(marks) => script.bytes(marks),
        None => script.sql("NULL"),
    };
    script.sql(", ");
    match only_where {
        Some((fence, live)) => leases::put_guard(script, fence, live),
        None => drop(script.number(0_u64)),
    }
    script.end();
}

/// Writes the row of a renewal and deletes those before the last one that was answered: it is a witness.
pub(super) fn put_renewal(script: &mut Script, batch: &Batch, answered: u64) {
    script.sql("INSERT INTO batches (link, sequence, version, fence) VALUES (").bytes(&batch.link);
    script.sql(", ").number(batch.sequence).sql(", ").sql(super::CLOCK).sql(", 0)").end();
    script.sql("DELETE FROM batches WHERE link = ").bytes(&batch.link);
    script.sql(" AND sequence < ").number(answered).end();
}

/// Deletes rows that nobody asks for any more: their commits were answered, and what they left is published.
pub(super) fn delete(script: &mut Script, settled: &[Batch]) {
    script.keys("DELETE FROM batches WHERE (link, sequence) IN (", settled, ")", |row, batch| {
        row.bytes(&batch.link).number(batch.sequence);
    });
}

/// The same where no transaction comes that could do it.
pub(super) fn forget_settled(pool: &Pool) -> Result<(), StoreError> {
    let mut script = Script::default();
    let (_, settled) = pool.witnesses.begin(1);
    delete(&mut script, &settled);
    if script.len() == 0 {
        return Ok(());
    }
    pool.ask(&script).map(drop).inspect_err(|_| pool.witnesses.settle(settled))
}

/// Asks what became of a transaction.
pub(super) fn find_out(batch: &Batch) -> Script {
    let mut script = Script::default();
    script.sql("INSERT INTO batches (link, sequence, version, fence) VALUES (").bytes(&batch.link);
    script.sql(", ").number(batch.sequence).sql(", ").sql(super::CLOCK);
    script.sql(", 1) ON DUPLICATE KEY UPDATE fence = fence").end();
    script.sql("SELECT fence, version FROM batches WHERE link = ").bytes(&batch.link);
    script.sql(" AND sequence = ").number(batch.sequence).end();
    script
}

/// The answer: the version of a transaction that was done.
pub(super) fn read(mut answers: Answers) -> Result<Option<u64>, StoreError> {
    answers.skip(1);
    let rows = answers.rows();
    let row = rows.first().ok_or_else(|| corrupt("batches", "what was inserted is not there"))?;
    let mut row = Fields::new("batches", row);
    let (fence, version) = (row.truth()?, row.number()?);
    Ok((!fence).then_some(version))
}

/// Rows of connections that are long gone. They are looked for without a lock: most rows are of others' transactions.
pub(super) fn find_old() -> Script {
    let mut script = Script::default();
    script.sql("SELECT link, sequence FROM batches WHERE marks IS NULL AND version + ").number(KEEP_MICROS);
    script.sql(" < ").sql(super::CLOCK).sql(" LIMIT 1000").end();
    script
}

/// Forgets what [`find_old`] found.
pub(super) fn forget(mut answers: Answers) -> Result<Script, StoreError> {
    let mut old = Vec::new();
    answers.each(1, "batches", |row| {
        old.push((row.bytes()?.to_vec(), row.number()?));
        Ok(())
    })?;
    let mut script = Script::default();
    script.keys("DELETE FROM batches WHERE (link, sequence) IN (", old, ")", |row, (link, sequence)| {
        row.bytes(&link).number(sequence);
    });
    Ok(script)
}
