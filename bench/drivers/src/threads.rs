//! A thread for each connection: how a driver that blocks is used by many callers at once.

use crate::{Failed, Operation, Seen};
use std::sync::Barrier;
use std::time::Instant;

/// Lets each connection do its operations, all beginning together; gives when that was, and what each saw. `submit` gives
/// the score before.
pub(crate) fn run<C, E>(
    callers: Vec<(C, Vec<Operation>)>,
    submit: impl Fn(&mut C, &Operation) -> Result<i64, E> + Sync,
) -> Result<(Instant, Vec<Seen>), Failed>
where
    C: Send,
    E: std::error::Error + Send + Sync + 'static,
{
    let start = Barrier::new(callers.len() + 1);
    std::thread::scope(|scope| {
        let (start, submit) = (&start, &submit);
        let threads: Vec<_> = callers
            .into_iter()
            .map(|(mut connection, operations)| {
                scope.spawn(move || {
                    start.wait();
                    let mut seen = Seen::new(operations.len());
                    for one in &operations {
                        let asked = Instant::now();
                        let previous = submit(&mut connection, one)?;
                        seen.add(asked, previous);
                    }
                    Ok::<_, E>(seen)
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        let seen = threads.into_iter().map(|thread| thread.join().expect("a caller does not panic"));
        Ok((began, seen.collect::<Result<_, _>>()?))
    })
}
