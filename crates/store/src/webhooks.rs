//! Webhooks in a store: receivers of events, and their positions in topics.
//!
//! All are rows of one table. The row of a webhook has no topic, so these come first in the order of keys. A position is written
//! after each attempt, in a transaction that has read it: a server that was frozen cannot set it back. Positions grow with the
//! topics that have events, and are deleted when these have expired. Not here: sending.

use crate::events::{EventKey, Topic};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::ledger::{Transfer, TransferId, Uuid};
use tally_rules::webhook::{Position, Webhook};

/// The key of a webhook, or of its position in a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookKey {
    /// The topic; `None` for the webhook itself.
    pub topic: Option<Topic>,
    /// The webhook.
    pub id: Uuid,
}

/// A row: a webhook if its key has no topic, else a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookRow {
    /// A webhook.
    Webhook(Webhook),
    /// A position.
    Position(Position),
}

impl WebhookKey {
    /// The key of a webhook itself.
    pub fn of(id: Uuid) -> Self {
        Self { topic: None, id }
    }

    /// Whether a row can have this key.
    pub(crate) fn fits(&self, row: &WebhookRow) -> bool {
        self.topic.is_none() == matches!(row, WebhookRow::Webhook(_))
    }
}

impl WebhookRow {
    /// The webhook.
    pub fn webhook(&self) -> Option<&Webhook> {
        if let Self::Webhook(webhook) = self { Some(webhook) } else { None }
    }

    /// The position.
    pub fn position(&self) -> Option<&Position> {
        if let Self::Position(position) = self { Some(position) } else { None }
    }
}

/// Reads of webhooks without a transaction.
pub trait WebhookReads {
    /// The row of each key. The keys ascend.
    fn webhook_rows(&self, keys: &[WebhookKey]) -> Result<Vec<Option<WebhookRow>>, StoreError>;

    /// At most `limit` rows in order of keys, from the first one after `after`.
    fn list_webhook_rows(
        &self,
        after: Option<WebhookKey>,
        limit: usize,
    ) -> Result<Listing<(WebhookKey, WebhookRow)>, StoreError>;

    /// At most `limit` events of all topics, in order of their times and keys, from the first one after `after`. An event may
    /// appear some time after its time: that is when its transaction was decided.
    fn recent_events(
        &self,
        after: (Micros, EventKey),
        limit: usize,
    ) -> Result<Vec<(Micros, EventKey)>, StoreError>;

    /// At most `limit` transfers after an id, the oldest first. A transfer may appear some time after its id: the id has the instant of
    /// its decision.
    fn recent_transfers(
        &self,
        after: TransferId,
        limit: usize,
    ) -> Result<Listing<(TransferId, Transfer)>, StoreError>;
}
