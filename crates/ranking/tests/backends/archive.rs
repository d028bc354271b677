//! An archive answers as the ranking that it was packed from: the same queries to both, over many blocks.

use std::collections::HashMap;
use tally_ranking::blocks::BLOCK_ENTRIES;
use tally_ranking::{
    ArchiveBlock, ArchiveSource, ArchivedRanking, Edge, MemoryRanking, PageQuery, PageStart, RankingChange,
};
use tally_rules::definition::{Definition, Order, Ranking, Subscore, Ties};
use tally_rules::{Micros, PlayerId, Record};

#[derive(Default)]
struct Stored {
    blocks: Vec<ArchiveBlock>,
    records: HashMap<PlayerId, Record>,
}

impl ArchiveSource for Stored {
    type Error = String;
    fn block(&self, block: u64) -> Result<ArchiveBlock, String> {
        self.blocks.get(usize::try_from(block).unwrap()).cloned().ok_or_else(|| format!("no block {block}"))
    }
    fn record(&self, player: &PlayerId) -> Result<Option<Record>, String> {
        Ok(self.records.get(player).copied())
    }
    fn corrupt(&self, block: u64) -> String {
        format!("block {block} is damaged")
    }
}

fn player(number: u64) -> PlayerId {
    PlayerId::new(&format!("p{}", number * 7_919 % 100_003)).unwrap()
}

/// Few scores and few instants, so that ties cross the ends of blocks.
fn build(definition: &Definition, players: u64) -> (MemoryRanking, Stored) {
    let ranking = MemoryRanking::new(definition);
    let mut stored = Stored::default();
    let mut moves = Vec::new();
    for number in 0..players {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let subscore = if definition.has_subscore() { (mixed >> 20) as i64 % 3 } else { 0 };
        let record =
            Record { score: (mixed >> 40) as i64 % 9 - 4, subscore, at: Micros((mixed >> 30) as i64 % 40) };
        stored.records.insert(player(number), record);
        moves.push(RankingChange { player: player(number), record: Some(record), ranked: false });
    }
    ranking.publish(&moves, |_, _| {});
    let total = ranking
        .blocks(|number, block| {
            assert_eq!(number, stored.blocks.len() as u64);
            stored.blocks.push(block);
            Ok::<_, ()>(())
        })
        .unwrap();
    assert_eq!(total, players);
    (ranking, stored)
}

fn definitions() -> Vec<Definition> {
    let mut all = Vec::new();
    for order in Order::ALL {
        for ranking in Ranking::ALL {
            for ties in Ties::ALL {
                for subscore in [Subscore::None, Subscore::Ascending] {
                    let (order, ranking, ties) = (*order, *ranking, *ties);
                    all.push(Definition { order, ranking, ties, subscore, ..Definition::default() });
                }
            }
        }
    }
    all
}

#[test]
fn every_question_has_the_answer_of_the_order() {
    let players = 2 * BLOCK_ENTRIES as u64 + 77;
    for definition in definitions() {
        let (ranking, stored) = build(&definition, players);
        let closed = ArchivedRanking::new(&definition, players, &stored);
        for edge in [Edge::Best, Edge::Worst] {
            for (offset, min, max) in [
                (0, None, None),
                (500, None, None),
                (1_000, None, None),
                (3, Some(-1), Some(2)),
                (0, None, Some(-4)),
            ] {
                let query = PageQuery { edge, start: PageStart::Offset(offset), limit: 60, min, max };
                assert_eq!(
                    closed.read(|it| it.page(&query)).unwrap(),
                    ranking.read(|it| it.page(&query)),
                    "{definition:?} {query:?}"
                );
            }
        }
        for number in (0..players).step_by(97) {
            let player = player(number);
            assert_eq!(
                closed.read(|it| it.ranked(&player)).unwrap(),
                ranking.read(|it| it.ranked(&player)),
                "{definition:?}"
            );
            assert_eq!(
                closed.read(|it| it.around(&player, 3, 4)).unwrap(),
                ranking.read(|it| it.around(&player, 3, 4))
            );
            if number.is_multiple_of(5) {
                check_ranks_of_records(&closed, &ranking, &player, &definition);
            }
            let start = PageStart::After(stored.records[&player], player.clone());
            let query = PageQuery { start, limit: 5, ..PageQuery::default() };
            assert_eq!(closed.read(|it| it.page(&query)).unwrap(), ranking.read(|it| it.page(&query)));
        }
        let friends: Vec<PlayerId> = (0..players + 50).step_by(31).map(player).collect();
        assert_eq!(closed.read(|it| it.among(&friends)).unwrap(), ranking.read(|it| it.among(&friends)));
    }
}

