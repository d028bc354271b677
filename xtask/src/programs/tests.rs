//! Tests of what is unpacked, and what a run without it says.

use super::*;

fn program(name: &str) -> &'static Program {
    PROGRAMS.iter().find(|program| program.name() == name).unwrap()
}

#[test]
fn nothing_missing_means_nothing_done() {
    assert_eq!(plan(&[], true, true), Plan::Nothing);
    assert_eq!(plan(&[], false, false), Plan::Nothing);
}

#[test]
fn root_on_debian_makes_a_suite_with_all_its_packages() {
    let valkey = program("valkey-server");
    let client = "mysql-client-core";
    let all = vec!["valkey-server", "mysql-server-core", client, client, client];
    assert_eq!(plan(&[valkey], true, true), Plan::Make(vec![("unstable", all)]));
    let (redis, database) = (program("redis-server"), program("mariadbd"));
    let Plan::Make(suites) = plan(&[redis, database, valkey], true, true) else { panic!("it is root") };
    assert_eq!(suites.iter().map(|(suite, _)| *suite).collect::<Vec<_>>(), ["bookworm", "unstable"]);
    assert!(suites[0].1.contains(&"mariadb-plugin-spider"));
}

#[test]
fn rows_say_why_have_names_of_their_own_and_stand_by_suite() {
    for (at, row) in PROGRAMS.iter().enumerate() {
        assert!(!row.why.is_empty() && !row.packages.is_empty(), "{}", row.path);
        assert!(PROGRAMS[..at].iter().all(|other| other.name() != row.name()), "{}", row.path);
    }
    let mut suites: Vec<&str> = PROGRAMS.iter().map(|program| program.suite).collect();
    suites.dedup();
    assert_eq!(suites, ["bookworm", "unstable"]);
}

#[test]
fn a_database_server_is_there_with_its_data() {
    let folder = std::env::temp_dir().join(format!("tally-launchers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["mysqld", "mysql"] {
        std::fs::write(folder.join(name), "").unwrap();
        process::run(Command::new("chmod").arg("755").arg(folder.join(name))).unwrap();
    }
    assert!(program("mysql").is_in(&folder));
    assert!(!program("mysqld").is_in(&folder));
    std::fs::create_dir(fresh_data::of(&folder, "mysqld")).unwrap();
    assert!(program("mysqld").is_in(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_program_that_is_unpacked_gets_a_launcher_without_a_fetch() {
    let shared = std::env::temp_dir().join(format!("tally-unpacked-{}", std::process::id()));
    let (dump, launchers) = (program("mysqldump"), shared.join("bin"));
    launch_unpacked(&shared, dump).unwrap();
    assert!(!shared.exists(), "nothing is unpacked");
    let libraries = shared.join(dump.suite).join("usr/lib/x86_64-linux-gnu");
    std::fs::create_dir_all(&libraries).unwrap();
    std::fs::create_dir_all(shared.join(dump.suite).join("usr/bin")).unwrap();
    std::fs::write(libraries.join("ld-linux-x86-64.so.2"), "").unwrap();
    std::fs::write(shared.join(dump.suite).join(dump.path), "").unwrap();
    launch_unpacked(&shared, dump).unwrap();
    assert!(dump.is_in(&launchers));
    assert_eq!(entries(&launchers).len(), 1);
    std::fs::remove_dir_all(&shared).unwrap();
}

#[test]
fn everyone_else_gets_one_line() {
    let missing = [program("redis-server"), program("valkey-server")];
    let Plan::Ask(line) = plan(&missing, false, true) else { panic!("only root makes folders") };
    assert!(line.ends_with("cargo xtask packages"));
    let Plan::Ask(line) = plan(&missing, true, false) else { panic!("only Debian has its packages") };
    assert!(line.contains("redis-server and valkey-server") && line.contains(FOLDER_VARIABLE));
    let Plan::Ask(line) = plan(&[program("mysqld")], true, false) else { panic!("the same") };
    assert!(line.contains("mysqld and a fresh data directory mysqld.data"), "{line}");
}

#[test]
fn the_loader_and_its_libraries_are_found_in_both_layouts() {
    let folder = std::env::temp_dir().join(format!("tally-loader-{}", std::process::id()));
    let (old, new) = (folder.join("lib/x86_64-linux-gnu"), folder.join("usr/lib/x86_64-linux-gnu"));
    for part in [&old, &new] {
        std::fs::create_dir_all(part).unwrap();
    }
    assert!(loader(&folder).unwrap_err().to_string().contains("no loader"));
    std::fs::write(old.join("ld-linux-x86-64.so.2"), "").unwrap();
    let (found, libraries) = loader(&folder).unwrap();
    assert_eq!(found, old.join("ld-linux-x86-64.so.2"));
    assert_eq!(libraries, format!("{}:{}", old.display(), new.display()));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_kit_looks_where_the_launchers_are() {
    let kit = include_str!("../../../crates/testkit/src/process.rs");
    assert!(kit.contains(&format!("\"{LAUNCHERS}\"")) && kit.contains(&format!("\"{FOLDER_VARIABLE}\"")));
    let databases = include_str!("../../../crates/testkit/src/database.rs");
    assert!(databases.contains(&fresh_data::name("{}")));
}
