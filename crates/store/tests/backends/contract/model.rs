//! Random operations on a store and on a few `BTreeMap`s; reopening is one of the operations.
//!
//! There are few names, so that operations meet. The result is compared after each operation, and the whole store after the
//! last. A failing sequence shrinks to a short one. `TALLY_SOAK` multiplies the number of sequences.

use super::boards::definitions;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use tally_store::{ImportKey, ImportRow, KeyChange};

const CASES: u32 = 32;
const OPERATIONS: usize = 40;
const PLAYERS: [&str; 8] = ["a", "A", "a\0", "ä", "zz", "日本", "\u{10ffff}", " "];
const NAMES: [&str; 4] = ["one", "two", "One", "drei ä"];
const PARTS: u64 = 3;

/// Indices are taken modulo what there is at that moment.
#[derive(Clone, Debug)]
enum Op {
    /// Adds to records, removes some, and stores requests and the progress of an import with it.
    Batch {
        rows: Vec<(u8, u8, u8, Option<i64>)>,
        requests: Vec<(u8, u8, i8)>,
        import: Option<(u8, u32)>,
    },
    /// The same, and a row that must be refused.
    BadBatch {
        rows: Vec<(u8, u8, u8, Option<i64>)>,
        requests: Vec<(u8, u8, i8)>,
    },
    Create {
        name: u8,
        definition: u8,
    },
    Redefine {
        name: u8,
        definition: u8,
    },
    Delete {
        name: u8,
    },
    CreateKey {
        id: u8,
        at: i8,
    },
    RevokeKey {
        id: u8,
    },
    Remember {
        name: u8,
        value: Vec<u8>,
    },
    Expire {
        before: i8,
        limit: u8,
    },
    Purge {
        limit: u8,
    },
    Settle,
    Reopen,
}

