//! Webhooks: receivers of events over HTTP, and how far each of them is in each topic.
//!
//! The events of a topic are delivered in order, so one number says which ones a receiver has taken. An event that it did not
//! take is sent again after a pause that grows. Meanwhile the topic waits, and others go on. Not here: the events (`event`),
//! signatures and sending.

use crate::instant::{Micros, SECOND};
use crate::ledger::{Currency, Entry, EntryKind};
use crate::named;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many webhooks there may be.
pub const WEBHOOKS_MAX: usize = 32;
/// The longest address, in bytes.
pub const URL_BYTES_MAX: usize = 1024;
/// How long the secret before the present one signs, too.
pub const PREVIOUS_SECRET_MICROS: i64 = 24 * 3600 * SECOND;

/// The pause after the first failure.
const PAUSE: i64 = SECOND;
/// The longest pause.
const PAUSE_MAX: i64 = 3600 * SECOND;

named! {
    /// A type of event that a webhook can get. The names are stored, so a released one never changes.
    pub enum EventType { /// A period of a leaderboard was closed.
        PeriodClosed = "period_closed", /// A contest was made, changed, or came into another state.
        Contest = "contest", /// A member was closed.
        MemberClosed = "member_closed", /// The prizes of a closed period were paid, as far as they can be.
        PeriodPaid = "period_paid", /// An entry of a wallet.
        Transfer = "transfer", /// An entry of a wallet that a reversal wrote.
        Reversal = "reversal", /// An entry of a wallet that took its balance below a mark.
        BalanceBelow = "balance_below" }
}

/// The most marks of a webhook.
pub const MARKS_MAX: usize = 16;

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where events are sent.
    pub url: Arc<str>,
    /// The types that it gets, ascending.
    pub events: Vec<EventType>,
    /// The mark of each currency, for [`EventType::BalanceBelow`].
    pub marks: BTreeMap<Currency, i64>,
    /// When it was made. It gets no event that was stored before.
    pub created_at: Micros,
    /// Since when it is enabled: earlier failures do not count.
    pub enabled_at: Micros,
    /// Why it gets nothing, if it is disabled.
    pub disabled: Option<Disabled>,
    /// The number of its secret, from 1. The secret itself is not stored: it is derived.
    pub secret: u32,
    /// The number of the secret of the store from which it is derived.
    pub made_by: u8,
    /// The same of the secret before it.
    pub previous_made_by: u8,
    /// Until when the secret before it signs, too.
    pub previous_until: Option<Micros>,
}

/// Why a webhook is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disabled {
    /// Since when.
    pub at: Micros,
    /// The reason, for people.
    pub why: Arc<str>,
}

/// How far a webhook is in one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The contest of the topic; empty for a leaderboard, whose name is known by its number.
    pub name: Arc<str>,
    /// The number of the last event that was delivered, or that the webhook does not want. 0 for none.
    pub delivered: u64,
    /// The event of the last attempt.
    pub tried: EventRef,
    /// When that attempt ended.
    pub at: Micros,
    /// The status that the receiver answered.
    pub status: Option<u16>,
    /// The failure of the event after `delivered`, if its last attempt failed.
    pub failing: Option<Failing>,
}

/// An event of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRef {
    /// Its number.
    pub number: u64,
    /// When it was stored. A store that was restored from a copy gives its numbers again, but with other times.
    pub at: Micros,
}

/// Failed attempts to deliver one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// When the first one failed.
    pub since: Micros,
    /// How many failed.
    pub attempts: u32,
    /// When the next one is due.
    pub next: Micros,
    /// Why the last one failed.
    pub why: Arc<str>,
}

impl Webhook {
    /// Whether it gets events of one of these types now.
    pub fn wants(&self, events: &[EventType]) -> bool {
        self.disabled.is_none() && events.iter().any(|event| self.events.contains(event))
    }

    /// The type of the event that an entry of a wallet becomes. An entry is one event, also if several types fit it.
    pub fn type_of_entry(&self, currency: Currency, entry: &Entry) -> Option<EventType> {
        let crosses = |mark: &i64| entry.after < *mark && *mark <= entry.before();
        let is_below = self.marks.get(&currency).is_some_and(crosses);
        let is_reversal = matches!(entry.kind, EntryKind::ReversalIn | EntryKind::ReversalOut);
        let fits = [
            (EventType::BalanceBelow, is_below),
            (EventType::Reversal, is_reversal),
            (EventType::Transfer, true),
        ];
        fits.into_iter().find(|(event, fits)| *fits && self.events.contains(event)).map(|(event, _)| event)
    }

