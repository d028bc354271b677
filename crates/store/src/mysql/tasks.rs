//! The table `tasks`: which of several servers does what one is enough for.
//!
//! A turn saves work and orders nothing: whoever has it may be frozen while another takes it, so everything that is done in
//! turn is right done twice. It ends by the database's clock, so who was killed is followed soon. Not here: the lease of a
//! server that writes alone.

use super::CLOCK;
use super::text::Script;
use crate::servers::Task;
use std::time::Duration;

/// Takes or keeps the turn where nobody else has it: a row changes then. With no time it is given back.
pub(super) fn take(task: Task, holder: &[u8; 16], time: Duration) -> Script {
    let mut script = Script::default();
    script.sql("UPDATE turns SET holder = ").bytes(holder).sql(", until = ").sql(CLOCK).sql(" + ");
    script.number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)).sql(" WHERE task = ");
    script.bytes(task.name().as_bytes()).sql(" AND (holder = ").bytes(holder);
    script.sql(" OR until <= ").sql(CLOCK).sql(")").end();
    script
}
