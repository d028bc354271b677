//! `tally serve`: listen, load, serve, drain. `reload`: all of it again but to listen, after the database has lost commits.

mod follow;
mod hangup;
mod in_use;
mod listen;
mod load;
mod open;
mod progress;
mod reload;
mod service;

use crate::cli::{Cli, ServeArgs};
use crate::config::{Config, Usage};
use crate::data_dir::{DataDir, new_token};
use crate::doctor::{RepeatedChecks, files};
use crate::store::{self, Opened, Opening, StoreAddress, StoreLoss};
use crate::{descriptors, limit_settings, log};
use anyhow::{Context, Error, Result, bail};
pub(crate) use listen::{Listen, UNIX};
use open::LogOnce;
use progress::{announce_demo, announce_ready, show_progress};
use reload::Reason;
use service::{announce_memory, settings};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tally_ranking::RedisApplications;
use tally_server::limits::OPERATOR_CONNECTIONS;
use tally_server::resp::{self, RespServer};
use tally_server::{HttpServer, KeysRequired, Machine, OperatorServer, Readiness, Security, Tls};
use tally_service::follow::Handover;
use tally_service::{Progress, RankingBackend};
use tally_store::sqlite;
use tally_traces::Traces;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Time that traces get at shutdown even if requests have used up all of it.
const TRACES_DRAIN_MIN: Duration = Duration::from_secs(1);

/// A server that has begun to listen.
pub(crate) struct Server {
    gate: Arc<Readiness>,
    /// The address for local commands.
    found: String,
    /// The address for other servers of the store.
    advertised: String,
    /// What the next load takes over.
    handover: Mutex<Option<Handover>>,
    http: Option<HttpServer>,
    /// A listener only for local commands, if they can use no other.
    local: Option<HttpServer>,
    resp: Option<RespServer>,
    admin: Option<OperatorServer>,
    /// Why limits of connections were lowered.
    warning: Option<String>,
    store: Opened,
    ranking: RankingBackend,
    applications: Option<RedisApplications>,
    data: DataDir,
    runtime: Runtime,
    signals: Option<(Signal, Signal)>,
}

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &ServeArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let config = Config::load(cli)?;
    log::start(&config)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), process = std::process::id(), "starting");
    announce_memory(&config)?;
    let mut server = Server::listen(&config, &Listen::settings(&config)?, (true, args.demo))?;
    let (mut terminate, mut interrupt) = server.signals.take().context("hear signals")?;
    let demo = args.demo;
    let early = server.runtime.block_on(async {
        let mut log = LogOnce::default();
        loop {
            if let Some(how) = server.store.leaderless.get() {
                return Ok(Some(End::StoreLost(StoreLoss::Leaderless(how.clone()))));
            }
            let load = server.load(&config, demo, true)?;
            let mut load = std::pin::pin!(load);
            let loaded = tokio::select! {
                _ = terminate.recv() => return Ok(Some(End::Early)),
                _ = interrupt.recv() => return Ok(Some(End::Early)),
                loaded = &mut load => loaded.context("load")?,
                loss = server.store.loss() => return Ok(Some(End::StoreLost(loss))),
                never = show_progress(&server.gate) => match never {},
            };
            match loaded {
                Err(_) if server.store.leaderless.get().is_some() => continue,
                // A file that cannot be read now is no machine that comes back.
                Err(error) if !server.store.databases.is_empty() && open::is_away(&error) => {
                    log.warn("load", &error);
                }
                done => break done?,
            }
            tokio::time::sleep(open::PAUSE).await;
        }
        if !demo {
            server.announce_protected_mode();
        }
        announce_ready(&server, started);
        if demo {
            announce_demo(&server, &config, cli.config.as_deref())?;
        }
        Ok::<_, anyhow::Error>(None)
    })?;
    let mut signals = (terminate, interrupt);
    let end = match early {
        Some(End::StoreLost(StoreLoss::Leaderless(how))) => {
            match server.reload(&config, Reason::Leaderless(how), &mut signals)? {
                Some(end) => end,
                None => server.serve(&config, &mut signals)?,
            }
        }
        // No change was acknowledged, so this process has lost none.
        Some(End::StoreLost(StoreLoss::Lost(lost))) => bail!("{lost}"),
        Some(end) => end,
        None => server.serve(&config, &mut signals)?,
    };
    match end {
        End::Early => {
            // No change was acknowledged and loading only reads: there is nothing to drain.
            server.store.release();
            server.retract();
            tracing::info!("stopped before it was ready");
            log::exit(0);
        }
        End::Signal => {
            server.leave(&mut signals);
            if let Some(tally) = server.gate.loaded() {
                follow::hand_over(&tally, &server.store);
            }
            tracing::info!("draining");
            server.stop();
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        End::StoreLost(StoreLoss::Lost(lost)) => bail!("{lost}"),
        End::StoreLost(StoreLoss::Leaderless(how)) => bail!("{}", how.why),
        End::StoreLost(StoreLoss::Taken(holder)) => {
            tracing::error!("another server has taken the store over: {holder}");
            server.gate.drain();
            server.retract();
            // Waiting requests get no response: their changes were rejected, or done before.
            log::exit(1);
        }
    }
}

