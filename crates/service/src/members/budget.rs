//! How many attempts of one kind a caller has before it waits: so many at once, and one more after each interval.
//!
//! An attempt can be taken before it is made, so that attempts at the same time gain nothing; it is returned if it was no
//! guess. Memory is bounded: the least recently used caller is dropped first, which gives it a full budget. Pure but for that
//! memory: the time is an argument.

use lru::LruCache;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tally_rules::Micros;
use tally_rules::instant::SECOND;

/// Callers that are remembered.
const CALLERS: NonZeroUsize = NonZeroUsize::new(50_000).expect("not zero");

/// The budgets of all callers of a kind.
pub(crate) struct Budget<K: Hash + Eq> {
    /// When the budget of a caller is full again.
    full_at: Mutex<LruCache<K, i64>>,
    at_once: i64,
    interval: i64,
}

/// One attempt. Its drop returns it, unless it was spent.
pub(crate) struct BudgetAttempt<K: Hash + Eq> {
    budget: Arc<Budget<K>>,
    caller: K,
    now: Micros,
    is_spent: bool,
}

impl<K: Hash + Eq + Clone> Budget<K> {
    pub(crate) fn new(at_once: u32, interval_s: i64) -> Arc<Self> {
        let full_at = Mutex::new(LruCache::unbounded());
        Arc::new(Self { full_at, at_once: at_once.into(), interval: interval_s * SECOND })
    }

    /// Takes one attempt; the error is the number of seconds until the next one.
    pub(crate) fn take(self: &Arc<Self>, caller: K, now: Micros) -> Result<BudgetAttempt<K>, u32> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let after = self.after(full_at.get(&caller), now)?;
        full_at.put(caller.clone(), after);
        if full_at.len() > CALLERS.get() {
            full_at.pop_lru();
        }
        Ok(BudgetAttempt { budget: Arc::clone(self), caller, now, is_spent: false })
    }

    /// For how many seconds there is no attempt, if there is none.
    pub(crate) fn wait(&self, caller: &K, now: Micros) -> Option<u32> {
        let full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.after(full_at.peek(caller), now).err()
    }

    /// When the budget is full again after one more attempt.
    fn after(&self, full_at: Option<&i64>, now: Micros) -> Result<i64, u32> {
        let most = now.0.saturating_add(self.at_once * self.interval);
        // A clock that was set back keeps no caller out for longer.
        let before = full_at.map_or(now.0, |at| (*at).clamp(now.0, most));
        let after = before.saturating_add(self.interval);
        if after <= most {
            return Ok(after);
        }
        let seconds = (after - most).unsigned_abs().div_ceil(SECOND.unsigned_abs());
        Err(u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}

impl<K: Hash + Eq> BudgetAttempt<K> {
    /// The attempt was a guess: it is not returned.
    pub(crate) fn spend(mut self) {
        self.is_spent = true;
    }
}

impl<K: Hash + Eq> Drop for BudgetAttempt<K> {
    fn drop(&mut self) {
        if self.is_spent {
            return;
        }
        let mut full_at = self.budget.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = full_at.get_mut(&self.caller) else { return };
        *at = at.saturating_sub(self.budget.interval);
        if *at <= self.now.0 {
            full_at.pop(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Micros {
        Micros(second * SECOND)
    }

    #[test]
    fn a_budget_is_spent_and_grows_again_and_an_attempt_comes_back() {
        let budget = Budget::new(3, 10);
        let take = |second| budget.take("ann", at(second)).map(BudgetAttempt::spend);
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!([take(0), take(9)], [Err(10), Err(1)]);
        assert_eq!([9, 10].map(|second| budget.wait(&"ann", at(second))), [Some(1), None]);
        assert_eq!([take(10), take(10)], [Ok(()), Err(10)]);
        drop(budget.take("bob", at(10)));
        assert_eq!(budget.full_at.lock().unwrap().len(), 1, "bob's budget is full");
        let held = [(); 3].map(|()| budget.take("bob", at(10)));
        assert!(budget.take("bob", at(10)).is_err() && held.iter().all(Result::is_ok));
        drop(held);
        assert!(budget.take("bob", at(10)).is_ok());
        assert_eq!(take(-1_000), Err(10), "a clock that was set back");
    }

    #[test]
    fn memory_is_bounded() {
        let budget = Budget::new(1, 10);
        for caller in 0..=CALLERS.get() {
            budget.take(caller, at(0)).map(BudgetAttempt::spend).unwrap();
        }
        assert_eq!(budget.full_at.lock().unwrap().len(), CALLERS.get());
        assert_eq!(budget.take(0, at(0)).map(BudgetAttempt::spend), Ok(()));
        assert_eq!(budget.take(CALLERS.get(), at(0)).map(BudgetAttempt::spend), Err(10));
    }
}
