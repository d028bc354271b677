//! The tables `contests`, `contest_applications` and `contest_members`.
//!
//! A transaction that changes anything of a contest holds its row, so it reads members and prizes without a lock. Not here:
//! the bytes of a contest (`contests`), and prizes.

use super::connect::Flavour;
use super::fault::damaged;
use super::lists::{all, due, listing};
use super::load::absent_of;
use super::payments::Payments;
use super::prizes::{self, Prizes};
use super::row::{Fields, ResultSets};
use super::series::Series;
use super::table::{self, Table, changed, pairs, written};
use super::text::{RowScript, Script};
use super::{MySqlStore, player};
use crate::codec::contests;
use crate::contest_reads::{self, Due, DueAfter};
use crate::contests::{ContestLoaded, ContestReadSet, ContestWriteSet, EntrantKey};
use crate::{Listing, StoreError, WindowKey};
use tally_rules::contest::application::Status;
use tally_rules::contest::{Application, ContestId, ContestPlayer, ContestRecord, ContestState, Payout};
use tally_rules::ledger::{HoldId, MemberId, Uuid};
use tally_rules::{Micros, PlayerId};

const REMOVE: &str =
    "DELETE contest_applications FROM contest_applications FORCE INDEX (PRIMARY) WHERE contest = ";

pub(super) struct Contests;

impl Table for Contests {
    const NAME: &'static str = "contests";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, `no`, state, body";
    const WRITTEN: &'static str = "id, `no`, state, due, body";
    const REPLACED: &'static [&'static str] = &["state", "due", "body"];
    const BLANK: &'static str = "'', '', NULL, ''";
    type Key = ContestId;
    type Value = ContestRecord;

    fn put_key(row: &mut RowScript<'_>, id: &ContestId) {
        row.bytes(id.as_str().as_bytes());
    }

    fn put(row: &mut RowScript<'_>, record: &ContestRecord) {
        row.bytes(&record.no.0).bytes(record.state.as_str().as_bytes());
        row.signed_or_null(record.due().map(|(at, _)| at.0)).bytes(&contests::encode(record));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(ContestId, ContestRecord), StoreError> {
        let bad = || damaged("contests", "a contest that cannot be");
        let id = ContestId::new(row.text()?).map_err(|_| bad())?;
        let (no, state) = (Uuid(row.fixed()?), ContestState::parse(row.text()?).ok_or_else(bad)?);
        Ok((id, contests::decode(no, state, row.bytes()?).ok_or_else(bad)?))
    }
}

pub(super) struct Applications;

impl Table for Applications {
    const NAME: &'static str = "contest_applications";
    const KEY: &'static str = "(contest, player)";
    const READ: &'static str = "contest, player, status, place, applied_at, member, hold";
    const REPLACED: &'static [&'static str] = &["status", "place", "applied_at", "member", "hold"];
    const BLANK: &'static str = "'', 0, 0, NULL, NULL";
    type Key = EntrantKey;
    type Value = Application;

    fn put_key(row: &mut RowScript<'_>, key: &EntrantKey) {
        row.bytes(&key.contest.0).bytes(key.player.as_bytes());
    }

    fn put(row: &mut RowScript<'_>, application: &Application) {
        row.bytes(application.status.as_str().as_bytes()).number(application.place);
        row.signed(application.applied_at.0);
        row.bytes_or_null(application.member.as_ref().map(|id| &id.0.0[..]));
        row.bytes_or_null(application.hold.as_ref().map(|id| &id.0.0[..]));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(EntrantKey, Application), StoreError> {
        let key = EntrantKey { contest: Uuid(row.fixed()?), player: player(row)? };
        let status = Status::parse(row.text()?);
        let status = status.ok_or_else(|| damaged("contest_applications", "an unknown status"))?;
        let (place, applied_at) = (row.number()?, Micros(row.signed()?));
        let member = row.maybe_fixed()?.map(|id| MemberId(Uuid(id)));
        let hold = row.maybe_fixed()?.map(|id| HoldId(Uuid(id)));
        Ok((key, Application { status, place, applied_at, member, hold }))
    }
}

pub(super) struct Members;

