//! The store's files are on a file system of a few megabytes that is full.

use super::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tally_testkit::{DatabaseKind, ScratchDatabase};

const REFUSED_IN_A_ROW: usize = 30;

/// A small file system in memory; it goes with the value.
pub(crate) struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// Nothing where it may not be made; a message says that.
    #[expect(clippy::print_stderr, reason = "whoever reads a run sees that this was not part of it")]
    pub(crate) fn of(mebibytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let options = format!("size={mebibytes}m,mode=0700");
        let made = run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"], folder.path());
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr).into_owned();
            eprintln!("SKIPPED: a file system cannot be made here, which takes root: {why}");
            return None;
        }
        Some(Self { folder })
    }

    fn grow(&self, mebibytes: u32) {
        let options = format!("remount,size={mebibytes}m");
        let grown = run("mount", &["-o", &options], self.folder.path());
        assert!(grown.status.success(), "{}", String::from_utf8_lossy(&grown.stderr));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A task may still be at its end there.
        run("umount", &["--lazy"], self.folder.path());
    }
}

fn run(program: &str, args: &[&str], place: &Path) -> Output {
    let ran = Command::new(program).args(args).arg(place).output();
    ran.unwrap_or_else(|error| panic!("run `{program}`: {error}"))
}

/// Nothing that was answered is lost: now, and for the next server on the same files.
fn check(server: &mut TestTally, taken: usize) {
    server.kill9();
    server.restart();
    assert_eq!(total(&mut server.client()), (taken * ROWS) as u64);
}

#[test]
fn a_file_on_a_full_disk_takes_nothing_and_goes_on_when_there_is_room() {
    let Some(disk) = Disk::of(16) else { return };
    let mut server = TestTally::stopped(TALLY);
    for allowed in
        ["a request met a fault fault=the store is unavailable", "flush the journal", "clean up the store"]
    {
        server.allow(allowed);
    }
    server.set("TALLY_STORE_URL", &format!("sqlite:{}", disk.path("tally.db").display()));
    server.restart();
    let mut client = server.client();
    let mut taken = fill(&server, &mut client, "No space left on device");
    // A flush meanwhile frees a little space, until none is left.
    let mut refused = 0;
    while refused < REFUSED_IN_A_ROW {
        match batch(&mut client, taken) {
            (200, _) => (taken, refused) = (taken + 1, 0),
            (503, answer) => {
                assert_eq!(answer["code"], "store_unavailable", "{answer}");
                refused += 1;
            }
            (status, answer) => panic!("{status} {answer}"),
        }
        assert!(taken < BATCHES_MAX, "more than fits");
    }
    assert_eq!(total(&mut client), (taken * ROWS) as u64);
    disk.grow(64);
    go_on(&mut client, taken);
    check(&mut server, taken + 1);
}

#[test]
fn a_database_on_a_full_disk_takes_nothing_and_goes_on_when_there_is_room() {
    let Some(disk) = Disk::of(12) else { return };
    let database = ScratchDatabase::start(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let name = url.rsplit('/').next().expect("its name");
    // The files of its tables; the server's own wait for space a minute at a time.
    let (before, after) = (database.folder().join("data").join(name), disk.path(name));
    let moved = Command::new("mv").args([&before, &after]).status().expect("there is a `mv`");
    assert!(moved.success(), "its folder can be moved");
    std::os::unix::fs::symlink(&after, &before).expect("it can be linked");
    let mut server = TestTally::stopped(TALLY);
    server.allow("a request met a fault fault=the store is unavailable");
    server.allow("the store has not answered for `store.lease`");
    server.set("TALLY_STORE_URL", &url);
    server.set("TALLY_STORE_LEASE", "4s");
    server.restart();
    let mut client = server.client();
    let taken = fill(&server, &mut client, "full");
    disk.grow(96);
    go_on(&mut client, taken);
    check(&mut server, taken + 1);
}
