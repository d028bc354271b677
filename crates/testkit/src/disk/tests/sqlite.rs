//! SQLite on the simulated disk: it keeps its promises there, and it breaks where the disk or the settings break them.
//!
//! A workload runs once for each operation at which the power is cut. Each cut leaves several images, and each of them
//! is opened on a disk of its own. Not here: the store.

use super::*;
use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OpenFlags, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn open(disk: &SimulatedDisk) -> Result<Connection> {
    open_file(disk, "t.db")
}

fn open_file(disk: &SimulatedDisk, name: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    Connection::open_with_flags_and_vfs(disk.folder().join(name), flags, disk.vfs().unwrap())
}

fn begin(disk: &SimulatedDisk, journal: &str, synchronous: &str) -> Result<Connection> {
    let db = open(disk)?;
    // The change commits after its row. So the statement runs to its end, which `query_row` does not do.
    db.prepare(&format!("PRAGMA journal_mode = {journal}"))?
        .query_map([], |_| Ok(()))?
        .collect::<Result<()>>()?;
    db.pragma_update(None, "synchronous", synchronous)?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.execute_batch("CREATE TABLE IF NOT EXISTS t (no INTEGER PRIMARY KEY, body BLOB)")?;
    Ok(db)
}

fn insert(db: &Connection, no: u32) -> Result<()> {
    // Some rows take pages of their own.
    let body = vec![7u8; if no.is_multiple_of(3) { 9_000 } else { 50 }];
    db.execute("INSERT INTO t VALUES (?1, ?2)", (no, body)).map(drop)
}

fn checkpoint(db: &Connection, mode: &str) -> Result<(bool, i64, i64)> {
    db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}

/// Inserts rows until something fails, with a checkpoint of each kind between. Counts rows that were reported as safe.
fn workload(disk: &SimulatedDisk, journal: &str, synchronous: &str, safe: &mut u32) -> Result<Connection> {
    let db = begin(disk, journal, synchronous)?;
    for no in 1..=24 {
        insert(&db, no)?;
        *safe = no;
        if journal == "WAL" && no.is_multiple_of(6) {
            let mode = ["PASSIVE", "RESTART", "TRUNCATE", "PASSIVE"][usize::try_from(no / 6 - 1).unwrap()];
            assert!(!checkpoint(&db, mode)?.0, "nothing else uses the file");
        }
    }
    Ok(db)
}

/// The number of rows in a folder: rows from 1 on, without a gap.
fn rows(folder: &Path) -> Result<u32, String> {
    let read = || -> Result<(String, u32, u32)> {
        let db = open(&SimulatedDisk::at(folder))?;
        let verdict = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let tables: u32 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            return Ok((verdict, 0, 0));
        }
        let ends = "SELECT count(*), coalesce(max(no), 0) FROM t";
        let (count, last) = db.query_row(ends, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((verdict, count, last))
    };
    let (verdict, count, last) = read().map_err(|error| error.to_string())?;
    if verdict == "ok" && count == last {
        Ok(count)
    } else {
        Err(format!("{verdict}: {count} of {last} rows"))
    }
}

/// Cuts the power at every operation. Returns for each image the number of safe rows, and of the rows that it has.
fn cut_everywhere(journal: &str, synchronous: &str, images_each: usize) -> Vec<(u32, Result<u32, String>)> {
    let (mut found, mut torn) = (Vec::new(), 0);
    let mut images = Images::new(synchronous);
    for number in 1u64.. {
        let (disk, mut safe) = (SimulatedDisk::new(), 0);
        disk.stop_at(number);
        let result = workload(&disk, journal, synchronous, &mut safe).map(drop);
        assert_eq!(disk.unrecorded().unwrap(), [""; 0].map(PathBuf::from));
        let mut folders: Vec<_> =
            [PowerCut::DropAll, PowerCut::KeepAll].map(|mode| images.take_of(&disk, mode)).into();
        for _ in 0..images_each {
            let (folder, stats) = images.take(&disk);
            torn += stats.torn;
            folders.push(folder);
        }
        for folder in folders {
            found.push((safe, rows(&folder)));
            std::fs::remove_dir_all(folder).unwrap();
        }
        if !disk.stopped() {
            result.unwrap();
            break;
        }
        assert!(result.is_err() || safe == 24, "the workload went on without power");
    }
    assert!(torn > 20, "{torn} writes were torn");
    found
}

