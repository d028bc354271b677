//! The table `batches`: commit markers. They resolve a commit whose answer was lost.
//!
//! A transaction writes the row (connection, number) together with its changes. To resolve a commit, a server inserts the
//! same row as a fence. If the row exists, the transaction was committed. If it does not, the fence makes the transaction's
//! own insert fail when its message still arrives. The statements after a failed one are not run. The insert waits for an
//! undecided one. Resolving twice gives the same answer. Not here: when to resolve.

use super::fault::corrupt;
use super::leases;
use super::pool::Pool;
use super::row::{Fields, ResultSets};
use super::text::Script;
use crate::StoreError;
use crate::plan::{BatchId, BoardNo};

pub(super) type Batch = BatchId;

/// The age at which rows of lost connections are deleted: longer than any server tries to resolve.
const KEEP_MICROS: u64 = 7 * 24 * 3600 * 1_000_000;

/// The maximum number of rows of published transactions that one transaction deletes, and the minimum for the only writer.
/// One statement for each transaction would cost as much as five records.
pub(super) const SETTLED_MAX: usize = 64;
pub(super) const SETTLED_MIN: usize = 16;

/// Writes the commit marker. With a fencing token and boards, the insert is refused when the lease has another token or a
/// board is not live.
pub(super) fn put(
    script: &mut Script,
    batch: &Batch,
    (version, unpublished): (super::Version, Option<&[u8]>),
    only_where: Option<(u64, &[BoardNo])>,
) {
    script.sql("INSERT INTO batches (link, sequence, version, marks, fence) SELECT ").bytes(&batch.link);
    script.sql(", ").number(batch.sequence).sql(", ");
    version.put(script);
    script.sql(", ");
    match unpublished {
        Some(unpublished) => script.bytes(unpublished),
        None => script.sql("NULL"),
    };
    script.sql(", ");
    match only_where {
        Some((token, live)) => leases::put_guard(script, token, live),
        None => drop(script.number(0_u64)),
    }
    script.end();
}

/// Writes the marker of a lease renewal, which is a witness, and deletes those before the last answered renewal.
pub(super) fn put_renewal(script: &mut Script, batch: &Batch, answered: u64) {
    script.sql("INSERT INTO batches (link, sequence, version, fence) VALUES (").bytes(&batch.link);
    script.sql(", ").number(batch.sequence).sql(", ").sql(super::CLOCK).sql(", 0)").end();
    script.sql("DELETE FROM batches WHERE link = ").bytes(&batch.link);
    script.sql(" AND sequence < ").number(answered).end();
}

/// Queries whether the marker is there: 1 or 0.
pub(super) fn count(script: &mut Script, batch: &Batch) {
    script.sql("SELECT COUNT(*) FROM batches WHERE link = ").bytes(&batch.link);
    script.sql(" AND sequence = ").number(batch.sequence).end();
}

/// Deletes markers that no server resolves any more: their commits were answered, and their changes are published.
pub(super) fn delete(script: &mut Script, settled: &[Batch]) {
    script.keys("DELETE FROM batches WHERE (link, sequence) IN (", settled, ")", |row, batch| {
        row.bytes(&batch.link).number(batch.sequence);
    });
}

/// Deletes settled markers when no transaction comes that could do it.
pub(super) fn delete_settled(pool: &Pool) -> Result<(), StoreError> {
    let mut script = Script::default();
    let (_, settled) = pool.witnesses.begin(1);
    delete(&mut script, &settled);
    if script.len() == 0 {
        return Ok(());
    }
    pool.query(&script).map(drop).inspect_err(|_| pool.witnesses.settle(settled))
}

/// Queries the outcome of a transaction, and fences it if it has not committed.
pub(super) fn resolve(batch: &Batch) -> Script {
    let mut script = Script::default();
    script.sql("INSERT INTO batches (link, sequence, version, fence) VALUES (").bytes(&batch.link);
    script.sql(", ").number(batch.sequence).sql(", ").sql(super::CLOCK);
    script.sql(", 1) ON DUPLICATE KEY UPDATE fence = fence").end();
    script.sql("SELECT fence, version FROM batches WHERE link = ").bytes(&batch.link);
    script.sql(" AND sequence = ").number(batch.sequence).end();
    script
}

/// Reads the answer of [`resolve`]: the version of a transaction that was committed.
pub(super) fn read_outcome(mut results: ResultSets) -> Result<Option<u64>, StoreError> {
    results.skip(1);
    let rows = results.rows();
    let row = rows.first().ok_or_else(|| corrupt("batches", "what was inserted is not there"))?;
    let mut row = Fields::new("batches", row);
    let (fence, version) = (row.boolean()?, row.number()?);
    Ok((!fence).then_some(version))
}

/// Queries rows of connections that are long closed. It takes no locks, because most rows are of other servers'
/// transactions.
pub(super) fn select_old() -> Script {
    let mut script = Script::default();
    script.sql("SELECT link, sequence FROM batches WHERE marks IS NULL AND version + ").number(KEEP_MICROS);
    script.sql(" < ").sql(super::CLOCK).sql(" LIMIT 1000").end();
    script
}

/// Deletes what [`select_old`] found.
pub(super) fn delete_old(mut results: ResultSets) -> Result<Script, StoreError> {
    let mut old = Vec::new();
    results.each(1, "batches", |row| {
        old.push((row.bytes()?.to_vec(), row.number()?));
        Ok(())
    })?;
    let mut script = Script::default();
    script.keys("DELETE FROM batches WHERE (link, sequence) IN (", old, ")", |row, (link, sequence)| {
        row.bytes(&link).number(sequence);
    });
    Ok(script)
}
