//! One file: its contents on the disk, and the changes that a power cut may keep or drop.
//!
//! A change is pending until the file is synced. A failed sync makes pending changes doubtful: as on Linux their pages
//! count as clean, so a later sync succeeds and leaves them out. A doubtful change stays so until the same bytes are
//! written again and synced. While none is doubtful, synced changes are applied at once and cost no memory.
//!
//! Not here: the contents that readers see. They are in the live folder.

use super::image::ImageStats;
use crate::rng::Rng;

/// The unit in which a disk writes: a power cut leaves each sector old or new.
const SECTOR: u64 = 512;

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Write { at: u64, bytes: Box<[u8]> },
    SetLen(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// The last sync came before it.
    Pending,
    /// The sync after it failed.
    Doubtful,
    /// Durable. It is listed because a doubtful change comes before it.
    Synced,
}

#[derive(Clone, Debug)]
struct Recorded {
    /// The number of the operation.
    number: u64,
    change: Change,
    durability: Durability,
}

/// How much of a file's changes a power cut keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    Everything,
    /// The operations before a number, and a torn part of that operation.
    Before(u64),
    /// Each change with a chance, whole.
    Some {
        percent: u64,
    },
    /// Each sector of each change with a chance.
    Torn {
        percent: u64,
    },
}

/// The state of one file on the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    synced: Vec<u8>,
    changes: Vec<Recorded>,
}

impl Contents {
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self { synced: bytes, changes: Vec::new() }
    }

    pub(super) fn change(&mut self, number: u64, change: Change) {
        self.changes.push(Recorded { number, change, durability: Durability::Pending });
    }

    /// A sync succeeded.
    pub(super) fn sync(&mut self) {
        for at in self.first_doubtful()..self.changes.len() {
            let (before, rest) = self.changes.split_at_mut(at);
            if rest[0].durability == Durability::Pending {
                rest[0].durability = Durability::Synced;
                settle(before, &rest[0].change);
            }
        }
        for recorded in self.changes.drain(..self.first_doubtful()) {
            recorded.change.apply(&mut self.synced);
        }
    }

    /// The index of the first doubtful change: the next sync makes all changes before it durable.
    fn first_doubtful(&self) -> usize {
        let is_doubtful = |recorded: &Recorded| recorded.durability == Durability::Doubtful;
        self.changes.iter().position(is_doubtful).unwrap_or(self.changes.len())
    }

    /// A sync failed.
    pub(super) fn fail_sync(&mut self) {
        let pending = self.changes.iter_mut().filter(|recorded| recorded.durability == Durability::Pending);
        pending.for_each(|recorded| recorded.durability = Durability::Doubtful);
    }

    /// The bytes that readers should see.
    pub(super) fn live(&self) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        self.changes.iter().for_each(|recorded| recorded.change.apply(&mut bytes));
        bytes
    }

    /// The bytes after a power cut.
    pub(super) fn after_cut(&self, keep: Keep, rng: &mut Rng, stats: &mut ImageStats) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for Recorded { number, change, durability } in &self.changes {
            // The order of the operations says nothing about a change that was already written back.
            let keep = match (durability, keep) {
                (Durability::Synced, _) => {
                    change.apply(&mut bytes);
                    continue;
                }
                (Durability::Doubtful, Keep::Before(_)) => Keep::Some { percent: 50 },
                (_, Keep::Before(end)) if *number < end => Keep::Everything,
                (_, Keep::Before(end)) if *number == end => Keep::Torn { percent: 50 },
                (_, Keep::Before(_)) => Keep::Nothing,
                (_, keep) => keep,
            };
            change.apply_some(&mut bytes, keep, rng, stats);
        }
        bytes
    }
}

/// Takes away from doubtful changes what a later synced change determines. Applying a change is harmless when it is
/// determined wholly, so such a change counts as synced.
fn settle(before: &mut [Recorded], synced: &Change) {
    let (from, to) = match synced {
        Change::Write { at, bytes } => (*at, *at + bytes.len() as u64),
        Change::SetLen(length) => (*length, u64::MAX),
    };
    for doubtful in before.iter_mut().filter(|before| before.durability == Durability::Doubtful) {
        let (start, end) = match &doubtful.change {
            Change::Write { at, bytes } => (*at, *at + bytes.len() as u64),
            Change::SetLen(length) => (*length, u64::MAX),
        };
        if from <= start && to >= end {
            doubtful.durability = Durability::Synced;
        } else if let Change::Write { at, bytes } = &mut doubtful.change {
            // A synced write into the middle takes nothing away: it is applied after the doubtful one.
            if from <= start && to > start {
                (*at, *bytes) = (to, bytes[index(to - start)..].into());
            } else if from < end && to >= end {
                *bytes = bytes[..index(from - start)].into();
            }
        }
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(file, *at, bytes),
            Self::SetLen(length) => file.resize(index(*length), 0),
        }
    }

    fn apply_some(&self, file: &mut Vec<u8>, keep: Keep, rng: &mut Rng, stats: &mut ImageStats) {
        let whole = match (keep, self) {
            (Keep::Nothing, _) => false,
            (Keep::Torn { percent }, Self::Write { at, bytes }) => {
                return tear(file, *at, bytes, percent, rng, stats);
            }
            (Keep::Some { percent } | Keep::Torn { percent }, _) => rng.percent(percent),
            (Keep::Everything | Keep::Before(_), _) => true,
        };
        if whole {
            self.apply(file);
            stats.kept += 1;
        } else {
            stats.dropped += 1;
        }
    }
}

