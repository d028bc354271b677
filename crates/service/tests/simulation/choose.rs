//! The requests that the seed chooses. Not here: when they are sent, and what the replies mean.

use crate::model::{BOARDS, MEMBERS, PLAYERS};
use crate::operations::{Operation, Payment, Periods};
use crate::run::{DAY, MINUTE, Run};
use crate::traffic::Planned;
use tally_rules::idempotency::KEEP_DEFAULT_MICROS;

/// When some credit expires: after the end of every run.
pub(super) const FAR: i64 = 100_000 * DAY;

/// A file that is imported a chunk at a time.
pub(super) struct File {
    board: usize,
    file: u8,
    lines: Vec<(usize, i64, i64)>,
}

impl Run {
    pub(super) fn planned(&mut self, operation: Operation, key: bool) -> Planned {
        self.requests += 1;
        Planned { number: self.requests, operation, key }
    }

    /// Requests of one round: one of them at most does several things to boards.
    pub(super) fn plan(&mut self, count: i64) -> Vec<Planned> {
        let (mut all, mut has_steps) = (Vec::new(), false);
        for _ in 0..count {
            let one = match self.rng.below(100) {
                0..10 => self.repeat(),
                10..28 => {
                    let now = self.world.now();
                    let chosen = self.contests.choose(&mut self.rng, now);
                    chosen.map(|(number, act)| self.planned(Operation::Contest(number, act), false))
                }
                28..34 => self.chunk(),
                _ => self.choose().map(|operation| {
                    let key = operation.may_have_key() && self.rng.percent(60);
                    let key = key || matches!(operation, Operation::Hold { .. });
                    self.planned(operation, key)
                }),
            };
            let Some(one) = one else { continue };
            let of_boards = !one.operation.is_simple() && !matches!(one.operation, Operation::Contest(..));
            if of_boards && std::mem::replace(&mut has_steps, true) {
                continue;
            }
            if one.key && self.rng.percent(10) {
                all.push(one.clone());
            }
            if one.key && !self.keyed.iter().any(|keyed| keyed.number == one.number) {
                self.keyed.push(one.clone());
            }
            all.push(one);
        }
        all
    }

    fn choose(&mut self) -> Option<Operation> {
        let rng = &mut self.rng;
        let board = rng.below(BOARDS.len() as u64) as usize;
        let player = rng.below(PLAYERS as u64) as usize;
        let member = rng.below(MEMBERS as u64) as usize;
        let (units, now) = (rng.between(1, 200), self.world.now());
        Some(match rng.below(100) {
            0..54 => Operation::Submit { board, player, score: rng.between(-20, 100) },
            54..59 => Operation::Ban { board, player, banned: rng.percent(60) },
            59..63 => Operation::Remove { board, player },
            63..65 => Operation::Erase { player },
            65..69 => {
                let (keep, hour) = (rng.below(4) as u32, if rng.percent(80) { 0 } else { 12 });
                let grace_s = *rng.pick(&[0, 600, 7_200]);
                Operation::Put { board, periods: Periods { keep, hour, grace_s } }
            }
            69 => Operation::Delete { board },
            70..76 => Operation::Pay(Payment::Deposit { to: member, units }),
            76..79 => {
                // Few instants: a wallet has a bounded number of credits.
                let expires_at =
                    if rng.percent(20) { FAR } else { (now / DAY + 1 + rng.between(0, 2) * 2) * DAY };
                Operation::Pay(Payment::Promotion { to: member, units, expires_at })
            }
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

    /// The same again, by its key; mostly one of the last requests.
    fn repeat(&mut self) -> Option<Planned> {
        let back = if self.rng.percent(70) { 6 } else { self.keyed.len() as u64 };
        let back = back.min(self.keyed.len() as u64);
        let ago = 1 + self.rng.below(back.max(1)) as usize;
        let planned = self.keyed.get(self.keyed.len().checked_sub(ago)?)?.clone();
        // A forgotten one would make another hold under the same number.
        let done = self.model.keys.get(&planned.number);
        let is_kept = done.is_some_and(|at| self.world.latest - at < KEEP_DEFAULT_MICROS - DAY);
        (is_kept || !matches!(planned.operation, Operation::Hold { .. })).then_some(planned)
    }

    /// Old days are filled, forgotten and filled again.
    pub(super) fn script(&mut self) {
        let (rng, now) = (&mut self.rng, self.world.now());
        let board = rng.below(BOARDS.len() as u64) as usize;
        let mut import = |scripted: &mut Vec<Operation>| {
            self.scripts += 1;
            let file = u8::MAX - self.scripts;
            let mut line = |day| (rng.below(PLAYERS as u64) as usize, rng.between(-20, 100), now - day * DAY);
            let lines = (2..8).map(&mut line).collect();
            scripted.push(Operation::Import { board, file, from: 0, lines, last: true });
        };
        let put = |keep| Operation::Put { board, periods: Periods { keep, hour: 0, grace_s: 0 } };
        import(&mut self.scripted);
        self.scripted.extend([put(20), put(0)]);
        import(&mut self.scripted);
        self.scripted.push(put(20));
    }

    /// A chunk of a file: of a new one, the next of one that was begun, or one again.
    fn chunk(&mut self) -> Option<Planned> {
        let (rng, now) = (&mut self.rng, self.world.now());
        if self.files.len() < 3 || rng.percent(40) && self.files.len() < 100 {
            let board = rng.below(BOARDS.len() as u64) as usize;
            let file = u8::try_from(self.files.len()).expect("there are few files");
            let mut line = |_| {
                let (player, ago) =
                    (rng.below(PLAYERS as u64) as usize, if rng.percent(50) { DAY } else { 12 * DAY });
                (player, rng.between(-20, 100), now - rng.between(1, ago))
            };
            let lines = (0..7).map(&mut line).collect();
            self.files.push(File { board, file, lines });
        }
        let back = self.rng.below(self.files.len().min(4) as u64) as usize;
        let File { board, file, lines } = &self.files[self.files.len() - 1 - back];
        let done = self.model.files.get(&(*board, *file)).copied().unwrap_or(0) as usize;
        let again = self.rng.percent(20) || done == lines.len();
        let from = if again { 0 } else { done };
        let to = if again { done } else { (from + 1 + self.rng.below(4) as usize).min(lines.len()) };
        let chosen = lines[from..to].to_vec();
        // The clock was set back: its lines are in the future.
        if chosen.is_empty() || chosen.iter().any(|(_, _, at)| *at > now) {
            return None;
        }
        let (board, file, last, from) = (*board, *file, to == lines.len(), from as u64);
        Some(self.planned(Operation::Import { board, file, from, lines: chosen, last }, false))
    }
}
