//! Positions of webhooks: none is past the last event of its topic. Its receiver would never get the events up to there.
//!
//! Numbers only grow, so positions are read first. Not here: corrupt rows, which the list of deliveries reports.

use super::Run;
use crate::failure::Failure;
use crate::webhooks::deliveries::topic_text;
use tally_lanes::keys_to_load;
use tally_store::{Store, Topic, WebhookKey, WebhookRow};

/// Rows of one read.
const PAGE: usize = 500;

pub(super) fn check(store: &dyn Store, run: &mut Run<'_>) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let rows = store.ledger().list_webhook_rows(after, PAGE)?.rows;
        let delivered = |(key, row): &(WebhookKey, WebhookRow)| {
            let topic = key.topic.filter(|topic| *topic != Topic::Transfers)?;
            Some((key.id, topic, row.position()?.delivered))
        };
        let positions: Vec<_> = rows.iter().filter_map(delivered).collect();
        let last = last_numbers(store, positions.iter().map(|(_, topic, _)| *topic))?;
        for (id, topic, delivered) in positions {
            let last = last.iter().find(|(of, _)| *of == topic).map_or(0, |(_, last)| *last);
            if delivered > last {
                let what = format!("{delivered} events were delivered, and the last one is {last}");
                run.found("webhooks", format!("{}/{id}", topic_text(topic)), what);
            }
        }
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE => after = Some(*last),
            _ => return Ok(()),
        }
    }
}

/// The last number of each topic.
fn last_numbers(
    store: &dyn Store,
    topics: impl Iterator<Item = Topic>,
) -> Result<Vec<(Topic, u64)>, Failure> {
    let topics = keys_to_load(topics);
    let is_wallet = |topic: &Topic| matches!(topic, Topic::Wallet(_));
    let (wallets, stored): (Vec<Topic>, Vec<Topic>) = topics.into_iter().partition(is_wallet);
    let members = keys_to_load(wallets.into_iter().filter_map(|topic| match topic {
        Topic::Wallet(key) => Some(key.member),
        _ => None,
    }));
    let numbers = store.ledger().last_events(&stored)?;
    let entries = if members.is_empty() { Vec::new() } else { store.ledger().last_entries(&members)? };
    let entries = entries.into_iter().map(|(key, last)| (Topic::Wallet(key), last));
    Ok(stored.into_iter().zip(numbers).chain(entries).collect())
}
