//! One run: the seed chooses what happens, and every answer and every start is held against the model.

use crate::check::{check_ranks, read, verify};
use crate::model::{BOARDS, MEMBERS, Model, Must, PLAYERS};
use crate::operations::{Callers, Fate, Operation, Payment};
use crate::world::World;
use std::sync::{Arc, Mutex};
use tally_rules::idempotency::KEEP_DEFAULT_MICROS;
use tally_rules::instant::SECOND;
use tally_store::Store;
use tally_testkit::disk::{DiskError, Fault};
use tally_testkit::rng::Rng;

const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 1_440 * MINUTE;

/// How often lanes are asked whether they work again, before that is a fault of the server.
const TRIES: u32 = 1_000;

/// What is said of a board whose prizes wait for the clock.
const NOT_CLOSED: &str = "a period with prizes is over and not closed yet, and its prizes come first";

/// Failures after the disk is healed.
const LEFTOVER_MAX: u32 = 4;

/// What happened, for whoever reads of a failure.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A request with an idempotency key.
struct Keyed {
    number: usize,
    operation: Operation,
    /// Wall time when it was done; nothing where it was not.
    done: Option<i64>,
}

pub(crate) struct Run {
    rng: Rng,
    pub(crate) world: World,
    callers: Callers,
    model: Model,
    requests: usize,
    keyed: Vec<Keyed>,
    imports: Vec<Operation>,
    files: u8,
    /// Steps until the disk is healed, while it has faults.
    trouble: Option<u64>,
    /// How many failures may still come once the disk is healed: a failed sync is told once by each open file.
    leftover: u32,
    /// Steps until the power is off at the latest.
    cut: Option<u64>,
    /// Whether the disk has errors.
    has_errors: bool,
    log: Log,
    pub(crate) cuts: u64,
}

impl Run {
    pub(crate) fn new(seed: u64, has_errors: bool, log: Log) -> Self {
        let world = World::new();
        let callers = Callers::new(&world, MEMBERS);
        let (rng, model) = (Rng::new(seed), Model::default());
        let (keyed, imports) = (Vec::new(), Vec::new());
        let (trouble, cut) = (None, None);
        let mut run = Self {
            rng,
            world,
            callers,
            model,
            requests: 0,
            keyed,
            imports,
            files: 0,
            trouble,
            leftover: 0,
            cut,
            has_errors,
            log,
            cuts: 0,
        };
        for board in 0..BOARDS.len() {
            run.request(&Operation::Put { board, keep: 2 }, false);
        }
        run
    }

