//! The sources of settings, and the messages about wrong ones.

use super::{TALLY, key};
use serde_json::{Value, json};
use std::path::PathBuf;
use tally_testkit::command::run_set;
use tally_testkit::server::WITHOUT_KEY;
use tally_testkit::{Reply, Request, RespClient, TestTally, wait_until};

fn file(server: &TestTally, text: &str) -> PathBuf {
    let path = server.data().join("tally.toml");
    std::fs::write(&path, text).expect("it is written");
    path
}

/// `serve` must end at once: its settings are wrong.
#[track_caller]
fn refused(server: &TestTally, args: &[&str], settings: &[(&str, &str)]) -> String {
    let done = run_set(TALLY, server.data(), args, settings);
    done.expect(2);
    assert_eq!(done.stdout, "", "{args:?} {settings:?}");
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    done.stderr
}

#[test]
fn flag_over_environment_over_file_over_default() {
    let mut server = TestTally::stopped(TALLY);
    let text = "[http]\nlisten = \"of the file\"\nbody_bytes_max = 100\nhead_timeout = \"7s\"\n\
        [log]\nformat = \"nonsense\"\n[limits]\nboards = 3\n";
    let path = file(&server, text);
    for arg in ["--config", path.to_str().expect("a path of text"), "--log", "text"] {
        server.add_arg(arg);
    }
    // The address is given by a flag, by the test's server itself.
    for (name, value) in [
        ("TALLY_HTTP_LISTEN", "of the environment"),
        ("TALLY_HTTP_BODY_BYTES_MAX", "200"),
        ("TALLY_LOG_FORMAT", "json"),
        ("TALLY_LIMITS_BOARDS", "1"),
    ] {
        server.set(name, value);
    }
    server.restart();
    let status = server.local().get("/v1/status").expect(200);
    for (name, value, source) in [
        ("http.listen", "127.0.0.1:0", "flag"),
        ("log.format", "text", "flag"),
        ("data.dir", server.data().to_str().expect("a path of text"), "flag"),
        ("http.body_bytes_max", "200", "environment"),
        ("limits.boards", "1", "environment"),
        ("http.head_timeout", "7s", "file"),
        ("http.body_timeout", "30s", "default"),
        ("idempotency.keep", "24h", "default"),
    ] {
        assert_eq!(status["settings"][name], json!({"value": value, "source": source}), "{name}");
    }
    // They are in force, not only shown.
    let mut client = server.client();
    let put = |name: &str, spaces: usize| {
        let body = format!("{{}}{}", " ".repeat(spaces));
        Request::new("PUT", format!("/v1/leaderboards/{name}")).body("application/json", body)
    };
    client.send(&put("a", 198)).expect(201);
    client.send(&put("a", 199)).refused(413, "payload_too_large");
    client.send(&put("b", 0)).refused(422, "too_many_boards");
}

#[test]
fn settings_are_shown_to_admins_only() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    for (role, shown) in [("admin", true), ("server", false), ("reader", false)] {
        let key = super::key(&mut local, role);
        let status = server.client().with_key(&key).get("/v1/status").expect(200);
        assert_eq!(status.get("settings").is_some(), shown, "{role}");
        // The findings about the database name it.
        assert_eq!(status.get("findings").is_some(), shown, "{role}");
    }
}

#[test]
fn the_directory_and_the_file_can_stand_in_the_environment() {
    let server = TestTally::stopped(TALLY);
    let path = file(&server, "[limits]\nbords = 1\n");
    let config = path.to_str().expect("a path of text");
    let told =
        refused(&server, &["serve", "--http", "127.0.0.1:0", "--resp", "off"], &[("TALLY_CONFIG", config)]);
    assert!(told.contains("limits.bords"), "{told}");
    let inner = server.data().join("inner");
    let seed = ["seed", "wallets", "--members", "2", "--transactions", "1"];
    let mut command = tally_testkit::command::command(TALLY, &seed);
    let made = command.env("TALLY_DATA", &inner).output().expect("the binary starts");
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    assert!(inner.join("tally.db").exists());
    // A directory may be mistyped, so the command says that the store is new.
    let said = String::from_utf8(made.stderr).expect("commands print UTF-8");
    assert!(
        said.contains(&format!("no store {}: this makes a new one", inner.join("tally.db").display())),
        "{said}"
    );
}

