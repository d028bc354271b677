//! A ranking index against a sorted vector: random sequences of operations, every answer and every invariant.
//!
//! Leaves hold twenty and nodes eight, so that a few hundred players make two or three levels of nodes. Splits, merges and
//! rebalances then happen all the time. Few scores and few stamps, so that ties are the rule. A sequence mixes phases that
//! grow, churn and shrink the board; a rebuild through `Builder` is one more operation.
//!
//! `TALLY_SOAK=n` runs n times as many cases; `PROPTEST_RNG_SEED` chooses them.

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::test_runner::Config;
use tally_index::{Builder, Entry, EntryRef, RankingIndex, Score, Tie};

type Small<S> = RankingIndex<S, 20, 8>;

/// One step. Players and positions are taken modulo the number that exists.
#[derive(Clone, Debug)]
enum Op {
    Set { player: u16, score: i64, stamp: i64 },
    Nudge { player: u16, by: i64 },
    Remove { player: u16 },
    RemoveAt { place: u16, count: u8 },
    Ask { player: u16, score: i64, stamp: i64 },
    Walk { place: u16, count: u8 },
    Rebuild { run_max: u8 },
}

/// The index that runs a sequence.
#[derive(Clone, Debug)]
struct Board {
    tie: Tie,
    dense: bool,
    players: u16,
    scores: i64,
    /// Spreads scores, so that widths of all kinds occur.
    scale: i64,
    grow: Vec<Op>,
    churn: Vec<Op>,
    shrink: Vec<Op>,
}

/// Makes a score of either type from a small number.
trait Make: Score {
    fn make(number: i64, scale: i64) -> Self;
}

impl Make for i64 {
    fn make(number: i64, scale: i64) -> i64 {
        number.wrapping_mul(scale)
    }
}

impl Make for [i64; 2] {
    fn make(number: i64, scale: i64) -> [i64; 2] {
        [number / 3, (number % 3).wrapping_mul(scale)]
    }
}

/// The sorted vector.
struct Model<S> {
    tie: Tie,
    rows: Vec<(Vec<u8>, Entry<S>)>,
}

impl<S: Score> Model<S> {
    fn compare(&self, a: &(Vec<u8>, Entry<S>), b: &(Vec<u8>, Entry<S>)) -> Ordering {
        let ids = a.0.cmp(&b.0);
        a.1.score.cmp(&b.1.score).then(match self.tie {
            Tie::StampAscending => a.1.stamp.cmp(&b.1.stamp).then(ids),
            Tie::StampDescending => b.1.stamp.cmp(&a.1.stamp).then(ids),
            Tie::Id => ids,
            Tie::IdReversed => ids.reverse(),
        })
    }

    fn place(&self, id: &[u8]) -> Option<usize> {
        self.rows.iter().position(|row| row.0 == id)
    }

    fn remove(&mut self, id: &[u8]) -> Option<Entry<S>> {
        self.place(id).map(|at| self.rows.remove(at).1)
    }

    fn set(&mut self, id: &[u8], entry: Entry<S>) -> Option<Entry<S>> {
        let old = self.remove(id);
        let at = self.lower_bound(id, entry);
        self.rows.insert(at, (id.to_vec(), entry));
        old
    }

    fn lower_bound(&self, id: &[u8], entry: Entry<S>) -> usize {
        let key = (id.to_vec(), entry);
        self.rows.partition_point(|row| self.compare(row, &key).is_lt())
    }

    fn distinct_better(&self, score: S) -> usize {
        let mut scores: Vec<S> = self.rows.iter().map(|row| row.1.score).filter(|&it| it < score).collect();
        scores.dedup();
        scores.len()
    }

    fn row(&self, at: usize) -> Option<EntryRef<'_, S>> {
        self.rows.get(at).map(|(id, entry)| EntryRef { id, score: entry.score, stamp: entry.stamp })
    }
}

/// Ids of several lengths, not in the order of their numbers.
fn id(player: u16) -> Vec<u8> {
    let mut id = player.wrapping_mul(40_503).to_be_bytes().to_vec();
    id.resize(2 + usize::from(player % 5) * 7, b'x');
    id
}

struct Run<'a, S: Score> {
    board: &'a Board,
    order: Small<S>,
    model: Model<S>,
}

