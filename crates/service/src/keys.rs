//! API keys, and the callers that they authenticate.
//!
//! A key reads `tally_<id>_<secret>`. The store has a digest of the secret only; the secrets are 256 random bits, so a plain
//! digest cannot be guessed from. Until the first key was made the service is in protected mode; the listeners decide what that
//! means for a connection. Revoking the last key does not bring it back.

use crate::audit;
use crate::boards::run_once;
use crate::clock::{Clock, ClockReading};
use crate::damaged;
use crate::failure::{Failure, Fault};
use crate::keyring::Keyring;
use crate::secret::{Use, hex};
use crate::servers::{self, in_doubt::InDoubtCommits};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tally_rules::actor::KEY_ID_CHARS;
use tally_rules::audit::AuditAction;
use tally_rules::grant::{Grant, MintCaps, Rights};
use tally_rules::idempotency::{self, Fingerprint, IdempotencyKey, Stored};
use tally_rules::ledger::{Currency, MemberId, MintCap, MintKey};
use tally_rules::outcome::Outcome;
use tally_rules::role::{Permission, Role, may, member_may};
use tally_rules::{Actor, KeyId, Micros, Origin, Rejection};
use tally_store::{CorruptRow, KeyChange, ReadSet, ShardSet, Store, WriteSet};

pub use tally_store::KeyRow;

/// The prefix of every key.
pub const PREFIX: &str = "tally_";

/// Letters and digits of a key's id.
const ID_CHARS: usize = 12;

/// The id of the key that a token claims to be, for security events. It is not authenticated.
pub fn claimed_id(token: &str) -> Option<&str> {
    let (id, _) = token.strip_prefix(PREFIX)?.split_once('_')?;
    (id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// The kind of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerKind {
    /// It presented no credential.
    Anonymous,
    /// It has a key with these rights.
    Key(Rights),
    /// It is a member that has signed in.
    Member(MemberId),
}

/// The authenticated origin of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its kind.
    pub kind: CallerKind,
    /// The actor of what it changes.
    pub actor: Actor,
    /// The scope of its idempotency keys.
    pub scope: Arc<str>,
    /// The caps of the money that it makes.
    pub mint_caps: MintCaps,
}

impl Caller {
    /// A caller on this machine without a credential.
    pub fn local() -> Self {
        let kind = CallerKind::Key(Rights::Role(Role::Admin));
        Self::uncapped(kind, Actor::Local, idempotency::SCOPE_LOCAL)
    }

    /// A subcommand on this machine, with the token of the data directory.
    pub fn command_line() -> Self {
        Self { actor: Actor::CommandLine, ..Self::local() }
    }

    /// A caller that presented no credential.
    pub fn anonymous() -> Self {
        Self::uncapped(CallerKind::Anonymous, Actor::Unknown, "")
    }

    /// A member that has signed in. Ids of keys are shorter than those of members.
    pub fn member(id: MemberId) -> Self {
        Self::uncapped(CallerKind::Member(id), Actor::Member(id), &id.0.to_string())
    }

    fn of_key(row: &KeyRow) -> Self {
        // Keys have ids of this form, because they are made in it.
        let actor = KeyId::parse(&row.id).map_or(Actor::Unknown, Actor::Key);
        let Grant { rights, mint_caps } = row.grant.clone();
        Self { kind: CallerKind::Key(rights), actor, scope: Arc::clone(&row.id), mint_caps }
    }

    fn uncapped(kind: CallerKind, actor: Actor, scope: &str) -> Self {
        Self { kind, actor, scope: scope.into(), mint_caps: MintCaps::default() }
    }

    /// Whether it has the permission.
    pub fn may(&self, right: Permission) -> bool {
        match self.kind {
            CallerKind::Anonymous => right == Permission::Open,
            CallerKind::Key(rights) => may(rights, right),
            CallerKind::Member(_) => member_may(right),
        }
    }

    /// The cap of the money that it makes of a currency, if there is one.
    pub fn mint_cap(&self, currency: Currency) -> Option<MintCap> {
        let Actor::Key(key) = self.actor else { return None };
        self.mint_caps.get(&currency).map(|cap| MintCap { of: MintKey { key, currency }, cap: *cap })
    }
}

/// A new key. Only this reply has the token.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its stored row.
    pub row: KeyRow,
    /// The token for requests.
    pub token: String,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// All keys, with their store.
