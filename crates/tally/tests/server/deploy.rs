//! The files of `deploy` and the SQL of its pages, as an operator uses them: the unit of systemd, the manifests of Kubernetes, an account
//! of a database, and passwords in files.
//!
//! Not here: alerts and the dashboard (`edges/watching`).

use crate::TALLY;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use tally_testkit::command::run_set;
use tally_testkit::{Client, DatabaseKind, RedisKind, ScratchDatabase, ScratchRedis, TestTally, wait_until};

const UNIT: &str = include_str!("../../../../deploy/systemd/tally.service");
const MANIFEST: &str = include_str!("../../../../deploy/kubernetes/tally.yaml");
const CLUSTER: &str = include_str!("../../../../deploy/kubernetes/tally-cluster.yaml");
const MIGRATE: &str = include_str!("../../../../deploy/kubernetes/migrate.yaml");
const COMPOSE: &str = include_str!("../../../../compose.yaml");
const PAGE: &str = include_str!("../../../../docs/deploy/one-database.md");

/// `http.drain_timeout` by default.
const DRAIN_TIMEOUT_S: u64 = 20;

/// The value of a line of the unit.
fn of_unit(name: &str) -> &'static str {
    let line = UNIT.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("the unit has {name}"))
}

#[test]
fn the_unit_of_systemd_starts_reloads_and_ends_a_server() {
    let mut server = TestTally::stopped(TALLY);
    let config = server.data().join("tally.toml");
    std::fs::write(&config, "[limits]\nboards = 7\n").expect("it is written");
    let mut words = of_unit("ExecStart").split(' ');
    assert_eq!((words.next(), words.next()), (Some("/usr/local/bin/tally"), Some("serve")));
    while let (Some(flag), Some(value)) = (words.next(), words.next()) {
        match flag {
            // The server of the test has a directory of its own.
            "--data" => assert_eq!(value, format!("/var/lib/{}", of_unit("StateDirectory"))),
            "--config" => [flag, config.to_str().expect("UTF-8")].iter().for_each(|arg| server.add_arg(arg)),
            _ => [flag, value].iter().for_each(|arg| server.add_arg(arg)),
        }
    }
    server.allow("\"level\":\"WARN\"");
    server.restart();
    let settings = server.local().get("/v1/status").expect(200)["settings"].clone();
    assert_eq!(settings["limits.boards"]["value"], "7");
    let reload = of_unit("ExecReload").split(' ').find_map(|word| word.strip_prefix('-'));
    server.signal(reload.expect("a signal"));
    server.wait_logged("SIGHUP: files were opened again");
    server.signal(of_unit("KillSignal").trim_start_matches("SIG"));
    server.wait_end();
    let seconds: u64 = of_unit("TimeoutStopSec").parse().expect("a number");
    assert!(seconds > DRAIN_TIMEOUT_S);
    let files: u64 = of_unit("LimitNOFILE").parse().expect("a number");
    assert!(files > 2 * 10_000 + 2_000, "both protocols at their defaults, databases and files");
}

/// systemd reads the unit, and finds little that an attacker in the process could use.
#[test]
fn systemd_reads_the_unit_and_finds_it_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let unit = folder.path().join("tally.service");
    let text = UNIT.replace("/usr/local/bin/tally", TALLY).replace("User=tally", "User=daemon");
    std::fs::write(&unit, text.replace("Group=tally", "Group=daemon")).expect("it is written");
    let analyze = |args: &[&str], unit: &Path| {
        let done = Command::new("systemd-analyze").args(args).arg(unit).output().expect("it is installed");
        let said =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{said}");
        said
    };
    let verified = analyze(&["verify", "--man=no"], &unit);
    assert!(!verified.contains("tally.service"), "{verified}");
    // Of 100; a unit without these lines has 96.
    analyze(&["security", "--offline=yes", "--threshold=15", "--no-pager"], &unit);
}

/// The variables of the container in a manifest.
fn variables(manifest: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        let name = pair[0].strip_prefix("- name: ").filter(|name| name.starts_with("TALLY_"))?;
        Some((name, pair[1].strip_prefix("value: ").expect("each variable has a value")))
    });
    pairs.collect()
}

/// What follows these words in a line of a manifest.
fn of_manifest<'a>(manifest: &'a str, words: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| line.trim().strip_prefix(words))
}

