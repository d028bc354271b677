//! Unix sockets: both protocols on a file, whose mode says which accounts may connect.
//!
//! Not here: sockets that are made and replaced without a server (`server/src/listener.rs`).

use super::{TALLY, key};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use tally_testkit::TestTally;
use tally_testkit::command::run_set;

/// A server on the sockets `http` and `resp` of its data directory, too; it does not run.
fn on_sockets(settings: &[(&str, &str)]) -> (TestTally, PathBuf, PathBuf) {
    let mut server = TestTally::stopped(TALLY);
    let [http, resp] = ["http", "resp"].map(|name| server.data().join(name));
    server.set("TALLY_HTTP_SOCKET", http.to_str().expect("UTF-8"));
    server.set("TALLY_RESP_SOCKET", resp.to_str().expect("UTF-8"));
    settings.iter().for_each(|(name, value)| server.set(name, value));
    (server, http, resp)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// The status of a request with these header lines, and all of the answer.
#[track_caller]
fn ask(socket: &Path, request: &str, headers: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    let text = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(text.as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer:?}")), answer)
}

fn told(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

#[test]
fn both_protocols_are_spoken_by_usual_clients() {
    let (mut server, http, resp) = on_sockets(&[("TALLY_RESP_SOCKET_MODE", "660")]);
    server.restart();
    assert_eq!((mode(&http), mode(&resp)), (0o600, 0o660));
    let curl = |path: &str| {
        let url = format!("http://localhost{path}");
        told(Command::new("curl").args(["-sS", "--fail", "--unix-socket"]).arg(&http).arg(url))
    };
    assert!(curl("/readyz").contains("ready"));
    let redis = |args: &[&str]| told(Command::new("redis-cli").arg("-s").arg(&resp).args(args));
    assert_eq!(redis(&["ZADD", "b", "7", "ann"]), "1");
    assert!(redis(&["CLIENT", "LIST"]).contains("addr=unix"));
    let player: Value = serde_json::from_str(&curl("/v1/leaderboards/b/players/ann")).expect("JSON");
    assert_eq!(player["score"], 7.0);
    // TCP is served as before, and sees the same.
    assert_eq!(server.client().get("/v1/leaderboards/b/players/ann").expect(200)["score"], 7.0);
    server.terminate();
    assert!(!http.exists() && !resp.exists(), "a clean end removes them");
}

#[test]
fn clients_of_a_socket_are_this_machine() {
    let (mut server, http, resp) = on_sockets(&[]);
    server.restart();
    let boards = "GET /v1/leaderboards";
    assert_eq!(ask(&http, boards, "").0, 200, "protected mode lets this machine in");
    for header in ["X-Forwarded-For: 192.0.2.1\r\n", "Via: 1.1 proxy\r\n"] {
        assert_eq!(ask(&http, boards, header).0, 401, "{header}");
    }
    assert_eq!(ask(&http, boards, "Origin: https://evil.example\r\n").0, 403);

    let url = format!("unix:{}", http.display());
    let elsewhere = server.data().join("none");
    let run = |args: &[&str]| run_set(TALLY, &elsewhere, args, &[]);
    let admin = run(&["keys", "--url", &url, "create", "--role", "admin"]).expect(0).trim().to_owned();
    assert_eq!(ask(&http, boards, "").0, 401, "the first key ends protected mode here, too");
    assert!(!run(&["keys", "--url", &url, "list"]).stderr.contains("panicked"));
    run(&["keys", "--url", &url, "list"]).expect(1);
    run(&["keys", "--url", &url, "--key", &admin, "list"]).expect(0);
    assert!(!elsewhere.exists());
    let token = format!("Authorization: Bearer tally_local_{}\r\n", server.token());
    assert_eq!(ask(&http, boards, &token).0, 200, "the token of this machine is good here");
    let cli = |args: &[&str]| told(Command::new("redis-cli").arg("-s").arg(&resp).args(args));
    assert!(cli(&["ZCARD", "b"]).contains("NOAUTH"));
    assert_eq!(cli(&["--no-auth-warning", "-a", &key(&mut server.local(), "reader"), "ZCARD", "b"]), "0");
}

#[test]
fn keys_can_be_required_on_a_socket() {
    let (mut server, http, resp) = on_sockets(&[("TALLY_KEYS_REQUIRED", "true")]);
    server.restart();
    assert_eq!(ask(&http, "GET /v1/leaderboards", "").0, 401);
    assert_eq!(ask(&http, "GET /healthz", "").0, 200);
    let mut said = String::new();
    let mut stream = UnixStream::connect(&resp).expect("it listens");
    stream.read_to_string(&mut said).expect("it says why, and closes");
    assert!(said.starts_with("-DENIED"), "{said}");
}

#[test]
fn a_socket_is_replaced_after_a_kill_and_never_taken_from_a_live_server() {
    let (mut server, http, _) = on_sockets(&[]);
    server.restart();
    server.kill9();
    assert!(http.exists(), "nothing could remove it");
    server.restart();
    assert_eq!(ask(&http, "GET /readyz", "").0, 200);

    let other = TestTally::stopped(TALLY);
    let setting = [("TALLY_HTTP_SOCKET", http.to_str().expect("UTF-8"))];
    let serve = ["serve", "--http", "127.0.0.1:0", "--resp", "off"];
    let refused = run_set(TALLY, other.data(), &serve, &setting);
    refused.expect(1);
    let named = format!("listen on {}: another process listens there", http.display());
    assert!(refused.stderr.contains(&named), "{}", refused.stderr);
    assert_eq!(ask(&http, "GET /readyz", "").0, 200, "the live one has kept it");
}

#[test]
fn limits_of_loopback_addresses_hold_on_a_socket() {
    let (mut server, http, _) = on_sockets(&[("TALLY_CONNECTIONS_LOOPBACK_MAX", "3")]);
    server.restart();
    let held: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(&http).expect("it listens")).collect();
    // A request is answered when its connection has been counted.
    for mut stream in &held {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is read");
        assert!(stream.read(&mut [0; 512]).expect("it answers") > 0);
    }
    let mut said = String::new();
    let mut stream = UnixStream::connect(&http).expect("it listens");
    stream.read_to_string(&mut said).expect("it says why, and closes");
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    drop(held);
    // Their places may not be free yet for a last read of the server.
    server.terminate();
}

#[test]
fn a_server_without_tcp_is_found_by_its_commands() {
    let server = TestTally::stopped(TALLY);
    let http = server.data().join("http");
    let path = http.to_str().expect("UTF-8");
    let mut command = tally_testkit::command::command(TALLY, &["serve", "--http", "off", "--resp", "off"]);
    command.arg("--data").arg(server.data()).env("TALLY_HTTP_SOCKET", path);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the binary starts");
    let mut ready = [0; 6];
    child.stdout.as_mut().expect("it is piped").read_exact(&mut ready).expect("it says that it is ready");
    assert_eq!(&ready, b"ready ");
    server.run(&["keys", "create", "--role", "admin"]).expect(0);
    let load = server.run(&["load", "scores", "--rate", "1", "--stage", "1s"]);
    assert!(load.stderr.contains("a load needs a TCP address"), "{load:?}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().expect("there is a `kill`").success());
    assert!(child.wait().expect("it ends").success());
    assert!(!http.exists());
    let nowhere = server.run(&["serve", "--http", "off"]);
    nowhere.expect(2);
    assert!(nowhere.stderr.contains("`http.socket` must name a socket"), "{}", nowhere.stderr);
}
