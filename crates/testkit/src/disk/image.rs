//! What a power cut may leave of a disk, written into an empty folder.
//!
//! Names are chosen first, then the contents of each file that has a name. A quarter of the images keep the operations
//! before one moment, across all files. The others choose for each file by itself: no change, all, some, or some sectors.
//!
//! Not here: bytes that were never written. A file system that shows old blocks in place of lost writes is not simulated.

use super::contents::Keep;
use super::names::folder_of;
use super::state::DiskState;
use crate::rng::Rng;
use std::io;
use std::path::Path;

/// The two ends of what a power cut may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// Only what was synced.
    DropAll,
    /// Everything that was done.
    KeepAll,
}

/// What a power cut did to the changes that were not durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageStats {
    /// Changes of contents that are in the image.
    pub kept: u64,
    /// Changes of contents that are not in the image.
    pub dropped: u64,
    /// Writes of which some sectors are in the image.
    pub torn: u64,
    /// Changes of names that are in the image.
    pub names_kept: u64,
    /// Changes of names that are not in the image.
    pub names_dropped: u64,
}

/// How an image is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    One(PowerCut),
    Any,
}

pub(super) fn write(state: &DiskState, choice: Choice, rng: &mut Rng, into: &Path) -> io::Result<ImageStats> {
    std::fs::create_dir_all(into)?;
    if std::fs::read_dir(into)?.next().is_some() {
        return Err(io::Error::other(format!("`{}` must be empty", into.display())));
    }
    let moment = rng.percent(25).then(|| Keep::Before(1 + rng.below(state.operations.number() + 1)));
    let mut stats = ImageStats::default();
    let names = state.names.after_cut(|changes| {
        let all = changes as u64;
        let kept = match choice {
            Choice::One(PowerCut::DropAll) => 0,
            Choice::One(PowerCut::KeepAll) => all,
            Choice::Any => rng.below(all + 1),
        };
        stats.names_kept += kept;
        stats.names_dropped += all - kept;
        usize::try_from(kept).expect("a count of changes fits")
    });
    for (name, id) in names {
        let keep = match (choice, moment) {
            (Choice::One(PowerCut::DropAll), _) => Keep::Nothing,
            (Choice::One(PowerCut::KeepAll), _) => Keep::Everything,
            (Choice::Any, Some(moment)) => moment,
            (Choice::Any, None) => any(rng),
        };
        let bytes = state.files[&id].contents.after_cut(keep, rng, &mut stats);
        std::fs::create_dir_all(into.join(folder_of(&name)))?;
        std::fs::write(into.join(&name), bytes)?;
    }
    Ok(stats)
}

fn any(rng: &mut Rng) -> Keep {
    let percent = *rng.pick(&[10, 50, 90]);
    *rng.pick(&[Keep::Nothing, Keep::Everything, Keep::Some { percent }, Keep::Torn { percent }])
}
