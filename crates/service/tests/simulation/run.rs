//! One run: the seed chooses the events, and every answer and every start is compared with the model.
//!
//! A step is a round of requests that are in flight together, or something else: time, work in the background, trouble. Within a
//! round the seed chooses when lanes run their batches and which background tasks run meanwhile.

use crate::check::{check_counts, check_expired, check_ranks, read, verify};
use crate::choose::File;
use crate::contests::{self, Contests};
use crate::model::{BOARDS, MEMBERS, Model};
use crate::operations::{Callers, Fate, Operation, Periods};
use crate::possible::{self, Times};
use crate::traffic::{self, Answered, Planned};
use crate::world::World;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use tally_rules::instant::SECOND;
use tally_service::LaneByHand;
use tally_store::{Maintenance, Reads};
use tally_testkit::disk::{DiskError, DiskFault};
use tally_testkit::rng::Rng;

pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const DAY: i64 = 1_440 * MINUTE;

/// The number of checks whether lanes work again, before the test counts that as a fault of the server.
const ATTEMPTS_MAX: u32 = 1_000;

/// Requests of one round.
const ROUND_MAX: u64 = 9;

/// The finding about a board whose prizes wait for the clock.
const NOT_CLOSED: &str = "a period with prizes is over and not closed yet, and its prizes come first";

/// Failures after the disk is healed.
const LEFTOVER_MAX: u32 = 4;

/// The log of a run, for the report of a failure.
pub(crate) type Log = Rc<RefCell<Vec<String>>>;

pub(crate) struct Run {
    pub(super) rng: Rng,
    pub(crate) world: World,
    callers: Callers,
    pub(super) model: Model,
    pub(super) contests: Contests,
    pub(super) requests: usize,
    /// Requests with a key.
    pub(super) keyed: Vec<Planned>,
    pub(super) files: Vec<File>,
    /// Requests that come next, one a step; the last one first.
    pub(super) scripted: Vec<Operation>,
    /// Files of those; they count down from the last number there is.
    pub(super) scripts: u8,
    /// Steps until the disk is healed, while it has faults.
    trouble: Option<u64>,
    /// The failures that may still come after the disk is healed: each open file reports a failed sync once.
    leftover: u32,
    /// Steps until the power is off at the latest.
    cut: Option<u64>,
    /// The percentage of flushes that succeed when they are requested.
    flushes: u64,
    log: Log,
    pub(crate) cuts: u64,
}

impl Run {
    pub(crate) fn new(seed: u64, log: Log) -> Self {
        let mut rng = Rng::new(seed);
        let batch_rows_max = *rng.pick(&[1, 2, 4, 1_000]);
        let flushes = *rng.pick(&[5, 100, 100]);
        let world = World::new(batch_rows_max);
        let callers = Callers::new(&world, MEMBERS);
        let (model, contests) = (Model::default(), Contests::default());
        let mut run = Self {
            rng,
            world,
            callers,
            model,
            contests,
            requests: 0,
            keyed: Vec::new(),
            files: Vec::new(),
            scripted: Vec::new(),
            scripts: 0,
            trouble: None,
            leftover: 0,
            cut: None,
            flushes,
            log,
            cuts: 0,
        };
        for board in 0..BOARDS.len() {
            let periods = Periods { keep: 2, hour: 0, grace_s: 600 };
            let planned = run.planned(Operation::Put { board, periods }, false);
            run.round(vec![planned]);
        }
        run
    }

