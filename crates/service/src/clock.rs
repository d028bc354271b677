//! The clock is an argument, so that tests can run through years.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tally_rules::Micros;

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Micros + Send + Sync>;

/// The machine's clock.
pub fn system() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        // A clock before 1970 is a machine without a clock: 1970 is as good, instants increase from there.
        Micros(since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)))
    })
}