    /// So many steps, and the checks of the end.
    pub(crate) fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.step();
            self.pass();
        }
        self.heal();
        self.restart();
    }

    fn note(&self, what: impl Into<String>) {
        // Folders have another name in each run.
        let folder = self.world.disk.folder().display().to_string();
        self.log.lock().unwrap().push(what.into().replace(&folder, ""));
    }

    /// What ends after some steps.
    fn pass(&mut self) {
        let ends = |left: &mut Option<u64>| {
            *left = left.map(|left| left.saturating_sub(1));
            *left == Some(0)
        };
        if ends(&mut self.cut) {
            self.power_cut(None);
        }
        if ends(&mut self.trouble) {
            self.heal();
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..56 => {
                if let Some(operation) = self.choose() {
                    let with_key = operation.may_have_key() && self.rng.percent(60);
                    let with_key = with_key || matches!(operation, Operation::Hold { .. });
                    self.request(&operation, with_key);
                }
            }
            56..64 => self.repeat(),
            64..72 => self.work(),
            72..79 => self.work_in_store(),
            79..89 => self.pass_time(),
            89..92 => {
                let minutes = self.rng.between(-6 * 1_440, 6 * 1_440);
                self.note(format!("the clock is {minutes} minutes ahead"));
                self.world.set_ahead(minutes * MINUTE);
            }
            92..94 => {
                self.note("the clock is right");
                self.world.set_ahead(0);
            }
            94 => self.restart(),
            95..97 => {
                let after = self.rng.below(30);
                self.note(format!("the power goes after {after} operations"));
                self.world.disk.stop_at(self.world.disk.operations() + 1 + after);
                self.cut = Some(6);
            }
            _ if self.has_errors => self.make_trouble(),
            _ => {}
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

    fn choose(&mut self) -> Option<Operation> {
        let rng = &mut self.rng;
        let board = rng.below(BOARDS.len() as u64) as usize;
        let player = rng.below(PLAYERS as u64) as usize;
        let member = rng.below(MEMBERS as u64) as usize;
        let (units, now) = (rng.between(1, 200), self.world.now());
        Some(match rng.below(100) {
            0..50 => Operation::Submit { board, player, score: rng.between(-20, 100) },
            50..56 => {
                self.files = self.files.wrapping_add(1);
                let count = rng.between(1, 5);
                let ago = |rng: &mut Rng| if rng.percent(50) { DAY } else { 12 * DAY };
                let mut line = |_| {
                    let player = rng.below(PLAYERS as u64) as usize;
                    let ago = ago(rng);
                    (player, rng.between(-20, 100), now - rng.between(1, ago))
                };
                let lines = (0..count).map(&mut line).collect();
                Operation::Import { board, file: self.files, lines }
            }
            56..62 => Operation::Ban { board, player, hidden: rng.percent(60) },
            62..65 => Operation::Remove { board, player },
            65..67 => Operation::Erase { player },
            67..70 => {
                let keep = rng.below(4) as u32;
                Operation::Put { board, keep }
            }
            70 => Operation::Delete { board },
            71..79 => Operation::Pay(Payment::Deposit { to: member, units }),
            79..87 => {
                let to = (member + 1 + rng.below(MEMBERS as u64 - 1) as usize) % MEMBERS;
                Operation::Pay(Payment::Transfer { from: member, to, units })
            }
            87..93 => Operation::Hold { member, units, expires_at: now + rng.between(5, 3 * 1_440) * MINUTE },
            _ => {
                let open: Vec<usize> = self.model.holds.keys().copied().collect();
                let hold = *open.get(rng.below(open.len().max(1) as u64) as usize)?;
                let units = self.model.holds[&hold].units;
                let taken = rng.percent(60).then(|| rng.between(1, units));
                Operation::End { hold, taken, to: member }
            }
        })
    }

    /// Whether the server may say that the store is away.
    fn is_disturbed(&self) -> bool {
        self.trouble.is_some() || self.cut.is_some()
    }

    /// A failure needs a disk that fails, or did a moment ago.
    fn excuse(&mut self, why: &dyn std::fmt::Display) {
        if !self.is_disturbed() {
            self.leftover = self.leftover.checked_sub(1).unwrap_or_else(|| panic!("the disk is well: {why}"));
        }
    }

    fn request(&mut self, operation: &Operation, with_key: bool) {
        let number = self.requests;
        self.requests += 1;
        let (must, after) = self.model.after(operation, number, self.world.now());
        let fate = self.callers.ask(&self.world, operation, with_key.then_some(number));
        let key = if with_key { " with a key" } else { "" };
        self.note(format!("{number}{key} {operation:?}: {}", fate.shown()));
        if let (Operation::Import { .. }, true) = (operation, self.imports.len() < 8) {
            self.imports.push(operation.clone());
        }
        let done = self.settle(operation, number, fate, (must, after));
        if let (true, Some(done)) = (with_key, done) {
            let done = done.then(|| self.world.now());
            self.keyed.push(Keyed { number, operation: operation.clone(), done });
        }
        // A hold that is there by an unknown outcome is found by its key.
        if done == Some(true) && matches!(operation, Operation::Hold { .. }) {
            self.learn_hold(operation, number);
        }
    }

    fn learn_hold(&mut self, operation: &Operation, number: usize) {
        if self.callers.holds.contains_key(&number) {
            return;
        }
        match self.callers.ask(&self.world, operation, Some(number)) {
            Fate::Done { replayed: true, hold: Some(id), .. } => drop(self.callers.holds.insert(number, id)),
            // It stays open and unknown: nothing is asked of it.
            Fate::Failed(_) | Fate::Unknown(_) if self.is_disturbed() => {
                self.heal();
                self.learn_hold(operation, number);
            }
            other => panic!("a hold that is there is found by its key: {other:?}"),
        }
    }

    /// Makes the model what is there after an answer; whether the request was done, where that can be told.
    fn settle(
        &mut self,
        operation: &Operation,
        number: usize,
        fate: Fate,
        (must, after): (Must, Model),
    ) -> Option<bool> {
        let (mut done, mut in_doubt) = (Some(false), None);
        match fate {
            Fate::Done { replayed, record, hold } => {
                assert!(!replayed, "a new request is no replay");
                assert_ne!(must, Must::Refuse, "it must be refused");
                self.model = after;
                self.callers.holds.extend(hold.map(|id| (number, id)));
                if let Some(record) = record {
                    self.learn_record(operation, record);
                }
                done = Some(true);
            }
            Fate::Refused(why) => {
                assert_ne!(must, Must::Do, "it must be done: {why}");
                done = None;
            }
            Fate::Failed(why) if why == NOT_CLOSED => {
                assert!(self.world.tally().clock_jump().is_some(), "the clock is believed: {why}");
            }
            Fate::Failed(why) => self.excuse(&why),
            Fate::Unknown(why) => {
                self.excuse(&why);
                in_doubt = Some(after);
            }
        }
        if self.world.disk.stopped() {
            let found = self.power_cut(in_doubt.clone());
            return if in_doubt.is_some() { found } else { done };
        }
        let Some(after) = in_doubt else { return done };
        self.heal();
        self.resolve(Some(after))
    }

    fn learn_record(&mut self, operation: &Operation, (score, at): (i64, i64)) {
        let Operation::Submit { board, player, .. } = operation else { return };
        let board = self.model.boards[*board].as_mut().unwrap();
        let record = board.records.get_mut(player).unwrap();
        assert_eq!(record.score, score, "the record in the answer");
        assert!(record.at.is_none_or(|known| known == at), "the instant in the answer: {at}, not {record:?}");
        record.at = Some(at);
    }

    /// Compares with what is there. A request of unknown outcome was done, was not, or nobody can tell.
    fn resolve(&mut self, after: Option<Model>) -> Option<bool> {
        self.learn_expired();
        let found = read(&self.world, &self.callers.members);
        let mut after = after;
        if let Some(after) = &mut after {
            // What has expired meanwhile has in both.
            let gone: Vec<usize> =
                after.holds.keys().filter(|hold| self.is_expired(**hold)).copied().collect();
            gone.into_iter().for_each(|hold| after.expire(hold));
        }
        let was_not = self.model.is(&found);
        let was = after.as_ref().is_some_and(|after| after.is(&found));
        assert!(was_not || was, "found {found:#?}\nwanted {:#?}\nor {after:#?}", self.model);
        if let (true, Some(after)) = (was, after) {
            self.model = after;
        }
        for (ours, found) in self.model.boards.iter_mut().zip(&found.boards) {
            if let (Some(ours), Some(found)) = (ours, found) {
                ours.records.clone_from(&found.records);
            }
        }
        (was != was_not).then_some(was)
    }

    fn is_expired(&self, hold: usize) -> bool {
        let Some(id) = self.callers.holds.get(&hold) else { return false };
        let hold = self.world.store().ledger().hold(*id).unwrap().expect("a hold stays");
        hold.end.is_some_and(|(end, _)| end == tally_rules::ledger::hold::End::Expired)
    }

    /// Ends in the model what has run out.
    fn learn_expired(&mut self) {
        let open: Vec<usize> = self.model.holds.keys().copied().collect();
        for number in open {
            if self.is_expired(number) {
                let expires_at = self.model.holds[&number].expires_at;
                assert!(expires_at <= self.world.latest, "a hold has ended before its time");
                self.model.expire(number);
            }
        }
    }

    /// Sends a request again: by its key, or a file that was imported.
    fn repeat(&mut self) {
        if self.rng.percent(20) && !self.imports.is_empty() {
            return self.repeat_import();
        }
        if self.keyed.is_empty() {
            return;
        }
        // Mostly one of the last.
        let back = if self.rng.percent(70) { 6 } else { self.keyed.len() as u64 };
        let back = 1 + self.rng.below(back.min(self.keyed.len() as u64)) as usize;
        let index = self.keyed.len() - back;
        let Keyed { number, operation, done } = &self.keyed[index];
        let (number, operation, done) = (*number, operation.clone(), *done);
        // One that was forgotten would make another hold under the same number.
        let is_kept = |at: i64| self.world.latest - at < KEEP_DEFAULT_MICROS;
        if matches!(operation, Operation::Hold { .. }) && !done.is_some_and(is_kept) {
            return;
        }
        let must_replay = done.is_some_and(is_kept);
        let (must, after) = self.model.after(&operation, number, self.world.now());
        let fate = self.callers.ask(&self.world, &operation, Some(number));
        self.note(format!("{number} again {operation:?}: {}", fate.shown()));
        match &fate {
            Fate::Done { replayed: true, .. } => {
                assert!(done.is_some(), "what was not done is no replay");
                if self.world.disk.stopped() {
                    self.power_cut(None);
                }
                return;
            }
            Fate::Done { .. } | Fate::Refused(_) => {
                assert!(!must_replay, "its first answer is kept: {fate:?}")
            }
            Fate::Failed(_) | Fate::Unknown(_) => {}
        }
        if must_replay {
            // Its outcome is known, so a fault changes nothing.
            let same = self.model.clone();
            self.settle(&operation, number, fate, (Must::Either, same));
            return;
        }
        match self.settle(&operation, number, fate, (must, after)) {
            Some(true) => self.keyed[index].done = Some(self.world.now()),
            Some(false) => {}
            None => drop(self.keyed.remove(index)),
        }
    }

    /// A file changes a board once. One that was deleted meanwhile has it no more.
    fn repeat_import(&mut self) {
        let index = self.rng.below(self.imports.len() as u64) as usize;
        let now = self.world.now();
        // The clock was set back: its lines are in the future.
        let later = |line: &(usize, i64, i64)| line.2 > now;
        if matches!(&self.imports[index], Operation::Import { lines, .. } if lines.iter().any(later)) {
            return;
        }
        let operation = self.imports.remove(index);
        let number = self.requests;
        let (must, after) = self.model.after(&operation, number, self.world.now());
        let fate = self.callers.ask(&self.world, &operation, None);
        self.note(format!("again {operation:?}: {}", fate.shown()));
        match fate {
            Fate::Done { replayed: true, .. } => {
                let same = self.model.clone();
                let fate = Fate::Done { replayed: false, record: None, hold: None };
                self.settle(&operation, number, fate, (Must::Either, same));
            }
            fate => drop(self.settle(&operation, number, fate, (must, after))),
        }
    }

    fn work(&mut self) {
        let done = self.world.tally().work();
        self.note(format!("work: {done:?}"));
        if self.world.disk.stopped() {
            self.power_cut(None);
            return;
        }
        let is_done = done.is_ok();
        if let Err(failure) = done {
            self.excuse(&failure);
            self.heal();
        }
        self.learn_expired();
        if !self.is_disturbed() {
            self.resolve(None);
            check_ranks(&self.world, is_done);
        }
    }

    fn work_in_store(&mut self) {
        let done = self.world.store().work();
        self.note(format!("the store works: {done:?}"));
        if self.world.disk.stopped() {
            self.power_cut(None);
        } else if let Err(error) = done {
            self.excuse(&error);
        }
    }

    fn make_trouble(&mut self) {
        let kind = *self.rng.pick(&[DiskError::Io, DiskError::Full, DiskError::ShortWrite]);
        let (at, lasting) = (1 + self.rng.below(12), self.rng.percent(40));
        self.note(format!(
            "{kind:?} at the {at}. operation from now{}",
            if lasting { ", lasting" } else { "" }
        ));
        for more in 0..self.rng.below(3) {
            self.world.disk.fail(Fault::new(at + 1 + more, kind));
        }
        let fault = Fault::new(at, kind);
        self.world.disk.fail(if lasting { fault.lasting() } else { fault });
        self.trouble = Some(2 + self.rng.below(8));
    }

    /// The disk is well again, and the server finds that out by itself.
    fn heal(&mut self) {
        if self.trouble.take().is_some() {
            self.note("the disk is healed");
            self.world.disk.heal();
            self.leftover = LEFTOVER_MAX;
        }
        let board = self.model.boards.iter().position(Option::is_some);
        for _ in 0..TRIES {
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
            self.power_cut(None);
            return;
        }
        started.unwrap();
        self.heal();
        self.leftover = 0;
        self.check(None);
    }

    /// Cuts the power and goes on with what is left; whether the request in doubt was done.
    fn power_cut(&mut self, in_doubt: Option<Model>) -> Option<bool> {
        self.note("the power is off");
        (self.trouble, self.leftover, self.cut) = (None, 0, None);
        self.world.cut(&mut self.rng);
        self.world.start().expect("a start after a power cut");
        self.cuts += 1;
        self.check(in_doubt)
    }

    /// Everything that can be checked; whether the request in doubt was done.
    fn check(&mut self, in_doubt: Option<Model>) -> Option<bool> {
        assert!(self.world.is_running());
        let found = self.resolve(in_doubt);
        check_ranks(&self.world, true);
        verify(&self.world);
        found
    }
}
