//! Profiles: put, get, and many at once for a page. Blocks on the store.

use super::ranks;
use crate::failure::Failure;
use crate::servers;
use crate::tally::Tally;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::profile::Profile;
use tally_rules::{PlayerId, Rejection};
use tally_store::{Loaded, ReadSet, ShardSet, StoreError, WriteSet};

/// The reply to a put of a profile.
#[derive(Clone, Debug)]
pub struct ProfilePut {
    /// Whether there was none before.
    pub created: bool,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// Replaces a player's profile.
pub fn put(
    tally: &Tally,
    player: &PlayerId,
    profile: &Profile,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ProfilePut, Failure> {
    let _running = idempotency.map(|one| tally.running.begin(&one.key)).transpose()?;
    let plan = ReadSet {
        profiles: vec![player.clone()],
        requests: idempotency.iter().map(|one| one.key.clone()).collect(),
        // Profiles are not spread.
        shards: ShardSet::of(0),
        ..ReadSet::default()
    };
    let mut created = false;
    let mut put = |loaded: &Loaded, changes: &mut WriteSet| {
        created = loaded.profiles[0].is_none();
        changes.profiles.push((player.clone(), Some(profile.clone())));
        Ok(Outcome::ProfilePut { created })
    };
    let stored = servers::again(|| tally.once(&plan, idempotency, tally.clock.read(), &mut put))?;
    let first = stored.as_ref().map(|stored| matches!(stored.outcome, Outcome::ProfilePut { created: true }));
    Ok(ProfilePut { created: first.unwrap_or(created), replayed: stored.is_some() })
}

/// One player's profile.
pub fn get(tally: &Tally, player: &PlayerId) -> Result<Profile, Failure> {
    let mut found = tally.store.profiles(std::slice::from_ref(player))?;
    let profile = found.pop().unwrap_or(Ok(None))?;
    profile.ok_or(Failure::Rejected(Rejection::PlayerNotFound))
}

/// The same; it is empty for a player without a profile that has a score, a ban or a member.
pub fn of_known(tally: &Tally, player: &PlayerId) -> Result<Profile, Failure> {
    match get(tally, player) {
        Err(Failure::Rejected(Rejection::PlayerNotFound)) if ranks::is_known(tally, player)? => {
            Ok(Profile::default())
        }
        profile => profile,
    }
}

/// The profiles of a page, each with its own result: a failed one does not affect the others.
pub fn of_page(tally: &Tally, players: &[PlayerId]) -> Vec<Result<Option<Profile>, StoreError>> {
    match tally.store.profiles(players) {
        Ok(profiles) => profiles,
        Err(error) => players.iter().map(|_| Err(error.clone())).collect(),
    }
}
