//! The applications of contests in Redis or Valkey, a single server or a cluster.
//!
//! A contest has a hash of its applications by player, and sorted sets of the pending, accepted and rejected ones by
//! their places. All are in one slot, under a number of this opening alone (`keys`). Every query is one round trip,
//! whatever else Redis has, and a clear deletes the keys by their names. Redis knows no rule of contests: a server
//! reads, decides, and sends the new state with what it read. If that has changed, nothing is written. Any number of
//! servers may do so at once.
//!
//! The metadata names the Redis process that the applications were written to, and counts them. After a flush, a
//! restart, a failover or an eviction every query returns [`RankingError::Lost`], never a smaller number. Not here:
//! rules, and what is durable.

use super::address::Address;
use super::client::{Redis, Request};
use super::keys::{self, PartitionKeys};
use super::queries::decimal;
use super::script::Script;
use super::{Options, RankingError, reply};
use redis::Value;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::contest::application::{Application, ApplicationCounts, Status};
use tally_rules::idempotency::RequestKey;
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId};

/// The name of the address in messages.
const APPLICATIONS: &str = "applications";

/// The applications of contests in a Redis or a cluster. Clones share its connections.
#[derive(Clone, Debug)]
pub struct RedisApplications {
    redis: Arc<Redis>,
}

/// The key of one contest's applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationsKey {
    /// The contest.
    pub contest: Uuid,
    /// The number of this opening.
    pub number: Uuid,
}

/// An application as Redis has it. A change requires that it is still this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApplication {
    /// The application.
    pub application: Application,
    /// The mark of the change that wrote it.
    pub mark: String,
    text: Vec<u8>,
}

/// What was read, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationsRead {
    /// The counts; `places` is not used.
    pub counts: ApplicationCounts,
    /// The number of decisions.
    pub revision: u64,
    /// Whether a start has frozen them.
    pub frozen: bool,
    /// The mark of the last decision.
    pub last: String,
    /// The applications that were queried.
    pub rows: Vec<Option<StoredApplication>>,
}

/// The change of one application.
#[derive(Clone, Debug)]
pub struct ApplicationRow {
    /// The player.
    pub player: PlayerId,
    /// The application as it was read.
    pub seen: Option<StoredApplication>,
    /// The new status; `None` removes it.
    pub to: Option<Status>,
    /// When the player applied.
    pub applied_at: Micros,
}

/// Changes of one contest's applications: all of them or none.
#[derive(Clone, Debug, Default)]
pub struct ApplicationsChange {
    /// A unique name of letters and digits.
    pub mark: String,
    /// The revision that a decision was based on; the change increments it. `None` for other changes.
    pub revision: Option<u64>,
    /// The maximum number of applications before it.
    pub most: Option<u32>,
    /// The maximum number of accepted applications before it; the change counts as a decision, and increments the revision.
    pub accepted: Option<u32>,
    /// The idempotency key, the stored outcome, and how long it is kept.
    pub request: Option<(RequestKey, Vec<u8>, Duration)>,
    /// The changed applications.
    pub rows: Vec<ApplicationRow>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeResult {
    /// The change was made: the applications as they are now.
    Done(Vec<Option<Application>>),
    /// The request was done before: its stored outcome, followed by the first application.
    Before(Vec<u8>),
    /// A start has frozen them.
    Frozen,
    /// Something is not as it was read.
    Conflict,
}

impl RedisApplications {
    /// The applications at `redis://…` or `redis-cluster://…`. A server that does not answer now is connected to when
    /// it is needed. Calls block, so they must not run on threads of an asynchronous runtime.
    pub fn open(url: &str, options: &Options) -> Result<Self, RankingError> {
        let redis = Redis::new(Address::parse(url, APPLICATIONS)?, options)?;
        redis.connect_or_later()?;
        Ok(Self { redis: Arc::new(redis) })
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.redis
    }

    /// The address, without the password.
    pub fn address(&self) -> String {
        self.redis.address().to_string()
    }

