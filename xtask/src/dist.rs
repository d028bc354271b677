//! `cargo xtask dist`: an archive of the binary for this platform, the list of what is in it, and the digests of both.
//!
//! The archive has the binary of the profile `dist`, the licences, and the files that a deployment begins with. Names, owners and
//! times in it are those of the commit, so the same files give the same bytes.
//!
//! Not here: signing and publishing, which need keys that no build has.

mod bom;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::check::metadata::{list, text};
use crate::process;

/// What the archive has beside the binary.
const BESIDE: [&str; 10] = [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs",
    "deploy/grafana",
    "deploy/kubernetes",
    "deploy/prometheus",
    "deploy/systemd",
];

pub(crate) fn main() -> Result<()> {
    let root = process::root()?;
    let commit = commit(&root)?;
    let target = host()?;
    let mut metadata = process::cargo(&["metadata", "--format-version", "1", "--locked"])?;
    let metadata: Value =
        serde_json::from_slice(&process::output(metadata.args(["--filter-platform", &target]))?)?;
    let mut build = process::cargo(&["build", "--package", "tally", "--profile", "dist", "--locked"])?;
    process::run(build.env("TALLY_BUILD_COMMIT", &commit.id))?;
    let targets = PathBuf::from(text(&metadata, "target_directory")?);
    let name = format!("tally-{}-{target}", version(&metadata)?);
    let (folder, staged) = (targets.join("packages"), targets.join("packages").join(&name));
    fresh(&staged)?;
    let binary = targets.join("dist/tally");
    copy(&binary, &staged.join("tally"))?;
    for path in BESIDE {
        let to = staged.join(path);
        std::fs::create_dir_all(to.parent().context("a path has a folder")?)?;
        process::run(tool("cp").arg("-R").arg(root.join(path)).arg(&to))?;
    }
    let archive = pack(&folder, &name, commit.time)?;
    std::fs::remove_dir_all(&staged).context("remove the folder that was packed")?;
    let bom = format!("{name}.cdx.json");
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("read Cargo.lock")?;
    let document = bom::of(&metadata, "tally", &bom::checksums(&lock))?;
    std::fs::write(folder.join(&bom), serde_json::to_string_pretty(&document)? + "\n")?;
    let sums = process::output(tool("sha256sum").args([&archive, &bom]).current_dir(&folder))?;
    std::fs::write(folder.join("SHA256SUMS"), &sums)?;
    print!("{}", String::from_utf8_lossy(&sums));
    let mebibytes =
        |path: &Path| Ok::<_, std::io::Error>(std::fs::metadata(path)?.len() as f64 / f64::from(1 << 20));
    println!(
        "{}: binary {:.1} MiB, archive {:.1} MiB, {} packages; {}",
        folder.display(),
        mebibytes(&binary)?,
        mebibytes(&folder.join(&archive))?,
        list(&document, "components")?.len(),
        needed(&binary)?
    );
    Ok(())
}

/// The commit that is built.
struct Commit {
    id: String,
    /// In seconds since 1970.
    time: u64,
}

/// The commit of a tree without changes: an archive names the commit that anyone can build again.
fn commit(root: &Path) -> Result<Commit> {
    let git = |args: &[&str]| -> Result<String> {
        let said = process::output(tool("git").args(args).current_dir(root))?;
        Ok(String::from_utf8(said)?.trim().to_owned())
    };
    if !git(&["status", "--porcelain"])?.is_empty() {
        bail!("there are changes that are in no commit: commit or remove them first");
    }
    let time = git(&["show", "--no-patch", "--format=%ct", "HEAD"])?;
    Ok(Commit {
        id: git(&["rev-parse", "HEAD"])?,
        time: time.parse().context("read the time of the commit")?,
    })
}

/// The platform of this machine, as the compiler names it.
fn host() -> Result<String> {
    let said = String::from_utf8(process::output(tool("rustc").arg("-vV"))?)?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("find the host in what rustc says")?.to_owned())
}

fn version(metadata: &Value) -> Result<String> {
    let packages = list(metadata, "packages")?;
    let ours = packages.iter().find(|package| text(package, "name").is_ok_and(|name| name == "tally"));
    Ok(text(ours.context("find the package tally")?, "version")?.to_owned())
}

fn tool(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

fn fresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("copy {}", from.display()))?;
    Ok(())
}

/// Packs a folder. Returns the name of the archive.
fn pack(folder: &Path, name: &str, time: u64) -> Result<String> {
    let (tar, packed) = (format!("{name}.tar"), format!("{name}.tar.gz"));
    let mut command = tool("tar");
    command.current_dir(folder).args(["--create", "--file", &tar, "--sort=name", "--format=ustar"]);
    command.args(["--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go+r-w,a+X"]);
    process::run(command.arg(format!("--mtime=@{time}")).arg(name))?;
    // Without its own name and time.
    process::run(tool("gzip").args(["--force", "--no-name", "--best", &tar]).current_dir(folder))?;
    Ok(packed)
}

/// The C library that the binary needs at least.
fn needed(binary: &Path) -> Result<String> {
    let said = String::from_utf8(process::output(tool("objdump").arg("-T").arg(binary))?)?;
    Ok(newest(&said).map_or_else(
        || "it needs no C library".to_owned(),
        |(major, minor)| format!("it needs glibc {major}.{minor} or later"),
    ))
}

/// The newest version of glibc that symbols name.
fn newest(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let (major, minor) = digits.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_is_found_by_number() {
        let symbols = "(GLIBC_2.9)  poll\n(GLIBC_2.34) dlsym\n(GLIBC_2.2.5) free\n GLIBC_PRIVATE x\n";
        assert_eq!(newest(symbols), Some((2, 34)));
        assert_eq!(newest("main"), None);
    }

    #[test]
    fn an_archive_of_the_same_files_is_the_same() {
        let folder = std::env::temp_dir().join(format!("tally-dist-{}", std::process::id()));
        let made = |order: [&str; 2]| {
            let inside = folder.join("tally-1");
            fresh(&inside).unwrap();
            order.iter().for_each(|name| std::fs::write(inside.join(name), *name).unwrap());
            let archive = pack(&folder, "tally-1", 1_700_000_000).unwrap();
            std::fs::read(folder.join(archive)).unwrap()
        };
        let (one, other) = (made(["a", "b"]), made(["b", "a"]));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(one == other && !one.is_empty());
    }

    #[test]
    fn what_an_archive_has_is_there() {
        let root = process::root().unwrap();
        assert!(BESIDE.iter().all(|path| root.join(path).exists()));
        for folder in std::fs::read_dir(root.join("deploy")).unwrap() {
            let name = folder.unwrap().file_name();
            assert!(BESIDE.contains(&&*format!("deploy/{}", name.display())), "{name:?} is not packed");
        }
    }
}
