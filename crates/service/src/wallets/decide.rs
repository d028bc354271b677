//! A batch of the ledger in memory: every request applied in turn to what was loaded, each wallet written once.
//!
//! Pure: what was loaded, ids and the time are arguments, so a batch can be decided again after a conflict.

mod contests;
mod import;
mod payments;
mod series;
#[cfg(test)]
mod tests;

use super::LedgerSettings;
use super::command::{
    ChangeMember, CloseMember, Done, EndHold, Held, Moved, NewHold, NewMove, NewPayment, Request,
};
use super::decide_members::named;
use crate::keys::seen_before;
use std::slice;
use tally_lanes::{WorkingSet, keys_to_load};
use tally_rules::contest::{Application, ContestId, Record, SeriesRecord};
use tally_rules::idempotency::{IdempotencyKey, KeyCheck, RequestKey, Stored};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::pin::PinRule;
use tally_rules::ledger::transfer_request::{LedgerWrites, wallets_of};
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{Currency, HoldId, Member, MemberId, TransferId, Uuid, WalletKey};
use tally_rules::outcome::Outcome;
use tally_rules::period::Payment;
use tally_rules::{Micros, Rejection};
use tally_store::{
    BoardChange, Changes, ContestChanges, EntrantKey, ImportKey, ImportRow, LedgerChanges, Loaded, PartKey,
    Plan, ShardSet,
};

/// The answer to one request.
pub(super) type Decision = Result<Done, Rejection>;

/// The shard that has all members and money.
const FIRST: usize = 0;

/// How many ids a request may use.
pub(super) fn ids_of(request: &Request) -> usize {
    match request {
        Request::Chain(moves) => moves.len(),
        Request::Hold(_) | Request::End(_) | Request::Create(..) | Request::Pay(_) => 1,
        Request::Expire(_) | Request::Close(_) | Request::Change(_) => 0,
        Request::Import(chunk) => import::ids_of(chunk),
        Request::Contest(order) => order.ids(),
        Request::Series(order) => series::ids(order),
        Request::Payment(order) => payments::ids(order),
    }
}

/// Everything a batch reads; `ids` are those of its requests, one after the other.
pub(super) fn read(batch: &[Request], ids: &[Uuid], settings: &LedgerSettings) -> Plan {
    let mut plan = Plan { shards: ShardSet::of(FIRST), ..Plan::default() };
    let home = settings.currencies.home();
    let mut ids = ids.iter();
    for request in batch {
        let ids: Vec<Uuid> = ids.by_ref().take(ids_of(request)).copied().collect();
        plan.requests.extend(identities(request).map(|one| one.key.clone()));
        let ledger = &mut plan.ledger;
        match request {
            Request::Chain(moves) => {
                ledger.wallets.extend(moves.iter().flat_map(|one| one.order.wallets(home)));
            }
            Request::Hold(new) => {
                ledger.wallets.extend(wallets_of([Some(new.wallet.member), None], new.wallet.currency, home));
            }
            Request::End(EndHold { hold, wallet, ending, .. }) => {
                let to = match ending {
                    Ending::Capture { to, .. } => *to,
                    Ending::Void => None,
                };
                ledger.holds.push(*hold);
                ledger.wallets.push(*wallet);
                ledger.wallets.extend(wallets_of([to, None], wallet.currency, home));
            }
            Request::Expire(due) => {
                ledger.holds.extend(due.iter().map(|(hold, _)| *hold));
                ledger.wallets.extend(due.iter().map(|(_, wallet)| *wallet));
            }
            Request::Create(new, _) => {
                let id = MemberId(ids[0]);
                ledger.handles.extend(named(new, id).handles());
                ledger.wallets.push(WalletKey { member: id, currency: home });
            }
            Request::Import(chunk) => import::read(&mut plan, chunk, &ids, home),
            Request::Contest(order) => contests::read(&mut plan, order, settings),
            Request::Series(order) => series::read(&mut plan, order),
            Request::Payment(order) => payments::read(&mut plan, order, home),
            Request::Close(CloseMember { member, handles, .. }) => {
                let key = |currency| WalletKey { member: *member, currency };
                ledger.members.push(*member);
                ledger.handles.extend(handles.iter().cloned());
                ledger.wallets.extend(settings.currencies.all().map(key));
            }
            Request::Change(ChangeMember { member, handles, .. }) => {
                ledger.members.push(*member);
                ledger.handles.extend(handles.iter().cloned());
            }
            Request::Pay(NewPayment { from, to, phone, currency, .. }) => {
                ledger.members.push(*from);
                ledger.handles.push(Handle::Phone(phone.clone()));
                ledger.wallets.extend(wallets_of([Some(*from), *to], *currency, home));
            }
        }
    }
    plan.requests = keys_to_load(std::mem::take(&mut plan.requests));
    plan.imports = keys_to_load(std::mem::take(&mut plan.imports));
    plan.boards = keys_to_load(std::mem::take(&mut plan.boards));
    plan.board_names = keys_to_load(std::mem::take(&mut plan.board_names));
    let ledger = &mut plan.ledger;
    ledger.handles = keys_to_load(std::mem::take(&mut ledger.handles));
    ledger.members = keys_to_load(std::mem::take(&mut ledger.members));
    ledger.wallets = keys_to_load(std::mem::take(&mut ledger.wallets));
    ledger.holds = keys_to_load(std::mem::take(&mut ledger.holds));
    let contests = &mut ledger.contests;
    contests.contests = keys_to_load(std::mem::take(&mut contests.contests));
    contests.applications = keys_to_load(std::mem::take(&mut contests.applications));
    contests.series = keys_to_load(std::mem::take(&mut contests.series));
    contests.payments = keys_to_load(std::mem::take(&mut contests.payments));
    plan
}