/// Applies some sectors of a write. The file's length may reach the end of the write without its bytes.
fn tear(file: &mut Vec<u8>, at: u64, bytes: &[u8], percent: u64, rng: &mut Rng, stats: &mut ImageStats) {
    let (mut kept, mut dropped) = (false, false);
    let end = at + bytes.len() as u64;
    let mut from = at;
    while from < end {
        let to = end.min((from / SECTOR + 1) * SECTOR);
        if rng.percent(percent) {
            put(file, from, &bytes[index(from - at)..index(to - at)]);
            kept = true;
        } else {
            dropped = true;
        }
        from = to;
    }
    if index(end) > file.len() && rng.percent(50) {
        file.resize(index(end), 0);
    }
    let count = match (kept, dropped) {
        (true, true) => &mut stats.torn,
        (true, false) => &mut stats.kept,
        (false, _) => &mut stats.dropped,
    };
    *count += 1;
}

fn put(file: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let (start, end) = (index(at), index(at) + bytes.len());
    if bytes.is_empty() {
        return;
    }
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("files of tests fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(at: u64, bytes: &[u8]) -> Change {
        Change::Write { at, bytes: bytes.into() }
    }

    fn ends(contents: &Contents) -> [Vec<u8>; 2] {
        [Keep::Nothing, Keep::Everything]
            .map(|keep| contents.after_cut(keep, &mut Rng::new(1), &mut ImageStats::default()))
    }

    fn applied(changes: &[Change]) -> Contents {
        let mut contents = Contents::default();
        changes.iter().for_each(|change| contents.change(1, change.clone()));
        contents
    }

    #[test]
    fn synced_changes_are_durable_and_cost_nothing() {
        let mut contents = applied(&[write(2, b"abc"), Change::SetLen(4)]);
        assert_eq!(ends(&contents), [b"".to_vec(), b"\0\0ab".to_vec()]);
        contents.sync();
        assert_eq!(ends(&contents), [b"\0\0ab".to_vec(), b"\0\0ab".to_vec()]);
        assert!(contents.changes.is_empty());
    }

    #[test]
    fn a_later_sync_leaves_out_changes_of_a_failed_one() {
        let mut contents = applied(&[write(0, b"old.")]);
        contents.sync();
        contents.change(2, write(0, b"new"));
        contents.fail_sync();
        contents.sync();
        assert_eq!(ends(&contents), [b"old.".to_vec(), b"new.".to_vec()]);
        contents.change(3, write(4, b"more"));
        contents.sync();
        assert_eq!(ends(&contents), [b"old.more".to_vec(), b"new.more".to_vec()]);
    }

    #[test]
    fn bytes_are_certain_when_they_are_written_again_and_synced() {
        for (again, ends_then) in [
            (write(0, b"NEW"), [b"NEW.".as_slice(), b"NEW."]),
            (write(0, b"N"), [b"Nld.", b"New."]),
            (write(1, b"E"), [b"oEd.", b"nEw."]),
            (write(2, b"W!"), [b"olW!", b"neW!"]),
            (Change::SetLen(1), [b"o", b"n"]),
            (Change::SetLen(0), [b"", b""]),
        ] {
            let mut contents = applied(&[write(0, b"old.")]);
            contents.sync();
            contents.change(2, write(0, b"new"));
            contents.fail_sync();
            contents.change(3, again.clone());
            contents.sync();
            assert_eq!(ends(&contents), ends_then.map(<[u8]>::to_vec), "{again:?}");
            assert_eq!(contents.changes.is_empty(), ends_then[0] == ends_then[1], "{again:?}");
        }
    }

    #[test]
    fn a_failed_length_is_doubtful() {
        let mut contents = applied(&[write(0, b"abcd")]);
        contents.sync();
        contents.change(2, Change::SetLen(0));
        contents.fail_sync();
        contents.change(3, write(0, b"x"));
        contents.sync();
        assert_eq!(ends(&contents), [b"xbcd".to_vec(), b"x".to_vec()]);
    }

    #[test]
    fn torn_writes_leave_each_sector_old_or_new() {
        let mut contents = Contents::durable(vec![b'o'; 2048]);
        contents.change(1, write(100, &[b'n'; 2400]));
        let (mut stats, mut rng, mut lengths) = (ImageStats::default(), Rng::new(3), [false; 2]);
        for _ in 0..100 {
            let after = contents.after_cut(Keep::Torn { percent: 50 }, &mut rng, &mut stats);
            for (sector, bytes) in after.chunks(512).enumerate() {
                let bytes = if sector == 0 { &bytes[100..] } else { bytes };
                assert!(bytes.iter().all(|byte| byte == &bytes[0]), "sector {sector} is mixed");
            }
            lengths[usize::from(after.len() > 2048)] = true;
        }
        assert!(stats.torn > 80 && lengths == [true; 2], "{stats:?}");
    }
}
