//! Members: signing in, the limits of their own requests, and how they are made, changed and closed.
//!
//! [`password`] and [`pin`] make and compare secrets, and [`token`] is the credential after signing in ([`signin`]). `throttle`
//! and `budget` slow guesses down, and `digests` queues slow digests. [`find`] finds a member, and [`cache`] keeps it;
//! `correct_names` corrects names that earlier versions stored, and `index_names` makes them searchable. `create`, [`mod@change`], `close`, `erase` and [`pay`] are requests
//! to the ledger's lane, because a member has a wallet from the start. Not here: other transfers (`ledger`).

pub(crate) mod budget;
pub mod cache;
pub mod change;
mod close;
pub(crate) mod correct_names;
pub(crate) mod create;
mod digests;
pub(crate) mod erase;
mod evict;
pub mod export;
pub mod find;
pub(crate) mod index_names;
pub mod password;
pub mod pay;
pub mod pin;
pub mod signin;
mod throttle;
pub mod token;

pub use change::change;
pub use close::close;
pub use create::{Created, NewMember, create};
pub use erase::erase;

use crate::failure::{Failure, Fault};
use crate::keyring::Keyring;
use crate::secret::Use;
use crate::tally::Tally;
use budget::Budget;
use cache::{CacheSettings, Holder, MemberCache};
use digests::Digests;
use password::Cost;
use pin::Pins;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tally_rules::ledger::member::{Handle, Phone};
use tally_rules::ledger::{Member, MemberId};
use throttle::Throttle;
use token::Tokens;

/// How often a change is tried because of conflicts.
pub(crate) const ATTEMPTS_MAX: usize = 8;

/// Unknown phone numbers that a member may transfer to before it waits; one more after each interval. As many of
/// its transfers to phone numbers may be under way.
const UNKNOWN_RECIPIENTS: u32 = 100;
const UNKNOWN_RECIPIENTS_INTERVAL_S: i64 = 300;

/// What can be set about members.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// The prefix of the country at home, such as `82`: with it and without it a phone number is the same.
    pub phone_country: Option<Arc<str>>,
    /// The fewest characters of a new password.
    pub password_length_min: usize,
    /// What the digest of a new password costs.
    pub cost: Cost,
    /// Passwords of members that sign in that are digested at once, and as many that API keys set; further ones wait.
    pub passwords_at_once: usize,
    /// How many of each wait; past it nothing is done.
    pub passwords_waiting_max: usize,
    /// How long a token is good.
    pub token_time: Duration,
    /// The caches in memory.
    pub cache: CacheSettings,
}

impl Default for MemberSettings {
    fn default() -> Self {
        Self {
            phone_country: None,
            password_length_min: 8,
            cost: Cost::default(),
            passwords_at_once: 2,
            passwords_waiting_max: 500,
            token_time: Duration::from_secs(3_600),
            cache: CacheSettings::default(),
        }
    }
}

/// What members need beside the store.
pub struct Members {
    /// Makes and compares PINs.
    pub pins: Pins,
    /// Makes and reads tokens.
    pub tokens: Tokens,
    /// The cache of members.
    pub cache: MemberCache,
    throttle: Throttle,
    /// Transfers of a member to phone numbers that no member has.
    pub(crate) recipients: Arc<Budget<MemberId>>,
    /// One erasure runs at a time.
    pub(crate) erasing: Mutex<()>,
    /// Whether every member is found by its name.
    pub(crate) has_names: AtomicBool,
    settings: MemberSettings,
    /// Attempts to sign in.
    signing_in: Digests,
    /// Passwords that API keys set: a crowd that signs in does not keep an administrator waiting.
    setting: Digests,
    /// Compared for a login without a password, so that it takes as long.
    placeholder_digest: Arc<str>,
}

