//! The state of a connection, and its caller.
//!
//! A credential is checked when it is presented, and again whenever bytes arrive. So revoking a key ends its use, and
//! creating the first key ends protected mode.

use super::args::{Args, Log};
use super::budget::WorkBudget;
use super::counts::{Class, PipelineCounts, ReplyCounts};
use super::error::{self, ErrorReply};
use super::listen::RespListener;
use super::run::REPLIES_BYTES_MAX;
use super::spec::{self, CommandKind, Spec};
use super::target::{self, ReadContext};
use crate::listener::PeerAddress;
use crate::readiness::{Readiness, Serving};
use crate::security::SecurityEvent;
use crate::trust::Trust;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tally_service::follow::Position;
use tally_service::scores::rankings::Rankings;
use tally_service::{Caller, Keys, Tally};
use tally_wire::resp::{Encoder, Protocol, Quota};
use tokio::sync::Notify;

/// The maximum number of attempts to read a closed period whose archive is rewritten.
pub(super) const READ_ATTEMPTS: usize = 5;

/// The maximum bytes of the queue of a transaction.
const MULTI_BYTES_MAX: usize = 64 << 20;

/// The part of a connection that other connections see.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) peer: PeerAddress,
    pub(super) since: Instant,
    pub(super) names: Mutex<Names>,
    /// Milliseconds after `since` when bytes last arrived.
    pub(super) heard: AtomicU64,
    /// The counted bytes of its buffers.
    pub(super) held: AtomicUsize,
    /// Whether it must close: checked before its buffers grow.
    pub(super) doomed: AtomicBool,
    /// Notified when it must close: the buffers of an idle client do not grow.
    pub(super) closing: Notify,
}

/// The names that a client gives itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) name: String,
    pub(super) lib_name: String,
    pub(super) lib_version: String,
    pub(super) resp: u8,
}

/// A transaction between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Multi {
    pub(super) queue: Log,
    pub(super) aborted: bool,
}

pub(super) struct Session {
    pub(super) listener: Arc<RespListener>,
    pub(super) client: Arc<Client>,
    trust: Trust,
    pub(super) protocol: Protocol,
    pub(super) relaxed: bool,
    pub(super) multi: Option<Multi>,
    /// The replies of the current pipeline.
    pub(super) pipeline_counts: PipelineCounts,
    /// The work of the connection on its thread.
    pub(super) budget: WorkBudget,
    /// The replies of all connections of this thread.
    counts: Arc<ReplyCounts>,
    /// The caller of the presented key.
    presented: Option<Caller>,
    /// The current caller.
    caller: Option<Caller>,
    /// Whether the caller was checked: keys are loaded some moments after the listener opens.
    keys_loaded: bool,
    /// The service, while commands run.
    pub(super) serving: Option<Arc<Serving>>,
    /// The last state of the leader that this connection has seen.
    pub(super) seen: Option<Position>,
}

/// What the connection must do with a command.
pub(super) enum NextAction {
    /// Nothing: it was answered or collected.
    Done,
    /// Run it alone, after the commands before it, see [`CommandKind`].
    Alone(&'static Spec),
}

impl Session {
    pub(super) fn new(listener: Arc<RespListener>, client: Arc<Client>, counts: Arc<ReplyCounts>) -> Self {
        let trust = Trust::of(&listener.readiness, client.peer, listener.address);
        let mut new = Self::of((listener, client, counts), trust, None);
        new.reauthenticate();
        new
    }

    /// One without a connection, for commands that another server has forwarded: of a key, or of the machine of that server.
    pub(super) fn forwarded(readiness: &Arc<Readiness>, client: IpAddr, key: Option<&str>) -> Self {
        let listener = Arc::new(RespListener::without_connections(Arc::clone(readiness)));
        let client = listener.welcome(PeerAddress::Tcp(SocketAddr::new(client, 0)));
        let trust = if key.is_none() { Trust::Direct } else { Trust::Foreign };
        let presented = key.and_then(|key| readiness.keys()?.caller(key));
        Self::of((listener, client, Arc::default()), trust, presented)
    }

    fn of(
        (listener, client, counts): (Arc<RespListener>, Arc<Client>, Arc<ReplyCounts>),
        trust: Trust,
        presented: Option<Caller>,
    ) -> Self {
        let relaxed = listener.settings.relaxed;
        let protocol = Protocol::Resp2;
        let (caller, serving, seen) = (None, None, None);
        let (multi, pipeline_counts, keys_loaded) = (None, PipelineCounts::default(), false);
        Self {
            listener,
            client,
            trust,
            protocol,
            relaxed,
            multi,
            pipeline_counts,
            budget: WorkBudget::default(),
            counts,
            presented,
            caller,
            keys_loaded,
            serving,
            seen,
        }
    }

