//! Ports of containers: compose files and the `docker run` of documents publish on the loopback interface only, because Docker
//! passes by the firewall.
//!
//! It reads lines, not YAML: a port in a form that it does not know is a violation. Not here: ports of the image, which
//! `EXPOSE` names and opens to no other machine.

use super::Violation;
use super::repository::{File, Repository};

pub(super) const RULE: &str = "ports";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let files = |wanted: fn(&str) -> bool| repository.files.iter().filter(move |file| wanted(&file.path));
    let composed =
        files(is_compose).flat_map(|file| published(file).into_iter().map(move |port| (file, port)));
    let run = files(|path| path.ends_with(".md"))
        .flat_map(|file| published_by_commands(file).into_iter().map(move |port| (file, port)));
    composed.chain(run).filter_map(|(file, port)| port.violation(file)).collect()
}

/// The ports of each `docker run` in a document. A command has one line.
fn published_by_commands(file: &File) -> Vec<Published> {
    let of_command = |(line, text): (usize, &str)| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_run = words.windows(2).any(|pair| ["docker", "podman"].contains(&pair[0]) && pair[1] == "run");
        let values =
            words.windows(2).filter(|pair| ["-p", "--publish"].contains(&pair[0])).map(|pair| pair[1]);
        let joined = words.iter().filter_map(|word| word.strip_prefix("--publish="));
        let all = ["-P", "--publish-all", "--network=host", "--net=host"];
        let all = words.iter().copied().filter(|word| all.contains(word));
        let lines = values.chain(joined).chain(all).filter(|_| is_run);
        lines.map(|port| Published { line, lines: vec![port.to_owned()] }).collect::<Vec<_>>()
    };
    file.lines().flat_map(of_command).collect()
}

pub(super) fn is_compose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = name.strip_prefix("docker-").unwrap_or(name);
    name.starts_with("compose.") && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

/// What publishes a port.
struct Published {
    line: usize,
    /// An item of `ports`, its lines without the dash; or the line of a service without a network of its own.
    lines: Vec<String>,
}