fn identities(request: &Request) -> impl Iterator<Item = &IdempotencyKey> {
    let (moves, one): (&[NewMove], _) = match request {
        Request::Chain(moves) => (moves, None),
        Request::Hold(new) => (&[], new.identity.as_ref()),
        Request::End(end) => (&[], end.identity.as_ref()),
        Request::Create(new, _) => (&[], new.identity.as_ref()),
        Request::Close(close) => (&[], close.identity.as_ref()),
        Request::Change(change) => (&[], change.identity.as_ref()),
        Request::Pay(pay) => (&[], pay.identity.as_ref()),
        Request::Series(order) => (&[], order.identity.as_ref()),
        // Contests name theirs where they read.
        Request::Expire(_) | Request::Import(_) | Request::Contest(_) | Request::Payment(_) => (&[], None),
    };
    moves.iter().filter_map(|one| one.identity.as_ref()).chain(one)
}

/// Applies a batch to what its plan loaded.
pub(super) fn decide(
    batch: &[Request],
    ids: &[Uuid],
    (plan, loaded): (&Plan, &Loaded),
    settings: &LedgerSettings,
    (now, keep_micros): (Micros, i64),
) -> (Changes, Vec<Decision>) {
    let mut state = State::new(plan, loaded, settings, now, keep_micros);
    let mut ids = ids.iter();
    let decisions = batch.iter().map(|request| match request {
        Request::Chain(moves) => Ok(Done::Chain(state.chain(moves, &mut ids))),
        Request::Hold(new) => state.hold(new, &mut ids),
        Request::End(end) => state.end(end, &mut ids),
        Request::Expire(due) => {
            let ended = due.iter().filter(|(hold, _)| state.book.expire(*hold, now).is_some());
            Ok(Done::Expired(ended.count()))
        }
        Request::Create(new, taken) => state.create(new, taken.as_slice(), &mut ids),
        Request::Close(close) => state.close(close),
        Request::Change(change) => state.change(change),
        Request::Pay(pay) => state.pay(pay, &mut ids),
        Request::Import(chunk) => state.import(chunk, &mut ids),
        Request::Contest(order) => state.contest(order, settings, &mut ids),
        Request::Series(order) => state.one_series(order, &mut ids),
        Request::Payment(order) => state.payment(order, &mut ids),
    });
    let decisions = decisions.collect();
    (state.into_changes(), decisions)
}

