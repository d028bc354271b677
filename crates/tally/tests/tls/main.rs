//! Both doors with a certificate: encrypted to everybody, and still there for commands of this machine. Behind them a
//! database and a Redis that are reached the same way (`behind.rs`).
//!
//! The certificate beside this file is signed by itself, for `localhost` and 127.0.0.1, and belongs to nobody.

mod behind;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tally_testkit::http::Client;
use tally_testkit::server::TestTally;

const TALLY: &str = env!("CARGO_BIN_EXE_tally");

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn encrypted() -> (TestTally, SocketAddr) {
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_TLS_CERTIFICATE", file("certificate.pem").to_str().expect("a path"));
    server.set("TALLY_TLS_KEY", file("key.pem").to_str().expect("a path"));
    let line = server.restart();
    let http = line.split(' ').find_map(|word| word.strip_prefix("http=")).expect("it says where");
    let http = http.parse().expect("an address");
    (server, http)
}

fn told(command: &mut Command) -> (bool, String) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    (done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned())
}

#[test]
fn both_doors_are_encrypted() {
    let (server, http) = encrypted();
    let certificate = file("certificate.pem");
    let url = format!("https://localhost:{}/readyz", http.port());
    let (good, body) = told(Command::new("curl").arg("-sS").arg("--cacert").arg(&certificate).arg(&url));
    assert!(good && body.contains("ready"), "{body}");
    let port = server.resp().port().to_string();
    let mut redis = Command::new("redis-cli");
    redis.args(["-p", &port, "--tls", "--cacert"]).arg(&certificate);
    let (good, reply) = told(redis.args(["ZADD", "b", "1", "a"]));
    assert!(good && reply.trim() == "1", "{reply}");
    // Without the handshake nothing is answered, on either door.
    let plain = format!("http://127.0.0.1:{}/readyz", http.port());
    assert!(!told(Command::new("curl").args(["-sS", &plain])).0);
    assert!(!told(Command::new("redis-cli").args(["-p", &port, "PING"])).1.contains("PONG"));
}

#[test]
fn commands_of_this_machine_need_no_certificate() {
    let (server, http) = encrypted();
    assert_ne!(server.address(), http, "they have a door of their own");
    let made = server.run(&["keys", "create", "--role", "reader"]);
    made.expect(0);
    // Nobody else may come in there: it is on the loopback interface, and a key exists.
    Client::new(server.address()).get("/v1/leaderboards").expect(401);
}

#[test]
fn half_a_setting_and_files_that_are_none_are_refused() {
    let data = TestTally::stopped(TALLY);
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    for (certificate, key, word) in [
        (text(&certificate), String::new(), "go together"),
        (text(&certificate), text(&certificate), "certificate.pem"),
        (text(&key), text(&key), "no certificate"),
        ("nowhere.pem".into(), text(&key), "nowhere.pem"),
    ] {
        let config = data.data().join("tls.toml");
        let lines = format!("[tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n");
        std::fs::write(&config, lines).expect("it is written");
        let done = data.run(&["serve", "--config", config.to_str().expect("a path")]);
        done.expect(2);
        assert!(done.stderr.contains(word), "{word}: {}", done.stderr);
    }
}
