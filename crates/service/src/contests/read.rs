//! Reading contests: one, a list by state, applications, members, payouts. Each blocks.

use super::application_store;
use super::execute::{ContestActor, find};
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_ranking::redis::applications::ApplicationsKey;
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::{
    Application, ContestId, ContestPlayer, ContestRecord, ContestState, ContestTrigger, Payout, Status, state,
};
use tally_rules::ledger::TransferId;
use tally_rules::{PlayerId, Rejection};
use tally_store::plan::ATTEMPTS;
use tally_store::{EntrantKey, Listing, ScoreKey};

/// Contests of one read of a filtered list.
const READ: usize = 500;

/// Contests that the list of a series reads at most: others may have names like those of a series.
const SERIES_READ_MAX: usize = 20_000;

/// Contests that any other filtered list reads at most: titles have no index.
const READ_MAX: usize = 2_000;

/// The contest of that name.
pub fn get(tally: &Tally, id: &ContestId) -> Result<ContestRecord, Failure> {
    find(tally, id)
}

/// The number of applications of each of these; `None` if the Redis that has them is unavailable or has lost them.
pub fn counts(tally: &Tally, records: &[&ContestRecord]) -> Vec<Option<ApplicationCounts>> {
    let mut all: Vec<_> = records.iter().map(|record| Some(record.applications)).collect();
    let open = records.iter().enumerate().filter(|(_, record)| record.state == ContestState::Open);
    let (mut indexes, mut keys) = (Vec::new(), Vec::new());
    for (at, record) in open {
        match record.kept {
            ApplicationLocation::Store => continue,
            ApplicationLocation::Lost => {}
            ApplicationLocation::Redis(number) => {
                indexes.push(at);
                keys.push(ApplicationsKey { contest: record.no, number });
            }
        }
        all[at] = None;
    }
    if let Some(redis) = tally.settings.applications.as_ref().filter(|_| !keys.is_empty()) {
        for (at, counts) in indexes.into_iter().zip(redis.counts(&keys)) {
            all[at] = counts.ok();
        }
    }
    all
}

/// Contests in order of names.
pub type ContestList = Listing<(ContestId, ContestRecord)>;