#[test]
fn an_unknown_setting_suggests_the_nearest_wherever_it_stands() {
    let server = TestTally::stopped(TALLY);
    for (section, name, value, nearest) in [
        ("http", "lisen", "\"127.0.0.1:0\"", "http.listen"),
        ("limits", "bord", "5", "limits.boards"),
        ("idempotency", "keeps", "\"1h\"", "idempotency.keep"),
        ("lanes", "batch_rows_max", "5", "lane.batch_rows_max"),
    ] {
        let path = file(&server, &format!("[{section}]\n{name} = {value}\n"));
        let told = refused(&server, &["serve", "--config", path.to_str().expect("a path")], &[]);
        assert!(told.contains(&format!("{section}.{name}")) && told.contains(nearest), "{told}");
        assert!(told.contains("tally.toml"), "it says where: {told}");
    }
    assert!(!server.data().join("tally.db").exists(), "nothing was begun");
}

/// Others set variables with this prefix, too: Kubernetes for a Service with the name `tally`.
#[test]
fn an_unknown_variable_is_a_warning_and_those_of_kubernetes_are_not() {
    let kubernetes = [
        ("TALLY_SERVICE_HOST", "10.0.0.7"),
        ("TALLY_SERVICE_PORT", "8420"),
        ("TALLY_SERVICE_PORT_HTTP", "8420"),
        ("TALLY_PORT", "tcp://10.0.0.7:8420"),
        ("TALLY_PORT_8420_TCP", "tcp://10.0.0.7:8420"),
        ("TALLY_PORT_8420_TCP_ADDR", "10.0.0.7"),
    ];
    let unknown = [
        ("TALLY_HTTP_LISEN", "http.listen"),
        ("TALLY_HTTP_CORS_ORIGIN", "http.cors_origins"),
        ("TALLY_METRIC_OPEN", "metrics.open"),
        ("TALLY_LANE_QUEUE_REQUEST_MAX", "lane.queue_requests_max"),
    ];
    let mut server = TestTally::stopped(TALLY);
    for (name, value) in kubernetes.into_iter().chain(unknown.map(|(name, _)| (name, "x"))) {
        server.set(name, value);
    }
    server.allow("is left out");
    server.launch();
    server.wait_ready();
    for (name, nearest) in unknown {
        let variable = format!("TALLY_{}", nearest.replace('.', "_").to_uppercase());
        let told = |text: &str| text.contains(name) && (text.contains(nearest) || text.contains(&variable));
        wait_until(name, || server.log().iter().any(|line| told(line)));
        let command = run_set(TALLY, server.data(), &["keys", "list"], &[(name, "x")]);
        assert!(told(&command.stderr), "{name}: {}", command.stderr);
    }
    for (name, _) in kubernetes {
        assert!(!server.log().iter().any(|line| line.contains(name)), "{name}: {:?}", server.log());
    }
}

#[test]
fn a_wrong_value_names_its_setting() {
    let server = TestTally::stopped(TALLY);
    for (variable, value, name) in [
        ("TALLY_HTTP_BODY_TIMEOUT", "soon", "http.body_timeout"),
        ("TALLY_HTTP_BODY_TIMEOUT", "0s", "http.body_timeout"),
        ("TALLY_HTTP_BODY_TIMEOUT", "-5s", "http.body_timeout"),
        ("TALLY_HTTP_BODY_TIMEOUT", "", "http.body_timeout"),
        ("TALLY_IDEMPOTENCY_KEEP", "1", "idempotency.keep"),
        ("TALLY_LIMITS_BOARDS", "0", "limits.boards"),
        ("TALLY_LIMITS_KEYS", "-1", "limits.keys"),
        ("TALLY_LANE_BATCH_ROWS_MAX", "many", "lane.batch_rows_max"),
        ("TALLY_MEMBERS_CACHE_POLICY", "lfu", "members.cache_policy"),
        ("TALLY_METRICS_OPEN", "yes", "metrics.open"),
        ("TALLY_TRACES_URL", "localhost:4318", "traces.url"),
        ("TALLY_TRACES_RATIO", "2", "traces.ratio"),
        ("TALLY_TRACES_SERVICE", "", "traces.service"),
        ("TALLY_TRACES_HEADER", "secret", "traces.header"),
        ("TALLY_TRACES_TIMEOUT", "0s", "traces.timeout"),
        ("TALLY_LOG_LEVEL", "loud", "log.level"),
        ("TALLY_LOG_FORMAT", "xml", "log.format"),
        ("TALLY_RANKING_URL", "disk", "ranking"),
        ("TALLY_STORE_URL", "postgres://x", "postgres"),
        ("TALLY_STORE_LANES", "9", "store.pool_max"),
    ] {
        let told =
            refused(&server, &["serve", "--http", "127.0.0.1:0", "--resp", "off"], &[(variable, value)]);
        assert!(told.contains(name), "{variable}={value}: {told}");
    }
    for text in ["[http]\nlisten = 1.5\n", "listen = \"x\"\n", "[http\n", "[http.listen]\nx = 1\n"] {
        let path = file(&server, text);
        let told = refused(&server, &["serve", "--config", path.to_str().expect("a path")], &[]);
        assert!(told.contains("tally.toml"), "{text}: {told}");
    }
    let missing = server.data().join("none.toml");
    let done = server.run(&["serve", "--config", missing.to_str().expect("a path")]);
    assert!(matches!(done.code, Some(1 | 2)) && done.stderr.contains("none.toml"), "{done:?}");
}

