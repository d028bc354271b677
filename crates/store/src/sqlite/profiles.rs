//! The table `profiles`: what is shown of players.

use crate::StoreError;
use rusqlite::{Connection, params};
use tally_rules::PlayerId;
use tally_rules::profile::Profile;

pub(super) const GET: &str = "SELECT name, avatar_url, metadata FROM profiles WHERE player = ?1";
pub(super) const PUT: &str =
    "REPLACE INTO profiles (player, name, avatar_url, metadata) VALUES (?1, ?2, ?3, ?4)";
pub(super) const REMOVE: &str = "DELETE FROM profiles WHERE player = ?1";

/// One player's profile.
pub(super) fn get(connection: &Connection, player: &PlayerId) -> Result<Option<Profile>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![player.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Profile { name: row.get(0)?, avatar_url: row.get(1)?, metadata: row.get(2)? }))
}

/// The profile of each player of a plan.
pub(super) fn load(
    connection: &Connection,
    players: &[PlayerId],
) -> Result<Vec<Option<Profile>>, StoreError> {
    players.iter().map(|player| get(connection, player)).collect()
}

/// Stores profiles; `None` removes one.
pub(super) fn store(
    connection: &Connection,
    profiles: &[(PlayerId, Option<Profile>)],
) -> Result<(), StoreError> {
    for (player, profile) in profiles {
        match profile {
            Some(profile) => connection.prepare_cached(PUT)?.execute(params![
                player.as_str(),
                profile.name,
                profile.avatar_url,
                profile.metadata
            ])?,
            None => connection.prepare_cached(REMOVE)?.execute(params![player.as_str()])?,
        };
    }
    Ok(())
}
