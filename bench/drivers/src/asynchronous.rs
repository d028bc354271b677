//! The asynchronous driver, `mysql_async`: a task for each connection, a statement in each call.

use crate::{Failed, Mode, Operation, SELECT, SELECT_LOCKING, Seen, UPSERT};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Statement, TxOpts};
use std::time::Instant;

pub(crate) fn run(
    url: &str,
    mode: Mode,
    callers: Vec<Vec<Operation>>,
) -> Result<(Instant, Vec<Seen>), Failed> {
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).tcp_nodelay(true);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connected = Vec::with_capacity(callers.len());
        for operations in callers {
            connected.push((Caller::new(Conn::new(opts.clone()).await?, mode).await?, operations));
        }
        let began = Instant::now();
        let start = |(caller, operations): (Caller, _)| tokio::spawn(caller.call(operations, mode));
        let tasks: Vec<_> = connected.into_iter().map(start).collect();
        let mut seen = Vec::with_capacity(tasks.len());
        for task in tasks {
            seen.push(task.await.expect("a caller does not panic")?);
        }
        Ok((began, seen))
    })
}

/// A connection and its prepared statements: to read and to write, or to call.
struct Caller {
    conn: Conn,
    select: Statement,
    write: Statement,
}

impl Caller {
    async fn new(mut conn: Conn, mode: Mode) -> mysql_async::Result<Self> {
        let select = conn.prep(if mode == Mode::Transaction { SELECT_LOCKING } else { SELECT }).await?;
        let write = conn.prep(mode.call().unwrap_or(UPSERT)).await?;
        Ok(Self { conn, select, write })
    }

    async fn call(mut self, operations: Vec<Operation>, mode: Mode) -> mysql_async::Result<Seen> {
        let mut seen = Seen::new(operations.len());
        for one in &operations {
            let asked = Instant::now();
            let previous = self.submit(one, mode).await?;
            seen.add(asked, previous);
        }
        Ok(seen)
    }

    async fn submit(&mut self, one: &Operation, mode: Mode) -> mysql_async::Result<i64> {
        let (player, row) = ((&one.player,), (&one.player, one.score, one.changed_at));
        let previous: Option<i64> = match mode {
            Mode::Plain => {
                let previous = self.conn.exec_first(&self.select, player).await?;
                self.conn.exec_drop(&self.write, row).await?;
                previous
            }
            Mode::Transaction => {
                let mut transaction = self.conn.start_transaction(TxOpts::default()).await?;
                let previous = transaction.exec_first(&self.select, player).await?;
                transaction.exec_drop(&self.write, row).await?;
                transaction.commit().await?;
                previous
            }
            Mode::Procedure | Mode::TransactionInProcedure => self.conn.exec_first(&self.write, row).await?,
        };
        Ok(previous.expect("every player has a record"))
    }
}
