//! Tests of the simulated disk by itself: what it keeps and what it drops.
//!
//! Not here: SQLite on it (`sqlite`).

mod sqlite;

use super::*;
use std::collections::BTreeSet;

/// Images of a disk, each in a folder of its own.
struct Images {
    folder: TempDir,
    taken: usize,
    rng: Rng,
}

impl Images {
    fn new(purpose: &str) -> Self {
        Self { folder: scratch_folder(), taken: 0, rng: Rng::of(purpose) }
    }

    fn take(&mut self, disk: &SimulatedDisk) -> (PathBuf, ImageStats) {
        let into = self.next();
        let stats = disk.image(&mut self.rng, &into).unwrap();
        (into, stats)
    }

    fn take_of(&mut self, disk: &SimulatedDisk, mode: PowerCut) -> PathBuf {
        let into = self.next();
        disk.image_of(mode, &into).unwrap();
        into
    }

    fn next(&mut self) -> PathBuf {
        self.taken += 1;
        self.folder.path().join(self.taken.to_string())
    }
}

/// The files of an image: `name=contents`, in order.
fn shown(folder: &Path) -> String {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            format!("{name}={}", String::from_utf8(std::fs::read(path).unwrap()).unwrap())
        })
        .collect();
    files.sort();
    files.join(" ")
}

fn shown_of(disk: &SimulatedDisk, images: &mut Images) -> [String; 2] {
    [PowerCut::DropAll, PowerCut::KeepAll].map(|mode| shown(&images.take_of(disk, mode)))
}

/// A file with synced contents and a synced name.
fn file(disk: &SimulatedDisk, name: &str, contents: &str) -> Arc<dyn DiskFile> {
    let file = disk.create(&disk.folder().join(name)).unwrap();
    file.write_at(0, contents.as_bytes()).unwrap();
    file.sync().unwrap();
    disk.sync_folder(disk.folder()).unwrap();
    file
}

#[test]
fn contents_and_names_need_syncs_of_their_own() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("names"));
    let path = |name: &str| disk.folder().join(name);
    let new = disk.create(&path("new")).unwrap();
    new.write_at(1, b"abc").unwrap();
    new.set_len(3).unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["", "new=\0ab"]);
    disk.sync_folder(disk.folder()).unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["new=", "new=\0ab"]);
    new.sync().unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["new=\0ab", "new=\0ab"]);
    disk.rename(&path("new"), &path("other")).unwrap();
    new.write_at(0, b"xyz").unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["new=\0ab", "other=xyz"]);
    disk.create(&path("other")).unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["new=\0ab", "other="]);
    disk.sync_folder(disk.folder()).unwrap();
    disk.remove(&path("other")).unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["other=\0ab", ""]);
    disk.sync_folder(disk.folder()).unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["", ""]);
    assert_eq!((disk.operations(), disk.syncs()), (11, 1));
    assert_eq!(disk.count(Operation::Create), 2);
    assert_eq!(disk.history()[4], (Operation::Sync, Path::new("new").into()));
    // The descriptor outlives the name, and the folder outlives the disk.
    drop(disk);
    new.write_at(0, b"w").unwrap();
    assert_eq!(new.length().unwrap(), 1);
}

#[test]
fn renames_without_a_synced_folder_are_lost_in_some_image() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("renames"));
    file(&disk, "a", "old");
    let new = file(&disk, "a.new", "new");
    disk.rename(&disk.folder().join("a.new"), &disk.folder().join("a")).unwrap();
    new.sync().unwrap();
    let seen: BTreeSet<String> = (0..50).map(|_| shown(&images.take(&disk).0)).collect();
    assert_eq!(seen, BTreeSet::from(["a=new".into(), "a.new=new a=old".into()]));
    disk.sync_folder(disk.folder()).unwrap();
    let seen: BTreeSet<String> = (0..50).map(|_| shown(&images.take(&disk).0)).collect();
    assert_eq!(seen, BTreeSet::from(["a=new".into()]));
}

#[test]
fn images_of_one_seed_are_the_same_and_writes_are_torn() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("torn"));
    let written = file(&disk, "a", &"o".repeat(4096));
    for at in 0..20 {
        written.write_at(at * 300, &[b'a' + u8::try_from(at).unwrap(); 1500]).unwrap();
    }
    let (mut seen, mut sum) = (BTreeSet::new(), ImageStats::default());
    for seed in 0..200 {
        let [first, second] = [0, 1].map(|_| {
            let into = images.next();
            let stats = disk.image(&mut Rng::new(seed), &into).unwrap();
            (shown(&into), stats)
        });
        assert_eq!(first, second);
        assert_eq!(first.1.kept + first.1.dropped + first.1.torn, 20);
        sum.kept += first.1.kept;
        sum.dropped += first.1.dropped;
        sum.torn += first.1.torn;
        seen.insert(first.0);
    }
    assert!(seen.len() > 100, "{} different images", seen.len());
    assert!(sum.kept > 500 && sum.dropped > 500 && sum.torn > 100, "{sum:?}");
}

#[test]
fn one_moment_is_kept_across_files_in_some_images() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("moment"));
    let files = [file(&disk, "a", "0"), file(&disk, "b", "0")];
    for round in 1..9u8 {
        files.iter().for_each(|file| file.write_at(0, &[b'0' + round]).unwrap());
    }
    let seen: BTreeSet<String> = (0..1_500).map(|_| shown(&images.take(&disk).0)).collect();
    assert!((1..9).all(|round| seen.contains(&format!("a={round} b={round}"))), "{seen:?}");
    assert!(seen.contains("a=0 b=8") && seen.contains("a=8 b=0"), "{seen:?}");
}

