//! Sends events to webhooks: one request on a connection of its own, within a timeout.
//!
//! An address is a setting of an admin, but what it resolves to is not: it may name a machine of the operator's own network. So
//! the address is checked after the name was resolved, and the connection is made to what was checked. Redirects are not
//! followed, and of the answer only the status is read. Not here: order, retries and positions (`tally_service::webhooks`).

mod address;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use target::WebhookTarget;

use address::is_public;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tally_service::webhooks::{Delivery, DeliveryCallback, Happening, ReceiverResponse, Sender, signature};
use tally_wire::api::wallets::TransactionJson;
use tally_wire::api::webhooks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Handle;

/// How long a delivery may take: less than the lease of the task that sends it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
/// The most bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The headers of a delivery.
const SIGNATURE: &str = "tally-signature";
const EVENT_ID: &str = "tally-event-id";
const WEBHOOK_ID: &str = "tally-webhook-id";

/// What an operator allows.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Whether addresses of private networks and of this machine may receive events, and `http://`.
    pub private: bool,
    /// The file of authorities that are trusted instead of those of browsers.
    pub ca_file: Option<String>,
    /// The version of the program.
    pub version: &'static str,
}

/// Sends to receivers.
#[derive(Debug)]
pub struct WebhookClient {
    runtime: Handle,
    exchange: Exchange,
}

#[derive(Clone, Debug)]
struct Exchange {
    tls: tally_tls::Client,
    private: bool,
    agent: HeaderValue,
}

impl WebhookClient {
    /// Creates a client that sends on this runtime.
    ///
    /// # Errors
    ///
    /// What is wrong with the trusted certificates.
    pub fn new(settings: &WebhookSettings, runtime: Handle) -> Result<Self, String> {
        let agent = format!("tally/{}", settings.version);
        let agent = HeaderValue::try_from(agent).map_err(|why| why.to_string())?;
        let mut options = tally_tls::Options::default();
        if let Some(file) = &settings.ca_file {
            options.set("ssl-ca", file);
        }
        let exchange = Exchange { tls: options.read()?.client()?, private: settings.private, agent };
        Ok(Self { runtime, exchange })
    }
}

impl Sender for WebhookClient {
    fn send(&self, delivery: Delivery, done: DeliveryCallback) {
        let exchange = self.exchange.clone();
        self.runtime.spawn(async move {
            let sent = tokio::time::timeout(TIMEOUT, exchange.run(&delivery)).await;
            let sent = sent.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
            done(match sent {
                Ok(status) if status.is_success() => {
                    ReceiverResponse { status: Some(status.as_u16()), failure: None }
                }
                Ok(status) => {
                    let more = if status.is_redirection() { ", and redirects are not followed" } else { "" };
                    let why = format!("the receiver answered {}{more}", status.as_u16());
                    ReceiverResponse { status: Some(status.as_u16()), failure: Some(why.into()) }
                }
                Err(why) => ReceiverResponse { status: None, failure: Some(why.into()) },
            });
        });
    }
}

impl Exchange {
    async fn run(&self, delivery: &Delivery) -> Result<StatusCode, String> {
        let target =
            WebhookTarget::parse(&delivery.url, self.private).map_err(|why| format!("the address {why}"))?;
        let stream = self.connect(&target).await?;
        if !target.is_encrypted {
            return self.exchange(stream, &target, delivery).await;
        }
        match self.tls.handshake(&target.host, stream).await {
            Ok(stream) => self.exchange(stream, &target, delivery).await,
            Err(tally_tls::Failure::Lost(why)) => Err(format!("the receiver cannot be reached: {why}")),
            Err(tally_tls::Failure::Untrusted(why)) => Err(why),
        }
    }

    async fn connect(&self, target: &WebhookTarget) -> Result<TcpStream, String> {
        let unreachable = |why: std::io::Error| format!("the receiver cannot be reached: {why}");
        let found = lookup_host((target.host.as_str(), target.port)).await.map_err(unreachable)?;
        let allowed = |at: &SocketAddr| self.private || is_public(at.ip());
        let mut last =
            "the receiver has a private address; the setting `webhooks.private` allows them".to_owned();
        for address in found.filter(allowed).take(ADDRESSES_MAX) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(why) => last = unreachable(why),
            }
        }
        Err(last)
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        target: &WebhookTarget,
        delivery: &Delivery,
    ) -> Result<StatusCode, String> {
        let broken = |why: hyper::Error| format!("the connection broke: {why}");
        let mut client = http1::Builder::new();
        client.max_buf_size(HEAD_BYTES_MAX);
        let (mut open, connection) =
            client.handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        let event = &delivery.event;
        let data = match &event.what {
            Happening::Stored(what) => webhooks::write_stored(&event.subject, what),
            Happening::Entry(entry) => {
                let shown = TransactionJson::new(entry.wallet.currency, &entry.entry);
                let shown = shown.with_name(entry.counterparty.as_ref()).with_origin(&entry.origin);
                webhooks::write_entry(entry.wallet.member, &shown, entry.mark)
            }
        };
        let (topic, place) = ((event.kind, &*event.subject), (event.number, event.missed));
        let body = webhooks::write_event(&event.id, topic, place, event.at, &data);
        let request = Request::post(&target.path)
            .header(HOST, &target.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close")
            .header(USER_AGENT, &self.agent)
            .header(SIGNATURE, signature(&delivery.secrets, delivery.at, body.as_bytes()))
            .header(EVENT_ID, &delivery.event.id)
            .header(WEBHOOK_ID, delivery.webhook.to_string())
            .body(Full::new(Bytes::from(body)));
        let request = request.map_err(|why| why.to_string())?;
        let answer = open.send_request(request).await;
        // The body of the answer is not read.
        connection.abort();
        Ok(answer.map_err(broken)?.status())
    }
}
