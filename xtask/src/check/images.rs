//! Container images: each is named by tag and digest, because a tag can be moved to another image. In a document a tag is
//! enough, because its commands are for trying out.
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
    let built = files.flat_map(|file| movable(file).map(move |(line, image)| report(file, line, image)));
    let documents = repository.files.iter().filter(|file| file.path.ends_with(".md"));
    let run = documents.flat_map(|file| {
        let images = file.lines().filter_map(|(line, text)| Some((line, run_by(text)?)));
        images.filter(|(_, image)| !has_tag(image)).map(move |(line, image)| {
            let message = format!("`{image}` needs its release: `NAME:TAG`");
            Violation::new(RULE, &file.path, line, message)
        })
    });
    built.chain(run).collect()
}

/// The image that a command of a document runs or pulls.
fn run_by(line: &str) -> Option<&str> {
    const WITH_VALUE: [&str; 10] =
        ["-p", "--publish", "-e", "--env", "-v", "--volume", "--name", "--network", "-u", "--user"];
    let mut words = line.split_whitespace();
    words.find(|word| ["docker", "podman"].contains(word))?;
    words.next().filter(|word| ["run", "pull"].contains(word))?;
    loop {
        match words.next()? {
            option if WITH_VALUE.contains(&option) => {
                let _value = words.next();
            }
            option if option.starts_with('-') => {}
            image => return Some(image),
        }
    }
}

fn has_tag(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest")
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

    #[test]
    fn an_image_of_a_document_needs_a_tag() {
        let found = |text: &str| check(&files(&[("docs/a.md", text)])).len();
        for (command, violations) in [
            ("docker run --rm -p 127.0.0.1:80:80 --env A=1 jaegertracing/jaeger:2.17.0 --version", 0),
            ("docker pull registry:5000/a:1", 0),
            ("docker compose up -d", 0),
            ("docker run", 0),
            ("docker run --rm -p 127.0.0.1:80:80 jaegertracing/jaeger", 1),
            ("sudo podman pull a:latest", 1),
            ("docker run --name=x registry:5000/a b:1", 1),
        ] {
            assert_eq!(found(&format!("Text.\n\n    {command}\n")), violations, "{command}");
        }
    }
}
