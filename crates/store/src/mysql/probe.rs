//! What a server of MySQL or MariaDB reports of itself. Not here: judging its settings.

use super::Probe;
use super::pool::Pool;
use super::text::Script;
use crate::StoreError;

/// Settings that lose data or cost speed, by their names on both.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE variable_name IN ('innodb_flush_log_at_trx_commit', \
     'sync_binlog', 'log_bin', 'innodb_doublewrite', 'max_allowed_packet', 'innodb_buffer_pool_size', 'read_only')";

/// Reads the report.
pub(super) fn probe(pool: &Pool) -> Result<Probe, StoreError> {
    let mut script = Script::default();
    script.statement("SELECT VERSION()");
    script.statement(SETTINGS);
    script.statement(
        "SELECT CAST(COALESCE(SUM(data_length + index_length), 0) AS UNSIGNED) FROM information_schema.tables \
         WHERE table_schema = DATABASE()",
    );
    let mut results = pool.query(&script)?;
    let mut probe = Probe::default();
    results.each(1, "the version", |row| {
        row.text()?.clone_into(&mut probe.version);
        Ok(())
    })?;
    results.each(1, "the settings", |row| {
        probe.settings.insert(row.text()?.to_ascii_lowercase(), row.text()?.to_owned());
        Ok(())
    })?;
    probe.tables_bytes = results.one_number("the size of the tables")?;
    Ok(probe)
}
