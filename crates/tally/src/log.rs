//! Logs on stderr, and the handling of panics.
//!
//! Every message of a server to people goes through here, so that none can block or end it, and all are JSON if the log is.
//! `queue` has the lines that wait to be written, `repeats` counts lines of one cause.

mod queue;
mod repeats;

use crate::config::{Config, Usage};
use anyhow::Context;
use queue::Queue;
use repeats::{OneLine, Repeats};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;
use tally_server::LOG_LINES;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::{fmt, reload};

/// The target of the lines about the log itself, and of panics.
const TARGET: &str = "tally::log";
/// How long an end waits for the reader of stderr.
const END_PATIENCE: Duration = Duration::from_secs(1);

static QUEUE: Queue = Queue::new(&LOG_LINES);
static REPEATS: Repeats = Repeats::new(&LOG_LINES);
/// The form of the log, once it has started.
static FORM: OnceLock<Form> = OnceLock::new();
/// The level of the log, once it has started.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

/// Starts logging.
pub(crate) fn start(config: &Config) -> Result<(), Usage> {
    let level = level(config)?;
    let form = match config.text("log.format") {
        "json" => Form::Json,
        "text" => Form::Text,
        other => return Err(Usage(format!("setting `log.format` is `{other}` and must be text or json"))),
    };
    start_as(form, level).map_err(|error| Usage(format!("start the log: {error}")))?;
    abort_on_panic();
    config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(())
}

fn level(config: &Config) -> Result<Level, Usage> {
    config.parse("log.level", "error, warn, info, debug or trace")
}

/// Logs with the level of these settings from now on.
pub(crate) fn set_level(config: &Config) -> anyhow::Result<()> {
    let level = LevelFilter::from_level(level(config)?);
    LEVEL.get().map_or(Ok(()), |handle| handle.reload(level)).context("change the level of the log")
}

fn start_as(form: Form, level: Level) -> io::Result<()> {
    // A file of its own: the lock of `std::io::stderr` would be held while its reader reads nothing.
    let stderr = File::from(std::io::stderr().as_fd().try_clone_to_owned()?);
    let is_terminal = stderr.is_terminal();
    std::thread::Builder::new().name("log".into()).spawn(move || QUEUE.write_all(stderr, &REPEATS))?;
    let (level, handle) = reload::Layer::new(LevelFilter::from_level(level));
    LEVEL.get_or_init(|| handle);
    let (subscriber, lines) = (Registry::default().with(level), fmt::layer().with_writer(|| Line));
    match form {
        Form::Json => install(subscriber.with(lines.json())),
        Form::Text => install(subscriber.with(lines.with_ansi(is_terminal))),
    }
    FORM.get_or_init(|| form);
    Ok(())
}

fn install(subscriber: impl Subscriber + Send + Sync + for<'span> LookupSpan<'span>) {
    // A process starts its log once.
    let _ = tracing::subscriber::set_global_default(subscriber.with(OneLine(&REPEATS)));
}

/// A line that is being logged: it is written at once, and whole.
struct Line;

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        QUEUE.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the log is JSON, so that nothing else may be on stderr.
pub(crate) fn is_json() -> bool {
    FORM.get() == Some(&Form::Json)
}

/// Tells people something: as it is, or as a line of a log in JSON.
pub(crate) fn notice(text: &str) {
    match FORM.get() {
        Some(Form::Json) => tracing::info!("{text}"),
        Some(Form::Text) => QUEUE.push(format!("{text}\n").as_bytes()),
        None => print(text),
    }
}

/// Tells why the process ends. `json` asks for JSON even if the log has not started.
pub(crate) fn fatal(text: &str, json: bool) {
    if json && FORM.get().is_none() && start_as(Form::Json, Level::ERROR).is_err() {
        return print(text);
    }
    match FORM.get() {
        Some(Form::Json) => tracing::error!("{text}"),
        Some(Form::Text) => QUEUE.push(format!("tally: {text}\n").as_bytes()),
        None => print(&format!("tally: {text}")),
    }
}

/// Writes to stderr, if it can be written.
fn print(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Waits for lines that are not written yet, but not long: the reader may be gone.
pub(crate) fn flush() {
    if FORM.get().is_some() {
        QUEUE.flush(END_PATIENCE);
    }
}

/// Ends the process without draining.
pub(crate) fn exit(code: i32) -> ! {
    flush();
    std::process::exit(code);
}

/// A broken invariant in a lane or in a ranking stops the process. The store is durable and the rankings are
/// rebuilt, but going on with a half-applied change would be wrong. A panic of a connection's task ends only that
/// connection.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let why = panic.payload_as_str().unwrap_or("no text");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            tracing::error!(target: TARGET, %backtrace, "thread `{name}` panicked at {place}: {why}");
        } else {
            tracing::error!(target: TARGET, "thread `{name}` panicked at {place}: {why}");
        }
        if thread.name() != Some(tally_server::resp::CONNECTION_THREADS) {
            flush();
            std::process::abort();
        }
    }));
}
