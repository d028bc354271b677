//! The applications of contests in Redis or Valkey, single or a cluster.
//!
//! Of a contest there are a sorted set of the pending, one of the accepted and one of the rejected, by their places, and a
//! hash of the applications by player, all in one slot and under a number of this opening alone (`keys`). Every question
//! is one round trip, whatever else Redis has, and they are cleared by their names. Redis knows no rule of contests: whoever
//! changes something has read it, decides, and sends what it is to be with what was seen; where that is not so any more
//! nothing is changed. Any number of servers may do so at once.
//!
//! What is known of them names the process of Redis that they were written to, and counts them. What a flush, a restart, a
//! failover or an eviction has taken is [`RankingError::Lost`] for every question, never a smaller number. Not here: rules,
//! and what is durable.

use super::address::Address;
use super::asks::decimal;
use super::client::{Redis, Request};
use super::keys::{self, PartitionKeys};
use super::script::Script;
use super::{Options, RankingError, reply};
use redis::Value;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::contest::application::{Application, ApplicationCounts, Status};
use tally_rules::idempotency::RequestKey;
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId};

/// What is at an address, for messages.
const APPLICATIONS: &str = "applications";

/// The applications of contests in a Redis or a cluster. Clones share its connections.
#[derive(Clone, Debug)]
pub struct RedisApplications {
    redis: Arc<Redis>,
}

/// One contest's applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationsKey {
    /// The contest.
    pub contest: Uuid,
    /// The number of this opening.
    pub number: Uuid,
}

/// An application as Redis has it: to be changed it has to be still this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApplication {
    /// What it says.
    pub application: Application,
    /// Which change made it so.
    pub mark: String,
    text: Vec<u8>,
}

/// What was read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationsRead {
    /// How many there are; no places are given by it.
    pub desk: ApplicationCounts,
    /// How often was decided on them.
    pub revision: u64,
    /// Whether a start holds them still.
    pub frozen: bool,
    /// Which change was the last decision.
    pub last: String,
    /// What was asked for.
    pub rows: Vec<Option<StoredApplication>>,
}

/// One application that is to be changed.
#[derive(Clone, Debug)]
pub struct ApplicationRow {
    /// Whose.
    pub player: PlayerId,
    /// As it was seen.
    pub seen: Option<StoredApplication>,
    /// What it becomes; `None` takes it back.
    pub to: Option<Status>,
    /// When the player applied.
    pub applied_at: Micros,
}

/// Changes of one contest's applications: all of them or none.
#[derive(Clone, Debug, Default)]
pub struct ApplicationsChange {
    /// A name that no other change has, of letters and digits.
    pub mark: String,
    /// The revision at which was decided, where it matters: then it is a decision, and gives the next revision.
    pub revision: Option<u64>,
    /// How many applications there may be before it.
    pub most: Option<u32>,
    /// The request: its key, what is kept of it, and for how long.
    pub request: Option<(RequestKey, Vec<u8>, Duration)>,
    /// What changes.
    pub rows: Vec<ApplicationRow>,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeResult {
    /// It was made: the applications as they are now.
    Done(Vec<Option<Application>>),
    /// The request was done before; what was kept of it, with the first application behind.
    Before(Vec<u8>),
    /// A start holds them still.
    Frozen,
    /// Something is not as it was seen.
    Conflict,
}

impl RedisApplications {
    /// Those at `redis://…` or `redis-cluster://…`; one that does not answer now is connected to when it is needed.
    /// Threads that ask it may block and must not be those of an asynchronous runtime.
    pub fn open(url: &str, options: &Options) -> Result<Self, RankingError> {
        let redis = Redis::new(Address::parse(url, APPLICATIONS)?, options)?;
        redis.connect_or_later()?;
        Ok(Self { redis: Arc::new(redis) })
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.redis
    }

    /// Where it is, without the password.
    pub fn address(&self) -> String {
        self.redis.address().to_string()
    }

