//! The application store of a contest: one interface in front of the store ([`StoredApplications`]) and of Redis
//! (`redis_applications`). From its opening on the contest names its location ([`ApplicationLocation`]). Blocks.
//!
//! In the store an application takes part in a transaction of the ledger's lane. Redis does not, so a contest that moves money
//! never has its applications there. A start concerns both: it freezes the applications first and clears them last, and a crash
//! is possible anywhere in between.

use super::actions::{Action, ContestDone, ContestRequest, ExternalChange, ObservedApplication};
use super::execute::{ContestActor, attempt, find, retry, submit};
use super::join;
use super::redis_applications::{self, ApplicationsInRedis};
use super::start::boards_free;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::cell::RefCell;
use std::sync::Arc;
use tally_ranking::redis::applications::ApplicationsKey;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::{
    ActorKind, Application, ContestId, ContestRecord, ContestState, ContestTrigger, Status, state,
};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::Uuid;
use tally_rules::ledger::member::Handle;
use tally_rules::{PlayerId, Rejection};
use tally_store::{EntrantKey, Listing};

/// A request on applications, with the contest as it was read.
pub(super) struct ApplicationRequest<'a> {
    pub(super) tally: &'a Tally,
    pub(super) id: &'a ContestId,
    pub(super) actor: &'a ContestActor,
    pub(super) idempotency: Option<&'a IdempotencyKey>,
    pub(super) record: ContestRecord,
    /// What the row says that an earlier try has left in the audit log.
    pub(super) noted: &'a RefCell<Option<Arc<str>>>,
}

/// The reply of one try; `None` if the contest has changed since it was read.
pub(super) type AttemptResult = Result<Option<ContestDone>, Failure>;