impl Members {
    /// Without members.
    pub fn new(ring: Arc<Keyring>, settings: &MemberSettings) -> Result<Self, Fault> {
        let key = *ring.active().key(Use::Token);
        Ok(Self {
            pins: Pins::new(Arc::clone(&ring)),
            tokens: Tokens::new(ring, settings.token_time),
            cache: MemberCache::new(settings.cache),
            throttle: Throttle::new(blake3::derive_key("tally 2026 names of failed logins", &key)),
            recipients: Budget::new(UNKNOWN_RECIPIENTS, UNKNOWN_RECIPIENTS_INTERVAL_S),
            erasing: Mutex::new(()),
            has_names: AtomicBool::new(false),
            signing_in: Digests::new(settings),
            setting: Digests::new(settings),
            placeholder_digest: password::placeholder(settings.cost)?,
            settings: settings.clone(),
        })
    }

    /// What can be set.
    pub fn settings(&self) -> &MemberSettings {
        &self.settings
    }

    /// How many passwords wait to be digested.
    pub fn waiting(&self) -> usize {
        self.signing_in.waiting() + self.setting.waiting()
    }

    /// The digest of a new password.
    pub async fn digest(&self, password: String) -> Result<Arc<str>, Failure> {
        let cost = self.settings.cost;
        self.setting.run(move || password::digest(&password, cost)).await?.map_err(Failure::Fault)
    }

    /// The member of that id, as it was not long ago: not its attempts.
    pub async fn known(&self, tally: &Arc<Tally>, id: MemberId) -> Result<Arc<Member>, Failure> {
        if let Some(member) = self.cache.member(&id, tally.has_others()) {
            return Ok(member);
        }
        let (moment, shared) = (self.cache.moment(), Arc::clone(tally));
        let member = Arc::new(crate::blocking(move || find::by_id(&shared, id)).await?);
        self.cache.keep(moment, id, &member);
        Ok(member)
    }

    /// The member that recently had that phone number. An unknown number costs the same and is cached as well. The lookup comes
    /// before the PIN is checked, and its time must not show which numbers are known.
    pub async fn of_phone(&self, tally: &Arc<Tally>, phone: &Phone) -> Result<Option<MemberId>, Failure> {
        if let Some(Holder(found)) = self.cache.phone(phone, tally.has_others()) {
            return Ok(found);
        }
        let (moment, shared, handle) = (self.cache.moment(), Arc::clone(tally), Handle::Phone(phone.clone()));
        let found = crate::blocking(move || Ok(shared.store.ledger().member_of(&handle)?)).await?;
        self.cache.keep_phone(moment, phone, Holder(found));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn members() -> Arc<Members> {
        let settings = MemberSettings {
            cost: Cost::new(8, 1).unwrap(),
            passwords_at_once: 1,
            passwords_waiting_max: 1,
            ..MemberSettings::default()
        };
        Arc::new(Members::new(crate::secret::Secret::new([1; 32]).into(), &settings).unwrap())
    }

    #[test]
    fn an_unknown_login_costs_what_a_new_password_costs() {
        let members = members();
        assert!(!password::is_outdated(&members.placeholder_digest, members.settings.cost));
    }

    #[tokio::test]
    async fn a_crowd_that_signs_in_is_bounded_and_stops_no_administrator() {
        let members = members();
        let (go, wait) = mpsc::channel::<()>();
        let sign_in = |work: Box<dyn FnOnce() + Send>| {
            let members = Arc::clone(&members);
            tokio::spawn(async move { members.signing_in.run(work).await })
        };
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let first = sign_in(Box::new(move || {
            begun.send(()).unwrap();
            wait.recv().unwrap();
        }));
        has_begun.await.unwrap();
        let second = sign_in(Box::new(|| {}));
        while members.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        let third = sign_in(Box::new(|| {})).await.unwrap();
        assert!(matches!(third, Err(Failure::Fault(Fault::Overloaded))));
        members.digest("open sesame".into()).await.unwrap();
        go.send(()).unwrap();
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        assert_eq!(members.waiting(), 0);
    }
}
