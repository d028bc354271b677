//! Writes the site into a folder, for `cargo xtask docs`. Files of an earlier run stay if nothing replaces them.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("name the folder")?;
    for name in tally_guide::names() {
        let (path, file) = (folder.join(name), tally_guide::file(name).ok_or(name)?);
        std::fs::create_dir_all(path.parent().ok_or(name)?)?;
        std::fs::write(path, file.text)?;
    }
    Ok(())
}
