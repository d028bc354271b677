//! The queue between the threads that log and the thread that writes to stderr.
//!
//! A thread that logs never waits: a line without room is dropped and counted. The reader of stderr may stop reading or end, and
//! the server goes on. Once lines are written again, a line tells how many were dropped. The price is that a process that is
//! killed loses the lines that wait, and one that ends by itself waits for them a second at most.
//!
//! Not here: the form of a line, and lines that repeat each other (`repeats`).

use super::repeats::Repeats;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tally_server::LogLines;

/// Bytes of lines that wait. As many more may be in a write.
const BYTES_MAX: usize = 256 << 10;
/// The pause after a write to a terminal or socket that takes nothing now.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Lines that wait to be written.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    written: Condvar,
    counts: &'static LogLines,
}

struct Waiting {
    bytes: Vec<u8>,
    lines: u64,
    /// Whether other lines are being written.
    writing: bool,
}

impl Queue {
    pub(super) const fn new(counts: &'static LogLines) -> Self {
        let waiting = Mutex::new(Waiting { bytes: Vec::new(), lines: 0, writing: false });
        Self { waiting, filled: Condvar::new(), written: Condvar::new(), counts }
    }

    /// Adds a line, or drops and counts it.
    pub(super) fn push(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.bytes.len() + line.len() > BYTES_MAX {
            self.counts.full.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = waiting.bytes.is_empty();
        waiting.bytes.extend_from_slice(line);
        waiting.lines += 1;
        drop(waiting);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Waits until all lines are written, or for this time.
    pub(super) fn flush(&self, patience: Duration) {
        let pending = |waiting: &mut Waiting| waiting.writing || !waiting.bytes.is_empty();
        // A lock that was poisoned by a panic holds whole lines all the same.
        drop(self.written.wait_timeout_while(self.lock(), patience, pending));
    }

    /// Takes all lines that wait, once there are some or the time is over. Returns their number.
    fn take(&self, batch: &mut Vec<u8>, patience: Option<Duration>) -> u64 {
        batch.clear();
        let mut waiting = self.lock();
        let is_empty = |waiting: &mut Waiting| waiting.bytes.is_empty();
        waiting = match patience {
            None => self.filled.wait_while(waiting, is_empty).unwrap_or_else(PoisonError::into_inner),
            Some(time) => {
                let waited = self.filled.wait_timeout_while(waiting, time, is_empty);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        waiting.writing = true;
        std::mem::swap(&mut waiting.bytes, batch);
        std::mem::take(&mut waiting.lines)
    }

    /// Says that the lines taken last are written.
    fn done(&self) {
        self.lock().writing = false;
        self.written.notify_all();
    }

    /// Writes lines as they come, and tells of dropped and repeated ones.
    pub(super) fn write_all(&self, mut out: impl Write, repeats: &Repeats) {
        let (mut batch, mut told, mut works) = (Vec::new(), self.counts.dropped(), true);
        loop {
            let dropped = self.counts.dropped();
            let is_untold = works && dropped > told;
            let patience = if is_untold { Some(Duration::ZERO) } else { repeats.patience(Instant::now()) };
            let lines = self.take(&mut batch, patience);
            // The queue is empty now, so it has room for these lines.
            if is_untold {
                tracing::warn!(lines = dropped - told, "lines of the log were dropped: stderr was not read");
                told = dropped;
            }
            repeats.tell(Instant::now());
            if lines > 0 {
                works = write(&mut out, &batch).is_ok();
                let count = if works { &self.counts.written } else { &self.counts.failed };
                count.fetch_add(lines, Ordering::Relaxed);
            }
            self.done();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes all bytes, also to a file that does not block.
fn write(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(BUSY_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> (&'static Queue, &'static LogLines) {
        let counts: &'static LogLines = Box::leak(Box::default());
        (Box::leak(Box::new(Queue::new(counts))), counts)
    }

    #[test]
    fn a_line_without_room_is_dropped_whole_and_counted() {
        let (queue, counts) = queue();
        let line = vec![b'x'; BYTES_MAX / 4 - 1];
        (0..6).for_each(|_| queue.push(&line));
        queue.push(b"end\n");
        assert_eq!(counts.full.load(Ordering::Relaxed), 2);
        let mut batch = Vec::new();
        assert_eq!(queue.take(&mut batch, None), 5);
        assert_eq!((batch.len(), &batch[batch.len() - 4..]), (4 * line.len() + 4, b"end\n".as_slice()));
        queue.push(&line);
        assert_eq!(queue.take(&mut batch, None), 1, "there is room again");
    }

    #[test]
    fn a_writer_that_takes_little_or_nothing_at_times_gets_everything() {
        struct Slow(Vec<u8>, u32);
        impl Write for Slow {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.1 += 1;
                match self.1 % 3 {
                    0 => Err(ErrorKind::WouldBlock.into()),
                    1 => Err(ErrorKind::Interrupted.into()),
                    _ => {
                        self.0.push(bytes[0]);
                        Ok(1)
                    }
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut slow = Slow(Vec::new(), 0);
        write(&mut slow, b"line\n").unwrap();
        assert_eq!(slow.0, b"line\n");
    }
}
