//! The addresses and Unix sockets of a server by its settings, and its address for local commands.

use crate::config::{Config, Usage};
use crate::{limit_settings, trace_settings};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tally_server::{HttpServer, Readiness, SocketFile, Tls, UnixSocket, resp};

/// The prefix of a Unix socket's address.
pub(crate) const UNIX: &str = "unix:";

/// The port in the message about an address that has none.
const PORT_SHOWN: u16 = 8420;

/// The listeners of a server.
pub(crate) struct Listen {
    pub(super) http: tally_server::Listen,
    pub(super) resp: Option<(tally_server::Listen, resp::RespSettings)>,
    /// The address of the listener of operators.
    pub(super) admin: Option<String>,
    pub(super) tls: Option<Tls>,
    /// The span exporter, if it is turned on.
    pub(super) traces: Option<tally_traces::TraceSettings>,
}

impl Listen {
    /// For a command that starts its own server. Its requests are not traced.
    pub(crate) fn own() -> Self {
        Self {
            http: tally_server::Listen::tcp("127.0.0.1:0"),
            resp: None,
            admin: None,
            tls: None,
            traces: None,
        }
    }

    pub(super) fn settings(config: &Config) -> Result<Self, Usage> {
        let relaxed = match config.text("resp.durability") {
            "commit" => false,
            "relaxed" => true,
            other => {
                let text = format!("setting `resp.durability` is `{other}` and must be commit or relaxed");
                return Err(Usage(text));
            }
        };
        let tls = match (config.text("tls.certificate"), config.text("tls.key")) {
            ("", "") => None,
            ("", _) | (_, "") => {
                return Err(Usage("settings `tls.certificate` and `tls.key` go together".into()));
            }
            (certificate, key) => Some(
                Tls::load(Path::new(certificate), Path::new(key))
                    .map_err(|why| Usage(format!("settings `tls.certificate` and `tls.key`: {why}")))?,
            ),
        };
        let settings = resp::RespSettings {
            connections: limit_settings::connections(config, "resp.connections_max")?,
            buffer_bytes_max: config.bound("resp.buffer_bytes_max")?,
            auth_timeout: config.duration("resp.auth_timeout")?,
            command_timeout: config.duration("resp.command_timeout")?,
            idle_timeout: config.duration_or("resp.idle_timeout", "never")?,
            write_timeout: config.duration("resp.write_timeout")?,
            relaxed,
            tls: tls.clone(),
            threads: match config.text("resp.threads") {
                "auto" => resp::threads_of_this_machine(),
                _ => config.count("resp.threads")?,
            },
        };
        let http = places(config, ["http.listen", "http.socket", "http.socket_mode"])?;
        if http.tcp.is_none() && http.unix.is_none() {
            return Err(config.wrong("http.listen", "an address, or `http.socket` must name a socket"));
        }
        let resp = places(config, ["resp.listen", "resp.socket", "resp.socket_mode"])?;
        let resp = (resp.tcp.is_some() || resp.unix.is_some()).then_some((resp, settings));
        let admin = address(config, "admin.listen")?;
        Ok(Self { http, resp, admin, tls, traces: trace_settings::traces(config)? })
    }
}

/// The listeners of a protocol, by the names of its settings for the address, the socket and its mode.
fn places(config: &Config, [listen, socket, mode]: [&'static str; 3]) -> Result<tally_server::Listen, Usage> {
    let tcp = address(config, listen)?;
    let mode = match config.text(mode) {
        "600" => 0o600,
        "660" => 0o660,
        _ => return Err(config.wrong(mode, "600 (the account of the server) or 660 (its group, too)")),
    };
    let path = Some(config.text(socket)).filter(|path| !path.is_empty());
    let unix = path.map(|path| UnixSocket { path: path.strip_prefix(UNIX).unwrap_or(path).into(), mode });
    Ok(tally_server::Listen { tcp, unix })
}

/// The address of a setting, or `None` if its listener is off.
fn address(config: &Config, setting: &'static str) -> Result<Option<String>, Usage> {
    let text = config.text(setting);
    if text == "off" {
        return Ok(None);
    }
    let is_whole =
        text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_whole {
        return Ok(Some(text.to_owned()));
    }
    let port = text.trim_start_matches(':').parse().unwrap_or(PORT_SHOWN);
    Err(config.wrong(setting, &format!("HOST:PORT such as `127.0.0.1:{port}`, or `off`")))
}

/// The address of a listener, or else its socket.
pub(super) fn place(address: Option<SocketAddr>, file: Option<&SocketFile>) -> Option<String> {
    let of_file = || file.map(|file| format!("{UNIX}{}", file.path.display()));
    address.map(|address| address.to_string()).or_else(of_file)
}

/// The address for local commands, and a listener for them if they can use no other. They know no certificate, and the
/// token works only on the loopback interface and over the socket.
pub(super) async fn for_commands(
    gate: &Arc<Readiness>,
    http: &HttpServer,
    encrypted: bool,
) -> Result<(String, Option<HttpServer>)> {
    let reaches = |address: &SocketAddr| {
        let ip = address.ip().to_canonical();
        !encrypted && (ip.is_loopback() || ip.is_unspecified())
    };
    if let Some(found) = place(http.address.filter(reaches), http.file.as_ref()) {
        return Ok((found, None));
    }
    let own = tally_server::start(Arc::clone(gate), &tally_server::Listen::tcp("127.0.0.1:0"), None).await;
    let own = own.context("listen for commands of this machine")?;
    Ok((own.address.map(|address| address.to_string()).unwrap_or_default(), Some(own)))
}
