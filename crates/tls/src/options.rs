//! The options of an address that configure encryption.
//!
//! Not here: the rest of an address, and whether TLS is chosen by an option (`mysql://`) or by the scheme (`rediss://`).

use crate::{File, Trust};

/// The given options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
    name: Option<String>,
}

impl Options {
    /// Their names, for messages.
    pub const NAMES: &str = "`ssl-ca`, `ssl-cert`, `ssl-key` and `ssl-name`";

    /// Sets one; returns whether the name is one of them.
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let place = match name {
            "ssl-ca" => &mut self.ca,
            "ssl-cert" => &mut self.cert,
            "ssl-key" => &mut self.key,
            "ssl-name" => &mut self.name,
            _ => return false,
        };
        *place = Some(value.to_owned());
        true
    }

    /// One that was given, for an address that may have none.
    pub fn any(&self) -> Option<&'static str> {
        let given = [
            ("ssl-ca", &self.ca),
            ("ssl-cert", &self.cert),
            ("ssl-key", &self.key),
            ("ssl-name", &self.name),
        ];
        given.iter().find(|(_, value)| value.is_some()).map(|(name, _)| *name)
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// What is wrong with the address, as the end of a sentence about it.
    pub fn read(self) -> Result<Trust, String> {
        let identity = match (self.cert, self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((File::read("ssl-cert", &cert)?, File::read("ssl-key", &key)?)),
            _ => return Err("has one of `ssl-cert` and `ssl-key`, which go together".into()),
        };
        let ca = self.ca.map(|path| File::read("ssl-ca", &path)).transpose()?;
        let trust = Trust { ca, identity, name: self.name };
        // An unusable file is an error now, not at the first connection.
        trust.client()?;
        Ok(trust)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, &str)]) -> Result<Trust, String> {
        let mut all = Options::default();
        for (name, value) in options {
            assert!(all.set(name, value), "{name}");
        }
        all.read()
    }

    fn file(name: &str) -> String {
        format!("{}/../testkit/tls/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn without_options_the_authorities_of_browsers_are_trusted() {
        let trust = read(&[]).unwrap();
        assert_eq!((trust.ca(), trust.identity(), trust.name()), (None, None, None));
    }

    #[test]
    fn files_are_read_at_once() {
        let (ca, cert, key) = (file("ca.pem"), file("server.pem"), file("server-key.pem"));
        let trust =
            read(&[("ssl-ca", &ca), ("ssl-cert", &cert), ("ssl-key", &key), ("ssl-name", "a.b")]).unwrap();
        assert!(trust.ca().is_some() && trust.identity().is_some());
        assert_eq!(trust.name(), Some("a.b"));
        assert!(!format!("{trust:?}").contains("key"));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_option() {
        let (ca, cert, key) = (file("ca.pem"), file("server.pem"), file("server-key.pem"));
        for (options, word) in [
            (vec![("ssl-ca", "nowhere.pem")], "`ssl-ca=nowhere.pem`"),
            (vec![("ssl-ca", key.as_str())], "no certificate is in it"),
            (vec![("ssl-cert", cert.as_str())], "go together"),
            (vec![("ssl-cert", cert.as_str()), ("ssl-key", ca.as_str())], "`ssl-key="),
            (vec![("ssl-cert", ca.as_str()), ("ssl-key", key.as_str())], "`ssl-cert="),
        ] {
            let why = read(&options).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        assert!(!Options::default().set("ssl-verify", "no"));
    }
}
