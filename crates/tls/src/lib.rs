//! Encrypted connections to a database or a Redis: which certificates are trusted, and what an error says.
//!
//! A server always authenticates by its certificate: signed by a trusted authority, for the name of the connection. Neither
//! check can be skipped, because a connection without them protects no password. Options choose the authority (`ssl-ca`) and the
//! name (`ssl-name`). They are named as in MySQL's own clients, also for Redis, so that there is one set to learn. The
//! authorities of browsers are compiled in, so every machine trusts the same ones.
//!
//! It is a crate because the store and the ranking need it, and neither may depend on the other. Not here: the listeners
//! (`server/src/tls.rs`), and when a connection is made.

mod explain;
mod options;

pub use explain::explain;
pub use options::Options;

use std::error::Error;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The trusted certificates, and our own; the files were read and checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Trust {
    ca: Option<File>,
    identity: Option<(File, File)>,
    name: Option<String>,
}

/// A file with its contents.
#[derive(Clone, PartialEq, Eq)]
struct File {
    path: String,
    pem: Vec<u8>,
}

impl Trust {
    /// The file of authorities in PEM, if it replaces those of browsers.
    pub fn ca(&self) -> Option<&[u8]> {
        self.ca.as_ref().map(|file| file.pem.as_slice())
    }

    /// Our own certificate with its chain, and its private key: PEM.
    pub fn identity(&self) -> Option<(&[u8], &[u8])> {
        self.identity.as_ref().map(|(chain, key)| (chain.pem.as_slice(), key.pem.as_slice()))
    }

    /// The name that the certificate must have, if it differs from the host of the connection.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The TLS configuration of all connections.
    ///
    /// # Errors
    ///
    /// What is wrong with which option.
    pub fn client(&self) -> Result<Client, String> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(file) => {
                for certificate in certificates("ssl-ca", file)? {
                    roots.add(certificate).map_err(|why| file.wrong("ssl-ca", &why))?;
                }
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_root_certificates(roots);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let private =
                    PrivateKeyDer::from_pem_slice(&key.pem).map_err(|why| key.wrong("ssl-key", &why))?;
                builder
                    .with_client_auth_cert(certificates("ssl-cert", chain)?, private)
                    .map_err(|why| chain.wrong("ssl-cert", &why))?
            }
        };
        Ok(Client { connector: TlsConnector::from(Arc::new(config)), trust: self.clone() })
    }
}

/// Omits certificates, which are long, and the key, which is secret.
impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = |file: &File| file.path.clone();
        let (ca, cert) = (self.ca.as_ref().map(path), self.identity.as_ref().map(|(chain, _)| path(chain)));
        f.debug_struct("Trust")
            .field("ca", &ca)
            .field("cert", &cert)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Makes connections.
#[derive(Clone)]
pub struct Client {
    connector: TlsConnector,
    trust: Trust,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.trust.fmt(f)
    }
}

/// Why there is no encrypted connection.
#[derive(Debug)]
pub enum Failure {
    /// The connection failed; a retry may succeed.
    Lost(io::Error),
    /// The server is not trusted or does not speak TLS: the reason, and what to do.
    Untrusted(String),
}

impl Client {
    /// What an error of a connection says about trust, anywhere in its causes; `None` if it says nothing about it.
    pub fn explain(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let mut causes =
            std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
        causes.find_map(|cause| {
            // Some libraries share the causes of their errors.
            let shared = cause.downcast_ref::<Arc<dyn Error + Send + Sync>>();
            let cause = shared.map_or(cause, |shared| &**shared);
            explain(&self.trust, cause.downcast_ref()?)
        })
    }

    /// Does the handshake with the server of that name.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub async fn handshake(&self, host: &str, tcp: TcpStream) -> Result<TlsStream<TcpStream>, Failure> {
        let name = self.trust.name().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            Failure::Untrusted(format!(
                "`{name}` is no name that a certificate can have; say one by `ssl-name`"
            ))
        })?;
        self.connector.connect(name, tcp).await.map_err(|error| match explain(&self.trust, &error) {
            Some(why) => Failure::Untrusted(why),
            None => Failure::Lost(error),
        })
    }
}

impl File {
    fn read(option: &str, path: &str) -> Result<Self, String> {
        let pem = std::fs::read(path).map_err(|why| format!("has `{option}={path}`: {why}"))?;
        Ok(Self { path: path.to_owned(), pem })
    }

    fn wrong(&self, option: &str, why: &dyn std::fmt::Display) -> String {
        format!("has `{option}={}`: {why}", self.path)
    }
}

fn certificates(option: &str, file: &File) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(&file.pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|why| file.wrong(option, &why))?;
    if found.is_empty() {
        return Err(file.wrong(option, &"no certificate is in it (PEM is expected)"));
    }
    Ok(found)
}
