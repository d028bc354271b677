//! A blocking driver, `mysql`, and a thread for each connection.

use crate::{Failed, Mode, Operation, SELECT, SELECT_LOCKING, Seen, UPSERT, threads};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Statement, TxOpts};
use std::time::Instant;

pub(crate) fn run(
    url: &str,
    mode: Mode,
    callers: Vec<Vec<Operation>>,
) -> Result<(Instant, Vec<Seen>), Failed> {
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).tcp_nodelay(true);
    let mut connected = Vec::with_capacity(callers.len());
    for operations in callers {
        connected.push((Caller::new(Conn::new(opts.clone())?, mode)?, operations));
    }
    threads::run(connected, |caller, one| caller.submit(one, mode))
}

/// A connection and its prepared statements: to read and to write, or to call.
struct Caller {
    conn: Conn,
    select: Statement,
    write: Statement,
}

impl Caller {
    fn new(mut conn: Conn, mode: Mode) -> mysql::Result<Self> {
        let select = conn.prep(if mode == Mode::Transaction { SELECT_LOCKING } else { SELECT })?;
        let write = conn.prep(mode.call().unwrap_or(UPSERT))?;
        Ok(Self { conn, select, write })
    }

    fn submit(&mut self, one: &Operation, mode: Mode) -> mysql::Result<i64> {
        let (player, row) = ((&one.player,), (&one.player, one.score, one.changed_at));
        let previous: Option<i64> = match mode {
            Mode::Plain => {
                let previous = self.conn.exec_first(&self.select, player)?;
                self.conn.exec_drop(&self.write, row)?;
                previous
            }
            Mode::Transaction => {
                let mut transaction = self.conn.start_transaction(TxOpts::default())?;
                let previous = transaction.exec_first(&self.select, player)?;
                transaction.exec_drop(&self.write, row)?;
                transaction.commit()?;
                previous
            }
            Mode::Procedure | Mode::TransactionInProcedure => self.conn.exec_first(&self.write, row)?,
        };
        Ok(previous.expect("every player has a record"))
    }
}