    /// Begins to take applications under a number that was never used.
    pub fn begin(&self, key: ApplicationsKey) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::DeskBegin, key, Vec::new())).map(drop)
    }

    /// Counts, and the applications of some players.
    pub fn look(&self, key: ApplicationsKey, players: &[PlayerId]) -> Result<ApplicationsRead, RankingError> {
        look(self.ask(
            Script::DeskRead,
            key,
            players.iter().map(|player| player.as_bytes().to_vec()).collect(),
        )?)
    }

    /// The counts of several contests, all asked at once. What fails fails alone.
    pub fn counts(&self, keys: &[ApplicationsKey]) -> Vec<Result<ApplicationCounts, RankingError>> {
        let one = |key: &ApplicationsKey| self.request(Script::DeskRead, *key, Vec::new());
        let answers = self.redis.all(&keys.iter().map(one).collect::<Vec<_>>());
        answers.into_iter().map(|answer| Ok(look(answer?)?.desk)).collect()
    }

    /// At most `limit` applications in one status by their places, from the first one above `above`.
    pub fn page(
        &self,
        key: ApplicationsKey,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, RankingError> {
        let args = vec![vec![letter(status)], decimal(above), decimal(limit as u64)];
        let mut values = reply::list(self.ask(Script::DeskPage, key, args)?)?.into_iter();
        let mut rows = Vec::with_capacity(values.len() / 2);
        while let Some(name) = values.next() {
            let kept = kept(reply::next(&mut values)?)?.ok_or(RankingError::Lost)?;
            rows.push((player(name)?, kept.application));
        }
        Ok(rows)
    }

    /// Changes some, where they are as they were seen.
    pub fn change(
        &self,
        key: ApplicationsKey,
        change: &ApplicationsChange,
    ) -> Result<ChangeResult, RankingError> {
        let number = |number: Option<u64>| number.map_or_else(Vec::new, decimal);
        let mut args = vec![
            change.mark.clone().into_bytes(),
            number(change.revision),
            number(change.most.map(u64::from)),
        ];
        let (value, kept_for) =
            change.request.as_ref().map_or((Vec::new(), Vec::new()), |(_, value, kept_for)| {
                (value.clone(), decimal(u64::try_from(kept_for.as_millis()).unwrap_or(u64::MAX)))
            });
        args.extend([value, kept_for]);
        for row in &change.rows {
            args.push(row.player.as_bytes().to_vec());
            args.push(row.seen.as_ref().map_or_else(Vec::new, |seen| seen.text.clone()));
            args.push(row.to.map_or_else(Vec::new, |to| vec![letter(to)]));
            args.push(row.applied_at.0.to_string().into_bytes());
        }
        let mut request = self.request(Script::DeskChange, key, args);
        if let Some((one, ..)) = &change.request {
            request.keys.extend(self.of_request(key.contest, one).names);
        }
        let mut values = reply::list(self.redis.change(&request)?)?.into_iter();
        match reply::number(&reply::next(&mut values)?)? {
            0 => {
                let applications = values.map(|value| Ok(kept(value)?.map(|kept| kept.application)));
                Ok(ChangeResult::Done(applications.collect::<Result<_, RankingError>>()?))
            }
            1 => Ok(ChangeResult::Before(reply::bytes(reply::next(&mut values)?)?)),
            2 => Ok(ChangeResult::Frozen),
            _ => Ok(ChangeResult::Conflict),
        }
    }

    /// What was kept of a request.
    pub fn recall(&self, contest: Uuid, request: &RequestKey) -> Result<Option<Vec<u8>>, RankingError> {
        let PartitionKeys { slot, names } = self.of_request(contest, request);
        let asked = Request { script: Script::DeskRecall, slot, keys: names, args: Vec::new(), entries: 0 };
        match self.redis.all(&[asked]).pop().unwrap_or(Err(RankingError::Lost))? {
            Value::Nil => Ok(None),
            value => reply::bytes(value).map(Some),
        }
    }

    /// Nobody is decided on from now on: a start of that number reads who is accepted.
    pub fn freeze(&self, key: ApplicationsKey, number: u64) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::DeskFreeze, key, vec![decimal(number)])).map(drop)
    }

    /// No start below that number can take place any more.
    pub fn thaw(&self, key: ApplicationsKey, below: u64) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::DeskThaw, key, vec![decimal(below)])).map(drop)
    }

    /// Takes everything of it away. It may be gone already.
    pub fn clear(&self, key: ApplicationsKey) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::DeskClear, key, Vec::new())).map(drop)
    }

    fn request(&self, script: Script, key: ApplicationsKey, args: Vec<Vec<u8>>) -> Request {
        let keys = keys::of_desk(&self.redis.address().prefix, key.contest, key.number);
        Request { script, slot: keys.slot, keys: keys.names, args, entries: 0 }
    }

    fn of_request(&self, contest: Uuid, request: &RequestKey) -> PartitionKeys {
        keys::of_request(&self.redis.address().prefix, contest, &request.scope, &request.key)
    }

    fn ask(&self, script: Script, key: ApplicationsKey, args: Vec<Vec<u8>>) -> Result<Value, RankingError> {
        self.redis.all(&[self.request(script, key, args)]).pop().unwrap_or(Err(RankingError::Lost))
    }
}