impl Table for Members {
    const NAME: &'static str = "contest_members";
    const KEY: &'static str = "(contest, player)";
    const READ: &'static str = "contest, player, place, division, member";
    const REPLACED: &'static [&'static str] = &["place", "division", "member"];
    const BLANK: &'static str = "";
    type Key = EntrantKey;
    type Value = ContestPlayer;

    fn put_key(row: &mut RowScript<'_>, key: &EntrantKey) {
        Applications::put_key(row, key);
    }

    fn put(row: &mut RowScript<'_>, enrolled: &ContestPlayer) {
        row.number(enrolled.place).signed_or_null(enrolled.division.map(i64::from));
        row.bytes_or_null(enrolled.member.as_ref().map(|id| &id.0.0[..]));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(EntrantKey, ContestPlayer), StoreError> {
        let key = EntrantKey { contest: Uuid(row.fixed()?), player: player(row)? };
        let (place, division) = (row.small()?, row.maybe_small()?);
        Ok((key, ContestPlayer { place, division, member: row.maybe_fixed()?.map(|id| MemberId(Uuid(id))) }))
    }
}

/// The number of statements for each list of a plan.
#[derive(Debug, Default)]
pub(super) struct ContestStatements {
    contests: usize,
    applications: usize,
    members: usize,
    series: usize,
    payments: usize,
}

/// Keys that had no row, each list in order.
#[derive(Debug, Default)]
pub(super) struct Absent {
    contests: Vec<ContestId>,
    applications: Vec<EntrantKey>,
    series: Vec<ContestId>,
    payments: Vec<WindowKey>,
}

impl Absent {
    pub(super) fn is_empty(&self) -> bool {
        let Self { contests, applications, series, payments } = self;
        contests.is_empty() && applications.is_empty() && series.is_empty() && payments.is_empty()
    }
}

/// Queries all rows of a plan, and locks them.
pub(super) fn select(script: &mut Script, plan: &ContestReadSet) -> ContestStatements {
    // Series come first: a transaction that creates a contest locks its series.
    ContestStatements {
        series: table::select::<Series>(script, &plan.series, true),
        payments: table::select::<Payments>(script, &plan.payments, true),
        contests: table::select::<Contests>(script, &plan.contests, true),
        applications: table::select::<Applications>(script, &plan.applications, true),
        // The lock of the contest keeps new ones away.
        members: table::select::<Members>(script, &plan.members, true),
    }
}

impl ContestStatements {
    pub(super) fn statements(&self) -> usize {
        self.series + self.payments + self.contests + self.applications + self.members
    }