#[test]
fn a_failed_sync_is_reported_once_per_descriptor_and_never_made_good() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("failed sync"));
    let first = file(&disk, "a", "old");
    let second = disk.open(&disk.folder().join("a")).unwrap();
    first.write_at(0, b"new").unwrap();
    disk.fail(DiskFault::new(1, DiskError::Io).of(Operation::Sync));
    assert_eq!(first.sync().unwrap_err().raw_os_error(), Some(5));
    assert_eq!(std::fs::read(disk.folder().join("a")).unwrap(), b"new");
    first.sync().unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["a=old", "a=new"]);
    second.sync().unwrap_err();
    second.sync().unwrap();
    disk.open(&disk.folder().join("a")).unwrap().sync().unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["a=old", "a=new"]);
    assert_eq!(disk.injected(), 2);
    let seen: BTreeSet<String> = (0..50).map(|_| shown(&images.take(&disk).0)).collect();
    assert_eq!(seen, BTreeSet::from(["a=new".into(), "a=old".into()]));
    second.write_at(0, b"NEW").unwrap();
    first.sync().unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["a=NEW", "a=NEW"]);
}

#[test]
fn faults_wait_for_their_operation_and_last_until_healed() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("faults"));
    let (one, two) = (file(&disk, "one", "....."), file(&disk, "two", "....."));
    disk.fail(DiskFault::new(2, DiskError::ShortWrite).of(Operation::Write).on("two"));
    one.write_at(0, b"a").unwrap();
    two.write_at(0, b"b").unwrap();
    one.write_at(1, b"c").unwrap();
    assert_eq!(two.write_at(1, b"defg").unwrap_err().kind(), io::ErrorKind::StorageFull);
    two.write_at(4, b"h").unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["one=..... two=.....", "one=ac... two=bde.h"]);
    disk.fail(DiskFault::new(2, DiskError::Full).lasting());
    one.set_len(2).unwrap();
    assert_eq!(one.set_len(1).unwrap_err().kind(), io::ErrorKind::StorageFull);
    disk.create(&disk.folder().join("three")).unwrap_err();
    disk.remove(&disk.folder().join("one")).unwrap_err();
    disk.rename(&disk.folder().join("one"), &disk.folder().join("two")).unwrap_err();
    disk.sync_folder(disk.folder()).unwrap_err();
    assert_eq!(disk.injected(), 6);
    disk.heal();
    one.sync().unwrap();
    assert_eq!(shown_of(&disk, &mut images), ["one=ac two=.....", "one=ac two=bde.h"]);
    assert_eq!(shown(disk.folder()), "one=ac two=bde.h");
}

#[test]
fn nothing_changes_once_the_power_is_cut() {
    let (disk, mut images) = (SimulatedDisk::new(), Images::new("stop"));
    let cut = file(&disk, "a", "old");
    disk.stop_at(disk.operations() + 2);
    cut.write_at(0, b"new").unwrap();
    assert!(!disk.stopped());
    cut.sync().unwrap_err();
    assert!(disk.stopped());
    disk.heal();
    cut.write_at(0, b"xyz").unwrap_err();
    disk.remove(&disk.folder().join("a")).unwrap_err();
    assert_eq!(shown_of(&disk, &mut images), ["a=old", "a=new"]);
    assert_eq!((disk.injected(), shown(disk.folder())), (0, "a=new".into()));
    let next = SimulatedDisk::at(&images.take_of(&disk, PowerCut::KeepAll));
    assert_eq!(shown_of(&next, &mut images), ["a=new", "a=new"]);
}

#[test]
fn files_elsewhere_are_left_alone_and_files_made_past_the_disk_are_refused() {
    let (disk, elsewhere) = (SimulatedDisk::new(), scratch_folder());
    let [from, to] = ["from", "to"].map(|name| elsewhere.path().join(name));
    disk.create(&from).unwrap().write_at(0, b"abc").unwrap();
    disk.rename(&from, &to).unwrap();
    disk.open(&to).unwrap().sync().unwrap();
    disk.sync_folder(elsewhere.path()).unwrap();
    disk.remove(&to).unwrap();
    disk.create(&disk.folder().join("a-shm")).unwrap();
    assert_eq!(disk.operations(), 0);
    let known = file(&disk, "known", "abc");
    file(&disk, "lost", "abc");
    assert_eq!(disk.unrecorded().unwrap(), [""; 0].map(PathBuf::from));
    let past = disk.folder().join("past");
    std::fs::write(&past, "").unwrap();
    std::fs::write(disk.folder().join("known"), "abd").unwrap();
    std::fs::remove_file(disk.folder().join("lost")).unwrap();
    let mut unrecorded = disk.unrecorded().unwrap();
    unrecorded.sort();
    assert_eq!(unrecorded, ["known", "lost", "past"].map(PathBuf::from));
    known.write_at(2, b"c").unwrap();
    assert_eq!(disk.unrecorded().unwrap().len(), 2);
    assert!(disk.open(&past).unwrap_err().to_string().contains("not a file of the simulated disk"));
    disk.rename(&past, &disk.folder().join("other")).unwrap_err();
    let missing = disk.open(&disk.folder().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    disk.image_of(PowerCut::KeepAll, disk.folder()).unwrap_err();
}
