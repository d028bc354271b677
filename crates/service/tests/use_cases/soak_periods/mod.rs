//! Periods through years in seconds, on boards of every kind, against a plain model. Submits, retries, removals, bans,
//! erasures, clock jumps, restarts and changes of periods are random. Then every kind of read is compared.
//!
//! The clock is the test's. A history is about one kind of change: of schedules, of the grace, or of how many are kept. Not
//! here: what the order of two of them in one instant would mean (it is undefined). `TALLY_SOAK` multiplies the number of
//! histories, `TALLY_SEED` chooses them.

mod model;
mod reads;
use crate::world::{DAY, World, board, idempotency, player, rule};
use model::{Model, Submitted};
use reads::compare;
use std::sync::atomic::{AtomicUsize, Ordering};
use tally_rules::definition::{BoardSpec, Definition, Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::idempotency::KEEP_DEFAULT_MICROS;
use tally_rules::instant::SECOND;
use tally_rules::period::PeriodRule;
use tally_rules::score::{self, ScoreInput};
use tally_rules::{Micros, Origin, Record, Rejection};
use tally_service::Failure;
use tally_service::periods::scheduler;
use tally_service::players::erase;
use tally_service::scores::remove::remove;
use tally_service::scores::submit::{NewScore, submit};

/// Some are the beginning of others, and bytes are not letters.
const PLAYERS: [&str; 8] = ["a", "ab", "b", "bé", "bz", "C", "d", "éé"];

/// Histories that run in parallel.
const AT_ONCE: usize = 4;

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// The changes of its periods in a history.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Changes {
    Schedules,
    Grace,
    Keep,
}

/// A request that can be repeated.
struct Sent {
    key: String,
    at: Option<Micros>,
    player: &'static str,
    given: (ScoreInput, Option<i64>),
    when: Micros,
    done: Submitted,
}

struct History {
    world: World,
    model: Model,
    changes: Changes,
    sent: Vec<Sent>,
    keys: usize,
}

fn some_rule(name: &str, changes: Changes, random: &mut Random) -> PeriodRule {
    let schedule = random.pick(&[
        "0 0 * * *",
        "0 12 * * *",
        "0 0 * * 1",
        "0 0 1,15 * *",
        "0 0 */3 * *",
        "30 18 * * 0,3",
    ]);
    let zone = random.pick(&["UTC", "America/New_York", "Asia/Seoul", "Europe/Berlin"]);
    let keep = if changes == Changes::Keep { 1 + random.below(3) as u32 } else { 400 };
    rule(name, schedule, zone, keep, random.pick(&[0, 0, 3_600, 40_000]))
}

/// A few rounds cover every value of every choice.
fn definition(changes: Changes, round: usize, random: &mut Random) -> Definition {
    fn nth<T: Copy>(of: &[T], nth: usize) -> T {
        of[nth % of.len()]
    }
    let update = nth(Update::ALL, round);
    let periods = ["x", "y"].map(|name| some_rule(name, changes, random)).to_vec();
    Definition {
        order: nth(Order::ALL, round),
        update,
        ranking: nth(Ranking::ALL, round / 2),
        ties: nth(Ties::ALL, round / 3),
        score: nth(ScoreType::ALL, round / 2),
        subscore: if update == Update::Sum { Subscore::None } else { nth(Subscore::ALL, round / 3) },
        all_time: random.below(3) > 0,
        periods,
        ..Definition::default()
    }
}

fn spec(definition: &Definition) -> BoardSpec {
    BoardSpec {
        order: Some(definition.order),
        update: Some(definition.update),
        ranking: Some(definition.ranking),
        ties: Some(definition.ties),
        score: Some(definition.score),
        subscore: Some(definition.subscore),
        all_time: Some(definition.all_time),
        periods: Some(definition.periods.clone()),
        keeps_history: false,
    }
}

/// A score of a board of that kind: mostly a shared one, sometimes an end of the range.
fn score(kind: ScoreType, random: &mut Random) -> ScoreInput {
    match kind {
        ScoreType::Int64 => ScoreInput::Int(match random.below(60) {
            0 => i64::MAX,
            1 => i64::MIN,
            _ => random.below(7) as i64 - 3,
        }),
        ScoreType::Float64 => ScoreInput::Float(random.pick(&[
            0.0,
            -0.0,
            0.5,
            -0.5,
            1e-300,
            1.5,
            -2.25,
            3.0,
            1e300,
            f64::MAX,
            -1e308,
        ])),
    }
}

