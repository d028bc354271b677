//! Locks of a database that a test holds from outside, and the statement that waits for one.
//!
//! The connection sleeps in a statement. So no idle timeout ends it, and it is killed for its end. Not here: waiting for a lock,
//! which the tested program does.

use crate::{ScratchDatabase, wait_until};
use std::process::Child;

/// Locks that are held until the value is dropped.
#[derive(Debug)]
pub struct HeldLocks<'a> {
    server: &'a ScratchDatabase,
    database: String,
    client: Child,
}

impl ScratchDatabase {
    /// Runs statements in one of its databases and keeps their locks. Only once at a time for each database.
    #[track_caller]
    pub fn hold_locks(&self, database: &str, locking: &str) -> HeldLocks<'_> {
        let client = self.client(self.address(), &format!("USE {database}; {locking}; SELECT SLEEP(600)"));
        let held = HeldLocks { server: self, database: database.into(), client };
        wait_until("the locks are held", || !held.connection().expect("it runs").is_empty());
        held
    }

    /// The number of the statement of a MariaDB database that waits for a lock; empty if none does.
    ///
    /// On the few rows of a test nothing else runs for a second. The table of InnoDB's transactions would tell at once, but it is
    /// not renewed while it is read more often than every 100 ms.
    pub fn waiting_statement(&self, database: &str) -> String {
        self.sql(&format!(
            "SELECT query_id FROM information_schema.processlist WHERE db = '{database}' AND command = 'Query' \
             AND time_ms >= 1000 AND info NOT LIKE 'SELECT SLEEP%' ORDER BY query_id"
        ))
    }
}

impl HeldLocks<'_> {
    /// The number of the connection; empty before it holds the locks.
    fn connection(&self) -> Result<String, String> {
        self.server.try_sql(&format!(
            "SELECT id FROM information_schema.processlist WHERE db = '{}' AND info LIKE 'SELECT SLEEP%'",
            self.database
        ))
    }
}

impl Drop for HeldLocks<'_> {
    fn drop(&mut self) {
        // A server that does not run holds nothing. The client ends with an error when its connection is killed.
        let killed =
            self.connection().and_then(|connection| self.server.try_sql(&format!("KILL {connection}")));
        drop((killed, self.client.wait()));
    }
}