impl<S: Make> Run<'_, S> {
    fn entry(&self, score: i64, stamp: i64) -> Entry<S> {
        Entry { score: S::make(score % self.board.scores, self.board.scale), stamp }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Set { player, score, stamp } => {
                let id = id(player % self.board.players);
                let entry = self.entry(score, stamp);
                assert_eq!(self.order.set(&id, entry), self.model.set(&id, entry));
            }
            Op::Nudge { player, by } => {
                let id = id(player % self.board.players);
                let Some(at) = self.model.place(&id) else { return };
                // Somewhere near: mostly within the same leaf.
                let near = at.saturating_add_signed(by as isize).min(self.model.rows.len() - 1);
                let Entry { score, stamp } = self.model.rows[near].1;
                let entry = Entry { score, stamp: stamp.wrapping_add(by % 2) };
                assert_eq!(self.order.set(&id, entry), self.model.set(&id, entry));
            }
            Op::Remove { player } => {
                let id = id(player % self.board.players);
                assert_eq!(self.order.remove(&id), self.model.remove(&id));
            }
            Op::RemoveAt { place, count } => {
                for _ in 0..count {
                    let Some(len) = self.model.rows.len().checked_sub(1) else { return };
                    let (id, entry) = self.model.rows.remove(usize::from(place).min(len));
                    assert_eq!(self.order.remove(&id), Some(entry));
                }
            }
            Op::Ask { player, score, stamp } => self.ask(player, score, stamp),
            Op::Walk { place, count } => self.walk(usize::from(place), usize::from(count)),
            Op::Rebuild { run_max } => self.rebuild(usize::from(run_max) + 1),
        }
    }

    fn ask(&self, player: u16, score: i64, stamp: i64) {
        let Run { order, model, board } = self;
        let id = id(player % board.players);
        let place = model.place(&id);
        let entry = place.map(|at| model.rows[at].1);
        assert_eq!(order.get(&id), entry);
        assert_eq!(order.ordinal(&id), place.map(|at| at as u64));
        assert_eq!(order.find(&id), entry.zip(place.map(|at| at as u64)));

        let asked = self.entry(score, stamp);
        let count = |of: &dyn Fn(S) -> bool| model.rows.iter().filter(|row| of(row.1.score)).count() as u64;
        assert_eq!(order.count_better(asked.score), count(&|it| it < asked.score));
        assert_eq!(order.count_at_least(asked.score), count(&|it| it <= asked.score));
        if board.dense {
            assert_eq!(order.count_distinct_better(asked.score), model.distinct_better(asked.score) as u64);
        }
        for entry in [Some(asked), entry].into_iter().flatten() {
            let bound = order.lower_bound(entry.score, entry.stamp, &id);
            assert_eq!(bound, model.lower_bound(&id, entry) as u64);
        }
        assert_eq!(order.lower_bound(asked.score, asked.stamp, b""), model.lower_bound(b"", asked) as u64);
    }

    fn walk(&self, from: usize, count: usize) {
        let Run { order, model, .. } = self;
        let from = from % (model.rows.len() + 2);
        assert_eq!(order.at(from as u64), model.row(from));
        let there: Vec<_> = order.range(from as u64).take(count).collect();
        let expected: Vec<_> = (from..model.rows.len()).take(count).filter_map(|at| model.row(at)).collect();
        assert_eq!(there, expected);
        let back: Vec<_> = order.range_back(from as u64).take(count).collect();
        let places = (0..=from).rev().filter(|_| from < model.rows.len()).take(count);
        let expected: Vec<_> = places.filter_map(|at| model.row(at)).collect();
        assert_eq!(back, expected);
    }

    fn rebuild(&mut self, run_max: usize) {
        let Board { tie, dense, .. } = *self.board;
        let mut builder = Builder::<S, 20, 8>::with_run(tie, dense, run_max);
        let mut rows: Vec<_> = self.model.rows.iter().collect();
        // Any order but the right one.
        rows.sort_by_key(|row| {
            row.0.iter().rev().fold(0u64, |sum, &it| sum.wrapping_mul(31) + u64::from(it))
        });
        // As many threads would, each with some of them.
        let mut others: Vec<_> =
            (0..run_max % 3).map(|_| Builder::<S, 20, 8>::with_run(tie, dense, run_max)).collect();
        for (at, (id, entry)) in rows.into_iter().enumerate() {
            match at.checked_rem(others.len() + 1).filter(|other| *other > 0) {
                Some(other) => others[other - 1].push(id, *entry),
                None => builder.push(id, *entry),
            }
        }
        others.into_iter().for_each(|other| builder.absorb(other));
        assert_eq!(builder.count(), self.model.rows.len() as u64);
        self.order = builder.finish().expect("ids are distinct");
    }

    /// All players of the board at once, those without an entry too.
    fn find_many(&self) {
        let ids: Vec<_> = (0..self.board.players).map(id).collect();
        let ids: Vec<_> = ids.iter().map(Vec::as_slice).collect();
        let scores: Vec<_> = self.model.rows.iter().map(|row| row.1.score).collect();
        self.order.warm(&ids, &scores);
        let found = self.order.find_many(&ids);
        assert!(found.eq(ids.iter().map(|id| self.order.find(id))));
        assert!(self.order.get_many(&ids).eq(ids.iter().map(|id| self.order.get(id))));
    }

    fn audit(&self) {
        self.find_many();
        self.order.check();
        assert_eq!(self.order.len(), self.model.rows.len() as u64);
        assert_eq!(self.order.is_empty(), self.model.rows.is_empty());
        self.walk(0, usize::MAX);
    }
}

