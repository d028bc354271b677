//! A private tally server for a test: started, killed, restarted and stopped like a user's.
//!
//! Its standard error is kept. A line of level WARN or ERROR that the test has not allowed fails the test. Its
//! drop runs the audit and stops it cleanly. If the test is already failing, the drop shows the log instead.

use crate::command::{Finished, command, run_set};
use crate::http::Client;
use crate::process::is_in_state;
use crate::server_log::{ServerLog, lines};
use crate::wait::GIVE_UP;
use crate::{audit, backends, wait_until};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const POLL_PAUSE: Duration = Duration::from_millis(2);
/// What a server says of a port that another program has.
const IN_USE: &str = "Address already in use";

/// A server on a data directory that is removed with it.
#[derive(Debug)]
pub struct TestTally {
    binary: String,
    args: Vec<String>,
    settings: Vec<(String, String)>,
    dir: TempDir,
    allowed: Vec<String>,
    log: ServerLog,
    process: Option<Process>,
    /// The addresses for HTTP and for the Redis protocol.
    listen: [String; 2],
}

/// A line of the log of a server without an API key.
pub const WITHOUT_KEY: &str = "no API key exists";

/// A line of the log of a server with fewer file descriptors than its limits of connections need.
const FEW_DESCRIPTORS: &str = "the limit of file descriptors is";

#[derive(Debug)]
struct Process {
    child: Child,
    address: SocketAddr,
    resp: Option<SocketAddr>,
    token: String,
    out: Mutex<Receiver<String>>,
    reading: Vec<JoinHandle<()>>,
}

impl TestTally {
    /// A server that is ready, on an empty data directory.
    pub fn start(binary: &str) -> Self {
        Self::start_with(binary, &[])
    }

    /// The same with more arguments.
    pub fn start_with(binary: &str, args: &[&str]) -> Self {
        let mut server = Self::stopped(binary);
        server.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        server.restart();
        server
    }

    /// The same with environment variables.
    pub fn start_set(binary: &str, settings: &[(&str, &str)]) -> Self {
        let mut server = Self::stopped(binary);
        settings.iter().for_each(|(name, value)| server.set(name, value));
        server.restart();
        server
    }

    /// An empty data directory without a server.
    pub fn stopped(binary: &str) -> Self {
        // A server warns of a directory that others may read.
        let private = std::fs::Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("tally-test-").permissions(private).tempdir();
        let dir = dir.expect("a temporary directory can be made");
        Self {
            binary: binary.into(),
            args: Vec::new(),
            settings: [backends::settings(dir.path()), vec![("TALLY_KEYS_REQUIRED".into(), "false".into())]]
                .concat(),
            dir,
            // Most tests make no key, and a machine of tests may have few file descriptors.
            allowed: vec![WITHOUT_KEY.into(), FEW_DESCRIPTORS.into()],
            log: ServerLog::default(),
            process: None,
            listen: ["127.0.0.1:0".into(), "127.0.0.1:0".into()],
        }
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        self.dir.path()
    }

    /// The address of its HTTP listener.
    pub fn address(&self) -> SocketAddr {
        self.running().address
    }

    /// The address of its listener for the Redis protocol.
    pub fn resp(&self) -> SocketAddr {
        self.running().resp.expect("the listener was not turned off")
    }

    /// The token of local commands.
    pub fn token(&self) -> &str {
        &self.running().token
    }

    /// A client without a credential.
    pub fn client(&self) -> Client {
        Client::new(self.address())
    }

    /// A client with the credential of local commands.
    pub fn local(&self) -> Client {
        self.client().with_key(&format!("tally_local_{}", self.token()))
    }

