//! The table `profiles`: names and other data that are shown of players.

use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::{Input, put_bytes, put_option};
use rusqlite::{Connection, params};
use tally_rules::PlayerId;
use tally_rules::profile::Profile;

pub(super) const GET: &str = "SELECT name, avatar_url, metadata FROM profiles WHERE player = ?1";
pub(super) const PUT: &str =
    "REPLACE INTO profiles (player, name, avatar_url, metadata) VALUES (?1, ?2, ?3, ?4)";
pub(super) const REMOVE: &str = "DELETE FROM profiles WHERE player = ?1";

/// The profile of a player.
pub(super) fn get(connection: &Connection, player: &PlayerId) -> Result<Option<Profile>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![player.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Profile { name: row.get(0)?, avatar_url: row.get(1)?, metadata: row.get(2)? }))
}

/// The table `profiles` for the journal.
pub(super) struct Profiles;

impl Table for Profiles {
    const TAG: u8 = 3;
    type Key = PlayerId;
    type Value = Profile;

    fn check(_key: &PlayerId, _value: Option<&Profile>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &PlayerId, out: &mut Vec<u8>) {
        put_bytes(key.as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<PlayerId> {
        PlayerId::new(input.text()?).ok()
    }

    fn put_value(value: &Profile, out: &mut Vec<u8>) {
        for text in [&value.name, &value.avatar_url, &value.metadata] {
            put_option(text.as_ref(), out, |text, out| put_bytes(text.as_bytes(), out));
        }
    }

    fn take_value(input: &mut Input<'_>) -> Option<Profile> {
        let mut text = || input.option(|input| input.text().map(str::to_owned));
        Some(Profile { name: text()?, avatar_url: text()?, metadata: text()? })
    }

    fn heap_bytes(key: &PlayerId, value: Option<&Profile>) -> usize {
        let texts = value.into_iter().flat_map(|value| [&value.name, &value.avatar_url, &value.metadata]);
        16 + key.as_bytes().len() + texts.flatten().map(String::len).sum::<usize>()
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (player, profile) in rows {
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
}
