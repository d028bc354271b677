//! Servers of a certain release that tests compare with: unpacked from Debian's archive, and not installed.
//!
//! A machine has one release of a package, or another, and installing a server also starts it as a service. So `apt-get`
//! resolves and fetches the packages of a suite into a folder of its own, `dpkg-deb` unpacks them there, and a launcher
//! starts each program with the loader and the libraries that came with it. It is made once, in seconds, and shared by all
//! clones on the machine; nothing outside [`SHARED`] is written.
//!
//! Not here: starting any of them (the test kit does, from the same folder), and anything that needs a running system
//! around it: no script of a package is run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::packages::{is_executable, is_root};
use crate::process;

/// A program that a test starts, and the package of a suite of Debian that has it.
#[derive(Debug)]
pub(crate) struct Program {
    suite: &'static str,
    package: &'static str,
    path: &'static str,
    why: &'static str,
}

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        suite: "bookworm",
        package: "redis-server",
        path: "usr/bin/redis-server",
        why: "Redis 7: our replies are compared with its own",
    },
    Program {
        suite: "unstable",
        package: "valkey-server",
        path: "usr/bin/valkey-server",
        why: "Valkey 9: doubles are printed as Redis prints them since 7.2",
    },
];

/// Where trees and launchers are, unless the variable names a folder that has the programs.
const SHARED: &str = "/var/cache/tally-test";
const LAUNCHERS: &str = "/var/cache/tally-test/bin";
const FOLDER_VARIABLE: &str = "TALLY_TEST_PROGRAMS";

const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Program {
    fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// What to do about missing programs.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    /// These suites, each with all of its packages.
    Make(Vec<(&'static str, Vec<&'static str>)>),
    Ask(String),
}

/// Makes sure that every program of the table can be started, or says how.
pub(crate) fn ensure() -> Result<()> {
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let folder = named.clone().unwrap_or_else(|| LAUNCHERS.into());
    let missing: Vec<&Program> =
        PROGRAMS.iter().filter(|program| !is_executable(&folder.join(program.name()))).collect();
    for program in &missing {
        eprintln!("missing: {} ({})", folder.join(program.name()).display(), program.why);
    }
    let debian = Path::new("/etc/debian_version").exists() && named.is_none();
    match plan(&missing, is_root(), debian) {
        Plan::Nothing => Ok(()),
        Plan::Make(suites) => {
            suites.iter().try_for_each(|(suite, packages)| make(Path::new(SHARED), suite, packages))
        }
        Plan::Ask(line) => bail!("do this once, then start again: {line}"),
    }
}

fn plan(missing: &[&Program], root: bool, debian: bool) -> Plan {
    if missing.is_empty() {
        Plan::Nothing
    } else if root && debian {
        let mut suites: Vec<&str> = missing.iter().map(|program| program.suite).collect();
        suites.dedup();
        let packages = |suite| of_suite(suite).map(|program| program.package).collect();
        Plan::Make(suites.into_iter().map(|suite| (suite, packages(suite))).collect())
    } else if debian {
        Plan::Ask("sudo env \"PATH=$PATH\" cargo xtask packages".into())
    } else {
        let names: Vec<&str> = missing.iter().map(|program| program.package).collect();
        Plan::Ask(format!("put {} into a folder and name it in {FOLDER_VARIABLE}", names.join(" and ")))
    }
}

fn of_suite(suite: &str) -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().filter(move |program| program.suite == suite)
}

/// Fetches and unpacks the packages of a suite and what they need, and writes the launchers of its programs.
fn make(shared: &Path, suite: &str, packages: &[&str]) -> Result<()> {
    eprintln!("unpacking {} of Debian {suite} into {}", packages.join(", "), shared.display());
    // Another clone may do the same at this moment: work apart, and put it in place at the end.
    let scratch = shared.join(format!(".{suite}.{}", std::process::id()));
    let made = make_in(&scratch, shared, suite, packages);
    std::fs::remove_dir_all(&scratch).context("remove what was only needed for fetching")?;
    made
}

fn make_in(scratch: &Path, shared: &Path, suite: &str, packages: &[&str]) -> Result<()> {
    let (tree, place) = (scratch.join("tree"), shared.join(suite));
    std::fs::create_dir_all(&tree).with_context(|| format!("make the folder {}", tree.display()))?;
    for archive in entries(&fetch(scratch, suite, packages)?) {
        if archive.extension().is_some_and(|extension| extension == "deb") {
            process::run(Command::new("dpkg-deb").arg("-x").args([&archive, &tree]))?;
        }
    }
    if place.exists() {
        std::fs::rename(&place, scratch.join("before")).context("put the tree before aside")?;
    }
    std::fs::rename(&tree, &place).context("put the new tree in place")?;
    of_suite(suite).try_for_each(|program| write_launcher(&place, program, scratch, &shared.join("bin")))
}

