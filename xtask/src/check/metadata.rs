//! `cargo metadata`, reduced to what the rules need: names, declared dependencies, and the resolved graph.
//!
//! Read through `serde_json::Value`, because half a dozen fields do not justify a derive macro in a crate that must
//! compile in seconds. A missing field is an error with its name, not a default.
//!
//! Not here: features and targets. A dependency of only some platforms counts as one.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DependencyKind {
    /// Normal and build dependencies: both are part of what is shipped.
    Normal,
    Dev,
}

/// A dependency as the manifest declares it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) member: bool,
    /// For members relative to the root of the workspace, for others absolute.
    pub(crate) manifest: String,
    pub(crate) declared: Vec<Dependency>,
    /// Names of the packages that this one really links, without dev-dependencies.
    pub(crate) linked: Vec<String>,
}

/// Parses the output of `cargo metadata --format-version 1`.
pub(crate) fn parse(json: &[u8]) -> Result<Vec<Package>> {
    let value: Value = serde_json::from_slice(json).context("read what cargo metadata says")?;
    let members: Vec<&str> = list(&value, "workspace_members")?.iter().filter_map(Value::as_str).collect();
    let root = format!("{}/", text(&value, "workspace_root")?.replace('\\', "/"));
    let mut names = HashMap::new();
    for package in list(&value, "packages")? {
        names.insert(text(package, "id")?, text(package, "name")?);
    }
    let mut linked = linked(&value, &names)?;
    let mut packages = Vec::new();
    for package in list(&value, "packages")? {
        let id = text(package, "id")?;
        let manifest = text(package, "manifest_path")?.replace('\\', "/");
        packages.push(Package {
            name: text(package, "name")?.to_owned(),
            member: members.contains(&id),
            manifest: manifest.strip_prefix(&root).map(str::to_owned).unwrap_or(manifest),
            declared: declared(package)?,
            linked: linked.remove(id).unwrap_or_default(),
        });
    }
    Ok(packages)
}

fn declared(package: &Value) -> Result<Vec<Dependency>> {
    let each = list(package, "dependencies")?.iter().map(|dependency| {
        let kind = kind(dependency.get("kind"));
        Ok(Dependency { name: text(dependency, "name")?.to_owned(), kind })
    });
    each.collect()
}

/// The resolved graph, from package id to the names it links.
fn linked(value: &Value, names: &HashMap<&str, &str>) -> Result<HashMap<String, Vec<String>>> {
    let name = |id: &str| Ok((*names.get(id).context("name a resolved package")?).to_owned());
    let of = |(id, needs): (&str, Vec<&str>)| {
        Ok((id.to_owned(), needs.into_iter().map(name).collect::<Result<_>>()?))
    };
    graph(value)?.into_iter().map(of).collect()
}

/// The resolved graph by package ids, without dev-dependencies.
pub(crate) fn graph(value: &Value) -> Result<HashMap<&str, Vec<&str>>> {
    let nodes = value.get("resolve").context("find `resolve` in the metadata")?;
    let mut graph = HashMap::new();
    for node in list(nodes, "nodes")? {
        let mut needs = Vec::new();
        for dependency in list(node, "deps")? {
            let kinds = list(dependency, "dep_kinds")?;
            if kinds.iter().any(|entry| kind(entry.get("kind")) == DependencyKind::Normal) {
                needs.push(text(dependency, "pkg")?);
            }
        }
        graph.insert(text(node, "id")?, needs);
    }
    Ok(graph)
}

fn kind(value: Option<&Value>) -> DependencyKind {
    if value.and_then(Value::as_str) == Some("dev") { DependencyKind::Dev } else { DependencyKind::Normal }
}

pub(crate) fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    value
        .get(field)
        .and_then(Value::as_array)
        .with_context(|| format!("find the list `{field}` in the metadata"))
}

pub(crate) fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value
        .get(field)
        .and_then(Value::as_str)
        .with_context(|| format!("find the text `{field}` in the metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{
        "workspace_root": "/r", "workspace_members": ["1"],
        "packages": [
            {"id": "1", "name": "a", "manifest_path": "/r/crates/a/Cargo.toml", "dependencies": [
                {"name": "b", "kind": null}, {"name": "b", "kind": "build"}, {"name": "c", "kind": "dev"}]},
            {"id": "2", "name": "b", "manifest_path": "/else/Cargo.toml", "dependencies": []},
            {"id": "3", "name": "c", "manifest_path": "/else/Cargo.toml", "dependencies": []}],
        "resolve": {"nodes": [
            {"id": "1", "deps": [{"pkg": "2", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                                 {"pkg": "3", "dep_kinds": [{"kind": "dev"}]}]},
            {"id": "2", "deps": []}]}}"#;

    #[test]
    fn the_fields_that_rules_need_are_kept() {
        let packages = parse(SAMPLE.as_bytes()).unwrap();
        let a = &packages[0];
        assert_eq!((a.name.as_str(), a.member, a.manifest.as_str()), ("a", true, "crates/a/Cargo.toml"));
        assert_eq!(
            a.declared.iter().filter(|d| d.kind == DependencyKind::Normal && d.name == "b").count(),
            2
        );
        assert_eq!(a.declared[2], Dependency { name: "c".into(), kind: DependencyKind::Dev });
        assert_eq!(a.linked, ["b"]);
        assert!(!packages[1].member);
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = parse(br#"{"workspace_members": []}"#).unwrap_err().to_string();
        assert!(error.contains("`workspace_root`"), "{error}");
    }
}
