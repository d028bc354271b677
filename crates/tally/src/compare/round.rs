//! One round of a comparison: every sorted set with its leaderboard, page by page on both sides.
//!
//! Pages of the leaderboard are looked up in Redis. Members are looked up in the leaderboard only if it may lack some: if the numbers of both
//! differ, or a player is only there. So memory has a bound, and neither side is sorted.

use super::difference::{Counts, Differences, Entry, other_ranks};
use crate::cli::CompareRedisArgs;
use crate::client::{Client, segment};
use crate::sorted_sets::TargetBoard;
use crate::sorted_sets::rules::{refusal, score_input, shown};
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tally_ranking::redis::{Member, SortedSets, SourceKey};
use tally_rules::BoardId;
use tally_rules::score::ScoreInput;
use tally_wire::numbers;
use ureq::http::Method;

/// Players of one page or lookup.
const PAGE_ROWS: usize = 1_000;
/// The time after which a difference is looked up once more.
const PAUSE: Duration = Duration::from_secs(1);
/// Differences of a leaderboard that are printed.
const EXAMPLES: usize = 5;

/// What a round has found.
#[derive(Default)]
pub(super) struct Round {
    boards: u64,
    players: u64,
    counts: Counts,
    ranks: u64,
    /// Members of Redis that can be no players with such scores.
    missing: u64,
}

/// One sorted set with its leaderboard.
struct Sides<'s> {
    client: &'s Client,
    sets: &'s SortedSets,
    set: &'s SourceKey,
    board: &'s BoardId,
    target: TargetBoard,
}

impl Round {
    /// Compares every set under the pattern, and prints the first differences of each.
    pub(super) fn compare(client: &Client, args: &CompareRedisArgs) -> Result<Self> {
        let sets = args.with.open()?;
        let found = args.with.find(&sets)?;
        let mut round = Self::default();
        for (set, board) in &found.sets {
            let target = TargetBoard::find(client, board)?;
            let target = target.with_context(|| {
                format!(
                    "there is no leaderboard `{}`: --board-from names another one, and `tally import redis` makes it",
                    board.as_str()
                )
            })?;
            round.add(&Sides { client, sets: &sets, set, board, target }, usize::from(args.ranks))?;
        }
        Ok(round)
    }

    fn add(&mut self, sides: &Sides<'_>, ranks: usize) -> Result<()> {
        let (differences, players, missing) = sides.differences()?;
        let ranks = sides.ranks(ranks)?;
        let name = sides.board.as_str();
        differences
            .examples(EXAMPLES)
            .chain(ranks.iter().take(EXAMPLES).cloned())
            .for_each(|one| println!("  {name}: {one}"));
        self.boards += 1;
        self.players += players;
        self.missing += missing;
        self.ranks += ranks.len() as u64;
        self.counts.add(differences.counts());
        Ok(())
    }

    /// Whether there is no difference.
    pub(super) fn is_equal(&self) -> bool {
        self.counts.all() + self.ranks == 0
    }

    /// The round in one line.
    pub(super) fn told(&self, ranks: u16) -> String {
        let Self { boards, players, counts, ranks: other, missing } = self;
        let Counts { only_redis, only_tally, scores } = counts;
        let found = if self.is_equal() {
            format!("no difference in players, scores and the first {ranks} ranks")
        } else {
            format!(
                "{only_redis} only in Redis, {only_tally} only in tally, {scores} with another score; {other} of the first {ranks} ranks differ"
            )
        };
        let missing = match missing {
            0 => String::new(),
            missing => format!("; members of Redis without a counterpart: {missing}"),
        };
        format!("{boards} leaderboards, {players} players: {found}{missing}")
    }
}

