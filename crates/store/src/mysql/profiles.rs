//! The table `profiles`: names and other data that are shown of players.

use super::player;
use super::pool::Pool;
use super::row::{Fields, ResultSets};
use super::table::{self, Table};
use super::text::{RowScript, Script};
use crate::StoreError;
use std::collections::BTreeMap;
use tally_rules::PlayerId;
use tally_rules::profile::Profile;

pub(super) struct Profiles;

impl Table for Profiles {
    const NAME: &'static str = "profiles";
    const KEY: &'static str = "player";
    const READ: &'static str = "player, name, avatar_url, metadata";
    const REPLACED: &'static [&'static str] = &["name", "avatar_url", "metadata"];
    const BLANK: &'static str = "NULL, NULL, NULL";
    type Key = PlayerId;
    type Value = Profile;

    fn put_key(row: &mut RowScript<'_>, player: &PlayerId) {
        row.bytes(player.as_bytes());
    }

    fn put(row: &mut RowScript<'_>, profile: &Profile) {
        for text in [&profile.name, &profile.avatar_url, &profile.metadata] {
            row.bytes_or_null(text.as_ref().map(String::as_bytes));
        }
    }

    fn decode(row: &mut Fields<'_>) -> Result<(PlayerId, Profile), StoreError> {
        Ok((player(row)?, profile(row)?))
    }
}

fn profile(row: &mut Fields<'_>) -> Result<Profile, StoreError> {
    let mut text = || row.maybe_text().map(|text| text.map(str::to_owned));
    Ok(Profile { name: text()?, avatar_url: text()?, metadata: text()? })
}

/// Reads the answer to a `select`. A corrupt profile fails alone.
pub(super) fn read(
    results: &mut ResultSets,
    statements: usize,
    players: &[PlayerId],
) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
    let mut found: BTreeMap<PlayerId, Result<Profile, StoreError>> = BTreeMap::new();
    results.each(statements, "profiles", |row| {
        found.insert(player(row)?, profile(row));
        Ok(())
    })?;
    Ok(players.iter().map(|player| found.get(player).cloned().transpose()).collect())
}

/// See [`crate::Reads::profiles`].
pub(super) fn of(
    pool: &Pool,
    players: &[PlayerId],
) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
    if players.is_empty() {
        return Ok(Vec::new());
    }
    let mut script = Script::default();
    let statements = table::select::<Profiles>(&mut script, players, false);
    read(&mut pool.query(&script)?, statements, players)
}
