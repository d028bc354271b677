//! Commands of the connection itself: authentication, protocol, transactions, and commands that run alone in a pipeline.

use super::args::{Args, Log};
use super::error;
use super::run::{Prepared, StepBuilder};
use super::session::{Client, Session};
use super::spec::{CommandKind, ConnectionCommand, Spec};
use super::{keys, lb};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tally_service::scores::select::RankSelection;
use tally_service::scores::steps::{PipelineStep, StepReply, TAKE_MAX};
use tally_wire::resp::{Encoder, Protocol, number};

/// The maximum length of a client's name.
const NAME_MAX: usize = 1_024;

impl Session {
    /// Runs a command alone. Returns whether the connection stays open.
    pub(super) async fn alone(&mut self, spec: &'static Spec, args: Args<'_>, out: &mut Vec<u8>) -> bool {
        if spec.writes() && self.follows() && Box::pin(self.run_one_at_leader(args, out)).await {
            return true;
        }
        let CommandKind::Connection(command) = spec.kind else {
            self.remove(args, out).await;
            return true;
        };
        let start = out.len();
        let mut to = Encoder::new(out, self.protocol);
        let done = match command {
            ConnectionCommand::Quit => {
                to.simple("OK");
                return false;
            }
            ConnectionCommand::Auth => self.auth(args).map(|()| to.simple("OK")),
            ConnectionCommand::Hello => self.hello(args, out),
            ConnectionCommand::Reset => {
                self.reset();
                Encoder::new(out, self.protocol).simple("RESET");
                Ok(())
            }
            ConnectionCommand::Multi if self.multi.is_some() => {
                Err("ERR MULTI calls can not be nested".into())
            }
            ConnectionCommand::Multi => {
                self.multi = Some(super::session::Multi::default());
                to.simple("OK");
                Ok(())
            }
            ConnectionCommand::Discard if self.multi.take().is_some() => {
                to.simple("OK");
                Ok(())
            }
            ConnectionCommand::Discard => Err("ERR DISCARD without MULTI".into()),
            ConnectionCommand::Watch if self.multi.is_some() => {
                Err("ERR WATCH inside MULTI is not allowed".into())
            }
            ConnectionCommand::Watch => {
                Err("ERR WATCH is not supported: use the conditions of ZADD (NX, XX, GT, LT)".into())
            }
            ConnectionCommand::Exec => self.exec(out).await,
            ConnectionCommand::Durability => self.durability(args).map(|()| to.simple("OK")),
            ConnectionCommand::Create => lb::create::create(self, args, &mut to).await,
            ConnectionCommand::Delete => keys::delete(self, args, &mut to).await,
        };
        if let Err(error) = done {
            out.truncate(start);
            Encoder::new(out, self.protocol).error(error.as_bytes());
        }
        true
    }

    async fn exec(&mut self, out: &mut Vec<u8>) -> error::Result {
        let multi = self.multi.take().ok_or("ERR EXEC without MULTI")?;
        if multi.aborted {
            return Err(error::EXEC_ABORT.into());
        }
        let before = out.len();
        Encoder::new(out, self.protocol).array(multi.queue.len());
        let done = self.run(&Arc::new(multi.queue), true, out).await;
        if done.is_err() {
            out.truncate(before);
        }
        done
    }

    fn auth(&mut self, args: Args<'_>) -> error::Result {
        match args.len() {
            2 => self.authenticate(None, args.get(1)),
            3 => self.authenticate(Some(args.get(1)), args.get(2)),
            _ => Err(error::SYNTAX.into()),
        }
    }

    /// `HELLO [protocol [AUTH user key] [SETNAME name]]`
    fn hello(&mut self, args: Args<'_>, out: &mut Vec<u8>) -> error::Result {
        let mut protocol = self.protocol;
        if args.len() > 1 {
            protocol = match number::integer(args.get(1)) {
                Some(2) => Protocol::Resp2,
                Some(3) => Protocol::Resp3,
                Some(_) => return Err("NOPROTO unsupported protocol version".into()),
                None => return Err("ERR Protocol version is not an integer or out of range".into()),
            };
        }
        let (mut at, mut key, mut name) = (2, None, None);
        while at < args.len() {
            if args.is(at, "auth") && at + 2 < args.len() {
                key = Some((args.get(at + 1), args.get(at + 2)));
                at += 3;
            } else if args.is(at, "setname") && at + 1 < args.len() {
                name = Some(client_name(args.get(at + 1))?);
                at += 2;
            } else {
                let option = String::from_utf8_lossy(args.get(at));
                return Err(format!("ERR Syntax error in HELLO option '{option}'").into());
            }
        }
        if let Some((user, password)) = key {
            self.authenticate(Some(user), password)?;
        }
        if let Err(why) = self.require_caller() {
            if why == error::LOADING {
                return Err(why.into());
            }
            let text = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
                 AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version \
                 at the same time";
            return Err(text.into());
        }
        if let Some(name) = name {
            self.names().name = name;
        }
        self.protocol = protocol;
        let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
        self.names().resp = version;
        let mut to = Encoder::new(out, protocol);
        to.map(7);
        for (field, value) in [("server", "redis"), ("version", super::info::REDIS_VERSION)] {
            to.bulk(field);
            to.bulk(value);
        }
        to.bulk("proto");
        to.integer(i64::from(version));
        to.bulk("id");
        to.integer(self.client.id.cast_signed());
        for (field, value) in [("mode", "standalone"), ("role", "master")] {
            to.bulk(field);
            to.bulk(value);
        }
        to.bulk("modules");
        to.array(0);
        Ok(())
    }

