//! `tally --version --verbose`: commit, compiler, target and dependencies of this binary.
//!
//! `cargo deny` or a scanner of the operator can read the list of releases. It is that of Cargo.lock, so it also names what
//! only tests need. Not here: collecting it (`build.rs`).

/// One line for each external package that the build could use.
const DEPENDENCIES: &str = include_str!(concat!(env!("OUT_DIR"), "/dependencies.txt"));

/// The text, if these arguments ask for it.
pub(crate) fn requested_text(mut args: impl Iterator<Item = String>) -> Option<String> {
    let both = [args.next()?, args.next()?];
    let has = |names: &[&str]| both.iter().any(|arg| names.contains(&arg.as_str()));
    (args.next().is_none() && has(&["--version", "-V"]) && has(&["--verbose", "-v"])).then(text)
}

fn text() -> String {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("TALLY_BUILD_COMMIT"));
    let (rustc, target) = (env!("TALLY_BUILD_RUSTC"), env!("TALLY_BUILD_TARGET"));
    let mut text =
        format!("tally {version}\ncommit: {commit}\ncompiler: {rustc}\ntarget: {target}\ndependencies:\n");
    DEPENDENCIES.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}