pub struct Keys {
    store: Arc<dyn Store>,
    ring: Arc<Keyring>,
    clock: Clock,
    keep_micros: i64,
    keys_max: usize,
    /// One change at a time.
    changing: Mutex<()>,
    rows: RwLock<HashMap<Arc<str>, KeyRow>>,
    /// Whether a key was ever made. A corrupt key authenticates no request, and counts.
    made: AtomicBool,
    /// Of keys and of leaderboards.
    pub(crate) in_doubt: InDoubtCommits,
}

impl Keys {
    /// Loads the keys of a store.
    pub fn load(
        store: Arc<dyn Store>,
        secrets: impl Into<Arc<Keyring>>,
        clock: Clock,
        settings: &crate::Settings,
    ) -> Result<Self, Failure> {
        let rows = RwLock::new(HashMap::new());
        let keys = Self {
            store,
            ring: secrets.into(),
            clock,
            keep_micros: settings.idempotency_keep_micros,
            keys_max: settings.keys_max,
            changing: Mutex::new(()),
            rows,
            made: AtomicBool::new(false),
            in_doubt: InDoubtCommits::default(),
        };
        keys.reload()?;
        Ok(keys)
    }

    /// The secrets of the store.
    pub fn ring(&self) -> &Arc<Keyring> {
        &self.ring
    }

    /// Takes over the stored keys: another server may have made a key or revoked one. Blocks on the store.
    pub(crate) fn reload(&self) -> Result<(), Failure> {
        // A change by this server is stored before it is in memory, so the lock comes first.
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_again()
    }

    fn read_again(&self) -> Result<(), Failure> {
        let stored = self.store.keys()?;
        let damaged = !self.damaged_rows().is_empty();
        if damaged {
            damaged::log_all(&*self.store);
        }
        if damaged || !stored.is_empty() || (self.protected_mode() && self.store.had_keys()?) {
            self.made.store(true, Ordering::Release);
        }
        let rows = stored.into_iter().map(|row| (Arc::clone(&row.id), row)).collect();
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = rows;
        Ok(())
    }

    /// Whether no key was ever made: then this machine, and no other, needs none.
    pub fn protected_mode(&self) -> bool {
        !self.made.load(Ordering::Acquire)
    }

    /// The caller that presents this token, if it is valid.
    pub fn authenticate(&self, token: &str) -> Option<Caller> {
        let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let row = rows.get(id)?;
        // Digests are compared in constant time.
        let presented = blake3::hash(secret.as_bytes());
        (presented == blake3::Hash::from_bytes(row.hash)).then(|| Caller::of_key(row))
    }