    /// Whether the connection is refused, because no key exists and protected mode serves only this machine.
    pub(super) fn denied(&self) -> bool {
        self.trust != Trust::Direct
            && self.listener.readiness.keys().is_some_and(|keys| keys.protected_mode())
    }

    /// The caller, if it is authenticated.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// Resets the connection to its initial state.
    pub(super) fn reset(&mut self) {
        self.protocol = Protocol::Resp2;
        self.relaxed = self.listener.settings.relaxed;
        self.multi = None;
        self.presented = None;
        self.names().name.clear();
        self.reauthenticate();
    }

    /// Authenticates by a key. Fails if the key is invalid.
    pub(super) fn authenticate(&mut self, user: Option<&[u8]>, password: &[u8]) -> error::Result {
        let Some(keys) = self.listener.readiness.keys() else { return Err(error::LOADING.into()) };
        let known = user.is_none_or(|user| user == b"default");
        let token = std::str::from_utf8(password).ok().filter(|_| known);
        let caller = token.and_then(|token| keys.authenticate(token));
        let Some(caller) = caller else {
            self.refused("AUTH", token);
            return Err(error::WRONG_PASS.into());
        };
        self.presented = Some(caller.clone());
        self.caller = Some(caller);
        Ok(())
    }

    /// Records a refused credential, or a refused connection without one.
    pub(super) fn refused(&self, subject: &str, token: Option<&str>) {
        let id = token.and_then(tally_service::keys::claimed_id);
        let actor = id.map_or_else(|| "no key".to_owned(), |id| format!("claims key {id}"));
        let address = self.client.peer.ip();
        let event =
            SecurityEvent { name: "credential_refused", actor: &actor, address, request: "", subject };
        self.listener.readiness.security_event(&event, true);
    }

    /// Determines the caller again.
    pub(super) fn reauthenticate(&mut self) {
        let keys = self.listener.readiness.keys();
        self.authenticate_by(keys.as_deref());
    }

    fn authenticate_by(&mut self, keys: Option<&Keys>) {
        let Some(keys) = keys else { return };
        self.keys_loaded = true;
        self.caller = match &self.presented {
            Some(caller) if keys.is_live(caller) => self.presented.clone(),
            Some(_) => None,
            None if self.trust == Trust::Direct && keys.protected_mode() => Some(Caller::local()),
            None => None,
        };
    }

    /// Whether it has no caller: a key is needed and none was presented, or keys are not loaded yet.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.caller.is_none()
    }

