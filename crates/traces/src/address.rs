//! The address of a collector: `http://host[:port][/path]`, encrypted with `https://`.
//!
//! Port and path default to those of OTLP over HTTP. The query has the TLS options that the address of a database or a Redis
//! has too (`ssl-ca=…`). Not here: proxies.

use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;
use std::fmt;
use tally_tls::{Options, Trust};

/// The port of OTLP over HTTP.
const PORT: u16 = 4318;
const PATH: &str = "/v1/traces";

/// A parsed address.
#[derive(Clone, Debug)]
pub struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
    /// The trusted certificates; `None` for connections without encryption.
    pub(crate) trust: Option<Trust>,
}

impl Address {
    /// Parses the text of a setting.
    ///
    /// # Errors
    ///
    /// What is wrong, worded to follow the name of the setting: "must begin with …". It leaves out a login.
    pub fn parse(text: &str) -> Result<Self, String> {
        let encrypted = match text.split_once("://") {
            Some(("http", _)) => false,
            Some(("https", _)) => true,
            _ => return Err("must begin with `http://` or `https://`".into()),
        };
        let uri: Uri = text.parse().map_err(|why| format!("cannot be read: {why}"))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err("has a login; send it as `traces.header`".into());
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = match (uri.port_u16(), authority.rsplit_once(':')) {
            (Some(0), _) => return Err("has no port that can be reached".into()),
            (Some(port), _) => port,
            // `Uri` accepts an empty or too large port, and reports none.
            (None, Some((_, port))) if !port.ends_with(']') => {
                return Err(format!("has `{port}` as its port"));
            }
            (None, _) => PORT,
        };
        let (path, query) = uri.path_and_query().map_or(("", ""), path_and_query);
        let path = if matches!(path, "" | "/") { PATH } else { path }.to_owned();
        let mut tls = Options::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| format!("has `{name}` that is not UTF-8"))?;
            if !tls.set(name, &value) {
                let known = Options::NAMES;
                return Err(format!("has the option `{name}`; there are, with https, {known}"));
            }
        }
        let trust = match tls.any() {
            _ if encrypted => Some(tls.read()?),
            Some(option) => return Err(format!("has `{option}`, but no TLS: begin it with `https://`")),
            None => None,
        };
        Ok(Self { host, port, path, trust })
    }

    /// Host and port, as the `Host` header has them: an IPv6 address in brackets.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.trust.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

fn path_and_query(rest: &PathAndQuery) -> (&str, &str) {
    (rest.path(), rest.query().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_defaults() {
        for (text, shown) in [
            ("http://localhost", "http://localhost:4318/v1/traces"),
            ("http://localhost:80/", "http://localhost:80/v1/traces"),
            ("http://10.0.0.1:9/otlp/v1/traces", "http://10.0.0.1:9/otlp/v1/traces"),
            ("http://[::1]:5", "http://[::1]:5/v1/traces"),
            ("http://[::1]/x", "http://[::1]:4318/x"),
            ("https://c.example", "https://c.example:4318/v1/traces"),
        ] {
            let address = Address::parse(text).unwrap_or_else(|why| panic!("{text} {why}"));
            assert_eq!(address.to_string(), shown);
        }
    }

    #[test]
    fn authorities_are_those_of_a_file_where_one_is_named() {
        let file = format!("{}/../testkit/tls/ca.pem", env!("CARGO_MANIFEST_DIR"));
        let address = Address::parse(&format!("https://localhost:1?ssl-ca={file}")).unwrap();
        assert!(address.trust.unwrap().ca().is_some());
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (text, word) in [
            ("", "must begin"),
            ("localhost:4318", "must begin"),
            ("grpc://localhost", "must begin"),
            ("http://", "cannot be read"),
            ("http://a b", "cannot be read"),
            ("http://u:secret@localhost", "`traces.header`"),
            ("http://localhost:0", "port"),
            ("http://localhost:", "port"),
            ("http://localhost:66000", "port"),
            ("http://localhost?ssl-ca=x", "`https://`"),
            ("https://localhost?ssl-ca=nowhere.pem", "nowhere.pem"),
            ("https://localhost?verify=no", "`verify`"),
        ] {
            let why = Address::parse(text).unwrap_err();
            assert!(why.contains(word) && !why.contains("secret"), "{text}: {why}");
        }
    }
}
