//! The tables `contests`, `contest_applications` and `contest_members`.
//!
//! Everything that changes of a contest is written by a transaction that holds its row, so members and prizes are read
//! before it without a lock. Not here: a contest's bytes (`contests`), and prizes.

use super::connect::Flavour;
use super::fault::damaged;
use super::lists::{all, due, listing};
use super::load::absent_of;
use super::row::{Answers, Fields};
use super::text::{Row, Script, keys_end};
use super::{MySqlStore, found, payments, player, prizes, series};
use crate::contest_reads::{Contests, Due, DueAfter};
use crate::contests::{self, ContestChanges, ContestLoaded, ContestPlan, EntrantKey};
use crate::{Listing, PartKey, StoreError};
use tally_rules::contest::application::Status;
use tally_rules::contest::{Application, ContestId, ContestMember, Payout, Record, State};
use tally_rules::ledger::{HoldId, MemberId, Uuid};
use tally_rules::{Micros, PlayerId};

const CONTEST: &str = "SELECT id, `no`, state, body FROM contests";
const APPLICATION: &str =
    "SELECT contest, player, status, place, applied_at, member, hold FROM contest_applications";
const REMOVE: &str =
    "DELETE contest_applications FROM contest_applications FORCE INDEX (PRIMARY) WHERE contest = ";
const MEMBER: &str = "SELECT contest, player, place, division, member FROM contest_members";

/// How many statements ask for each list of a plan.
#[derive(Debug, Default)]
pub(super) struct Asked {
    contests: usize,
    applications: usize,
    series: usize,
    payments: usize,
}

/// Keys that had no row, each list in order.
#[derive(Debug, Default)]
pub(super) struct Absent {
    contests: Vec<ContestId>,
    applications: Vec<EntrantKey>,
    series: Vec<ContestId>,
    payments: Vec<PartKey>,
}

impl Absent {
    pub(super) fn is_empty(&self) -> bool {
        let Self { contests, applications, series, payments } = self;
        contests.is_empty() && applications.is_empty() && series.is_empty() && payments.is_empty()
    }
}

/// Asks for everything of a plan, and locks it.
pub(super) fn ask(script: &mut Script, plan: &ContestPlan) -> Asked {
    // Series first: who makes a contest holds its series.
    Asked {
        series: series::select(script, &plan.series, true),
        payments: payments::select(script, &plan.payments, true),
        contests: select(script, &plan.contests, true),
        applications: select_applications(script, &plan.applications, true),
    }
}

impl Asked {
    pub(super) fn statements(&self) -> usize {
        self.series + self.payments + self.contests + self.applications
    }

    /// Reads the answer.
    pub(super) fn read(
        &self,
        answers: &mut Answers,
        plan: &ContestPlan,
    ) -> Result<(ContestLoaded, Absent), StoreError> {
        let loaded = ContestLoaded {
            series: found(answers, self.series, "contest_series", &plan.series, series::decode)?,
            payments: found(answers, self.payments, "period_payments", &plan.payments, payments::decode)?,
            contests: found(answers, self.contests, "contests", &plan.contests, decode)?,
            applications: found(
                answers,
                self.applications,
                "contest_applications",
                &plan.applications,
                decode_application,
            )?,
        };
        let absent = Absent {
            series: absent_of(&plan.series, &loaded.series),
            payments: absent_of(&plan.payments, &loaded.payments),
            contests: absent_of(&plan.contests, &loaded.contests),
            applications: absent_of(&plan.applications, &loaded.applications),
        };
        Ok((loaded, absent))
    }
}

fn select(script: &mut Script, keys: &[ContestId], locking: bool) -> usize {
    let head = "SELECT id, `no`, state, body FROM contests FORCE INDEX (PRIMARY) WHERE id IN (";
    script.keys(head, keys, keys_end(locking), put_id)
}

fn select_applications(script: &mut Script, keys: &[EntrantKey], locking: bool) -> usize {
    script.keys(
        "SELECT contest, player, status, place, applied_at, member, hold FROM contest_applications \
         FORCE INDEX (PRIMARY) WHERE (contest, player) IN (",
        keys,
        keys_end(locking),
        put_entrant,
    )
}

