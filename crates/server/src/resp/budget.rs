//! The share of a connection in its thread.
//!
//! A thread serves its connections one after the other, and a connection goes on while its commands need not wait. So it
//! counts its work, and passes the thread on after a bounded amount. The unit is a byte that is received or answered. A
//! clock would cost more than a short command.
//!
//! Not here: reads that run on the lane or on a blocking thread, which `Quota` bounds.

/// The work after which a connection passes its thread on: about a millisecond at most.
const BUDGET_BYTES: usize = 256 << 10;
/// The work of a command beside its bytes.
const COMMAND_BYTES: usize = 512;

/// The work since the connection last passed its thread on.
#[derive(Debug, Default)]
pub(super) struct WorkBudget(usize);

impl WorkBudget {
    /// Counts received, copied or answered bytes.
    pub(super) fn bytes(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }

    pub(super) fn command(&mut self) {
        self.bytes(COMMAND_BYTES);
    }

    /// Lets the other connections of the thread go first, if the budget is spent.
    pub(super) async fn yield_if_spent(&mut self) {
        if self.0 >= BUDGET_BYTES {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// How often a connection passes its thread on while it works.
    fn passed(times: usize, mut work: impl FnMut(&mut WorkBudget)) -> usize {
        let (mut budget, mut passed) = (WorkBudget::default(), 0);
        for _ in 0..times {
            work(&mut budget);
            let mut pass = pin!(budget.yield_if_spent());
            while pass.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                passed += 1;
            }
        }
        passed
    }

    #[test]
    fn a_budget_is_spent_after_a_number_of_commands_or_bytes() {
        let commands = BUDGET_BYTES / COMMAND_BYTES;
        assert_eq!(passed(commands - 1, WorkBudget::command), 0);
        assert_eq!(passed(10 * commands, WorkBudget::command), 10);
        assert_eq!(passed(10, |budget| budget.bytes(BUDGET_BYTES / 2)), 5);
        assert_eq!(passed(10, |budget| budget.bytes(usize::MAX)), 10);
    }
}
