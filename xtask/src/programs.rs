//! Servers of certain releases that tests compare with: unpacked from Debian's archive, not installed.
//!
//! A machine has only one release of a package, and installing a server also starts it as a service. So `apt-get` resolves
//! and fetches the packages of a suite into a folder of its own, and `dpkg-deb` unpacks them there. A launcher starts each
//! program with the loader and the libraries of its suite. This takes seconds once, and all clones on the machine share
//! it. It writes nothing outside [`SHARED`].
//!
//! Not here: starting any of them for a test (the test kit does, from the same folder), and package scripts: nothing here
//! may need a running system around it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::fresh_data::{self, FreshData};
use crate::packages::{is_executable, is_root};
use crate::process;

/// A program that a test starts, and the packages of a Debian suite with it and its libraries.
#[derive(Debug)]
pub(crate) struct Program {
    suite: &'static str,
    packages: &'static [&'static str],
    path: &'static str,
    /// Arguments that replace an installation; `{tree}` is its unpacked folder.
    args: &'static [&'static str],
    /// The data directory that a database server starts on.
    data: Option<FreshData>,
    why: &'static str,
}

/// Sorted by suite.
pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        suite: "bookworm",
        packages: &["redis-server"],
        path: "usr/bin/redis-server",
        args: &[],
        data: None,
        why: "Redis 7: our replies are compared with its own",
    },
    Program {
        suite: "bookworm",
        packages: &["mariadb-server-core", "mariadb-plugin-spider"],
        path: "usr/sbin/mariadbd",
        args: &["--basedir={tree}/usr", "--plugin-dir={tree}/usr/lib/mysql/plugin"],
        data: Some(FreshData::MariaDb),
        why: "MariaDB 10: a store, and spread over several by Spider",
    },
    Program {
        suite: "bookworm",
        packages: &["mariadb-client-core"],
        path: "usr/bin/mariadb",
        args: &[],
        data: None,
        why: "tests look into MariaDB with its own client",
    },
    Program {
        suite: "bookworm",
        packages: &["mariadb-client"],
        path: "usr/bin/mariadb-dump",
        args: &[],
        data: None,
        why: "a test runs the commands of docs/operate/backup.md",
    },
    Program {
        suite: "bookworm",
        packages: &["mariadb-client"],
        path: "usr/bin/mariadb-binlog",
        args: &[],
        data: None,
        why: "a test runs the commands of docs/operate/backup.md",
    },
    Program {
        suite: "unstable",
        packages: &["valkey-server"],
        path: "usr/bin/valkey-server",
        args: &[],
        data: None,
        why: "Valkey 9: doubles are printed as Redis prints them since 7.2",
    },
    Program {
        suite: "unstable",
        packages: &["mysql-server-core"],
        path: "usr/sbin/mysqld",
        args: &[],
        data: Some(FreshData::MySql),
        why: "MySQL 9: a store",
    },
    Program {
        suite: "unstable",
        packages: &["mysql-client-core"],
        path: "usr/bin/mysql",
        args: &[],
        data: None,
        why: "tests look into MySQL with its own client",
    },
    Program {
        suite: "unstable",
        packages: &["mysql-client-core"],
        path: "usr/bin/mysqldump",
        args: &[],
        data: None,
        why: "a test runs the commands of docs/operate/backup.md",
    },
    Program {
        suite: "unstable",
        packages: &["mysql-client-core"],
        path: "usr/bin/mysqlbinlog",
        args: &[],
        data: None,
        why: "a test runs the commands of docs/operate/backup.md",
    },
];

/// The folders of trees and launchers, unless the variable names a folder with the programs.
const SHARED: &str = "/var/cache/tally-test";
const LAUNCHERS: &str = "/var/cache/tally-test/bin";
const FOLDER_VARIABLE: &str = "TALLY_TEST_PROGRAMS";

const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Program {
    fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// Whether a folder has all files that a test needs to start it.
    fn is_in(&self, folder: &Path) -> bool {
        let data = self.data.is_none() || fresh_data::of(folder, self.name()).is_dir();
        data && is_executable(&folder.join(self.name()))
    }
}

/// What to do about missing programs.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    /// Unpack these suites, each with all of its packages.
    Make(Vec<(&'static str, Vec<&'static str>)>),
    Ask(String),
}

/// The path that starts a program of the table.
pub(crate) fn launcher(name: &str) -> PathBuf {
    folder(named()).join(name)
}

/// The folder in the variable.
fn named() -> Option<PathBuf> {
    std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from)
}

fn folder(named: Option<PathBuf>) -> PathBuf {
    named.unwrap_or_else(|| LAUNCHERS.into())
}

