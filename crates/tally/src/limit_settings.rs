//! Settings that limit the clients of the listeners: bytes, time and connections.
//!
//! Not here: what happens at each limit, see `docs/operate/security.md`.

use crate::config::{Config, Usage};
use crate::member_settings;
use tally_server::limits::WAITING_MAX;
use tally_server::{ConnectionLimits, HttpLimits, KeysRequired};

/// The connection limits of a protocol, whose total has this name.
pub(crate) fn connections(config: &Config, name: &'static str) -> Result<ConnectionLimits, Usage> {
    let all = config.count(name)?;
    let address = match config.text("connections.address_max") {
        "auto" => (all / 4).max(1),
        _ => config.count("connections.address_max")?,
    };
    let loopback = match config.text("connections.loopback_max") {
        "off" => None,
        _ => Some(config.count("connections.loopback_max")?),
    };
    Ok(ConnectionLimits { all, address, loopback, waiting: WAITING_MAX })
}

/// The limits of HTTP. A `demo` trusts the loopback interface.
pub(crate) fn limits(config: &Config, demo: bool) -> Result<HttpLimits, Usage> {
    let keys_required = match config.text("keys.required") {
        "auto" if demo => KeysRequired::Never,
        "auto" => KeysRequired::OverTcp,
        "true" => KeysRequired::Always,
        "false" => KeysRequired::Never,
        _ => return Err(config.wrong("keys.required", "auto, true or false")),
    };
    Ok(HttpLimits {
        body_bytes_max: config.count("http.body_bytes_max")?,
        bodies_bytes_max: config.bound("http.bodies_bytes_max")?,
        responses_bytes_max: config.bound("http.responses_bytes_max")?,
        connections: connections(config, "http.connections_max")?,
        head_timeout: config.duration("http.head_timeout")?,
        body_timeout: config.duration("http.body_timeout")?,
        write_timeout: config.duration("http.write_timeout")?,
        streams_max: config.count("events.streams_max")?,
        key_streams_max: config.count("events.key_streams_max")?,
        member_streams_max: config.count("events.member_streams_max")?,
        drain_delay: config.duration_or("http.drain_delay", "off")?.unwrap_or_default(),
        drain_timeout: config.duration("http.drain_timeout")?,
        keys_required,
        hosts: config.list("http.hosts"),
        trusted_proxies: member_settings::trusted_proxies(config)?,
        cors_origins: config.list("http.cors_origins"),
        metrics_open: config.parse("metrics.open", "true or false")?,
        webhooks_private: config.parse("webhooks.private", "true or false")?,
    })
}
