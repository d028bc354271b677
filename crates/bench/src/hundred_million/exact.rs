//! Whether ranks are exact: the ranks of a server against a count of every stored row.

use super::BOARD;
use super::place::{Place, get};
use crate::error::{During, Error, prove};
use crate::server::Server;
use tally_load::Random;
use tally_load::people::player;
use tally_rules::{PlayerId, Record};
use tally_store::plan::ALL_TIME;

/// Players whose rank is checked.
const SAMPLES: usize = 200;
/// Rows of one read.
const PAGE_ROWS: usize = 50_000;

/// A player with its rank from a server.
pub(super) struct Given {
    player: PlayerId,
    score: i64,
    rank: u64,
}

/// Reads the ranks of some players from a server, and pages around them.
pub(super) fn ask_ranks(place: &Place<'_>, server: &Server, seed: u64) -> Result<Vec<Given>, Error> {
    let mut random = Random::new(seed);
    let mut given = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let name = player(1 + random.below(place.run.players));
        let path = format!("/v1/leaderboards/{BOARD}/players/{name}");
        let one = get(server, &path)?;
        let (score, rank) = (one["score"].as_i64(), one["rank"].as_u64());
        let (Some(score), Some(rank)) = (score, rank) else {
            return Err(Error::Proof(format!("{name} has no score or rank: {one}")));
        };
        let around = get(server, &format!("{path}/around?above=5&below=5"))?;
        let page: Vec<(u64, i64)> = around["entries"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| Some((entry["rank"].as_u64()?, entry["score"].as_i64()?)))
            .collect();
        let steps = page.windows(2).all(|two| two[0].0 + 1 == two[1].0 && two[0].1 >= two[1].1);
        prove(steps && page.contains(&(rank, score)), || format!("around {name}: {around}"))?;
        given.push(Given { player: PlayerId::new(&name).expect("a good name"), score, rank });
    }
    Ok(given)
}

/// Counts every row of the store while no server runs on it; returns the number of rows.
pub(super) fn count(place: &Place<'_>, given: &[Given]) -> Result<u64, Error> {
    let store = place.open()?;
    let boards = store.boards().during("read boards")?;
    let board = boards.iter().find(|row| row.id.as_str() == BOARD).expect("it is served");
    // The order: a larger score, then an earlier one, then the name.
    let key = |player: &PlayerId, record: &Record| (-record.score, record.at.0, player.clone());
    let mut samples = Vec::with_capacity(given.len());
    for one in given {
        let of = tally_store::ScoreKey { board: board.no, window: ALL_TIME, player: one.player.clone() };
        let record = store.records(std::slice::from_ref(&of)).during("read a record")?.pop().flatten();
        let record = record.ok_or_else(|| Error::Proof(format!("{} is not stored", one.player.as_str())))?;
        prove(record.score == one.score, || {
            format!("{}: {} was answered, {} is stored", one.player.as_str(), one.score, record.score)
        })?;
        samples.push((key(&one.player, &record), one));
    }
    samples.sort_by(|a, b| a.0.cmp(&b.0));
    // At each index the rows that come before this sample, and not before the previous one.
    let mut before = vec![0_u64; samples.len() + 1];
    let (mut rows, mut after) = (0, None);
    loop {
        let mut last = None;
        let mut each = |player: PlayerId, record: Record| {
            let own = key(&player, &record);
            before[samples.partition_point(|(sample, _)| *sample <= own)] += 1;
            last = Some(player);
        };
        let scanned = store.scan_scores(board.no, ALL_TIME, after.as_ref(), PAGE_ROWS, &mut each);
        let scanned = scanned.during("read every row")?;
        rows += scanned as u64;
        if scanned < PAGE_ROWS {
            break;
        }
        after = last;
        place.run.options.progress("counting ranks", rows, place.run.players);
    }
    let mut better = 0;
    for (at, (_, one)) in samples.iter().enumerate() {
        better += before[at];
        prove(one.rank == better + 1, || {
            format!("{} has rank {}, and {} are better", one.player.as_str(), one.rank, better)
        })?;
    }
    Ok(rows)
}
