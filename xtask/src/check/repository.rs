//! The description of the repository for the rules; only this file reads it from the disk.
//!
//! The files are those that git tracks or would track. So a new file is checked before its first commit, and ignored
//! files (build output, scratch data) never are. The packages come from `cargo metadata --locked`, so that a check never
//! changes Cargo.lock.
//!
//! Not here: the rules. Files that are not text keep their path, because links may lead to them, and have no text.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::metadata::{self, Package};
use crate::process;

/// Larger files are data; no rule applies to them.
const TEXT_BYTES_MAX: u64 = 2 * 1024 * 1024;

pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    /// Empty if the file is not text.
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines with their numbers, from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

pub(crate) struct Repository {
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
}

impl Repository {
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The packages of this workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.member)
    }

    /// The folder names below `crates/`.
    pub(crate) fn crate_folders(&self) -> Vec<&str> {
        let below = self.files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.split_once('/'));
        let mut names: Vec<&str> = below.map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads the repository at `root`.
pub(crate) fn load(root: &Path) -> Result<Repository> {
    let mut files = Vec::new();
    for path in project_files(root)? {
        let full = root.join(&path);
        // A deleted file before its commit, or a submodule: nothing to check.
        let Ok(meta) = full.metadata() else { continue };
        if !meta.is_file() {
            continue;
        }
        let bytes = if meta.len() > TEXT_BYTES_MAX { Vec::new() } else { read(&full)? };
        files.push(File { path, text: String::from_utf8(bytes).unwrap_or_default() });
    }
    let mut command = process::cargo(&["metadata", "--format-version", "1", "--locked"])?;
    let json = process::output(&mut command).context("ask cargo for the packages")?;
    Ok(Repository { files, packages: metadata::parse(&json)? })
}

/// The paths of all files that belong to the project, from its root.
pub(crate) fn project_files(root: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    command.current_dir(root).stdin(Stdio::null());
    let list = process::output(&mut command).context("ask git for the files of the project")?;
    let list = String::from_utf8(list).context("read the names of the files")?;
    Ok(list.split_terminator('\0').map(str::to_owned).collect())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    #[test]
    fn folders_of_crates_are_named_once() {
        let repository =
            files(&[("crates/b/Cargo.toml", ""), ("crates/a/x.rs", ""), ("crates/b/y.rs", ""), ("c/d", "")]);
        assert_eq!(repository.crate_folders(), ["a", "b"]);
    }

    #[test]
    fn this_file_is_found_in_the_real_repository() {
        let repository = load(&process::root().unwrap()).unwrap();
        assert!(repository.file("xtask/src/check/repository.rs").is_some_and(|file| file.is_rust()));
        assert!(repository.members().any(|package| package.name == "xtask"));
    }
}
