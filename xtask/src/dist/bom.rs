//! The list of the packages in a binary (a software bill of materials), in the format CycloneDX 1.6 (ECMA-424).
//!
//! Packages are those that the binary links or that run while it is built, as cargo resolves them for one platform. Digests are those of
//! Cargo.lock. Not here: packages of tests, and libraries of the system.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::check::metadata::{graph, list, text};

/// The digests of packages in Cargo.lock, by name and version.
pub(super) fn checksums(lock: &str) -> HashMap<(String, String), String> {
    let mut found = HashMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let before = format!("{name} = \"");
            package
                .lines()
                .find_map(|line| Some(line.strip_prefix(&before)?.trim_end_matches('"').to_owned()))
        };
        if let (Some(name), Some(version), Some(sum)) = (field("name"), field("version"), field("checksum")) {
            found.insert((name, version), sum);
        }
    }
    found
}

/// The document of the package `root`.
pub(super) fn of(metadata: &Value, root: &str, sums: &HashMap<(String, String), String>) -> Result<Value> {
    let mut packages = HashMap::new();
    for package in list(metadata, "packages")? {
        packages.insert(text(package, "id")?, package);
    }
    let graph = graph(metadata)?;
    let named = |id: &&str| {
        packages.get(*id).is_some_and(|package| text(package, "name").is_ok_and(|name| name == root))
    };
    let members: Vec<&str> = list(metadata, "workspace_members")?.iter().filter_map(Value::as_str).collect();
    let root = *members.iter().find(|id| named(id)).context("find the package in the workspace")?;
    let reached = reached(&graph, root);
    let purl = |id: &str| -> Result<String> {
        let package = packages.get(id).context("find a resolved package")?;
        Ok(format!("pkg:cargo/{}@{}", text(package, "name")?, text(package, "version")?))
    };
    let component = |id: &str, kind: &str| -> Result<Value> {
        let package = packages.get(id).context("find a resolved package")?;
        let (name, version) = (text(package, "name")?, text(package, "version")?);
        let mut one =
            json!({"type": kind, "bom-ref": purl(id)?, "name": name, "version": version, "purl": purl(id)?});
        if let Ok(license) = text(package, "license") {
            // Some old packages write a slash for OR.
            one["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
            one["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        Ok(one)
    };
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for id in &reached {
        let links =
            graph.get(id).into_iter().flatten().map(|id| purl(id)).collect::<Result<BTreeSet<_>>>()?;
        dependencies.insert(purl(id)?, links);
        if *id != root {
            components.insert(purl(id)?, component(id, "library")?);
        }
    }
    let dependencies: Vec<Value> =
        dependencies.into_iter().map(|(of, on)| json!({"ref": of, "dependsOn": on})).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(root, "application")?},
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

fn reached<'a>(graph: &HashMap<&'a str, Vec<&'a str>>, root: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut next) = (BTreeSet::from([root]), vec![root]);
    while let Some(id) = next.pop() {
        next.extend(graph.get(id).into_iter().flatten().filter(|id| found.insert(**id)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "workspace_members": ["t", "x"],
        "packages": [
            {"id": "t", "name": "tally", "version": "0.1.0", "license": "MIT"},
            {"id": "x", "name": "xtask", "version": "0.1.0", "license": "MIT"},
            {"id": "a", "name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0"},
            {"id": "b", "name": "b", "version": "2.0.0", "license": null},
            {"id": "c", "name": "c", "version": "3.0.0", "license": "MIT"}],
        "resolve": {"nodes": [
            {"id": "t", "deps": [{"pkg": "a", "dep_kinds": [{"kind": null}]}, {"pkg": "c", "dep_kinds": [{"kind": "dev"}]}]},
            {"id": "x", "deps": [{"pkg": "c", "dep_kinds": [{"kind": null}]}]},
            {"id": "a", "deps": [{"pkg": "b", "dep_kinds": [{"kind": "build"}]}]},
            {"id": "b", "deps": [{"pkg": "a", "dep_kinds": [{"kind": null}]}]},
            {"id": "c", "deps": []}]}
    }"#;

    #[test]
    fn a_document_has_what_is_built_and_no_package_of_tests() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\n[[package]]\nname = \"b\"\n\
                    version = \"2.0.0\"\n";
        let document = of(&serde_json::from_str(METADATA).unwrap(), "tally", &checksums(lock)).unwrap();
        assert_eq!(document["metadata"]["component"]["purl"], "pkg:cargo/tally@0.1.0");
        let a = json!({"type": "library", "bom-ref": "pkg:cargo/a@1.0.0", "name": "a", "version": "1.0.0",
            "purl": "pkg:cargo/a@1.0.0", "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": "00ff"}]});
        let b = json!({"type": "library", "bom-ref": "pkg:cargo/b@2.0.0", "name": "b", "version": "2.0.0",
            "purl": "pkg:cargo/b@2.0.0"});
        assert_eq!(document["components"], json!([a, b]));
        let needs = |of: &str, on: &str| json!({"ref": format!("pkg:cargo/{of}"), "dependsOn": [format!("pkg:cargo/{on}")]});
        let wanted = json!([
            needs("a@1.0.0", "b@2.0.0"),
            needs("b@2.0.0", "a@1.0.0"),
            needs("tally@0.1.0", "a@1.0.0")
        ]);
        assert_eq!(document["dependencies"], wanted);
        assert!(of(&serde_json::from_str(METADATA).unwrap(), "nothing", &HashMap::new()).is_err());
    }
}
