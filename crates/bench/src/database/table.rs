//! The table of a client without a service: a row for each player, one primary key, nothing else.
//!
//! Names are bytes, so that both sides sort alike. The database's own bulk load fills it from a file in order of keys,
//! which is the fastest way. Not here: the statements of scenarios.

use super::connect;
use crate::submit::Contents;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, WhiteListFsHandler};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows of one step of a range scan.
const SCAN_ROWS: u64 = 50_000;

/// A row: player, score, instant.
pub(crate) type Row = (String, i64, i64);

/// Makes the empty table.
pub(crate) async fn create(conn: &mut Conn, name: &str) -> mysql_async::Result<()> {
    conn.query_drop(format!("DROP TABLE IF EXISTS {name}")).await?;
    conn.query_drop(format!(
        "CREATE TABLE {name} (player VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, \
         score BIGINT NOT NULL, changed_at BIGINT NOT NULL) ENGINE = InnoDB"
    ))
    .await
}

/// Makes a table with the rows of another.
pub(crate) async fn copy(conn: &mut Conn, from: &str, to: &str) -> mysql_async::Result<()> {
    create(conn, to).await?;
    conn.query_drop(format!("INSERT INTO {to} SELECT * FROM {from} ORDER BY player")).await
}

/// A file that [`load`] takes: rows in order of players.
pub(crate) struct Lines(BufWriter<File>);

impl Lines {
    pub(crate) fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self(BufWriter::new(File::create(path)?)))
    }

    pub(crate) fn add(&mut self, (player, score, changed_at): &Row) -> std::io::Result<()> {
        writeln!(self.0, "{player}\t{score}\t{changed_at}")
    }

    /// Synced, so that writing it is not part of the next measurement.
    pub(crate) fn end(self) -> std::io::Result<()> {
        self.0.into_inner()?.sync_all()
    }
}

/// Loads a file into an empty table; returns the time.
pub(crate) async fn load(url: &str, name: &str, path: &Path) -> mysql_async::Result<Duration> {
    let files = WhiteListFsHandler::new([path]);
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false);
    let mut conn = Conn::new(opts.local_infile_handler(Some(files))).await?;
    create(&mut conn, name).await?;
    let began = Instant::now();
    conn.query_drop(format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE {name}", path.display())).await?;
    let took = began.elapsed();
    conn.disconnect().await?;
    Ok(took)
}

/// The rows of the table, in order of players.
pub(crate) async fn contents(url: &str, name: &str) -> mysql_async::Result<Contents> {
    let mut contents = Contents::default();
    read_rows(url, name, |(player, score, changed_at)| contents.add(player, *score, 0, *changed_at)).await?;
    Ok(contents)
}

/// Every row, in order of players.
pub(crate) async fn read_rows(url: &str, name: &str, mut each: impl FnMut(&Row)) -> mysql_async::Result<()> {
    let mut conn = connect(url).await?;
    let statement = format!(
        "SELECT player, score, changed_at FROM {name} WHERE player > ? ORDER BY player LIMIT {SCAN_ROWS}"
    );
    let mut last = String::new();
    loop {
        let page: Vec<Row> = conn.exec(&statement, (&last,)).await?;
        page.iter().for_each(&mut each);
        match page.into_iter().next_back() {
            Some((player, ..)) => last = player,
            None => break,
        }
    }
    conn.disconnect().await
}
