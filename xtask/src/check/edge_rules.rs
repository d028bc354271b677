//! Compares the dependencies that cargo reports with the table in `edges.rs`.
//!
//! Inside the workspace the declared edges are an allow list: an edge outside the table is a violation, and so is a
//! crate without a row. Outside, a row may name the only packages allowed, or packages that must not even be linked
//! through others. For the latter the violation prints the chain, because the manifest alone does not show it.
//!
//! Not here: whether an allowed edge is used.

use std::collections::{HashMap, VecDeque};

use super::Violation;
use super::edges::{EDGES, Edges, HOLDERS, Outside, TESTKIT};
use super::metadata::{DependencyKind, Package};
use super::repository::Repository;

pub(super) const RULE: &str = "crate-edges";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    compare(&repository.packages, EDGES, HOLDERS)
}

fn compare(packages: &[Package], table: &[Edges], holders: &[(&str, &[&str])]) -> Vec<Violation> {
    let members: Vec<&str> =
        packages.iter().filter(|package| package.member).map(|p| p.name.as_str()).collect();
    let mut found = Vec::new();
    for package in packages.iter().filter(|package| package.member) {
        let Some(row) = table.iter().find(|row| row.name == package.name) else {
            found.push(violation(package, "has no row in xtask/src/check/edges.rs".to_owned()));
            continue;
        };
        for dependency in &package.declared {
            let name = dependency.name.as_str();
            let inside = members.contains(&name) || table.iter().any(|row| row.name == name);
            let message = match (dependency.kind, inside) {
                (DependencyKind::Normal, true) => inside_normal(row, name),
                (DependencyKind::Dev, true) => inside_dev(row, name, table),
                (DependencyKind::Normal, false) => outside_normal(row, name, holders),
                (DependencyKind::Dev, false) => None,
            };
            found.extend(message.map(|message| violation(package, message)));
        }
        found.extend(linked(package, row, packages).into_iter().map(|message| violation(package, message)));
    }
    found.dedup();
    found
}

fn violation(package: &Package, message: String) -> Violation {
    Violation::new(RULE, &package.manifest, 0, format!("{} {message}", package.name))
}

fn inside_normal(row: &Edges, name: &str) -> Option<String> {
    if name == TESTKIT {
        return Some(format!("may name {TESTKIT} under [dev-dependencies] only"));
    }
    (!row.inside.contains(&name)).then(|| format!("may not depend on {name}"))
}

/// Tests may name what the crate links anyway, directly or through others, and the test kit.
fn inside_dev(row: &Edges, name: &str, table: &[Edges]) -> Option<String> {
    let mut below = row.inside.to_vec();
    let mut next = 0;
    while let Some(current) = below.get(next).copied() {
        let more = table.iter().find(|row| row.name == current).map_or(&[][..], |row| row.inside);
        let more: Vec<&str> = more.iter().copied().filter(|name| !below.contains(name)).collect();
        below.extend(more);
        next += 1;
    }
    let allowed = name == TESTKIT || name == row.name || below.contains(&name);
    (!allowed).then(|| format!("may not depend on {name}, not even in tests"))
}

fn outside_normal(row: &Edges, name: &str, holders: &[(&str, &[&str])]) -> Option<String> {
    if let Some((_, crates)) =
        holders.iter().find(|(held, crates)| *held == name && !crates.contains(&row.name))
    {
        return Some(format!("may not name {name}: only {} may", crates.join(" and ")));
    }
    match row.outside {
        Outside::Only(allowed) => {
            (!allowed.contains(&name)).then(|| format!("may not use {name}: it uses {}", listed(allowed)))
        }
        // Linking through others is forbidden as well, so `linked` checks the graph.
        Outside::Never(_) | Outside::Any => None,
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing from outside".to_owned()
    } else {
        format!("{} alone", names.join(" and "))
    }
}

/// The forbidden packages that are linked, each with the shortest path to it.
fn linked(package: &Package, row: &Edges, packages: &[Package]) -> Vec<String> {
    let forbidden = match row.outside {
        Outside::Never(names) => names,
        Outside::Any | Outside::Only(_) => &[],
    };
    let came_from = walk(&package.name, packages);
    let found = forbidden.iter().filter(|name| came_from.contains_key(**name));
    found.map(|name| format!("links {name}: {}", chain(&came_from, name))).collect()
}

