//! Applications in Redis: this server decides by the rules on what it read in one round trip. A second one writes, and changes
//! nothing if the read is outdated. Blocks.
//!
//! Redis does not wait for the contest's row, so a start freezes the applications before it reads them; no decision is made
//! from then on. If the start succeeds, the contest is no longer open, which is the reply then. If not, it thaws them: it
//! raises the contest's revision, so that no such start can succeed any more, and then decisions continue. A request that finds
//! them frozen by a server that has ended waits a while and thaws them itself. Applying does not wait: it may count as having
//! come just before the start.
//!
//! The outcome of a request with an idempotency key is stored beside the applications, in the same change, for as long as other
//! outcomes. Each change has a unique mark, which identifies a change whose reply was lost.
//!
//! A decision leaves its row in the audit log before Redis has it: a decision that was made has a row, whatever ends in between.
//! So a row may be of a decision that Redis has refused, or that was made on the next try with other players.

mod at_once;

use super::actions::{Action, ActionResult, ContestDone, ExternalChange, ObservedApplication, detail_of};
use super::application_store::{ApplicationRequest, ApplicationStore, AttemptResult, record_external};
use super::execute::{attempt, find};
use super::start::boards_free;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;
use tally_ranking::RankingError;
use tally_ranking::redis::RedisApplications;
use tally_ranking::redis::applications::{
    ApplicationRow, ApplicationsChange, ApplicationsKey, ApplicationsRead, ChangeResult, StoredApplication,
    read,
};
use tally_rules::contest::record::ApplicationLocation as Place;
use tally_rules::contest::{
    ActorKind, Application, ContestId, ContestRecord, ContestState, ContestTrigger, Status, state,
};
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestFingerprint};
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::Listing;

/// Between two checks whether a start has ended.
const PAUSE: Duration = Duration::from_millis(25);
/// Checks before a start counts as ended. A running start begins again.
const FREEZE_CHECKS: u32 = 80;

/// Accepted applications of one read.
const PAGE: usize = 1_000;

pub(super) struct ApplicationsInRedis<'a> {
    pub(super) redis: &'a RedisApplications,
    pub(super) faults: &'a AtomicU64,
    pub(super) key: ApplicationsKey,
}

/// The key of a contest's applications in Redis.
pub(super) fn redis(tally: &Tally) -> Result<&RedisApplications, Failure> {
    let none =
        || Fault::ApplicationsUnavailable("this server knows no Redis (setting `applications.url`)".into());
    Ok(tally.settings.applications.as_ref().ok_or_else(none)?)
}

/// A failure of Redis, as a use case has it.
pub(super) fn failure(error: RankingError) -> Failure {
    match error {
        RankingError::Lost => Rejection::ApplicationsLost.into(),
        RankingError::Unknown(why) => Fault::OutcomeUnknown(why).into(),
        error => Fault::ApplicationsUnavailable(error.to_string()).into(),
    }
}

/// Whether a contest has lost its applications.
pub(super) fn is_lost(tally: &Tally, record: &ContestRecord) -> Result<bool, Failure> {
    let Place::Redis(number) = record.kept else { return Ok(record.kept == Place::Lost) };
    match redis(tally)?.read(ApplicationsKey { contest: record.no, number }, &[]) {
        Ok(_) => Ok(false),
        Err(RankingError::Lost) => Ok(true),
        Err(error) => Err(failure(error)),
    }
}

/// The stored outcome of a request that Redis may have.
pub(super) fn recall(request: &ApplicationRequest<'_>) -> Result<Option<ContestDone>, Failure> {
    let (Some(idempotency), Some(redis)) = (request.idempotency, &request.tally.settings.applications) else {
        return Ok(None);
    };
    if request.record.contest.needs_members() {
        return Ok(None);
    }
    let kept = redis.recall(request.record.no, &idempotency.key).map_err(failure)?;
    kept.map(|kept| replayed(request, idempotency, &kept)).transpose()
}