/// Why a server ends.
enum End {
    /// It was stopped before it was ready.
    Early,
    /// It was stopped.
    Signal,
    /// It cannot go on with its store.
    StoreLost(StoreLoss),
}

/// What a scrape reads of the machine.
fn machine(data: &DataDir, place: &StoreAddress, tls: Option<Tls>) -> Machine {
    let (folder, backup, followed) = match place {
        StoreAddress::Sqlite(store) => (
            store.parent().unwrap_or(data.path()),
            Some(data.backup_path()),
            Some(sqlite::followed_marker(store)),
        ),
        _ => (data.path(), None, None),
    };
    Machine { data: folder.to_owned(), backup, followed, tls }
}

/// Starts the listener of the Redis protocol.
fn start_resp(
    gate: &Arc<Readiness>,
    runtime: &Runtime,
    (at, settings): &(tally_server::Listen, resp::RespSettings),
) -> Result<RespServer> {
    let start = tally_server::resp::start(Arc::clone(gate), at, settings.clone());
    let started = runtime.block_on(start).map_err(|why| in_use::explain(why, at, "resp"));
    started.context("the Redis protocol (`--resp off` does without)")
}

impl Server {
    /// Opens the listeners and the store; only health checks are answered yet. With `signals` it handles signals before its
    /// address is announced, so that none is missed.
    pub(crate) fn listen(config: &Config, listen: &Listen, (signals, demo): (bool, bool)) -> Result<Self> {
        let data = DataDir::open(config)?;
        let (mut limits, token) = (limit_settings::limits(config, demo)?, new_token()?);
        let mut resp = listen.resp.clone();
        settings(config)?;
        let place = data.place(config)?;
        let mut warning = None;
        if signals {
            let mut all = vec![&mut limits.connections];
            all.extend(resp.as_mut().map(|(_, settings)| &mut settings.connections));
            let admin =
                listen.admin.as_ref().map_or(0, |_| OPERATOR_CONNECTIONS.all + OPERATOR_CONNECTIONS.waiting);
            let databases = place.databases() * config.count("store.pool_max")? + admin;
            warning = descriptors::fit(descriptors::raise(), databases, &mut all).map_err(Error::msg)?;
            warning.iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        let (ranking, applications) = (place.ranking(config)?, store::applications(config)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name(resp::CONNECTION_THREADS)
            .build()
            .context("start the threads for connections")?;
        let progress = Arc::new(Progress::default());
        let traces = listen.traces.as_ref().map(|traces| Traces::start(traces, runtime.handle()));
        let traces = traces.transpose();
        let traces = traces.map_err(|why| Usage(format!("setting `traces.url` {why}")))?;
        let audit = Some(config.text("log.audit_file")).filter(|path| signals && !path.is_empty());
        let security = Security::start(audit.map(Into::into)).context("open `log.audit_file`")?;
        let gate = Readiness::new(progress, limits, traces, security, token.clone(), config.to_json());
        if signals {
            // It is set once.
            drop(gate.machine.set(machine(&data, &place, listen.tls.clone())));
            // The store may have to be waited for; health checks and renewals of files work meanwhile.
            hangup::listen(&runtime, config.clone(), listen.tls.clone(), Arc::clone(&gate))?;
        }
        gate.progress.wait(Some("store"));
        let admin = listen.admin.as_ref().map(|at| {
            tally_server::start_for_operators(Arc::clone(&gate), at, listen.tls.clone())
                .map_err(|why| in_use::explain(why, &tally_server::Listen::tcp(at), "admin"))
                .context("the listener of operators")
        });
        let admin = admin.transpose()?;
        let http = runtime.block_on(tally_server::start(Arc::clone(&gate), &listen.http, listen.tls.clone()));
        let address = http.as_ref().ok().and_then(|http| http.address);
        let advertised = if http.is_ok() { follow::advertised(config, address)? } else { String::new() };
        // An error of the store names its holder, so it comes before that of the address. Without one its wait is invisible.
        let may_wait =
            |error: &Error| signals && http.is_ok() && place.databases() > 0 && open::is_away(error);
        let store = open::open("open the store", (config, &data, Opening::AsItIs), may_wait)?;
        gate.progress.wait(None);
        // While it waits for the store the default action of these signals applies: there is nothing to drain.
        let hear = || {
            let _within = runtime.enter();
            Ok::<_, std::io::Error>((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
        };
        let signals = signals.then(hear).transpose().context("hear signals")?;
        let http = http.map_err(|why| in_use::explain(why, &listen.http, "http")).context("HTTP")?;
        let (found, local) = runtime.block_on(listen::for_commands(&gate, &http, listen.tls.is_some()))?;
        let resp = resp.as_ref().map(|resp| start_resp(&gate, &runtime, resp)).transpose()?;
        store.announce(&found)?;
        let resp_place = resp.as_ref().and_then(|resp| listen::place(resp.address, resp.file.as_ref()));
        files::log(&data, &place);
        data.announce(&found, resp_place.as_deref(), &token)?;
        let http = Some(http);
        Ok(Self {
            gate,
            found,
            advertised,
            handover: Mutex::default(),
            http,
            local,
            resp,
            admin,
            warning,
            store,
            ranking,
            applications,
            data,
            runtime,
            signals,
        })
    }

    /// Its TCP address, if it has one.
    pub(crate) fn address(&self) -> Option<std::net::SocketAddr> {
        self.http.as_ref().and_then(|http| http.address)
    }

    /// The TCP address of the Redis protocol, if it has one.
    pub(crate) fn resp_address(&self) -> Option<std::net::SocketAddr> {
        self.resp.as_ref().and_then(|resp| resp.address)
    }

    /// Says how the first key is made. Warns if the loopback interface needs no credential. A proxy on this machine may leave
    /// no sign in a request, and then each of its clients is an admin.
    fn announce_protected_mode(&self) {
        if !self.gate.keys().is_some_and(|keys| keys.protected_mode()) {
            return;
        }
        let mut addresses = [self.address(), self.resp_address()].into_iter().flatten();
        if self.gate.limits.keys_required != KeysRequired::Never {
            tracing::info!("requests need an API key: `tally keys create --role admin` makes the first one");
        } else if addresses.any(|at| at.ip().is_loopback()) {
            tracing::warn!(
                "no API key exists: each account of this machine is an admin, and so is each client of a proxy on it; \
                 `tally keys create --role admin` makes the first key"
            );
        }
    }

    /// Removes the announced addresses, for a process that ends without draining.
    fn retract(&mut self) {
        drop((self.http.take(), self.resp.take()));
        self.data.retract();
    }

    /// Serves until its end, and reloads the store after lost commits, or when the leader has gone.
    fn serve(&mut self, config: &Config, signals: &mut (Signal, Signal)) -> Result<End> {
        loop {
            let checks = self.repeated_checks(config);
            let end = self.runtime.block_on(async {
                tokio::select! {
                    _ = signals.0.recv() => End::Signal,
                    _ = signals.1.recv() => End::Signal,
                    never = checks.watch(&self.gate) => match never {},
                    loss = self.store.loss() => End::StoreLost(loss),
                }
            });
            let why = match end {
                End::StoreLost(StoreLoss::Lost(lost)) => Reason::Lost(lost),
                End::StoreLost(StoreLoss::Leaderless(how)) => Reason::Leaderless(how),
                end => return Ok(end),
            };
            if let Some(end) = self.reload(config, why, signals)? {
                return Ok(end);
            }
        }
    }

    /// The components for the repeated checks.
    fn repeated_checks(&self, config: &Config) -> RepeatedChecks {
        let (databases, applications) = (self.store.databases.clone(), self.applications.clone());
        let (ranking, warning) = (self.ranking.clone(), self.warning.clone());
        RepeatedChecks { config: config.clone(), databases, ranking, applications, warning }
    }

    /// Tells balancers that it will stop, and serves on for `http.drain_delay`. A further signal ends the wait.
    fn leave(&self, signals: &mut (Signal, Signal)) {
        let delay = self.gate.limits.drain_delay;
        if delay.is_zero() {
            return;
        }
        tracing::info!(seconds = delay.as_secs_f64(), "leaving: not ready for balancers, and still serving");
        self.gate.leave();
        self.runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                _ = signals.0.recv() => {}
                _ = signals.1.recv() => {}
            }
        });
    }

    /// Drains: it takes no new work, makes everything acknowledged durable and flushed, and ends.
    pub(crate) fn stop(mut self) {
        let started = Instant::now();
        self.gate.drain();
        let (http, local, resp) = (self.http.take(), self.local.take(), self.resp.take());
        self.runtime.block_on(async {
            let http = async {
                for http in http.into_iter().chain(local) {
                    http.stop().await;
                }
            };
            let resp = async {
                if let Some(resp) = resp {
                    resp.stop().await;
                }
            };
            tokio::join!(http, resp);
        });
        // It tells of the drain while the others end.
        self.admin.take().into_iter().for_each(OperatorServer::stop);
        if let Some(tally) = self.gate.loaded() {
            tally.drain();
        }
        if let Some(traces) = &self.gate.traces {
            // Requests may have taken all of the time; their traces get a moment.
            let left = self.gate.limits.drain_timeout.saturating_sub(started.elapsed());
            self.runtime.block_on(traces.stop(left.max(TRACES_DRAIN_MIN)));
        }
        if let Err(error) = self.store.store.checkpoint() {
            // Nothing is lost: the journal beside the store has it.
            tracing::warn!(%error, "flush the journal: the next start flushes it");
        }
        self.data.retract();
    }
}