#[derive(Default)]
struct Model {
    boards: BTreeMap<BoardNo, BoardRow>,
    boards_given: u32,
    dead: BTreeSet<BoardNo>,
    scores: BTreeMap<ScoreKey, Record>,
    requests: BTreeMap<RequestKey, Stored>,
    imports: BTreeMap<ImportKey, ImportRow>,
    keys: Vec<(KeyRow, bool)>,
    meta: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn random_operations_agree_with_a_model(backend: &dyn Backend) {
    let times = std::env::var("TALLY_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let config = Config { cases: CASES * times, failure_persistence: None, ..Config::default() };
    let done = TestRunner::new(config).run(&vec(operation(), 1..OPERATIONS), |operations| {
        play(&*backend.another(), &operations);
        Ok(())
    });
    if let Err(failure) = done {
        panic!("{failure}");
    }
}

fn operation() -> impl Strategy<Value = Op> {
    let number = prop_oneof![8 => -9..9_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => any::<i64>()];
    let row = (any::<u8>(), any::<u8>(), any::<u8>(), proptest::option::weighted(0.8, number));
    let rows = || vec(row.clone(), 0..12);
    let requests = || vec(any::<(u8, u8, i8)>(), 0..4);
    let import = proptest::option::of(any::<(u8, u32)>());
    prop_oneof![
        8 => (rows(), requests(), import).prop_map(|(rows, requests, import)| Op::Batch { rows, requests, import }),
        2 => (rows(), requests()).prop_map(|(rows, requests)| Op::BadBatch { rows, requests }),
        4 => any::<(u8, u8)>().prop_map(|(name, definition)| Op::Create { name, definition }),
        1 => any::<(u8, u8)>().prop_map(|(name, definition)| Op::Redefine { name, definition }),
        2 => any::<u8>().prop_map(|name| Op::Delete { name }),
        1 => any::<(u8, i8)>().prop_map(|(id, at)| Op::CreateKey { id, at }),
        1 => any::<u8>().prop_map(|id| Op::RevokeKey { id }),
        1 => (0..3_u8, vec(any::<u8>(), 0..5)).prop_map(|(name, value)| Op::Remember { name, value }),
        2 => (any::<i8>(), 0..6_u8).prop_map(|(before, limit)| Op::Expire { before, limit }),
        2 => (0..6_u8).prop_map(|limit| Op::Purge { limit }),
        2 => Just(Op::Settle),
        2 => Just(Op::Reopen),
    ]
}

fn play(backend: &dyn Backend, operations: &[Op]) {
    let mut store = open(backend);
    let mut model = Model::default();
    for operation in operations {
        if matches!(operation, Op::Reopen) {
            drop(store);
            store = open(backend);
        } else {
            model.step(&*store, operation);
        }
    }
    model.compare(&*store);
    drop(store);
    model.compare(&*open(backend));
}

impl Model {
    fn step(&mut self, store: &dyn Store, operation: &Op) {
        match operation {
            Op::Batch { rows, requests, import } => self.batch(store, rows, requests, *import, false),
            Op::BadBatch { rows, requests } => self.batch(store, rows, requests, None, true),
            Op::Create { name, definition } => self.create(store, *name, *definition),
            Op::Redefine { name, definition } => {
                let Some(no) = self.live(*name) else { return };
                let definition = pick(&definitions(), *definition).clone();
                let boards = vec![BoardChange::Redefine(no, definition.clone())];
                write(store, &WriteSet { boards, ..WriteSet::default() }).unwrap();
                self.boards.get_mut(&no).unwrap().definition = definition;
            }
            Op::Delete { name } => {
                let Some(no) = self.live(*name) else { return };
                write(store, &WriteSet { boards: vec![BoardChange::Delete(no)], ..WriteSet::default() })
                    .unwrap();
                self.boards.remove(&no);
                self.dead.insert(no);
            }
            Op::CreateKey { id, at } => {
                let row = key_row(&format!("k{}", id % 4), i64::from(*at));
                let keys = vec![KeyChange::Create(row.clone())];
                let done = write(store, &WriteSet { keys, ..WriteSet::default() });
                let taken = self.keys.iter().any(|(old, _)| old.id == row.id);
                assert_eq!(done.is_err(), taken, "{done:?}");
                if !taken {
                    self.keys.push((row, true));
                }
            }
            Op::RevokeKey { id } => {
                let id: Arc<str> = format!("k{}", id % 4).into();
                let keys = vec![KeyChange::Revoke(id.clone(), Micros(1))];
                write(store, &WriteSet { keys, ..WriteSet::default() }).unwrap();
                self.keys.iter_mut().filter(|(row, _)| row.id == id).for_each(|(_, live)| *live = false);
            }
            Op::Remember { name, value } => {
                store.set_meta(&format!("m{name}"), value).unwrap();
                self.meta.insert(format!("m{name}"), value.clone());
            }
            Op::Expire { before, limit } => self.expire(store, Micros((*before).into()), (*limit).into()),
            Op::Purge { limit } => self.purge(store, (*limit).into()),
            Op::Settle => store.checkpoint().unwrap(),
            Op::Reopen => unreachable!("done by the caller"),
        }
    }

    /// Any live board, by index.
    fn live(&self, index: u8) -> Option<BoardNo> {
        let count = self.boards.len();
        self.boards.keys().nth(usize::from(index).checked_rem(count)?).copied()
    }

    fn create(&mut self, store: &dyn Store, name: u8, definition: u8) {
        let (name, definition) = (pick(&NAMES, name), pick(&definitions(), definition).clone());
        let taken = self.boards.values().any(|row| row.id.as_str() == *name);
        match create(store, name, &definition) {
            Ok(no) => {
                assert!(!taken);
                self.boards_given += 1;
                assert_eq!(no, BoardNo(self.boards_given));
                let id = BoardId::new(name).unwrap();
                self.boards.insert(no, BoardRow { no, id, definition, created_at: Micros(5) });
            }
            Err(error) => assert!(taken && matches!(error, StoreError::Row(_)), "{error:?}"),
        }
    }

    fn batch(
        &mut self,
        store: &dyn Store,
        rows: &[(u8, u8, u8, Option<i64>)],
        requests: &[(u8, u8, i8)],
        import: Option<(u8, u32)>,
        bad: bool,
    ) {
        let rows: BTreeMap<ScoreKey, Option<i64>> = rows
            .iter()
            .filter_map(|(board, window, player, add)| {
                let no = self.live(*board)?;
                Some((key(no.0, u64::from(*window) % PARTS, pick::<&str>(&PLAYERS, *player)), *add))
            })
            .collect();
        let requests: BTreeMap<RequestKey, Stored> = requests
            .iter()
            .map(|(name, print, at)| {
                let outcome = Outcome::BoardPut { created: print % 2 == 0 };
                (request("s", &format!("{}", name % 6)), stored(*print, i64::from(*at), outcome))
            })
            .collect();
        let import = import.and_then(|(board, lines)| {
            let row = ImportRow { lines: lines.into(), finished: lines % 2 == 0, ..ImportRow::default() };
            Some((ImportKey { board: self.live(board)?, digest: [3; 32] }, row))
        });
        let plan = ReadSet {
            boards: (0..=self.boards_given + 1).map(BoardNo).collect(),
            scores: rows.keys().cloned().collect(),
            requests: requests.keys().cloned().collect(),
            imports: import.iter().map(|(key, _)| key.clone()).collect(),
            ..ReadSet::default()
        };
        let (mut after, mut last) = (Vec::new(), Loaded::default());
        let done = run(store, &plan, &mut |loaded| {
            last.clone_from(loaded);
            let old = loaded.scores.iter().map(|old| old.map_or(0, |old| old.score));
            after = rows
                .iter()
                .zip(old)
                .map(|((key, add), old)| (key.clone(), add.map(|add| record(old.wrapping_add(add)))))
                .collect();
            let refused = BoardChange::Delete(BoardNo(self.boards_given + 1));
            WriteSet {
                scores: after.clone(),
                requests: requests.clone().into_iter().collect(),
                imports: import.iter().cloned().collect(),
                boards: if bad { vec![refused] } else { Vec::new() },
                ..WriteSet::default()
            }
        });
        if bad {
            assert!(matches!(done, Err(StoreError::Row(_))), "{done:?}");
            return;
        }
        done.unwrap();
        self.check_loaded(&plan, &last);
        for (key, record) in after {
            match record {
                Some(record) => self.scores.insert(key, record),
                None => self.scores.remove(&key),
            };
        }
        self.requests.extend(requests);
        self.imports.extend(import);
    }

    fn check_loaded(&self, plan: &ReadSet, loaded: &Loaded) {
        let boards: Vec<bool> = plan.boards.iter().map(|no| self.boards.contains_key(no)).collect();
        assert_eq!(live(loaded), boards);
        let scores: Vec<_> = plan.scores.iter().map(|key| self.scores.get(key).copied()).collect();
        assert_eq!(loaded.scores, scores);
        let requests: Vec<_> = plan.requests.iter().map(|key| self.requests.get(key).cloned()).collect();
        assert_eq!(loaded.requests, requests);
        let imports: Vec<_> = plan.imports.iter().map(|key| self.imports.get(key).copied()).collect();
        assert_eq!(loaded.imports, imports);
    }

    /// The store may choose which of the old ones go first; the model learns it.
    fn expire(&mut self, store: &dyn Store, before: Micros, limit: usize) {
        let old = self.requests.values().filter(|stored| stored.at < before).count();
        let expired = store.expire_requests(before, limit).unwrap();
        assert_eq!(expired, old.min(limit));
        let requests: Vec<RequestKey> = self.requests.keys().cloned().collect();
        let found = load(store, &ReadSet { requests: requests.clone(), ..ReadSet::default() }).requests;
        for (key, found) in requests.iter().zip(found) {
            match found {
                Some(found) => assert_eq!(found, self.requests[key]),
                None => assert!(self.requests.remove(key).unwrap().at < before),
            }
        }
        let left = self.requests.values().filter(|stored| stored.at < before).count();
        assert_eq!(left, old - expired);
    }

    /// Rows of dead boards are counted, not compared: which go first is the store's choice.
    fn purge(&mut self, store: &dyn Store, limit: usize) {
        let purged = store.purge_deleted(limit).unwrap();
        let dead: Vec<ScoreKey> =
            self.scores.keys().filter(|key| self.dead.contains(&key.board)).cloned().collect();
        let imports: Vec<ImportKey> =
            self.imports.keys().filter(|key| self.dead.contains(&key.board)).cloned().collect();
        assert_eq!(purged, limit.min(dead.len() + imports.len()));
        let plan = ReadSet { scores: dead, imports, ..ReadSet::default() };
        let loaded = load(store, &plan);
        let mut gone = 0;
        for (key, _) in plan.scores.iter().zip(loaded.scores).filter(|(_, found)| found.is_none()) {
            self.scores.remove(key);
            gone += 1;
        }
        for (key, _) in plan.imports.iter().zip(loaded.imports).filter(|(_, found)| found.is_none()) {
            self.imports.remove(key);
            gone += 1;
        }
        assert_eq!(gone, purged);
    }

    fn compare(&self, store: &dyn Store) {
        assert_eq!(store.boards().unwrap(), self.boards.values().cloned().collect::<Vec<_>>());
        let keys: Vec<_> = self.keys.iter().filter(|(_, live)| *live).map(|(row, _)| row.clone()).collect();
        assert_eq!(store.keys().unwrap(), keys);
        for no in self.boards.keys() {
            for window in (0..PARTS).map(Window) {
                let of_part = self.scores.iter().filter(|(key, _)| (key.board, key.window) == (*no, window));
                let wanted: Vec<_> = of_part.map(|(key, record)| (key.player.clone(), *record)).collect();
                assert_eq!(walk(store, *no, window, 3), wanted);
            }
        }
        for (name, value) in &self.meta {
            assert_eq!(store.meta(name).unwrap().as_ref(), Some(value));
        }
        let plan = ReadSet {
            boards: (0..=self.boards_given + 1).map(BoardNo).collect(),
            scores: self.scores.keys().cloned().collect(),
            requests: self.requests.keys().cloned().collect(),
            imports: self.imports.keys().cloned().collect(),
            ..ReadSet::default()
        };
        self.check_loaded(&plan, &load(store, &plan));
    }
}

fn pick<T>(among: &[T], index: u8) -> &T {
    &among[usize::from(index) % among.len()]
}
