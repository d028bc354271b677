//! A blocking ORM, `diesel`, and a thread for each connection. It keeps the statements it has prepared.

use crate::{Failed, Mode, Operation, Seen, threads};
use diesel::prelude::*;
use std::time::Instant;

diesel::table! {
    records (player) {
        player -> Text,
        score -> BigInt,
        changed_at -> BigInt,
    }
}

/// A row, to be written.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = records)]
struct Record<'a> {
    player: &'a str,
    score: i64,
    changed_at: i64,
}

pub(crate) fn run(
    url: &str,
    mode: Mode,
    callers: Vec<Vec<Operation>>,
) -> Result<(Instant, Vec<Seen>), Failed> {
    if mode.call().is_some() {
        return Err(
            "diesel cannot read what a procedure gives: it prepares the call, which then has no columns"
                .into(),
        );
    }
    let mut connected = Vec::with_capacity(callers.len());
    for operations in callers {
        connected.push((MysqlConnection::establish(url)?, operations));
    }
    threads::run(connected, |conn, one| submit(conn, one, mode))
}

fn submit(conn: &mut MysqlConnection, one: &Operation, mode: Mode) -> QueryResult<i64> {
    let of_player = || records::table.find(&one.player).select(records::score);
    match mode {
        Mode::Plain => {
            let previous = of_player().first(conn)?;
            write(conn, one)?;
            Ok(previous)
        }
        Mode::Transaction => conn.transaction(|conn| {
            let previous = of_player().for_update().first(conn)?;
            write(conn, one)?;
            Ok(previous)
        }),
        Mode::Procedure | Mode::TransactionInProcedure => {
            unreachable!("refused before: diesel cannot read what a procedure gives")
        }
    }
}

fn write(conn: &mut MysqlConnection, one: &Operation) -> QueryResult<usize> {
    let record = Record { player: &one.player, score: one.score, changed_at: one.changed_at };
    diesel::insert_into(records::table)
        .values(&record)
        .on_conflict(diesel::dsl::DuplicatedKeys)
        .do_update()
        .set(&record)
        .execute(conn)
}
