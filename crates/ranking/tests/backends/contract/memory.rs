//! The tree in memory as a backend of the suite.

use super::Backend;
use std::collections::BTreeMap;
use tally_ranking::{MemoryRanking, Published, RankingChange, Reads};
use tally_rules::{Definition, PlayerId, Record};

pub(crate) struct Memory(MemoryRanking);

impl Backend for Memory {
    const CASES: u32 = 1_000;

    fn new(definition: &Definition) -> Self {
        Self(MemoryRanking::new(definition))
    }
    fn publish(&self, changes: &[(RankingChange, Option<Record>)], each: impl FnMut(usize, Published)) {
        let changes: Vec<RankingChange> = changes.iter().map(|(change, _)| change.clone()).collect();
        self.0.publish(&changes, each);
    }
    fn reload(&self, records: &BTreeMap<PlayerId, Record>) {
        let mut loading = self.0.loading();
        records.iter().for_each(|(player, record)| loading.push(player, record));
        self.0.load(loading, |_| {}).unwrap();
    }
    fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> T {
        self.0.read(with)
    }
    fn total(&self) -> u64 {
        self.0.total()
    }
    fn assert_answering_node(&self) {
        assert!(format!("{:?}", self.0).starts_with("MemoryRanking"));
    }
}
