//! Finds wallets with new entries, by reading transfers in order of their ids.
//!
//! An id has the instant of a decision, and a transfer may appear late: another server may decide earlier and commit later. So transfers
//! are read twice, as soon as they appear and again a minute later. How far both reads have come, and all that they found was delivered, is
//! stored for each webhook: a start goes on there. What is found is only a hint, as of other events (`queue`). Blocks on the store.

use super::happening::OF_WALLETS;
use crate::events::KEEP_MICROS;
use crate::failure::Failure;
use crate::servers;
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_rules::ledger::{Transfer, TransferId, Uuid, WalletKey};
use tally_rules::webhook::{EventRef, Position, Webhook};
use tally_store::{
    EventKey, LedgerReadSet, Loaded, ReadSet, ShardSet, Topic, WebhookKey, WebhookRow, WriteSet,
};

/// How late a transfer may appear.
pub(super) const LATE_MICROS: i64 = 60 * SECOND;
/// Between two stores of how far a webhook is.
const STORE_PAUSE_MICROS: i64 = 5 * SECOND;
/// Entries of one read.
const ENTRIES: u64 = 100;

/// How far transfers were read.
#[derive(Debug)]
pub(super) struct Scans {
    ahead: TransferId,
    behind: TransferId,
    /// For each webhook that wants entries, the time up to which they were delivered, as stored.
    stored: BTreeMap<Uuid, Micros>,
}

/// Entries that may be new, each with its time.
pub(super) type NewEntries = Vec<(Micros, EventKey)>;

/// The first id of an instant.
fn first_of(at: Micros) -> TransferId {
    TransferId(Uuid::new(at, 0))
}

impl Scans {
    /// Goes on where the webhooks have got their entries; `None` if none wants any.
    pub(super) fn begin(tally: &Tally, webhooks: &BTreeMap<Uuid, Webhook>) -> Result<Option<Self>, Failure> {
        let wanting: Vec<_> = webhooks.iter().filter(|(_, webhook)| webhook.wants(&OF_WALLETS)).collect();
        let keys: Vec<_> = wanting.iter().map(|(id, _)| cursor_of(**id)).collect();
        let rows = tally.store.ledger().webhook_rows(&keys)?;
        let kept = tally.now().plus(-KEEP_MICROS);
        let at = |((id, webhook), row): ((&Uuid, &Webhook), Option<WebhookRow>)| {
            let stored = row.as_ref().and_then(WebhookRow::position).map(|row| row.tried.at);
            (*id, stored.unwrap_or(webhook.created_at).max(kept))
        };
        let stored: BTreeMap<Uuid, Micros> = wanting.into_iter().zip(rows).map(at).collect();
        let first = stored.values().min().copied();
        Ok(first.map(|at| Self { ahead: first_of(at), behind: first_of(at), stored }))
    }

    /// Reads on in both places; returns what was found, and whether there may be more.
    pub(super) fn read(
        &mut self,
        tally: &Tally,
        (page, pages): (usize, usize),
    ) -> Result<(NewEntries, bool), Failure> {
        let (mut entries, mut has_more) = (NewEntries::new(), false);
        let late = first_of(tally.now().plus(-LATE_MICROS));
        for (cursor, end) in [(&mut self.ahead, None), (&mut self.behind, Some(late))] {
            let mut is_behind = false;
            for _ in 0..pages {
                let rows = tally.store.ledger().recent_transfers(*cursor, page)?.rows;
                let is_due = |id: &TransferId| end.is_none_or(|end| *id < end);
                let due = rows.iter().take_while(|(id, _)| is_due(id)).count();
                rows[..due].iter().for_each(|(id, transfer)| add(&mut entries, *id, transfer));
                if let Some((last, _)) = rows[..due].last() {
                    *cursor = *last;
                }
                is_behind = due == page;
                if !is_behind {
                    break;
                }
            }
            has_more |= is_behind;
        }
        Ok((entries, has_more))
    }

    /// Reads again from this time on.
    pub(super) fn go_back(&mut self, at: Micros) {
        let first = first_of(at);
        (self.ahead, self.behind) = (self.ahead.min(first), self.behind.min(first));
    }

