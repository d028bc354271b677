//! Periods through years in seconds: random submits, removals, bans, clock jumps and restarts against a plain model.
//!
//! The model keeps every part as a map and sorts it when asked. The clock is the test's. `TALLY_SOAK` multiplies the
//! number of histories, `TALLY_SEED` chooses them.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use tally_ranking::Place;
use tally_rules::definition::{Definition, Order, Ranking, Ties, Update, Wish};
use tally_rules::instant::SECOND;
use tally_rules::rank::{self, Counts};
use tally_rules::{Micros, PlayerId, Record, order_key, record};
use tally_service::calendar::Calendar;
use tally_service::periods::keeper;
use tally_service::players::erase;
use tally_service::scores::remove::remove;
use world::{DAY, World, board, player, rule};

/// All time is (0, 0); others are (rule + 1, start).
type PartName = (usize, i64);

struct Model {
    definition: Definition,
    calendars: Vec<Calendar>,
    records: BTreeMap<PartName, BTreeMap<PlayerId, Record>>,
    hidden: BTreeSet<PlayerId>,
}

impl Model {
    fn due(&self, rule: usize, end: Micros) -> Micros {
        end.plus(i64::from(self.definition.periods[rule].grace_s) * SECOND)
    }

    fn is_open(&self, part: PartName, now: Micros) -> bool {
        part.0.checked_sub(1).is_none_or(|rule| {
            let end = self.calendars[rule].span(Micros(part.1)).unwrap().end;
            now < self.due(rule, end)
        })
    }

    /// Parts that a score of that instant counts for, and for how many it came too late.
    fn aim(&self, at: Micros, now: Micros) -> (Vec<PartName>, usize) {
        let all_time = self.definition.all_time.then_some((0, 0));
        let start = |(rule, calendar): (usize, &Calendar)| (rule + 1, calendar.span(at).unwrap().start.0);
        let parts = all_time.into_iter().chain(self.calendars.iter().enumerate().map(start));
        let (open, late): (Vec<_>, Vec<_>) = parts.partition(|part| self.is_open(*part, now));
        (open, late.len())
    }

    fn submit(&mut self, name: &str, score: i64, at: Micros, now: Micros) -> Option<usize> {
        let (open, late) = self.aim(at, now);
        for part in &open {
            let part = self.records.entry(*part).or_default();
            let new = Record { score, subscore: 0, at };
            let updated = record::apply(&self.definition, part.get(&player(name)).copied(), new).unwrap();
            part.insert(player(name), updated.record);
        }
        (!open.is_empty()).then_some(late)
    }

    /// Whether the player was anywhere that is open.
    fn remove(&mut self, name: &str, now: Micros) -> bool {
        let parts: Vec<PartName> =
            self.records.keys().copied().filter(|part| self.is_open(*part, now)).collect();
        parts.iter().fold(false, |known, part| {
            let removed = self.records.get_mut(part).and_then(|records| records.remove(&player(name)));
            known | removed.is_some()
        })
    }

    fn places(&self, part: PartName) -> Vec<Place> {
        let Some(records) = self.records.get(&part) else { return Vec::new() };
        let mut list: Vec<_> = records.iter().filter(|(player, _)| !self.hidden.contains(*player)).collect();
        list.sort_by(|a, b| {
            order_key::compare(&self.definition, (a.1, a.0.as_bytes()), (b.1, b.0.as_bytes()))
        });
        let key = |record: &Record| order_key::normal(&self.definition, record);
        let place = |at: usize| {
            let mut better: Vec<_> =
                list.iter().map(|(_, one)| key(one)).filter(|one| *one < key(list[at].1)).collect();
            let count = better.len() as u64;
            better.dedup();
            let counts = Counts { before: at as u64, better: count, distinct_better: better.len() as u64 };
            let rank = rank::rank(self.definition.ranking, counts);
            Place { rank, player: list[at].0.clone(), record: *list[at].1 }
        };
        (0..list.len()).map(place).collect()
    }
}

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

fn definition(random: &mut Random) -> Definition {
    let periods = vec![
        rule("daily", "0 0 * * *", "America/New_York", 400, random.pick(&[0, 3_600])),
        rule("weekly", "0 0 * * 1", "Asia/Seoul", 400, 0),
    ];
    Definition {
        order: random.pick(Order::ALL),
        update: random.pick(Update::ALL),
        ranking: random.pick(Ranking::ALL),
        ties: random.pick(Ties::ALL),
        all_time: random.below(3) > 0,
        periods,
        ..Definition::default()
    }
}