/// For every package that `start` links, the package that led to it.
fn walk<'a>(start: &'a str, packages: &'a [Package]) -> HashMap<&'a str, &'a str> {
    let mut came_from = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(current) = queue.pop_front() {
        for package in packages.iter().filter(|package| package.name == current) {
            for next in &package.linked {
                if next != start && !came_from.contains_key(next.as_str()) {
                    came_from.insert(next.as_str(), current);
                    queue.push_back(next);
                }
            }
        }
    }
    came_from
}

fn chain(came_from: &HashMap<&str, &str>, end: &str) -> String {
    let mut names = vec![end];
    while let Some(previous) = names.last().and_then(|name| came_from.get(name)) {
        names.push(previous);
    }
    names.reverse();
    names.join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Dependency;
    use super::*;

    const TABLE: &[Edges] = &[
        Edges { name: "low", inside: &[], outside: Outside::Only(&["hash"]) },
        Edges { name: "mid", inside: &["low"], outside: Outside::Never(&["net"]) },
        Edges { name: "top", inside: &["mid"], outside: Outside::Any },
        Edges { name: TESTKIT, inside: &["low"], outside: Outside::Any },
    ];

    fn member(name: &str, declared: &[(&str, DependencyKind)]) -> Package {
        let dependency =
            |(name, kind): &(&str, DependencyKind)| Dependency { name: (*name).into(), kind: *kind };
        Package {
            name: name.into(),
            member: true,
            declared: declared.iter().map(dependency).collect(),
            linked: declared
                .iter()
                .filter(|(_, kind)| *kind == DependencyKind::Normal)
                .map(|(name, _)| (*name).into())
                .collect(),
            ..Package::default()
        }
    }

    fn outsider(name: &str, linked: &[&str]) -> Package {
        Package {
            name: name.into(),
            linked: linked.iter().map(|name| (*name).into()).collect(),
            ..Package::default()
        }
    }

    fn messages(packages: &[Package]) -> Vec<String> {
        compare(packages, TABLE, &[("sql", &["low"])])
            .into_iter()
            .map(|violation| violation.message)
            .collect()
    }

    #[test]
    fn allowed_edges_pass() {
        let packages = [
            member("low", &[("hash", DependencyKind::Normal), ("random", DependencyKind::Dev)]),
            member(
                "mid",
                &[
                    ("low", DependencyKind::Normal),
                    ("json", DependencyKind::Normal),
                    (TESTKIT, DependencyKind::Dev),
                ],
            ),
            member(
                "top",
                &[
                    ("mid", DependencyKind::Normal),
                    ("low", DependencyKind::Dev),
                    ("net", DependencyKind::Normal),
                ],
            ),
        ];
        assert_eq!(messages(&packages), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_a_violation() {
        assert_eq!(
            messages(&[member("top", &[("low", DependencyKind::Normal)])]),
            ["top may not depend on low"]
        );
        assert_eq!(
            messages(&[member("low", &[("mid", DependencyKind::Dev)])]),
            ["low may not depend on mid, not even in tests"]
        );
    }

    #[test]
    fn the_test_kit_is_for_tests() {
        let found = messages(&[member("top", &[(TESTKIT, DependencyKind::Normal)])]);
        assert_eq!(found, [format!("top may name {TESTKIT} under [dev-dependencies] only")]);
    }

    #[test]
    fn a_crate_needs_a_row() {
        assert_eq!(messages(&[member("new", &[])]), ["new has no row in xtask/src/check/edges.rs"]);
    }

    #[test]
    fn outside_packages_are_held_to_the_list() {
        assert_eq!(
            messages(&[member("low", &[("json", DependencyKind::Normal)])]),
            ["low may not use json: it uses hash alone"]
        );
        assert_eq!(
            messages(&[member("top", &[("sql", DependencyKind::Normal)])]),
            ["top may not name sql: only low may"]
        );
    }

    #[test]
    fn a_forbidden_package_is_found_through_others() {
        let packages = [
            member("mid", &[("json", DependencyKind::Normal)]),
            outsider("json", &["async"]),
            outsider("async", &["net"]),
        ];
        assert_eq!(messages(&packages), ["mid links net: mid -> json -> async -> net"]);
    }

    #[test]
    fn the_table_has_no_cycle_and_no_unknown_name() {
        for (position, row) in EDGES.iter().enumerate() {
            for name in row.inside {
                let below = EDGES.iter().position(|row| row.name == *name);
                assert!(below.is_some_and(|below| below < position), "{} -> {name}", row.name);
            }
        }
    }
}