/// What scripts answer that open one.
fn look(answer: Value) -> Result<ApplicationsRead, RankingError> {
    let mut values = reply::list(answer)?.into_iter();
    let mut count = || -> Result<u32, RankingError> {
        let number = reply::number(&reply::next(&mut values)?)?;
        u32::try_from(number).map_err(|_| reply::strange("more applications than there can be"))
    };
    let desk = ApplicationCounts { pending: count()?, accepted: count()?, rejected: count()?, places: 0 };
    let revision = reply::number(&reply::next(&mut values)?)?;
    let frozen = reply::signed(&reply::next(&mut values)?)? >= 0;
    let last = text(reply::bytes(reply::next(&mut values)?)?)?;
    Ok(ApplicationsRead { desk, revision, frozen, last, rows: values.map(kept).collect::<Result<_, _>>()? })
}

/// An application as it is written: its list, its place, when the player applied, and which change it was.
fn kept(value: Value) -> Result<Option<StoredApplication>, RankingError> {
    let bytes = match value {
        Value::Nil => return Ok(None),
        value => reply::bytes(value)?,
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    read(&bytes).map(Some).ok_or_else(|| reply::strange("an application that is none"))
}

/// Reads an application as [`ChangeResult::Before`] has it too.
pub fn read(bytes: &[u8]) -> Option<StoredApplication> {
    let mut parts = std::str::from_utf8(bytes).ok()?.split(':');
    let list = parts.next()?;
    let status = *Status::ALL.iter().find(|status| list.as_bytes() == [letter(**status)])?;
    let (place, applied_at) = (parts.next()?.parse().ok()?, Micros(parts.next()?.parse().ok()?));
    let mark = parts.next()?.to_owned();
    let application = Application { status, place, applied_at, member: None, hold: None };
    Some(StoredApplication { application, mark, text: bytes.to_vec() })
}

/// The list of a status.
fn letter(status: Status) -> u8 {
    match status {
        Status::Pending => b'p',
        Status::Accepted => b'a',
        Status::Rejected => b'r',
    }
}

fn text(bytes: Vec<u8>) -> Result<String, RankingError> {
    String::from_utf8(bytes).map_err(|_| reply::strange("bytes that are no text"))
}

fn player(value: Value) -> Result<PlayerId, RankingError> {
    let name = text(reply::bytes(value)?)?;
    PlayerId::new(&name).map_err(|_| reply::strange("a player's name that is none"))
}