impl Sides<'_> {
    /// The players that differ, now and a second later; the number of players, and that of members without a counterpart.
    fn differences(&self) -> Result<(Differences, u64, u64)> {
        let mut found = Differences::new(self.target.scores());
        let mut players = 0;
        self.each_page(&mut |page| {
            let names: Vec<&str> = page.iter().map(|(player, _)| player.as_str()).collect();
            let scores = self.sets.scores(&self.set.key, &names)?;
            for ((player, tally), redis) in page.iter().zip(scores) {
                players += 1;
                found.check(player, (redis.map(score_input), Some(*tally)));
            }
            Ok(())
        })?;
        let mut missing = 0;
        // Not the number of players on the pages: one that moves meanwhile is on two pages, or on none.
        let before = self.total()?;
        let count = self.sets.count(&self.set.key)?;
        if found.counts().only_tally > 0 || [before, self.total()?] != [count; 2] {
            self.sets.members(&self.set.key, &mut |page| {
                let (rows, bad): (Vec<Member>, Vec<Member>) = page
                    .into_iter()
                    .partition(|(member, score)| refusal(self.target.scores(), member, *score).is_none());
                missing += bad.len() as u64;
                rows.chunks(PAGE_ROWS).try_for_each(|rows| self.check_members(rows, &mut found))
            })?;
        }
        // Of too many, the count is all that is said.
        if found.kept.is_empty() || !found.is_whole() {
            return Ok((found, players, missing));
        }
        std::thread::sleep(PAUSE);
        Ok((self.again(&found)?, players, missing))
    }

    /// Looks up members that are valid players.
    fn check_members(&self, rows: &[Member], found: &mut Differences) -> Result<()> {
        let rows: BTreeMap<&str, f64> = rows
            .iter()
            .filter_map(|(member, score)| Some((std::str::from_utf8(member).ok()?, *score)))
            .collect();
        let names: Vec<&str> = rows.keys().copied().collect();
        let tally = self.of_tally(&names)?;
        for (player, score) in rows.iter().filter(|(player, _)| !tally.contains_key(**player)) {
            found.check(player, (Some(score_input(*score)), None));
        }
        Ok(())
    }

    /// The same players as they are now.
    fn again(&self, found: &Differences) -> Result<Differences> {
        let mut again = Differences::new(self.target.scores());
        let names: Vec<&str> = found.kept.keys().map(String::as_str).collect();
        let redis = self.sets.scores(&self.set.key, &names)?;
        let tally = self.of_tally(&names)?;
        for (player, redis) in names.into_iter().zip(redis) {
            again.check(player, (redis.map(score_input), tally.get(player).copied()));
        }
        Ok(again)
    }

    /// The first ranks that differ, now and a second later, in words.
    fn ranks(&self, count: usize) -> Result<Vec<String>> {
        let found = self.ranks_now(count)?;
        if found.is_empty() {
            return Ok(found);
        }
        std::thread::sleep(PAUSE);
        // Other ranks may be those of scores that were written between the two answers.
        let again = self.ranks_now(count)?;
        Ok(found.into_iter().filter(|rank| again.contains(rank)).collect())
    }

    fn ranks_now(&self, count: usize) -> Result<Vec<String>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let scores = self.target.scores();
        let redis = self.sets.first(&self.set.key, self.target.is_descending(), count)?;
        let page = self.client.ask(&Method::GET, &self.path(&format!("scores?limit={count}")), None)?;
        let tally = entries(&page)?;
        let redis: Vec<Entry> = redis
            .into_iter()
            .filter(|(member, score)| refusal(scores, member, *score).is_none())
            .filter_map(|(member, score)| Some((String::from_utf8(member).ok()?, score_input(score))))
            .collect();
        let other = other_ranks(scores, &redis, &tally, self.target.ties_like_redis());
        let told = |rank: usize| {
            let (redis, tally) = (shown(redis[rank - 1].0.as_bytes()), shown(tally[rank - 1].0.as_bytes()));
            format!("rank {rank} is {redis} in Redis and {tally} in tally")
        };
        Ok(other.into_iter().map(told).collect())
    }

    /// How many players the leaderboard has.
    fn total(&self) -> Result<u64> {
        let page = self.client.ask(&Method::GET, &self.path("scores?limit=1"), None)?;
        page.get("total").and_then(Value::as_u64).context("the answer has no total")
    }

    /// Passes the pages of the leaderboard on, best first.
    fn each_page(&self, each: &mut dyn FnMut(Vec<Entry>) -> Result<()>) -> Result<()> {
        let base = self.path(&format!("scores?limit={PAGE_ROWS}"));
        let mut path = base.clone();
        loop {
            let page = self.client.ask(&Method::GET, &path, None)?;
            each(entries(&page)?)?;
            match page.get("next_cursor").and_then(Value::as_str) {
                Some(cursor) => path = format!("{base}&cursor={}", segment(cursor)),
                None => return Ok(()),
            }
        }
    }

    /// The scores of those of these players that have one.
    fn of_tally(&self, players: &[&str]) -> Result<BTreeMap<String, ScoreInput>> {
        if players.is_empty() {
            return Ok(BTreeMap::new());
        }
        let body = json!({"players": players}).to_string();
        let body = Some(("application/json", body.as_bytes()));
        let answer = self.client.ask(&Method::POST, &self.path("among"), body)?;
        Ok(entries(&answer)?.into_iter().collect())
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/leaderboards/{}/{rest}", segment(self.board.as_str()))
    }
}

/// The players of a page, with their scores.
fn entries(page: &Value) -> Result<Vec<Entry>> {
    let entries = page.get("entries").and_then(Value::as_array).context("the answer has no entries")?;
    let one = |entry: &Value| {
        let player = entry.get("player").and_then(Value::as_str).context("an entry without a player")?;
        let score = entry.get("score").context("an entry without a score")?;
        let score = numbers::score(score).map_err(|why| anyhow!("a score {why}"))?;
        Ok((player.to_owned(), score))
    };
    entries.iter().map(one).collect()
}
