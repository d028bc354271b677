//! A headless browser for tests: started, driven by its DevTools protocol, with all its errors recorded.
//!
//! The protocol uses two pipes (`--remote-debugging-pipe`, one JSON text and a zero byte each way), so it needs no crate, no
//! port and no handshake. The browser ends when the test does, however that ends. A client crate would be generated from the
//! whole protocol, or bring an implementation of WebSocket. [`Page::complaints`] has every logged error, exception, request
//! to another origin and dialog of the page.
//!
//! Not here: what a page should show.

use crate::wait::GIVE_UP;
use base64::Engine as _;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The names of suitable programs.
const NAMES: [&str; 3] = ["chromium-headless-shell", "chromium", "chrome-headless-shell"];
/// How long it may take to exit; no measurement.
const CLOSING: Duration = Duration::from_secs(30);
const POLL_PAUSE: Duration = Duration::from_millis(15);

/// Its pipes are the descriptors 3 and 4, which Rust's standard library cannot set.
const PIPED: &str = r#"exec 3<&0 4>&1; exec "$@" </dev/null >/dev/null 2>"$0""#;

const ARGS: [&str; 12] = [
    "--headless",
    "--remote-debugging-pipe",
    // Tests may run as root, where its sandbox cannot start; it loads only pages of the test.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
];

/// A browser with one page.
#[derive(Debug)]
pub struct Page {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    folder: TempDir,
    session: Option<String>,
    asked: u64,
    /// The only allowed origin of requests.
    origin: String,
    complaints: Vec<String>,
    allowed: Vec<String>,
}

impl Page {
    /// A page of a new browser; each request to another origin is a complaint.
    ///
    /// # Panics
    ///
    /// If there is no browser: `cargo xtask packages` installs it.
    pub fn open(origin: &str) -> Self {
        let folder = TempDir::with_prefix("tally-browser-").expect("a temporary directory can be made");
        let mut command = Command::new("sh");
        command.args(["-c", PIPED]).arg(folder.path().join("log")).arg(find()).args(ARGS);
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.arg("about:blank");
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("there is a shell");
        let to = child.stdin.take().expect("it is piped");
        let from = messages(child.stdout.take().expect("it is piped"));
        let (origin, session) = (origin.to_owned(), None);
        let mut page = Self {
            child,
            to,
            from,
            folder,
            session,
            asked: 0,
            origin,
            complaints: Vec::new(),
            allowed: Vec::new(),
        };
        let target = page.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.call("Target.attachToTarget", &attach);
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "DOM"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page
    }

    /// Sends one command, waits for its reply, and handles events meanwhile; an error fails the test.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.reply(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    #[track_caller]
    fn reply(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let sent = self.to.write_all(format!("{message}\0").as_bytes());
        sent.unwrap_or_else(|error| panic!("{method}: {error}\n{}", self.log()));
        let started = Instant::now();
        loop {
            match self.from.recv_timeout(GIVE_UP) {
                Ok(message) if message["id"] == json!(self.asked) => {
                    let error = &message["error"];
                    return if error.is_null() { Ok(message["result"].clone()) } else { Err(error.clone()) };
                }
                Ok(event) => self.look_at(&event),
                Err(RecvTimeoutError::Timeout) => panic!("{method}: no answer\n{}", self.log()),
                Err(RecvTimeoutError::Disconnected) => panic!("the browser ended\n{}", self.log()),
            }
            assert!(started.elapsed() < GIVE_UP, "{method}: no answer\n{}", self.log());
        }
    }

    /// Loads an address and waits until it is loaded.
    #[track_caller]
    pub fn go(&mut self, address: &str) {
        let gone = self.call("Page.navigate", &json!({"url": address}));
        assert!(gone["errorText"].is_null(), "{address}: {gone}");
        self.wait("document.readyState === 'complete'");
    }