/// The rank that a record would have, if the player does not hold it now: better, equal, worse, first and last in time.
fn check_ranks_of_records(
    closed: &ArchivedRanking<'_, Stored>,
    ranking: &MemoryRanking,
    player: &PlayerId,
    definition: &Definition,
) {
    let absent = PlayerId::new("absent").unwrap();
    for (score, subscore, at) in
        [(i64::MIN, 0, 0), (-4, 0, 3), (0, 1, -1), (0, 2, 20), (1, -7, 99), (4, 0, 0), (i64::MAX, 5, 7)]
    {
        let subscore = if definition.has_subscore() { subscore } else { 0 };
        let record = Record { score, subscore, at: Micros(at) };
        for player in [player, &absent] {
            let rank = ranking.read(|it| it.rank_of(player, &record));
            assert_eq!(
                closed.read(|it| it.rank_of(player, &record)),
                Ok(rank),
                "{definition:?} {player:?} {record:?}"
            );
        }
    }
}

#[test]
fn an_empty_period_answers_too() {
    let definition = Definition::default();
    let (ranking, stored) = build(&definition, 0);
    let closed = ArchivedRanking::new(&definition, 0, &stored);
    assert_eq!(
        closed.read(|it| it.page(&PageQuery { limit: 5, ..PageQuery::default() })).unwrap(),
        ranking.read(|it| it.page(&PageQuery::default()))
    );
    assert_eq!(closed.read(|it| it.ranked(&player(1))).unwrap(), None);
    assert_eq!(
        closed.read(|it| it.rank_of(&player(1), &Record { score: 0, subscore: 0, at: Micros(0) })),
        Ok(1)
    );
}

#[test]
fn a_banned_player_has_a_record_and_no_position() {
    let definition = Definition::default();
    let (_, mut stored) = build(&definition, 700);
    let banned = PlayerId::new("hidden").unwrap();
    stored.records.insert(banned.clone(), Record { score: 0, subscore: 0, at: Micros(5) });
    let closed = ArchivedRanking::new(&definition, 700, &stored);
    assert_eq!(closed.read(|it| it.ranked(&banned)).unwrap(), None);
    assert_eq!(closed.read(|it| it.around(&banned, 1, 1)).unwrap(), None);
    let best = Record { score: i64::MAX, subscore: 0, at: Micros(0) };
    assert_eq!(closed.read(|it| it.rank_of(&banned, &best)), Ok(1), "as if it were shown");
}

#[test]
fn a_damaged_block_ends_the_question_with_its_error() {
    let definition = Definition::default();
    let (_, mut stored) = build(&definition, 700);
    stored.blocks[1].entries.truncate(10);
    let closed = ArchivedRanking::new(&definition, 700, &stored);
    let query = PageQuery { start: PageStart::Offset(510), limit: 5, ..PageQuery::default() };
    assert_eq!(closed.read(|it| it.page(&query)), Err("block 1 is damaged".to_owned()));
    let worst = Record { score: i64::MIN, subscore: 0, at: Micros(0) };
    assert_eq!(closed.read(|it| it.rank_of(&player(1), &worst)), Err("block 1 is damaged".to_owned()));
    stored.blocks.truncate(1);
    assert_eq!(
        ArchivedRanking::new(&definition, 700, &stored).read(|it| it.page(&query)),
        Err("no block 1".to_owned())
    );
}
