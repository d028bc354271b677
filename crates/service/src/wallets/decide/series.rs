//! What a batch does of series. Pure, like the rest of a batch.
//!
//! A series becomes what it is to be where it still is what somebody saw; then the contest that is made of it is there too. A
//! contest of that name that is there already is that contest: it is not made again, and the series goes on.

use super::{Decision, Ids, State, next};
use crate::contests::series::{SeriesDone, SeriesOrder};
use crate::wallets::command::Done;
use tally_rules::contest::Record;
use tally_rules::outcome::Outcome;
use tally_store::ReadSet;

/// How many ids it may use.
pub(super) fn ids(order: &SeriesOrder) -> usize {
    usize::from(order.making.is_some())
}

/// Everything it may touch.
pub(super) fn read(plan: &mut ReadSet, order: &SeriesOrder) {
    let contests = &mut plan.ledger.contests;
    contests.series.push(order.id.clone());
    contests.contests.extend(order.making.iter().map(|making| making.id.clone()));
}

impl State<'_> {
    pub(super) fn one_series(&mut self, order: &SeriesOrder, ids: Ids<'_, '_>) -> Decision {
        let no = order.making.as_ref().map(|_| next(ids));
        let present = self.series.get(&order.id).cloned();
        if self.replay(order.identity.as_ref())?.is_some() {
            return Ok(Done::Series(SeriesDone::Replayed(present.map(Box::new))));
        }
        if present.as_ref() != order.seen.as_deref() {
            return Ok(Done::Series(SeriesDone::Stale));
        }
        if let (Some(making), Some(no)) = (order.making.as_deref(), no)
            && self.contests.get(&making.id).is_none()
        {
            let series = Some(order.id.clone());
            let mut record = Record::new(no, making.contest.clone(), series, self.now);
            record.since = making.at;
            self.added.tell(&record, None, self.now);
            self.contests.set(&making.id, Some(record));
        }
        if order.seen.is_some() || order.then.is_some() {
            self.series.set(&order.id, order.then.as_deref().cloned());
            self.remember(order.identity.as_ref(), Outcome::ContestChanged);
        }
        Ok(Done::Series(SeriesDone::Done))
    }
}
