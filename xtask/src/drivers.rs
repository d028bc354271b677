//! Builds the program of other drivers that `cargo xtask bench drivers` compares with, in its own workspace.
//!
//! Only this program needs a client library in C, so it has its own table: no test run installs that. Not here: running
//! it.

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
    // `cargo xtask bench drivers` expects it here, whatever the target folder of the project.
    let mut command = process::cargo(&["build", "--release"])?;
    command.args(process::locked());
    command.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(folder.join("target"));
    process::run(&mut command)
}