    /// Begins to accept applications under a number that was never used.
    pub fn begin(&self, key: ApplicationsKey) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::ApplicationsBegin, key, Vec::new())).map(drop)
    }

    /// Counts, and the applications of some players.
    pub fn read(&self, key: ApplicationsKey, players: &[PlayerId]) -> Result<ApplicationsRead, RankingError> {
        decode_read(self.call(Script::ApplicationsRead, key, names(players))?)
    }

    /// The same of several contests, queried at once. Each fails alone.
    pub fn read_all(
        &self,
        keys: &[ApplicationsKey],
        players: &[PlayerId],
    ) -> Vec<Result<ApplicationsRead, RankingError>> {
        let one = |key: &ApplicationsKey| self.request(Script::ApplicationsRead, *key, names(players));
        let answers = self.redis.all(&keys.iter().map(one).collect::<Vec<_>>());
        answers.into_iter().map(|answer| decode_read(answer?)).collect()
    }

    /// The counts of several contests, queried at once. Each fails alone.
    pub fn counts(&self, keys: &[ApplicationsKey]) -> Vec<Result<ApplicationCounts, RankingError>> {
        self.read_all(keys, &[]).into_iter().map(|read| Ok(read?.counts)).collect()
    }

    /// At most `limit` applications in one status by their places, above `above`.
    pub fn page(
        &self,
        key: ApplicationsKey,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, RankingError> {
        let args = vec![vec![letter(status)], decimal(above), decimal(limit as u64)];
        let mut values = reply::list(self.call(Script::ApplicationsPage, key, args)?)?.into_iter();
        let mut rows = Vec::with_capacity(values.len() / 2);
        while let Some(name) = values.next() {
            let kept = decode_stored(reply::next(&mut values)?)?.ok_or(RankingError::Lost)?;
            rows.push((player(name)?, kept.application));
        }
        Ok(rows)
    }

    /// Changes some, if all are still as they were read.
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
            number(change.accepted.map(u64::from)),
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
        let mut request = self.request(Script::ApplicationsChange, key, args);
        if let Some((one, ..)) = &change.request {
            request.keys.extend(self.of_request(key.contest, one).names);
        }
        let mut values = reply::list(self.redis.change(&request)?)?.into_iter();
        match reply::number(&reply::next(&mut values)?)? {
            0 => {
                let applications = values.map(|value| Ok(decode_stored(value)?.map(|kept| kept.application)));
                Ok(ChangeResult::Done(applications.collect::<Result<_, RankingError>>()?))
            }
            1 => Ok(ChangeResult::Before(reply::bytes(reply::next(&mut values)?)?)),
            2 => Ok(ChangeResult::Frozen),
            _ => Ok(ChangeResult::Conflict),
        }
    }

    /// The stored outcome of a request.
    pub fn recall(&self, contest: Uuid, request: &RequestKey) -> Result<Option<Vec<u8>>, RankingError> {
        let PartitionKeys { slot, names } = self.of_request(contest, request);
        let request =
            Request { script: Script::ApplicationsRecall, slot, keys: names, args: Vec::new(), entries: 0 };
        match self.redis.all(&[request]).pop().unwrap_or(Err(RankingError::Lost))? {
            Value::Nil => Ok(None),
            value => reply::bytes(value).map(Some),
        }
    }

    /// Stops all decisions: a start of that number reads the accepted players.
    pub fn freeze(&self, key: ApplicationsKey, number: u64) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::ApplicationsFreeze, key, vec![decimal(number)])).map(drop)
    }

    /// Allows decisions again after a freeze by a start below that number, which cannot happen any more.
    pub fn thaw(&self, key: ApplicationsKey, below: u64) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::ApplicationsThaw, key, vec![decimal(below)])).map(drop)
    }

    /// Deletes everything. It may be deleted already.
    pub fn clear(&self, key: ApplicationsKey) -> Result<(), RankingError> {
        self.redis.change(&self.request(Script::ApplicationsClear, key, Vec::new())).map(drop)
    }

    fn request(&self, script: Script, key: ApplicationsKey, args: Vec<Vec<u8>>) -> Request {
        let keys = keys::of_applications(&self.redis.address().prefix, key.contest, key.number);
        Request { script, slot: keys.slot, keys: keys.names, args, entries: 0 }
    }

    fn of_request(&self, contest: Uuid, request: &RequestKey) -> PartitionKeys {
        keys::of_request(&self.redis.address().prefix, contest, &request.scope, &request.key)
    }

    fn call(&self, script: Script, key: ApplicationsKey, args: Vec<Vec<u8>>) -> Result<Value, RankingError> {
        self.redis.all(&[self.request(script, key, args)]).pop().unwrap_or(Err(RankingError::Lost))
    }
}

/// Decodes the answer of scripts that return counts.
fn decode_read(answer: Value) -> Result<ApplicationsRead, RankingError> {
    let mut values = reply::list(answer)?.into_iter();
    let mut count = || -> Result<u32, RankingError> {
        let number = reply::number(&reply::next(&mut values)?)?;
        u32::try_from(number).map_err(|_| reply::strange("more applications than there can be"))
    };
    let counts = ApplicationCounts { pending: count()?, accepted: count()?, rejected: count()?, places: 0 };
    let revision = reply::number(&reply::next(&mut values)?)?;
    let frozen = reply::signed(&reply::next(&mut values)?)? >= 0;
    let last = text(reply::bytes(reply::next(&mut values)?)?)?;
    Ok(ApplicationsRead {
        counts,
        revision,
        frozen,
        last,
        rows: values.map(decode_stored).collect::<Result<_, _>>()?,
    })
}

/// A stored application: its list, its place, when the player applied, and the mark.
fn decode_stored(value: Value) -> Result<Option<StoredApplication>, RankingError> {
    let bytes = match value {
        Value::Nil => return Ok(None),
        value => reply::bytes(value)?,
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    read(&bytes).map(Some).ok_or_else(|| reply::strange("an application that cannot be decoded"))
}

/// Decodes an application, also that in [`ChangeResult::Before`].
pub fn read(bytes: &[u8]) -> Option<StoredApplication> {
    let mut parts = std::str::from_utf8(bytes).ok()?.split(':');
    let list = parts.next()?;
    let status = *Status::ALL.iter().find(|status| list.as_bytes() == [letter(**status)])?;
    let (place, applied_at) = (parts.next()?.parse().ok()?, Micros(parts.next()?.parse().ok()?));
    let mark = parts.next()?.to_owned();
    let application = Application { status, place, applied_at, member: None, hold: None };
    Some(StoredApplication { application, mark, text: bytes.to_vec() })
}

/// Players as arguments of a script.
fn names(players: &[PlayerId]) -> Vec<Vec<u8>> {
    players.iter().map(|player| player.as_bytes().to_vec()).collect()
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
    PlayerId::new(&name).map_err(|_| reply::strange("a name that no player can have"))
}