    /// Reads the answer.
    pub(super) fn read(
        &self,
        results: &mut ResultSets,
        plan: &ContestReadSet,
    ) -> Result<(ContestLoaded, Absent), StoreError> {
        let loaded = ContestLoaded {
            series: table::read::<Series>(results, self.series, &plan.series)?,
            payments: table::read::<Payments>(results, self.payments, &plan.payments)?,
            contests: table::read::<Contests>(results, self.contests, &plan.contests)?,
            applications: table::read::<Applications>(results, self.applications, &plan.applications)?,
            members: table::read::<Members>(results, self.members, &plan.members)?,
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

/// Fails if a key that had no row, and gets none by the changes, has a row now.
pub(super) fn guard(script: &mut Script, changes: &ContestWriteSet, absent: &Absent) {
    table::guard::<Series>(script, &absent.series, changed(&changes.series));
    table::guard::<Payments>(script, &absent.payments, written(&changes.payments));
    table::guard::<Contests>(script, &absent.contests, written(&changes.contests));
    let applications = table::unwritten(&absent.applications, changed(&changes.applications));
    table::guard_rows::<Applications>(script, &applications);
    remove(script, applications.into_iter());
}

/// Writes changes. A key that had no row when it was read must have none now.
pub(super) fn write(script: &mut Script, changes: &ContestWriteSet, absent: &Absent, flavour: Flavour) {
    table::write::<Series>(script, changed(&changes.series), &absent.series, flavour);
    table::write::<Payments>(script, written(&changes.payments), &absent.payments, flavour);
    table::write::<Contests>(script, written(&changes.contests), &absent.contests, flavour);
    let applications = changed(&changes.applications);
    let gone = table::put_states::<Applications>(script, applications, &absent.applications, flavour);
    remove(script, gone.into_iter());
    table::insert::<Members>(script, pairs(&changes.members));
    table::upsert::<Prizes>(script, pairs(&changes.payouts), flavour);
}

/// Removes applications. The multi-table form of DELETE can name the index; otherwise MariaDB also considers the other one
/// for each key (60 ms for 240). One statement for each contest: 200 pairs took twice as long.
fn remove<'a>(script: &mut Script, keys: impl Iterator<Item = &'a EntrantKey>) {
    for some in keys.collect::<Vec<_>>().chunk_by(|a, b| a.contest == b.contest) {
        let head = |script: &mut Script| {
            script.sql(REMOVE).bytes(&some[0].contest.0).sql(" AND player IN (");
        };
        script.keys_headed(head, some, ")", |row, key| {
            row.bytes(key.player.as_bytes());
        });
    }
}

pub(super) fn by_player<T>(rows: Vec<(EntrantKey, T)>) -> Vec<(PlayerId, T)> {
    rows.into_iter().map(|(key, row)| (key.player, row)).collect()
}

/// Queries contests of one state or of all, in order of names, from the first one after `after`.
pub(super) fn list(state: Option<ContestState>, after: Option<&ContestId>, limit: usize) -> Script {
    let mut script = Script::default();
    script.sql("SELECT ").sql(Contests::READ).sql(" FROM contests").sql(if state.is_some() {
        " FORCE INDEX (contests_by_state)"
    } else {
        ""
    });
    script.sql(" WHERE id > ").bytes(after.map_or(b"", |id| id.as_str().as_bytes()));
    if let Some(state) = state {
        script.sql(" AND state = ").bytes(state.as_str().as_bytes());
    }
    script.sql(" ORDER BY id LIMIT ").number(limit as u64).end();
    script
}

/// Queries members of a contest in order of players.
pub(super) fn members(contest: Uuid, after: Option<&PlayerId>, limit: usize) -> Script {
    by_players::<Members>(contest, after, limit)
}

fn by_players<T: Table>(contest: Uuid, after: Option<&PlayerId>, limit: usize) -> Script {
    let mut script = Script::default();
    table::all::<T>(&mut script).sql(" WHERE contest = ").bytes(&contest.0);
    script.sql(" AND player > ").bytes(after.map_or(b"", PlayerId::as_bytes));
    script.sql(" ORDER BY player LIMIT ").number(limit as u64).end();
    script
}

/// Queries applications of a contest in order of players.
pub(super) fn applications(contest: Uuid, after: Option<&PlayerId>, limit: usize) -> Script {
    by_players::<Applications>(contest, after, limit)
}

impl contest_reads::ContestReads for MySqlStore {
    fn contest(&self, id: &ContestId) -> Result<Option<ContestRecord>, StoreError> {
        table::get_one::<Contests>(&self.pool, id)
    }

    fn list_contests(
        &self,
        state: Option<ContestState>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, ContestRecord)>, StoreError> {
        listing(self, "contests", limit, |limit| list(state, after, limit), Contests::decode)
    }

    fn due_contests(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        due(self, ("contests", "contests_by_due"), (now, after), limit)
    }

    fn count_contests(&self, most: usize) -> Result<Vec<usize>, StoreError> {
        let mut script = Script::default();
        for (at, state) in ContestState::ALL.iter().enumerate() {
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
        let query = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT ").sql(Applications::READ).sql(" FROM contest_applications");
            script.sql(" FORCE INDEX (applications_by_place) WHERE contest = ");
            script.bytes(&contest.0).sql(" AND status = ").bytes(status.as_str().as_bytes());
            script.sql(" AND place > ").number(above);
            script.sql(" ORDER BY place LIMIT ").number(limit as u64).end();
            script
        };
        let rows = listing(self, "contest_applications", limit, query, Applications::decode)?;
        Ok(rows.map(|(key, row)| (key.player, row)))
    }

    fn first_applications(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError> {
        let script = applications(contest, after, limit);
        Ok(by_player(all(self, &script, "contest_applications", Applications::decode)?))
    }

    fn applications_of(&self, keys: &[EntrantKey]) -> Result<Vec<Option<Application>>, StoreError> {
        table::get::<Applications>(&self.pool, keys)
    }

    fn list_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Listing<(PlayerId, ContestPlayer)>, StoreError> {
        let query = |limit| members(contest, after, limit);
        Ok(listing(self, "contest_members", limit, query, Members::decode)?
            .map(|(key, row)| (key.player, row)))
    }

    fn enrolled(&self, keys: &[EntrantKey]) -> Result<Vec<Option<ContestPlayer>>, StoreError> {
        table::get::<Members>(&self.pool, keys)
    }

    fn list_payouts(
        &self,
        contest: Uuid,
        from: u32,
        limit: usize,
    ) -> Result<Listing<(u32, Payout)>, StoreError> {
        let query = |limit| prizes::select(contest, from, limit);
        listing(self, "contest_prizes", limit, query, |row| {
            prizes::decode(row).map_err(|error| prizes::named(error, contest, row))
        })
    }
}