/// A request that was done before.
fn replayed(
    request: &ApplicationRequest<'_>,
    idempotency: &IdempotencyKey,
    kept: &[u8],
) -> Result<ContestDone, Failure> {
    let broken = || Fault::Broken("the outcome that Redis kept of a request cannot be decoded".into());
    let (fingerprint, _, application) = split(kept).ok_or_else(broken)?;
    let RequestFingerprint { made, other, .. } = idempotency.fingerprint;
    if fingerprint != shown(&made) && other.is_none_or(|(print, _)| fingerprint != shown(&print)) {
        return Err(Rejection::IdempotencyKeyReused.into());
    }
    let result = application.map_or(ActionResult::Nothing, ActionResult::Applied);
    Ok(ContestDone { record: Box::new(request.record.clone()), replayed: true, state_changed: false, result })
}

/// The outcome of a request as bytes: its fingerprint, the mark of its change, and the application it made.
fn split(kept: &[u8]) -> Option<(&str, &str, Option<Application>)> {
    let (head, body) = std::str::from_utf8(kept).ok()?.split_once('|')?;
    let (fingerprint, mark) = head.split_once(':')?;
    let application = if body.is_empty() { None } else { Some(read(body.as_bytes())?.application) };
    Some((fingerprint, mark, application))
}