/// Lets `apt-get` fetch as if for an empty machine, into folders of its own.
fn fetch(scratch: &Path, suite: &str, packages: &[&str]) -> Result<PathBuf> {
    let (state, cache, sources) =
        (scratch.join("state"), scratch.join("cache"), scratch.join("sources.list"));
    let archives = cache.join("archives");
    for folder in [state.join("lists/partial"), archives.join("partial")] {
        std::fs::create_dir_all(&folder).with_context(|| format!("make the folder {}", folder.display()))?;
    }
    std::fs::write(state.join("status"), "").context("describe an empty machine")?;
    std::fs::write(&sources, format!("deb [signed-by={KEYRING}] {MIRROR} {suite} main\n"))
        .context("name the suite")?;
    let settings = [
        ("Dir::State", state.as_path()),
        ("Dir::State::status", &state.join("status")),
        ("Dir::Cache", &cache),
        ("Dir::Etc::sourcelist", &sources),
        ("Dir::Etc::sourceparts", Path::new("/dev/null")),
        ("Dir::Etc::preferencesparts", Path::new("/dev/null")),
    ];
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none"]);
        command.args(["-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]);
        for (name, path) in settings {
            command.arg("-o").arg(format!("{name}={}", path.display()));
        }
        process::run(command.args(args).stdin(Stdio::null()))
    };
    apt(&["update"]).with_context(|| format!("read what Debian {suite} has"))?;
    let install = ["install", "--yes", "--download-only", "--no-install-recommends"];
    apt(&[&install[..], packages].concat()).with_context(|| format!("fetch from Debian {suite}"))?;
    Ok(archives)
}

/// A script that runs the program by the loader of its own suite, in the same process.
fn write_launcher(tree: &Path, program: &Program, scratch: &Path, folder: &Path) -> Result<()> {
    let (loader, libraries) = loader(tree)?;
    let script = format!(
        "#!/bin/sh\n# {} of Debian {}, with its own libraries.\nexec '{}' --library-path '{libraries}' '{}' \"$@\"\n",
        program.name(),
        program.suite,
        loader.display(),
        tree.join(program.path).display(),
    );
    let made = scratch.join(program.name());
    std::fs::write(&made, script).context("write a launcher")?;
    process::run(Command::new("chmod").arg("755").arg(&made))?;
    std::fs::create_dir_all(folder).context("make the folder of launchers")?;
    std::fs::rename(&made, folder.join(program.name())).context("put a launcher in place")
}

/// The loader of a tree, and its folders of libraries; `/lib` is apart from `/usr/lib` in packages of older suites.
fn loader(tree: &Path) -> Result<(PathBuf, String)> {
    let folders: Vec<PathBuf> = ["lib", "usr/lib"]
        .iter()
        .flat_map(|lib| entries(&tree.join(lib)))
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"))
        .collect();
    let is_loader =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"));
    let loader = folders.iter().flat_map(|folder| entries(folder)).find(is_loader);
    let libraries: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let loader = loader.with_context(|| format!("there is no loader in {}", tree.display()))?;
    Ok((loader, libraries.join(":")))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> &'static Program {
        PROGRAMS.iter().find(|program| program.name() == name).unwrap()
    }

    #[test]
    fn nothing_missing_means_nothing_done() {
        assert_eq!(plan(&[], true, true), Plan::Nothing);
        assert_eq!(plan(&[], false, false), Plan::Nothing);
    }

    #[test]
    fn root_on_debian_makes_a_suite_with_all_its_packages() {
        let valkey = program("valkey-server");
        let all = of_suite("unstable").map(|program| program.package).collect();
        assert_eq!(plan(&[valkey], true, true), Plan::Make(vec![("unstable", all)]));
    }

    #[test]
    fn everyone_else_gets_one_line() {
        let missing = [program("redis-server"), program("valkey-server")];
        let Plan::Ask(line) = plan(&missing, false, true) else { panic!("only root makes folders") };
        assert!(line.ends_with("cargo xtask packages"));
        let Plan::Ask(line) = plan(&missing, true, false) else { panic!("only Debian has its packages") };
        assert!(line.contains("redis-server and valkey-server") && line.contains(FOLDER_VARIABLE));
    }

    #[test]
    fn the_loader_and_its_libraries_are_found_in_both_layouts() {
        let folder = std::env::temp_dir().join(format!("tally-loader-{}", std::process::id()));
        let (old, new) = (folder.join("lib/x86_64-linux-gnu"), folder.join("usr/lib/x86_64-linux-gnu"));
        for part in [&old, &new] {
            std::fs::create_dir_all(part).unwrap();
        }
        assert!(loader(&folder).unwrap_err().to_string().contains("no loader"));
        std::fs::write(old.join("ld-linux-x86-64.so.2"), "").unwrap();
        let (found, libraries) = loader(&folder).unwrap();
        assert_eq!(found, old.join("ld-linux-x86-64.so.2"));
        assert_eq!(libraries, format!("{}:{}", old.display(), new.display()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_kit_looks_where_the_launchers_are() {
        let kit = include_str!("../../crates/testkit/src/redis.rs");
        assert!(kit.contains(&format!("\"{LAUNCHERS}\"")) && kit.contains(&format!("\"{FOLDER_VARIABLE}\"")));
    }
}