    /// The number after which a wallet begins for a webhook: all entries up to it are delivered, or not wanted. `least` is the first number
    /// that was found, and `row` the stored position.
    pub(super) fn start(
        &self,
        tally: &Tally,
        wallet: WalletKey,
        (id, webhook, row): (Uuid, &Webhook, Option<&Position>),
        least: u64,
    ) -> Result<u64, Failure> {
        let delivered = row.map_or(0, |row| row.delivered);
        if delivered + 1 >= least || row.is_some_and(|row| row.failing.is_some()) {
            return Ok(delivered);
        }
        let stored = self.stored.get(&id).copied().unwrap_or(webhook.created_at);
        let since = stored.plus(-LATE_MICROS).max(webhook.created_at);
        Ok(before(tally, wallet, least, since)?.max(delivered))
    }

    /// Stores how far each webhook is: up to the first of its entries that wait, or to the end of the later read.
    pub(super) fn store(
        &mut self,
        tally: &Tally,
        waiting: impl Fn(Uuid) -> Option<Micros>,
    ) -> Result<(), Failure> {
        let end = self.behind.0.at();
        let far = |(id, stored): (&Uuid, &Micros)| {
            let at = waiting(*id).map_or(end, |first| first.plus(-1).min(end));
            (at.since(*stored) >= STORE_PAUSE_MICROS).then_some((*id, at))
        };
        let far: Vec<_> = self.stored.iter().filter_map(far).collect();
        if far.is_empty() {
            return Ok(());
        }
        let mut keys: Vec<_> = far.iter().flat_map(|(id, _)| [WebhookKey::of(*id), cursor_of(*id)]).collect();
        keys.sort_unstable();
        let ledger = LedgerReadSet { webhooks: keys.clone(), ..LedgerReadSet::default() };
        let plan = ReadSet { shards: ShardSet::of(0), ledger, ..ReadSet::default() };
        servers::run(&*tally.store, &plan, &mut |loaded: &Loaded| {
            let mut changes = WriteSet::default();
            let row = |key: WebhookKey| {
                let place = keys.binary_search(&key).expect("it was read");
                loaded.ledger.webhooks[place].as_ref()
            };
            for (id, at) in &far {
                let stored = row(cursor_of(*id)).and_then(WebhookRow::position).map(|row| row.tried.at);
                // Of a webhook that is deleted nothing is left.
                if row(WebhookKey::of(*id)).is_some() && stored.is_none_or(|stored| stored < *at) {
                    let tried = EventRef { number: 0, at: *at };
                    let position = Position { tried, at: *at, ..Position::new(Arc::default(), 0) };
                    changes.ledger.webhooks.push((cursor_of(*id), Some(WebhookRow::Position(position))));
                }
            }
            changes.ledger.webhooks.sort_unstable_by_key(|(key, _)| *key);
            changes
        })?;
        self.stored.extend(far);
        Ok(())
    }
}

/// The row that says how far a webhook is.
fn cursor_of(id: Uuid) -> WebhookKey {
    WebhookKey { topic: Some(Topic::Transfers), id }
}

fn add(entries: &mut NewEntries, id: TransferId, transfer: &Transfer) {
    let sides = [transfer.debit, transfer.credit].into_iter().flatten();
    entries.extend(sides.map(|(member, number)| {
        let topic = Topic::Wallet(WalletKey { member, currency: transfer.currency });
        (id.0.at(), EventKey { topic, number })
    }));
}

/// The number before the first entry of a wallet since then, from `least` downwards.
pub(super) fn before(tally: &Tally, wallet: WalletKey, least: u64, since: Micros) -> Result<u64, Failure> {
    let mut first = least;
    while first > 1 {
        let entries = tally.store.ledger().history(wallet, first.saturating_sub(ENTRIES).max(1)..first)?;
        if entries.is_empty() {
            break;
        }
        for (number, entry) in entries {
            if entry.at() < since {
                return Ok(number);
            }
            first = number;
        }
    }
    Ok(first - 1)
}
