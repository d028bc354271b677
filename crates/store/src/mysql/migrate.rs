//! Checks that the database is ours, and migrates it to the present schema.
//!
//! An empty database becomes ours. One with tables is ours if the comment of `meta` says so, which is written with the
//! table. Migrations run under a lock of the server, so two that start at once make one schema. Only the holder of the lease
//! changes an older schema. DDL commits by itself. So each statement can be repeated (an existing column was added before, a
//! missing one was dropped). The version is written after each file. Not here: downgrades; the operator has backups of such
//! a database.

use super::fault::{self, Fault};
use super::link::Link;
use super::meta;
use super::row::ResultSets;
use super::text::Script;
use crate::StoreError;
use std::time::Duration;

/// All migrations: the first makes an empty database ours, each other one makes the next schema from the one before.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/mysql/0001_tables.sql"),
    include_str!("../../migrations/mysql/0002_leases.sql"),
    include_str!("../../migrations/mysql/0003_ledger.sql"),
    include_str!("../../migrations/mysql/0004_servers.sql"),
    include_str!("../../migrations/mysql/0005_contests.sql"),
    include_str!("../../migrations/mysql/0006_series.sql"),
    include_str!("../../migrations/mysql/0007_period_prizes.sql"),
    include_str!("../../migrations/mysql/0008_events.sql"),
    include_str!("../../migrations/mysql/0009_plain_scores.sql"),
    include_str!("../../migrations/mysql/0010_several_servers.sql"),
    include_str!("../../migrations/mysql/0011_cheaper_guard.sql"),
    include_str!("../../migrations/mysql/0012_reversals.sql"),
    include_str!("../../migrations/mysql/0013_origins.sql"),
    include_str!("../../migrations/mysql/0014_audit.sql"),
    include_str!("../../migrations/mysql/0015_scopes.sql"),
    include_str!("../../migrations/mysql/0016_metadata.sql"),
    include_str!("../../migrations/mysql/0017_webhooks.sql"),
    include_str!("../../migrations/mysql/0018_wallet_topics.sql"),
    include_str!("../../migrations/mysql/0019_credit.sql"),
    include_str!("../../migrations/mysql/0020_archives.sql"),
];

/// The first schema with the table `leases`.
const LEASES: u32 = 2;

/// The comment of our table `meta`.
const OURS: &str = "tally";

const VERSION: &str = "store.schema";

/// The maximum wait for a migration by another server.
const LOCK_SECONDS: u64 = 60;

/// How long one statement may take: a table of hundreds of millions of rows may be rewritten.
const STATEMENT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Whether the database is ours, with an older schema that has leases.
pub(super) fn is_older(
    link: &mut Link,
    (_, shown): (&str, &str),
    migrations: &'static [&'static str],
) -> Result<bool, StoreError> {
    let known = u32::try_from(migrations.len()).expect("fewer than 2^32 migrations");
    Ok(version(link, shown, known)?.is_some_and(|found| (LEASES..known).contains(&found)))
}

/// Refuses an empty database that must not be created: a running server had commits there.
pub(super) fn check_there(
    link: &mut Link,
    (_, shown): (&str, &str),
    migrations: &'static [&'static str],
    must_be_there: bool,
) -> Result<(), StoreError> {
    let known = u32::try_from(migrations.len()).expect("fewer than 2^32 migrations");
    if must_be_there && version(link, shown, known)?.is_none_or(|found| found == 0) {
        return Err(StoreError::NotOurs(format!("the database {shown} is empty: it")));
    }
    Ok(())
}

/// Checks that the database is ours, and creates or migrates it. `may_migrate` says whether an older schema is changed.
pub(super) fn migrate(
    link: &mut Link,
    (database, shown): (&str, &str),
    migrations: &'static [&'static str],
    may_migrate: bool,
) -> Result<(), StoreError> {
    let known = u32::try_from(migrations.len()).expect("fewer than 2^32 migrations");
    if version(link, shown, known)? == Some(known) {
        return Ok(());
    }
    let deadline = std::mem::replace(&mut link.deadline, STATEMENT_MAX);
    let name = blake3::hash(database.as_bytes());
    let lock = &name.as_bytes()[..16];
    let mut script = Script::default();
    script
        .sql("SELECT GET_LOCK(CONCAT('tally ', HEX(")
        .bytes(lock)
        .sql(")), ")
        .number(LOCK_SECONDS)
        .sql(")")
        .end();
    if query(link, &script)?.one_number("the lock of migrations").ok() != Some(1) {
        return Err(StoreError::Conflict(format!("another server migrates {shown}")));
    }
    let done = migrate_locked(link, shown, (migrations, known), may_migrate);
    let mut script = Script::default();
    script.sql("SELECT RELEASE_LOCK(CONCAT('tally ', HEX(").bytes(lock).sql(")))").end();
    query(link, &script)?;
    link.deadline = deadline;
    done
}

fn migrate_locked(
    link: &mut Link,
    shown: &str,
    (migrations, known): (&'static [&'static str], u32),
    may_migrate: bool,
) -> Result<(), StoreError> {
    // Another server may have migrated while this one waited.
    let found = version(link, shown, known)?.unwrap_or(0);
    if found > 0 && found < known && !may_migrate {
        return Err(StoreError::TooOld { found, known });
    }
    for (version, migration) in (1_u32..).zip(migrations).skip(found as usize) {
        for statement in statements(migration) {
            let mut script = Script::default();
            script.statement(statement);
            match link.send(&script) {
                Err(Fault::Refused { code: fault::COLUMN_THERE | fault::COLUMN_GONE, .. }) => {}
                done => drop(done?),
            }
        }
        let mut script = Script::default();
        script.sql("REPLACE INTO meta (name, value) VALUES (").bytes(VERSION.as_bytes());
        script.sql(", ").bytes(version.to_string().as_bytes()).sql(")").end();
        query(link, &script)?;
    }
    Ok(())
}

/// The schema version of our database: 0 if its creation was interrupted; `None` if it is empty.
fn version(link: &mut Link, shown: &str, known: u32) -> Result<Option<u32>, StoreError> {
    let mut script = Script::default();
    script.statement(
        "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = DATABASE()",
    );
    let mut tables = Vec::new();
    query(link, &script)?.each(1, "the list of tables", |row| {
        tables.push((row.text()?.to_owned(), row.text()?.to_owned()));
        Ok(())
    })?;
    if tables.is_empty() {
        return Ok(None);
    }
    if !tables.iter().any(|(name, comment)| name == "meta" && comment == OURS) {
        return Err(StoreError::NotOurs(format!("the database {shown}")));
    }
    let mut results = query(link, &meta::select(VERSION))?;
    let Some(value) = meta::read(&mut results)? else { return Ok(Some(0)) };
    let found = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    let found = found.ok_or_else(|| fault::corrupt("meta", "the version of the schema is not a number"))?;
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    Ok(Some(found))
}

/// The statements of a migration. Each ends at the end of a line.
fn statements(migration: &'static str) -> impl Iterator<Item = &'static str> {
    let is_said = |statement: &&str| {
        statement.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
    };
    migration.split(";\n").filter(is_said)
}

fn query(link: &mut Link, script: &Script) -> Result<ResultSets, StoreError> {
    link.send(script).map_err(StoreError::from)
}
