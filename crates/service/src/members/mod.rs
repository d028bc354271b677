//! Members: who they are, what they sign in with, and what each may do with what is its own.
//!
//! [`password`] and [`pin`] make and compare what is secret, [`find`] looks somebody up. A member is made, changed and
//! closed in the ledger's lane (`wallets::members`), because a member has a wallet from the start. Not here: money.

pub mod find;
pub mod password;
pub mod pin;

use crate::failure::{Failure, Fault};
use crate::secret::Secret;
use password::Cost;
use pin::PinKey;
use std::sync::Arc;
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
}

impl Default for MemberSettings {
    fn default() -> Self {
        Self { phone_country: None, cost: Cost::default(), passwords_at_once: 2 }
    }
}

/// What is needed of members beside the store.
pub struct Members {
    /// Makes and compares PINs.
    pub pins: PinKey,
    settings: MemberSettings,
    /// A digest needs much memory and a processor for itself, so few are made at once.
    digesting: Arc<Semaphore>,
}

impl Members {
    /// Nobody is known yet.
    pub fn new(secret: &Secret, settings: &MemberSettings) -> Self {
        Self {
            pins: PinKey::new(secret),
            settings: settings.clone(),
            digesting: Arc::new(Semaphore::new(settings.passwords_at_once)),
        }
    }

    /// What can be set.
    pub fn settings(&self) -> &MemberSettings {
        &self.settings
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
        let permit = Arc::clone(&self.digesting).acquire_owned().await;
        let permit = permit.map_err(|_| Fault::Draining)?;
        crate::blocking(move || {
            let done = work();
            drop(permit);
            Ok(done)
        })
        .await
    }
}