fn put_id(row: &mut Row<'_>, id: &ContestId) {
    row.bytes(id.as_str().as_bytes());
}

fn put_entrant(row: &mut Row<'_>, key: &EntrantKey) {
    row.bytes(&key.contest.0).bytes(key.player.as_bytes());
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(ContestId, Record), StoreError> {
    let bad = || damaged("contests", "a contest that cannot be");
    let id = ContestId::new(row.text()?).map_err(|_| bad())?;
    let (no, state) = (Uuid(row.fixed()?), State::parse(row.text()?).ok_or_else(bad)?);
    Ok((id, contests::decode(no, state, row.bytes()?).ok_or_else(bad)?))
}

pub(super) fn decode_application(row: &mut Fields<'_>) -> Result<(EntrantKey, Application), StoreError> {
    let key = EntrantKey { contest: Uuid(row.fixed()?), player: player(row)? };
    let status = Status::parse(row.text()?);
    let status = status.ok_or_else(|| damaged("contest_applications", "a status that is none"))?;
    let (place, applied_at) = (row.number()?, Micros(row.signed()?));
    let member = row.maybe_fixed()?.map(|id| MemberId(Uuid(id)));
    let hold = row.maybe_fixed()?.map(|id| HoldId(Uuid(id)));
    Ok((key, Application { status, place, applied_at, member, hold }))
}

pub(super) fn decode_member(row: &mut Fields<'_>) -> Result<(EntrantKey, ContestMember), StoreError> {
    let key = EntrantKey { contest: Uuid(row.fixed()?), player: player(row)? };
    let (place, division) = (row.small()?, row.maybe_small()?);
    Ok((key, ContestMember { place, division, member: row.maybe_fixed()?.map(|id| MemberId(Uuid(id))) }))
}

const CONTEST_HEAD: &str = "INSERT INTO contests (id, `no`, state, due, body) VALUES ";
const APPLICATION_HEAD: &str = "INSERT INTO contest_applications (contest, player, status, place, applied_at, \
     member, hold) VALUES ";

/// Fails where a key that had no row, and is not given one by the changes, has one by now.
pub(super) fn guard(script: &mut Script, changes: &ContestChanges, absent: &Absent) {
    let is_new = |id: &&ContestId| {
        let at = changes.series.binary_search_by(|(other, _)| other.cmp(id));
        at.is_ok_and(|at| changes.series[at].1.is_some())
    };
    series::guard(script, absent.series.iter().filter(|id| !is_new(id)));
    let is_new = |key: &&PartKey| changes.payments.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
    payments::guard(script, absent.payments.iter().filter(|key| !is_new(key)));
    let is_new = |id: &ContestId| changes.contests.binary_search_by(|(other, _)| other.cmp(id)).is_ok();
    let contests = absent.contests.iter().filter(|id| !is_new(id));
    script.rows(CONTEST_HEAD, contests.clone(), "", |row, id| {
        put_id(row, id);
        row.sql("'', '', NULL, ''");
    });
    script.keys("DELETE FROM contests WHERE id IN (", contests, ")", put_id);
    let is_new = |key: &EntrantKey| {
        let at = changes.applications.binary_search_by(|(other, _)| other.cmp(key));
        at.is_ok_and(|at| changes.applications[at].1.is_some())
    };
    let applications = absent.applications.iter().filter(|key| !is_new(key));
    script.rows(APPLICATION_HEAD, applications.clone(), "", |row, key| {
        put_entrant(row, key);
        row.sql("'', 0, 0, NULL, NULL");
    });
    remove(script, applications);
}

/// Writes changes. What was not there when it was read must not be there now.
pub(super) fn write(script: &mut Script, changes: &ContestChanges, absent: &Absent, flavour: Flavour) {
    let is_new = |id: &ContestId| absent.series.binary_search(id).is_ok();
    series::write(script, &changes.series, is_new, flavour);
    let is_new = |key: &PartKey| absent.payments.binary_search(key).is_ok();
    payments::write(script, &changes.payments, is_new, flavour);
    let put = |row: &mut Row<'_>, (id, record): &(ContestId, Record)| {
        put_id(row, id);
        row.bytes(&record.no.0).bytes(record.state.as_str().as_bytes());
        row.signed_or_null(record.due().map(|(at, _)| at.0)).bytes(&contests::encode(record));
    };
    let is_new = |id: &ContestId| absent.contests.binary_search(id).is_ok();
    script.rows(CONTEST_HEAD, changes.contests.iter().filter(|(id, _)| is_new(id)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["state", "due", "body"]);
    script.upserts(CONTEST_HEAD, changes.contests.iter().filter(|(id, _)| !is_new(id)), tail, put);
    write_applications(script, &changes.applications, absent, flavour);
    let head = "INSERT INTO contest_members (contest, player, place, division, member) VALUES ";
    script.rows(head, &changes.members, "", |row, (key, enrolled)| {
        put_entrant(row, key);
        row.number(enrolled.place).signed_or_null(enrolled.division.map(i64::from));
        row.bytes_or_null(enrolled.member.as_ref().map(|id| &id.0.0[..]));
    });
    prizes::write(script, &changes.payouts, flavour);
}

fn write_applications(
    script: &mut Script,
    rows: &[(EntrantKey, Option<Application>)],
    absent: &Absent,
    flavour: Flavour,
) {
    let is_new = |key: &EntrantKey| absent.applications.binary_search(key).is_ok();
    let put = |row: &mut Row<'_>, (key, application): (&EntrantKey, &Application)| {
        put_entrant(row, key);
        row.bytes(application.status.as_str().as_bytes()).number(application.place);
        row.signed(application.applied_at.0);
        row.bytes_or_null(application.member.as_ref().map(|id| &id.0.0[..]));
        row.bytes_or_null(application.hold.as_ref().map(|id| &id.0.0[..]));
    };
    let there = || rows.iter().filter_map(|(key, row)| Some((key, row.as_ref()?)));
    script.rows(APPLICATION_HEAD, there().filter(|(key, _)| is_new(key)), "", put);
    let tail = |script: &mut Script| {
        flavour.replace(script, &["status", "place", "applied_at", "member", "hold"]);
    };
    script.upserts(APPLICATION_HEAD, there().filter(|(key, _)| !is_new(key)), tail, put);
    let gone = rows.iter().filter(|(key, row)| row.is_none() && !is_new(key)).map(|(key, _)| key);
    remove(script, gone);
}