    /// The secrets that sign at this time, the present one first: its number, and that of the secret of the store.
    pub fn secrets(&self, now: Micros) -> impl Iterator<Item = (u32, u8)> {
        let previous = self.previous_until.filter(|until| now < *until);
        let previous = previous.map(|_| (self.secret - 1, self.previous_made_by));
        std::iter::once((self.secret, self.made_by)).chain(previous)
    }

    /// Replaces its secret by one of this secret of the store; the present one signs for a while, too.
    pub fn rotate(&mut self, made_by: u8, now: Micros) {
        self.secret += 1;
        self.previous_made_by = std::mem::replace(&mut self.made_by, made_by);
        self.previous_until = Some(now.plus(PREVIOUS_SECRET_MICROS));
    }

    /// Disables it, or enables it again: then every failed delivery is tried at once, and its time begins anew.
    pub fn set_disabled(&mut self, why: Option<&str>, now: Micros) {
        match why {
            None if self.disabled.take().is_some() => self.enabled_at = now,
            Some(why) if self.disabled.is_none() => {
                self.disabled = Some(Disabled { at: now, why: why.into() });
            }
            _ => {}
        }
    }
}

impl Position {
    /// Before the first attempt of a topic.
    pub fn new(name: Arc<str>, delivered: u64) -> Self {
        Self { name, delivered, tried: EventRef::default(), at: Micros(0), status: None, failing: None }
    }

    /// Whether the next event is due. Failures before the webhook was enabled count for nothing, and neither do those of a clock that
    /// was set back since.
    pub fn is_due(&self, webhook: &Webhook, now: Micros) -> bool {
        let counts = (webhook.enabled_at..=now).contains(&self.at);
        self.failing.as_ref().is_none_or(|failing| !counts || failing.next <= now)
    }

    /// The position after an event was taken.
    #[must_use]
    pub fn after_success(self, tried: EventRef, status: u16, now: Micros) -> Self {
        Self { delivered: tried.number, tried, at: now, status: Some(status), failing: None, ..self }
    }

    /// The position after an attempt failed.
    #[must_use]
    pub fn after_failure(
        self,
        webhook: &Webhook,
        tried: EventRef,
        (status, why): (Option<u16>, Arc<str>),
        now: Micros,
    ) -> Self {
        let is_counted = |_: &Failing| self.at >= webhook.enabled_at;
        let before = self.failing.as_ref().filter(|failing| is_counted(failing));
        let attempts = before.map_or(0, |failing| failing.attempts).saturating_add(1);
        let since = before.map_or(now, |failing| failing.since);
        let next = now.plus(pause(attempts));
        Self { tried, at: now, status, failing: Some(Failing { since, attempts, next, why }), ..self }
    }
}

