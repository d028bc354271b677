//! Programs that the build and the tests start, their sources, and their installation on Debian.
//!
//! One table: a new need is one line with its reason. As root on Debian it installs the missing ones. Anywhere else the run stops
//! with the command to type, because a password prompt in the middle of a test run is a nuisance. A font for pictures stops no run.
//!
//! Not here: starting any of them (the tests do), versions and servers (`programs.rs`), libraries of other languages
//! (`clients.rs`), and anything global. Only the package manager writes files, and no service is configured.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{clients, process, programs};

/// A program on PATH and its Debian package.
pub(crate) struct Package {
    pub(crate) binary: &'static str,
    pub(crate) package: &'static str,
    pub(crate) why: &'static str,
}

pub(crate) const PACKAGES: &[Package] = &[
    Package { binary: "cc", package: "gcc", why: "links every binary and compiles the bundled SQLite" },
    Package {
        binary: "curl",
        package: "curl",
        why: "the README's examples are curl lines, and they are run",
    },
    Package { binary: "git", package: "git", why: "names the files that belong to the project" },
    Package { binary: "redis-cli", package: "redis-tools", why: "a stock client of the Redis protocol" },
    Package {
        binary: "redis-benchmark",
        package: "redis-tools",
        why: "a stock client of the Redis protocol",
    },
    Package { binary: "python3", package: "python3-venv", why: "runs redis-py and the examples" },
    Package { binary: "node", package: "nodejs", why: "runs node-redis, ioredis and the examples" },
    Package {
        binary: "chromium-headless-shell",
        package: "chromium-headless-shell",
        why: "shows the console's pages to the tests, without a window",
    },
    Package { binary: "prometheus", package: "prometheus", why: "scrapes servers and fires their alerts" },
    Package { binary: "promtool", package: "prometheus", why: "checks the rules of the alerts" },
    Package {
        binary: "systemd-analyze",
        package: "systemd",
        why: "checks the unit, and what it leaves open",
    },
    Package { binary: "strace", package: "strace", why: "delays the syncs of a server under test" },
    Package { binary: "faketime", package: "faketime", why: "sets the clock of a server under test" },
    Package { binary: "npm", package: "npm", why: "fetches the clients of node" },
    Package { binary: "mcs", package: "mono-mcs", why: "compiles the package for C#" },
    Package { binary: "mono", package: "mono-runtime", why: "runs the package for C#" },
    Package {
        binary: "mcs",
        package: "libmono-system-net-http4.0-cil",
        why: "has the HttpClient of the package for C#",
    },
];

/// The smallest package of Debian with Hangul, and a file of it: pictures of the console in Korean can be read with it.
const HANGUL: (&str, &str) = ("fonts-nanum", "/usr/share/fonts/truetype/nanum/NanumGothic.ttf");

/// What to do about missing programs.
#[derive(Debug, PartialEq)]
enum Plan {
    Nothing,
    Install(Vec<&'static str>),
    Ask(String),
}

/// Everything that builds and tests need.
pub(crate) fn ensure() -> Result<()> {
    install_missing()?;
    fetch()
}

/// What only tests need: servers, and libraries of other languages.
pub(crate) fn fetch() -> Result<()> {
    programs::ensure()?;
    clients::ensure()
}

/// Installs missing programs of the table, or stops with the command to type.
pub(crate) fn install_missing() -> Result<()> {
    // Debian has Python and the part that makes its environments in two packages.
    let bare_python = !clients::python_makes_environments();
    let is_missing =
        |package: &&Package| !on_path(package.binary) || package.package == "python3-venv" && bare_python;
    get(&PACKAGES.iter().filter(is_missing).collect::<Vec<_>>())?;
    hangul();
    Ok(())
}

/// The same for a task whose programs no test needs.
pub(crate) fn ensure_of(packages: &[Package]) -> Result<()> {
    get(&packages.iter().filter(|package| !on_path(package.binary)).collect::<Vec<_>>())
}

fn get(missing: &[&Package]) -> Result<()> {
    for package in missing {
        eprintln!("missing: {} ({})", package.binary, package.why);
    }
    match plan(missing, is_root(), is_debian()) {
        Plan::Nothing => Ok(()),
        Plan::Install(names) => install(&names),
        Plan::Ask(line) => bail!("install what is missing, then start again: {line}"),
    }
}

/// Installs a font with Hangul as root on Debian. No test needs it, so without it the run goes on.
fn hangul() {
    let (package, file) = HANGUL;
    if !is_root() || !is_debian() || Path::new(file).exists() {
        return;
    }
    eprintln!("missing: {package} (pictures of the console have Hangul)");
    if let Err(error) = install(&[package]) {
        eprintln!("{package} is not installed, so pictures in Korean have boxes: {error:#}");
    }
}

fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists()
}

fn plan(missing: &[&Package], root: bool, debian: bool) -> Plan {
    let mut names: Vec<&'static str> = missing.iter().map(|package| package.package).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        Plan::Nothing
    } else if root && debian {
        Plan::Install(names)
    } else if debian {
        Plan::Ask(format!("sudo apt-get install -y {}", names.join(" ")))
    } else {
        Plan::Ask(format!("(with your package manager) {}", names.join(" ")))
    }
}

fn install(names: &[&str]) -> Result<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        process::run(&mut command)
    };
    apt(&["update", "-q"]).context("refresh the package lists")?;
    let mut args = vec!["install", "-y", "-q", "--no-install-recommends"];
    args.extend(names);
    apt(&args).context("install what is missing")
}

fn on_path(binary: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|dir| is_executable(&dir.join(binary)))
}

#[cfg(unix)]
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_executable(path: &Path) -> bool {
    path.with_extension("exe").is_file()
}

/// Whether this runs as root; a machine without `id` counts as not root.
pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Package = Package { binary: "a", package: "pkg-a", why: "" };
    const A2: Package = Package { binary: "a2", package: "pkg-a", why: "" };
    const B: Package = Package { binary: "b", package: "pkg-b", why: "" };

    #[test]
    fn nothing_missing_means_nothing_done() {
        assert_eq!(plan(&[], true, true), Plan::Nothing);
        assert_eq!(plan(&[], false, false), Plan::Nothing);
    }

    #[test]
    fn root_on_debian_installs_each_package_once() {
        assert_eq!(plan(&[&B, &A, &A2], true, true), Plan::Install(vec!["pkg-a", "pkg-b"]));
    }

    #[test]
    fn everyone_else_gets_one_line() {
        assert_eq!(plan(&[&A], false, true), Plan::Ask("sudo apt-get install -y pkg-a".into()));
        let Plan::Ask(line) = plan(&[&A, &B], true, false) else { panic!("elsewhere nothing is installed") };
        assert!(line.ends_with("pkg-a pkg-b"));
    }

    #[test]
    fn programs_are_found_on_path_only() {
        assert!(on_path("cargo"));
        assert!(!on_path("no-such-program-anywhere"));
    }

    #[test]
    fn every_row_says_why() {
        for row in PACKAGES {
            assert!(!row.why.is_empty(), "{}", row.binary);
        }
    }
}