fn run<S: Make>(board: &Board) {
    let model = Model { tie: board.tie, rows: Vec::new() };
    let mut run = Run::<S> { board, order: RankingIndex::new(board.tie, board.dense), model };
    for phase in [&board.grow, &board.churn, &board.shrink] {
        for (step, op) in phase.iter().enumerate() {
            run.step(op);
            if step % 16 == 0 {
                run.order.check();
            }
        }
        run.audit();
    }
    while let Some((id, entry)) = run.model.rows.pop() {
        assert_eq!(run.order.remove(&id), Some(entry));
    }
    run.audit();
}

fn set() -> impl Strategy<Value = Op> {
    (any::<u16>(), 0..1000i64, stamp()).prop_map(|(player, score, stamp)| Op::Set { player, score, stamp })
}

fn stamp() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..4i64, 1 => 0..1_000_000i64, 1 => any::<i64>()]
}

fn read() -> impl Strategy<Value = Op> {
    let ask = (any::<u16>(), 0..1000i64, stamp());
    prop_oneof![
        2 => ask.prop_map(|(player, score, stamp)| Op::Ask { player, score, stamp }),
        1 => (any::<u16>(), any::<u8>()).prop_map(|(place, count)| Op::Walk { place, count }),
    ]
}

fn remove() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => any::<u16>().prop_map(|player| Op::Remove { player }),
        1 => (0..300u16, 0..40u8).prop_map(|(place, count)| Op::RemoveAt { place, count }),
    ]
}

fn churn() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => set(),
        6 => (any::<u16>(), -6..6i64).prop_map(|(player, by)| Op::Nudge { player, by }),
        6 => remove(),
        8 => read(),
        1 => any::<u8>().prop_map(|run_max| Op::Rebuild { run_max }),
    ]
}

fn board() -> impl Strategy<Value = Board> {
    let tie = prop_oneof![
        Just(Tie::StampAscending),
        Just(Tie::StampDescending),
        Just(Tie::Id),
        Just(Tie::IdReversed)
    ];
    let scale = prop_oneof![Just(1), Just(-1000), Just(1 << 40), Just(0x0123_4567_89ab_cdef)];
    let scores = prop_oneof![Just(1), Just(4), Just(30), Just(1000)];
    let grow = prop::collection::vec(prop_oneof![6 => set(), 1 => read()], 0..600);
    let churn = prop::collection::vec(churn(), 0..300);
    let shrink = prop::collection::vec(prop_oneof![5 => remove(), 1 => read(), 1 => set()], 0..300);
    (tie, any::<bool>(), 20..400u16, scores, scale, grow, churn, shrink).prop_map(
        |(tie, dense, players, scores, scale, grow, churn, shrink)| Board {
            tie,
            dense,
            players,
            scores,
            scale,
            grow,
            churn,
            shrink,
        },
    )
}

/// Proptest's own environment is honoured; the number of cases is ours.
fn config() -> Config {
    let soak = std::env::var("TALLY_SOAK").ok().map_or(1, |it| it.parse().expect("TALLY_SOAK is a number"));
    Config { cases: 400 * soak, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_score(board in board()) {
        run::<i64>(&board);
    }

    #[test]
    fn score_and_subscore(board in board()) {
        run::<[i64; 2]>(&board);
    }
}