/// The applications of one contest.
pub(super) trait ApplicationStore {
    fn apply(&self, request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult;

    /// Accepts or rejects players; each row for itself.
    fn decide(&self, request: &ApplicationRequest<'_>, players: &[PlayerId], accept: bool) -> AttemptResult;

    /// A player takes the application back.
    fn withdraw(&self, request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult;

    /// The applications of some players.
    fn observe(
        &self,
        record: &ContestRecord,
        players: &[PlayerId],
    ) -> Result<Vec<ObservedApplication>, Failure>;

    /// At most `limit` applications in one status by their places, from the first one above `above`.
    fn page(
        &self,
        record: &ContestRecord,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, Failure>;

    /// The accepted players, in order of acceptance.
    fn accepted(&self, record: &ContestRecord) -> Result<Vec<(PlayerId, Application)>, Failure>;

    /// Freezes decisions on applications: from here on none is made without the start seeing it.
    fn freeze(&self, record: &ContestRecord) -> Result<(), Failure>;

    /// Thaws them after a start that failed.
    fn thaw(&self, tally: &Tally, id: &ContestId) -> Result<(), Failure>;
}

/// The application store of a contest.
pub(super) fn of<'a>(
    tally: &'a Tally,
    record: &ContestRecord,
) -> Result<Box<dyn ApplicationStore + 'a>, Failure> {
    if let Some(key) = key_in_redis(record) {
        return Ok(Box::new(in_redis(tally, key)?));
    }
    match record.kept {
        ApplicationLocation::Lost if record.state == ContestState::Open => {
            Err(Rejection::ApplicationsLost.into())
        }
        _ => Ok(Box::new(StoredApplications(tally))),
    }
}

/// The key of a contest's applications in Redis, if they are there. Those that join are not.
fn key_in_redis(record: &ContestRecord) -> Option<ApplicationsKey> {
    match record.kept {
        ApplicationLocation::Redis(number) if record.joins_until().is_none() => {
            Some(ApplicationsKey { contest: record.no, number })
        }
        _ => None,
    }
}

fn in_redis(tally: &Tally, key: ApplicationsKey) -> Result<ApplicationsInRedis<'_>, Failure> {
    let redis = redis_applications::redis(tally)?;
    Ok(ApplicationsInRedis { redis, faults: &tally.applications_faults, key })
}

/// The application of a player to each of some open contests, in one read of the store and one of Redis. A contest that has lost its
/// applications has none.
pub(super) fn of_player(
    tally: &Tally,
    open: &[&ContestRecord],
    player: &PlayerId,
) -> Result<Vec<Option<Application>>, Failure> {
    let redis_keys: Vec<_> = open.iter().filter_map(|record| key_in_redis(record)).collect();
    let mut read = Vec::with_capacity(redis_keys.len());
    if !redis_keys.is_empty() {
        let answers = redis_applications::redis(tally)?.read_all(&redis_keys, std::slice::from_ref(player));
        for (key, answer) in redis_keys.into_iter().zip(answers) {
            read.push(match in_redis(tally, key)?.counting_faults(answer) {
                Ok(read) => read.rows.into_iter().next().flatten().map(|kept| kept.application),
                Err(Failure::Rejected(Rejection::ApplicationsLost)) => None,
                Err(failure) => return Err(failure),
            });
        }
    }
    let key = |record: &ContestRecord| EntrantKey { contest: record.no, player: player.clone() };
    let stored = open.iter().filter(|record| record.kept == ApplicationLocation::Store);
    let keys = tally_lanes::keys_to_load(stored.map(|record| key(record)));
    let found = if keys.is_empty() { Vec::new() } else { tally.store.ledger().applications_of(&keys)? };
    let mut read = read.into_iter();
    let of = |record: &&ContestRecord| match key_in_redis(record) {
        Some(_) => read.next().flatten(),
        None => keys.binary_search(&key(record)).ok().and_then(|at| found[at]),
    };
    Ok(open.iter().map(of).collect())
}

/// Retries a request until it has a reply.
pub(super) fn at<'a>(
    tally: &'a Tally,
    id: &'a ContestId,
    actor: &'a ContestActor,
    idempotency: Option<&'a IdempotencyKey>,
    what: impl Fn(&dyn ApplicationStore, &ApplicationRequest<'_>) -> AttemptResult,
) -> Result<ContestDone, Failure> {
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let noted = RefCell::default();
    retry(|| {
        let record = find(tally, id)?;
        let request = ApplicationRequest { tally, id, actor, idempotency, record, noted: &noted };
        match of(tally, &request.record).and_then(|store| what(&*store, &request)) {
            // The reply is the present contest, and not that its applications are lost.
            Err(Failure::Rejected(Rejection::ApplicationsLost))
                if has_moved_on(tally, id, &request.record)? =>
            {
                Ok(None)
            }
            // It may be a retry of a request from when they were in Redis.
            Err(Failure::Rejected(
                rejection @ (Rejection::ContestState(_) | Rejection::AlreadyApplied(_)),
            )) if request.record.kept == ApplicationLocation::Store
                || request.record.joins_until().is_some() =>
            {
                let before = redis_applications::recall(&request)?;
                before.map_or(Err(rejection.into()), |done| Ok(Some(done)))
            }
            done => done,
        }
    })
}

/// Whether a contest has been started, cancelled or opened again since it was read: then its applications may have been
/// cleared, and are not lost.
pub(super) fn has_moved_on(tally: &Tally, id: &ContestId, observed: &ContestRecord) -> Result<bool, Failure> {
    let now = find(tally, id)?;
    Ok((now.state, now.kept) != (observed.state, observed.kept))
}

/// Whether a draft that opens now makes its applications ready in Redis.
pub(super) fn opens_in_redis(tally: &Tally, record: &ContestRecord) -> bool {
    tally.settings.applications.is_some() && !record.contest.needs_members()
}

/// The location of the applications of a contest that opens; a location in Redis is prepared. An open contest gets a new
/// location only if it has lost its applications.
pub(super) fn opening(
    tally: &Tally,
    record: &ContestRecord,
    by: ActorKind,
) -> Result<ApplicationLocation, Failure> {
    let redis = tally.settings.applications.as_ref();
    let begins = match (record.state, record.kept) {
        (ContestState::Draft, _) => {
            state::transition(record.state, ContestTrigger::Open, by)?;
            !record.contest.needs_members()
        }
        (ContestState::Open, ApplicationLocation::Redis(_) | ApplicationLocation::Lost) => {
            // A caller that may decide on applications may begin again without them.
            state::transition(record.state, ContestTrigger::Decide, by)?;
            redis.is_none() || redis_applications::is_lost(tally, record)?
        }
        _ => false,
    };
    match redis {
        _ if !begins => Ok(record.kept),
        None => Ok(ApplicationLocation::Store),
        Some(redis) => {
            let mut number = [0; 16];
            getrandom::fill(&mut number)
                .map_err(|error| Fault::Broken(format!("no random numbers for applications: {error}")))?;
            let number = Uuid(number);
            redis
                .begin(ApplicationsKey { contest: record.no, number })
                .map_err(redis_applications::failure)?;
            Ok(ApplicationLocation::Redis(number))
        }
    }
}

/// Clears a prepared location that is not needed. A failure does no harm.
pub(super) fn forget(tally: &Tally, contest: Uuid, number: Uuid) {
    let gone = redis_applications::redis(tally).map(|redis| redis.clear(ApplicationsKey { contest, number }));
    if !matches!(gone, Ok(Ok(()))) {
        tracing::debug!(?gone, "delete prepared applications");
    }
}

/// Stores a change of applications that are not in the store.
pub(super) fn record_external(
    tally: &Tally,
    id: &ContestId,
    observed: ContestRecord,
    what: ExternalChange,
) -> Result<ContestDone, Failure> {
    submit(tally, ContestRequest::by_clock(id, observed, Action::External(what), tally.now())?)
}

/// Clears the applications of a contest in Redis once none is needed; doing it again changes nothing.
pub(super) fn clear(tally: &Tally, id: &ContestId, record: ContestRecord) -> Result<(), Failure> {
    let ApplicationLocation::Redis(number) = record.kept else { return Ok(()) };
    if record.is_to_be_cleared() {
        let key = ApplicationsKey { contest: record.no, number };
        redis_applications::redis(tally)?.clear(key).map_err(redis_applications::failure)?;
        record_external(tally, id, record, ExternalChange::Cleared)?;
    }
    Ok(())
}

/// Applications in the store, beside the contest.
pub(super) struct StoredApplications<'a>(&'a Tally);