/// Removes applications. The index is named, by the form for several tables: else MariaDB weighs each key against the other one
/// too (60 ms for 240). A statement for each contest: 200 pairs took twice as long.
fn remove<'a>(script: &mut Script, keys: impl Iterator<Item = &'a EntrantKey>) {
    for some in keys.collect::<Vec<_>>().chunk_by(|a, b| a.contest == b.contest) {
        let head = (REMOVE, &some[0].contest.0[..], " AND player IN (");
        script.keys_of(head, some, ")", |row, key| {
            row.bytes(key.player.as_bytes());
        });
    }
}

pub(super) fn by_player<T>(rows: Vec<(EntrantKey, T)>) -> Vec<(PlayerId, T)> {
    rows.into_iter().map(|(key, row)| (key.player, row)).collect()
}

/// Asks for contests of one state or of all, in order of names, from the first one after `after`.
pub(super) fn list(state: Option<State>, after: Option<&ContestId>, limit: usize) -> Script {
    let mut script = Script::default();
    script.sql(CONTEST).sql(if state.is_some() { " FORCE INDEX (contests_by_state)" } else { "" });
    script.sql(" WHERE id > ").bytes(after.map_or(b"", |id| id.as_str().as_bytes()));
    if let Some(state) = state {
        script.sql(" AND state = ").bytes(state.as_str().as_bytes());
    }
    script.sql(" ORDER BY id LIMIT ").number(limit as u64).end();
    script
}

/// Asks for members of a contest in order of players.
pub(super) fn members(contest: Uuid, after: Option<&PlayerId>, limit: usize) -> Script {
    by_players(MEMBER, contest, after, limit)
}

