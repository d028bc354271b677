//! The cache of members: by phone number, and by id.
//!
//! The number and the age of entries are bounded. This server's own changes count at once: a change of a member announces
//! itself before and after, and nothing that was read meanwhile is kept. A change by another server counts when the entry
//! expires, which is sooner if there are other servers. Balances and attempts are never cached, and the cache decides no
//! transfer: the transaction compares. Not here: which entry is evicted (`evict`).

use super::evict::Entries;
pub use super::evict::Policy;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_rules::ledger::member::Phone;
use tally_rules::ledger::{Member, MemberId};

/// Settings of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Entries of each kind.
    pub entries: usize,
    /// Which entry is evicted first.
    pub policy: Policy,
    /// How long an entry is used.
    pub time: Duration,
    /// The same if other servers write to the same store.
    pub shared_time: Duration,
}

impl Default for CacheSettings {
    fn default() -> Self {
        let hours = 12;
        Self {
            entries: 200_000,
            policy: Policy::default(),
            time: Duration::from_secs(hours * 3_600),
            shared_time: Duration::from_secs(1),
        }
    }
}

/// Hits and misses of one kind of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found no entry, or an expired one.
    pub misses: u64,
    /// Entries of this kind.
    pub entries: u64,
}

/// One kind of entries, with counters of hits and misses.
struct CountedEntries<K, V> {
    entries: Entries<K, (V, Instant)>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl<K: Eq + Hash + Clone, V: Clone> CountedEntries<K, V> {
    fn new(settings: CacheSettings) -> Self {
        let entries = Entries::new(settings.policy, settings.entries);
        Self { entries, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    fn get(&self, key: &K, time: Duration) -> Option<V> {
        let found = self.entries.get(key).filter(|(_, since)| since.elapsed() < time);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found.map(|(value, _)| value)
    }

    fn rate(&self) -> Rate {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let entries = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        Rate { hits: read(&self.hits), misses: read(&self.misses), entries }
    }
}

/// Changes so far, and how many are under way.
#[derive(Debug, Default)]
struct RecentChanges {
    begun: u64,
    running: u64,
}

/// See the head of the file.
pub struct MemberCache {
    settings: CacheSettings,
    phones: CountedEntries<Phone, Holder>,
    members: CountedEntries<MemberId, Arc<Member>>,
    changes: Mutex<RecentChanges>,
}

/// The member that has a phone number. An unknown number is cached as well: the response time must not show which numbers are
/// known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder(pub(super) Option<MemberId>);

/// A time before a read: its result may be kept, if nothing changes until then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(Option<u64>);

/// A change under way.
pub(crate) struct Changing<'a> {
    cache: &'a MemberCache,
    member: MemberId,
}

impl MemberCache {
    pub(super) fn new(settings: CacheSettings) -> Self {
        let (phones, members) = (CountedEntries::new(settings), CountedEntries::new(settings));
        Self { settings, phones, members, changes: Mutex::default() }
    }

    fn time(&self, shared: bool) -> Duration {
        if shared { self.settings.shared_time.min(self.settings.time) } else { self.settings.time }
    }

    pub(super) fn phone(&self, phone: &Phone, shared: bool) -> Option<Holder> {
        self.phones.get(phone, self.time(shared))
    }

    pub(super) fn member(&self, id: &MemberId, shared: bool) -> Option<Arc<Member>> {
        self.members.get(id, self.time(shared))
    }

    /// To be called before the store is read.
    pub(crate) fn moment(&self) -> Moment {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        Moment((changes.running == 0).then_some(changes.begun))
    }

    /// Keeps the result of a read since a moment, unless something changed.
    pub(crate) fn keep(&self, moment: Moment, id: MemberId, member: &Arc<Member>) {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if moment.0 != Some(changes.begun) {
            return;
        }
        if let Some(phone) = &member.phone {
            self.phones.entries.insert(phone.clone(), (Holder(Some(id)), Instant::now()));
        }
        self.members.entries.insert(id, (Arc::clone(member), Instant::now()));
    }

    /// The same for the member that has a phone number. If the number has changed and this is older all the same, the
    /// transaction detects it.
    pub(super) fn keep_phone(&self, moment: Moment, phone: &Phone, holder: Holder) {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if moment.0 == Some(changes.begun) {
            self.phones.entries.insert(phone.clone(), (holder, Instant::now()));
        }
    }

    /// A guard for the change of a member.
    pub(crate) fn changing(&self, member: MemberId) -> Changing<'_> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.begun += 1;
        changes.running += 1;
        Changing { cache: self, member }
    }

    /// Forgets what turned out to be old.
    pub(crate) fn forget(&self, member: MemberId, phone: &Phone) {
        self.phones.entries.remove(phone);
        self.members.entries.remove(&member);
    }

    /// Hits and misses by phone number, and by id.
    pub fn rates(&self) -> [(&'static str, Rate); 2] {
        [("phones", self.phones.rate()), ("members", self.members.rate())]
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut changes = self.cache.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.running -= 1;
        if let Some((member, _)) = self.cache.members.entries.remove(&self.member)
            && let Some(phone) = &member.phone
        {
            self.cache.phones.entries.remove(phone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::ledger::Uuid;
    use tally_rules::ledger::member::Login;
    use tally_rules::ledger::pin::Attempts;
    use tally_rules::{Micros, PlayerId};

    fn member(name: &str) -> Arc<Member> {
        Arc::new(Member {
            login: Login::new("ann").unwrap(),
            phone: Some(Phone::parse("010-1234", None).unwrap()),
            player: PlayerId::new("ann").unwrap(),
            name: name.into(),
            password: None,
            pin: None,
            attempts: Attempts::default(),
            tokens_from: Micros(0),
            closed_at: None,
        })
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let cache = MemberCache::new(CacheSettings::default());
        let (id, phone) = (MemberId(Uuid([1; 16])), Phone::parse("010-1234", None).unwrap());
        cache.keep(cache.moment(), id, &member("old"));
        assert_eq!(cache.phone(&phone, false), Some(Holder(Some(id))));
        let before = cache.moment();
        let changing = cache.changing(id);
        let during = cache.moment();
        drop(changing);
        assert!(cache.member(&id, false).is_none() && cache.phone(&phone, false).is_none());
        for moment in [before, during] {
            cache.keep(moment, id, &member("old"));
            cache.keep_phone(moment, &phone, Holder(Some(id)));
            assert!(cache.member(&id, false).is_none() && cache.phone(&phone, false).is_none(), "{moment:?}");
        }
        cache.keep(cache.moment(), id, &member("new"));
        assert_eq!(&*cache.member(&id, false).unwrap().name, "new");
        let [(_, phones), (_, members)] = cache.rates();
        assert_eq!((phones.hits, phones.misses, members.hits, members.misses), (1, 3, 1, 3));
    }

    #[test]
    fn entries_are_bounded_and_age_sooner_where_there_are_others() {
        let settings = CacheSettings { entries: 10, shared_time: Duration::ZERO, ..CacheSettings::default() };
        let cache = MemberCache::new(settings);
        for number in 0..200 {
            cache.keep(cache.moment(), MemberId(Uuid([number; 16])), &member("x"));
        }
        let [_, (_, members)] = cache.rates();
        assert!(members.entries <= 10, "{members:?}");
        cache.keep(cache.moment(), MemberId(Uuid([1; 16])), &member("x"));
        assert!(cache.member(&MemberId(Uuid([1; 16])), true).is_none());
        assert!(cache.member(&MemberId(Uuid([1; 16])), false).is_some());
    }
}
