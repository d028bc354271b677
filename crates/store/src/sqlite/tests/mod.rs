//! Tests that need internals: the file, its neighbours and the settings of connections.
//!
//! The requirements of every backend are in the contract suite (`tests/backends/contract`).

mod backup;
mod crash;
mod file;
mod follow;
mod journal;
mod log;
mod lost;
mod moments;
mod power;
mod rows;
mod schema;

use super::*;
use crate::plan::{BoardNo, BoardRow, Durability, ImportKey, Loaded, ReadSet, ScoreKey, Window, WriteSet};
use crate::{Maintenance, Transactions};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tally_rules::{Micros, PlayerId, Record};
use tempfile::TempDir;

/// A folder with a store's path in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tally.db")
    }

    fn open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(&self.path(), &Options::default())
    }

    /// Names and contents of all files.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    }

    fn names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, _)| name).collect()
    }

    /// Files as a killed process leaves them: a copy of all files as they are now.
    fn killed(&self) -> Self {
        let killed = Self::new();
        for (name, content) in self.files() {
            // The index of a log is memory, not a file that a reader can rely on.
            if !name.ends_with("-shm") {
                std::fs::write(killed.folder.path().join(name), content).unwrap();
            }
        }
        killed
    }

    /// Changes the file without the store.
    fn sql(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }
}

/// Lets other threads end, even after a panic of this one.
struct Stops<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn key(player: &str) -> ScoreKey {
    ScoreKey { board: BoardNo(1), window: Window(0), player: PlayerId::new(player).unwrap() }
}

fn put(store: &SqliteStore, players: impl Iterator<Item = String>, score: i64) -> Result<(), StoreError> {
    put_as(store, players, score, Durability::Commit)
}

fn put_as(
    store: &SqliteStore,
    players: impl Iterator<Item = String>,
    score: i64,
    durability: Durability,
) -> Result<(), StoreError> {
    let record = Record { score, subscore: 0, at: Micros(0) };
    let mut scores: Vec<_> = players.map(|player| (key(&player), Some(record))).collect();
    scores.sort_by(|a, b| a.0.cmp(&b.0));
    let plan = ReadSet { durability, ..ReadSet::default() };
    store.run(&plan, &mut |_| WriteSet { scores: scores.clone(), ..WriteSet::default() }).map(drop)
}

fn gauge(store: &SqliteStore, name: &str) -> f64 {
    store.gauges().into_iter().find(|(gauge, _)| *gauge == name).unwrap().1
}

fn score(store: &SqliteStore, player: &str) -> Option<i64> {
    score_as(store, player, Durability::Commit)
}

fn score_as(store: &SqliteStore, player: &str, durability: Durability) -> Option<i64> {
    let mut seen = None;
    let plan = ReadSet { durability, scores: vec![key(player)], ..ReadSet::default() };
    let mut look = |loaded: &Loaded| {
        seen = loaded.scores[0].map(|record| record.score);
        WriteSet::default()
    };
    store.run(&plan, &mut look).unwrap();
    seen
}
