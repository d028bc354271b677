//! Settings of a database that lose acknowledged changes, or cost speed.

use super::DoctorReport;
use tally_store::mysql::Probe;

/// The longest message that tally sends; a smaller limit means more messages for a large batch.
const PACKET: u64 = 16 << 20;

/// Reports each setting, and what it should be.
pub(super) fn check(report: &mut DoctorReport, probe: &Probe) {
    let text = |name: &str| probe.settings.get(name).map(String::as_str);
    let is_on = |name: &str| text(name).is_some_and(|value| matches!(value, "ON" | "1"));
    let number = |name: &str| text(name).and_then(|value| value.parse::<u64>().ok());
    let shown = |name: &str| format!("{name} = {}", text(name).unwrap_or("(unknown)"));
    let say = |report: &mut DoctorReport, name: &'static str, good: bool, why: &str| {
        let line = shown(name);
        if good { report.ok(&line) } else { report.wrong(name, &format!("{line}: {why}")) }
    };
    let flush = "innodb_flush_log_at_trx_commit";
    say(report, flush, number(flush) == Some(1), "a crash loses acknowledged scores; set 1");
    if is_on("log_bin") {
        let good = number("sync_binlog") == Some(1);
        say(report, "sync_binlog", good, "replicas lose acknowledged scores in a crash; set 1");
    }
    let doublewrite = text("innodb_doublewrite").is_some_and(|value| !matches!(value, "OFF" | "0"));
    say(report, "innodb_doublewrite", doublewrite, "a page torn by a crash cannot be repaired; set ON");
    // `NO_LOCK` and others are values of MariaDB 12 for partly read-only servers.
    let read_only = text("read_only").is_some_and(|value| !matches!(value, "OFF" | "0"));
    say(report, "read_only", !read_only, "nothing can be stored");
    if number("max_allowed_packet").is_some_and(|bytes| bytes < PACKET) {
        let line = shown("max_allowed_packet");
        report.warn(
            "max_allowed_packet",
            &format!("{line}: a large batch takes several messages; set {PACKET}"),
        );
    } else {
        report.ok(&shown("max_allowed_packet"));
    }
    let (pool, tables) = (number("innodb_buffer_pool_size").unwrap_or(0), probe.tables_bytes);
    let line = format!("innodb_buffer_pool_size = {pool}, the tables take {tables} bytes");
    if pool < tables {
        report.warn("innodb_buffer_pool_size", &format!("{line}: what does not fit is read from the disk"));
    } else {
        report.ok(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wrong(changed: &[(&str, &str)]) -> bool {
        let good = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("innodb_doublewrite", "ON"),
            ("read_only", "OFF"),
            ("max_allowed_packet", "67108864"),
            ("innodb_buffer_pool_size", "134217728"),
        ];
        let all = good.iter().chain(changed).map(|(name, value)| ((*name).into(), (*value).into()));
        let probe = Probe { settings: all.collect(), ..Probe::default() };
        let mut report = DoctorReport::default();
        check(&mut report, &probe);
        report.is_wrong()
    }

    #[test]
    fn what_loses_data_is_wrong() {
        assert!(!is_wrong(&[]));
        assert!(!is_wrong(&[("log_bin", "OFF"), ("sync_binlog", "0")]));
        assert!(!is_wrong(&[("max_allowed_packet", "1048576")]), "slow is not wrong");
        assert!(!is_wrong(&[("innodb_doublewrite", "DETECT_AND_RECOVER")]));
        for (name, value) in [
            ("innodb_flush_log_at_trx_commit", "2"),
            ("sync_binlog", "0"),
            ("innodb_doublewrite", "OFF"),
            ("read_only", "ON"),
        ] {
            assert!(is_wrong(&[(name, value)]), "{name}");
        }
    }
}