pub(super) type Ids<'a, 'i> = &'a mut slice::Iter<'i, Uuid>;

pub(super) fn next(ids: Ids<'_, '_>) -> Uuid {
    *ids.next().expect("as many ids as the requests may use")
}

/// What a batch knows and has done so far.
pub(super) struct State<'a> {
    pub(super) now: Micros,
    keep_micros: i64,
    pub(super) pin: PinRule,
    /// What new members get their deposit in.
    home: Currency,
    pub(super) book: LedgerWorkingSet<'a>,
    requests: WorkingSet<RequestKey, Stored>,
    pub(super) handles: WorkingSet<Handle, MemberId>,
    pub(super) members: WorkingSet<MemberId, Member>,
    imports: WorkingSet<ImportKey, ImportRow>,
    contests: WorkingSet<ContestId, Record>,
    applications: WorkingSet<EntrantKey, Application>,
    series: WorkingSet<ContestId, SeriesRecord>,
    payments: WorkingSet<PartKey, Payment>,
    added: contests::Added,
}

impl<'a> State<'a> {
    fn new(
        plan: &Plan,
        loaded: &Loaded,
        settings: &'a LedgerSettings,
        now: Micros,
        keep_micros: i64,
    ) -> Self {
        let mut state = Self {
            now,
            keep_micros,
            home: settings.currencies.home(),
            pin: settings.pin,
            book: LedgerWorkingSet::new(&settings.currencies, &settings.limits),
            requests: WorkingSet::new(),
            handles: WorkingSet::new(),
            members: WorkingSet::new(),
            imports: WorkingSet::new(),
            contests: WorkingSet::new(),
            applications: WorkingSet::new(),
            series: WorkingSet::new(),
            payments: WorkingSet::new(),
            added: contests::Added { next_board: loaded.next_board, ..contests::Added::default() },
        };
        for (key, row) in plan.imports.iter().zip(&loaded.imports) {
            state.imports.load(key.clone(), *row);
        }
        for (key, stored) in plan.requests.iter().zip(&loaded.requests) {
            state.requests.load(key.clone(), stored.clone());
        }
        let (plan, loaded) = (&plan.ledger, &loaded.ledger);
        for (handle, member) in plan.handles.iter().zip(&loaded.handles) {
            state.handles.load(handle.clone(), *member);
        }
        for (id, member) in plan.members.iter().zip(&loaded.members) {
            state.members.load(*id, member.clone());
        }
        for (key, wallet) in plan.wallets.iter().zip(&loaded.wallets) {
            state.book.load_wallet(*key, *wallet);
        }
        for (id, hold) in plan.holds.iter().zip(&loaded.holds) {
            state.book.load_hold(*id, *hold);
        }
        let (plan, loaded) = (&plan.contests, &loaded.contests);
        for (id, record) in plan.contests.iter().zip(&loaded.contests) {
            state.contests.load(id.clone(), record.clone());
        }
        for (key, application) in plan.applications.iter().zip(&loaded.applications) {
            state.applications.load(key.clone(), *application);
        }
        for (id, record) in plan.series.iter().zip(&loaded.series) {
            state.series.load(id.clone(), record.clone());
        }
        for (key, payment) in plan.payments.iter().zip(&loaded.payments) {
            state.payments.load(*key, payment.clone());
        }
        state
    }

