//! One Redis server: a shared connection, which is opened again when it breaks.
//!
//! Requests of many callers share one connection, so they are pipelined. Every new connection first queries which
//! process it has reached (`run_id`), and every script gets that id. Data that another process wrote, and this one has
//! from a file or from its master, may lack the last changes, so it counts as lost. That is why the connection does not
//! reconnect by itself. After a failure there is a pause of at most a second. All requests in it fail at once, instead
//! of waiting for the same timeout.

use super::RankingError;
use super::address::Address;
use super::claim::Ownership;
use super::client::Request;
use super::script::Script;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, ServerErrorKind, Value, cmd, pipe,
};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Bytes of a `run_id`; the scripts rely on it.
const RUN_BYTES: usize = 40;

/// Connection settings of all nodes.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) address: Address,
    /// The TLS client, if the address requires TLS.
    pub(super) tls: Option<tally_tls::Client>,
    pub(super) connect: Duration,
    pub(super) response: Duration,
    /// Whose rankings they are, once that is known.
    pub(super) ownership: Ownership,
}

#[derive(Debug)]
pub(super) struct Node {
    host: String,
    port: u16,
    reach: Arc<Reach>,
    live: RwLock<Option<Arc<Live>>>,
    /// Locked while a connection is opened.
    pause: Mutex<Pause>,
}

/// The backoff state, with the last failure.
#[derive(Debug, Default)]
struct Pause {
    until: Option<Instant>,
    wait: Duration,
    why: String,
}

/// A connection without a known failure.
#[derive(Debug)]
pub(super) struct Live {
    connection: MultiplexedConnection,
    run: String,
    reach: Arc<Reach>,
    digests: Vec<String>,
}

impl Node {
    pub(super) fn new(host: &str, port: u16, reach: &Arc<Reach>) -> Self {
        let (live, pause) = (RwLock::default(), Mutex::default());
        Self { host: host.to_owned(), port, reach: Arc::clone(reach), live, pause }
    }

    pub(super) fn is(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Host and port, for messages.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The connection, opened if there is none.
    pub(super) async fn live(&self) -> Result<Arc<Live>, RankingError> {
        if let Some(live) = self.present() {
            return Ok(live);
        }
        let mut pause = self.pause.lock().await;
        if let Some(live) = self.present() {
            return Ok(live);
        }
        if pause.until.is_some_and(|until| Instant::now() < until) {
            return Err(self.unavailable(&pause.why));
        }
        let connected = match timeout(self.reach.connect, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(NodeFailure::Unavailable("it does not answer".into())),
        };
        match connected {
            Ok(live) => {
                let live = Arc::new(live);
                *pause = Pause::default();
                *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&live));
                Ok(live)
            }
            Err(failure) => {
                pause.fail(&failure.to_string());
                Err(self.error(failure))
            }
        }
    }

    /// Drops a failed connection.
    pub(super) async fn fail(&self, failed: &Arc<Live>, why: &str) {
        {
            let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
            if !live.as_ref().is_some_and(|live| Arc::ptr_eq(live, failed)) {
                return;
            }
            *live = None;
        }
        let mut pause = self.pause.lock().await;
        pause.why = why.to_owned();
    }

    /// Like [`Self::fail`], with a pause before the next attempt.
    pub(super) async fn rest(&self, failed: &Arc<Live>, why: &str) {
        self.fail(failed, why).await;
        self.pause.lock().await.fail(why);
    }

    /// The failure as callers distinguish it.
    pub(super) fn error(&self, failure: NodeFailure) -> RankingError {
        match failure {
            NodeFailure::Refused(why) => RankingError::Refused(why),
            NodeFailure::Untrusted(why) => RankingError::Untrusted(format!("{}: {why}", self.name())),
            failure => self.unavailable(&failure.to_string()),
        }
    }

    pub(super) fn unavailable(&self, why: &str) -> RankingError {
        RankingError::Unavailable(format!("{}: {why}", self.name()))
    }

    /// The connection, if there is one.
    pub(super) fn present(&self) -> Option<Arc<Live>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn connect(&self) -> Result<Live, NodeFailure> {
        let mut connection = self.open().await?;
        let info: String = cmd("INFO").arg("server").query_async(&mut connection).await?;
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        let run = run.filter(|run| run.len() == RUN_BYTES);
        let run = run.ok_or_else(|| NodeFailure::Refused("INFO without a run_id".into()))?.to_owned();
        let digests = load_scripts(&mut connection).await?;
        Ok(Live { connection, run, reach: Arc::clone(&self.reach), digests })
    }

    /// A connection after the login, without anything of ours on the server.
    pub(super) async fn open(&self) -> Result<MultiplexedConnection, NodeFailure> {
        let address = &self.reach.address;
        let mut login = RedisConnectionInfo::default().set_db(address.db);
        login = login.set_lib_name("tally", env!("CARGO_PKG_VERSION"));
        if let Some(user) = &address.user {
            login = login.set_username(user);
        }
        if let Some(password) = &address.password {
            login = login.set_password(password);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.reach.connect))
            .set_response_timeout(Some(self.reach.response));
        match &self.reach.tls {
            None => {
                let info = ConnectionAddr::Tcp(self.host.clone(), self.port).into_connection_info()?;
                let client = Client::open(info.set_redis_settings(login))?;
                Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            Some(tls) => self.connect_encrypted(tls, &login, config).await,
        }
    }
}

