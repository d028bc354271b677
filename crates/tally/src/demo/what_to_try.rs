//! The commands that `tally serve --demo` prints. Each works as it is, in a shell in the same folder.
//!
//! So they have the addresses, the program and the data directory of the server, and an API key if requests need one. Not here:
//! when they are printed (`serve`).

use super::{contests, wallets};
use crate::config::{Config, without_password};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// How commands reach a server.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The start of the URLs.
    url: String,
    /// The listener of the Redis protocol.
    resp: Option<SocketAddr>,
    is_encrypted: bool,
    needs_key: bool,
    /// The program as it was started, and its flags for the data directory.
    program: String,
    place: String,
    /// The flag for the store; `None` if its URL has a password.
    store: Option<String>,
}

impl Reach {
    /// A server with these listeners and settings; `file` is its configuration file.
    pub(crate) fn new(
        (http, resp): (SocketAddr, Option<SocketAddr>),
        config: &Config,
        file: Option<&Path>,
        needs_key: bool,
    ) -> Self {
        let is_encrypted = !config.text("tls.certificate").is_empty();
        let scheme = if is_encrypted { "https" } else { "http" };
        let flag = |name: &str, value: &str| format!(" {name} {}", quoted(value));
        let said = |name| Some(config.text(name)).filter(|text| config.is_said(name) && !text.is_empty());
        let mut place = file.map_or_else(String::new, |file| flag("--config", &file.to_string_lossy()));
        place.extend(said("data.dir").map(|data| flag("--data", data)));
        let store = said("store.url").map_or(Some(String::new()), |urls| {
            let is_open = urls.split(',').all(|url| without_password(url) == url);
            is_open.then(|| flag("--store", urls))
        });
        let program = std::env::args().next().unwrap_or_else(|| "tally".into());
        Self {
            url: format!("{scheme}://{}", reached(http)),
            resp: resp.map(reached),
            is_encrypted,
            needs_key,
            program: quoted(&program),
            place,
            store,
        }
    }

    /// A request.
    pub(crate) fn curl(&self, path: &str) -> String {
        self.request("", path)
    }

    /// A request that changes something.
    pub(super) fn post(&self, path: &str) -> String {
        self.request("-X POST ", path)
    }

    fn request(&self, method: &str, path: &str) -> String {
        let key = if self.needs_key { r#"-H "authorization: Bearer $TALLY_KEY" "# } else { "" };
        format!("  curl {method}{key}'{}{path}'\n", self.url)
    }

    /// The verification of the store.
    pub(crate) fn verify(&self) -> String {
        let command = |store| format!("  {} verify{}{store}\n", self.program, self.place);
        self.store.as_ref().map_or_else(String::new, command)
    }

    /// All commands.
    pub(crate) fn commands(&self) -> String {
        let mut text = String::from("\nTry:\n");
        if self.needs_key {
            let (program, place) = (&self.program, &self.place);
            text += &format!("  export TALLY_KEY=$({program} keys create --role admin --name demo{place})\n");
        }
        text += &self.curl("/v1/leaderboards/goals/scores?limit=5");
        text += &self.curl("/v1/leaderboards/goals/players/Harry%20Kane");
        text += &self.curl("/v1/leaderboards/points/players/Brazil/around?above=0&below=2");
        text += &self.curl("/v1/leaderboards/goals-by-year/scores?period=yearly:previous&limit=3");
        if let Some(resp) = self.resp {
            let key = if self.needs_key { "REDISCLI_AUTH=$TALLY_KEY " } else { "" };
            let tls = if self.is_encrypted { "--tls " } else { "" };
            let (host, port) = (resp.ip(), resp.port());
            text += &format!("  {key}redis-cli {tls}-h {host} -p {port} ZREVRANGE goals 0 4 WITHSCORES\n");
        }
        text + &wallets::what_to_try(self) + &contests::what_to_try(self)
    }
}

/// The address under which this machine reaches a listener.
fn reached(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listener.port())
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&byte);
    let as_it_is = !text.is_empty() && text.bytes().all(is_plain);
    if as_it_is { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(http: &str, settings: &[(&str, &str)], needs_key: bool) -> String {
        let mut config = Config::defaults();
        settings.iter().for_each(|(name, value)| config.set(name, (*value).into(), "flag").unwrap());
        let resp = Some("[::]:8421".parse().unwrap());
        Reach::new((http.parse().unwrap(), resp), &config, None, needs_key).commands()
    }

    #[test]
    fn addresses_are_those_that_this_machine_reaches() {
        let text = commands("0.0.0.0:8420", &[], false);
        assert!(
            text.contains("  curl 'http://127.0.0.1:8420/v1/leaderboards/goals/scores?limit=5'\n"),
            "{text}"
        );
        assert!(text.contains("  redis-cli -h ::1 -p 8421 ZREVRANGE goals"), "{text}");
        assert!(!text.contains("TALLY_KEY") && text.contains(" verify\n"), "{text}");
        let text = commands("[::1]:1", &[("tls.certificate", "c.pem")], false);
        assert!(text.contains("'https://[::1]:1/v1/") && text.contains("redis-cli --tls -h"), "{text}");
    }

    #[test]
    fn a_key_is_made_if_requests_need_one() {
        let text = commands("127.0.0.1:8420", &[("data.dir", "a player's")], true);
        assert!(text.contains(r" keys create --role admin --name demo --data 'a player'\''s')"), "{text}");
        let request = r#"  curl -H "authorization: Bearer $TALLY_KEY" 'http://127.0.0.1:8420/v1/members?"#;
        assert!(text.contains(request), "{text}");
        assert!(text.contains(r#"  curl -X POST -H "authorization: Bearer $TALLY_KEY" 'http"#), "{text}");
        assert!(text.contains("  REDISCLI_AUTH=$TALLY_KEY redis-cli "), "{text}");
    }

    #[test]
    fn no_password_is_printed() {
        let text = commands("127.0.0.1:1", &[("store.url", "mysql://tally@db/tally")], false);
        assert!(!text.contains("verify"), "a user may have one: {text}");
        let text = commands("127.0.0.1:1", &[("store.url", "sqlite:x.db"), ("data.dir", "d")], false);
        assert!(text.contains(" verify --data d --store sqlite:x.db\n"), "{text}");
    }
}
