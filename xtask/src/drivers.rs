//! Builds the program of other drivers that `cargo xtask bench drivers` compares with, in its own workspace.
//!
//! It alone needs a client library in C, so that is in a table of its own: no test run installs it. Not here: running it.

use std::path::Path;

use anyhow::Result;

use crate::packages::{self, Package};
use crate::process;

const PACKAGES: &[Package] = &[Package {
    binary: "mariadb_config",
    package: "libmariadb-dev",
    why: "the ORM of the drivers links MariaDB's client library",
}];

/// The folder of its workspace.
const FOLDER: &str = "bench/drivers";

pub(crate) fn main() -> Result<()> {
    packages::ensure_of(PACKAGES)?;
    let folder = Path::new(FOLDER);
    // Where `cargo xtask bench drivers` looks, wherever the project itself is built.
    let mut command = process::cargo(&["build", "--release"])?;
    command.args(process::locked());
    command.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(folder.join("target"));
    process::run(&mut command)
}
