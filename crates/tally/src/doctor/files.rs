//! Files that other accounts of the machine may read: those of an earlier release, and directories that existed before.
//!
//! What a command makes is private from the start, because its umask is 077. Existing files are reported and not changed:
//! the operator may want their mode.

use super::DoctorReport;
use crate::data_dir::DataDir;
use crate::store::StoreAddress;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Logs the warnings.
pub(crate) fn log(data: &DataDir, place: &StoreAddress) {
    loose(data, place).iter().for_each(|text| tracing::warn!("{text}"));
}

/// Reports the warnings.
pub(super) fn examine(report: &mut DoctorReport, data: &DataDir, place: &StoreAddress) {
    loose(data, place).iter().for_each(|text| report.warn("file_modes", text));
}

fn loose(data: &DataDir, place: &StoreAddress) -> Vec<String> {
    let mut folders = vec![data.path().to_owned()];
    if let StoreAddress::Sqlite(store) = place {
        let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty());
        folders.extend(parent.map(Path::to_owned));
    }
    folders.dedup();
    folders.iter().filter_map(|folder| loose_in(folder, place)).collect()
}

/// One line for a folder and its files.
fn loose_in(folder: &Path, place: &StoreAddress) -> Option<String> {
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let store = match place {
            StoreAddress::Sqlite(store) => store.file_name().unwrap_or_default().as_encoded_bytes(),
            _ => b"tally.db",
        };
        name.starts_with(store) || name == b"secret" || name == b"server.json"
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_loose =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    // Files in a private folder are out of reach.
    let folder = Some(folder.to_owned()).filter(is_loose)?;
    let mut loose: Vec<PathBuf> = entries.filter(ours).filter(is_loose).collect();
    loose.insert(0, folder.clone());
    let names: Vec<String> = loose.iter().map(|path| format!("`{}`", path.display())).collect();
    Some(format!(
        "other accounts of this machine have access to {}: take it with `chmod -R go= {}`",
        names.join(", "),
        folder.display()
    ))
}
