//! A client of the server: JSON over HTTP, with problems as errors.

mod unix;

use anyhow::{Context, Result, bail};
use jiff::fmt::rfc2822;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tally_rules::Micros;
use unix::ToSocket;
use ureq::Agent;
use ureq::http::{Method, Request};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;

/// The interval of polls of a server that is loading.
const READY_PAUSE: Duration = Duration::from_millis(50);
/// How many times a chunk is sent to a server that is busy.
const TRIES: u32 = 60;

/// A server's address, and the key of the requests.
pub(crate) struct Client {
    base: String,
    /// The given address.
    shown: String,
    key: Option<String>,
    agent: Agent,
}

/// A response of a server: its status and its JSON, or null.
pub(crate) struct Response {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Value,
}

impl Client {
    /// A client of an address; the server's certificate is of an authority in `ca`, or else of one that
    /// browsers know.
    pub(crate) fn new(base: String, key: Option<String>, ca: Option<&Path>) -> Result<Self> {
        let agent = config(trusting(ca)?).new_agent();
        Ok(Self { shown: base.clone(), base, key, agent })
    }

    /// A client of a server's Unix socket.
    pub(crate) fn unix(path: &str, key: Option<String>) -> Self {
        let connector = ToSocket(path.into());
        let agent = Agent::with_parts(config(TlsConfig::default()), connector, DefaultResolver::default());
        // The server takes an IP address as the host; it rejects names because of DNS rebinding.
        Self { base: "http://127.0.0.1".into(), shown: format!("unix:{path}"), key, agent }
    }

    /// The given address of the server.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The key of its requests.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether a server responds.
    pub(crate) fn is_there(&self) -> bool {
        self.send(&Method::GET, "/healthz", None).is_ok()
    }

    /// Waits while the server loads.
    pub(crate) fn wait_until_ready(&self) -> Result<()> {
        while self.send(&Method::GET, "/readyz", None)?.status == 503 {
            std::thread::sleep(READY_PAUSE);
        }
        Ok(())
    }

    /// Sends a request; a problem is an error. It retries if the server is busy.
    pub(crate) fn ask(&self, method: &Method, path: &str, body: Option<(&str, &[u8])>) -> Result<Value> {
        for _ in 0..TRIES {
            let answer = self.send(method, path, body)?;
            match answer.status {
                200..=299 => return Ok(answer.body),
                429 | 503 => std::thread::sleep(Duration::from_secs(1)),
                401 if self.key.is_none() => bail!(
                    "the server at {} needs an API key: give it by --key or in TALLY_KEY; `tally keys create` on its machine \
                     makes one (unauthorized)",
                    self.shown
                ),
                _ => bail!(explain(&answer)),
            }
        }
        bail!("the server at {} stayed busy for a minute", self.shown)
    }

    /// Gets a text.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        let mut request = Request::builder().uri(format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let answered = self.agent.run(request.body(())?);
        let mut response = answered.with_context(|| format!("ask the server at {}", self.shown))?;
        let text = response.body_mut().read_to_string().context("read the answer")?;
        if !response.status().is_success() {
            bail!("the server at {} answered {} to {path}", self.shown, response.status());
        }
        Ok(text)
    }

    /// The instant of the server's clock, which answers have in whole seconds: it is never ahead.
    pub(crate) fn date(&self) -> Result<Micros> {
        let response = self.agent.run(Request::builder().uri(format!("{}/healthz", self.base)).body(())?);
        let response = response.with_context(|| format!("ask the server at {}", self.shown))?;
        let text = response.headers().get("date").and_then(|date| date.to_str().ok());
        let date = text.and_then(|text| rfc2822::parse(text).ok()).context("the answer has no date")?;
        Ok(Micros(date.timestamp().as_microsecond()))
    }

    /// Sends a request and returns any response.
    pub(crate) fn send(&self, method: &Method, path: &str, body: Option<(&str, &[u8])>) -> Result<Response> {
        let mut request = Request::builder().method(method.clone()).uri(format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let answered = match body {
            None => self.agent.run(request.body(())?),
            Some((content_type, bytes)) => {
                self.agent.run(request.header("content-type", content_type).body(bytes)?)
            }
        };
        let mut response = answered.with_context(|| format!("ask the server at {}", self.shown))?;
        let status = response.status().as_u16();
        let text =
            response.body_mut().with_config().limit(64 << 20).read_to_string().context("read the answer")?;
        Ok(Response { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
    }
}

/// An agent for answers that come soon, with these authorities, or those of browsers.
pub(crate) fn quick_agent(ca: Option<&Path>, time: Duration) -> Result<Agent> {
    Ok(config_within(trusting(ca)?, (time, time)).new_agent())
}

/// Trust in these authorities, or else in those of browsers.
fn trusting(ca: Option<&Path>) -> Result<TlsConfig> {
    let roots = ca.map(authorities).transpose()?.unwrap_or(RootCerts::WebPki);
    Ok(TlsConfig::builder().root_certs(roots).build())
}

fn config(tls: TlsConfig) -> ureq::config::Config {
    config_within(tls, (Duration::from_secs(5), Duration::from_secs(120)))
}

fn config_within(tls: TlsConfig, (connect, all): (Duration, Duration)) -> ureq::config::Config {
    Agent::config_builder()
        .http_status_as_error(false)
        .tls_config(tls)
        .timeout_connect(Some(connect))
        .timeout_global(Some(all))
        .build()
}

fn authorities(file: &Path) -> Result<RootCerts> {
    let pem = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
    let certificates = parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    let all = certificates.collect::<Result<Vec<_>, _>>();
    let all = all.with_context(|| format!("read the certificates in {}", file.display()))?;
    if all.is_empty() {
        bail!("no certificate is in {}", file.display());
    }
    Ok(RootCerts::new_with_certs(&all))
}

/// A problem as one sentence.
pub(crate) fn explain(answer: &Response) -> String {
    let field = |name: &str| answer.body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (detail, code) = (field("detail"), field("code"));
    if detail.is_empty() {
        return format!("the server answered {}", answer.status);
    }
    format!("{detail} ({code})")
}

/// The rows of a trial balance. A server of an older release has them in `accounts` alone.
pub(crate) fn rows_of_accounts(trial_balance: &Value) -> Option<&Vec<Value>> {
    trial_balance.get("items").or_else(|| trial_balance.get("accounts"))?.as_array()
}

/// One part of a path, percent-encoded.
pub(crate) fn segment(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
    let one = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