impl History {
    fn new(round: usize, random: &mut Random) -> Self {
        let changes = [Changes::Schedules, Changes::Grace, Changes::Keep][round / 4 % 3];
        let definition = definition(changes, round, random);
        // Two weeks before the clocks go back in New York.
        let world = World::new(1_792_368_000 * SECOND + 17);
        world.put(&spec(&definition)).unwrap();
        Self { world, model: Model::new(definition), changes, sent: Vec::new(), keys: 0 }
    }

    fn step(&mut self, random: &mut Random) {
        let name = random.pick(&PLAYERS);
        match random.below(30) {
            0..=13 => self.submit(name, random),
            14..=18 => {
                self.world.advance(random.pick(&[60 * SECOND, 3_600 * SECOND, DAY / 2, DAY, 8 * DAY]));
            }
            19 => {
                let asked = self.world.wait(remove(
                    &self.world.tally(),
                    &board(),
                    player(name),
                    &Origin::BACKGROUND,
                    None,
                ));
                assert_eq!(asked.is_ok(), self.model.remove(&player(name), self.world.now()));
            }
            20 | 21 => {
                let hide = random.below(2) == 0;
                let tally = self.world.tally();
                self.world
                    .wait(erase::ban(&tally, &board(), player(name), hide, Origin::BACKGROUND, None))
                    .unwrap();
                if hide {
                    self.model.banned.insert(player(name));
                } else {
                    self.model.banned.remove(&player(name));
                }
            }
            22 => {
                let asked = self.world.wait(erase::erase(
                    &self.world.tally(),
                    player(name),
                    Origin::BACKGROUND,
                    None,
                ));
                assert_eq!(asked.is_ok(), self.model.erase(&player(name)));
            }
            23 => {
                self.world.stop();
                self.world.advance(random.pick(&[0, DAY, 15 * DAY]));
                self.world.start();
            }
            24 | 25 => self.redefine(random),
            26 | 27 => self.retry(random),
            _ => compare(&self.world, &mut self.model, random),
        }
        if self.changes == Changes::Keep {
            self.close();
        }
    }

    fn close(&mut self) {
        scheduler::close_due(&self.world.tally()).unwrap();
        self.model.close(self.world.now());
    }

    fn submit(&mut self, name: &'static str, random: &mut Random) {
        // Each score has an instant of its own, so that ties are the test's to decide.
        self.world.advance(1 + random.below(1_000) as i64);
        let now = self.world.now();
        let back = random.pick(&[
            None,
            None,
            Some(0),
            Some(-3 * SECOND),
            Some(1_800 * SECOND),
            Some(DAY),
            Some(9 * DAY),
        ]);
        let at = back.map(|back| now.plus(-back));
        let given = score(self.model.definition.score, random);
        let subscore = self.model.definition.has_subscore().then(|| random.below(4) as i64 - 2);
        self.keys += 1;
        let key = format!("k{}", self.keys);
        let done = self.send(name, (given, subscore), at, &key);
        let score = score::ordered(self.model.definition.score, given).unwrap();
        let new = Record { score, subscore: subscore.unwrap_or(0), at: at.map_or(now, |at| at.min(now)) };
        let wanted = self.model.submit(&player(name), new, now);
        match (done, wanted) {
            (Ok(done), Ok(wanted)) => {
                // A period of an older schedule without scores has left no name.
                let named = self.changes != Changes::Schedules;
                if named {
                    assert_eq!(done.closed_periods, wanted.late);
                } else {
                    assert_eq!(done.closed_periods.len(), wanted.late.len());
                }
                let previous = done.previous.map(|previous| previous.record);
                let ranks = (done.previous.and_then(|previous| previous.rank), done.rank);
                assert_eq!((&done.period, done.record), (&wanted.period, wanted.updated.record));
                assert_eq!((done.changed, previous), (wanted.updated.changed, wanted.previous));
                assert_eq!(ranks, wanted.ranks, "{name} in {}", done.period);
                assert!(!done.replayed);
                self.sent.push(Sent {
                    key,
                    at,
                    player: name,
                    given: (given, subscore),
                    when: now,
                    done: wanted,
                });
            }
            (Err(Failure::Rejected(rejection)), Err(wanted)) => assert_eq!(rejection, wanted),
            (done, wanted) => panic!("{done:?} and not {wanted:?}"),
        }
    }

