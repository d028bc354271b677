//! What is lost with a secret: what it has made that only it can check.
//!
//! Not here: tokens and retries, which end by time.

use crate::failure::Failure;
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::ledger::member::Pin;
use tally_rules::webhook::WEBHOOKS_MAX;
use tally_store::{Store, WebhookRow};

/// Members of one read.
const MEMBERS: usize = 1000;

/// What secrets have made that only they can check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Members with a PIN.
    pub pins: u64,
    /// Addresses of webhooks with a secret that signs now.
    pub webhooks: Vec<Arc<str>>,
}

/// What the secrets of these numbers have made. Reads all members, in steps. Blocks on the store.
pub fn made_by(store: &dyn Store, is_lost: impl Fn(u8) -> bool, now: Micros) -> Result<Made, Failure> {
    let mut made = Made::default();
    let mut snapshot = store.ledger().snapshot()?;
    let mut after = None;
    loop {
        let members = snapshot.members(after, MEMBERS)?;
        let has = |pin: &Pin| is_lost(pin.secret);
        made.pins += members.iter().filter(|(_, member)| member.pin.as_ref().is_some_and(has)).count() as u64;
        match members.last() {
            Some((last, _)) if members.len() == MEMBERS => after = Some(*last),
            _ => break,
        }
    }
    drop(snapshot);
    let rows = store.ledger().list_webhook_rows(None, WEBHOOKS_MAX + 1)?.rows;
    let webhooks = rows.into_iter().filter_map(|(key, row)| match (key.topic, row) {
        (None, WebhookRow::Webhook(webhook)) => Some(webhook),
        _ => None,
    });
    let lost = webhooks.filter(|webhook| webhook.secrets(now).any(|(_, by)| is_lost(by)));
    made.webhooks = lost.map(|webhook| webhook.url).collect();
    Ok(made)
}