fn assert_safe(found: &[(u32, Result<u32, String>)]) {
    assert!(found.len() > 500, "{} images", found.len());
    for (safe, rows) in found {
        let rows = rows.as_ref().unwrap_or_else(|error| panic!("{safe} rows were safe: {error}"));
        // An interrupted commit may be there too.
        assert!((*safe..=safe + 1).contains(rows), "{safe} rows were safe, {rows} are there");
    }
}

#[test]
fn rows_in_the_log_survive_every_cut() {
    assert_safe(&cut_everywhere("WAL", "FULL", 4));
}

#[test]
fn rows_survive_every_cut_with_a_rollback_journal() {
    assert_safe(&cut_everywhere("DELETE", "EXTRA", 4));
}

#[test]
fn without_syncs_rows_are_lost_and_files_damaged() {
    let found = cut_everywhere("WAL", "OFF", 4);
    let lost = found.iter().filter(|(safe, rows)| rows.as_ref().is_ok_and(|rows| rows < safe)).count();
    let damaged = found.iter().filter(|(_, rows)| rows.is_err()).count();
    assert!(lost > 50 && damaged > 0, "{lost} of {} images lost rows, {damaged} are damaged", found.len());
}

#[test]
fn the_removal_of_a_journal_needs_a_synced_folder() {
    // `FULL` removes the journal without a sync of its folder, so the journal comes back and undoes the commit.
    let found = cut_everywhere("DELETE", "FULL", 4);
    assert!(found.iter().any(|(safe, rows)| *rows.as_ref().unwrap() < *safe));
}

#[test]
fn a_commit_whose_sync_failed_is_there_or_not() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("failed commit"));
    let db = begin(&disk, "WAL", "FULL").unwrap();
    (1..=5).for_each(|no| insert(&db, no).unwrap());
    disk.fail(DiskFault::new(1, DiskError::Io).of(Operation::Sync).on("-wal"));
    let error = insert(&db, 6).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure));
    assert_eq!(disk.injected(), 1);
    let left: BTreeSet<u32> = (0..100).map(|_| rows(&images.take(&disk).0).unwrap()).collect();
    assert_eq!(left, BTreeSet::from([5, 6]));
    // SQLite writes the same position of the log again, and a sync then makes it durable.
    insert(&db, 6).unwrap();
    insert(&db, 7).unwrap();
    let left: BTreeSet<u32> = (0..100).map(|_| rows(&images.take(&disk).0).unwrap()).collect();
    assert_eq!(left, BTreeSet::from([7]));
}

#[test]
fn sqlite_reports_an_error_of_every_operation() {
    let mut reported = BTreeSet::new();
    for (error, lasting) in [(DiskError::Io, false), (DiskError::Io, true), (DiskError::ShortWrite, true)] {
        for number in 1u64.. {
            let (disk, mut safe) = (SimulatedDisk::new(), 0);
            let fault = DiskFault::new(number, error);
            disk.fail(if lasting { fault.lasting() } else { fault });
            let result = workload(&disk, "WAL", "FULL", &mut safe);
            assert_eq!(disk.unrecorded().unwrap(), [""; 0].map(PathBuf::from));
            // SQLite ignores errors of a close.
            let injected = disk.injected();
            disk.heal();
            if injected == 0 {
                result.unwrap();
                break;
            }
            let (operation, name) = &disk.history()[usize::try_from(number).unwrap() - 1];
            let what = format!("{error:?} at {operation:?} {number} of {}", name.display());
            assert!(result.is_err(), "{what} was not reported");
            reported.insert(*operation);
            // Without a power cut nothing is lost, and the files work again.
            let rows = rows(disk.folder()).expect(&what);
            assert!((safe..=safe + 1).contains(&rows), "{what}: {safe} rows were safe, {rows} are there");
        }
    }
    let all = [Operation::Write, Operation::SetLen, Operation::Sync, Operation::Create, Operation::Remove];
    assert_eq!(reported, BTreeSet::from(all));
}