fn wish(definition: &Definition) -> Wish {
    Wish {
        order: Some(definition.order),
        update: Some(definition.update),
        ranking: Some(definition.ranking),
        ties: Some(definition.ties),
        all_time: Some(definition.all_time),
        periods: Some(definition.periods.clone()),
        ..Wish::default()
    }
}

/// Every part reads as the model says: those in memory, the closed ones, and `previous`.
fn compare(world: &World, model: &Model) {
    keeper::close_due(&world.tally()).unwrap();
    let now = world.now();
    if model.definition.all_time {
        assert_eq!(world.page("all_time").unwrap(), model.places((0, 0)));
    }
    for (part, records) in &model.records {
        let Some(rule) = part.0.checked_sub(1) else { continue };
        let (calendar, name) = (&model.calendars[rule], &model.definition.periods[rule].name);
        let text = format!("{name}:{}", calendar.name(Micros(part.1)));
        let wanted = model.places(*part);
        let current = calendar.span(now).unwrap().start.0 == part.1;
        match world.page(&text) {
            Ok(page) => assert_eq!(page, wanted, "{text} at {now:?}"),
            Err(_) => assert!(wanted.is_empty() && !current, "{text} is not there: {records:?}"),
        }
        if current {
            assert_eq!(world.page(name).unwrap(), wanted, "{name}");
        }
    }
    for (rule, calendar) in model.calendars.iter().enumerate() {
        let name = &model.definition.periods[rule].name;
        let before = calendar.span(calendar.span(now).unwrap().start.plus(-1)).unwrap();
        let wanted = model.places((rule + 1, before.start.0));
        assert_eq!(world.page(&format!("{name}:previous")).unwrap_or_default(), wanted, "{name}:previous");
    }
}

fn step(world: &World, model: &mut Model, random: &mut Random) {
    let name = random.pick(&["ann", "bob", "cid", "dee", "eve"]);
    match random.below(20) {
        0..=9 => {
            // Each score has an instant of its own, so that ties are the test's to decide.
            world.advance(1 + random.below(1_000) as i64);
            let back = random.pick(&[0, 0, 0, SECOND, 1_800 * SECOND, DAY, 9 * DAY]);
            let (at, score) = (world.now().plus(-back), random.below(7) as i64 - 3);
            let done = world.submit(name, score, Some(at)).map(|late| late.len()).ok();
            assert_eq!(done, model.submit(name, score, at, world.now()));
        }
        10..=13 => world.advance(random.pick(&[60 * SECOND, 3_600 * SECOND, DAY / 2, DAY, 8 * DAY])),
        14 => {
            let asked = world.wait(remove(&world.tally(), &board(), player(name), None));
            assert_eq!(asked.is_ok(), model.remove(name, world.now()));
        }
        15 | 16 => {
            let hide = random.below(2) == 0;
            world.wait(erase::ban(&world.tally(), &board(), player(name), hide, None)).unwrap();
            if hide {
                model.hidden.insert(player(name));
            } else {
                model.hidden.remove(&player(name));
            }
        }
        17 => {
            let asked = world.wait(erase::erase(&world.tally(), player(name), None));
            let mut known = model.hidden.remove(&player(name));
            model.records.values_mut().for_each(|part| known |= part.remove(&player(name)).is_some());
            assert_eq!(asked.is_ok(), known);
        }
        18 => {
            world.stop();
            world.advance(random.pick(&[0, DAY, 15 * DAY]));
            world.start();
        }
        _ => compare(world, model),
    }
}

fn history(seed: u64) {
    let random = &mut Random(seed | 1);
    let definition = definition(random);
    // Two weeks before the clocks go back in New York.
    let world = World::new(1_792_368_000 * SECOND + 17);
    world.put(&wish(&definition)).unwrap();
    let calendars = definition.periods.iter();
    let calendars = calendars.map(|rule| Calendar::parse(&rule.schedule, &rule.time_zone).unwrap()).collect();
    let mut model = Model { definition, calendars, records: BTreeMap::new(), hidden: BTreeSet::new() };
    for _ in 0..120 {
        step(&world, &mut model, random);
    }
    compare(&world, &model);
    world.stop();
}

#[test]
fn soak_every_period_equals_the_model() {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(default)
    };
    let (times, first) = (number("TALLY_SOAK", 1), number("TALLY_SEED", 7));
    for round in 0..20 * times {
        let seed = first.wrapping_mul(1_000_003).wrapping_add(round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let done = std::panic::catch_unwind(|| history(seed));
        assert!(done.is_ok(), "history {seed} of TALLY_SEED={first} disagrees with the model");
    }
}
