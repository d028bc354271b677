//! `cargo xtask docs`: the documentation as a server has it at `/docs/guide`, as plain files in `guide` of the target folder.
//!
//! An example of `tally-guide` writes them, so that xtask does not depend on that crate. Not here: the rules of links, which
//! `cargo xtask check` and the tests of that crate have.

use anyhow::Result;

use crate::process;

pub(crate) fn main() -> Result<()> {
    let folder = process::target_folder()?.join("guide");
    let mut command = process::cargo(&["run", "--quiet", "--package", "tally-guide", "--example", "site"])?;
    command.args(process::locked()).arg("--").arg(&folder);
    process::run(&mut command)?;
    println!("docs: open {}", folder.join("index.html").display());
    Ok(())
}
