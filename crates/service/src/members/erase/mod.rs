//! Erasing a member: its row keeps the id and a pseudonym, and the rows of money stay as they are.
//!
//! The first transaction closes the member, takes login, phone number, password and PIN from it, and writes the row of the audit
//! log. From then on nothing finds the person but its player's name, which stays reserved. [`steps`] erases the rows that name the
//! player or have words about the person, in bounded steps that may be repeated. The last one gives the player's name free. The
//! request does the first of them, and a background task ([`task`]) the rest, also after a crash. A running erasure is found by its
//! row of the audit log. A request that is repeated looks for such rows once more.
//!
//! Not here: what the row of the member becomes (`tally_rules::ledger::erasure`).

mod steps;
mod task;

pub(crate) use steps::{is_named, run};
pub(crate) use task::{finish_all, start};

use super::close::Leaving;
use super::{ATTEMPTS_MAX, change, find};
use crate::audit;
use crate::contests::entries;
use crate::failure::{Failure, Fault, blocking};
use crate::ledger::LedgerSettings;
use crate::ledger::request::LedgerRequest;
use crate::ledger::state::BatchState;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError};
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{Erasure, Member, MemberId, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::{Origin, Rejection};
use tally_store::ReadSet;

/// The first transaction.
struct BeginErasure(Leaving);

impl LedgerRequest for BeginErasure {
    /// Whether this repeats an earlier reply; `None` if the member has other handles by now.
    type Answer = Option<bool>;

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        self.0.read(plan, settings);
    }

    fn decide(&self, state: &mut BatchState<'_>, _ids: &[Uuid]) -> Result<Self::Answer, Rejection> {
        let before = match self.0.stored(state)? {
            Ok(member) => member,
            Err(reply) => return Ok(reply),
        };
        if before.erasure(self.0.member).is_none() {
            // Also if it was closed with money in its wallets.
            state.book.check_empty(self.0.member)?;
            state.book.close(self.0.member, false)?;
            self.begin(state, &before);
        }
        state.outcomes.remember(self.0.idempotency.as_ref(), Outcome::Removed);
        Ok(Some(false))
    }
}

impl BeginErasure {
    fn begin(&self, state: &mut BatchState<'_>, before: &Member) {
        let (id, now) = (self.0.member, state.time.now);
        let player = Handle::Player(before.player.clone());
        let owns_player = state.handles.get(&player).is_none_or(|holder| *holder == id);
        change::release_handles(state, id, before.names(id).iter());
        if owns_player {
            state.handles.set(&player, Some(id));
        }
        self.0.add_event(state, before);
        state.members.set(&id, Some(before.erase(id, owns_player, now)));
        state.added.audit.push(self.0.audited.row(AuditAction::MemberErased, id.0.to_string(), None));
    }
}

/// The last transaction: the player's name is free.
struct EndErasure {
    member: MemberId,
    player: Handle,
}

impl LedgerRequest for EndErasure {
    type Answer = ();

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], _settings: &LedgerSettings) {
        plan.ledger.members.push(self.member);
        plan.ledger.handles.push(self.player.clone());
    }

    fn decide(&self, state: &mut BatchState<'_>, _ids: &[Uuid]) -> Result<(), Rejection> {
        let before = state.members.get(&self.member).cloned().ok_or(Rejection::MemberNotFound)?;
        if before.erasure(self.member) == Some(Erasure::Running) {
            change::release_handles(state, self.member, std::iter::once(&self.player));
            state.members.set(&self.member, Some(before.erased(self.member)));
        }
        Ok(())
    }
}

/// Erases a member; one that is not closed is closed. Returns whether that repeats an earlier reply. Rows that name the person may
/// be left when it returns ([`Member::erasure`]); then a background task goes on.
pub async fn erase(
    tally: &Arc<Tally>,
    member: MemberId,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let audited = audit::begin(origin, tally.now())?;
    let tally = Arc::clone(tally);
    blocking(move || {
        let replayed = begin(&tally, member, &audited, idempotency.as_ref())?;
        if let Err(failure) = steps::first(&tally, member) {
            // The background task does it, or another server's.
            tracing::warn!(%failure, member = %member.0, "erase what names an erased member; it is tried again");
        }
        tally.tasks.erasures.wake();
        Ok(replayed)
    })
    .await
}

fn begin(
    tally: &Tally,
    member: MemberId,
    audited: &Audited,
    idempotency: Option<&IdempotencyKey>,
) -> Result<bool, Failure> {
    for _ in 0..ATTEMPTS_MAX {
        let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
        let before = find::by_id(tally, member)?;
        let _changing = tally.members.cache.changing(member);
        let holder = tally.store.ledger().member_of(&Handle::Player(before.player.clone()))?;
        let _alone = tally.contests.renaming.write().unwrap_or_else(PoisonError::into_inner);
        if before.erasure(member).is_none() && holder.is_none_or(|holder| holder == member) {
            entries::refuse(tally, std::slice::from_ref(&before.player))?;
        }
        let (handles, audited, idempotency) = (before.names(member), audited.clone(), idempotency.cloned());
        if let Some(replayed) =
            tally.ledger.ask_blocking(BeginErasure(Leaving { member, handles, audited, idempotency }))?
        {
            return Ok(replayed);
        }
    }
    Err(Fault::Overloaded.into())
}

