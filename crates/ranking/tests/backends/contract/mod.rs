//! The contract of every ranking: one suite, run by `ranking_contract!` over each backend unchanged.
//!
//! A backend is a small test type. It hides how a change gets its version and how a window is loaded anew. No test of the suite
//! depends on the backend. Each verifies the kind of its server, so that no run tests the wrong one. `TALLY_SOAK` multiplies the
//! number of cases.

mod memory;
mod model;
pub(crate) mod redis;

pub(crate) use memory::Memory;

use model::{Model, check, definitions, ops, player, step};
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use tally_ranking::{Edge, PageQuery, PageStart, Published, RankedEntry, RankingChange, Reads};
use tally_rules::definition::{Definition, Order, Ranking, Subscore, Ties, Update};
use tally_rules::{Micros, PlayerId, Record};

/// A ranking of one window, empty at first.
pub(crate) trait Backend {
    /// The number of cases of a property test: those over a network take longer.
    const CASES: u32;

    /// An empty ranking.
    fn new(definition: &Definition) -> Self;
    /// Publishes changes in their order, each with the record before it.
    fn publish(&self, changes: &[(RankingChange, Option<Record>)], each: impl FnMut(usize, Published));
    /// Loads it anew.
    fn reload(&self, records: &BTreeMap<PlayerId, Record>);
    fn read<T>(&self, with: impl Fn(&dyn Reads) -> T) -> T;
    fn total(&self) -> u64;
    /// Fails unless the backend that the name says gives the answers.
    fn assert_answering_node(&self);
}