impl Published {
    fn violation(&self, file: &File) -> Option<Violation> {
        let address = self.lines.iter().find_map(|line| line.strip_prefix("host_ip:"));
        let is_loopback = match address {
            Some(address) => ["127.0.0.1", "::1"].contains(&unquoted(address)),
            None => {
                let short = unquoted(&self.lines[0]);
                short.starts_with("127.0.0.1:") || short.starts_with("[::1]:")
            }
        };
        let message = format!("`{}` is open to other machines: publish on 127.0.0.1", self.lines[0]);
        (!is_loopback).then(|| Violation::new(RULE, &file.path, self.line, message))
    }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

fn published(file: &File) -> Vec<Published> {
    let mut all: Vec<Published> = Vec::new();
    // The key `ports` whose items these lines are: how far it is indented, and what was found before it.
    let mut ports: Option<(usize, usize)> = None;
    for (line, text) in file.lines() {
        let code = text.split(" #").next().unwrap_or_default();
        let (indent, code) = (code.len() - code.trim_start().len(), code.trim());
        if code.is_empty() || code.starts_with('#') {
            continue;
        }
        let of_ports = ports.filter(|(key, _)| indent > *key || (indent == *key && code.starts_with('-')));
        if let Some((_, before)) = of_ports {
            let item = code.strip_prefix('-');
            match all[before..].last_mut().filter(|_| item.is_none()) {
                Some(last) => last.lines.push(code.to_owned()),
                None => all.push(Published { line, lines: vec![item.unwrap_or(code).trim().to_owned()] }),
            }
            continue;
        }
        ports = None;
        match code.split_once(':').map(|(key, value)| (key, value.trim())) {
            Some(("ports", "")) => ports = Some((indent, all.len())),
            Some(("ports", list)) => {
                let list =
                    list.trim_matches(['[', ']']).split(',').map(str::trim).filter(|one| !one.is_empty());
                all.extend(list.map(|one| Published { line, lines: vec![one.to_owned()] }));
            }
            Some(("network_mode", mode)) if unquoted(mode) == "host" => {
                all.push(Published { line, lines: vec![code.to_owned()] });
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    /// The lines of violations in a compose file with this service.
    fn lines(service: &str) -> Vec<usize> {
        let text = format!("services:\n  a:\n{service}    restart: always\n");
        let found = check(&files(&[("deploy/compose.yaml", &text)]));
        found.into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_port_is_published_on_the_loopback_interface() {
        for service in [
            "    image: x\n",
            "    ports: []\n",
            "    ports:\n      # A comment.\n      - \"127.0.0.1:8420:8420\"\n      - '[::1]:8421:8421' # IPv6\n",
            "    ports:\n    - 127.0.0.1:8420:8420\n",
            "    ports: [\"127.0.0.1:8420:8420\", \"127.0.0.1::8421\"]\n",
            "    ports:\n      - target: 8420\n        published: \"8420\"\n        host_ip: 127.0.0.1\n",
            "    ports:\n      - host_ip: \"::1\"\n        target: 8420\n",
            "    expose:\n      - \"8420\"\n",
            "    environment:\n      - \"8420:8420\"\n",
        ] {
            assert!(lines(service).is_empty(), "{service}");
        }
    }

    #[test]
    fn a_port_that_other_machines_reach_is_a_violation() {
        for (port, line) in [
            ("    ports:\n      - \"8420:8420\"\n", 4),
            ("    ports:\n      - \"127.0.0.1:8420:8420\"\n\n      - 8421\n", 6),
            ("    ports:\n    - \"0.0.0.0:8420:8420\"\n", 4),
            ("    ports:\n      - \"[::]:8420:8420\"\n", 4),
            ("    ports:\n      - \"127.0.0.10:8420\"\n", 4),
            ("    ports:\n      - \"${ADDRESS}:8420:8420\"\n", 4),
            ("    ports: [\"127.0.0.1:8420:8420\", \"8421:8421\"]\n", 3),
            ("    ports:\n      - target: 8420\n        published: 8420\n", 4),
            ("    ports:\n      - target: 8420\n        host_ip: 0.0.0.0\n", 4),
            ("    ports:\n      - { target: 8420, host_ip: 127.0.0.1 }\n", 4),
            ("    ports:\n      [\"8420:8420\"]\n", 4),
            (
                "    ports:\n      - 127.0.0.1:1:1\n    expose:\n      - 2\n    ports:\n      [\"8420:8420\"]\n",
                8,
            ),
            ("    network_mode: \"host\"\n", 3),
        ] {
            assert_eq!(lines(port), [line], "{port}");
        }
    }

    #[test]
    fn compose_files_of_all_usual_names_are_read() {
        for name in ["compose.yaml", "a/compose.yml", "docker-compose.yml", "b/compose.override.yaml"] {
            assert_eq!(check(&files(&[(name, "  a:\n    ports:\n      - 80:80\n")])).len(), 1, "{name}");
        }
        assert_eq!(check(&files(&[("deploy/prometheus.yml", "ports:\n  - 80\n")])).len(), 0);
    }

    #[test]
    fn a_command_of_a_document_publishes_on_the_loopback_interface() {
        let found = |text: &str| check(&files(&[("docs/a.md", text)])).len();
        for (command, violations) in [
            ("docker run -p 127.0.0.1:80:80 --publish [::1]:81:81 a:1", 0),
            ("docker run a:1", 0),
            ("ssh -p 22 a", 0),
            ("docker run --rm -p 80:80 -p 127.0.0.1:81:81 a:1", 1),
            ("sudo docker run --publish 80:80 --publish=0.0.0.0:81:81 a:1", 2),
            ("podman run -P a:1", 1),
            ("docker run --network=host a:1", 1),
        ] {
            assert_eq!(found(&format!("Text.\n\n    {command}\n")), violations, "{command}");
        }
    }
}
