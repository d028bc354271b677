//! Every setting, with its default and what it does. The order is that of the reference.

pub(crate) struct Setting {
    /// `section.name`; the environment variable is `TALLY_SECTION_NAME`.
    pub(crate) name: &'static str,
    /// The default, as text.
    pub(crate) default: &'static str,
    /// What it does.
    pub(crate) help: &'static str,
}

impl Setting {
    /// Its environment variable.
    pub(crate) fn variable(&self) -> String {
        match self.name {
            // Its variable is shorter than its name.
            "data.dir" => "TALLY_DATA".into(),
            name => format!("TALLY_{}", name.replace('.', "_").to_uppercase()),
        }
    }
}

macro_rules! settings {
    ($($name:literal = $default:literal $help:literal;)+) => {
        /// Every setting.
        pub(crate) const SETTINGS: &[Setting] = &[$(Setting { name: $name, default: $default, help: $help }),+];
    };
}

settings! {
    "data.dir" = "./tally-data" "Data directory: the embedded store, the secret and the running server's address.";
    "secret.file" = "" "File with the secret, 64 hexadecimal digits, or with two while one is replaced; empty: `secret` in the data directory.";
    "store.url" = "" "`sqlite:PATH` or `mysql://user:password@host:port/database` (MariaDB too; with TLS `?ssl-mode=verify_identity`), or several databases, comma-separated: the shards of one store; empty: `tally.db` in the data directory.";
    "store.url_file" = "" "File with `store.url`, which has a password: a line of text, read by a start.";
    "store.pool_max" = "8" "Maximum number of connections to a database; about twice its processors, see `tally doctor`.";
    "store.lanes" = "3" "Lanes of scores in front of a database, each with a transaction of its own in flight, at most store.pool_max of them; a store in a file has one.";
    "store.connect_timeout" = "5s" "How long a connection to a database may take.";
    "store.query_timeout" = "20s" "How long a database may take to answer. After this time it counts as unavailable.";
    "store.lock_wait" = "2s" "How long a database lets a statement wait for rows of another, in whole seconds; less than `store.query_timeout`.";
    "store.lease" = "10s" "How long a silent server keeps its right to write to a database. The successor of a killed server waits this long.";
    "store.staleness_max" = "5s" "How old a server's knowledge of what other servers have changed may be; then it answers 503. A database that pauses for less is not noticed; for so long, a server that it does not answer accepts a key that was revoked at another one.";
    "store.cache_mib" = "auto" "Memory of the store for pages, in MiB; `auto` follows the memory of the container, up to 64.";
    "store.wal_mib" = "256" "Limit of the write-ahead log of the store's tables, in MiB.";
    "store.memtable_mib" = "auto" "Memory for changes that are not in the store's tables yet, in MiB (`auto`: up to 256); from half of it on, commits are slowed; above it, they wait.";
    "store.journal_mib" = "1024" "Size of a journal file, in MiB, at which its changes are flushed into the tables; there are two such files.";
    "follow.advertise" = "" "URL at which other servers of the store reach this one, such as `http://10.0.0.5:8420`, or `auto` for the address of `http.listen`. With ranks in memory and a store in one database this server then follows the one that writes, or leads if there is none; empty: it only runs alone.";
    "follow.age_max" = "1s" "How old the ranks of a server that follows may be; then the leader answers reads.";
    "follow.ca_file" = "" "PEM file of the authorities that sign the certificates of the other servers; empty: those of browsers.";
    "ranking.url" = "memory" "Where rankings are kept: `memory`, `redis://host:port` or `redis-cluster://host:port,host:port` (with TLS `rediss://` or `rediss-cluster://`); Redis needs a store in a database.";
    "ranking.url_file" = "" "File with `ranking.url`, if that has a password.";
    "ranking.timeout" = "2s" "How long Redis may take to answer. After this time it counts as unavailable.";
    "applications.url" = "store" "Where contests without fee and prizes have their applications: `store`, `redis://host:port` or `redis-cluster://host:port,host:port` (with TLS `rediss://` or `rediss-cluster://`); Redis is fast, but applications are lost if it loses its data.";
    "applications.url_file" = "" "File with `applications.url`, if that has a password.";
    "applications.timeout" = "2s" "How long that Redis may take to answer. After this time it counts as unavailable.";
    "http.listen" = "127.0.0.1:8420" "Where HTTP listens, or `off` if `http.socket` is enough.";
    "http.socket" = "" "Path of a Unix socket on which HTTP is served, too, without TLS. Its clients count as this machine, with the address 127.0.0.1.";
    "http.socket_mode" = "600" "Who may connect to it: `600` the account of the server, `660` the group of the file, too.";
    "http.hosts" = "" "Host names, comma-separated, that requests without a key may use, besides loopback and IP addresses.";
    "http.trusted_proxies" = "" "Proxies, comma-separated addresses or networks such as `10.0.0.0/8`, whose `X-Forwarded-For` says the client's address; without them, all clients behind a proxy share one limit of wrong passwords.";
    "http.cors_origins" = "" "Web origins, comma-separated, whose pages may read in a browser (CORS).";
    "http.body_bytes_max" = "2097152" "Bytes of a request's body; above it, 413.";
    "http.bodies_bytes_max" = "auto" "Bytes of all bodies that are being received, beyond 64 KiB of each; above it, 503. `auto`: up to 268435456.";
    "http.responses_bytes_max" = "auto" "Bytes of all responses that clients have not read, beyond 64 KiB of each; above it, reads get 503. `auto`: up to 268435456.";
    "http.connections_max" = "10000" "Open connections; further ones wait. The last tenths, up to 16 each, are for health checks and for commands of this machine.";
    "http.head_timeout" = "75s" "Time for a request's head, and for an idle connection to stay: longer than a balancer keeps idle connections (60 s with most; 620 s fits that of Google).";
    "http.body_timeout" = "30s" "Time for a request's body; after it, 408.";
    "http.write_timeout" = "60s" "Time for a client to read every 64 KiB of its answers, or the last of them; after it, its connection is closed.";
    "http.drain_delay" = "off" "Time between the signal to stop and draining, or `off`: `/readyz` says `draining`, and requests are served. Longer than a balancer needs to notice.";
    "http.drain_timeout" = "20s" "Time that running requests get at shutdown before their connections are cut.";
    "admin.listen" = "off" "Where health, metrics, the status, keys, webhooks and the audit log are served, too, on a thread and with connections of their own, or `off`. It has the TLS of `http.listen`.";
    "events.streams_max" = "4000" "Concurrent event streams, each on a connection of its own; above it, 503.";
    "events.key_streams_max" = "2000" "The same of one API key; above it, 429.";
    "events.member_streams_max" = "10" "The same of one member; above it, 429.";
    "keys.required" = "auto" "Whether requests of this machine need a credential even before the first key is made: `auto`, over TCP, but not with `--demo`; `true`, on Unix sockets, too; `false`, nowhere. All others always need one.";
    "resp.listen" = "127.0.0.1:8421" "Where the Redis protocol listens, or `off`.";
    "resp.socket" = "" "Path of a Unix socket on which the Redis protocol is served, too, also if `resp.listen` is `off`; see `http.socket`.";
    "resp.socket_mode" = "600" "The same as `http.socket_mode`.";
    "resp.durability" = "commit" "When its writes are answered: `commit`, durable; `relaxed`, at once and durable within a second.";
    "resp.connections_max" = "10000" "Open connections of the Redis protocol; further ones wait. The last tenth, up to 16, is for clients of this machine.";
    "resp.buffer_bytes_max" = "auto" "Bytes of unfinished commands, open transactions and unread replies of all connections; above it, the connection with most of them is closed. `auto`: up to 536870912.";
    "resp.threads" = "auto" "Threads that serve them; `auto` is half of the machine's processors.";
    "resp.idle_timeout" = "never" "How long a connection may be idle, or `never`.";
    "resp.auth_timeout" = "10s" "How long a connection may take to present a key, where one is needed, before it is closed.";
    "resp.command_timeout" = "30s" "How long an unfinished command may take for every 64 KiB, or its end, before its connection is closed.";
    "resp.write_timeout" = "60s" "How long a client may take to read every 64 KiB of its replies, or the last of them, before its connection is closed.";
    "connections.address_max" = "auto" "Open connections of one address (IPv6: of one /64), for each protocol; further ones are closed. `auto` is a quarter of that protocol's `connections_max`.";
    "connections.loopback_max" = "off" "The same of each loopback address, or `off`.";
    "tls.certificate" = "" "PEM file with the certificate and its chain: then HTTP and the Redis protocol are encrypted.";
    "tls.key" = "" "PEM file with the certificate's private key.";
    "metrics.open" = "false" "Whether /metrics needs no key.";
    "traces.url" = "" "The OpenTelemetry collector that gets the traces (OTLP over HTTP): `http://host:port` or `https://host:port`; empty: they are off.";
    "traces.ratio" = "0.01" "The sampled share of requests, from 0 (none) to 1 (all); a `traceparent` header decides instead.";
    "traces.service" = "tally" "The service name in traces, `service.name`.";
    "traces.header" = "" "A header that the collector requires, such as `authorization: Bearer …`; a secret, so better in the environment.";
    "traces.header_file" = "" "File with `traces.header`.";
    "traces.timeout" = "5s" "How long the collector may take to answer. After this time it counts as unavailable.";
    "idempotency.keep" = "24h" "How long outcomes of requests with an Idempotency-Key are kept.";
    "clock.jump_max" = "60s" "The largest difference between the wall clock and the monotonic clock between two readings; beyond it, the wall clock is not trusted.";
    "clock.steady" = "10m" "How long both must agree after a jump before the wall clock is trusted again; until then nothing is closed, paid or expired.";
    "lane.batch_rows_max" = "1000" "Rows of one batch, of scores or of money.";
    "lane.batch_bytes_max" = "4194304" "Bytes of one batch.";
    "lane.queue_requests_max" = "20000" "Requests that wait for a batch; above it, 503.";
    "lane.queue_bytes_max" = "auto" "Bytes that wait for a batch; above it, 503. `auto`: up to 67108864.";
    "wallet.currency" = "KRW" "The currency in which every member has a wallet from the start; fixed once there is a member.";
    "wallet.transfer_max" = "off" "The limit of one transfer, in the smallest unit, or `off`; `transfer_max_USD` sets it for one currency.";
    "wallet.day_max" = "off" "The limit of all transfers from one wallet on one UTC day, in the smallest unit, or `off`; `day_max_USD` sets it for one currency.";
    "wallet.balance_max" = "off" "The largest balance of a member that deposits, transfers, captures and prizes may reach, in the smallest unit, or `off`; `balance_max_USD` sets it for one currency.";
    "wallet.transfers" = "true" "Whether members transfer money to each other; `transfers_USD` sets it for one currency.";
    "wallet.withdrawals" = "true" "Whether money is withdrawn; `withdrawals_USD` sets it for one currency.";
    "members.phone_country" = "" "Country code of phone numbers without one, such as `82`: `+82 10-…` and `010-…` are then the same phone number. Numbers that are stored stay as they are, so set it before the first member.";
    "members.password_length_min" = "8" "Minimum length of a new password, at most 64; stored passwords and imported digests stay valid.";
    "members.password_memory_kib" = "19456" "Memory that the digest of a new password takes (argon2id), in KiB.";
    "members.password_passes" = "2" "How often the digest of a new password passes over that memory.";
    "members.passwords_at_once" = "auto" "Concurrent password digests of sign-ins, and as many of passwords that API keys set; `auto` is half of the machine's processors.";
    "members.passwords_waiting_max" = "500" "Waiting password digests of each of the two kinds; above it, 503.";
    "members.cache_entries" = "auto" "Phone numbers, and members, that are kept in memory. `auto`: up to 200000.";
    "members.cache_policy" = "s3-fifo" "Eviction policy of the cache: `s3-fifo` evicts entries that were read once before those that are read often; `lru` evicts the least recently used.";
    "members.cache_time" = "12h" "How long each is kept.";
    "members.cache_shared_time" = "1s" "The same if other servers write to the same store: their changes of names, numbers and passwords appear within this time.";
    "auth.token_ttl" = "1h" "How long a member is signed in.";
    "pin.attempts" = "5" "Wrong PINs in a row before the PIN is locked, at most 20.";
    "pin.lock" = "15m" "How long it is locked for the first time; each lock after it is twice as long, up to a day, until the right PIN comes.";
    "contests.members_max" = "100000" "Members of a contest.";
    "contests.paying_members_max" = "10000" "Members of a contest with an entry fee.";
    "contests.applications_max" = "1000000" "Applications that a contest has at a time.";
    "contests.keep" = "forever" "How long leaderboards of settled or cancelled contests stay, such as `720h`, or `forever`: until they are deleted by hand.";
    "archive.dir" = "" "Folder of the archives of the ledger; empty: `archive` beside a store in a file. All servers of a database must see the same folder, and without it nothing is archived.";
    "archive.keep" = "off" "How many past months of the ledger stay in tables, or `off`: older ones are archived only by `tally archive`.";
    "webhooks.private" = "false" "Whether webhooks may have private addresses, this machine among them, and `http://`.";
    "webhooks.ca_file" = "" "PEM file of the authorities that sign certificates of webhooks; empty: those of browsers.";
    "webhooks.retry" = "72h" "How long an event is sent again to a webhook that does not take it; then the webhook is disabled.";
    "limits.boards" = "10000" "Leaderboards.";
    "limits.keys" = "1000" "API keys.";
    "log.format" = "text" "`text` or `json`, on stderr.";
    "log.audit_file" = "" "File to which security events are appended as JSON, a line each, beside the log; SIGHUP opens it again. Empty: the log only.";
    "log.level" = "info" "error, warn, info, debug or trace; SIGHUP reads it again.";
}

