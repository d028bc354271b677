//! The settings of the service, from the configuration.
//!
//! Not here: those of the listeners (`listen`, `limit_settings`) and of the store (`store`).

use crate::config::{Config, Usage};
use crate::memory::Limit;
use crate::{member_settings, money_settings};
use tally_rules::clock::ClockBounds;
use tally_server::WebhookSettings;
use tally_service::Settings;

pub(super) fn webhook_settings(config: &Config) -> Result<WebhookSettings, Usage> {
    let ca_file = Some(config.text("webhooks.ca_file")).filter(|path| !path.is_empty()).map(Into::into);
    let private = config.parse("webhooks.private", "true or false")?;
    Ok(WebhookSettings { private, ca_file, version: env!("CARGO_PKG_VERSION") })
}

/// How many past months of the ledger stay in tables.
fn archive_keep(config: &Config) -> Result<Option<u32>, Usage> {
    if config.text("archive.keep") == "off" {
        return Ok(None);
    }
    config.parse("archive.keep", "a number of months, or off").map(Some)
}

pub(super) fn settings(config: &Config) -> Result<Settings, Usage> {
    let keep = config.duration("idempotency.keep")?.as_micros();
    let micros = |name| config.duration(name).map(|time| i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
    let clock = ClockBounds { jump_max: micros("clock.jump_max")?, steady: micros("clock.steady")? };
    let mut settings = Settings {
        idempotency_keep_micros: i64::try_from(keep).unwrap_or(i64::MAX),
        clock,
        staleness_max: config.duration("store.staleness_max")?,
        boards_max: config.count("limits.boards")?,
        contests_keep_micros: money_settings::contests_keep(config)?,
        keys_max: config.count("limits.keys")?,
        memory_max: config.memory().bytes,
        members: member_settings::members(config)?,
        webhook_retry_micros: micros("webhooks.retry")?,
        archive_keep: archive_keep(config)?,
        ..Settings::default()
    };
    settings.lane.batch_rows_max = config.count("lane.batch_rows_max")?;
    settings.lane.batch_bytes_max = config.count("lane.batch_bytes_max")?;
    settings.lane.queue_requests_max = config.count("lane.queue_requests_max")?;
    settings.lane.queue_bytes_max = config.bound("lane.queue_bytes_max")?;
    settings.ledger = money_settings::ledger(config, &settings)?;
    Ok(settings)
}

/// Logs how much memory there is, and the bounds that follow it.
pub(super) fn announce_memory(config: &Config) -> Result<(), Usage> {
    let Limit { bytes, by } = config.memory();
    tracing::info!(
        limit_mib = bytes >> 20,
        by,
        store.cache_mib = config.bound("store.cache_mib")?,
        store.memtable_mib = config.bound("store.memtable_mib")?,
        http.bodies_bytes_max = config.bound("http.bodies_bytes_max")?,
        http.responses_bytes_max = config.bound("http.responses_bytes_max")?,
        resp.buffer_bytes_max = config.bound("resp.buffer_bytes_max")?,
        lane.queue_bytes_max = config.bound("lane.queue_bytes_max")?,
        members.cache_entries = config.bound("members.cache_entries")?,
        "memory"
    );
    Ok(())
}
