//! The names of a disk's files: the present ones, and those after a power cut.
//!
//! Creating, renaming and removing change a folder. The change is durable when the folder is synced. File systems write
//! such changes to a journal in order, so a power cut leaves a prefix of a folder's pending changes.
//!
//! Names are relative to the disk's folder. Not here: folders themselves, which are durable when they exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A file, whatever its name.
pub(super) type FileId = u64;

#[derive(Clone, Debug)]
enum Change {
    Create(PathBuf, FileId),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

type Map = BTreeMap<PathBuf, FileId>;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    live: Map,
    durable: Map,
    /// By folder.
    pending: BTreeMap<PathBuf, Vec<Change>>,
}

impl Names {
    /// Adds a durable name.
    pub(super) fn add_durable(&mut self, name: &Path, id: FileId) {
        self.live.insert(name.into(), id);
        self.durable.insert(name.into(), id);
    }

    pub(super) fn find(&self, name: &Path) -> Option<FileId> {
        self.live.get(name).copied()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &PathBuf> {
        self.live.keys()
    }

    pub(super) fn create(&mut self, name: &Path, id: FileId) {
        self.change(Change::Create(name.into(), id));
    }

    /// Both names are in one folder.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.change(Change::Rename(from.into(), to.into()));
    }

    pub(super) fn remove(&mut self, name: &Path) {
        self.change(Change::Remove(name.into()));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.entry(change.folder().into()).or_default().push(change);
    }

    pub(super) fn sync_folder(&mut self, folder: &Path) {
        for change in self.pending.remove(folder).unwrap_or_default() {
            change.apply(&mut self.durable);
        }
    }

    /// The names after a power cut. `keep` says how many of a folder's pending changes are kept.
    pub(super) fn after_cut(&self, mut keep: impl FnMut(usize) -> usize) -> Map {
        let mut names = self.durable.clone();
        for changes in self.pending.values() {
            changes[..keep(changes.len())].iter().for_each(|change| change.apply(&mut names));
        }
        names
    }

    /// The files that have a name, or may have one after a power cut.
    pub(super) fn files(&self) -> BTreeSet<FileId> {
        let created = self.pending.values().flatten().filter_map(|change| match change {
            Change::Create(_, id) => Some(*id),
            Change::Rename(..) | Change::Remove(_) => None,
        });
        self.live.values().chain(self.durable.values()).copied().chain(created).collect()
    }
}

impl Change {
    fn folder(&self) -> &Path {
        let (Self::Create(name, _) | Self::Rename(name, _) | Self::Remove(name)) = self;
        folder_of(name)
    }

    fn apply(&self, names: &mut Map) {
        match self {
            Self::Create(name, id) => {
                names.insert(name.clone(), *id);
            }
            Self::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

/// The folder of a name; the empty path is the disk's own.
pub(super) fn folder_of(name: &Path) -> &Path {
    name.parent().unwrap_or(Path::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &Map) -> String {
        let names: Vec<_> = names.iter().map(|(name, id)| format!("{}={id}", name.display())).collect();
        names.join(" ")
    }

    #[test]
    fn a_power_cut_leaves_a_first_part_of_each_folders_changes() {
        let mut names = Names::default();
        names.add_durable(Path::new("a"), 1);
        names.create(Path::new("b.new"), 2);
        names.rename(Path::new("b.new"), Path::new("a"));
        names.create(Path::new("sub/c"), 3);
        names.remove(Path::new("sub/c"));
        assert_eq!(shown(&names.live), "a=2");
        for (keep, left) in [(0, "a=1"), (1, "a=1 b.new=2 sub/c=3"), (2, "a=2")] {
            assert_eq!(shown(&names.after_cut(|_| keep)), left);
        }
        assert_eq!(names.files(), BTreeSet::from([1, 2, 3]));
        names.sync_folder(Path::new(""));
        assert_eq!(shown(&names.after_cut(|_| 0)), "a=2");
        names.sync_folder(Path::new("sub"));
        assert_eq!(names.files(), BTreeSet::from([2]));
    }
}
