//! The database keeps everything in one file with a maximum size, which acts like a full disk.

use super::*;
use tally_testkit::{DatabaseKind, ScratchDatabase};

const BOUNDED: [&str; 2] =
    ["--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:20M"];

#[test]
fn a_full_database_takes_nothing_and_goes_on_when_there_is_room() {
    let database = ScratchDatabase::start_with(DatabaseKind::MariaDb10, &BOUNDED);
    database.sql("CREATE DATABASE filler; CREATE TABLE filler.room (bytes LONGBLOB) ENGINE = InnoDB");
    database.sql("INSERT INTO filler.room VALUES (REPEAT('x', 4194304))");
    let mut server = TestTally::stopped(TALLY);
    server.allow("a request met a fault fault=the store is unavailable");
    server.set("TALLY_STORE_URL", &database.create_database());
    server.set("TALLY_STORE_LEASE", "60s");
    server.restart();
    let mut client = server.client();
    let taken = fill(&server, &mut client, "is full");
    database.sql("DROP TABLE filler.room");
    go_on(&mut client, taken);
}
