//! The kinds of replication that a start refuses: those in which a second server of the database takes writes.
//!
//! Every lock, lease and guard relies on one server that decides each write. Galera and a group with several primaries
//! detect a conflict at COMMIT, so a lock on one server holds nothing on another. Not here: replication that may lose
//! commits, which no variable of the primary shows for certain (`witness` notices the loss).

use super::link::Link;
use super::text::Script;
use crate::StoreError;

const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE variable_name IN \
     ('wsrep_on', 'group_replication_single_primary_mode')";

/// Refuses a database with such a replication.
pub(super) fn check(link: &mut Link, database: &str) -> Result<(), StoreError> {
    let mut script = Script::default();
    script.statement(SETTINGS);
    let mut refused = None;
    link.send(&script)?.each(1, "the settings", |row| {
        refused = refused.or(rejection(row.text()?, row.text()?));
        Ok(())
    })?;
    refused.map_or(Ok(()), |why| Err(StoreError::Replication(format!("`{database}` {why}"))))
}

/// Why a setting of the database is refused, if it is.
fn rejection(name: &str, value: &str) -> Option<&'static str> {
    let is_on = ["ON", "1"].contains(&value.to_ascii_uppercase().as_str());
    match name.to_ascii_lowercase().as_str() {
        "wsrep_on" if is_on => Some(
            "is a node of a Galera cluster (wsrep_on): its nodes decide writes apart, so locks and leases do not hold; \
             use a primary with semi-synchronous replicas",
        ),
        "group_replication_single_primary_mode" if !is_on => Some(
            "is in a group with several primaries: they decide writes apart, so locks and leases do not hold; set \
             group_replication_single_primary_mode = ON on every member",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_server_may_decide_writes() {
        let settings = [
            ("wsrep_on", "OFF", None),
            ("wsrep_on", "0", None),
            ("wsrep_on", "ON", Some("Galera")),
            ("WSREP_ON", "1", Some("Galera")),
            ("group_replication_single_primary_mode", "ON", None),
            ("group_replication_single_primary_mode", "1", None),
            ("group_replication_single_primary_mode", "OFF", Some("several primaries")),
            ("group_replication_single_primary_mode", "0", Some("several primaries")),
            ("read_only", "ON", None),
        ];
        for (name, value, wanted) in settings {
            let why = rejection(name, value);
            assert_eq!(why.is_some(), wanted.is_some(), "{name}={value}");
            assert!(
                why.is_none_or(|why| why.contains(wanted.unwrap_or_default())),
                "{name}={value}: {why:?}"
            );
        }
    }
}
