//! The address of a database: `mysql://user:password@host:port/database`, and with TLS `?ssl-mode=verify_identity`.
//!
//! The TLS options are tally's, named like those of MySQL's own clients. All other options after the `?` are the driver's.
//! There is no fallback: with TLS requested, a server without it is refused. Not here: opening a connection.

use crate::StoreError;
use crate::mysql::fault;
use mysql_async::{ClientIdentity, DriverError, Error, IoError, Opts, OptsBuilder, SslOpts, TlsError};
use percent_encoding::percent_decode_str;
use tally_tls::{Options, Trust};

/// TLS options of the driver, which are refused: the options of tally replace them.
const OF_THE_DRIVER: [&str; 4] = ["require_ssl", "verify_ca", "verify_identity", "built_in_roots"];

/// A parsed address.
#[derive(Debug)]
pub(in crate::mysql) struct Address {
    pub(in crate::mysql) opts: Opts,
    /// The address for messages, without the password.
    pub(in crate::mysql) shown: String,
    pub(in crate::mysql) database: String,
    trust: Option<Trust>,
}

impl Address {
    /// Parses an address, and reads the files that it names.
    pub(in crate::mysql) fn parse(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::NotOurs(format!("the address of the database ({why})"));
        let (url, trust) = encryption(url).map_err(|why| wrong(format!("it {why}")))?;
        let opts = Opts::from_url(&url).map_err(|error| wrong(error.to_string()))?;
        let database = opts.db_name().unwrap_or_default().to_owned();
        let shown = format!("mysql://{}:{}/{database}", opts.ip_or_hostname(), opts.tcp_port());
        if database.is_empty() {
            return Err(StoreError::NotOurs(format!("{shown} (it names no database)")));
        }
        // Fixed settings, whatever the URL says: no switch to a socket, no query of the driver, no cache of statements.
        let opts = OptsBuilder::from_opts(opts)
            .prefer_socket(false)
            .max_allowed_packet(Some(1 << 30))
            .wait_timeout(Some(usize::MAX))
            .stmt_cache_size(0)
            .tcp_nodelay(true)
            .ssl_opts(trust.as_ref().map(of_the_driver));
        Ok(Self { opts: opts.into(), shown, database, trust })
    }

    /// Explains a failed connection, and whether a later attempt may succeed by itself.
    pub(in crate::mysql) fn explain(&self, error: &Error) -> StoreError {
        let untrusted = self.trust.as_ref().and_then(|trust| match error {
            Error::Io(IoError::Io(error)) => tally_tls::explain(trust, error),
            Error::Io(IoError::Tls(TlsError::Tls(error))) => Some(trust.explain(error)),
            Error::Io(IoError::Tls(TlsError::InvalidDnsName(_))) => {
                Some("its host is no name that a certificate can have; say one by `ssl-name`".into())
            }
            Error::Driver(DriverError::NoClientSslFlagFromServer) => Some(
                "it does not offer TLS, which `ssl-mode` asks for; give it a certificate (`ssl_cert` and \
                 `ssl_key` of the server)"
                    .into(),
            ),
            _ => None,
        });
        let refused = match error {
            Error::Server(error) => fault::refuses_login(error.code),
            // A server answers with any plugin for a user that it does not know.
            Error::Driver(
                DriverError::UnknownAuthPlugin { .. }
                | DriverError::MysqlOldPasswordDisabled
                | DriverError::CleartextPluginDisabled,
            ) => true,
            _ => false,
        };
        let what = |what: String| format!("{}: {what}", self.shown);
        match untrusted {
            Some(why) => StoreError::NoAccess(what(why)),
            None if refused => StoreError::NoAccess(what(error.to_string())),
            None => StoreError::Unavailable(what(error.to_string())),
        }
    }
}

