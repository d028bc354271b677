//! The address of a webhook: `https://host[:port]/path`.
//!
//! Not here: what its name resolves to, which is checked for each connection.

use super::address::is_public;
use hyper::Uri;
use std::net::IpAddr;

/// A parsed address.
#[derive(Debug)]
pub(crate) struct WebhookTarget {
    pub(crate) is_encrypted: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of `Host`.
    pub(crate) authority: String,
    /// The path with its query.
    pub(super) path: String,
}

impl WebhookTarget {
    /// Parses an address. `private` allows `http://`, and addresses of private networks.
    ///
    /// # Errors
    ///
    /// What is wrong, worded to follow the name of the field: "must begin with …".
    pub(crate) fn parse(text: &str, private: bool) -> Result<Self, String> {
        let is_encrypted = match text.split_once("://") {
            Some(("https", _)) => true,
            Some(("http", _)) if private => false,
            Some(("http", _)) => {
                return Err(
                    "must begin with `https://`; the setting `webhooks.private` allows `http://`".into()
                );
            }
            _ => return Err("must begin with `https://`".into()),
        };
        let uri: Uri = text.parse().map_err(|_| "must be an address such as `https://example.com/hook`")?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') || text.contains('#') {
            return Err("must have no login and no fragment".into());
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = match (uri.port_u16(), authority.rsplit_once(':')) {
            (Some(port), _) if port > 0 => port,
            // `Uri` accepts an empty or too large port, and reports none.
            (Some(_), _) => return Err("has no port that can be reached".into()),
            (None, Some((_, port))) if !port.ends_with(']') => {
                return Err("has no port that can be reached".into());
            }
            (None, _) => {
                if is_encrypted {
                    443
                } else {
                    80
                }
            }
        };
        if host.is_empty() {
            return Err("must name a host".into());
        }
        let is_private = host.parse::<IpAddr>().is_ok_and(|address| !is_public(address));
        if is_private && !private {
            return Err("is a private address; the setting `webhooks.private` allows them".into());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { is_encrypted, host, port, authority: authority.to_owned(), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_bad_ones_are_named() {
        let read = |text: &str, private| {
            WebhookTarget::parse(text, private).map(|one| (one.host, one.port, one.path))
        };
        let of = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(read("https://a.example", false), of("a.example", 443, "/"));
        assert_eq!(read("https://a.example:8443/h?x=1", false), of("a.example", 8443, "/h?x=1"));
        assert_eq!(read("https://[2606:4700::1]:1/", false), of("2606:4700::1", 1, "/"));
        assert_eq!(read("http://127.0.0.1:9/", true), of("127.0.0.1", 9, "/"));
        for text in [
            "",
            "a.example",
            "ftp://a/",
            "http://a.example/",
            "https://",
            "https:///p",
            "https://u:p@a/",
            "https://a/#f",
            "https://a:0/",
            "https://a:/",
            "https://a:65536/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://[fd00::1]/",
            "https://a b/",
            "https://169.254.169.254/latest",
        ] {
            assert!(WebhookTarget::parse(text, false).is_err(), "{text}");
        }
    }
}
