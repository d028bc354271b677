//! Making a hold, and ending it by a capture or a void. Not here: the rules (`tally_rules::ledger::hold`), and holds that expire
//! by the clock (`expiry`).

use super::LedgerSettings;
use super::request::{LedgerRequest, Needs};
use super::state::BatchState;
use crate::failure::{Failure, blocking};
use crate::outcomes;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::transfer_request::wallets_of;
use tally_rules::ledger::{Amount, Hold, HoldId, TransferId, Uuid, WalletKey};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, Origin, Rejection};
use tally_store::ReadSet;

/// A hold to be made.
#[derive(Clone, Debug)]
pub struct NewHold {
    /// The wallet whose money is held.
    pub wallet: WalletKey,
    /// How much money is held.
    pub amount: Amount,
    /// When it expires, if it does.
    pub expires_at: Option<Micros>,
    /// Its actor, its reason and its metadata.
    pub origin: Origin,
    /// The idempotency key with the fingerprint of the request.
    pub idempotency: Option<IdempotencyKey>,
}

/// A capture or a void. The read set needs the wallet of the hold. So the caller looks it up first: it never changes.
struct EndHold {
    hold: HoldId,
    wallet: WalletKey,
    ending: Ending,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
}

/// The reply of the lane to a request that makes or ends a hold.
pub(crate) enum Held {
    /// The request was done now, and left the hold like this.
    Now(HoldId, Box<Hold>),
    /// The request is a retry, and was done before.
    Replayed(HoldId),
}

impl LedgerRequest for NewHold {
    type Answer = Held;

    fn needs(&self) -> Needs {
        let bytes = self.origin.metadata.as_ref().map_or(0, |text| text.len());
        Needs { ids: 1, bytes, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        outcomes::read(plan, self.idempotency.as_ref());
        let WalletKey { member, currency } = self.wallet;
        plan.ledger.wallets.extend(wallets_of([Some(member), None], currency, settings.currencies.home()));
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Held, Rejection> {
        let id = HoldId(ids[0]);
        if let Some(Outcome::HoldPlaced(first)) = state.outcomes.replay(self.idempotency.as_ref())? {
            return Ok(Held::Replayed(first));
        }
        let hold = state.book.place(id, self.wallet, self.amount, self.expires_at, state.time.now)?;
        state.outcomes.remember(self.idempotency.as_ref(), Outcome::HoldPlaced(id));
        Ok(Held::Now(id, Box::new(hold)))
    }
}

impl LedgerRequest for EndHold {
    type Answer = Held;

    fn needs(&self) -> Needs {
        Needs { ids: 1, ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], settings: &LedgerSettings) {
        outcomes::read(plan, self.idempotency.as_ref());
        let to = match self.ending {
            Ending::Capture { to, .. } => to,
            Ending::Void => None,
        };
        let home = settings.currencies.home();
        plan.ledger.holds.push(self.hold);
        plan.ledger.wallets.push(self.wallet);
        plan.ledger.wallets.extend(wallets_of([to, None], self.wallet.currency, home));
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Held, Rejection> {
        if let Some(Outcome::HoldEnded(first)) = state.outcomes.replay(self.idempotency.as_ref())? {
            return Ok(Held::Replayed(first));
        }
        let hold = state.book.end(self.hold, self.ending, TransferId(ids[0]), state.time)?;
        state.outcomes.remember(self.idempotency.as_ref(), Outcome::HoldEnded(self.hold));
        Ok(Held::Now(self.hold, Box::new(hold)))
    }
}

/// The reply to the caller: the hold as the request has left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldDone {
    /// The id of the hold.
    pub id: HoldId,
    /// The hold itself.
    pub hold: Hold,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
}

/// Makes a hold. The money stays in the wallet, and no other request can spend it.
pub async fn place(tally: &Tally, new: NewHold) -> Result<HoldDone, Failure> {
    let running = new.idempotency.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    let held = tally.ledger.ask(new, running.into_iter().collect()).await?;
    let mut done = hold_done(tally, held).await?;
    // A retry gets the first reply again, in which the hold was open, even if it has ended since.
    (done.hold.end, done.hold.ended_by) = (None, Origin::default());
    Ok(done)
}

/// Captures or voids a hold.
pub async fn end(
    tally: &Tally,
    id: HoldId,
    ending: Ending,
    origin: Origin,
    idempotency: Option<IdempotencyKey>,
) -> Result<HoldDone, Failure> {
    let running = idempotency.as_ref().map(|one| tally.begin(&one.key)).transpose()?;
    let hold = tally.named(find(tally, id).await, idempotency.as_ref()).await?;
    let request = EndHold { hold: id, wallet: hold.wallet, ending, origin, idempotency };
    let held = tally.ledger.ask(request, running.into_iter().collect()).await?;
    hold_done(tally, held).await
}

/// Reads a hold from the store.
pub async fn find(tally: &Tally, id: HoldId) -> Result<Hold, Failure> {
    let store = Arc::clone(&tally.store);
    let hold = blocking(move || Ok(store.ledger().hold(id)?)).await?;
    hold.ok_or(Failure::Rejected(Rejection::HoldNotFound))
}

async fn hold_done(tally: &Tally, held: Held) -> Result<HoldDone, Failure> {
    Ok(match held {
        Held::Now(id, hold) => HoldDone { id, hold: *hold, replayed: false },
        Held::Replayed(id) => HoldDone { id, hold: find(tally, id).await?, replayed: true },
    })
}
