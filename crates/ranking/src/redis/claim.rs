//! Whose rankings a Redis has: the stamp of everything that is loaded, and a claim that keeps others out.
//!
//! A copy of a database has the id of the original. So the id of the store is not enough: the stamp also has the generation of its
//! servers, and a term of that generation. Whatever has another stamp counts as lost. The claim is a key that expires, and that
//! running servers prolong. While it is there, servers of another store, of another generation or of a copy do not load.
//!
//! Not here: when a claim may be taken over, and the Redis that a store has chosen (`tally_service`).

use super::client::{Redis, Request, Shared};
use super::script::Script;
use super::window::RedisBackend;
use super::{RankingError, keys, reply};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Attempts of a claim: the slot may have moved, or the scripts may be gone.
const TRIES: usize = 3;

/// Whose rankings these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The id of the store.
    pub store: [u8; 16],
    /// The generation of its servers.
    pub generation: u64,
    /// Raised when the generation begins anew on a Redis that may have older rankings of it.
    pub term: u16,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The Redis is claimed.
    Ours {
        /// Its process, as it names itself.
        process: String,
        /// Whether servers of this owner have used it before, so that it may have older rankings of theirs.
        used: bool,
    },
    /// Other servers have it.
    Others,
}

/// The owner and the refusal that all requests of a client share.
#[derive(Debug, Default)]
pub(super) struct Ownership {
    stamp: RwLock<Option<Arc<str>>>,
    /// The claim of this owner, and the one that was granted last.
    claim: Mutex<(String, String)>,
    refused: RwLock<Option<&'static str>>,
}

impl Ownership {
    /// The stamp of loaded data, which follows the process in a request.
    pub(super) fn stamp(&self) -> Option<Arc<str>> {
        self.stamp.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails while these rankings may be those of others.
    pub(super) fn check(&self) -> Result<(), RankingError> {
        let refused = *self.refused.read().unwrap_or_else(PoisonError::into_inner);
        refused.map_or(Ok(()), |why| Err(RankingError::Unavailable(why.into())))
    }

    fn set(&self, owner: Owner) {
        let store: String = owner.store.iter().map(|byte| format!("{byte:02x}")).collect();
        let claim = format!("{store}{:016x}", owner.generation);
        let stamp = format!("{claim}{:04x}", owner.term);
        *self.stamp.write().unwrap_or_else(PoisonError::into_inner) = Some(stamp.into());
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).0 = claim;
    }
}

impl RedisBackend {
    /// Sets the owner of the rankings, before anything is loaded. Prefixes keep several stores in one Redis apart. Data of another
    /// owner is never read or written, and a load over that of another store is refused.
    pub fn set_owner(&self, owner: Owner) {
        self.redis().shared.ownership().set(owner);
    }

    /// Claims the Redis for the owner for this time, or prolongs its claim. A claim that this process had for an earlier generation
    /// is replaced. With `uses`, the Redis is used from now on.
    pub fn claim(&self, time: Duration, uses: bool) -> Result<Claim, RankingError> {
        self.redis().handle.block_on(self.redis().shared.claim(time, uses))
    }

    /// Fails every request with this reason, until there is none.
    pub fn refuse(&self, why: Option<&'static str>) {
        *self.redis().shared.ownership().refused.write().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Why requests are refused, if they are.
    pub fn refusal(&self) -> Option<&'static str> {
        *self.redis().shared.ownership().refused.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the connections anew: the name of the address may lead elsewhere by now.
    pub fn reconnect(&self) {
        self.redis().reconnect();
    }
}

impl Redis {
    fn reconnect(&self) {
        self.handle.block_on(async {
            for node in self.shared.map().nodes() {
                if let Some(live) = node.present() {
                    node.fail(&live, "it is connected to anew").await;
                }
            }
        });
    }
}

impl Shared {
    pub(super) fn ownership(&self) -> &Ownership {
        &self.reach.ownership
    }

    async fn claim(&self, time: Duration, uses: bool) -> Result<Claim, RankingError> {
        let (claim, before) = self.ownership().claim.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (slot, keys) = keys::of_claim(&self.reach.address.prefix);
        let uses = u8::from(uses).to_string();
        let time = time.as_millis().max(1).to_string();
        let args = vec![claim.clone().into(), before.into(), time.into(), uses.into()];
        let request = Request { script: Script::Claim, slot, keys: keys.to_vec(), args, entries: 0 };
        let (answer, process) = self.in_time(self.run_once(&request)).await??;
        let granted = reply::number(&answer)?;
        if granted == 0 {
            return Ok(Claim::Others);
        }
        self.ownership().claim.lock().unwrap_or_else(PoisonError::into_inner).1 = claim;
        Ok(Claim::Ours { process, used: granted == 2 })
    }

    /// Runs a script also while requests are refused. Returns the process that has answered.
    async fn run_once(&self, request: &Request) -> Result<(redis::Value, String), RankingError> {
        let mut last = RankingError::Unavailable("no node has the slot".into());
        for _ in 0..TRIES {
            let Some(node) = self.map().node(request.slot) else {
                self.fetch_slots().await?;
                continue;
            };
            let live = node.live().await?;
            match live.run(request).await {
                Ok(answer) => return Ok((answer, live.process().to_owned())),
                Err(failure) => {
                    last = node.unavailable(&failure.to_string());
                    self.repair(&node, &live, failure, request.slot).await?;
                }
            }
        }
        Err(last)
    }
}
