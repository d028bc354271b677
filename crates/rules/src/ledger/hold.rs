//! A hold: reserved money. It raises the held amount of a wallet, moves nothing, and ends once.
//!
//! A hold is captured in part or whole (the rest is released), voided, or expires. Repeating the same ending returns the hold
//! unchanged; any other is refused. Not here: the wallet.

use super::id::{MemberId, TransferId};
use super::money::Amount;
use super::wallet::WalletKey;
use crate::actor::Origin;
use crate::clock::DecisionTime;
use crate::instant::Micros;
use crate::named;
use crate::rejection::Rejection;

/// Reserved money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The wallet.
    pub wallet: WalletKey,
    /// The amount.
    pub amount: i64,
    /// When it expires.
    pub expires_at: Option<Micros>,
    /// Its actor and its reason.
    pub origin: Origin,
    /// How and when it ended.
    pub end: Option<(HoldEnd, Micros)>,
    /// The actor and the reason of its end.
    pub ended_by: Origin,
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldEnd {
    /// Captured, in part or whole.
    Captured {
        /// The captured amount.
        amount: i64,
        /// The recipient; `None` is the account `FEES`.
        to: Option<MemberId>,
        /// The transfer.
        transfer: TransferId,
    },
    /// Voided.
    Voided,
    /// Expired.
    Expired,
}

named! {
    /// Whether and how a hold has ended.
    pub enum HoldState { /// It has not.
        Open = "open", /// Captured, in part or whole.
        Captured = "captured", /// Voided.
        Voided = "voided", /// Expired.
        Expired = "expired" }
}

impl HoldState {
    /// The state of a hold with this end.
    pub fn of(end: Option<HoldEnd>) -> Self {
        match end {
            None => Self::Open,
            Some(HoldEnd::Captured { .. }) => Self::Captured,
            Some(HoldEnd::Voided) => Self::Voided,
            Some(HoldEnd::Expired) => Self::Expired,
        }
    }
}

/// The end of a hold that a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Capture.
    Capture {
        /// The amount. The default is the whole hold.
        amount: Option<Amount>,
        /// The recipient; `None` is the account `FEES`.
        to: Option<MemberId>,
    },
    /// Void.
    Void,
}

/// What to do for an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldDecision {
    /// Nothing: the hold already ended this way.
    AsItStands,
    /// Capture this amount.
    Capture(Amount),
    /// Void the hold.
    Void,
}

