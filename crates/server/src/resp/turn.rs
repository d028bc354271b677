//! The share of a connection in its thread.
//!
//! A thread serves its connections one after the other, and a connection goes on while its commands need not wait. So it
//! counts its work, and passes the thread on after a bounded amount. The unit is a byte that is received or answered. A
//! clock would cost more than a short command.
//!
//! Not here: reads that run on the lane or on a blocking thread, which `Quota` bounds.

/// The work of one turn: about a millisecond at most.
const TURN_BYTES: usize = 256 << 10;
/// The work of a command beside its bytes.
const COMMAND_BYTES: usize = 512;

/// The work of the current turn.
#[derive(Debug, Default)]
pub(super) struct Turn(usize);

impl Turn {
    /// Counts received, copied or answered bytes.
    pub(super) fn bytes(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }

    /// Counts a command.
    pub(super) fn command(&mut self) {
        self.bytes(COMMAND_BYTES);
    }

    /// Lets the other connections of the thread go first, if the turn is over.
    pub(super) async fn pass(&mut self) {
        if self.0 >= TURN_BYTES {
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
    fn passed(times: usize, mut work: impl FnMut(&mut Turn)) -> usize {
        let (mut turn, mut passed) = (Turn::default(), 0);
        for _ in 0..times {
            work(&mut turn);
            let mut pass = pin!(turn.pass());
            while pass.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                passed += 1;
            }
        }
        passed
    }

    #[test]
    fn a_turn_ends_after_a_number_of_commands_or_bytes() {
        let commands = TURN_BYTES / COMMAND_BYTES;
        assert_eq!(passed(commands - 1, Turn::command), 0);
        assert_eq!(passed(10 * commands, Turn::command), 10);
        assert_eq!(passed(10, |turn| turn.bytes(TURN_BYTES / 2)), 5);
        assert_eq!(passed(10, |turn| turn.bytes(usize::MAX)), 10);
    }
}
