//! What a connection remembers, and who it is.
//!
//! A credential is judged once, when it is presented, and again whenever bytes arrive: a key that was revoked ends its
//! use, and with the first key ends protected mode.

use super::args::{Args, Log};
use super::counts::{Burst, Class, Counts};
use super::error::{self, Wrong};
use super::listen::Door;
use super::run::REPLIES_BYTES_MAX;
use super::spec::{self, Kind, Spec};
use super::target::{self, Reading};
use crate::listener::PeerAddress;
use crate::readiness::Serving;
use crate::security::Event;
use crate::way::Way;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tally_service::scores::orders::Orders;
use tally_service::{Caller, Keys, Tally};
use tally_wire::resp::{Encoder, Protocol, Quota};
use tokio::sync::Notify;

/// Times a closed period is read while it is being stored anew.
pub(super) const READ_ATTEMPTS: usize = 5;

/// Bytes that one transaction may gather.
const MULTI_BYTES_MAX: usize = 64 << 20;

/// What others may see of a connection.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) peer: PeerAddress,
    pub(super) since: Instant,
    pub(super) names: Mutex<Names>,
    /// Milliseconds after `since` when bytes came last.
    pub(super) heard: AtomicU64,
    /// Bytes of its buffers, as far as they are counted.
    pub(super) held: AtomicUsize,
    /// Told when it has to close.
    pub(super) closing: Notify,
}

/// What a client says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) name: String,
    pub(super) lib_name: String,
    pub(super) lib_version: String,
    pub(super) resp: u8,
}

/// A transaction that is being gathered.
#[derive(Debug, Default)]
pub(super) struct Multi {
    pub(super) queue: Log,
    pub(super) aborted: bool,
}

/// A connection.
pub(super) struct Session {
    pub(super) door: Arc<Door>,
    pub(super) client: Arc<Client>,
    way: Way,
    pub(super) protocol: Protocol,
    pub(super) relaxed: bool,
    pub(super) multi: Option<Multi>,
    /// What was answered of this burst.
    pub(super) burst: Burst,
    /// What the connections of this thread have answered.
    counts: Arc<Counts>,
    /// The caller that presented a key.
    presented: Option<Caller>,
    /// Who asks, by now.
    caller: Option<Caller>,
    /// Whether that has been judged: keys are read some moments after the door opens.
    judged: bool,
    /// What answers, while something is being done.
    serving: Option<Arc<Serving>>,
}

/// What is to be done with a command.
pub(super) enum Taken {
    /// It was answered, or gathered.
    Done,
    /// It waits for those before it, see [`Kind`].
    Alone(&'static Spec),
}

impl Session {
    pub(super) fn new(door: Arc<Door>, client: Arc<Client>, counts: Arc<Counts>) -> Self {
        let relaxed = door.settings.relaxed;
        let way = Way::of(&door.gate, client.peer, door.address);
        let protocol = Protocol::Resp2;
        let (presented, caller, serving) = (None, None, None);
        let (multi, burst, judged) = (None, Burst::default(), false);
        let mut new = Self {
            door,
            client,
            way,
            protocol,
            relaxed,
            multi,
            burst,
            counts,
            presented,
            caller,
            judged,
            serving,
        };
        new.judge();
        new
    }

    /// Whether nothing that this connection asks could be answered, because no key exists.
    pub(super) fn denied(&self) -> bool {
        self.way != Way::Direct && self.door.gate.keys().is_some_and(|keys| keys.protected_mode())
    }

    /// Who asks, if it is known.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// Brings the connection back to how it began.
    pub(super) fn reset(&mut self) {
        self.protocol = Protocol::Resp2;
        self.relaxed = self.door.settings.relaxed;
        self.multi = None;
        self.presented = None;
        self.names().name.clear();
        self.judge();
    }

    /// Presents a key; whether it is one.
    pub(super) fn authenticate(&mut self, user: Option<&[u8]>, password: &[u8]) -> Result<(), Wrong> {
        let Some(keys) = self.door.gate.keys() else { return Err(error::LOADING.into()) };
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

    /// Notes that a credential, or a connection without one, was refused.
    pub(super) fn refused(&self, subject: &str, token: Option<&str>) {
        let id = token.and_then(|token| token.strip_prefix("tally_")?.split_once('_')).map(|(id, _)| id);
        let id = id.filter(|id| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let actor = id.map_or_else(|| "no key".to_owned(), |id| format!("claims key {id}"));
        let address = self.client.peer.ip();
        let event = Event { name: "credential_refused", actor: &actor, address, request: "", subject };
        self.door.gate.security_event(&event, true);
    }

    /// Judges anew who asks.
    pub(super) fn judge(&mut self) {
        let keys = self.door.gate.keys();
        self.judge_by(keys.as_deref());
    }

    fn judge_by(&mut self, keys: Option<&Keys>) {
        let Some(keys) = keys else { return };
        self.judged = true;
        self.caller = match &self.presented {
            Some(caller) if keys.is_live(caller) => self.presented.clone(),
            Some(_) => None,
            None if self.way == Way::Direct && keys.protected_mode() => Some(Caller::local()),
            None => None,
        };
    }

    /// Whether a key is needed and none was presented.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.judged && self.caller.is_none()
    }

    /// Who asks, or what somebody hears whom nobody knows; while keys are being read, that is everybody.
    pub(super) fn known(&self) -> Result<&Caller, &'static str> {
        self.caller.as_ref().ok_or(if self.judged { error::NO_AUTH } else { error::LOADING })
    }