    /// Runs a command of the binary on this data directory.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Finished {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        run_set(&self.binary, self.data(), args, &settings)
    }

    /// Sets an environment variable for later starts.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.into(), value.into()));
    }

    /// Adds an argument for later starts.
    pub fn add_arg(&mut self, arg: &str) {
        self.args.push(arg.into());
    }

    /// Keeps its present addresses after every restart, for clients that reconnect by themselves.
    pub fn stay(&mut self) {
        self.listen = [self.address().to_string(), self.resp().to_string()];
    }

    /// Sets its address for later starts, instead of 127.0.0.1.
    pub fn listen_on(&mut self, address: IpAddr) {
        self.listen = [SocketAddr::new(address, 0).to_string(), SocketAddr::new(address, 0).to_string()];
    }

    /// Allows log lines of WARN or ERROR with this text.
    pub fn allow(&mut self, text: &str) {
        self.allowed.push(text.into());
    }

    /// Allows what a server beside others logs on a busy machine, where a read may be late.
    pub fn allow_late_reads(&mut self) {
        self.allow("read changes of other servers");
        self.allow("apply stored changes to rankings");
        self.allow("`store.lease`");
        self.allow("ranks are unavailable now");
    }

    /// The log of its processes so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lines()
    }

    /// Waits for a line of the log with this text: a line is written after what it tells of.
    #[track_caller]
    pub fn wait_logged(&self, text: &str) {
        wait_until(&format!("a line with {text:?}"), || self.log().iter().any(|line| line.contains(text)));
    }

    /// Starts it on the same data and waits until it is ready; returns its ready line.
    #[track_caller]
    pub fn restart(&mut self) -> String {
        self.launch();
        self.wait_ready()
    }

    /// Starts it on the same data and waits until it listens, ready or not.
    #[track_caller]
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "it is running");
        let started = Instant::now();
        // A server that stays where it was may find its port in use, such as by a connection of another program.
        while !self.try_launch(started) {
            std::thread::sleep(POLL_PAUSE * 10);
        }
    }

    /// Starts a process and waits until it listens. False if its port is in use, for a moment as it seems.
    #[track_caller]
    fn try_launch(&mut self, started: Instant) -> bool {
        let [http, resp] = &self.listen;
        let mut command = command(&self.binary, &["serve", "--http", http, "--resp", resp]);
        command.args(&self.args).arg("--data").arg(self.dir.path());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let (sender, out) = channel();
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let log = self.log.clone();
        let reading = vec![
            // The receiver may be gone when the last lines come.
            lines(stdout, move |line| drop(sender.send(line))),
            lines(stderr, move |line| log.push(line)),
        ];
        let Some((address, resp, token)) = self.announced(&mut child, started) else {
            // It may still run, and nothing else would end it. After its end its log is whole.
            drop(child.kill());
            let ended = child.wait();
            reading.into_iter().for_each(|reading| drop(reading.join()));
            let log = self.log();
            let is_in_use = log.last().is_some_and(|line| line.contains(IN_USE));
            let text = log.join("\n");
            assert!(is_in_use && started.elapsed() < GIVE_UP, "it does not listen ({ended:?})\n{text}");
            return false;
        };
        self.process = Some(Process { child, address, resp, token, out: Mutex::new(out), reading });
        true
    }

    /// Waits for the ready line.
    #[track_caller]
    pub fn wait_ready(&mut self) -> String {
        let line = self.running().out.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(GIVE_UP);
        match line {
            Ok(line) => {
                assert!(line.starts_with("ready "), "the first line is {line:?}");
                line
            }
            Err(RecvTimeoutError::Timeout) => panic!("it is not ready after {GIVE_UP:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.wait();
                panic!("it ended before it was ready: {status}\n{}", self.log().join("\n"));
            }
        }
    }

    /// Whether it is running.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it has ended by itself, and its exit was not waited for.
    #[track_caller]
    pub fn has_ended(&self) -> bool {
        is_in_state(self.pid(), 'Z')
    }

    /// Kills it with SIGKILL.
    #[track_caller]
    pub fn kill9(&mut self) {
        let process = self.process.as_mut().expect("it is running");
        process.child.kill().expect("it can be killed");
        self.wait();
        self.check_log();
    }

    /// Sends SIGTERM and does not wait.
    pub fn signal_end(&self) {
        self.signal("TERM");
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.running().child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("there is a `kill`");
        assert!(sent.success(), "the signal was not sent");
    }

    /// Stops it cleanly: exit code 0.
    #[track_caller]
    pub fn terminate(&mut self) {
        self.signal_end();
        self.wait_end();
    }

    /// Waits for its exit, which must have code 0.
    #[track_caller]
    pub fn wait_end(&mut self) {
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{status}\n{}", self.log().join("\n"));
        self.check_log();
    }

    /// Waits for its exit, with any code.
    #[track_caller]
    pub fn wait_exit(&mut self) -> Option<i32> {
        let status = self.wait();
        self.check_log();
        status.code()
    }

    /// Waits until a server that follows another one has everything that was committed before.
    #[track_caller]
    fn wait_followed(&self) {
        let (mut client, began) = (self.local(), Instant::now());
        wait_until("it has what its leader has", || {
            let ready = client.get("/readyz").json();
            // One that is behind says its age, too.
            let age = ready["follows"]["age_s"].as_f64().or(ready["age_s"].as_f64());
            age.is_none_or(|age| age < began.elapsed().as_secs_f64())
        });
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("it is running")
    }

    /// Addresses and token, once the file has them. `None` if it has ended before, or is late.
    #[track_caller]
    fn announced(
        &self,
        child: &mut Child,
        started: Instant,
    ) -> Option<(SocketAddr, Option<SocketAddr>, String)> {
        loop {
            let text = std::fs::read(self.data().join("server.json")).unwrap_or_default();
            // An incomplete file is no JSON; that of an earlier process has another id.
            let said: Value = serde_json::from_slice(&text).unwrap_or_default();
            if said["pid"].as_u64() == Some(u64::from(child.id())) {
                let text =
                    |name: &str| said[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {said}"));
                let address = text("http").parse().expect("an address of numbers");
                let resp = said["resp"].as_str().and_then(|text| text.parse().ok());
                return Some((address, resp, text("token").to_owned()));
            }
            if child.try_wait().expect("it can be asked").is_some() || started.elapsed() > GIVE_UP {
                return None;
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }

    fn wait(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("it is running");
        let started = Instant::now();
        let status = loop {
            if let Some(status) = process.child.try_wait().expect("it can be asked") {
                break status;
            }
            if started.elapsed() > GIVE_UP {
                process.child.kill().expect("it can be killed");
                panic!("it does not end\n{}", self.log().join("\n"));
            }
            std::thread::sleep(POLL_PAUSE);
        };
        for reading in process.reading {
            assert!(reading.join().is_ok(), "what it prints is text");
        }
        status
    }

    fn check_log(&self) {
        let found = self.log.bad_lines(&self.allowed);
        assert!(found.is_empty(), "the log has lines that nobody announced: {found:#?}");
    }
}

impl Drop for TestTally {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some(process) = &mut self.process {
                // A failure here must not hide why the test fails.
                drop(process.child.kill());
                drop(process.child.wait());
            }
            self.log.show_end();
        } else if self.process.is_some() {
            let _shows = self.log.shown_at_panic();
            self.wait_followed();
            let seen = audit::audit(&mut self.local());
            self.terminate();
            // The store at rest, as this server left it.
            self.run(&["verify"]).expect(0);
            self.restart();
            assert_eq!(audit::audit(&mut self.local()), seen, "the stored rows are not what was served");
            self.terminate();
        }
    }
}