fn end(tally: &Tally, member: MemberId, player: Handle) -> Result<(), Failure> {
    let _changing = tally.members.cache.changing(member);
    tally.ledger.ask_blocking(EndErasure { member, player })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::{NewMember, create};
    use crate::scores::submit::{NewScore, submit};
    use crate::secret::Secret;
    use crate::verify::{self, Listener};
    use crate::{Keys, Progress, Settings, boards};
    use std::time::Duration;
    use tally_rules::definition::BoardSpec;
    use tally_rules::ledger::member::Login;
    use tally_rules::ledger::pin::Attempts;
    use tally_rules::score::ScoreInput;
    use tally_rules::{BoardId, Micros, PlayerId};
    use tally_store::Store;
    use tally_store::sqlite::{Options, SqliteStore};

    fn start(path: &std::path::Path) -> Arc<Tally> {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, &Options::default()).unwrap());
        let (secret, settings, clock) = (Secret::new([1; 32]), Settings::default(), crate::clock::system());
        let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
        Tally::start(store, Arc::new(keys), clock, settings, &Progress::default()).unwrap()
    }

    fn new(login: &str) -> NewMember {
        let member = Member {
            login: Login::new(login).unwrap(),
            phone: None,
            player: PlayerId::new("ann").unwrap(),
            name: "Ann".into(),
            password: None,
            pin: None,
            attempts: Attempts::default(),
            tokens_from: Micros(0),
            closed_at: None,
        };
        NewMember { member, player_is_id: false, idempotency: None }
    }

    /// What `verify` finds, and how many members are being erased and are erased.
    fn verified(tally: &Tally) -> (Vec<String>, u64, u64) {
        let mut found = Vec::new();
        let listener = Listener {
            found: &mut |one| found.push(one.to_string()),
            read: &mut |_| (),
            proved: &mut |_, _| Ok(()),
        };
        let expected = verify::Expected::of(&*tally.store).unwrap();
        let mut snapshot = tally.store.ledger().snapshot().unwrap();
        let reconciled =
            verify::reconcile(&*tally.store, &mut *snapshot, (expected, tally.now(), None), listener)
                .unwrap();
        (found, reconciled.being_erased, reconciled.erased)
    }

    /// A crash after the first transaction: the name is not free before a later start has erased what is under it.
    #[test]
    fn a_start_goes_on_with_an_erasure_that_was_interrupted() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let tally = start(&path);
        // No step is done by this process.
        let held = tally.members.erasing.lock().unwrap();
        let id = runtime.block_on(create(&tally, new("ann"), &Origin::BACKGROUND)).unwrap().id;
        let board = BoardId::new("b").unwrap();
        boards::put(&tally, &board, &BoardSpec::default(), &Origin::BACKGROUND, None).unwrap();
        let (player, score) = (PlayerId::new("ann").unwrap(), ScoreInput::Int(1));
        let score = NewScore { board, player, score, subscore: None, at: None, idempotency: None };
        runtime.block_on(submit(&tally, score)).unwrap();
        let audited = audit::begin(Origin::BACKGROUND, tally.now()).unwrap();
        assert!(!begin(&tally, id, &audited, None).unwrap());
        let row = find::by_id(&tally, id).unwrap();
        assert_eq!((row.erasure(id), row.player.as_str()), (Some(Erasure::Running), "ann"));
        let taken = runtime.block_on(create(&tally, new("heir"), &Origin::BACKGROUND)).unwrap_err();
        assert!(matches!(taken, Failure::Rejected(Rejection::PlayerTaken(_))), "{taken}");
        assert_eq!(verified(&tally), (vec![], 1, 0));
        drop(held);
        tally.drain();
        drop(tally);
        let tally = start(&path);
        while find::by_id(&tally, id).unwrap().erasure(id) != Some(Erasure::Done) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(verified(&tally), (vec![], 0, 1));
        let heir = runtime.block_on(create(&tally, new("heir"), &Origin::BACKGROUND)).unwrap().id;
        let board = tally.boards.find(&BoardId::new("b").unwrap()).unwrap();
        assert_eq!(board.ranking.total(), 0, "it inherits no score");
        assert_ne!(heir, id);
        tally.drain();
    }

    /// `verify` reports the rows that an erasure would not leave.
    #[test]
    fn what_still_names_a_person_is_found() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let tally = start(&folder.path().join("t.db"));
        let id = runtime.block_on(create(&tally, new("ann"), &Origin::BACKGROUND)).unwrap().id;
        runtime.block_on(erase(&tally, id, Origin::BACKGROUND, None)).unwrap();
        while find::by_id(&tally, id).unwrap().erasure(id) != Some(Erasure::Done) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(verified(&tally), (vec![], 0, 1));
        let row = find::by_id(&tally, id).unwrap();
        for (field, member) in [
            ("player", Member { player: PlayerId::new("ann").unwrap(), ..row.clone() }),
            ("name", Member { name: "Ann".into(), ..row.clone() }),
            ("password", Member { password: Some("digest".into()), ..row.clone() }),
        ] {
            let mut ledger = tally_store::LedgerWriteSet::default();
            ledger.members.push((id, member));
            let changes = tally_store::WriteSet { ledger, ..tally_store::WriteSet::default() };
            tally.store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
            let (found, ..) = verified(&tally);
            assert!(found.len() == 1 && found[0].contains("members"), "{field}: {found:?}");
        }
        tally.drain();
    }
}