/// At most `limit` in order of names, from the first one after `after`: of one state, or of all.
pub fn list(
    tally: &Tally,
    state: Option<ContestState>,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<ContestList, Failure> {
    Ok(tally.store.ledger().list_contests(state, after, limit)?)
}

/// What the contests of a filtered list have in common.
#[derive(Clone, Debug, Default)]
pub struct ContestFilter {
    /// The series that made them.
    pub series: Option<ContestId>,
    /// The beginning of their ids or titles, in small or capital letters.
    pub prefix: Option<String>,
}

impl ContestFilter {
    /// Whether it leaves none out.
    pub fn is_empty(&self) -> bool {
        self.series.is_none() && self.prefix.is_none()
    }

    fn fits(&self, id: &ContestId, record: &ContestRecord) -> bool {
        let begins = |prefix: &String| {
            let prefix = prefix.trim().to_lowercase();
            [id.as_str(), &record.contest.title].iter().any(|text| text.to_lowercase().starts_with(&prefix))
        };
        (self.series.is_none() || record.series == self.series) && self.prefix.as_ref().is_none_or(begins)
    }
}

/// The same of those that fit a filter. If the reads end before the list does, it also returns the name that the next list comes
/// after.
pub fn list_filtered(
    tally: &Tally,
    filter: &ContestFilter,
    state: Option<ContestState>,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<(ContestList, Option<ContestId>), Failure> {
    let ledger = tally.store.ledger();
    filtered_list(filter, after, limit, |after, most| Ok(ledger.list_contests(state, after, most)?))
}

/// The list of a filter, by reads of at most so many contests in order of names. One read makes a page of a series, unless contests
/// have names like those of it.
fn filtered_list(
    filter: &ContestFilter,
    after: Option<&ContestId>,
    limit: usize,
    mut read: impl FnMut(Option<&ContestId>, usize) -> Result<ContestList, Failure>,
) -> Result<(ContestList, Option<ContestId>), Failure> {
    let names = filter.series.as_ref().map(ContestId::occurrences);
    let is_named = |name: &str| names.as_ref().is_none_or(|names| name.starts_with(names.as_str()));
    let mut after = after.max(names.as_ref()).cloned();
    let mut list = Listing::default();
    let (mut left, mut others) = (if names.is_some() { SERIES_READ_MAX } else { READ_MAX }, false);
    while left > 0 {
        let most = if others { READ } else { READ.min(limit - list.rows.len()) };
        let found = read(after.as_ref(), most)?;
        left = left.saturating_sub(most);
        let ends = found.rows.len() < most || found.rows.last().is_some_and(|(id, _)| !is_named(id.as_str()));
        after = found.rows.last().map(|(id, _)| id.clone()).or(after);
        list.damaged.extend(found.damaged.into_iter().filter(|row| is_named(&row.key)));
        let all = list.rows.len() + found.rows.len();
        list.rows.extend(found.rows.into_iter().filter(|(id, record)| filter.fits(id, record)));
        others = list.rows.len() < all;
        if list.rows.len() >= limit {
            list.rows.truncate(limit);
            let last = list.rows.last().map_or("", |(id, _)| id.as_str());
            list.damaged.retain(|row| row.key.as_str() < last);
            return Ok((list, None));
        }
        if ends {
            return Ok((list, None));
        }
    }
    Ok((list, after))
}

/// At most `limit` applications in one status by their places, from the first one above `above`. Only for staff. None
/// exist after the start.
pub fn applications(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    status: Status,
    (above, limit): (u64, usize),
) -> Result<Listing<(PlayerId, Application)>, Failure> {
    let record = find(tally, id)?;
    let by = actor.by(&record, ContestTrigger::Decide, None)?;
    match state::transition(record.state, ContestTrigger::Decide, by) {
        Ok(_) => match application_store::of(tally, &record)?.page(&record, status, above, limit) {
            // They were cleared meanwhile.
            Err(Failure::Rejected(Rejection::ApplicationsLost))
                if application_store::has_moved_on(tally, id, &record)? =>
            {
                Ok(Listing::default())
            }
            page => page,
        },
        Err(Rejection::ContestState(_)) => Ok(Listing::default()),
        Err(rejection) => Err(rejection.into()),
    }
}

/// A member of a contest, as it is listed.
#[derive(Clone, Debug)]
pub struct ListedMember {
    /// The player.
    pub player: PlayerId,
    /// What it became at the start.
    pub enrolled: ContestPlayer,
    /// Whether it is banned from ranks and prizes.
    pub banned: bool,
    /// How many scores it has submitted, if the contest limits them.
    pub attempts: Option<u32>,
}

/// At most `limit` members in order of players, from the first one after `after`.
pub fn members(
    tally: &Tally,
    id: &ContestId,
    after: Option<&PlayerId>,
    limit: usize,
) -> Result<Listing<ListedMember>, Failure> {
    let record = find(tally, id)?;
    if record.report.is_none() {
        return Err(Rejection::ContestState(record.state).into());
    }
    let list = tally.store.ledger().list_members(record.no, after, limit)?;
    Ok(Listing { rows: listed(tally, (id, &record), list.rows)?, damaged: list.damaged })
}

/// One member as it is listed, or `None` if the player is no member.
pub fn member(tally: &Tally, id: &ContestId, player: &PlayerId) -> Result<Option<ListedMember>, Failure> {
    let record = find(tally, id)?;
    let key = EntrantKey { contest: record.no, player: player.clone() };
    let enrolled = tally.store.ledger().enrolled(&[key])?.pop().flatten();
    let rows = enrolled.map(|one| (player.clone(), one)).into_iter().collect();
    Ok(listed(tally, (id, &record), rows)?.pop())
}

/// Members as they are listed.
pub(super) fn listed(
    tally: &Tally,
    (id, record): (&ContestId, &ContestRecord),
    rows: Vec<(PlayerId, ContestPlayer)>,
) -> Result<Vec<ListedMember>, Failure> {
    let mut boards: BTreeMap<Option<u32>, Option<Arc<Board>>> = BTreeMap::new();
    for (_, enrolled) in &rows {
        boards.entry(enrolled.division).or_insert_with(|| tally.boards.get(&id.board(enrolled.division)));
    }
    let attempts = attempts(tally, record, &rows, &boards)?;
    let listed = |(player, enrolled): (PlayerId, ContestPlayer)| {
        let banned = boards[&enrolled.division].as_ref().is_some_and(|board| board.is_banned(&player));
        let attempts = record.contest.attempts_max.map(|_| attempts.get(&player).copied().unwrap_or(0));
        ListedMember { player, enrolled, banned, attempts }
    };
    Ok(rows.into_iter().map(listed).collect())
}

/// How many scores some members have submitted, in one read.
fn attempts(
    tally: &Tally,
    record: &ContestRecord,
    rows: &[(PlayerId, ContestPlayer)],
    boards: &BTreeMap<Option<u32>, Option<Arc<Board>>>,
) -> Result<BTreeMap<PlayerId, u32>, Failure> {
    let key = |(player, enrolled): &(PlayerId, ContestPlayer)| {
        let board = boards[&enrolled.division].as_ref()?.no;
        Some(ScoreKey { board, window: ATTEMPTS, player: player.clone() })
    };
    let keys: Vec<ScoreKey> =
        rows.iter().filter(|_| record.contest.attempts_max.is_some()).filter_map(key).collect();
    let keys = tally_lanes::keys_to_load(keys);
    let found = if keys.is_empty() { Vec::new() } else { tally.store.records(&keys)? };
    let counted = |(key, row): (ScoreKey, Option<tally_rules::Record>)| {
        Some((key.player, u32::try_from(row?.score).unwrap_or(u32::MAX)))
    };
    Ok(keys.into_iter().zip(found).filter_map(counted).collect())
}

/// At most `limit` prizes with their numbers, best rank first, from that number on.
pub fn prizes(
    tally: &Tally,
    id: &ContestId,
    from: u32,
    limit: usize,
) -> Result<Listing<(u32, Payout)>, Failure> {
    payouts(tally, id, ContestState::Settled, (from, limit))
}

/// At most `limit` refunds of a contest that was cancelled, in order of acceptance, from that place on.
pub fn refunds(
    tally: &Tally,
    id: &ContestId,
    from: u32,
    limit: usize,
) -> Result<Listing<(u32, Payout)>, Failure> {
    payouts(tally, id, ContestState::Cancelled, (from, limit))
}

/// What was reversed of each of these prizes or refunds of a contest, by its transfer.
pub fn reversed(
    tally: &Tally,
    id: &ContestId,
    rows: &[(u32, Payout)],
) -> Result<BTreeMap<TransferId, i64>, Failure> {
    let mut reversed = BTreeMap::new();
    // Of almost all contests nothing is reversed, and no link is read.
    if find(tally, id)?.reversed_payouts == 0 {
        return Ok(reversed);
    }
    for transfer in rows.iter().filter_map(|(_, row)| row.paid?.ok()) {
        let link = tally.store.ledger().reversal(transfer)?;
        reversed.extend(link.map(|link| (transfer, link.reversed())));
    }
    Ok(reversed)
}

fn payouts(
    tally: &Tally,
    id: &ContestId,
    of: ContestState,
    (from, limit): (u32, usize),
) -> Result<Listing<(u32, Payout)>, Failure> {
    let record = find(tally, id)?;
    if record.state != of {
        return Err(Rejection::ContestState(record.state).into());
    }
    Ok(tally.store.ledger().list_payouts(record.no, from, limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::Micros;
    use tally_rules::contest::Contest;
    use tally_rules::ledger::Uuid;

    /// The contests of the series `cup` and others of these names, and one after them.
    fn contests(of_series: usize, others: &[&str]) -> BTreeMap<ContestId, ContestRecord> {
        let id = |name: &str| ContestId::new(name).unwrap();
        let record = |series| ContestRecord::new(Uuid([1; 16]), Contest::default(), series, Micros(0));
        let made = (0..of_series).map(|at| (id(&format!("cup-{at:03}")), record(Some(id("cup")))));
        let others = others.iter().copied().chain(["dash"]);
        made.chain(others.map(|name| (id(name), record(None)))).collect()
    }

    /// At most so many of these contests after `after`.
    fn later(
        contests: &BTreeMap<ContestId, ContestRecord>,
        after: Option<&ContestId>,
        most: usize,
    ) -> ContestList {
        let later = contests.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
        let rows: Vec<_> = later.map(|(id, record)| (id.clone(), record.clone())).take(most).collect();
        Listing::from(rows)
    }

    #[test]
    fn a_list_by_title_ends_before_it_reads_for_ever() {
        let contests = contests(2 * READ_MAX, &[]);
        let filter = ContestFilter { series: None, prefix: Some("dash".into()) };
        let mut count = 0;
        let mut list = |after: Option<&ContestId>| {
            filtered_list(&filter, after, 10, |after, most| {
                let list = later(&contests, after, most);
                count += list.rows.len();
                Ok(list)
            })
            .unwrap()
        };
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let (page, next) = list(after.as_ref());
            found.extend(page.rows);
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!((found.len(), found[0].0.as_str()), (1, "dash"));
        assert_eq!(count, contests.len());
        let mut once = 0;
        let first = filtered_list(&filter, None, 10, |after, most| {
            once += most;
            Ok(later(&contests, after, most))
        });
        assert!(first.unwrap().1.is_some() && once < READ_MAX + READ);
    }

    /// How many contests of the series a list of at most `limit` has, and how many each of its reads asked for.
    fn listed(contests: &BTreeMap<ContestId, ContestRecord>, limit: usize) -> (usize, Vec<usize>) {
        let mut reads = Vec::new();
        let filter = ContestFilter { series: ContestId::of_series("cup").ok(), prefix: None };
        let (list, broken_off) = filtered_list(&filter, None, limit, |after, most| {
            reads.push(most);
            Ok(later(contests, after, most))
        })
        .unwrap();
        assert_eq!(broken_off, None);
        assert!(list.rows.is_sorted_by(|a, b| a.0 < b.0));
        (list.rows.len(), reads)
    }

    #[test]
    fn a_page_of_a_series_reads_what_it_needs() {
        let all = contests(600, &[]);
        assert_eq!(listed(&all, 21), (21, vec![21]));
        assert_eq!(listed(&all, 700), (600, vec![500, 200]));
        assert_eq!(listed(&contests(3, &[]), 21), (3, vec![21]));
        // Contests with names like those of the series may be many, so the next read is a large one.
        assert_eq!(listed(&contests(600, &["cup-0", "cup-001a"]), 21), (21, vec![21, 500]));
    }
}