/// The same random submits, removals, batches and reloads as the model, then every read compared.
pub(crate) fn every_read_equals_the_model<B: Backend>() {
    let times = std::env::var("TALLY_SOAK").ok().and_then(|times| times.parse::<u32>().ok()).unwrap_or(1);
    let config = Config { cases: B::CASES * times, source_file: Some(file!()), ..Config::default() };
    let ran = TestRunner::new(config).run(&(definitions(), ops()), |(definition, ops)| {
        let ranking = B::new(&definition);
        let mut model = Model { definition, records: BTreeMap::new() };
        for op in &ops {
            step(&mut model, &ranking, op);
        }
        check(&model, &ranking);
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

/// Scores that share a double, at both ends and where doubles begin to miss integers, with subscores at theirs.
pub(crate) fn scores_are_exact_to_the_last_bit<B: Backend>() {
    let edge = 1_i64 << 53;
    let scores = [i64::MIN, i64::MIN + 1, -edge - 1, -edge, -1, 0, edge, edge + 1, i64::MAX - 1, i64::MAX];
    let ends = [i64::MIN, -1, 0, i64::MAX];
    for ranking in Ranking::ALL {
        for order in Order::ALL {
            let definition = Definition {
                order: *order,
                ranking: *ranking,
                subscore: Subscore::Descending,
                update: Update::Latest,
                ..Definition::default()
            };
            let backend = B::new(&definition);
            let mut model = Model { definition, records: BTreeMap::new() };
            let mut changes = Vec::new();
            for (nth, score) in scores.iter().enumerate() {
                for (of, subscore) in ends.iter().enumerate() {
                    let id = PlayerId::new(&format!("p{}", (nth * ends.len() + of) * 7 % 41)).unwrap();
                    let record = Record { score: *score, subscore: *subscore, at: Micros(0) };
                    model.records.insert(id.clone(), record);
                    changes.push((RankingChange { player: id, record: Some(record), ranked: false }, None));
                }
            }
            backend.publish(&changes, |_, _| panic!("nobody asked"));
            check(&model, &backend);
        }
    }
}

/// Pages at every depth of a board that is larger than any single request, from both ends.
pub(crate) fn pages_far_inside<B: Backend>() {
    for ranking in [Ranking::Ordinal, Ranking::Competition] {
        let definition = Definition { ranking, ties: Ties::First, ..Definition::default() };
        let backend = B::new(&definition);
        let mut records = BTreeMap::new();
        for number in 0_i64..3_000 {
            let id = PlayerId::new(&format!("p{}", number * 7_919 % 100_003)).unwrap();
            let score = number.wrapping_mul(2_654_435_761) % 701;
            records.insert(id, Record { score, subscore: 0, at: Micros(number) });
        }
        backend.reload(&records);
        let model = Model { definition, records };
        let places = model.places(&model.sorted());
        for edge in [Edge::Best, Edge::Worst] {
            for offset in [0, 1, 199, 255, 256, 257, 1_000, 1_500, 2_743, 2_990, 3_000, 9_000, u64::MAX] {
                let start = PageStart::Offset(offset);
                let query = PageQuery { edge, start, limit: 40, min: None, max: None };
                let page = backend.read(|it| it.page(&query));
                let skip = usize::try_from(offset).unwrap();
                let wanted: Vec<_> = match edge {
                    Edge::Best => places.iter().skip(skip).take(40).cloned().collect(),
                    Edge::Worst => places.iter().rev().skip(skip).take(40).cloned().collect(),
                };
                assert_eq!(page.entries, wanted, "{ranking} {edge:?} {offset}");
                assert_eq!(page.more, skip.saturating_add(40) < places.len());
                check_walk(&backend, &places, edge, skip);
            }
        }
        let half = places[1_234].player.clone();
        let around = backend.read(|it| it.around(&half, 700, 5)).unwrap();
        assert_eq!(around.entries, places[534..1_240]);
    }
}

/// A scan of more than one request from an existing position.
fn check_walk(backend: &impl Backend, places: &[RankedEntry], edge: Edge, from: usize) {
    if from >= places.len() {
        return;
    }
    let back = edge == Edge::Worst;
    let met = backend.read(|it| {
        let mut met = Vec::new();
        it.visit(from as u64, 2_100, back, &mut |id, record| met.push((id.to_vec(), record)));
        met
    });
    let one = |place: &RankedEntry| (place.player.as_bytes().to_vec(), place.record);
    let wanted: Vec<_> = if back {
        places[..=from].iter().rev().take(2_100).map(one).collect()
    } else {
        places[from..].iter().take(2_100).map(one).collect()
    };
    assert_eq!(met, wanted, "{edge:?} from {from}");
}

/// Searching by a property of members, as ranges of members do.
pub(crate) fn a_partition_point_is_that_of_the_sorted_members<B: Backend>() {
    for ties in [Ties::Player, Ties::PlayerReversed] {
        let definition = Definition { ties, ..Definition::default() };
        let backend = B::new(&definition);
        let mut ids: Vec<PlayerId> = (0..500).map(|n| PlayerId::new(&format!("m{n}")).unwrap()).collect();
        let record = Record { score: 7, subscore: 0, at: Micros(0) };
        backend.reload(&ids.iter().map(|id| (id.clone(), record)).collect());
        ids.sort();
        if ties == Ties::PlayerReversed {
            ids.reverse();
        }
        for at in [0, 1, 31, 250, 499, 500] {
            let is_before = |id: &[u8]| ids[..at].iter().any(|one| one.as_bytes() == id);
            assert_eq!(backend.read(|it| it.partition(&is_before)), at as u64, "{ties}");
        }
    }
}

/// The rank that a record has or would have, for players in the ranking, elsewhere, or not at all.
pub(crate) fn the_rank_of_a_record_is_among_the_others<B: Backend>() {
    for ranking in Ranking::ALL {
        for ties in Ties::ALL {
            let definition = Definition { ranking: *ranking, ties: *ties, ..Definition::default() };
            let backend = B::new(&definition);
            let mut records = BTreeMap::new();
            for number in 0_u8..20 {
                let score = i64::from(number % 7);
                records
                    .insert(player(number), Record { score, subscore: 0, at: Micros(i64::from(number % 4)) });
            }
            backend.reload(&records);
            let nobody = PlayerId::new("nobody").unwrap();
            for id in records.keys().chain([&nobody]) {
                for (score, at) in [(i64::MIN, 0), (0, 2), (3, 1), (6, 9), (i64::MAX, 0)] {
                    let record = Record { score, subscore: 0, at: Micros(at) };
                    let mut moved = Model { definition: definition.clone(), records: records.clone() };
                    moved.records.insert(id.clone(), record);
                    let rank = backend.read(|it| it.rank_of(id, &record));
                    assert_eq!(Some(rank), moved.rank_of(id), "{ranking} {ties} {id:?} {record:?}");
                }
            }
        }
    }
}

/// A ranking without players has answers too.
pub(crate) fn an_empty_order_answers<B: Backend>() {
    for ranking in Ranking::ALL {
        let backend = B::new(&Definition { ranking: *ranking, ..Definition::default() });
        let (id, record) = (player(1), Record { score: 1, subscore: 0, at: Micros(0) });
        backend.read(|it| {
            assert_eq!((it.total(), it.record(b"x"), it.find(b"x"), it.ranked(&id)), (0, None, None, None));
            assert_eq!((it.rank_of(&id, &record), it.around(&id, 1, 1)), (1, None));
            assert_eq!((it.score_places(Some(1), None), it.partition(&|_| true)), ((0, 0), 0));
            assert_eq!(it.page(&PageQuery { limit: 5, ..PageQuery::default() }).entries, []);
            assert_eq!(it.among(std::slice::from_ref(&id)).missing, std::slice::from_ref(&id));
            let mut cursor = it.scan(0, 10, &mut |_, _| panic!("nobody is there"));
            while cursor != 0 {
                cursor = it.scan(cursor, 10, &mut |_, _| panic!("nobody is there"));
            }
            it.visit(0, 5, true, &mut |_, _| panic!("nobody is there"));
            assert_eq!(it.record(b"\xff\xfe"), None, "bytes that are no id");
        });
    }
}

/// Runs the suite over one backend.
#[macro_export]
macro_rules! ranking_contract {
    ($($name:ident: $backend:ty),* $(,)?) => { $(
        mod $name {
            use super::contract::{self, Backend};
            #[test]
            fn the_expected_node_answers() {
                <$backend>::new(&tally_rules::Definition::default()).assert_answering_node();
            }
            #[test]
            fn soak_every_read_equals_the_model() {
                contract::every_read_equals_the_model::<$backend>();
            }
            #[test]
            fn scores_are_exact_to_the_last_bit() {
                contract::scores_are_exact_to_the_last_bit::<$backend>();
            }
            #[test]
            fn pages_far_inside() {
                contract::pages_far_inside::<$backend>();
            }
            #[test]
            fn a_partition_point_is_that_of_the_sorted_members() {
                contract::a_partition_point_is_that_of_the_sorted_members::<$backend>();
            }
            #[test]
            fn the_rank_of_a_record_is_among_the_others() {
                contract::the_rank_of_a_record_is_among_the_others::<$backend>();
            }
            #[test]
            fn an_empty_order_answers() {
                contract::an_empty_order_answers::<$backend>();
            }
        }
    )* };
}
