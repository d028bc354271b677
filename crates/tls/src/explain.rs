//! What a failed handshake means, and what to do about it.
//!
//! It matches the error kinds of rustls, not their wording (but for one error without a kind). Not here: network failures.

use crate::Trust;
use std::io;
use tokio_rustls::rustls::{CertificateError, Error, OtherError};

/// Says why a server is not trusted; `None` if the error has another cause.
pub fn explain(trust: &Trust, error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref().map(|error| trust.explain(error))
}

impl Trust {
    /// The same for an error of TLS.
    pub fn explain(&self, error: &Error) -> String {
        match error {
            Error::InvalidCertificate(of) => self.certificate(of),
            Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
                "it does not speak TLS on this port; encrypt it there, or take TLS out of the address".into()
            }
            Error::AlertReceived(alert) => {
                let own = match &self.identity {
                    None => {
                        "; if it asks for a certificate of its clients, name one by `ssl-cert` and `ssl-key`"
                    }
                    Some(_) => "",
                };
                format!("it broke off the TLS handshake ({alert:?}){own}")
            }
            other => format!("the TLS handshake failed: {other}"),
        }
    }

    fn certificate(&self, error: &CertificateError) -> String {
        use CertificateError as Why;
        match error {
            Why::UnknownIssuer | Why::BadSignature => match &self.ca {
                None => "its certificate is not signed by an authority that browsers know; name the file of \
                         the one that signed it by `ssl-ca`"
                    .into(),
                Some(file) => format!(
                    "its certificate is not signed by an authority of `ssl-ca={}`; name the file of the one \
                     that signed it",
                    file.path
                ),
            },
            Why::NotValidForName => "its certificate is for another name; say which by `ssl-name`".into(),
            Why::NotValidForNameContext { expected, presented } => {
                let names = if presented.is_empty() {
                    "no name (subjectAltName; a common name does not count): make it one that has its name"
                        .into()
                } else {
                    format!("{}; connect by one of these, or say it by `ssl-name`", presented.join(", "))
                };
                format!("its certificate is not for {} but for {names}", expected.to_str())
            }
            Why::Expired | Why::ExpiredContext { .. } => {
                "its certificate has expired; renew it, or set the clock of this machine".into()
            }
            Why::NotValidYet | Why::NotValidYetContext { .. } => {
                "its certificate is not valid yet; set the clock of this machine".into()
            }
            Why::Other(OtherError(other)) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                "its certificate is that of an authority (CA:TRUE), which a server may not use: sign one for \
                 the server with it, or make it with `basicConstraints=CA:FALSE`"
                    .into()
            }
            other => format!("its certificate is refused: {other}"),
        }
    }
}