/// Takes the TLS options out of an address.
fn encryption(url: &str) -> Result<(String, Option<Trust>), String> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut options, mut encrypted, mut others) = (Options::default(), None, Vec::new());
    for option in query.split('&') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| format!("has a `{name}` that is not UTF-8"))?;
        if name == "ssl-mode" {
            encrypted = Some(is_encrypted(&value)?);
        } else if OF_THE_DRIVER.contains(&name) {
            return Err(format!("has the option `{name}`; TLS is asked for by `ssl-mode=verify_identity`"));
        } else if !options.set(name, &value) {
            others.push(option);
        }
    }
    let trust = match (encrypted, options.any()) {
        (Some(false) | None, None) => None,
        (Some(false), Some(given)) => return Err(format!("has `{given}` and `ssl-mode=disabled`")),
        // An address that names a certificate authority does not mean a plain connection.
        (Some(true), _) | (None, Some(_)) => Some(options.read()?),
    };
    let separator = if others.is_empty() { "" } else { "?" };
    Ok((format!("{before}{separator}{}", others.join("&")), trust))
}

fn is_encrypted(mode: &str) -> Result<bool, String> {
    match mode.to_ascii_lowercase().as_str() {
        "verify_identity" => Ok(true),
        "disabled" => Ok(false),
        _ => Err(format!(
            "has `ssl-mode={mode}`; there are `verify_identity` and `disabled`, because a server that is not \
             verified can be anybody (`ssl-ca` names an authority of your own, `ssl-name` the name in the certificate)"
        )),
    }
}

fn of_the_driver(trust: &Trust) -> SslOpts {
    let identity = trust.identity();
    let identity =
        identity.map(|(chain, key)| ClientIdentity::new(chain.to_vec().into(), key.to_vec().into()));
    SslOpts::default()
        .with_root_certs(trust.ca().map(|pem| pem.to_vec().into()).into_iter().collect())
        .with_disable_built_in_roots(trust.ca().is_some())
        .with_client_identity(identity)
        .with_danger_tls_hostname_override(trust.name().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "mysql://tally:secret@db.example:3307/games";

    #[test]
    fn an_address_names_a_database_and_is_shown_without_its_password() {
        let address = Address::parse(PLAIN).unwrap();
        assert_eq!(address.shown, "mysql://db.example:3307/games");
        for bad in ["mysql://db.example", "postgres://db.example/games", "db"] {
            assert!(matches!(Address::parse(bad), Err(StoreError::NotOurs(_))), "{bad}");
        }
    }

    #[test]
    fn tls_is_there_when_it_is_asked_for_and_verifies_all() {
        let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/tls/ca.pem").replace('/', "%2F");
        let asked = |query: &str| Address::parse(&format!("{PLAIN}{query}")).unwrap();
        for plain in ["", "?ssl-mode=DISABLED", "?tcp_nodelay=false"] {
            assert_eq!(asked(plain).opts.ssl_opts(), None, "{plain}");
        }
        for query in ["?ssl-mode=VERIFY_IDENTITY".to_owned(), format!("?tcp_nodelay=true&ssl-ca={ca}")] {
            let address = asked(&query);
            let opts = address.opts.ssl_opts().expect("TLS");
            assert!(!opts.accept_invalid_certs() && !opts.skip_domain_validation());
            assert_eq!(opts.disable_built_in_roots(), query.contains("ssl-ca"));
            assert_eq!(address.shown, "mysql://db.example:3307/games");
        }
        let named = asked("?ssl-mode=verify_identity&ssl-name=db.internal");
        assert_eq!(named.opts.ssl_opts().unwrap().tls_hostname_override(), Some("db.internal"));
    }

    #[test]
    fn what_would_not_verify_is_refused() {
        for (query, word) in [
            ("ssl-mode=preferred", "there are `verify_identity` and `disabled`"),
            ("ssl-mode=required", "`ssl-mode=required`"),
            ("ssl-mode=disabled&ssl-name=a", "`ssl-name` and `ssl-mode=disabled`"),
            ("require_ssl=true", "`require_ssl`"),
            ("ssl-mode=verify_identity&verify_ca=false", "`verify_ca`"),
            ("ssl-ca=nowhere.pem", "`ssl-ca=nowhere.pem`"),
            ("ssl-verify=1", "ssl-verify"),
        ] {
            let refused = Address::parse(&format!("{PLAIN}?{query}")).unwrap_err().to_string();
            assert!(refused.contains(word), "{query}: {refused}");
        }
    }
}
