//! Addresses of Redis: `redis://[user[:password]@]host[:port][/db]` or `redis-cluster://[user[:password]@]host:port,…`,
//! with TLS `rediss://` and `rediss-cluster://`.
//!
//! Options follow as in any URL: `?db=`, `?prefix=` of the keys, `?partitions=` of a board on a cluster, and those of
//! TLS. The parser is our own because the client's has neither several hosts nor these options. Not here: Unix sockets.

use super::RankingError;
use percent_encoding::percent_decode_str;
use tally_tls::{Options, Trust};

const PORT: u16 = 6379;
const PREFIX: &str = "tally";
const PREFIX_BYTES_MAX: usize = 64;
const PARTITIONS: u16 = 16;
const PARTITIONS_MAX: u16 = 256;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) cluster: bool,
    /// The hosts; of a cluster, the first to connect to.
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) db: i64,
    pub(super) prefix: String,
    /// Of windows that may be partitioned.
    pub(super) partitions: u16,
    /// What TLS trusts; `None` for connections without TLS.
    pub(super) trust: Option<Trust>,
}

impl Address {
    /// `what` names the address in messages.
    pub(super) fn parse(url: &str, what: &str) -> Result<Self, RankingError> {
        Self::read(url).map_err(|why| RankingError::Address(format!("the address of {what} {why}")))
    }

    fn read(url: &str) -> Result<Self, String> {
        let (scheme, rest) =
            url.split_once("://").ok_or("must begin with `redis://` or `redis-cluster://`")?;
        let (cluster, encrypted) = match scheme {
            "redis" => (false, false),
            "rediss" => (false, true),
            "redis-cluster" => (true, false),
            "rediss-cluster" => (true, true),
            other => {
                return Err(format!(
                    "begins with `{other}://`, not with `redis://` or `redis-cluster://` (with TLS `rediss://` or \
                     `rediss-cluster://`)"
                ));
            }
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').map_or((None, authority), |(a, b)| (Some(a), b));
        let (user, password) = login.map_or(Ok((None, None)), credentials)?;
        let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>();
        // Text of such an address may be a password, so no message has it.
        if login.is_none() && (path.contains('@') || hosts.is_err() && query.contains('@')) {
            return Err(
                "has `/` or `?` before its `@`: a user or a password has them as `%2F` and `%3F`".into()
            );
        }
        let hosts = hosts?;
        if !cluster && hosts.len() > 1 {
            return Err("names several hosts, which only `redis-cluster://` may".into());
        }
        let mut address = Self {
            cluster,
            hosts,
            user,
            password,
            db: if path.is_empty() { 0 } else { database(path)? },
            prefix: PREFIX.into(),
            partitions: if cluster { PARTITIONS } else { 1 },
            trust: None,
        };
        let mut tls = Options::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = decoded(value)?;
            if !tls.set(name, &value) {
                address.set(name, &value)?;
            }
        }
        if cluster && address.db != 0 {
            return Err("names a database; a cluster has only one".into());
        }
        match tls.any() {
            _ if encrypted => address.trust = Some(tls.read()?),
            Some(option) => {
                return Err(format!(
                    "has `{option}`, but no TLS: begin it with `{}://`",
                    scheme.replacen("redis", "rediss", 1)
                ));
            }
            None => {}
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "db" => self.db = database(value)?,
            "prefix" => {
                let fits = (1..=PREFIX_BYTES_MAX).contains(&value.len()) && !value.contains(['{', '}']);
                let wrong =
                    || format!("has a `prefix` that is not 1 to {PREFIX_BYTES_MAX} bytes without braces");
                self.prefix = if fits { value.into() } else { return Err(wrong()) };
            }
            "partitions" => {
                let count = value.parse().ok().filter(|count| (1..=PARTITIONS_MAX).contains(count));
                self.partitions =
                    count.ok_or_else(|| format!("has `partitions` that are not 1 to {PARTITIONS_MAX}"))?;
            }
            other => {
                let tls = Options::NAMES;
                return Err(format!(
                    "has the option `{other}`; there are `db`, `prefix` and `partitions`, and with TLS {tls}"
                ));
            }
        }
        Ok(())
    }
}

/// Without the password: for logs and messages.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let encrypted = if self.trust.is_some() { "s" } else { "" };
        write!(f, "redis{encrypted}{}://{}", if self.cluster { "-cluster" } else { "" }, hosts.join(","))
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

type Credentials = (Option<String>, Option<String>);

