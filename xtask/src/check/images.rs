//! Container images: each is named by tag and digest, because a tag can be moved to another image.
//!
//! Not here: which images, and whether the registry has a digest.

use super::repository::{File, Repository};
use super::{Violation, ports};

pub(super) const RULE: &str = "images";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let named = |file: &&File| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        name == "Dockerfile" || ports::is_compose(&file.path)
    };
    let files = repository.files.iter().filter(named);
    files.flat_map(|file| movable(file).map(|(line, image)| report(file, line, image))).collect()
}

fn report(file: &File, line: usize, image: &str) -> Violation {
    Violation::new(RULE, &file.path, line, format!("`{image}` needs its digest: `NAME:TAG@sha256:…`"))
}

/// Images without a digest.
fn movable(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let images = file.lines().filter_map(|(number, line)| {
        let line = line.trim();
        let image = line.strip_prefix("FROM ").or_else(|| line.strip_prefix("image: "))?;
        Some((number, image.split_whitespace().next().unwrap_or_default()))
    });
    images.filter(|(_, image)| !has_digest(image))
}

fn has_digest(image: &str) -> bool {
    image.split_once("@sha256:").is_some_and(|(name, digest)| {
        name.contains(':') && digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    #[test]
    fn an_image_needs_tag_and_digest() {
        let digest = "0123456789abcdef".repeat(4);
        let lines = |image: &str| {
            let (docker, compose) =
                (format!("# x\nFROM {image} AS build\n"), format!("a:\n  image: {image}\n"));
            let found = check(&files(&[("Dockerfile", &docker), ("deploy/compose.yaml", &compose)]));
            found.into_iter().map(|violation| (violation.path, violation.line)).collect::<Vec<_>>()
        };
        assert_eq!(lines(&format!("debian:12@sha256:{digest}")), []);
        for image in ["debian:12", "debian:latest@sha256:0123", &format!("debian@sha256:{digest}")] {
            assert_eq!(
                lines(image),
                [("Dockerfile".into(), 2), ("deploy/compose.yaml".into(), 2)],
                "{image}"
            );
        }
    }
}