    fn send(
        &self,
        name: &str,
        (score, subscore): (ScoreInput, Option<i64>),
        at: Option<Micros>,
        key: &str,
    ) -> Result<tally_service::scores::submit::Submitted, Failure> {
        let idempotency = Some(idempotency(key));
        let new = NewScore { subscore, at, idempotency, ..self.world.score(name, score) };
        self.world.wait(submit(&self.world.tally(), new)).map(|(_, done)| done)
    }

    /// The same request again: the outcome of then, the ranks of now.
    fn retry(&mut self, random: &mut Random) {
        let now = self.world.now();
        self.sent.retain(|sent| now.since(sent.when) < KEEP_DEFAULT_MICROS);
        if self.sent.is_empty() {
            return;
        }
        let sent = &self.sent[random.below(self.sent.len() as u64) as usize];
        let again = self.send(sent.player, sent.given, sent.at, &sent.key).unwrap();
        let (then, who) = (&sent.done, player(sent.player));
        assert!(again.replayed);
        assert_eq!((again.record, again.changed), (then.updated.record, then.updated.changed));
        assert_eq!((&again.period, again.closed_periods.len()), (&then.period, then.late.len()));
        let previous = again.previous.map(|previous| previous.record);
        assert_eq!((again.rank, previous), (self.model.rank(then.window, &who), then.previous));
        let there = self.model.records.get(&then.window).is_some_and(|records| !records.is_empty());
        if let Some(previous) = again.previous.filter(|_| there) {
            let rank = self.model.rank_of(then.window, &who, &previous.record);
            assert_eq!(previous.rank, (!self.model.banned.contains(&who)).then_some(rank), "{}", then.period);
        }
    }

    /// Adds, changes or removes a period.
    fn redefine(&mut self, random: &mut Random) {
        self.close();
        let mut periods: Vec<PeriodRule> = self.model.rules.iter().map(|rule| rule.says.clone()).collect();
        let at = random.below(periods.len() as u64 + 1) as usize;
        let name = random.pick(&["x", "y", "z"]);
        match random.below(6) {
            0 if at < periods.len() => drop(periods.remove(at)),
            1 if periods.iter().all(|rule| rule.name != name) => {
                periods.insert(at, some_rule(name, self.changes, random));
            }
            _ => {
                let Some(says) = periods.get_mut(at) else { return };
                let other = some_rule(&says.name, self.changes, random);
                match self.changes {
                    Changes::Grace => says.grace_s = other.grace_s,
                    Changes::Keep => says.keep = other.keep,
                    Changes::Schedules if self.is_between(at) => {
                        *says = PeriodRule { grace_s: says.grace_s, ..other };
                    }
                    Changes::Schedules => return,
                }
            }
        }
        let put = self.world.put(&BoardSpec { periods: Some(periods.clone()), ..BoardSpec::default() });
        if periods.is_empty() && !self.model.definition.all_time {
            assert!(matches!(put, Err(Failure::Rejected(Rejection::InvalidDefinition(_)))), "{put:?}");
            return;
        }
        put.unwrap();
        self.model.redefine(periods, self.world.now());
        // The present rules name the periods of a reply.
        self.sent.clear();
    }

    /// Whether no period of a rule is closing.
    fn is_between(&self, at: usize) -> bool {
        let (rule, now) = (&self.model.rules[at], self.world.now());
        let grace = i64::from(rule.says.grace_s) * SECOND;
        rule.span_at(now.plus(-grace)) == rule.span_at(now)
    }
}

fn history(round: usize, seed: u64) {
    let random = &mut Random(seed | 1);
    let mut history = History::new(round, random);
    for _ in 0..150 {
        history.step(random);
    }
    compare(&history.world, &mut history.model, random);
    history.world.stop();
    history.world.start();
    compare(&history.world, &mut history.model, random);
    history.world.stop();
}

#[test]
fn soak_every_period_equals_the_model() {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(default)
    };
    let (rounds, first) = (16 * number("TALLY_SOAK", 1) as usize, number("TALLY_SEED", 7));
    // Most of the time goes into waiting for the disk.
    let next = AtomicUsize::new(0);
    let some = || {
        loop {
            let round = next.fetch_add(1, Ordering::Relaxed);
            if round >= rounds {
                return;
            }
            let seed =
                first.wrapping_mul(1_000_003).wrapping_add(round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let done = std::panic::catch_unwind(|| history(round, seed));
            assert!(done.is_ok(), "round {round} of TALLY_SEED={first} disagrees with the model");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(some);
        }
    });
}
