//! Contests of the demo: real tournaments, one in each state, whose members are the teams.
//!
//! All changes use the same use cases as the listeners, in the order of a contest's life. An interrupted fill continues
//! from the stored state: applying and accepting twice change nothing, and scores are an import, whose lines count once.

use super::{Filling, Reach};
use crate::football;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::{ContestId, ContestState, Prize};
use tally_rules::definition::{Definition, Update};
use tally_rules::ledger::Amount;
use tally_rules::ledger::lines::MemberLine;
use tally_rules::ledger::member::Login;
use tally_rules::score::ScoreInput;
use tally_rules::{Actor, Micros, PlayerId, Rejection};
use tally_service::contests::actions::ActionResult;
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{apply, change, finish, read, settle, start};
use tally_service::ledger::import::{self, NewChunk};
use tally_service::{Failure, Progress, Tally};

/// The opening balance of a team, the entry fee, and the prizes of the first ranks: in minor units.
const OPENING: i64 = 10_000;
const FEE: i64 = 1_000;
const PRIZES: [(u32, u32, i64); 3] = [(1, 1, 100_000), (2, 2, 50_000), (3, 4, 10_000)];

/// Accepted applications of the contest that stays open.
const ACCEPTED: usize = 8;

/// A tournament, and its state in the demo.
struct Cup {
    id: &'static str,
    title: &'static str,
    of: (&'static str, &'static str),
    until: ContestState,
}

const fn cup(
    id: &'static str,
    title: &'static str,
    of: (&'static str, &'static str),
    until: ContestState,
) -> Cup {
    Cup { id, title, of, until }
}

const CUPS: [Cup; 6] = [
    cup("world-cup-2022", "World Cup 2022", ("FIFA World Cup", "2022"), ContestState::Settled),
    cup("euro-2024", "Euro 2024", ("UEFA Euro", "2024"), ContestState::Finished),
    cup("world-cup-2026", "World Cup 2026", ("FIFA World Cup", "2026"), ContestState::Running),
    cup("copa-america-2024", "Copa América 2024", ("Copa América", "2024"), ContestState::Open),
    cup("copa-america-2021", "Copa América 2021", ("Copa América", "2021"), ContestState::Cancelled),
    cup(
        "african-cup-2025",
        "African Cup of Nations 2025",
        ("African Cup of Nations", "2025"),
        ContestState::Draft,
    ),
];

pub(super) const COUNT: u64 = CUPS.len() as u64;

/// The results of a tournament.
struct Played {
    /// In the order of their first matches.
    teams: Vec<PlayerId>,
    /// Line of the sample, team, points, instant.
    rows: Vec<(u64, PlayerId, i64, Micros)>,
}

/// Plays each of them up to its state. Blocks.
pub(super) fn fill(tally: &Arc<Tally>, at: &Progress) -> Result<()> {
    let played = CUPS.iter().map(|cup| read_cup(cup.of)).collect::<Result<Vec<_>>>()?;
    members(tally, &played)?;
    for (cup, played) in CUPS.iter().zip(&played) {
        play(tally, cup, played).with_context(|| format!("play `{}`", cup.id))?;
        at.add(1);
    }
    tracing::info!("contests: {} tournaments, one in each state", CUPS.len());
    Ok(())
}

/// Commands about contests to try, for the terminal.
pub(super) fn what_to_try(reach: &Reach) -> String {
    [
        reach.curl("/v1/contests?state=settled"),
        reach.curl("/v1/contests/world-cup-2022/prizes"),
        reach.post("/v1/contests/world-cup-2026/finish"),
    ]
    .concat()
}

fn read_cup(of: (&str, &str)) -> Result<Played> {
    let mut played = Played { teams: Vec::new(), rows: Vec::new() };
    for record in csv::Reader::from_reader(football::RESULTS).records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let Some(one) = football::read_match(&record).filter(|_| football::is_of(&record, of)) else {
            continue;
        };
        for (team, points) in one.teams {
            if !played.teams.contains(&team) {
                played.teams.push(team.clone());
            }
            played.rows.push((line, team, points, one.at));
        }
    }
    ensure!(!played.rows.is_empty(), "the sample has no matches of {of:?}");
    Ok(played)
}

/// Makes a member with a wallet for every team.
fn members(tally: &Arc<Tally>, played: &[Played]) -> Result<()> {
    let teams: BTreeMap<&str, &PlayerId> =
        played.iter().flat_map(|cup| &cup.teams).map(|team| (team.as_str(), team)).collect();
    let digest = blake3::derive_key("tally 2026 demo", b"teams");
    let wait = tokio::runtime::Handle::current();
    let nothing = NewChunk { digest, lines_before: 0, lines_after: 0, rows: Vec::new(), last: false };
    // One transaction makes all of them.
    if wait.block_on(import::members(tally, Actor::CommandLine, nothing))?.progress.lines > 0 {
        return Ok(());
    }
    let rows = (1..).zip(teams.values()).map(|(line, team)| Ok((line, member(team)?)));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let lines_after = rows.len() as u64;
    let chunk = NewChunk { digest, lines_before: 0, lines_after, rows, last: true };
    let imported = wait.block_on(import::members(tally, Actor::CommandLine, chunk))?;
    ensure!(imported.refused.is_empty(), "members refused: {:?}", imported.refused);
    Ok(())
}

