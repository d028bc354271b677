//! A chunk of a file: its lines in order, each for itself, and how many are done by now.
//!
//! Not here: a chain, an idempotency key of a line (the chunk is its own), and holds.

use super::{Decision, Ids, State, named, next};
use crate::wallets::command::{ChunkDone, Done, ImportLine, LedgerChunk};
use tally_rules::Rejection;
use tally_rules::ledger::{Currency, MemberId, TransferId, TransferKind, TransferRequest, Uuid, WalletKey};
use tally_store::Plan;

/// How many ids its lines may use: a new member that of its deposit as well.
pub(super) fn ids_of(chunk: &LedgerChunk) -> usize {
    chunk.rows.iter().map(|(_, line)| ids_of_line(line)).sum()
}

fn ids_of_line(line: &ImportLine) -> usize {
    match line {
        ImportLine::Member(..) => 2,
        ImportLine::Move(_) => 1,
    }
}

/// Everything its lines read.
pub(super) fn read(plan: &mut Plan, chunk: &LedgerChunk, ids: &[Uuid], home: Currency) {
    plan.imports.push(chunk.key.clone());
    plan.ledger.handles.extend(chunk.taken.iter().cloned());
    let mut ids = ids;
    for (_, line) in &chunk.rows {
        let (own, rest) = ids.split_at(ids_of_line(line));
        ids = rest;
        match line {
            ImportLine::Member(new, _) => {
                let member = MemberId(own[0]);
                plan.ledger.handles.extend(named(new, member).handles());
                plan.ledger.wallets.push(WalletKey { member, currency: home });
            }
            ImportLine::Move(order) => plan.ledger.wallets.extend(order.wallets(home)),
        }
    }
}

impl State<'_> {
    pub(super) fn import(&mut self, chunk: &LedgerChunk, ids: Ids<'_, '_>) -> Decision {
        // Whatever comes of it, what follows in the batch has ids of its own.
        let own: Vec<Uuid> = ids.by_ref().take(ids_of(chunk)).copied().collect();
        let mut progress = self.imports.get(&chunk.key).copied().unwrap_or_default();
        let ends = chunk.last && !progress.finished;
        if chunk.lines_after <= progress.lines && !ends {
            return Ok(Done::Imported(ChunkDone { progress, refused: Vec::new(), replayed: true }));
        }
        if progress.finished {
            return Err(Rejection::ImportRepeated);
        }
        if chunk.lines_before != progress.lines {
            return Err(Rejection::ImportOutOfOrder(progress.lines));
        }
        if self.is_free_since(&chunk.taken) {
            return Ok(Done::Stale);
        }
        let (mut ids, mut refused) = (own.iter(), Vec::new());
        for (number, line) in &chunk.rows {
            match self.line(line, &mut ids) {
                Ok(()) => progress.taken += 1,
                Err(rejection) => refused.push((*number, rejection)),
            }
        }
        progress.lines = chunk.lines_after;
        progress.refused += refused.len() as u64 + chunk.refused;
        progress.finished = chunk.last;
        self.imports.set(&chunk.key, Some(progress));
        Ok(Done::Imported(ChunkDone { progress, refused, replayed: false }))
    }

    fn line(&mut self, line: &ImportLine, ids: Ids<'_, '_>) -> Result<(), Rejection> {
        match line {
            ImportLine::Member(new, deposit) => {
                let id = MemberId(*ids.as_slice().first().expect("as many ids as the lines may use"));
                let made = self.create(new, &[], ids);
                let transfer = TransferId(next(ids));
                made?;
                let Some(amount) = *deposit else { return Ok(()) };
                let (what, currency) = (TransferKind::Deposit { to: id }, self.home);
                let order = TransferRequest { what, currency, amount, reference: None };
                // Its wallet is new and empty, so nothing can be against it.
                self.book.post(transfer, &order, self.now).map(drop)
            }
            ImportLine::Move(order) => {
                let transfer = TransferId(next(ids));
                self.book.post(transfer, order, self.now).map(drop)
            }
        }
    }
}
