//! A reader of the tables of a store in a file, and a change of them at rest, from another process as a shell or a backup is.

use crate::TestTally;
use rusqlite::{Connection, OpenFlags};

/// A read transaction: until it is dropped, the write-ahead log of the tables cannot be emptied.
#[derive(Debug)]
pub struct TableReader(#[expect(dead_code, reason = "it is held")] Connection);

impl TableReader {
    /// One that reads from now on.
    ///
    /// # Panics
    ///
    /// If the server has no store in a file.
    #[track_caller]
    pub fn of(server: &TestTally) -> Self {
        let file = server.data().join("tally.db");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = Connection::open_with_flags(file, flags).expect("the store is a file");
        open.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").expect("it can be read");
        Self(open)
    }
}

/// Changes tables at rest, behind the back of the store; returns the number of rows.
///
/// # Panics
///
/// If the server has no store in a file, or its tables cannot be changed so.
#[track_caller]
pub fn change_tables(server: &TestTally, sql: &str) -> usize {
    let tables = Connection::open(server.data().join("tally.db")).expect("the store is a file");
    tables.execute(sql, []).expect("the tables can be changed")
}