#[test]
fn connections_share_the_log_and_checkpoints_wait_for_readers() {
    let disk = SimulatedDisk::new();
    let [writer, reader] = [begin(&disk, "WAL", "FULL").unwrap(), begin(&disk, "WAL", "FULL").unwrap()];
    let seen = |db: &Connection| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, u32>(0));
    insert(&writer, 1).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(seen(&reader), Ok(1));
    insert(&writer, 2).unwrap();
    assert_eq!((seen(&reader), seen(&writer)), (Ok(1), Ok(2)));
    reader.busy_timeout(Duration::ZERO).unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    let (busy, pages, done) = checkpoint(&writer, "PASSIVE").unwrap();
    assert!(!busy && done < pages, "{done} of {pages}");
    assert!(checkpoint(&writer, "RESTART").unwrap().0);
    reader.execute_batch("COMMIT").unwrap();
    for mode in ["PASSIVE", "RESTART", "TRUNCATE"] {
        let (busy, pages, done) = checkpoint(&writer, mode).unwrap();
        assert!(!busy && done == pages, "{mode}: {done} of {pages}");
    }
    assert_eq!(std::fs::metadata(disk.folder().join("t.db-wal")).unwrap().len(), 0);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(insert(&reader, 3).unwrap_err().sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    writer.execute_batch("COMMIT; VACUUM").unwrap();
    insert(&reader, 3).unwrap();
    assert_eq!(seen(&writer), Ok(3));
    // A connection outlives its disk.
    let folder = disk.folder().to_owned();
    drop(disk);
    drop(writer);
    insert(&reader, 4).unwrap();
    drop(reader);
    assert!(!folder.exists());
}

#[test]
fn images_are_taken_while_threads_write() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("threads"));
    let safe = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let db = begin(&disk, "WAL", "FULL").unwrap();
            for no in 1..=200 {
                insert(&db, no).unwrap();
                safe.store(no, Ordering::SeqCst);
                if no.is_multiple_of(50) {
                    checkpoint(&db, "PASSIVE").unwrap();
                }
            }
        });
        let mut last = false;
        while !last {
            last = writer.is_finished();
            let before = safe.load(Ordering::SeqCst);
            let (folder, _) = images.take(&disk);
            let after = safe.load(Ordering::SeqCst) + 1;
            let rows = rows(&folder).unwrap();
            assert!((before..=after).contains(&rows), "{before} rows were safe, {rows} are there");
            std::fs::remove_dir_all(folder).unwrap();
        }
    });
}

#[test]
fn a_backup_is_durable_when_it_was_synced_and_renamed() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("backup"));
    let db = begin(&disk, "WAL", "FULL").unwrap();
    (1..=9).for_each(|no| insert(&db, no).unwrap());
    let mut copy = open_file(&disk, "copy").unwrap();
    copy.pragma_update(None, "synchronous", "OFF").unwrap();
    Backup::new(&db, &mut copy).unwrap().run_to_completion(2, Duration::ZERO, None).unwrap();
    drop(copy);
    let copied = |images: &mut Images| {
        let folder = images.take_of(&disk, PowerCut::DropAll);
        std::fs::rename(folder.join("other"), folder.join("t.db")).ok()?;
        std::fs::remove_file(folder.join("t.db-wal")).unwrap();
        Some(rows(&folder))
    };
    let path = |name: &str| disk.folder().join(name);
    disk.rename(&path("copy"), &path("other")).unwrap();
    assert_eq!(copied(&mut images), None);
    disk.sync_folder(disk.folder()).unwrap();
    assert_ne!(copied(&mut images), Some(Ok(9)));
    disk.open(&path("other")).unwrap().sync().unwrap();
    assert_eq!(copied(&mut images), Some(Ok(9)));
}