/// `password@` alone is no user: as in other clients, `:password@` is a password.
fn credentials(login: &str) -> Result<Credentials, String> {
    let (user, password) = login.split_once(':').map_or((login, None), |(a, b)| (a, Some(b)));
    let some = |text: &str| if text.is_empty() { Ok(None) } else { decoded(text).map(Some) };
    Ok((some(user)?, password.map_or(Ok(None), some)?))
}

/// A host with its port; IPv6 addresses are in brackets.
pub(super) fn host(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("has `{text}` where `host:port` belongs");
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (name, rest.strip_prefix(':'))
        }
        None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| wrong()))?;
    if name.is_empty() { Err(wrong()) } else { Ok((name.to_owned(), port)) }
}

fn database(text: &str) -> Result<i64, String> {
    text.parse().ok().filter(|number| *number >= 0).ok_or_else(|| format!("names the database `{text}`"))
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| format!("has `{text}`, which is not UTF-8"))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_address_has_the_usual_values() {
        let address = Address::parse("redis://cache", "x").unwrap();
        assert_eq!((address.hosts, address.db, address.partitions), (vec![("cache".into(), 6379)], 0, 1));
        assert_eq!((address.prefix.as_str(), address.cluster, address.user), ("tally", false, None));
    }

    #[test]
    fn everything_that_can_be_said() {
        let address =
            Address::parse("redis://me:p%40ss@[::1]:7000/3?prefix=studio:eu&partitions=4", "x").unwrap();
        assert_eq!(address.hosts, [("::1".into(), 7000)]);
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("me"), Some("p@ss")));
        assert_eq!((address.db, address.prefix.as_str(), address.partitions), (3, "studio:eu", 4));
        assert_eq!(Address::parse("redis://:secret@a?db=2", "x").unwrap().db, 2);
        let cluster = Address::parse("redis-cluster://a:1,b:2,c", "x").unwrap();
        assert_eq!(cluster.hosts, [("a".into(), 1), ("b".into(), 2), ("c".into(), 6379)]);
        assert_eq!((cluster.cluster, cluster.partitions), (true, 16));
    }

    #[test]
    fn a_password_is_never_shown() {
        let address = Address::parse("redis://:secret@a:1", "x").unwrap();
        assert_eq!(format!("{address} {address:?}"), "redis://a:1 redis://a:1");
        for url in
            ["redis://:sec/ret@a", "redis://me:12/sec@a:1/2", "redis://:sec?ret@a", "redis://:sec?a/b@c"]
        {
            let message = Address::parse(url, "x").unwrap_err().to_string();
            assert!(message.contains("`%2F`") && !message.contains("sec"), "{url}: {message}");
        }
        assert_eq!(Address::parse("redis://a?prefix=b@c", "x").unwrap().prefix, "b@c");
    }

    #[test]
    fn tls_is_asked_for_by_the_scheme() {
        let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/tls/ca.pem");
        for (url, shown) in [
            (format!("rediss://a?ssl-ca={ca}&prefix=x"), "rediss://a:6379"),
            ("rediss-cluster://:secret@a,b:1".to_owned(), "rediss-cluster://a:6379,b:1"),
        ] {
            let address = Address::parse(&url, "x").unwrap();
            let trust = address.trust.as_ref().expect("TLS");
            assert_eq!((address.to_string().as_str(), trust.ca().is_some()), (shown, url.contains("ssl-ca")));
        }
        assert_eq!(Address::parse("redis://a", "x").unwrap().trust, None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (url, part) in [
            ("cache:6379", "must begin with"),
            ("http://a", "begins with `http://`"),
            ("redis://a?ssl-name=b", "begin it with `rediss://`"),
            ("redis-cluster://a?ssl-ca=b", "begin it with `rediss-cluster://`"),
            ("rediss://a?ssl-ca=nowhere.pem", "`ssl-ca=nowhere.pem`"),
            ("rediss://a?ssl-key=nowhere.pem", "go together"),
            ("redis://a:x", "`a:x`"),
            ("redis://", "where `host:port` belongs"),
            ("redis://a,b", "several hosts"),
            ("redis://a/x", "the database `x`"),
            ("redis://a?db=-1", "the database `-1`"),
            ("redis-cluster://a?db=1", "a cluster has only one"),
            ("redis://a?prefix={x}", "prefix"),
            ("redis-cluster://a?partitions=0", "partitions"),
            ("redis://a?tls=1", "the option `tls`"),
        ] {
            let message = Address::parse(url, "x").unwrap_err().to_string();
            assert!(message.contains(part), "{url}: {message}");
        }
    }
}
