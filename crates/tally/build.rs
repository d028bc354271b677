//! What `tally --version --verbose` tells of a build: commit, compiler, target and the releases in Cargo.lock.
//!
//! The commit is of release builds only: a debug build would compile anew after each commit. Where there is no repository,
//! as in the build of an image, `TALLY_BUILD_COMMIT` says it.

#![allow(clippy::print_stdout, reason = "cargo reads it")]

use std::path::Path;
use std::process::Command;

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rerun-if-env-changed=TALLY_BUILD_COMMIT");
    let profile = variable("PROFILE");
    println!("cargo::rustc-env=TALLY_BUILD_COMMIT={}", commit(&profile));
    println!("cargo::rustc-env=TALLY_BUILD_TARGET={} ({profile})", variable("TARGET"));
    let rustc = output(&variable("RUSTC"), &["--version"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=TALLY_BUILD_RUSTC={rustc}");
    let lock = std::fs::read_to_string(&lock).unwrap_or_default();
    let to = Path::new(&variable("OUT_DIR")).join("dependencies.txt");
    std::fs::write(to, releases(&lock)).expect("the folder for what a build makes can be written to");
}

fn commit(profile: &str) -> String {
    if let Ok(given) = std::env::var("TALLY_BUILD_COMMIT") {
        return given;
    }
    if profile != "release" {
        return "not recorded".into();
    }
    let git = |args: &[&str]| output("git", args);
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    if changed { format!("{commit}, with changes") } else { commit }
}

/// One line for each package of others: name, release and digest.
fn releases(lock: &str) -> String {
    let mut text = String::new();
    for package in lock.split("[[package]]").skip(1) {
        let field =
            |name: &str| package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let field = |name| field(name).map(|value| value.trim_matches('"'));
        if let (Some(name), Some(version), Some(checksum)) =
            (field("name"), field("version"), field("checksum"))
        {
            text.push_str(&format!("{name} {version} sha256:{checksum}\n"));
        }
    }
    text
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let done = Command::new(program).args(args).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
