//! Members and money are on the first shard, so a transfer is a transaction of one database.

use super::Shards;
use super::snapshot::ShardSnapshot;
use super::split::FIRST;
use crate::archive::{ArchivedMonth, Archives, snapshot};
use crate::events::{EventKey, EventReads, Topic};
use crate::webhooks::{WebhookKey, WebhookReads, WebhookRow};
use crate::{Ledger, Listing, Reads, Snapshot, StoreError};
use std::ops::Range;
use tally_rules::Micros;
use tally_rules::event::Event;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::{Handle, HandleKind};
use tally_rules::ledger::{
    Currency, Entry, Hold, HoldId, Member, MemberId, Month, ReversalLink, Transfer, TransferId, Wallet,
    WalletKey,
};

impl Shards {
    pub(super) fn of_first<T>(
        &self,
        read: impl FnOnce(&dyn Ledger) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.inner.query(FIRST, |store| read(store.ledger()))
    }
}

impl EventReads for Shards {
    fn list_events(
        &self,
        topic: Topic,
        after: u64,
        limit: usize,
    ) -> Result<Listing<(u64, Event)>, StoreError> {
        self.of_first(|first| first.list_events(topic, after, limit))
    }

    fn last_events(&self, topics: &[Topic]) -> Result<Vec<u64>, StoreError> {
        self.of_first(|first| first.last_events(topics))
    }

    fn last_entries(&self, members: &[MemberId]) -> Result<Vec<(WalletKey, u64)>, StoreError> {
        self.of_first(|first| first.last_entries(members))
    }

    fn expire_events(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.of_first(|first| first.expire_events(before, limit))
    }
}

impl WebhookReads for Shards {
    fn webhook_rows(&self, keys: &[WebhookKey]) -> Result<Vec<Option<WebhookRow>>, StoreError> {
        self.of_first(|first| first.webhook_rows(keys))
    }

    fn list_webhook_rows(
        &self,
        after: Option<WebhookKey>,
        limit: usize,
    ) -> Result<Listing<(WebhookKey, WebhookRow)>, StoreError> {
        self.of_first(|first| first.list_webhook_rows(after, limit))
    }

    fn recent_events(
        &self,
        after: (Micros, EventKey),
        limit: usize,
    ) -> Result<Vec<(Micros, EventKey)>, StoreError> {
        self.of_first(|first| first.recent_events(after, limit))
    }

    fn recent_transfers(
        &self,
        after: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
        self.of_first(|first| first.recent_transfers(after, limit))
    }
}

impl Ledger for Shards {
    fn list_wallets(&self, member: MemberId) -> Result<Listing<(Currency, Wallet)>, StoreError> {
        self.of_first(|first| first.list_wallets(member))
    }

    fn entries(&self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.of_first(|first| first.entries(keys))
    }

    fn list_entries(
        &self,
        wallet: WalletKey,
        numbers: Range<u64>,
    ) -> Result<Listing<(u64, Entry)>, StoreError> {
        self.of_first(|first| first.list_entries(wallet, numbers))
    }

    fn transfer(&self, id: TransferId) -> Result<Option<Transfer>, StoreError> {
        self.of_first(|first| first.transfer(id))
    }

    fn transfers(&self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        self.of_first(|first| first.transfers(ids))
    }

    fn list_transfers(
        &self,
        before: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
        self.of_first(|first| first.list_transfers(before, limit))
    }

    fn list_holds(&self, before: HoldId, limit: usize) -> Result<Listing<(HoldId, Hold)>, StoreError> {
        self.of_first(|first| first.list_holds(before, limit))
    }

    fn reversal(&self, id: TransferId) -> Result<Option<ReversalLink>, StoreError> {
        self.of_first(|first| first.reversal(id))
    }

    fn hold(&self, id: HoldId) -> Result<Option<Hold>, StoreError> {
        self.of_first(|first| first.hold(id))
    }

    fn due_holds(&self, now: Micros, limit: usize) -> Result<Vec<(HoldId, WalletKey)>, StoreError> {
        self.of_first(|first| first.due_holds(now, limit))
    }

    fn due_credits(&self, now: Micros, limit: usize) -> Result<Vec<WalletKey>, StoreError> {
        self.of_first(|first| first.due_credits(now, limit))
    }

    fn member(&self, id: MemberId) -> Result<Option<Member>, StoreError> {
        self.of_first(|first| first.member(id))
    }

    fn members(&self, ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError> {
        self.of_first(|first| first.members(ids))
    }

    fn newest_members(
        &self,
        before: MemberId,
        limit: usize,
    ) -> Result<Listing<(MemberId, Member)>, StoreError> {
        self.of_first(|first| first.newest_members(before, limit))
    }

    fn member_of(&self, handle: &Handle) -> Result<Option<MemberId>, StoreError> {
        self.of_first(|first| first.member_of(handle))
    }

    fn members_of(&self, handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError> {
        self.of_first(|first| first.members_of(handles))
    }

    fn list_handles(
        &self,
        kind: HandleKind,
        prefix: &str,
        limit: usize,
    ) -> Result<Listing<(Handle, MemberId)>, StoreError> {
        self.of_first(|first| first.list_handles(kind, prefix, limit))
    }

    fn totals(&self) -> Result<Vec<(AccountKey, Total)>, StoreError> {
        self.of_first(|first| first.totals())
    }

    fn archived_months(&self) -> Result<Vec<(Month, ArchivedMonth)>, StoreError> {
        self.of_first(|first| first.archived_months())
    }

    fn archives(&self) -> &Archives {
        self.inner.all[FIRST].ledger().archives()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        let one = |shard| self.inner.query(shard, crate::mysql::MySqlStore::begin_snapshot);
        let all = (0..self.inner.all.len()).map(one).collect::<Result<_, _>>()?;
        snapshot::with_archives(self, Box::new(ShardSnapshot::new(all)))
    }
}