/// Unpacks missing programs of the table, or says what to do.
pub(crate) fn ensure() -> Result<()> {
    let named = named();
    let folder = folder(named.clone());
    let debian = Path::new("/etc/debian_version").exists() && named.is_none();
    if is_root() && debian {
        for program in missing_in(&folder) {
            launch_unpacked(Path::new(SHARED), program)?;
        }
    }
    let missing = missing_in(&folder);
    for program in &missing {
        eprintln!("missing: {} ({})", folder.join(program.name()).display(), program.why);
    }
    match plan(&missing, is_root(), debian) {
        Plan::Nothing => Ok(()),
        Plan::Make(suites) => {
            suites.iter().try_for_each(|(suite, packages)| make(Path::new(SHARED), suite, packages))
        }
        Plan::Ask(line) => bail!("do this once, then start again: {line}"),
    }
}

fn missing_in(folder: &Path) -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| !program.is_in(folder)).collect()
}

fn plan(missing: &[&Program], root: bool, debian: bool) -> Plan {
    if missing.is_empty() {
        Plan::Nothing
    } else if root && debian {
        let mut suites: Vec<&str> = missing.iter().map(|program| program.suite).collect();
        suites.dedup();
        let packages = |suite| of_suite(suite).flat_map(|program| program.packages).copied().collect();
        Plan::Make(suites.into_iter().map(|suite| (suite, packages(suite))).collect())
    } else if debian {
        Plan::Ask("sudo env \"PATH=$PATH\" cargo xtask packages".into())
    } else {
        let mut names: Vec<String> = missing.iter().map(|program| program.name().to_owned()).collect();
        let databases = missing.iter().filter(|program| program.data.is_some());
        names.extend(databases.map(|program| {
            format!("a fresh data directory {}, root without password", fresh_data::name(program.name()))
        }));
        Plan::Ask(format!("put {} into a folder and name it in {FOLDER_VARIABLE}", names.join(" and ")))
    }
}

fn of_suite(suite: &str) -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().filter(move |program| program.suite == suite)
}

/// Writes the launcher of a program that came with the packages of others: a new row of the table needs no fetch then.
fn launch_unpacked(shared: &Path, program: &Program) -> Result<()> {
    let tree = shared.join(program.suite);
    if program.data.is_some() || !tree.join(program.path).exists() {
        return Ok(());
    }
    let scratch = shared.join(format!(".{}.{}", program.name(), std::process::id()));
    let folder = shared.join("bin");
    for folder in [&scratch, &folder] {
        std::fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
    }
    let launcher = write_launcher(&tree, program, &scratch)?;
    std::fs::rename(&launcher, folder.join(program.name())).context("put a launcher in place")?;
    std::fs::remove_dir(&scratch).context("remove the folder of a launcher")
}

/// Fetches and unpacks the packages of a suite with their dependencies, and writes the launchers of its programs.
fn make(shared: &Path, suite: &str, packages: &[&str]) -> Result<()> {
    eprintln!("unpacking {} of Debian {suite} into {}", packages.join(", "), shared.display());
    // Another clone may do the same now, so this works in a folder of its own and moves the result at the end.
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
    let folder = shared.join("bin");
    std::fs::create_dir_all(&folder).context("make the folder of launchers")?;
    for program in of_suite(suite) {
        let launcher = write_launcher(&place, program, scratch)?;
        if let Some(data) = program.data {
            fresh_data::make(data, &launcher, &place, scratch, &folder)?;
        }
        // The launcher comes last: its presence means that the rest is complete.
        std::fs::rename(&launcher, folder.join(program.name())).context("put a launcher in place")?;
    }
    Ok(())
}

/// Makes `apt-get` fetch as if for an empty machine, into its own folders.
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

/// A script that runs the program with the loader of its own suite, in the same process.
fn write_launcher(tree: &Path, program: &Program, scratch: &Path) -> Result<PathBuf> {
    let (loader, libraries) = loader(tree)?;
    let args: String = program.args.iter().map(|arg| format!(" '{arg}'")).collect();
    let script = format!(
        "#!/bin/sh\n# {} of Debian {}, with its own libraries.\nexec '{}' --library-path '{libraries}' '{}' \"$@\"{}\n",
        program.name(),
        program.suite,
        loader.display(),
        tree.join(program.path).display(),
        args.replace("{tree}", &tree.display().to_string()),
    );
    let made = scratch.join(program.name());
    std::fs::write(&made, script).context("write a launcher")?;
    process::run(Command::new("chmod").arg("755").arg(&made))?;
    Ok(made)
}

/// The loader of a tree, and its library folders; packages of older suites have `/lib` apart from `/usr/lib`.
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
mod tests;