/// The pause after so many failures: twice as long after each one, up to an hour.
pub fn pause(attempts: u32) -> i64 {
    let doubled = PAUSE.checked_shl(attempts.saturating_sub(1).min(32)).unwrap_or(PAUSE_MAX);
    doubled.min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{TransferId, Uuid};

    fn webhook() -> Webhook {
        Webhook {
            url: "https://a.example/".into(),
            events: vec![EventType::Contest],
            marks: BTreeMap::new(),
            created_at: Micros(5),
            enabled_at: Micros(5),
            disabled: None,
            secret: 1,
            made_by: 0,
            previous_made_by: 0,
            previous_until: None,
        }
    }

    fn failed(position: Position, webhook: &Webhook, at: i64) -> Position {
        let tried = EventRef { number: 1, at: Micros(3) };
        position.after_failure(webhook, tried, (Some(500), "why".into()), Micros(at))
    }

    #[test]
    fn pauses_double_up_to_an_hour() {
        let seconds: Vec<i64> = (1..=13).map(|attempts| pause(attempts) / SECOND).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600]);
        assert_eq!((pause(0), pause(u32::MAX)), (SECOND, PAUSE_MAX));
    }

    #[test]
    fn the_secret_before_signs_for_a_day() {
        let mut webhook = webhook();
        assert_eq!(webhook.secrets(Micros(9)).collect::<Vec<_>>(), [(1, 0)]);
        webhook.rotate(7, Micros(10));
        let until = 10 + PREVIOUS_SECRET_MICROS;
        assert_eq!(webhook.secrets(Micros(until - 1)).collect::<Vec<_>>(), [(2, 7), (1, 0)]);
        assert_eq!(webhook.secrets(Micros(until)).collect::<Vec<_>>(), [(2, 7)]);
    }

    #[test]
    fn a_failed_event_waits_and_is_forgotten_when_it_is_taken() {
        let (webhook, start) = (webhook(), Position::new("cup".into(), 0));
        let once = failed(start, &webhook, 10);
        let twice = failed(once.clone(), &webhook, 20 + SECOND);
        let failing = twice.failing.as_ref().expect("it fails");
        assert_eq!((failing.attempts, failing.since), (2, Micros(10)));
        let due = 20 + 3 * SECOND;
        let is_due = |at| twice.is_due(&webhook, Micros(at));
        assert_eq!((is_due(due - 1), is_due(due), is_due(0)), (false, true, true));
        assert_eq!(twice.delivered, 0);
        let tried = EventRef { number: 1, at: Micros(3) };
        let taken = twice.clone().after_success(tried, 204, Micros(99));
        assert_eq!((taken.delivered, &taken.failing), (1, &None));
        assert!(taken.is_due(&webhook, Micros(99)));
    }

    #[test]
    fn a_webhook_that_is_enabled_again_begins_anew() {
        let mut webhook = webhook();
        let position = failed(Position::new("cup".into(), 0), &webhook, 10);
        webhook.set_disabled(Some("gone"), Micros(20));
        webhook.set_disabled(Some("other"), Micros(25));
        assert!(!webhook.wants(&[EventType::Contest]));
        assert_eq!(webhook.disabled.as_ref().map(|one| (one.at, &*one.why)), Some((Micros(20), "gone")));
        webhook.set_disabled(None, Micros(30));
        webhook.set_disabled(None, Micros(40));
        assert!(webhook.wants(&[EventType::Contest]) && !webhook.wants(&[EventType::PeriodClosed]));
        assert_eq!(webhook.enabled_at, Micros(30));
        assert!(position.is_due(&webhook, Micros(30)));
        let failing = failed(position, &webhook, 50).failing.expect("it fails");
        assert_eq!((failing.attempts, failing.since), (1, Micros(50)));
    }

    #[test]
    fn a_line_is_the_most_specific_type_that_is_wanted() {
        use EventType::{BalanceBelow, Reversal, Transfer};
        let code = |text| Currency::parse(text).unwrap();
        let line = |kind, before: i64, after: i64| {
            let (transfer, amount) = (TransferId(Uuid([1; 16])), (before - after).abs());
            let entry = Entry { transfer, kind, amount, after, counterparty: None, reference: None };
            assert_eq!(entry.before(), before);
            entry
        };
        let all = [Transfer, Reversal, BalanceBelow];
        // (wanted types, line, type)
        let rows: [(&[EventType], Entry, Option<EventType>); 11] = [
            (&all, line(EntryKind::Withdrawal, 100, 99), Some(BalanceBelow)),
            (&all, line(EntryKind::Withdrawal, 101, 100), Some(Transfer)),
            (&all, line(EntryKind::Withdrawal, 99, 98), Some(Transfer)),
            (&all, line(EntryKind::Deposit, 98, 120), Some(Transfer)),
            (&all, line(EntryKind::ReversalOut, 120, 119), Some(Reversal)),
            (&all, line(EntryKind::ReversalOut, 120, 0), Some(BalanceBelow)),
            (&all, line(EntryKind::ReversalIn, 0, 50), Some(Reversal)),
            (&[Transfer], line(EntryKind::ReversalOut, 120, 0), Some(Transfer)),
            (&[Reversal], line(EntryKind::ReversalOut, 120, 0), Some(Reversal)),
            (&[Reversal, BalanceBelow], line(EntryKind::Withdrawal, 100, 100 - 50), Some(BalanceBelow)),
            (&[Reversal, BalanceBelow], line(EntryKind::Withdrawal, 50, 40), None),
        ];
        for (events, entry, wanted) in rows {
            let webhook =
                Webhook { events: events.to_vec(), marks: [(code("KRW"), 100)].into(), ..webhook() };
            assert_eq!(webhook.type_of_entry(code("KRW"), &entry), wanted, "{entry:?}");
            assert_ne!(webhook.type_of_entry(code("USD"), &entry), Some(BalanceBelow), "{entry:?}");
        }
    }
}