    /// Takes the service for the commands that have arrived: to ask the gate for it at each of them costs more than some of them.
    pub(super) fn begin(&mut self) {
        let serving = self.door.gate.serving();
        self.judge_by(serving.keys.as_deref());
        self.serving = Some(serving);
    }

    /// Lets go of it: another one may take its place while the connection waits.
    pub(super) fn end(&mut self) {
        self.serving = None;
    }

    /// The service, if it can answer.
    pub(super) fn tally(&self) -> Result<&Arc<Tally>, Wrong> {
        let tally = self.serving.as_ref().and_then(|serving| serving.tally.as_ref());
        self.door.gate.check(tally).map_err(|not_ready| match not_ready {
            crate::readiness::NotReady::Loading(_) => error::LOADING.into(),
            crate::readiness::NotReady::Lost(_) => error::LOST.into(),
            crate::readiness::NotReady::Unsure => error::UNSURE.into(),
            crate::readiness::NotReady::Draining => "TRYAGAIN the server is shutting down".into(),
        })
    }

    pub(super) fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.client.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command, if there is one of that name and the caller may run it now.
    pub(super) fn check(&self, args: Args<'_>) -> Result<&'static Spec, Wrong> {
        let Some(spec) = spec::find(args.get(0)) else { return Err(unknown(args)) };
        spec.check(args)?;
        if let Some(right) = spec.right {
            let caller = self.known()?;
            if !caller.may(right) {
                return Err(error::no_permission(spec.name));
            }
        }
        if !spec.loading {
            self.tally()?;
        }
        Ok(spec)
    }

    /// Takes a command: answers it, gathers it in `log`, or says that it stands alone.
    pub(super) fn take(&mut self, args: Args<'_>, log: &mut Log, out: &mut Vec<u8>) -> Taken {
        let start = out.len();
        let spec = match self.check(args) {
            Ok(spec) => spec,
            Err(wrong) if self.multi.is_none() && !log.is_empty() => {
                drop(wrong);
                log.push(args);
                return Taken::Done;
            }
            Err(wrong) if self.multi.is_some() && args.is(0, "exec") => {
                // It ends the transaction all the same.
                self.multi = None;
                Encoder::new(out, self.protocol).error(wrong.as_bytes());
                self.burst.answered(Class::Other, &out[start..]);
                return Taken::Done;
            }
            Err(wrong) => {
                if let Some(multi) = &mut self.multi {
                    multi.aborted = true;
                }
                Encoder::new(out, self.protocol).error(wrong.as_bytes());
                self.burst.answered(Class::of(spec::find(args.get(0))), &out[start..]);
                return Taken::Done;
            }
        };
        if self.multi.is_some() {
            return self.queue(spec, args, out);
        }
        match spec.kind {
            Kind::Turn(_) | Kind::Remove(_) => return Taken::Alone(spec),
            Kind::Write(_) => log.push(args),
            Kind::Now(_) | Kind::Read(_) if !log.is_empty() => log.push(args),
            Kind::Now(_) | Kind::Read(_) if self.answer(spec, args, out, &Quota::new(REPLIES_BYTES_MAX)) => {
                self.burst.answered(Class::of(Some(spec)), &out[start..]);
            }
            Kind::Now(_) | Kind::Read(_) => log.push(args),
        }
        Taken::Done
    }

    /// Answers what needs no lane; whether it could without waiting.
    pub(super) fn answer(&mut self, spec: &Spec, args: Args<'_>, out: &mut Vec<u8>, quota: &Quota) -> bool {
        let protocol = self.protocol;
        match spec.kind {
            Kind::Now(run) => target::answer(out, protocol, quota, |to| run(self, args, to)),
            Kind::Read(run) => match self.tally() {
                Ok(tally) => Reading { tally, orders: &Orders::FREE, protocol, serving: true }
                    .answer(run, args, out, quota),
                Err(wrong) => target::answer(out, protocol, quota, |_| Err(wrong.clone())),
            },
            Kind::Turn(_) | Kind::Write(_) | Kind::Remove(_) => unreachable!("it changes something"),
        }
    }

    fn queue(&mut self, spec: &'static Spec, args: Args<'_>, out: &mut Vec<u8>) -> Taken {
        use super::spec::Turn::{Delete, Discard, Exec, Multi, Quit, Reset, Watch};
        let multi = self.multi.as_mut().expect("it is being gathered");
        let refused: Wrong = match spec.kind {
            Kind::Turn(Exec | Discard | Multi | Quit | Reset | Watch) => return Taken::Alone(spec),
            Kind::Turn(turn) if turn != Delete => error::NOT_IN_MULTI.into(),
            _ if multi.queue.bytes() + args.bytes() > MULTI_BYTES_MAX => {
                "ERR the transaction is too large: 64 MiB are possible".into()
            }
            _ => {
                multi.queue.push(args);
                Encoder::new(out, self.protocol).simple("QUEUED");
                return Taken::Done;
            }
        };
        multi.aborted = true;
        let start = out.len();
        Encoder::new(out, self.protocol).error(refused.as_bytes());
        self.burst.answered(Class::of(Some(spec)), &out[start..]);
        Taken::Done
    }

    /// Notes that bytes came, and says when.
    pub(super) fn heard(&self) -> Instant {
        let now = Instant::now();
        let after = u64::try_from((now - self.client.since).as_millis()).unwrap_or(u64::MAX);
        self.client.heard.store(after, Ordering::Relaxed);
        now
    }

    /// Counts what came then and is answered.
    pub(super) fn answered(&mut self, arrived: Instant) {
        self.burst.end(&self.counts, arrived);
    }
}

/// As Redis says it: the name and the first arguments, shortened.
fn unknown(args: Args<'_>) -> Wrong {
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