/// Gives a server the variables of a manifest, with its secrets in this folder. Returns `http.drain_delay` in seconds.
fn set_by(manifest: &str, server: &mut TestTally, secrets: &Path) -> u64 {
    let mut drain_delay_s = 0;
    for (name, value) in variables(manifest) {
        match name {
            "TALLY_DATA" => assert!(value.starts_with("/var/lib/tally/"), "it is in the volume"),
            "TALLY_HTTP_LISTEN" | "TALLY_RESP_LISTEN" => assert!(value.starts_with("0.0.0.0:842"), "{value}"),
            "TALLY_ADMIN_LISTEN" => server.set(name, "127.0.0.1:0"),
            "TALLY_HTTP_DRAIN_DELAY" => {
                drain_delay_s = value.trim_end_matches('s').parse().expect("seconds");
            }
            _ => match value.strip_prefix("/run/secrets/tally/") {
                Some(file) => server.set(name, secrets.join(file).to_str().expect("UTF-8")),
                None => server.set(name, value),
            },
        }
    }
    drain_delay_s
}

/// Starts a server by a manifest, whose probes are answered and whose pod has time to end.
fn starts_by(manifest: &str, server: &mut TestTally, secrets: &Path) {
    let drain_delay_s = set_by(manifest, server, secrets);
    let ready = server.restart();
    let admin = ready.split(' ').find_map(|word| word.strip_prefix("admin=")).expect("its address");
    let mut client = Client::new(admin.parse().expect("an address"));
    let paths: Vec<&str> = manifest.lines().filter_map(|line| line.trim().strip_prefix("path: ")).collect();
    assert_eq!(paths, ["/healthz", "/healthz", "/readyz"], "a start that loads is alive and not ready");
    paths.iter().for_each(|path| assert_eq!(client.get(path).status, 200, "{path}"));
    let grace = of_manifest(manifest, "terminationGracePeriodSeconds: ").expect("it has one");
    let grace: u64 = grace.parse().expect("seconds");
    assert!(drain_delay_s > 0 && grace > drain_delay_s + DRAIN_TIMEOUT_S);
    assert_eq!(of_manifest(manifest, "enableServiceLinks: "), Some("false"));
}

#[test]
fn the_manifest_of_kubernetes_has_settings_and_probes_that_work() {
    let mut server = TestTally::stopped(TALLY);
    let folder = server.data().to_owned();
    starts_by(MANIFEST, &mut server, &folder);
}

/// Two of its pods work on one database and one Redis, by the secrets that its first lines make.
#[test]
fn the_manifest_of_several_servers_has_servers_that_work_together() {
    let database = ScratchDatabase::shared(DatabaseKind::MySql9);
    let redis = ScratchRedis::start(RedisKind::Valkey9, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("secret", "5e".repeat(32)),
        ("store_url", database.create_database()),
        ("ranking_url", format!("redis://{}", redis.address())),
    ] {
        assert!(CLUSTER.contains(&format!(" --from-file={name}")), "the secret has {name}");
        std::fs::write(folder.path().join(name), text).expect("it is written");
    }
    let mut servers: Vec<TestTally> = (0..2).map(|_| TestTally::stopped(TALLY)).collect();
    for server in &mut servers {
        // Those of the tests would be other sources.
        ["TALLY_STORE_URL", "TALLY_RANKING_URL"].iter().for_each(|name| server.set(name, ""));
        server.allow_late_reads();
        starts_by(CLUSTER, server, folder.path());
    }
    let [one, other] = &mut servers[..] else { panic!("there are two") };
    one.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    let path = "/v1/leaderboards/b";
    wait_until("the other server knows the leaderboard", || other.client().get(path).status == 200);
    let scores = format!("{path}/scores");
    let score = json!({"player": "ann", "score": 1});
    wait_until("the other server takes a score", || other.client().post(&scores, &score).status == 200);
    wait_until("the first server has it", || one.client().get(&scores).json()["total"] == 1);
    [&mut *one, &mut *other].into_iter().for_each(TestTally::terminate);
    // The job of an upgrade has the same settings, and no listener.
    let of_store: Vec<_> =
        variables(CLUSTER).into_iter().take_while(|(name, _)| !name.contains("LISTEN")).collect();
    assert_eq!(variables(MIGRATE), of_store);
    assert_eq!(of_manifest(MIGRATE, "args: "), Some("[\"migrate\"]"));
    one.run(&["migrate"]).expect(0);
    for line in ["type: RollingUpdate", "maxUnavailable: 0", "kind: PodDisruptionBudget"] {
        assert!(of_manifest(CLUSTER, line).is_some(), "{line}");
    }
}

