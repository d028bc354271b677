//! Members: who they are, what they sign in with, and what each may do with what is its own.
//!
//! [`password`] and [`pin`] make and compare what is secret, [`token`] is what a member presents after signing in
//! ([`signin`]), `throttle` slows down whoever guesses, [`find`] looks somebody up and [`cache`] keeps who was looked up; `mend`
//! corrects phone numbers that earlier versions stored. A member is made, changed and closed in the ledger's lane (`wallets::members`), because a member has a wallet from the
//! start. Not here: money.

pub mod cache;
mod evict;
pub mod find;
pub(crate) mod mend;
pub mod password;
pub mod pin;
pub mod ranks;
pub mod signin;
mod throttle;
pub mod token;

use crate::failure::{Failure, Fault};
use crate::secret::{Secret, Use};
use crate::tally::Tally;
use cache::{CacheSettings, Holder, MemberCache};
use password::Cost;
use pin::PinKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tally_rules::ledger::member::{Handle, Phone};
use tally_rules::ledger::{Member, MemberId};
use throttle::Throttle;
use token::Tokens;
use tokio::sync::Semaphore;

/// What can be set about members.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// The prefix of the country at home, such as `82`: with it and without it a phone number is the same.
    pub phone_country: Option<Arc<str>>,
    /// What the digest of a new password costs.
    pub cost: Cost,
    /// Passwords that are digested at once; further ones wait.
    pub passwords_at_once: usize,
    /// How many wait; past it nothing is done.
    pub passwords_waiting_max: usize,
    /// How long a token is good.
    pub token_time: Duration,
    /// What is kept in memory.
    pub cache: CacheSettings,
}

impl Default for MemberSettings {
    fn default() -> Self {
        Self {
            phone_country: None,
            cost: Cost::default(),
            passwords_at_once: 2,
            passwords_waiting_max: 500,
            token_time: Duration::from_secs(3_600),
            cache: CacheSettings::default(),
        }
    }
}

/// What is needed of members beside the store.
pub struct Members {
    /// Makes and compares PINs.
    pub pins: PinKey,
    /// Makes and reads tokens.
    pub tokens: Tokens,
    /// Who was looked up.
    pub cache: MemberCache,
    throttle: Throttle,
    settings: MemberSettings,
    /// A digest needs much memory and a processor for itself, so few are made at once.
    digesting: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Compared where there is nothing to compare, so that this takes as long.
    nobodys: Arc<str>,
}

/// One that waits.
struct Wait<'a>(&'a AtomicUsize);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Members {
    /// Nobody is known yet. Takes as long as one digest.
    pub fn new(secret: &Secret, settings: &MemberSettings) -> Result<Self, Fault> {
        let key = secret.derive(Use::Token);
        Ok(Self {
            pins: PinKey::new(secret),
            tokens: Tokens::new(secret, settings.token_time),
            cache: MemberCache::new(settings.cache),
            throttle: Throttle::new(blake3::derive_key("tally 2026 names of failed logins", &key)),
            digesting: Arc::new(Semaphore::new(settings.passwords_at_once)),
            waiting: AtomicUsize::new(0),
            nobodys: password::digest("nobody's", settings.cost)?,
            settings: settings.clone(),
        })
    }

    /// What can be set.
    pub fn settings(&self) -> &MemberSettings {
        &self.settings
    }

    /// How many passwords wait to be digested.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// The digest of a new password.
    pub async fn digest(&self, password: String) -> Result<Arc<str>, Failure> {
        let cost = self.settings.cost;
        self.digesting(move || password::digest(&password, cost)).await?.map_err(Failure::Fault)
    }

    /// Runs what digests a password away from the threads that serve connections, few at once.
    async fn digesting<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let waiting = Wait(&self.waiting);
        if waiting.0.fetch_add(1, Ordering::AcqRel) >= self.settings.passwords_waiting_max {
            return Err(Fault::Overloaded.into());
        }
        let permit = Arc::clone(&self.digesting).acquire_owned().await;
        let permit = permit.map_err(|_| Fault::Draining)?;
        drop(waiting);
        crate::blocking(move || {
            let done = work();
            drop(permit);
            Ok(done)
        })
        .await
    }

    /// The member of that id, as it was not long ago: not its attempts.
    pub async fn known(&self, tally: &Arc<Tally>, id: MemberId) -> Result<Arc<Member>, Failure> {
        if let Some(member) = self.cache.member(&id, tally.has_others()) {
            return Ok(member);
        }
        let (moment, asked) = (self.cache.moment(), Arc::clone(tally));
        let member = Arc::new(crate::blocking(move || find::by_id(&asked, id)).await?);
        self.cache.keep(moment, id, &member);
        Ok(member)
    }

    /// Who had that phone number not long ago. The same is done whether somebody has it or not, and both are kept: it is
    /// asked before a PIN was judged, and must not tell by its time who is there.
    pub async fn of_phone(&self, tally: &Arc<Tally>, phone: &Phone) -> Result<Option<MemberId>, Failure> {
        if let Some(Holder(found)) = self.cache.phone(phone, tally.has_others()) {
            return Ok(found);
        }
        let (moment, asked, handle) = (self.cache.moment(), Arc::clone(tally), Handle::Phone(phone.clone()));
        let found = crate::blocking(move || Ok(asked.store.ledger().member_of(&handle)?)).await?;
        self.cache.keep_phone(moment, phone, Holder(found));
        Ok(found)
    }
}