#[test]
fn an_address_without_a_host_or_a_port_says_what_it_must_be() {
    let server = TestTally::stopped(TALLY);
    for (value, shown) in [
        ("19002", "127.0.0.1:19002"),
        (":19002", "127.0.0.1:19002"),
        ("localhost", "127.0.0.1:8420"),
        ("localhost:http", "127.0.0.1:8420"),
        ("127.0.0.1:70000", "127.0.0.1:8420"),
        ("", "127.0.0.1:8420"),
    ] {
        let says = |setting: &str| {
            format!("setting `{setting}` is `{value}` and must be HOST:PORT such as `{shown}`, or `off`")
        };
        let of_flag = |flag: &str| refused(&server, &["serve", flag, value], &[]);
        for (flag, setting) in [("--http", "http.listen"), ("--resp", "resp.listen")] {
            let told = of_flag(flag);
            assert!(told.contains(&says(setting)), "{flag} {value}: {told}");
        }
        let told = refused(&server, &["serve"], &[("TALLY_ADMIN_LISTEN", value)]);
        assert!(told.contains(&says("admin.listen")), "{value}: {told}");
    }
    assert!(!server.data().join("tally.db").exists(), "nothing was begun");
}

/// The file that `tally config` prints is one that `serve` takes.
#[test]
fn the_printed_configuration_is_the_default() {
    let mut server = TestTally::stopped(TALLY);
    let text = server.run(&["config"]).expect(0).to_owned();
    let path = file(&server, &text);
    for arg in ["--config", path.to_str().expect("a path of text")] {
        server.add_arg(arg);
    }
    server.restart();
    let with = server.local().get("/v1/status").expect(200)["settings"].clone();
    let plain = TestTally::start(TALLY).local().get("/v1/status").expect(200)["settings"].clone();
    let values = |settings: &Value| {
        let settings = settings.as_object().expect("settings").clone();
        settings
            .into_iter()
            .filter(|(name, _)| name != "data.dir")
            .map(|(name, one)| (name, one["value"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&with), values(&plain));
}

/// A proxy on the same machine may leave no sign in a request.
#[test]
fn a_start_warns_if_the_loopback_interface_needs_no_credential() {
    // The log is complete when the process has ended.
    let warnings = |server: &mut TestTally| {
        server.terminate();
        server.log().iter().filter(|line| line.contains(WITHOUT_KEY)).count()
    };
    let mut server = TestTally::start(TALLY);
    key(&mut server.local(), "reader");
    assert_eq!(warnings(&mut server), 1);
    server.restart();
    assert_eq!(warnings(&mut server), 1, "it has a key");
    for required in ["auto", "true"] {
        let mut server = TestTally::start_set(TALLY, &[("TALLY_KEYS_REQUIRED", required)]);
        assert_eq!(warnings(&mut server), 0, "{required}");
        assert!(server.log().iter().any(|line| line.contains("makes the first one")), "{required}");
    }
    let mut demo = TestTally::start_with(TALLY, &["--demo"]);
    assert_eq!(warnings(&mut demo), 0, "it is for trying out");
}

/// A request of nginx 1.29.7 with a bare `proxy_pass` is one of the loopback interface in every respect.
#[test]
fn without_a_key_the_loopback_interface_is_served_only_if_the_start_asks_for_it() {
    let reads = |server: &TestTally| {
        let status = server.client().get("/v1/leaderboards").status;
        (status, RespClient::connect(server.resp()).call(&["PING"]) == Reply::Simple(b"PONG".to_vec()))
    };
    let server = TestTally::start_set(TALLY, &[("TALLY_KEYS_REQUIRED", "auto")]);
    assert_eq!(reads(&server), (401, false));
    let refused = server.client().get("/v1/leaderboards").text();
    assert!(refused.contains("tally keys create --role admin"), "{refused}");
    let made = server.run(&["keys", "create", "--role", "admin"]);
    server.client().with_key(made.expect(0).trim()).get("/v1/leaderboards").expect(200);
    assert_eq!(reads(&TestTally::start_set(TALLY, &[("TALLY_KEYS_REQUIRED", "false")])), (200, true));
    let mut demo = TestTally::stopped(TALLY);
    demo.set("TALLY_KEYS_REQUIRED", "auto");
    demo.add_arg("--demo");
    demo.restart();
    assert_eq!(reads(&demo), (200, true));
}
