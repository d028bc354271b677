//! The table `profiles`: what is shown of players.

use super::connect::Flavour;
use super::player;
use super::pool::Pool;
use super::row::{Answers, Fields};
use super::text::{Row, Script, keys_end};
use crate::StoreError;
use std::collections::BTreeMap;
use tally_rules::PlayerId;
use tally_rules::profile::Profile;

/// Asks for profiles; how many statements that takes.
pub(super) fn select(script: &mut Script, players: &[PlayerId], locking: bool) -> usize {
    script.keys(
        "SELECT player, name, avatar_url, metadata FROM profiles FORCE INDEX (PRIMARY) WHERE player IN (",
        players,
        keys_end(locking),
        put_key,
    )
}

/// The answer, each profile for itself: one that cannot be read says so alone.
pub(super) fn read(
    answers: &mut Answers,
    statements: usize,
    players: &[PlayerId],
) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
    let mut found: BTreeMap<PlayerId, Result<Profile, StoreError>> = BTreeMap::new();
    answers.each(statements, "profiles", |row| {
        let (player, profile) = decode(row)?;
        found.insert(player, profile);
        Ok(())
    })?;
    Ok(players.iter().map(|player| found.get(player).cloned().transpose()).collect())
}

/// The player of a row, and its profile if that can be read.
pub(super) fn decode(row: &mut Fields<'_>) -> Result<(PlayerId, Result<Profile, StoreError>), StoreError> {
    let player = player(row)?;
    let mut text = || row.maybe_text().map(|text| text.map(str::to_owned));
    let mut profile = || Ok(Profile { name: text()?, avatar_url: text()?, metadata: text()? });
    Ok((player, profile()))
}

fn put_key(row: &mut Row<'_>, player: &PlayerId) {
    row.bytes(player.as_bytes());
}

/// See [`crate::Store::profiles`].
pub(super) fn of(
    pool: &Pool,
    players: &[PlayerId],
) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
    if players.is_empty() {
        return Ok(Vec::new());
    }
    let mut script = Script::default();
    let statements = select(&mut script, players, false);
    read(&mut pool.ask(&script)?, statements, players)
}

/// Writes and removes profiles. One that was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(PlayerId, Option<Profile>)],
    absent: impl Fn(&PlayerId) -> bool,
    flavour: Flavour,
) {
    const HEAD: &str = "INSERT INTO profiles (player, name, avatar_url, metadata) VALUES ";
    let there = || rows.iter().filter_map(|(player, profile)| Some((player, profile.as_ref()?)));
    let put = |row: &mut Row<'_>, (player, profile): (&PlayerId, &Profile)| {
        put_key(row, player);
        for text in [&profile.name, &profile.avatar_url, &profile.metadata] {
            row.bytes_or_null(text.as_ref().map(String::as_bytes));
        }
    };
    script.rows(HEAD, there().filter(|(player, _)| absent(player)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["name", "avatar_url", "metadata"]);
    script.upserts(HEAD, there().filter(|(player, _)| !absent(player)), tail, put);
    let removed = rows.iter().filter(|(player, profile)| profile.is_none() && !absent(player));
    let head = "DELETE FROM profiles WHERE player IN (";
    script.keys(head, removed.map(|(player, _)| player), ")", put_key);
}

/// Fails where one of these players has a row by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a PlayerId> + Clone) {
    script.rows("INSERT INTO profiles (player) VALUES ", absent.clone(), "", put_key);
    script.keys("DELETE FROM profiles WHERE player IN (", absent, ")", put_key);
}