    /// All of it, or nothing: then the first that was refused says why, and the others that it was not they.
    fn chain(&mut self, moves: &[NewMove], ids: Ids<'_, '_>) -> Vec<Result<Moved, Rejection>> {
        let mark = self.book.savepoint();
        let mut before: Vec<(RequestKey, Option<Stored>)> = Vec::new();
        let mut refused = None;
        let mut done = Vec::with_capacity(moves.len());
        for (place, one) in moves.iter().enumerate() {
            let id = TransferId(next(ids));
            if refused.is_some() {
                continue;
            }
            match self.one(one, id) {
                Ok(moved) => {
                    if let (Some(identity), Moved::Posted(posted)) = (&one.identity, &moved) {
                        before.push((identity.key.clone(), self.requests.get(&identity.key).cloned()));
                        self.remember(Some(identity), Outcome::Posted(posted.key));
                    }
                    done.push(moved);
                }
                Err(rejection) => refused = Some((place, rejection)),
            }
        }
        let Some((guilty, rejection)) = refused else { return done.into_iter().map(Ok).collect() };
        self.book.roll_back(mark);
        for (key, stored) in before.into_iter().rev() {
            self.requests.set(&key, stored);
        }
        let others = |place| if place == guilty { rejection.clone() } else { Rejection::LinkedFailed };
        (0..moves.len()).map(|place| Err(others(place))).collect()
    }

    fn one(&mut self, one: &NewMove, id: TransferId) -> Result<Moved, Rejection> {
        if let Some(Outcome::Posted(key)) = self.replay(one.identity.as_ref())? {
            return Ok(Moved::Replayed(key));
        }
        self.book.post(id, &one.order, self.now).map(Moved::Posted)
    }

    fn hold(&mut self, new: &NewHold, ids: Ids<'_, '_>) -> Decision {
        let id = HoldId(next(ids));
        if let Some(Outcome::HoldPlaced(first)) = self.replay(new.identity.as_ref())? {
            return Ok(Done::Hold(Held::Replayed(first)));
        }
        let hold = self.book.place(id, new.wallet, new.amount, new.expires_at, self.now)?;
        self.remember(new.identity.as_ref(), Outcome::HoldPlaced(id));
        Ok(Done::Hold(Held::Now(id, hold)))
    }

    fn end(&mut self, end: &EndHold, ids: Ids<'_, '_>) -> Decision {
        let transfer = TransferId(next(ids));
        if let Some(Outcome::HoldEnded(first)) = self.replay(end.identity.as_ref())? {
            return Ok(Done::Hold(Held::Replayed(first)));
        }
        let hold = self.book.end(end.hold, end.ending, transfer, self.now)?;
        self.remember(end.identity.as_ref(), Outcome::HoldEnded(end.hold));
        Ok(Done::Hold(Held::Now(end.hold, hold)))
    }

    pub(super) fn replay(&self, identity: Option<&IdempotencyKey>) -> Result<Option<Outcome>, Rejection> {
        let stored = identity.and_then(|one| self.requests.get(&one.key));
        match seen_before(identity, stored, self.now, self.keep_micros)? {
            KeyCheck::Replay(outcome) => Ok(Some(*outcome)),
            KeyCheck::New => Ok(None),
        }
    }

    pub(super) fn remember(&mut self, identity: Option<&IdempotencyKey>, outcome: Outcome) {
        if let Some(one) = identity {
            let stored = Stored { fingerprint: one.fingerprint, at: self.now, outcome };
            self.requests.set(&one.key, Some(stored));
        }
    }

    fn into_changes(self) -> Changes {
        fn there<K, V>(rows: Vec<(K, Option<V>)>) -> Vec<(K, V)> {
            rows.into_iter().map(|(key, row)| (key, row.expect("nothing is removed here"))).collect()
        }
        let LedgerWrites { wallets, transfers, entries, holds, totals } = self.book.into_writes();
        let (handles, members) = (self.handles.into_writes(), there(self.members.into_writes()));
        let totals = totals.into_rows();
        let mut added = self.added;
        added.members.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        added.boards.sort_unstable_by_key(BoardChange::no);
        let contests = ContestChanges {
            contests: there(self.contests.into_writes()),
            applications: self.applications.into_writes(),
            members: added.members,
            payouts: added.payouts.into_iter().collect(),
            series: self.series.into_writes(),
            payments: there(self.payments.into_writes()),
        };
        Changes {
            requests: there(self.requests.into_writes()),
            imports: there(self.imports.into_writes()),
            ledger: LedgerChanges {
                handles,
                members,
                wallets,
                holds,
                transfers,
                entries,
                totals,
                contests,
                events: added.events,
            },
            boards: added.boards,
            ..Changes::default()
        }
    }
}
