//! The test binaries of the workspace: cargo builds them and reports their paths.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// A test binary and the folder of its package, in which it runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Binary {
    pub(super) package: String,
    pub(super) target: String,
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
}

/// Builds all of them, with more arguments of cargo.
pub(super) fn build(more: &[&str]) -> Result<Vec<Binary>> {
    let mut command = process::cargo(&["test", "--workspace", "--no-run", "--message-format"])?;
    command.arg("json-render-diagnostics").args(more).args(process::locked());
    let printed = process::output(&mut command).context("the tests do not compile")?;
    let mut found = Vec::new();
    for line in printed.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{")) {
        found.extend(binary(&serde_json::from_slice(line).context("read what cargo says of the tests")?));
    }
    Ok(found)
}

/// The test binary in a message of cargo, if it is about one.
fn binary(message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    Some(Binary {
        package: folder.file_name()?.to_string_lossy().into_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        program: PathBuf::from(message["executable"].as_str()?),
        folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_tests_that_can_be_run_count() {
        let mut message = json!({
            "reason": "compiler-artifact",
            "manifest_path": "/p/crates/tally/Cargo.toml",
            "target": {"name": "api"},
            "profile": {"test": true},
            "executable": "/t/api-1",
        });
        let found = binary(&message).unwrap();
        assert_eq!((found.package.as_str(), found.target.as_str()), ("tally", "api"));
        assert_eq!((found.program, found.folder), ("/t/api-1".into(), "/p/crates/tally".into()));
        message["executable"] = Value::Null;
        assert_eq!(binary(&message), None);
        message["executable"] = json!("/t/tally");
        message["profile"]["test"] = json!(false);
        assert_eq!(binary(&message), None);
        assert_eq!(binary(&json!({"reason": "build-finished"})), None);
    }
}