    /// The caller, or the error for an unauthenticated one. While keys load, every caller gets an error.
    pub(super) fn require_caller(&self) -> Result<&Caller, &'static str> {
        self.caller.as_ref().ok_or(if self.keys_loaded { error::NO_AUTH } else { error::LOADING })
    }

    /// Gets the service for all commands that have arrived: getting it for each of them costs more than some of them.
    pub(super) fn begin(&mut self) {
        let serving = self.listener.readiness.serving();
        self.authenticate_by(serving.keys.as_deref());
        self.serving = Some(serving);
    }

    /// Releases the service: a reload may replace it while the connection waits.
    pub(super) fn end(&mut self) {
        self.serving = None;
    }

    /// The service, if it can answer.
    pub(super) fn tally(&self) -> error::Result<&Arc<Tally>> {
        let tally = self.serving.as_ref().and_then(|serving| serving.tally.as_ref());
        self.listener.readiness.check(tally).map_err(|not_ready| match not_ready {
            crate::readiness::NotReady::Loading(_) => error::LOADING.into(),
            crate::readiness::NotReady::Lost(_) => error::LOST.into(),
            crate::readiness::NotReady::Behind(_) => error::BEHIND.into(),
            crate::readiness::NotReady::Unsure => error::UNSURE.into(),
            crate::readiness::NotReady::Draining => error::DRAINING.into(),
        })
    }

    pub(super) fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.client.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command, if it exists and the caller may run it now.
    pub(super) fn check(&self, args: Args<'_>) -> error::Result<&'static Spec> {
        let Some(spec) = spec::find(args.get(0)) else { return Err(unknown(args)) };
        spec.check(args)?;
        if let Some(permission) = spec.permission {
            let caller = self.require_caller()?;
            if !caller.may(permission) {
                return Err(error::no_permission(spec.name));
            }
        }
        if !spec.loading && !self.may_wait_for_leader(spec) {
            self.tally()?;
        }
        Ok(spec)
    }

    /// Answers a command, collects it in `log`, or returns that it runs alone.
    pub(super) fn take(&mut self, args: Args<'_>, log: &mut Log, out: &mut Vec<u8>) -> NextAction {
        let start = out.len();
        let spec = match self.check(args) {
            Ok(spec) => spec,
            Err(error) if self.multi.is_none() && !log.is_empty() => {
                drop(error);
                log.push(args);
                return NextAction::Done;
            }
            Err(error) if self.multi.is_some() && args.is(0, "exec") => {
                // The transaction ends all the same.
                self.multi = None;
                Encoder::new(out, self.protocol).error(error.as_bytes());
                self.pipeline_counts.answered(Class::Other, &out[start..]);
                return NextAction::Done;
            }
            Err(error) => {
                if let Some(multi) = &mut self.multi {
                    multi.aborted = true;
                }
                Encoder::new(out, self.protocol).error(error.as_bytes());
                self.pipeline_counts.answered(Class::of(spec::find(args.get(0))), &out[start..]);
                return NextAction::Done;
            }
        };
        if self.multi.is_some() {
            return self.queue(spec, args, out);
        }
        match spec.kind {
            CommandKind::Connection(_) | CommandKind::Remove(_) => return NextAction::Alone(spec),
            CommandKind::Write(_) => log.push(args),
            CommandKind::Now(_) | CommandKind::Read(_) if !log.is_empty() => log.push(args),
            CommandKind::Read(_) if self.is_behind() => log.push(args),
            CommandKind::Now(_) | CommandKind::Read(_)
                if self.answer(spec, args, out, &Quota::new(REPLIES_BYTES_MAX)) =>
            {
                self.pipeline_counts.answered(Class::of(Some(spec)), &out[start..]);
            }
            CommandKind::Now(_) | CommandKind::Read(_) => log.push(args),
        }
        NextAction::Done
    }

    /// Answers a command that needs no lane. Returns whether it could without waiting.
    pub(super) fn answer(&mut self, spec: &Spec, args: Args<'_>, out: &mut Vec<u8>, quota: &Quota) -> bool {
        let (protocol, left) = (self.protocol, quota.left());
        let answered = match spec.kind {
            CommandKind::Now(run) => target::answer(out, protocol, quota, |to| run(self, args, to)),
            CommandKind::Read(run) => match self.tally() {
                Ok(tally) => ReadContext { tally, rankings: &Rankings::FREE, protocol, serving: true }
                    .answer(run, args, out, quota),
                Err(error) => target::answer(out, protocol, quota, |_| Err(error.clone())),
            },
            CommandKind::Connection(_) | CommandKind::Write(_) | CommandKind::Remove(_) => {
                unreachable!("it changes something")
            }
        };
        self.budget.bytes(left.saturating_sub(quota.left()));
        answered
    }

    fn queue(&mut self, spec: &'static Spec, args: Args<'_>, out: &mut Vec<u8>) -> NextAction {
        use super::spec::ConnectionCommand::{Delete, Discard, Exec, Multi, Quit, Reset, Watch};
        let multi = self.multi.as_mut().expect("commands of MULTI are queued");
        let refused: ErrorReply = match spec.kind {
            CommandKind::Connection(Exec | Discard | Multi | Quit | Reset | Watch) => {
                return NextAction::Alone(spec);
            }
            CommandKind::Connection(command) if command != Delete => error::NOT_IN_MULTI.into(),
            _ if multi.queue.bytes() + args.bytes() > MULTI_BYTES_MAX => {
                "ERR the transaction is too large: 64 MiB are possible".into()
            }
            _ => {
                multi.queue.push(args);
                Encoder::new(out, self.protocol).simple("QUEUED");
                return NextAction::Done;
            }
        };
        multi.aborted = true;
        let start = out.len();
        Encoder::new(out, self.protocol).error(refused.as_bytes());
        self.pipeline_counts.answered(Class::of(Some(spec)), &out[start..]);
        NextAction::Done
    }

    /// Records that bytes arrived, and returns the time.
    pub(super) fn heard(&self) -> Instant {
        let now = Instant::now();
        let after = u64::try_from((now - self.client.since).as_millis()).unwrap_or(u64::MAX);
        self.client.heard.store(after, Ordering::Relaxed);
        now
    }

    /// Counts the replies to the pipeline that arrived then.
    pub(super) fn answered(&mut self, arrived: Instant) {
        self.pipeline_counts.end(&self.counts, arrived);
    }
}

/// In the form of Redis: the name and the first arguments, shortened.
fn unknown(args: Args<'_>) -> ErrorReply {
    const SHOWN_MAX: usize = 128;
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).into_owned();
    let mut shown = String::new();
    for arg in args.from(1) {
        if shown.len() >= SHOWN_MAX {
            break;
        }
        let room = SHOWN_MAX - shown.len();
        shown.push_str(&format!("'{}' ", text(&arg[..arg.len().min(room)])));
    }
    format!("ERR unknown command '{}', with args beginning with: {shown}", text(args.get(0))).into()
}
