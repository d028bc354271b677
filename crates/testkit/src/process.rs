//! A third-party server for a test: found, started on a free port, killed, restarted, suspended.
//!
//! `cargo xtask packages` has unpacked the programs, so every machine has the same releases. A server and its folder end
//! with the value. They also end when the test process is killed, or exits without dropping shared values. For that a
//! guard, a few words of shell, holds a pipe from the test and kills the server when the pipe breaks.
//!
//! Not here: the arguments of a server and its ready line (`redis.rs`, `database.rs`).

use crate::wait::GIVE_UP;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The folder of the programs, unless the variable names another; xtask has the same two constants.
const LAUNCHERS: &str = "/var/cache/tally-test/bin";
const FOLDER_VARIABLE: &str = "TALLY_TEST_PROGRAMS";

const POLL_PAUSE: Duration = Duration::from_millis(5);
/// Another process can take a free port before the server does.
const PORTS_TRIED: usize = 5;
/// Below the ports that systems give to outgoing connections: such a connection could take the port of a stopped server.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// Leaves the guard behind and becomes the server. `$0` is the folder; the guard ignores the signals of a terminal. `ended`
/// means that the test itself has killed the server.
const GUARDED: &str = r#"exec 3<&0
(
    trap '' INT TERM HUP QUIT
    read -r told <&3
    [ "$told" = ended ] && exit
    kill -KILL $$
    rm -rf "$0" || { sleep 1; rm -rf "$0"; }
) >/dev/null 2>&1 &
exec 3<&-
exec "$@" </dev/null"#;

/// How to start it.
#[derive(Debug)]
pub(crate) struct ProcessPlan {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// The log line of a server that accepts connections. A reply proves nothing: another process may have the port.
    pub(crate) ready: &'static str,
}

/// A server with its own port and folder.
#[derive(Debug)]
pub(crate) struct Server {
    plan: ProcessPlan,
    port: u16,
    folder: TempDir,
    process: Option<Process>,
}

impl Server {
    /// A server that is ready; `plan` is called for each port that is tried, with a new folder.
    #[track_caller]
    pub(crate) fn start(name: &str, plan: impl Fn(&Path, u16) -> ProcessPlan) -> Self {
        let mut log = String::new();
        for _ in 0..PORTS_TRIED {
            let folder =
                TempDir::with_prefix(format!("tally-{name}-")).expect("a temporary directory can be made");
            let port = free_port();
            let plan = plan(folder.path(), port);
            let mut server = Self { plan, port, folder, process: None };
            match server.try_start() {
                Ok(()) => return server,
                Err(ended) => log = ended,
            }
        }
        panic!("{name} does not start:\n{log}");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its whole log, also from before a restart.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder().join("log")).unwrap_or_default()).into_owned()
    }

    pub(crate) fn id(&self) -> u32 {
        self.running().child.id()
    }

    /// Kills it with SIGKILL.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.process.take().expect("it is running").end();
    }

    /// Starts it on the same port and folder and waits until it is ready.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        assert!(self.process.is_none(), "it is running");
        if let Err(log) = self.try_start() {
            panic!("{} does not start again:\n{log}", self.plan.program.display());
        }
    }

    /// Suspends it: connections stay and nothing replies.
    #[track_caller]
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
        // Its threads run on until each has received the signal.
        let started = Instant::now();
        while !is_in_state(self.id(), 'T') {
            assert!(started.elapsed() < GIVE_UP, "it does not stop");
            std::thread::yield_now();
        }
    }

    /// Resumes it.
    #[track_caller]
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    #[track_caller]
    fn running(&self) -> &Process {
        self.process.as_ref().expect("it is running")
    }

    #[track_caller]
    fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().expect("there is a `kill`");
        assert!(sent.success(), "the signal was not sent");
    }

    /// Starts it and waits until it is ready; if it exits, the error is its log.
    fn try_start(&mut self) -> Result<(), String> {
        let before = self.log().len();
        let mut process = Process::start(&self.plan, self.folder());
        let started = Instant::now();
        loop {
            let ended = process.child.try_wait().expect("it can be asked").is_some();
            let log = self.log();
            let log = &log[before..];
            if ended {
                process.end();
                return Err(log.to_owned());
            }
            if log.contains(self.plan.ready) {
                self.process = Some(process);
                return Ok(());
            }
            if started.elapsed() > GIVE_UP {
                process.end();
                panic!("{} is not ready:\n{log}", self.plan.program.display());
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}

/// Whether a process is in a state, by its letter in `/proc`: T is stopped, Z has ended and was not waited for.
pub(crate) fn is_in_state(process: u32, state: char) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it is there");
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state))
}

