//! A database does what other tests rely on.

use super::*;
use DatabaseKind::{MariaDb10, MySql9};

const KINDS: [DatabaseKind; 2] = [MariaDb10, MySql9];

#[test]
fn each_kind_is_the_release_that_it_says() {
    for (kind, release) in [(MariaDb10, "10.11."), (MySql9, "9.")] {
        let server = ScratchDatabase::shared(kind);
        let answer = server.sql("SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin");
        assert!(answer.starts_with(release) && answer.ends_with("\t1\t0"), "{answer}");
        assert_eq!(answer.contains("MariaDB"), kind == MariaDb10, "{answer}");
    }
}

#[test]
fn databases_of_a_shared_one_are_apart() {
    for kind in KINDS {
        let server = ScratchDatabase::shared(kind);
        let urls = [server.create_database(), server.create_database()];
        let names = urls.each_ref().map(|url| url.rsplit('/').next().expect("a path").to_owned());
        assert_ne!(names[0], names[1]);
        assert_eq!(urls[0], format!("mysql://root@{}/{}", server.address(), names[0]));
        let table = "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL);";
        server.sql(&format!("USE {}; {table}", names[0]));
        let rows = server.sql(&format!("SELECT * FROM {}.t ORDER BY a", names[0]));
        assert_eq!(rows, "1\tx\n2\tNULL");
        let error = server.try_sql(&format!("SELECT * FROM {}.t", names[1])).unwrap_err();
        assert!(error.contains("1146") && error.contains("doesn't exist"), "{error}");
    }
}

#[test]
fn what_was_committed_is_there_after_a_kill() {
    for kind in KINDS {
        let mut server = ScratchDatabase::start(kind);
        let url = server.create_database();
        server.sql("USE tally_0; CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO t VALUES (1)");
        server.kill();
        assert!(server.try_sql("SELECT 1").is_err());
        server.restart();
        assert_eq!((server.sql("SELECT a FROM tally_0.t"), url), ("1".into(), server.url("tally_0")));
    }
}

#[test]
fn what_was_committed_after_it_was_kept_is_lost_when_it_goes_back() {
    for kind in KINDS {
        let mut server = ScratchDatabase::start(kind);
        server.create_database();
        server.sql("USE tally_0; CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO t VALUES (1)");
        server.keep_copy();
        server.sql("INSERT INTO tally_0.t VALUES (2)");
        server.put_copy_back();
        assert_eq!(server.sql("SELECT a FROM tally_0.t"), "1");
    }
}

#[test]
fn arguments_of_the_test_win() {
    for kind in KINDS {
        let server = ScratchDatabase::start_with(kind, &["--log-bin=changes", "--max-connections=17"]);
        assert_eq!(server.sql("SELECT @@log_bin, @@max_connections"), "1\t17");
    }
}

#[test]
fn a_frozen_one_answers_when_it_is_thawed() {
    let server = ScratchDatabase::start(MariaDb10);
    server.freeze();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| server.sql("SELECT 1"));
        server.thaw();
        assert_eq!(asking.join().expect("it is asked"), "1");
    });
}

#[test]
fn mariadb_has_spider() {
    let server =
        ScratchDatabase::start_with_spider(&["--plugin-load-add=ha_spider", "--spider-bulk-size=99999"]);
    assert_eq!(server.sql("SELECT @@spider_bulk_size"), "99999");
}
