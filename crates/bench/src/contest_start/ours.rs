//! The service in this process. In one transaction a start checks each application, makes members and the leaderboard, and
//! changes the state; then it clears the applications.

use super::{Place, Stands};
use crate::error::{During, Error};
use crate::ours;
use std::path::Path;
use std::sync::Arc;
use tally_load::player;
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::{Application, Contest, ContestId, ContestRecord, ContestState, Status};
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId};
use tally_service::Tally;
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{read, start};
use tally_store::{
    ContestWriteSet, EntrantKey, LedgerWriteSet, ReadSet, Store, StoreError, WriteSet, mysql, sqlite,
};

/// Applications of one transaction while filling, and members of one read.
const ROWS: usize = 5_000;

/// The running service.
pub(super) struct Ours {
    pub(super) store: Arc<dyn Store>,
    pub(super) tally: Arc<Tally>,
}

impl Ours {
    pub(super) fn on_sqlite(path: &Path) -> Result<Self, Error> {
        let store = sqlite::SqliteStore::open(path, &sqlite::Options::default());
        Self::on(Arc::new(store.during("open the store")?))
    }

    pub(super) fn on_mysql(url: &str) -> Result<Self, Error> {
        // As the product opens it: with rankings in memory there is one writer.
        let options = mysql::Options { writer: Some("the bench".into()), ..mysql::Options::default() };
        Self::on(Arc::new(mysql::MySqlStore::open(url, &options).during("open the store")?))
    }

    fn on(store: Arc<dyn Store>) -> Result<Self, Error> {
        let tally = ours::serve(&store, 1).during("start the service")?;
        Ok(Self { store, tally })
    }

    /// Makes a contest with as many applications as its counts say; `with` changes each one by its index from 0.
    pub(super) fn fill(
        &self,
        contest: u32,
        record: ContestRecord,
        mut with: impl FnMut(u32, &mut Application),
    ) -> Result<(), Error> {
        let accepted = record.applications.accepted;
        let contests =
            ContestWriteSet { contests: vec![(id(contest), record)], ..ContestWriteSet::default() };
        self.put(&contests).during("make the contest")?;
        let mut application = |place: u32| {
            let player = PlayerId::new(&player(place.into())).expect("a good name");
            let key = EntrantKey { contest: no(contest), player };
            let (status, applied_at) = (Status::Accepted, Micros(1));
            let at = u64::from(place) + 1;
            let mut row = Application { status, place: at, applied_at, member: None, hold: None };
            with(place, &mut row);
            (key, Some(row))
        };
        let mut all: Vec<_> = (0..accepted).map(&mut application).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        for some in all.chunks(ROWS) {
            let contests = ContestWriteSet { applications: some.to_vec(), ..ContestWriteSet::default() };
            self.put(&contests).during("make its applications")?;
        }
        Ok(())
    }

    fn put(&self, contests: &ContestWriteSet) -> Result<(), StoreError> {
        let change = |_: &_| {
            let ledger = LedgerWriteSet { contests: contests.clone(), ..LedgerWriteSet::default() };
            WriteSet { ledger, ..WriteSet::default() }
        };
        self.store.run(&ReadSet::default(), &mut { change }).map(drop)
    }
}

pub(super) fn id(contest: u32) -> ContestId {
    ContestId::new(&format!("contest-{contest}")).expect("a good name")
}

pub(super) fn no(contest: u32) -> Uuid {
    let mut bytes = [0; 16];
    bytes[12..].copy_from_slice(&contest.to_be_bytes());
    Uuid(bytes)
}

impl Place for Ours {
    fn prepare(&mut self, contest: u32, members: u32) -> Result<(), Error> {
        let definition = Contest { title: "A contest".into(), capacity: members, ..Contest::default() };
        let mut record = ContestRecord::new(no(contest), definition, None, Micros(1));
        record.state = ContestState::Open;
        record.applications =
            ApplicationCounts { accepted: members, places: members.into(), ..ApplicationCounts::default() };
        self.fill(contest, record, |_, _| {})
    }

    fn start(&mut self, contest: u32) -> Result<(), Error> {
        start::start(&self.tally, &id(contest), &ContestActor::ADMIN, None)
            .during("start the contest")
            .map(drop)
    }

    fn stands(&mut self, contest: u32) -> Result<Stands, Error> {
        let record = read::get(&self.tally, &id(contest)).during("read the contest")?;
        let (mut members, mut after) = (0, None);
        loop {
            let page = read::members(&self.tally, &id(contest), after.as_ref(), ROWS);
            let page = page.during("read its members")?.rows;
            let Some(last) = page.last() else { break };
            members += u32::try_from(page.len()).expect("a page");
            after = Some(last.player.clone());
        }
        let left =
            self.store.ledger().first_applications(record.no, None, ROWS).during("read its applications")?;
        let applications = u32::try_from(left.len()).expect("a page");
        Ok(Stands { members, applications, runs: record.state == ContestState::Running })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.tally.drain();
    }
}
