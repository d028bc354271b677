//! The table `tasks`: task leases, which choose one of several servers for a task.
//!
//! A task lease saves work and guarantees nothing: its holder may be frozen while another server takes it. So every task
//! must be correct when it runs twice. The lease ends by the database's clock, so a killed server is soon replaced. Not
//! here: the lease of a single writer.

use super::CLOCK;
use super::text::Script;
use crate::servers::Task;
use std::time::Duration;

/// Takes or renews the task lease if no other server holds it: then a row changes. A time of zero gives it back.
pub(super) fn take(task: Task, holder: &[u8; 16], time: Duration) -> Script {
    let mut script = Script::default();
    script.sql("UPDATE turns SET holder = ").bytes(holder).sql(", until = ").sql(CLOCK).sql(" + ");
    script.number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)).sql(" WHERE task = ");
    script.bytes(task.name().as_bytes()).sql(" AND (holder = ").bytes(holder);
    script.sql(" OR until <= ").sql(CLOCK).sql(")").end();
    script
}

/// Ends every task lease. A server that reads everything anew cannot give its lease back, and would itself wait until it ends.
pub(super) fn end_all(script: &mut Script) {
    script.statement("UPDATE turns SET until = 0");
}