/// Minor digits of a currency. The names below end with a currency code, so they are in no table.
pub(crate) const CURRENCIES: &str = "currencies.";
/// The highest amount of one transfer in a currency.
pub(crate) const TRANSFER_MAX_OF: &str = "wallet.transfer_max_";
/// The highest sum of transfers in a currency on one day.
pub(crate) const DAY_MAX_OF: &str = "wallet.day_max_";
/// The largest balance of a member in a currency.
pub(crate) const BALANCE_MAX_OF: &str = "wallet.balance_max_";
/// Whether members transfer a currency to each other.
pub(crate) const TRANSFERS_OF: &str = "wallet.transfers_";
/// Whether a currency is withdrawn.
pub(crate) const WITHDRAWALS_OF: &str = "wallet.withdrawals_";
/// All of them.
pub(crate) const BY_CURRENCY: [&str; 6] =
    [CURRENCIES, TRANSFER_MAX_OF, DAY_MAX_OF, BALANCE_MAX_OF, TRANSFERS_OF, WITHDRAWALS_OF];

/// The text of that section in the reference.
pub(crate) const CURRENCIES_REFERENCE: &str = "
[currencies]
# Currencies beside `wallet.currency`, each with its minor digits (0 to 8); that one may be here too.
# The digits say where people put the point. Amounts are in the smallest unit, so changing them changes no amount.
# Environment: TALLY_CURRENCIES_USD
# USD = 2
";
