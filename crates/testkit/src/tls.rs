//! Certificates for servers that tests start, and the arguments to use them.
//!
//! They are files beside the sources of this crate, valid for a hundred years and only for tests. `ca.pem` has signed
//! `server.pem` (for `localhost` and 127.0.0.1) and `elsewhere.pem` (for `elsewhere.example`); `other-ca.pem` has signed
//! nothing. `ended.pem` ended on 2026-11-27. The keys of both authorities are deleted. Not here: a TLS client; the tests use the product's own.

/// The path of a file.
pub fn file(name: &str) -> String {
    format!("{}/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Arguments of a MariaDB or MySQL that offers TLS with this certificate.
pub fn of_database(certificate: &str) -> [String; 3] {
    [
        format!("--ssl-ca={}", file("ca.pem")),
        format!("--ssl-cert={}", file(&format!("{certificate}.pem"))),
        format!("--ssl-key={}", file(&format!("{certificate}-key.pem"))),
    ]
}

/// Arguments of a Redis or Valkey with this certificate. Clients need no certificate unless later arguments demand one.
pub fn of_redis(certificate: &str) -> Vec<String> {
    let pairs = [
        ("--tls-ca-cert-file", file("ca.pem")),
        ("--tls-cert-file", file(&format!("{certificate}.pem"))),
        ("--tls-key-file", file(&format!("{certificate}-key.pem"))),
        ("--tls-auth-clients", "no".into()),
    ];
    pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}
