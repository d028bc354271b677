//! Locks of a database that a test holds from outside, and the transaction that waits for one.
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

    /// The number of the transaction in a database that waits for a lock; empty if none does.
    pub fn waiting_transaction(&self, database: &str) -> String {
        self.sql(&format!(
            "SELECT trx_id FROM information_schema.innodb_trx JOIN information_schema.processlist \
             ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = '{database}'"
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
