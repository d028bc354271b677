//! A client without a service: three tables, prepared statements, a save for each member.
//!
//! It reads the state and the accepted applications, and writes members one after the other (each its own commit, or all
//! in one). Then it changes the state, and deletes the contest's applications by its key. It makes no leaderboard and
//! checks no rules.

use super::{Place, Stands, Way};
use crate::database::connect;
use crate::error::{During, Error};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Statement};
use rusqlite::{Connection, params};
use std::path::Path;
use tally_load::player;
use tokio::runtime::Runtime;

const TABLES: [&str; 3] = [
    "CREATE TABLE contests (id INTEGER NOT NULL PRIMARY KEY, state VARCHAR(16) NOT NULL)",
    "CREATE TABLE applications (contest INTEGER NOT NULL, player VARCHAR(64) NOT NULL, place INTEGER NOT NULL, \
     status VARCHAR(16) NOT NULL, PRIMARY KEY (contest, player))",
    "CREATE TABLE members (contest INTEGER NOT NULL, player VARCHAR(64) NOT NULL, place INTEGER NOT NULL, \
     PRIMARY KEY (contest, player))",
];
const STATE: &str = "SELECT state FROM contests WHERE id = ?";
const ACCEPTED: &str =
    "SELECT player FROM applications WHERE contest = ? AND status = 'accepted' ORDER BY place";
const SAVE: &str = "INSERT INTO members (contest, player, place) VALUES (?, ?, ?)";
const RUN: &str = "UPDATE contests SET state = 'running' WHERE id = ?";
const CLEAR: &str = "DELETE FROM applications WHERE contest = ?";
const OPEN: &str = "INSERT INTO contests (id, state) VALUES (?, 'open')";
const APPLY: &str = "INSERT INTO applications (contest, player, place, status) VALUES (?, ?, ?, 'accepted')";
const COUNTS: &str = "SELECT (SELECT COUNT(*) FROM members WHERE contest = ?), \
     (SELECT COUNT(*) FROM applications WHERE contest = ?), state FROM contests WHERE id = ?";

/// On SQLite, as durable as the product.
pub(super) struct OnSqlite {
    connection: Connection,
    way: Way,
}

impl OnSqlite {
    pub(super) fn open(path: &Path, way: Way) -> Result<Self, Error> {
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
            TABLES.iter().try_for_each(|table| connection.execute_batch(table))?;
            Ok(connection)
        };
        Ok(Self { connection: open().during("make the baseline tables")?, way })
    }

    fn begin(&self, sql: &str) -> rusqlite::Result<()> {
        if self.way == Way::Loop { self.connection.execute_batch(sql) } else { Ok(()) }
    }

    fn start_it(&self, contest: u32) -> rusqlite::Result<()> {
        let conn = &self.connection;
        self.begin("BEGIN IMMEDIATE")?;
        let state: String = conn.prepare_cached(STATE)?.query_row([contest], |row| row.get(0))?;
        assert_eq!(state, "open");
        let accepted: Vec<String> = conn
            .prepare_cached(ACCEPTED)?
            .query_map([contest], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for (place, player) in (0_u32..).zip(&accepted) {
            conn.prepare_cached(SAVE)?.execute(params![contest, player, place])?;
        }
        conn.prepare_cached(RUN)?.execute([contest])?;
        conn.prepare_cached(CLEAR)?.execute([contest])?;
        self.begin("COMMIT")
    }
}

impl Place for OnSqlite {
    fn prepare(&mut self, contest: u32, members: u32) -> Result<(), Error> {
        let fill = || -> rusqlite::Result<()> {
            let conn = &self.connection;
            conn.execute_batch("BEGIN IMMEDIATE")?;
            conn.prepare_cached(OPEN)?.execute([contest])?;
            for place in 0..members {
                let row = params![contest, player(place.into()), place];
                conn.prepare_cached(APPLY)?.execute(row)?;
            }
            conn.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
        };
        fill().during("fill the baseline tables")
    }

    fn start(&mut self, contest: u32) -> Result<(), Error> {
        self.start_it(contest).during("start the baseline contest")
    }

    fn stands(&mut self, contest: u32) -> Result<Stands, Error> {
        let stands = |row: &rusqlite::Row<'_>| {
            let runs = row.get::<_, String>(2)? == "running";
            Ok(Stands { members: row.get(0)?, applications: row.get(1)?, runs })
        };
        let row = params![contest, contest, contest];
        self.connection.query_row(COUNTS, row, stands).during("read the baseline contest")
    }
}

/// On MariaDB or MySQL.
pub(super) struct OnMySql<'a> {
    runtime: &'a Runtime,
    conn: Conn,
    save: Statement,
    way: Way,
}

impl<'a> OnMySql<'a> {
    pub(super) fn open(runtime: &'a Runtime, url: &str, way: Way) -> Result<Self, Error> {
        let made = runtime.block_on(async {
            let mut conn = connect(url).await?;
            for table in TABLES {
                conn.query_drop(table).await?;
            }
            let save = conn.prep(SAVE).await?;
            Ok::<_, mysql_async::Error>((conn, save))
        });
        let (conn, save) = made.during("make the baseline tables")?;
        Ok(Self { runtime, conn, save, way })
    }

    async fn start_it(&mut self, contest: u32) -> mysql_async::Result<()> {
        let (conn, in_one) = (&mut self.conn, self.way == Way::Loop);
        if in_one {
            conn.query_drop("BEGIN").await?;
        }
        let state: Option<String> = conn.exec_first(STATE, (contest,)).await?;
        assert_eq!(state.as_deref(), Some("open"));
        let accepted: Vec<String> = conn.exec(ACCEPTED, (contest,)).await?;
        for (place, player) in (0_u32..).zip(&accepted) {
            conn.exec_drop(&self.save, (contest, player, place)).await?;
        }
        conn.exec_drop(RUN, (contest,)).await?;
        conn.exec_drop(CLEAR, (contest,)).await?;
        if in_one { conn.query_drop("COMMIT").await } else { Ok(()) }
    }
}

impl Place for OnMySql<'_> {
    fn prepare(&mut self, contest: u32, members: u32) -> Result<(), Error> {
        let (runtime, conn) = (self.runtime, &mut self.conn);
        let filled = runtime.block_on(async {
            conn.query_drop("BEGIN").await?;
            conn.exec_drop(OPEN, (contest,)).await?;
            conn.exec_batch(APPLY, (0..members).map(|place| (contest, player(place.into()), place))).await?;
            conn.query_drop("COMMIT").await
        });
        filled.during("fill the baseline tables")
    }

    fn start(&mut self, contest: u32) -> Result<(), Error> {
        let runtime = self.runtime;
        runtime.block_on(self.start_it(contest)).during("start the baseline contest")
    }

    fn stands(&mut self, contest: u32) -> Result<Stands, Error> {
        let (runtime, conn) = (self.runtime, &mut self.conn);
        let row = runtime.block_on(conn.exec_first(COUNTS, (contest, contest, contest)));
        let row: Option<(u32, u32, String)> = row.during("read the baseline contest")?;
        let (members, applications, state) = row.expect("it was made");
        Ok(Stands { members, applications, runs: state == "running" })
    }
}