    /// The caller that has presented the key with this id to another server, if the key is still valid.
    pub fn caller(&self, id: &str) -> Option<Caller> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        rows.get(id).map(Caller::of_key)
    }

    /// Whether a caller that was authenticated still is one.
    pub fn is_live(&self, caller: &Caller) -> bool {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).contains_key(&caller.scope)
    }

    /// Whether a key has the role `admin`.
    pub(crate) fn is_admin(&self, key: KeyId) -> bool {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        rows.get(key.to_string().as_str()).is_some_and(|row| row.grant.rights.is_admin())
    }

    /// Stored keys that cannot be read.
    pub fn damaged_rows(&self) -> Vec<CorruptRow> {
        let is_key = |row: &CorruptRow| matches!(row.table, "keys" | "api_keys");
        match self.store.corrupt_row_count() {
            0 => Vec::new(),
            _ => self.store.corrupt_rows().into_iter().filter(is_key).collect(),
        }
    }

    /// Every key, by time of creation.
    pub fn list(&self) -> Vec<KeyRow> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<KeyRow> = rows.values().cloned().collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    /// Makes a key. Blocks on the store.
    pub fn create(
        &self,
        grant: impl Into<Grant>,
        name: &str,
        origin: &Origin,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<Created, Failure> {
        let grant = grant.into();
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let time = self.clock.read();
        let now = time.later();
        let first = idempotency.map(|one| (one, one.fingerprint.made));
        let (row, token) = self.invent(first, (&grant, name), now)?;
        self.read_again()?;
        let full = self.rows.read().unwrap_or_else(PoisonError::into_inner).len() >= self.keys_max;
        let audited = audit::begin(origin.clone(), now)?;
        let stored = self.once(idempotency, time, |changes| {
            if full {
                return Err(Rejection::TooManyKeys);
            }
            changes.keys.push(KeyChange::Create(row.clone()));
            let detail =
                if name.is_empty() { row.grant.to_string() } else { format!("{}, {name}", row.grant) };
            changes.audit.push(audited.row(
                AuditAction::KeyCreated,
                Arc::clone(&row.id),
                Some(detail.into()),
            ));
            Ok(Outcome::KeyCreated)
        })?;
        if let Some(stored) = stored {
            let first = idempotency.map(|one| (one, stored.fingerprint));
            let (row, token) = self.invent(first, (&grant, name), stored.at)?;
            return Ok(Created { row, token, replayed: true });
        }
        self.made.store(true, Ordering::Release);
        self.rows.write().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(&row.id), row.clone());
        Ok(Created { row, token, replayed: false })
    }

    /// Ends a key, the last one of role admin by `force` only. Blocks on the store. Returns whether it was a replay.
    pub fn revoke(
        &self,
        id: &str,
        force: bool,
        origin: &Origin,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<bool, Failure> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let time = self.clock.read();
        let now = time.later();
        self.read_again()?;
        let (present, last_admin) = {
            let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
            let others = rows.values().any(|row| row.grant.rights.is_admin() && &*row.id != id);
            let found = rows.get(id);
            (
                found.map(|row| Arc::clone(&row.id)),
                found.is_some_and(|row| row.grant.rights.is_admin()) && !others,
            )
        };
        let audited = audit::begin(origin.clone(), now)?;
        let stored = self.once(idempotency, time, |changes| {
            let id = present.clone().ok_or(Rejection::KeyNotFound)?;
            if last_admin && !force {
                return Err(Rejection::LastAdminKey);
            }
            changes.audit.push(audited.row(AuditAction::KeyRevoked, Arc::clone(&id), None));
            changes.keys.push(KeyChange::Revoke(id, now));
            Ok(Outcome::Removed)
        });
        // A key that may have been revoked is rejected.
        if matches!(stored, Ok(_) | Err(Failure::Fault(Fault::OutcomeUnknown(_)))) {
            self.rows.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
        Ok(stored?.is_some())
    }

    /// Runs a change once per idempotency key; returns the stored outcome if it was done before.
    fn once(
        &self,
        idempotency: Option<&IdempotencyKey>,
        time: ClockReading,
        change: impl Fn(&mut WriteSet) -> Result<Outcome, Rejection>,
    ) -> Result<Option<Stored>, Failure> {
        let requests = idempotency.iter().map(|one| one.key.clone()).collect();
        let plan = ReadSet { requests, shards: ShardSet::of(0), ..ReadSet::default() };
        let retention = time.retention(self.keep_micros);
        let place = (&*self.store, &self.in_doubt);
        servers::again(|| run_once(place, &plan, idempotency, retention, |_, changes| change(changes)))
    }

    /// A key and its token: random, or for a request that may be retried, equal for all retries. The fingerprint is that of the first
    /// attempt. The instant is part of it: a request whose idempotency key has expired makes another API key.
    fn invent(
        &self,
        first: Option<(&IdempotencyKey, Fingerprint)>,
        (grant, name): (&Grant, &str),
        at: Micros,
    ) -> Result<(KeyRow, String), Failure> {
        let mut seed = [0; 32];
        match first {
            None => getrandom::fill(&mut seed)
                .map_err(|error| crate::Fault::Broken(format!("no random numbers: {error}")))?,
            Some((idempotency, print)) => {
                let by = idempotency.fingerprint.maker_of(print).and_then(|by| self.ring.of(by));
                let by = by.unwrap_or_else(|| self.ring.active());
                let mut hasher = blake3::Hasher::new_keyed(by.key(Use::ApiKey));
                hasher.update(&print.0);
                hasher.update(&at.0.to_le_bytes());
                hasher.update(idempotency.key.scope.as_bytes());
                hasher.update(&[0]);
                hasher.update(idempotency.key.key.as_bytes());
                seed = *hasher.finalize().as_bytes();
            }
        }
        let id = hex(blake3::keyed_hash(&seed, b"id").as_bytes());
        let secret = hex(blake3::keyed_hash(&seed, b"secret").as_bytes());
        let id: Arc<str> = id[..KEY_ID_CHARS].into();
        let token = format!("{PREFIX}{id}_{secret}");
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        Ok((KeyRow { id, hash, grant: grant.clone(), name: name.to_owned(), created_at: at }, token))
    }
}