/// A started process and the pipe to its guard.
#[derive(Debug)]
struct Process {
    child: Child,
    guard: ChildStdin,
}

impl Process {
    fn start(plan: &ProcessPlan, folder: &Path) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(folder.join("log")).expect("it can log");
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED]).arg(folder).arg(&plan.program).args(&plan.args).current_dir(folder);
        command.stdout(log.try_clone().expect("a file can be held twice")).stderr(log).stdin(Stdio::piped());
        let mut child = command.spawn().expect("there is a shell");
        let guard = child.stdin.take().expect("it is piped");
        Self { child, guard }
    }

    /// Kills it, if it still runs. The guard forgets it before `wait`: until then the process id is not reused.
    fn end(mut self) {
        drop(self.child.kill());
        drop(self.guard.write_all(b"ended\n"));
        drop(self.child.wait());
    }
}

/// The path of a program.
#[track_caller]
pub(crate) fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os(FOLDER_VARIABLE).map_or_else(|| LAUNCHERS.into(), PathBuf::from);
    let program = folder.join(name);
    assert!(program.exists(), "there is no {}; run `cargo xtask packages`", program.display());
    program
}

/// A port without a listener that this process has not returned before.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Concurrent test processes begin at different ports.
    let begin = std::process::id().wrapping_mul(977);
    for _ in PORTS {
        let at = begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + at).expect("ports have 16 bits");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("there is no free port");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> impl Fn(&Path, u16) -> ProcessPlan {
        let args = vec!["-c".into(), script.into()];
        move |_, _| ProcessPlan { program: "sh".into(), args: args.clone(), ready: "here I am" }
    }

    const WAITS: &str = "echo here I am; exec sleep 1000";

    #[test]
    fn it_ends_with_the_value_and_so_does_its_folder() {
        let server = Server::start("shell", shell(WAITS));
        let (id, folder) = (server.id(), server.folder().to_owned());
        assert!(folder.exists() && runs(id));
        drop(server);
        assert!(!folder.exists() && !runs(id));
    }

    /// The end of the test process breaks the pipe, whatever the signal.
    #[test]
    fn it_ends_with_the_test_process() {
        let mut server = Server::start("shell", shell(WAITS));
        let Process { mut child, guard } = server.process.take().expect("it runs");
        drop(guard);
        let status = child.wait().expect("the guard kills it");
        assert!(!status.success() && status.code().is_none(), "{status}");
        let started = Instant::now();
        while server.folder().exists() {
            assert!(started.elapsed() < GIVE_UP, "the guard removes the folder");
            std::thread::sleep(POLL_PAUSE);
        }
    }

    #[test]
    fn a_killed_one_starts_again_at_the_same_place() {
        let mut server = Server::start("shell", shell(WAITS));
        let (id, address) = (server.id(), server.address());
        server.freeze();
        server.thaw();
        server.freeze();
        server.kill();
        assert!(!runs(id));
        server.restart();
        assert_eq!((server.address(), server.log().as_str()), (address, "here I am\nhere I am\n"));
    }

    #[test]
    #[should_panic(expected = "no such thing")]
    fn one_that_ends_shows_its_log() {
        Server::start("shell", shell("echo no such thing"));
    }

    #[test]
    fn ports_are_given_once() {
        let ports: Vec<u16> = (0..100).map(|_| free_port()).collect();
        let mut sorted = ports.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ports.len());
    }

    fn runs(id: u32) -> bool {
        let mut kill = Command::new("kill");
        kill.args(["-s", "0", &id.to_string()])
            .stderr(Stdio::null())
            .status()
            .expect("there is a `kill`")
            .success()
    }
}
