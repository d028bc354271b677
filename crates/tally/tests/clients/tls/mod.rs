//! Both listeners with a certificate: encrypted for all, and still open to commands of this machine. Behind them a database
//! and a Redis that are reached the same way (`behind.rs`).
//!
//! The certificate beside this file is signed by itself, for `localhost` and 127.0.0.1, and is used nowhere else.

mod behind;

use crate::TALLY;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tally_testkit::http::Client;
use tally_testkit::server::TestTally;
use tally_testkit::wait_until;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/tls").join(name)
}

fn encrypted() -> (TestTally, SocketAddr) {
    let path = |name| file(name).to_str().expect("a path").to_owned();
    encrypted_by(&path("certificate.pem"), &path("key.pem"))
}

fn encrypted_by(certificate: &str, key: &str) -> (TestTally, SocketAddr) {
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_TLS_CERTIFICATE", certificate);
    server.set("TALLY_TLS_KEY", key);
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
fn both_listeners_are_encrypted() {
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
    // Nothing is answered without the handshake, on either listener.
    let plain = format!("http://127.0.0.1:{}/readyz", http.port());
    assert!(!told(Command::new("curl").args(["-sS", &plain])).0);
    assert!(!told(Command::new("redis-cli").args(["-p", &port, "PING"])).1.contains("PONG"));
}

#[test]
fn commands_of_this_machine_need_no_certificate() {
    let (server, http) = encrypted();
    assert_ne!(server.address(), http, "they have a listener of their own");
    let made = server.run(&["keys", "create", "--role", "reader"]);
    made.expect(0);
    // No other client may come in there: it is on the loopback interface, and a key exists.
    Client::new(server.address()).get("/v1/leaderboards").expect(401);
}

#[test]
fn the_command_line_reaches_an_encrypted_server() {
    let [ca, certificate, key] = ["ca.pem", "server.pem", "server-key.pem"].map(tally_testkit::tls::file);
    let (server, http) = encrypted_by(&certificate, &key);
    let made = server.run(&["keys", "create", "--role", "admin"]);
    let (url, key) = (format!("https://localhost:{}/", http.port()), made.expect(0).trim());
    let list = ["keys", "list", "--url", &url, "--key", key];
    let asked = server.run(&[&list[..], &["--ca", &ca]].concat());
    assert!(asked.expect(0).contains("admin"), "{asked:?}");
    // Any other authority is not trusted.
    let unknown = server.run(&list);
    unknown.expect(1);
    assert!(unknown.stderr.contains("certificate"), "{}", unknown.stderr);
    let key_file = server.run(&[&list[..], &["--ca", file("key.pem").to_str().expect("a path")]].concat());
    key_file.expect(1);
    assert!(key_file.stderr.contains("no certificate is in"), "{}", key_file.stderr);
    server.run(&["keys", "list", "--url", "ftp://localhost"]).expect(2);
}

/// The renewal of a certificate: new connections get the new one, and the process goes on.
#[test]
fn sighup_reads_the_certificate_again() {
    let mut server = TestTally::stopped(TALLY);
    let here = [server.data().join("c.pem"), server.data().join("k.pem")];
    let put = |certificate: &Path, key: &Path| {
        std::fs::copy(certificate, &here[0]).expect("it is written");
        std::fs::copy(key, &here[1]).expect("it is written");
    };
    put(&file("certificate.pem"), &file("key.pem"));
    let [certificate, key] = here.clone().map(|path| path.to_str().expect("a path").to_owned());
    server.set("TALLY_TLS_CERTIFICATE", &certificate);
    server.set("TALLY_TLS_KEY", &key);
    let line = server.restart();
    let http = line.split(' ').find_map(|word| word.strip_prefix("http=")).expect("it says where");
    let url = format!("https://localhost:{}/readyz", http.rsplit(':').next().expect("a port"));
    let is_of =
        |authority: &Path| told(Command::new("curl").args(["-sS", "--cacert"]).arg(authority).arg(&url)).0;
    let [ca, renewed, renewed_key] = ["ca.pem", "server.pem", "server-key.pem"].map(tally_testkit::tls::file);
    assert!(is_of(&file("certificate.pem")) && !is_of(Path::new(&ca)));
    put(Path::new(&renewed), Path::new(&renewed_key));
    server.signal("HUP");
    wait_until("the new one is used", || is_of(Path::new(&ca)));
    assert!(!is_of(&file("certificate.pem")));
    // Invalid files change nothing.
    server.allow("the certificate before stays in use");
    std::fs::write(&certificate, "nothing").expect("it is written");
    server.signal("HUP");
    let said = |server: &TestTally| server.log().iter().any(|line| line.contains("stays in use"));
    wait_until("it is said", || said(&server));
    assert!(is_of(Path::new(&ca)));
    put(Path::new(&renewed), Path::new(&renewed_key));
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