/// The environment of a container is shown to each account that may ask Docker for it.
#[test]
fn the_compose_file_has_its_secrets_in_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let head: Vec<&str> = COMPOSE.lines().map_while(|line| line.strip_prefix('#')).collect();
    let commands = head.iter().filter_map(|line| line.strip_prefix("   "));
    let commands: Vec<&str> = commands.take_while(|command| !command.starts_with("docker ")).collect();
    let made = Command::new("sh").args(["-ec", &commands.join("\n")]).current_dir(&folder).status();
    assert!(made.expect("a shell").success(), "{commands:?}");
    let variables = COMPOSE.lines().filter_map(|line| line.trim().split_once(": "));
    let mut files = Vec::new();
    for (name, value) in
        variables.filter(|(name, _)| name.starts_with("TALLY_") || name.starts_with("MYSQL_"))
    {
        assert!(!value.contains(['$', '@']), "{name} has a secret");
        let Some(file) = value.strip_prefix("/run/secrets/") else { continue };
        assert!(COMPOSE.contains(&format!("\n  {file}:\n    file: ./secrets/{file}\n")), "{file}");
        files.push((
            name,
            std::fs::read_to_string(folder.path().join("secrets").join(file)).expect("it is made"),
        ));
    }
    let [(_, password), (url_name, url), (secret_name, secret)] = &files[..] else { panic!("{files:?}") };
    assert_eq!([*url_name, *secret_name], ["TALLY_STORE_URL_FILE", "TALLY_SECRET_FILE"]);
    assert_eq!(*url, format!("mysql://tally:{password}@mysql:3306/tally"));
    assert_eq!((password.len(), secret.len()), (32, 64));
    let mut server = TestTally::stopped(TALLY);
    let secret = folder.path().join("secrets/secret");
    server.set(secret_name, secret.to_str().expect("UTF-8"));
    server.restart();
}

/// The first block of this language in a page.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("the page has it");
    rest.split_once("```").expect("it ends").0
}

#[test]
fn the_page_of_a_database_makes_an_account_that_is_enough() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let database = ScratchDatabase::shared(kind);
        database.sql(&block(PAGE, "sql").replace("10.0.0.%", "%"));
        let url = block(PAGE, "toml").lines().find_map(|line| line.strip_prefix("url = "));
        let url = url.expect("a URL").trim_matches('"');
        let url = url.replace("db.example:3306", &database.address().to_string());
        let mut server = TestTally::stopped(TALLY);
        let secret = server.data().join("store_url");
        std::fs::write(&secret, format!("{url}\n")).expect("it is written");
        // A URL of the environment of the tests would be another source.
        server.set("TALLY_STORE_URL", "");
        server.set("TALLY_STORE_URL_FILE", secret.to_str().expect("UTF-8"));
        server.restart();
        server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
        server.client().post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 1})).expect(200);
        let settings = server.local().get("/v1/status").expect(200)["settings"].clone();
        assert_eq!(settings["store.url"]["source"], "its file");
        assert!(!settings.to_string().contains("PASSWORD"), "{settings}");
        server.terminate();
        server.restart();
        assert_eq!(server.client().get("/v1/leaderboards/b/scores").expect(200)["total"], 1);
        server.terminate();
        database.sql("DROP DATABASE tally; DROP USER 'tally'@'%'");
        // There is nothing left for the check at the end.
        server.set("TALLY_STORE_URL_FILE", "");
    }
}

#[test]
fn a_file_for_a_secret_setting_is_read_or_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
    std::fs::write(&full, "mysql://root@127.0.0.1:1/x\n").expect("it is written");
    std::fs::write(&empty, "\n").expect("it is written");
    let [full, empty] = [&full, &empty].map(|path| path.to_str().expect("UTF-8"));
    let missing = format!("{full}.missing");
    for (name, file, says) in [
        ("TALLY_STORE_URL_FILE", missing.as_str(), "cannot be read"),
        ("TALLY_RANKING_URL_FILE", empty, "which is empty"),
    ] {
        let done = run_set(TALLY, folder.path(), &["serve"], &[(name, file)]);
        done.expect(2);
        assert!(done.stderr.contains(says), "{}", done.stderr);
    }
    let both = [("TALLY_STORE_URL_FILE", full), ("TALLY_STORE_URL", "mysql://root@127.0.0.1:2/x")];
    let done = run_set(TALLY, folder.path(), &["serve"], &both);
    done.expect(2);
    assert!(done.stderr.contains("`store.url` and `store.url_file` exclude each other"), "{}", done.stderr);
}