    /// This many steps, and the checks at the end.
    pub(crate) fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step();
            self.pass();
        }
        self.heal();
        self.restart();
        self.settle_down();
    }

    fn note(&self, what: impl Into<String>) {
        let what = what.into().replace(&self.folder(), "");
        self.log.borrow_mut().push(format!("{what} [{}]", self.world.disk.operations()));
    }

    fn folder(&self) -> String {
        self.world.disk.folder().display().to_string()
    }

    /// An event that ends after some steps.
    fn pass(&mut self) {
        let ends = |left: &mut Option<u64>| {
            *left = left.map(|left| left.saturating_sub(1));
            *left == Some(0)
        };
        if ends(&mut self.cut) {
            self.power_cut(Vec::new());
        }
        if ends(&mut self.trouble) {
            self.heal();
        }
    }

    fn step(&mut self) {
        let now = self.world.now();
        let is_past = |operation: &Operation| match operation {
            // The clock was set back: its lines are in the future.
            Operation::Import { lines, .. } => lines.iter().all(|(_, _, at)| *at <= now),
            _ => true,
        };
        if let Some(operation) = self.scripted.pop().filter(is_past) {
            let planned = self.planned(operation, false);
            self.round(vec![planned]);
            return;
        }
        if self.rng.percent(2) && self.scripts < 100 {
            self.script();
        }
        match self.rng.below(100) {
            0..60 => {
                let count = if self.rng.percent(30) { 1 } else { self.rng.between(2, ROUND_MAX as i64) };
                let planned = self.plan(count);
                self.round(planned);
            }
            60..67 => self.work(),
            67..75 => self.work_in_store(),
            75..86 => self.pass_time(),
            86..90 => {
                let minutes = self.rng.between(-6 * 1_440, 6 * 1_440);
                self.note(format!("the clock is {minutes} minutes ahead"));
                self.world.set_ahead(minutes * MINUTE);
            }
            90..93 => {
                self.note("the clock is right");
                self.world.set_ahead(0);
            }
            93 => self.restart(),
            94..97 => {
                let after = self.rng.below(30);
                self.note(format!("the power goes after {after} operations"));
                self.world.disk.stop_at(self.world.disk.operations() + 1 + after);
                self.cut = Some(6);
            }
            _ => self.make_trouble(),
        }
    }

    fn pass_time(&mut self) {
        let micros = match self.rng.below(4) {
            0 => self.rng.between(1, MINUTE),
            1 => self.rng.between(1, 90) * MINUTE,
            2 => self.rng.between(1, 24) * 60 * MINUTE,
            _ => self.rng.between(MINUTE, 3 * DAY),
        };
        self.note(format!("{} minutes pass", micros / MINUTE));
        self.world.advance(micros);
    }

    /// Whether the server may say that the store is unavailable.
    fn is_disturbed(&self) -> bool {
        self.trouble.is_some() || self.cut.is_some()
    }

    /// A failure needs a disk that fails, or did a moment ago.
    fn excuse(&mut self, why: &dyn std::fmt::Display) {
        if !self.is_disturbed() {
            self.leftover = self.leftover.checked_sub(1).unwrap_or_else(|| panic!("the disk is well: {why}"));
        }
    }

    /// Requests in flight together, until each has its answer.
    fn round(&mut self, planned: Vec<Planned>) {
        let (callers, tally) = (self.callers.clone(), Arc::clone(self.world.tally()));
        let was_in_doubt = tally.clock_jump().is_some();
        let began_at = (self.cuts, self.world.now());
        let call = move |one: &Planned| callers.call(&tally, &one.operation, one.key.then_some(one.number));
        let rng = Rng::new(self.rng.bits());
        traffic::begin(planned, rng, (&self.log, self.folder()), Box::new(call));
        let mut works = 2;
        while traffic::is_busy() {
            match self.rng.below(100) {
                0..40 => traffic::ask_next(),
                40..65 => self.turn(LaneByHand::Scores(0)),
                65..90 => self.turn(LaneByHand::Ledger),
                chosen if works > 0 => {
                    works -= 1;
                    self.meanwhile(chosen);
                }
                _ => {}
            }
            traffic::hear(false);
        }
        let answered = traffic::end();
        self.settle(&answered, began_at.1, was_in_doubt);
        if began_at == (self.cuts, self.world.now()) {
            self.check_counts(&answered);
        }
    }

    /// Scores against periods, where only scores and money were requested and no time has passed.
    fn check_counts(&self, answered: &[Answered]) {
        let changes_scores = |one: &Answered| {
            let operation = &one.planned.operation;
            operation.is_score() && !matches!(operation, Operation::Submit { .. } | Operation::Contest(..))
        };
        if answered.iter().any(changes_scores) {
            return;
        }
        for one in answered {
            if let (
                Operation::Submit { board, player, .. },
                Fate::Done { replayed: false, late: false, .. },
            ) = (&one.planned.operation, &one.fate)
            {
                check_counts(&self.world, *board, *player);
            }
        }
    }

    fn turn(&self, lane: LaneByHand) {
        traffic::turns();
        self.world.tally().step(lane);
    }

    /// Another action while requests are in flight.
    fn meanwhile(&mut self, chosen: u64) {
        match chosen {
            90..92 => {
                let seconds = self.rng.between(1, 240);
                self.note(format!("{seconds} seconds pass meanwhile"));
                self.world.advance(seconds * SECOND);
            }
            92..95 => {
                let done = self.world.tally().work();
                self.note(format!("work meanwhile: {done:?}"));
                self.excuse_work(done.err().map(|failure| failure.to_string()));
            }
            95..97 => self.purge_some(),
            _ => self.flush(),
        }
    }

    fn excuse_work(&mut self, failure: Option<String>) {
        if let Some(why) = failure.filter(|_| !self.world.disk.stopped()) {
            self.excuse(&why);
        }
    }

    /// A slow purge: a few rows now, the others later.
    fn purge_some(&mut self) {
        let rows = 1 + self.rng.below(6) as usize;
        let done = self.world.store().purge_deleted(rows);
        self.note(format!("{rows} rows are purged: {done:?}"));
        self.excuse_work(done.err().map(|error| error.to_string()));
    }

    /// Flushes the journal into the tables. In a run whose flush is slow it mostly is not ready yet.
    fn flush(&mut self) {
        if !self.rng.percent(self.flushes) {
            return;
        }
        let done = self.world.store().work();
        self.note(format!("the store works: {done:?}"));
        self.excuse_work(done.err().map(|error| error.to_string()));
    }

    /// Checks replies against the model, which has the state afterwards.
    fn settle(&mut self, answered: &[Answered], began: i64, was_in_doubt: bool) {
        let times = Times { began, now: self.world.now(), latest: self.world.latest };
        let (mut failed, mut unknown) = (BTreeMap::new(), false);
        for one in answered {
            match &one.fate {
                Fate::Done { hold, .. } => {
                    self.callers.holds.extend(hold.map(|id| (one.planned.number, id)));
                }
                Fate::Failed(why) if why == NOT_CLOSED => {
                    let in_doubt = was_in_doubt || self.world.tally().clock_jump().is_some();
                    assert!(in_doubt, "the clock is trusted: {why}");
                }
                Fate::Failed(why) => drop(failed.insert(one.turn, why.clone())),
                Fate::Unknown(why) => {
                    unknown = true;
                    failed.insert(one.turn, why.clone());
                }
                Fate::Refused(_) => {}
            }
            match &one.planned.operation {
                Operation::Contest(number, act) => self.contests.learn(*number, act, &one.fate),
                Operation::Erase { player } => self.contests.erase(*player),
                _ => {}
            }
        }
        if !self.world.disk.stopped() {
            failed.values().for_each(|why| self.excuse(why));
        }
        // A hold may have run out before, between or after them.
        let mut expired = self.model.clone();
        if !self.world.disk.stopped() {
            self.learn_expired(&mut expired);
        }
        let mut worlds = possible::worlds(&self.model, answered, times);
        if expired != self.model {
            worlds.extend(possible::worlds(&expired, answered, times));
        }
        assert!(!worlds.is_empty(), "nothing explains these answers: {answered:#?}\nto {:#?}", self.model);
        let done = if self.world.disk.stopped() {
            self.power_cut(worlds)
        } else if unknown || worlds.len() > 1 {
            if unknown {
                self.heal();
            }
            // An unknown outcome may appear after the cut without having been visible before.
            if self.world.disk.stopped() { self.power_cut(worlds) } else { self.resolve(worlds) }
        } else {
            self.model = worlds.into_iter().next().expect("there is one").model;
            BTreeMap::new()
        };
        // A request of unknown outcome allows any next reply.
        self.keyed.retain(|keyed| done.get(&keyed.number) != Some(&None));
        for one in answered {
            let is_hold = matches!(one.planned.operation, Operation::Hold { .. });
            if is_hold && done.get(&one.planned.number) == Some(&Some(true)) {
                self.learn_hold(&one.planned);
            }
        }
    }

    /// A hold that exists by an unknown outcome is found by its key.
    fn learn_hold(&mut self, planned: &Planned) {
        while !self.callers.holds.contains_key(&planned.number) {
            let call = self.callers.call(self.world.tally(), &planned.operation, Some(planned.number));
            match self.world.wait(call) {
                Fate::Done { replayed: true, hold: Some(id), .. } => {
                    self.callers.holds.insert(planned.number, id);
                }
                Fate::Failed(_) | Fate::Unknown(_) if self.world.disk.stopped() => {
                    self.power_cut(Vec::new());
                }
                Fate::Failed(_) | Fate::Unknown(_) if self.is_disturbed() => self.heal(),
                other => panic!("a hold that is there is found by its key: {other:?}"),
            }
        }
    }

    /// Compares with the present state. Says which requests of unknown outcome were done, where that can be known.
    fn resolve(&mut self, worlds: Vec<possible::World>) -> BTreeMap<usize, Option<bool>> {
        let same = || possible::World { model: self.model.clone(), ..possible::World::default() };
        let mut worlds = if worlds.is_empty() { vec![same()] } else { worlds };
        let files: BTreeSet<(usize, u8)> =
            worlds.iter().flat_map(|world| world.model.files.keys().copied()).collect();
        let found = read(&self.world, &self.callers.members, &files);
        worlds.iter_mut().for_each(|world| self.learn_expired(&mut world.model));
        let wanted = format!("{:#?}", worlds.iter().map(|world| &world.model).collect::<Vec<_>>());
        worlds.retain(|world| world.model.is(&found));
        assert!(!worlds.is_empty(), "found {found:#?}\nwanted one of {wanted}");
        let mut done = BTreeMap::new();
        for (number, was) in worlds.iter().flat_map(|world| &world.done) {
            let known = done.entry(*number).or_insert(Some(*was));
            *known = known.filter(|known| known == was);
        }
        self.model = worlds.into_iter().next().expect("there is one").model;
        for (ours, found) in self.model.boards.iter_mut().zip(&found.boards) {
            if let (Some(ours), Some(found)) = (ours, found) {
                ours.records.clone_from(&found.records);
            }
        }
        for (number, was) in &done {
            if was.is_none() {
                self.model.keys.remove(number);
            }
        }
        done
    }

    fn is_expired(&self, hold: usize) -> bool {
        let Some(id) = self.callers.holds.get(&hold) else { return false };
        let hold = self.world.store().ledger().hold(*id).unwrap().expect("a hold stays");
        hold.end.is_some_and(|(end, _)| end == tally_rules::ledger::hold::HoldEnd::Expired)
    }

    /// Ends in a model what has run out.
    fn learn_expired(&self, model: &mut Model) {
        let open: Vec<usize> = model.holds.keys().copied().collect();
        for number in open.into_iter().filter(|number| self.is_expired(*number)) {
            let expires_at = model.holds[&number].expires_at;
            assert!(expires_at <= self.world.latest, "a hold has ended before its time");
            model.expire(number);
        }
    }

    fn work(&mut self) {
        let done = self.world.tally().work();
        self.note(format!("work: {done:?}"));
        if self.world.disk.stopped() {
            self.power_cut(Vec::new());
            return;
        }
        let is_done = done.is_ok();
        if let Err(failure) = done {
            self.excuse(&failure);
            self.heal();
        }
        if !self.is_disturbed() {
            self.resolve(Vec::new());
            self.contests.check(&self.world);
            check_ranks(&self.world, is_done);
        }
    }

    fn work_in_store(&mut self) {
        if self.rng.percent(40) {
            self.purge_some();
        } else {
            self.flush();
        }
        if self.world.disk.stopped() {
            self.power_cut(Vec::new());
        }
    }

    fn make_trouble(&mut self) {
        let kind = *self.rng.pick(&[DiskError::Io, DiskError::Full, DiskError::ShortWrite]);
        let (at, lasting) = (1 + self.rng.below(12), self.rng.percent(40));
        let lasts = if lasting { ", lasting" } else { "" };
        self.note(format!("{kind:?} at the {at}. operation from now{lasts}"));
        for more in 0..self.rng.below(3) {
            self.world.disk.fail(DiskFault::new(at + 1 + more, kind));
        }
        let fault = DiskFault::new(at, kind);
        self.world.disk.fail(if lasting { fault.lasting() } else { fault });
        self.trouble = Some(2 + self.rng.below(8));
    }

    /// The disk works again, and the server detects that by itself.
    fn heal(&mut self) {
        if self.trouble.take().is_some() {
            self.note("the disk is healed");
            self.world.disk.heal();
            self.leftover = LEFTOVER_MAX;
        }
        let board = self.model.boards.iter().position(Option::is_some);
        for _ in 0..ATTEMPTS_MAX {
            if self.world.disk.stopped() || self.callers.lanes_work(&self.world, board) {
                return;
            }
        }
        panic!("the lanes do not work again");
    }

    fn restart(&mut self) {
        self.note("a restart");
        self.world.stop();
        let mut started = self.world.start();
        if started.is_err() && !self.world.disk.stopped() {
            self.excuse(&format!("{started:?}"));
            self.trouble = None;
            self.world.disk.heal();
            started = self.world.start();
        }
        if self.world.disk.stopped() {
            self.power_cut(Vec::new());
            return;
        }
        started.unwrap();
        self.heal();
        self.leftover = 0;
        self.check(Vec::new());
    }

    /// Cuts the power and goes on with the remaining state; returns which in-doubt requests were done.
    fn power_cut(&mut self, worlds: Vec<possible::World>) -> BTreeMap<usize, Option<bool>> {
        self.note("the power is off");
        (self.trouble, self.leftover, self.cut) = (None, 0, None);
        self.world.cut(&mut self.rng);
        self.world.start().expect("a start after a power cut");
        self.cuts += 1;
        self.check(worlds)
    }

    /// All checks; returns which in-doubt requests were done.
    fn check(&mut self, worlds: Vec<possible::World>) -> BTreeMap<usize, Option<bool>> {
        assert!(self.world.is_running());
        let found = self.resolve(worlds);
        self.contests.check(&self.world);
        check_ranks(&self.world, true);
        verify(&self.world);
        found
    }

    /// Nothing is due any more once the clock is trusted. Work that began while the clock was ahead is due when the clock reaches
    /// that time again.
    fn settle_down(&mut self) {
        self.world.set_ahead(0);
        self.world.advance((self.world.latest - self.world.now()).max(0));
        for _ in 0..3 {
            self.world.advance(15 * MINUTE);
            self.work();
        }
        contests::check_paid(&self.world);
        check_expired(&self.world, &self.callers.members);
        verify(&self.world);
    }
}
