//! Logs on stderr, and the handling of panics.

use crate::config::{Config, Usage};
use std::io::IsTerminal;
use tracing::Level;

/// Starts logging.
pub(crate) fn start(config: &Config) -> Result<(), Usage> {
    let level: Level = config.parse("log.level", "error, warn, info, debug or trace")?;
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    match config.text("log.format") {
        "json" => builder.json().init(),
        "text" => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        other => return Err(Usage(format!("setting `log.format` is `{other}` and must be text or json"))),
    }
    abort_on_panic();
    config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(())
}

/// A broken invariant in a lane or in a ranking stops the process. The store is durable and the rankings are
/// rebuilt, but going on with a half-applied change would be wrong. A panic of a connection's task ends only that
/// connection.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        let thread = std::thread::current();
        if thread.name() != Some(tally_server::resp::CONNECTION_THREADS) {
            std::process::abort();
        }
    }));
}