    /// The value of an expression, which may be a promise; an exception fails the test.
    #[track_caller]
    pub fn eval(&mut self, expression: &str) -> Value {
        self.try_eval(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// As [`Page::eval`]; the error is an exception, or that of a page that goes to another while it is asked.
    #[track_caller]
    fn try_eval(&mut self, expression: &str) -> Result<Value, Value> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.reply("Runtime.evaluate", &params)?;
        let thrown = &answer["exceptionDetails"];
        if thrown.is_null() {
            Ok(answer["result"]["value"].clone())
        } else {
            Err(thrown["exception"]["description"].clone())
        }
    }

    /// Waits until an expression is true, also while the page is loaded again. An exception is not true: what the expression
    /// reads may not be there yet.
    #[track_caller]
    pub fn wait(&mut self, expression: &str) {
        let started = Instant::now();
        loop {
            let found = self.try_eval(expression);
            if found == Ok(json!(true)) {
                return;
            }
            if started.elapsed() > GIVE_UP {
                let text = self.eval("document.body.innerText");
                panic!(
                    "it does not become true: {expression}\n{found:?}\n{}\n{:#?}",
                    text.as_str().unwrap_or_default(),
                    self.complaints
                );
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// Sets the window size, and whether it is a phone.
    #[track_caller]
    pub fn resize(&mut self, width: u32, height: u32, phone: bool) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone});
        self.call("Emulation.setDeviceMetricsOverride", &params);
    }

    /// Sets the preferred colour scheme, `light` or `dark`, and reduced motion.
    #[track_caller]
    pub fn prefer(&mut self, theme: &str) {
        let features = json!([
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Presses and releases a key such as `Tab`.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => 0,
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    /// Types text into the focused element.
    #[track_caller]
    pub fn insert(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Puts files into an input.
    #[track_caller]
    pub fn choose_file(&mut self, selector: &str, file: &Path) {
        let document = self.call("DOM.getDocument", &json!({}));
        let wanted = json!({"nodeId": document["root"]["nodeId"], "selector": selector});
        let found = self.call("DOM.querySelector", &wanted);
        let files = json!({"files": [file], "nodeId": found["nodeId"]});
        self.call("DOM.setFileInputFiles", &files);
    }

    /// Lets the page save files into a folder.
    #[track_caller]
    pub fn download_to(&mut self, folder: &Path) {
        self.call("Page.setDownloadBehavior", &json!({"behavior": "allow", "downloadPath": folder}));
    }

    /// Writes a screenshot of the whole page as PNG.
    #[track_caller]
    pub fn picture(&mut self, file: &Path) {
        let shot =
            self.call("Page.captureScreenshot", &json!({"format": "png", "captureBeyondViewport": false}));
        let text = shot["data"].as_str().expect("a picture is text in base64");
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("it is base64");
        std::fs::write(file, bytes).expect("the picture can be written");
    }

    /// Allows complaints with this text.
    pub fn allow(&mut self, text: &str) {
        self.allowed.push(text.into());
    }

    /// Everything that the page should not have done so far.
    #[track_caller]
    pub fn complaints(&mut self) -> Vec<String> {
        // All events before this reply were handled.
        self.eval("new Promise((done) => setTimeout(done, 0)).then(() => true)");
        let allowed = &self.allowed;
        self.complaints
            .iter()
            .filter(|text| !allowed.iter().any(|known| text.contains(known)))
            .cloned()
            .collect()
    }

    fn look_at(&mut self, event: &Value) {
        let params = &event["params"];
        let complaint = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                format!("exception: {} {}", details["text"], details["exception"]["description"])
            }
            "Runtime.consoleAPICalled"
                if ["error", "warning", "assert"].iter().any(|kind| params["type"] == *kind) =>
            {
                format!("console: {}", params["args"])
            }
            "Log.entryAdded"
                if ["error", "warning"].iter().any(|level| params["entry"]["level"] == *level) =>
            {
                let entry = &params["entry"];
                format!("log: {} {} {}", entry["source"], entry["text"], entry["url"])
            }
            "Page.javascriptDialogOpening" => {
                format!("a dialog was opened: {}", params["message"])
            }
            "Network.requestWillBeSent" => {
                let address = params["request"]["url"].as_str().unwrap_or_default();
                let inside = ["data:", "blob:", "about:"].iter().any(|scheme| address.starts_with(scheme));
                if inside || address == self.origin || address.starts_with(&format!("{}/", self.origin)) {
                    return;
                }
                format!("a request to outside: {address}")
            }
            _ => return,
        };
        self.complaints.push(complaint);
    }

    fn log(&self) -> String {
        let log = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Closed cleanly, because only then its other processes exit with it. Until then they write into the folder.
        drop(self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0"));
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && started.elapsed() < CLOSING {
            std::thread::sleep(POLL_PAUSE);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads messages until the pipe ends.
fn messages(from: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(from).split(0) {
            let Ok(message) = message else { return };
            let message = serde_json::from_slice(&message).expect("the browser says JSON");
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

#[track_caller]
fn find() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = NAMES.iter().flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)));
    let found = all.into_iter().find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("none of {NAMES:?} is on PATH; run `cargo xtask packages`"))
}