fn by_players(select: &'static str, contest: Uuid, after: Option<&PlayerId>, limit: usize) -> Script {
    let mut script = Script::default();
    script.sql(select).sql(" FORCE INDEX (PRIMARY) WHERE contest = ").bytes(&contest.0);
    script.sql(" AND player > ").bytes(after.map_or(b"", PlayerId::as_bytes));
    script.sql(" ORDER BY player LIMIT ").number(limit as u64).end();
    script
}

/// Asks for applications of a contest in order of players.
pub(super) fn applications(contest: Uuid, after: Option<&PlayerId>, limit: usize) -> Script {
    by_players(APPLICATION, contest, after, limit)
}

impl Contests for MySqlStore {
    fn contest(&self, id: &ContestId) -> Result<Option<Record>, StoreError> {
        let mut script = Script::default();
        select(&mut script, std::slice::from_ref(id), false);
        Ok(all(self, &script, "contests", decode)?.pop().map(|(_, record)| record))
    }

    fn list_contests(
        &self,
        state: Option<State>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, Record)>, StoreError> {
        listing(self, "contests", limit, |limit| list(state, after, limit), decode)
    }

    fn due_contests(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        due(self, ("contests", "contests_by_due"), (now, after), limit)
    }

    fn count_contests(&self, most: usize) -> Result<Vec<usize>, StoreError> {
        let mut script = Script::default();
        for (at, state) in State::ALL.iter().enumerate() {
            script.sql(if at == 0 { "" } else { " UNION ALL " });
            script.sql("SELECT ").number(at as u64).sql(" AS state, COUNT(*) FROM (SELECT 1 FROM contests");
            script.sql(" FORCE INDEX (contests_by_state) WHERE state = ").bytes(state.as_str().as_bytes());
            script.sql(" LIMIT ").number(most as u64).sql(") AS counted");
        }
        script.sql(" ORDER BY state").end();
        let count = |row: &mut Fields<'_>| row.number().and_then(|_| row.number());
        let counts = all(self, &script, "contests", count)?;
        Ok(counts.into_iter().map(|count| usize::try_from(count).unwrap_or(usize::MAX)).collect())
    }

    fn list_applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, StoreError> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql(APPLICATION).sql(" FORCE INDEX (applications_by_place) WHERE contest = ");
            script.bytes(&contest.0).sql(" AND status = ").bytes(status.as_str().as_bytes());
            script.sql(" AND place > ").number(above);
            script.sql(" ORDER BY place LIMIT ").number(limit as u64).end();
            script
        };
        let rows = listing(self, "contest_applications", limit, asked, decode_application)?;
        Ok(rows.map(|(key, row)| (key.player, row)))
    }

    fn first_applications(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError> {
        let script = applications(contest, after, limit);
        Ok(by_player(all(self, &script, "contest_applications", decode_application)?))
    }

    fn applications_of(&self, keys: &[EntrantKey]) -> Result<Vec<Option<Application>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut script = Script::default();
        let statements = select_applications(&mut script, keys, false);
        found(&mut self.pool.ask(&script)?, statements, "contest_applications", keys, decode_application)
    }

    fn list_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Listing<(PlayerId, ContestMember)>, StoreError> {
        let asked = |limit| members(contest, after, limit);
        Ok(listing(self, "contest_members", limit, asked, decode_member)?.map(|(key, row)| (key.player, row)))
    }

    fn enrolled(&self, keys: &[EntrantKey]) -> Result<Vec<Option<ContestMember>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut script = Script::default();
        let statements = script.keys(
            "SELECT contest, player, place, division, member FROM contest_members FORCE INDEX (PRIMARY) \
             WHERE (contest, player) IN (",
            keys,
            ")",
            put_entrant,
        );
        found(&mut self.pool.ask(&script)?, statements, "contest_members", keys, decode_member)
    }

    fn list_payouts(
        &self,
        contest: Uuid,
        from: u32,
        limit: usize,
    ) -> Result<Listing<(u32, Payout)>, StoreError> {
        let asked = |limit| prizes::select(contest, from, limit);
        listing(self, "contest_prizes", limit, asked, |row| {
            prizes::decode(row).map_err(|error| prizes::named(error, contest, row))
        })
    }
}