impl Node {
    /// The crate's own TLS is not used: it takes the authorities of the system, and its errors have no kinds.
    async fn connect_encrypted(
        &self,
        tls: &tally_tls::Client,
        login: &RedisConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, NodeFailure> {
        let lost = |error: std::io::Error| NodeFailure::Broken(error.to_string());
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(lost)?;
        tcp.set_nodelay(true).map_err(lost)?;
        let Ok(shaken) = timeout(self.reach.connect / 2, tls.handshake(&self.host, tcp)).await else {
            return Err(if self.is_plain().await.unwrap_or(false) {
                NodeFailure::Untrusted("it does not speak TLS on this port, but answers in plain".into())
            } else {
                NodeFailure::Unavailable("it does not answer the TLS handshake".into())
            });
        };
        let stream = shaken.map_err(|failure| match failure {
            tally_tls::Failure::Lost(error) => lost(error),
            tally_tls::Failure::Untrusted(why) => NodeFailure::Untrusted(why),
        })?;
        // A server reports errors of our certificate with its first answer.
        let connected = MultiplexedConnection::new_with_config(login, stream, config).await;
        let (connection, driver) = connected
            .map_err(|error| tls.explain(&error).map_or_else(|| error.into(), NodeFailure::Untrusted))?;
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Whether the server answers without TLS. A Redis without TLS does not answer a handshake, because it waits for
    /// the end of a line. A frozen one does not answer either, but only the first is a mistake that waiting cannot
    /// repair. This sends nothing secret.
    async fn is_plain(&self) -> std::io::Result<bool> {
        let mut tcp = TcpStream::connect((self.host.as_str(), self.port)).await?;
        tcp.write_all(b"PING\r\n").await?;
        Ok(matches!(tcp.read_u8().await?, b'+' | b'-'))
    }
}

impl Pause {
    fn fail(&mut self, why: &str) {
        self.wait = (self.wait * 2).clamp(WAIT_MIN, WAIT_MAX);
        self.until = Some(Instant::now() + self.wait);
        why.clone_into(&mut self.why);
    }
}

impl Live {
    /// Runs a script on keys of one slot.
    pub(super) async fn run(&self, request: &Request) -> Result<Value, NodeFailure> {
        self.call(&self.command(request)).await
    }

    /// Runs several scripts in one message. Each fails alone.
    pub(super) async fn run_all(
        &self,
        requests: impl Iterator<Item = &Request>,
    ) -> Result<Vec<Result<Value, NodeFailure>>, NodeFailure> {
        let mut all = pipe();
        for request in requests {
            all.add_command(self.command(request));
        }
        let values = self.connection.clone().send_packed_commands(&all, 0, all.len()).await?;
        Ok(values.into_iter().map(|value| Ok(value.extract_error()?)).collect())
    }

    fn command(&self, request: &Request) -> redis::Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&self.digests[request.script as usize]).arg(request.keys.len()).arg(&request.keys);
        match self.reach.ownership.stamp() {
            Some(stamp) => command.arg(format!("{}{stamp}", self.run)),
            None => command.arg(&self.run),
        };
        for arg in &request.args {
            command.arg(arg.as_slice());
        }
        command
    }

    /// The process that it has reached.
    pub(super) fn process(&self) -> &str {
        &self.run
    }

    /// Runs a command.
    pub(super) async fn call(&self, command: &redis::Cmd) -> Result<Value, NodeFailure> {
        Ok(command.query_async(&mut self.connection.clone()).await?)
    }

    /// Loads the scripts again after a `SCRIPT FLUSH`.
    pub(super) async fn load_scripts(&self) -> Result<(), NodeFailure> {
        load_scripts(&mut self.connection.clone()).await?;
        Ok(())
    }
}

async fn load_scripts(connection: &mut MultiplexedConnection) -> Result<Vec<String>, RedisError> {
    let mut loads = pipe();
    for script in Script::ALL {
        loads.cmd("SCRIPT").arg("LOAD").arg(script.text());
    }
    loads.query_async(connection).await
}

/// A failure, by what to do about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum NodeFailure {
    /// Load the scripts, then retry.
    #[error("the scripts are gone")]
    Scripts,
    /// Query the slots, then retry. The new owner is given as a host and a port.
    #[error("the slot has moved to {0}")]
    Moved(String),
    /// The node is not the master any more, or knows none: query the slots, and let the caller retry later.
    #[error("{0}")]
    Demoted(String),
    /// The connection was probably closed before it was used: retry on a new one.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The node does not answer, or not now.
    #[error("{0}")]
    Unavailable(String),
    /// The slot is moving to another node; other slots of the node are available.
    #[error("{0}")]
    Moving(String),
    /// The node refused.
    #[error("{0}")]
    Refused(String),
    /// The node is not authenticated.
    #[error("{0}")]
    Untrusted(String),
}

impl From<RedisError> for NodeFailure {
    fn from(error: RedisError) -> Self {
        use ServerErrorKind as Kind;
        match error.kind() {
            ErrorKind::Server(Kind::NoScript) => Self::Scripts,
            ErrorKind::Server(Kind::Moved) => {
                Self::Moved(error.redirect_node().map_or_else(String::new, |(node, _)| node.to_owned()))
            }
            ErrorKind::Server(Kind::ReadOnly | Kind::ClusterDown | Kind::MasterDown) => {
                Self::Demoted(error.to_string())
            }
            ErrorKind::Server(Kind::TryAgain | Kind::Ask) => Self::Moving(error.to_string()),
            ErrorKind::Server(Kind::BusyLoading) => Self::Unavailable(error.to_string()),
            ErrorKind::Io if error.is_timeout() => Self::Unavailable("it did not answer in time".into()),
            ErrorKind::Io => Self::Broken(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}