/// A member without a sign-in.
fn member(team: &PlayerId) -> Result<MemberLine> {
    Ok(MemberLine {
        login: Login::new(team.as_str()).map_err(|bad| anyhow::anyhow!("a login {}", bad.0))?,
        password_hash: None,
        pin: None,
        phone_number: None,
        name: Some(team.as_str().to_owned()),
        player: Some(team.clone()),
        balance: Some(amount(OPENING)?),
    })
}

fn amount(units: i64) -> Result<Amount> {
    Amount::new(units).map_err(|rejection| anyhow::anyhow!(rejection.detail()))
}

fn spec(tally: &Tally, cup: &Cup) -> Result<ContestSpec> {
    let currency = tally.settings.ledger.currencies.home();
    let prize =
        |&(from, to, units): &(u32, u32, i64)| Ok(Prize { from, to, currency, amount: amount(units)? });
    let prizes: Vec<Prize> = PRIZES.iter().map(prize).collect::<Result<_>>()?;
    Ok(ContestSpec {
        title: Some(cup.title.into()),
        entry_fee: Some(Some(Fee { currency, amount: amount(FEE)? })),
        prizes: Some(prizes),
        leaderboard: Some(Definition { update: Update::Sum, ..Definition::default() }),
        ..ContestSpec::default()
    })
}

/// Plays it from its stored state up to its state in the demo.
fn play(tally: &Arc<Tally>, cup: &Cup, played: &Played) -> Result<()> {
    let id = ContestId::new(cup.id).map_err(|bad| anyhow::anyhow!("a contest's name {}", bad.0))?;
    let admin = &ContestActor::ADMIN;
    loop {
        let state = match read::get(tally, &id) {
            Ok(record) => record.state,
            Err(Failure::Rejected(Rejection::ContestNotFound)) => {
                change::create(tally, &id, admin, &spec(tally, cup)?, None)?;
                continue;
            }
            Err(failure) => return Err(failure.into()),
        };
        match state {
            ContestState::Open => take_applications(tally, &id, cup, &played.teams)?,
            ContestState::Running => take_scores(tally, &id, &played.rows)?,
            ContestState::Draft
            | ContestState::Finished
            | ContestState::Settled
            | ContestState::Cancelled => {}
        }
        if state == cup.until {
            return Ok(());
        }
        match state {
            ContestState::Draft => drop(change::open(tally, &id, admin, None)?),
            ContestState::Open => drop(start::start(tally, &id, admin, None)?),
            ContestState::Running if cup.until == ContestState::Cancelled => {
                drop(finish::cancel(tally, &id, admin, None)?);
            }
            ContestState::Running => drop(finish::finish(tally, &id, admin, None)?),
            ContestState::Finished => drop(settle::settle(tally, &id, admin, None)?),
            ContestState::Settled | ContestState::Cancelled => return Ok(()),
        }
    }
}

/// All teams apply and are accepted. In the contest that stays open some wait, and the last one is rejected.
fn take_applications(tally: &Tally, id: &ContestId, cup: &Cup, teams: &[PlayerId]) -> Result<()> {
    for team in teams {
        match apply::apply(tally, id, &ContestActor::SERVER, team, None) {
            Ok(_) | Err(Failure::Rejected(Rejection::AlreadyApplied(_) | Rejection::AlreadyRejected)) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let decide = |players: &[PlayerId], accept| -> Result<()> {
        let done = apply::decide(tally, id, &ContestActor::ADMIN, players, accept, None)?;
        let ActionResult::Decided(rows) = done.result else { return Ok(()) };
        let refused = rows.iter().find_map(|row| row.as_ref().err());
        ensure!(refused.is_none(), "an application is refused: {refused:?}");
        Ok(())
    };
    if cup.until != ContestState::Open {
        return decide(teams, true);
    }
    decide(&teams[..ACCEPTED.min(teams.len())], true)?;
    decide(teams.last().map_or(&[], std::slice::from_ref), false)
}

fn take_scores(tally: &Arc<Tally>, id: &ContestId, rows: &[(u64, PlayerId, i64, Micros)]) -> Result<()> {
    let mut filling = Filling::of(tally, id.board(None), football::RESULTS)?;
    for (line, team, points, at) in rows {
        filling.push(*line, team.clone(), ScoreInput::Int(*points), Some(*at))?;
    }
    let (taken, _) = filling.finish()?;
    ensure!(taken == rows.len() as u64, "{taken} of {} scores are taken", rows.len());
    Ok(())
}