fn shown(fingerprint: &Fingerprint) -> String {
    fingerprint.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name that no other change has.
fn new_mark() -> Result<String, Failure> {
    let number =
        getrandom::u64().map_err(|error| Fault::Broken(format!("no random numbers for a mark: {error}")))?;
    Ok(format!("{number:016x}"))
}

fn done(request: &ApplicationRequest<'_>, result: ActionResult) -> AttemptResult {
    let record = Box::new(request.record.clone());
    Ok(Some(ContestDone { record, replayed: false, state_changed: false, result }))
}

/// How many applications there may be before a change, and how many accepted ones.
#[derive(Clone, Copy, Default)]
struct Limits {
    most: Option<u32>,
    accepted: Option<u32>,
}

enum Outcome {
    /// It was made, now or by a try whose reply was lost.
    Changed(Option<Application>),
    /// Its request was done before.
    Before(ContestDone),
    Frozen,
    Conflict,
}

impl ApplicationsInRedis<'_> {
    pub(super) fn counting_faults<T>(&self, answer: Result<T, RankingError>) -> Result<T, Failure> {
        use RankingError::{Refused, Unavailable, Unknown, Untrusted};
        if matches!(answer, Err(Unavailable(_) | Unknown(_) | Refused(_) | Untrusted(_))) {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        answer.map_err(failure)
    }

    fn read(&self, players: &[PlayerId]) -> Result<ApplicationsRead, Failure> {
        self.counting_faults(self.redis.read(self.key, players))
    }

    fn change(
        &self,
        request: &ApplicationRequest<'_>,
        revision: Option<u64>,
        limits: Limits,
        rows: Vec<ApplicationRow>,
    ) -> Result<Outcome, Failure> {
        let mark = new_mark()?;
        let keep =
            Duration::from_micros(request.tally.settings.idempotency_keep_micros.max(1000).unsigned_abs());
        let idempotent = request.idempotency.map(|one| {
            (one.key.clone(), format!("{}:{mark}|", shown(&one.fingerprint.made)).into_bytes(), keep)
        });
        let of: Vec<PlayerId> = rows.iter().take(1).map(|row| row.player.clone()).collect();
        let Limits { most, accepted } = limits;
        let change = ApplicationsChange { mark, revision, most, accepted, request: idempotent, rows };
        let mark = &change.mark;
        match (self.counting_faults(self.redis.change(self.key, &change))?, request.idempotency) {
            (ChangeResult::Done(now), _) => Ok(Outcome::Changed(now.into_iter().next().flatten())),
            (ChangeResult::Before(kept), Some(idempotency)) => match split(&kept) {
                Some((_, by, application)) if by == mark => Ok(Outcome::Changed(application)),
                _ => replayed(request, idempotency, &kept).map(Outcome::Before),
            },
            (ChangeResult::Frozen, _) => Ok(Outcome::Frozen),
            (ChangeResult::Conflict | ChangeResult::Before(_), _) => {
                // It may conflict with itself: sent twice, because the first reply was lost.
                let now = self.read(&of)?;
                let present = now.rows.into_iter().next().flatten();
                match (revision.is_some() && now.last == *mark, present) {
                    (true, present) => Ok(Outcome::Changed(present.map(|kept| kept.application))),
                    (false, Some(kept)) if kept.mark == *mark => Ok(Outcome::Changed(Some(kept.application))),
                    _ => Ok(Outcome::Conflict),
                }
            }
        }
    }

    /// A decision, with its outcome if it was made.
    fn decision(
        &self,
        request: &ApplicationRequest<'_>,
        observed: &ApplicationsRead,
        rows: Vec<ApplicationRow>,
        result: ActionResult,
    ) -> AttemptResult {
        if observed.frozen {
            return self.wait(request);
        }
        match self.change(request, Some(observed.revision), Limits::default(), rows)? {
            Outcome::Changed(_) => done(request, result),
            Outcome::Before(before) => Ok(Some(before)),
            Outcome::Frozen => self.wait(request),
            Outcome::Conflict => Ok(None),
        }
    }

    /// Waits for a start that has frozen the applications, and thaws them if it does not end.
    fn wait(&self, request: &ApplicationRequest<'_>) -> AttemptResult {
        for _ in 0..FREEZE_CHECKS {
            sleep(PAUSE);
            let now = find(request.tally, request.id)?;
            if (now.state, now.kept) != (ContestState::Open, request.record.kept) || !self.read(&[])?.frozen {
                return Ok(None);
            }
        }
        match self.thaw(request.tally, request.id) {
            // The next try gets the reply.
            Ok(()) | Err(Failure::Rejected(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// Leaves the row of a decision in the audit log; `false` if the contest has changed. A try that decides the same as the one
/// before leaves no second row.
fn note(
    request: &ApplicationRequest<'_>,
    by: ActorKind,
    accept: bool,
    detail: Arc<str>,
) -> Result<bool, Failure> {
    if request.noted.borrow().as_ref() == Some(&detail) {
        return Ok(true);
    }
    let (action, sender) =
        (Action::NoteDecision { accept, detail: Arc::clone(&detail) }, (&request.actor.origin, None));
    let stored = attempt(request.tally, request.id, request.record.clone(), (sender, None), (by, action))?;
    if stored.is_some() {
        request.noted.replace(Some(detail));
    }
    Ok(stored.is_some())
}

/// What an application becomes.
fn row(
    player: &PlayerId,
    observed: Option<StoredApplication>,
    to: Option<Status>,
    now: Micros,
) -> ApplicationRow {
    let applied_at = observed.as_ref().map_or(now, |observed| observed.application.applied_at);
    ApplicationRow { player: player.clone(), seen: observed, to, applied_at }
}

impl ApplicationStore for ApplicationsInRedis<'_> {
    fn apply(&self, request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult {
        if let Some(before) = recall(request)? {
            return Ok(Some(before));
        }
        let by = request.actor.by(&request.record, ContestTrigger::Apply, Some(player))?;
        state::transition(request.record.state, ContestTrigger::Apply, by)?;
        request.record.check_may_apply(request.tally.clock.read().expected())?;
        let is_staff = request.record.contest.is_staff(player);
        let most = request.tally.settings.ledger.contests.applications_max;
        if !is_staff {
            if request.record.contest.auto_accept
                && let Some(done) = self.apply_and_accept(request, player, most)?
            {
                return Ok(done);
            }
            let limits = Limits { most: Some(most.saturating_sub(1)), accepted: None };
            // Most players have not applied, so that is not read before.
            let rows = vec![row(player, None, Some(Status::Pending), request.tally.now())];
            match self.change(request, None, limits, rows)? {
                Outcome::Changed(Some(application)) => {
                    return done(request, ActionResult::Applied(application));
                }
                Outcome::Before(before) => return Ok(Some(before)),
                Outcome::Changed(None) | Outcome::Frozen | Outcome::Conflict => {}
            }
        }
        let observed = self.read(std::slice::from_ref(player))?;
        let present = observed.rows.into_iter().next().flatten();
        observed.counts.may_apply(present.map(|kept| kept.application).as_ref(), is_staff, most)?;
        Ok(None)
    }

    fn decide(&self, request: &ApplicationRequest<'_>, players: &[PlayerId], accept: bool) -> AttemptResult {
        if let Some(before) = recall(request)? {
            return Ok(Some(before));
        }
        let by = request.actor.by(&request.record, ContestTrigger::Decide, None)?;
        state::transition(request.record.state, ContestTrigger::Decide, by)?;
        let observed = self.read(players)?;
        let (mut counts, contest) = (observed.counts, &request.record.contest);
        let count = if accept { u32::try_from(players.len()).unwrap_or(u32::MAX) } else { 0 };
        let room = contest.room(boards_free(request.tally, contest, counts.accepted.saturating_add(count))?);
        let (mut results, mut rows) = (Vec::with_capacity(players.len()), Vec::<ApplicationRow>::new());
        for (player, kept) in players.iter().zip(&observed.rows) {
            let twice = rows.iter().find(|row| row.player == *player).and_then(|row| row.to);
            let present = kept.as_ref().map(|kept| Application {
                status: twice.unwrap_or(kept.application.status),
                ..kept.application
            });
            let changed = match accept {
                true => counts.accept(present.as_ref(), contest.is_staff(player), room),
                false => counts.reject(present.as_ref()),
            };
            results.push(changed.map(|changed| {
                let status = changed.now.map_or(Status::Rejected, |now| now.status);
                if present.map(|present| present.status) != Some(status) {
                    rows.push(row(player, kept.clone(), Some(status), request.tally.now()));
                }
                status
            }));
        }
        if rows.is_empty() && request.idempotency.is_none() {
            return done(request, ActionResult::Decided(results));
        }
        if !rows.is_empty() && !observed.frozen {
            let detail = detail_of(players.iter(), &results);
            if !detail.map_or(Ok(true), |detail| note(request, by, accept, detail))? {
                return Ok(None);
            }
        }
        self.decision(request, &observed, rows, ActionResult::Decided(results))
    }

    fn withdraw(&self, request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult {
        if let Some(before) = recall(request)? {
            return Ok(Some(before));
        }
        let by = request.actor.by(&request.record, ContestTrigger::Withdraw, Some(player))?;
        state::transition(request.record.state, ContestTrigger::Withdraw, by)?;
        let mut observed = self.read(std::slice::from_ref(player))?;
        let kept = observed.rows.pop().flatten();
        observed.counts.withdraw(kept.as_ref().map(|kept| &kept.application))?;
        let rows = vec![row(player, kept, None, request.tally.now())];
        self.decision(request, &observed, rows, ActionResult::Nothing)
    }

    fn observe(&self, record: &ContestRecord, of: &[PlayerId]) -> Result<Vec<ObservedApplication>, Failure> {
        // A player that a start left out does not take part.
        if record.state != ContestState::Open {
            return Ok(of.iter().map(|player| (player.clone(), None)).collect());
        }
        let rows = self.read(of)?.rows.into_iter().map(|kept| kept.map(|kept| kept.application));
        Ok(of.iter().cloned().zip(rows).collect())
    }

    fn page(
        &self,
        _record: &ContestRecord,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, Failure> {
        self.counting_faults(self.redis.page(self.key, status, above, limit)).map(Listing::from)
    }

    fn accepted(&self, record: &ContestRecord) -> Result<Vec<(PlayerId, Application)>, Failure> {
        let (mut all, mut above) = (Vec::new(), 0);
        loop {
            let page = self.page(record, Status::Accepted, above, PAGE)?.whole()?;
            let found = page.len();
            above = page.last().map_or(above, |(_, application)| application.place);
            all.extend(page);
            if found < PAGE {
                return Ok(all);
            }
        }
    }

    fn freeze(&self, record: &ContestRecord) -> Result<(), Failure> {
        self.counting_faults(self.redis.freeze(self.key, record.revision))
    }

    fn thaw(&self, tally: &Tally, id: &ContestId) -> Result<(), Failure> {
        match record_external(tally, id, find(tally, id)?, ExternalChange::Thaw) {
            Ok(done) => self.counting_faults(self.redis.thaw(self.key, done.record.revision)),
            // It has started after all.
            Err(Failure::Rejected(Rejection::ContestState(_))) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
