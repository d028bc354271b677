//! What registries and the package manager of Unity need of the packages: licences, one version, and an identity for each file.
//!
//! Unity ignores a file of a package from git that has no identity in a `.meta` file beside it. Not here: the builds of `npm pack`
//! and `python -m build`, which fetch their tools.

use super::package;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&text(&package(path))).expect("it is JSON")
}

/// What is between two texts in a file of the packages.
fn between(path: &str, before: &str, after: &str) -> String {
    let text = text(&package(path));
    let (_, rest) = text.split_once(before).expect("it has the beginning");
    rest.split_once(after).expect("it has the end").0.to_owned()
}

#[test]
fn each_package_has_the_licences_of_the_repository() {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let ours = text(&package("..").join(name));
        for folder in ["typescript", "python", "csharp"] {
            assert_eq!(text(&package(folder).join(name)), ours, "{folder}/{name}");
        }
    }
}

#[test]
fn the_packages_have_one_version() {
    let version = json("typescript/package.json")["version"].clone();
    assert_eq!(json("csharp/package.json")["version"], version);
    assert_eq!(between("csharp/TallyClient.csproj", "<Version>", "</Version>"), version);
    assert_eq!(between("python/pyproject.toml", "\nversion = \"", "\"\n"), version);
}

/// The files and folders that Unity sees: not those with a dot or a tilde.
fn seen_by_unity(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().expect("it has a name").to_str().expect("a name is text");
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        found.push(path.to_str().expect("a path is text").to_owned());
        if path.is_dir() {
            seen_by_unity(&path, found);
        }
    }
}

#[test]
fn each_file_of_the_package_for_unity_has_an_identity() {
    let mut files = Vec::new();
    seen_by_unity(&package("csharp"), &mut files);
    let (metas, files): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|path| path.ends_with(".meta"));
    let metas: HashSet<String> = metas.into_iter().collect();
    let wanted: HashSet<String> = files.iter().map(|path| format!("{path}.meta")).collect();
    assert_eq!(metas, wanted, "a file without its .meta, or a .meta without its file");
    let identity = |path: &String| text(Path::new(path)).lines().nth(1).map(str::to_owned);
    let identities: HashSet<String> = metas.iter().filter_map(identity).collect();
    assert!(identities.iter().all(|line| line.starts_with("guid: ")), "{identities:?}");
    assert_eq!(identities.len(), files.len(), "two files have one identity");
}

#[test]
fn the_manifest_for_unity_names_what_is_there() {
    let manifest = json("csharp/package.json");
    for field in ["name", "displayName", "description", "unity"] {
        assert!(manifest[field].is_string(), "{field}");
    }
    for sample in manifest["samples"].as_array().expect("it has samples") {
        let path = sample["path"].as_str().expect("a sample has a path");
        assert!(package("csharp").join(path).is_dir(), "{path}");
    }
    assert_eq!(json("csharp/Runtime/TallyClient.asmdef")["name"], "TallyClient");
}

/// Only a .NET SDK builds the project, and the tests compile its sources with Mono: both take the same files.
#[test]
fn the_project_for_dotnet_has_the_sources_that_the_tests_compile() {
    let project = "csharp/TallyClient.csproj";
    assert_eq!(between(project, "<Compile Include=\"", "\""), "Runtime/**/*.cs");
    let entries = std::fs::read_dir(package("csharp/Runtime")).expect("the folder can be read");
    let folders = entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()));
    assert_eq!(folders.count(), 0, "the tests compile the files of `Runtime`, and of no folder in it");
    assert_eq!(between(project, "<TargetFramework>", "</TargetFramework>"), "netstandard2.1");
    assert!(!text(&package(project)).contains("Reference"), "the package has no dependencies");
}