impl Hold {
    /// Refuses a new hold that expires in the past.
    pub fn check_expiry(expires_at: Option<Micros>, now: Micros) -> Result<(), Rejection> {
        match expires_at {
            Some(at) if at <= now => Err(Rejection::HoldExpiryInPast { at, now }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Whether it is past its expiry and has not ended.
    pub fn is_due(&self, now: Micros) -> bool {
        self.end.is_none() && self.expires_at.is_some_and(|at| at <= now)
    }

    /// Its end as it is at `time`: a hold that is due has expired before the store has that, but not by an untrusted clock.
    pub fn end_at(&self, time: DecisionTime) -> Option<HoldEnd> {
        let due = (time.is_trusted && self.is_due(time.now)).then_some(HoldEnd::Expired);
        self.end.map(|(end, _)| end).or(due)
    }

    /// Judges an ending. A hold that is due only by an untrusted clock can still be captured and voided: nothing has released
    /// its money.
    pub fn decide_end(&self, ending: Ending, time: DecisionTime) -> Result<HoldDecision, Rejection> {
        let whole = || Amount::new(self.amount).expect("a hold is of an amount");
        match (self.end, ending) {
            (Some((HoldEnd::Expired, _)), _) => Err(Rejection::HoldExpired),
            (Some((HoldEnd::Voided, _)), Ending::Void) => Ok(HoldDecision::AsItStands),
            (
                Some((HoldEnd::Captured { amount, to, .. }, _)),
                Ending::Capture { amount: wanted, to: target },
            ) if to == target && amount == wanted.unwrap_or_else(whole).units() => {
                Ok(HoldDecision::AsItStands)
            }
            (Some((end, at)), _) => Err(Rejection::HoldResolved(HoldState::of(Some(end)), at)),
            (None, _) if time.is_trusted && self.is_due(time.now) => Err(Rejection::HoldExpired),
            (None, Ending::Void) => Ok(HoldDecision::Void),
            (None, Ending::Capture { amount, .. }) => {
                let amount = amount.unwrap_or_else(whole);
                if amount.units() > self.amount {
                    return Err(Rejection::ExceedsHold { amount: amount.units(), held: self.amount });
                }
                Ok(HoldDecision::Capture(amount))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::Uuid;
    use super::super::money::Currency;
    use super::*;

    #[test]
    fn every_pair_of_an_end_and_an_ending() {
        let member = |byte| MemberId(Uuid([byte; 16]));
        let units = |units| Amount::new(units).unwrap();
        let hold = |end: Option<HoldEnd>| Hold {
            wallet: WalletKey { member: member(1), currency: Currency::parse("KRW").unwrap() },
            amount: 50,
            expires_at: Some(Micros(100)),
            origin: Origin::default(),
            end: end.map(|end| (end, Micros(9))),
            ended_by: Origin::default(),
        };
        let captured = |amount| HoldEnd::Captured { amount, to: None, transfer: TransferId(Uuid([3; 16])) };
        let capture = |amount: Option<i64>, to| Ending::Capture { amount: amount.map(units), to };
        let (all, part, other) =
            (capture(None, None), capture(Some(20), None), capture(None, Some(member(2))));
        let exceeds = || Err(Rejection::ExceedsHold { amount: 51, held: 50 });
        let resolved = |state| Err(Rejection::HoldResolved(state, Micros(9)));
        let rows = [
            // (how it ended, the requested ending, when, the verdict)
            (None, all, 99, Ok(HoldDecision::Capture(units(50)))),
            (None, part, 99, Ok(HoldDecision::Capture(units(20)))),
            (None, capture(Some(51), None), 99, exceeds()),
            (None, Ending::Void, 99, Ok(HoldDecision::Void)),
            (None, all, 100, Err(Rejection::HoldExpired)),
            (None, Ending::Void, 100, Err(Rejection::HoldExpired)),
            (Some(captured(50)), all, 999, Ok(HoldDecision::AsItStands)),
            (Some(captured(50)), capture(Some(50), None), 9, Ok(HoldDecision::AsItStands)),
            (Some(captured(20)), part, 9, Ok(HoldDecision::AsItStands)),
            (Some(captured(20)), all, 9, resolved(HoldState::Captured)),
            (Some(captured(50)), other, 9, resolved(HoldState::Captured)),
            (Some(captured(50)), Ending::Void, 9, resolved(HoldState::Captured)),
            (Some(HoldEnd::Voided), Ending::Void, 999, Ok(HoldDecision::AsItStands)),
            (Some(HoldEnd::Voided), all, 9, resolved(HoldState::Voided)),
            (Some(HoldEnd::Expired), all, 9, Err(Rejection::HoldExpired)),
            (Some(HoldEnd::Expired), Ending::Void, 9, Err(Rejection::HoldExpired)),
        ];
        for (end, ending, now, wanted) in rows {
            let time = DecisionTime::trusted(Micros(now));
            assert_eq!(hold(end).decide_end(ending, time), wanted, "{end:?} {ending:?} at {now}");
        }
        let doubtful = DecisionTime { now: Micros(999), is_trusted: false };
        let rows = [
            // (how it ended, the ending wanted, the verdict while the clock is untrusted)
            (None, part, Ok(HoldDecision::Capture(units(20)))),
            (None, capture(Some(51), None), exceeds()),
            (None, Ending::Void, Ok(HoldDecision::Void)),
            (Some(HoldEnd::Expired), Ending::Void, Err(Rejection::HoldExpired)),
            (Some(HoldEnd::Voided), all, resolved(HoldState::Voided)),
        ];
        for (end, ending, wanted) in rows {
            assert_eq!(hold(end).decide_end(ending, doubtful), wanted, "{end:?} {ending:?} in doubt");
        }
    }

    #[test]
    fn a_hold_that_never_was_open_is_refused() {
        let past = Rejection::HoldExpiryInPast { at: Micros(10), now: Micros(10) };
        assert_eq!(Hold::check_expiry(Some(Micros(10)), Micros(10)), Err(past));
        assert_eq!(Hold::check_expiry(Some(Micros(11)), Micros(10)), Ok(()));
        assert_eq!(Hold::check_expiry(None, Micros(10)), Ok(()));
    }
}