    fn durability(&mut self, args: Args<'_>) -> error::Result {
        self.relaxed = match args.get(1) {
            word if word.eq_ignore_ascii_case(b"relaxed") => true,
            word if word.eq_ignore_ascii_case(b"commit") => false,
            _ => return Err("ERR durability must be commit or relaxed".into()),
        };
        Ok(())
    }

    /// Removes a range, one step at a time, and replies with the total.
    async fn remove(&mut self, args: Args<'_>, out: &mut Vec<u8>) {
        let mut log = Log::default();
        log.push(args);
        let start = out.len();
        let prepared = self.prepare_one(args);
        let Ok(Prepared::Step(PipelineStep::Take { board, which, .. }, shape)) = prepared else {
            // One command is no transaction.
            let _done = self.run(&Arc::new(log), false, out).await;
            return;
        };
        let wanted = match (&which, args.len()) {
            (RankSelection::Lowest(_) | RankSelection::Highest(_), 3) => {
                number::integer(args.get(2)).unwrap_or(1)
            }
            (RankSelection::Lowest(_) | RankSelection::Highest(_), _) => 1,
            _ => i64::MAX,
        };
        let (mut all, mut wanted) = (Vec::new(), usize::try_from(wanted).unwrap_or(usize::MAX));
        let mut which = which;
        loop {
            let most = wanted.min(TAKE_MAX);
            let step =
                PipelineStep::Take { board: Arc::clone(&board), which: which.at_most(most), all: false };
            let reply = match self.one(step).await {
                Ok(StepReply::Took(list)) => list,
                Ok(_) => Vec::new(),
                Err(error) => {
                    out.truncate(start);
                    return Encoder::new(out, self.protocol).error(error.as_bytes());
                }
            };
            let took = reply.len();
            all.extend(reply);
            wanted -= took;
            if took < TAKE_MAX || wanted == 0 {
                break;
            }
            which = which.after(took);
        }
        shape.write([StepReply::Took(all)].into_iter(), &mut Encoder::new(out, self.protocol));
    }
}

/// `PING [message]`
pub(super) fn ping(_: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    match args.len() {
        1 => to.simple("PONG"),
        2 => to.bulk(args.get(1)),
        _ => return Err(error::arity("ping")),
    }
    Ok(())
}

/// `ECHO message`
pub(super) fn echo(_: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    to.bulk(args.get(1));
    Ok(())
}

/// `SELECT 0`
pub(super) fn select(_: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    match number::integer(args.get(1)) {
        Some(0) => to.simple("OK"),
        Some(_) => return Err("ERR DB index is out of range".into()),
        None => return Err(error::NOT_AN_INTEGER.into()),
    }
    Ok(())
}

/// `CLIENT …`
pub(super) fn client(session: &mut Session, args: Args<'_>, to: &mut Encoder<'_>) -> error::Result {
    let word = String::from_utf8_lossy(args.get(1)).to_ascii_lowercase();
    match word.as_str() {
        "id" => to.integer(session.client.id.cast_signed()),
        "getname" => match session.names().name.as_str() {
            "" => to.null(),
            name => to.bulk(name),
        },
        "setname" => {
            let name = client_name(args.get(2))?;
            session.names().name = name;
            to.simple("OK");
        }
        "setinfo" => {
            set_info(session, args)?;
            to.simple("OK");
        }
        "info" => to.verbatim(&describe(&session.client)),
        "list" => {
            let lines: String = session.listener.clients().iter().map(|client| describe(client)).collect();
            to.verbatim(&lines);
        }
        _ if args.is(2, "on") || args.is(2, "off") => to.simple("OK"),
        _ => return Err(error::SYNTAX.into()),
    }
    Ok(())
}

fn set_info(session: &Session, args: Args<'_>) -> error::Result {
    let value = args.get(3);
    if value.len() > NAME_MAX || !value.iter().all(u8::is_ascii_graphic) {
        let field = String::from_utf8_lossy(args.get(2)).to_ascii_lowercase();
        return Err(format!("ERR {field} cannot contain spaces, newlines or special characters.").into());
    }
    let value = String::from_utf8_lossy(value).into_owned();
    if args.is(2, "lib-name") {
        session.names().lib_name = value;
    } else if args.is(2, "lib-ver") {
        session.names().lib_version = value;
    } else {
        return Err(format!("ERR Unrecognized option '{}'", String::from_utf8_lossy(args.get(2))).into());
    }
    Ok(())
}

fn client_name(name: &[u8]) -> error::Result<String> {
    if name.len() > NAME_MAX || !name.iter().all(u8::is_ascii_graphic) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.".into());
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// One line of `CLIENT LIST`.
fn describe(client: &Client) -> String {
    let names = client.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let age = client.since.elapsed();
    let heard = client.heard.load(Ordering::Relaxed);
    let idle = age.as_millis().saturating_sub(u128::from(heard)) / 1_000;
    format!(
        "id={} addr={} name={} age={} idle={idle} flags=N db=0 lib-name={} lib-ver={} resp={}\n",
        client.id,
        client.peer,
        names.name,
        age.as_secs(),
        names.lib_name,
        names.lib_version,
        names.resp,
    )
}

impl Session {
    fn prepare_one(&self, args: Args<'_>) -> error::Result<Prepared> {
        let spec = self.check(args)?;
        let (CommandKind::Remove(write), Ok(tally)) = (spec.kind, self.tally()) else {
            return Err(error::SYNTAX.into());
        };
        write(&mut StepBuilder::alone(self, tally), args)
    }
}