impl StoredApplications<'_> {
    fn attempt(request: &ApplicationRequest<'_>, by: ActorKind, action: Action) -> AttemptResult {
        let sender = (&request.actor.origin, request.idempotency);
        attempt(request.tally, request.id, request.record.clone(), (sender, None), (by, action))
    }
}

impl ApplicationStore for StoredApplications<'_> {
    fn apply(&self, request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult {
        if request.record.state == ContestState::Running {
            return join::join(request, player);
        }
        let by = request.actor.by(&request.record, ContestTrigger::Apply, Some(player))?;
        let handle = Handle::Player(player.clone());
        let needs = request.record.contest.needs_members();
        let member = if needs { self.0.store.ledger().member_of(&handle)? } else { None };
        let contest = &request.record.contest;
        let members = request.record.applications.accepted.saturating_add(1);
        let accept = contest.auto_accept.then(|| boards_free(request.tally, contest, members)).transpose()?;
        Self::attempt(request, by, Action::Apply { player: player.clone(), member, accept })
    }

    fn decide(&self, request: &ApplicationRequest<'_>, players: &[PlayerId], accept: bool) -> AttemptResult {
        let by = request.actor.by(&request.record, ContestTrigger::Decide, None)?;
        let rows = self.observe(&request.record, players)?;
        let count = u32::try_from(players.len()).unwrap_or(u32::MAX);
        let members = request.record.applications.accepted.saturating_add(count);
        let accept =
            accept.then(|| boards_free(request.tally, &request.record.contest, members)).transpose()?;
        Self::attempt(request, by, Action::Decide { rows, accept })
    }

    fn withdraw(&self, request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult {
        let by = request.actor.by(&request.record, ContestTrigger::Withdraw, Some(player))?;
        let mut observed = self.observe(&request.record, std::slice::from_ref(player))?;
        Self::attempt(request, by, Action::Withdraw(observed.remove(0)))
    }

    fn observe(
        &self,
        record: &ContestRecord,
        players: &[PlayerId],
    ) -> Result<Vec<ObservedApplication>, Failure> {
        let key = |player: &PlayerId| EntrantKey { contest: record.no, player: player.clone() };
        let keys = tally_lanes::keys_to_load(players.iter().map(key));
        let found = self.0.store.ledger().applications_of(&keys)?;
        let of = |player: &PlayerId| keys.binary_search(&key(player)).ok().and_then(|at| found[at]);
        Ok(players.iter().map(|player| (player.clone(), of(player))).collect())
    }

    fn page(
        &self,
        record: &ContestRecord,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, Failure> {
        Ok(self.0.store.ledger().list_applications(record.no, status, above, limit)?)
    }

    /// In one read, bounded by the capacity of the contest. A start needs all of them in memory, and each page by place merges
    /// the whole memtable.
    fn accepted(&self, record: &ContestRecord) -> Result<Vec<(PlayerId, Application)>, Failure> {
        Ok(self.page(record, Status::Accepted, 0, record.contest.capacity as usize)?.whole()?)
    }

    /// The transaction of the start detects a decision in between by the contest's revision.
    fn freeze(&self, _record: &ContestRecord) -> Result<(), Failure> {
        Ok(())
    }

    fn thaw(&self, _tally: &Tally, _id: &ContestId) -> Result<(), Failure> {
        Ok(())
    }
}
