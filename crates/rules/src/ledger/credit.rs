//! Promotional credit: money of a wallet that expires, and that is spent before other money.
//!
//! Credit is a part of the balance. A hold reserves credit before other money. At its instant credit lapses and cannot be spent
//! any more, except what holds reserve: that part is `covered` until they end. A background step takes what has lapsed out of the
//! wallet. `covered <= held`, and all of it is at most the balance.
//!
//! Not here: the wallet, and which transfers spend credit (`working_set`).

use super::money::Amount;
use crate::instant::Micros;
use crate::rejection::{Limit, Rejection};

/// The most open credits of a wallet. Those that expire at one instant are one.
pub const CREDITS_MAX: usize = 16;

/// Credit that expires at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// When it expires.
    pub expires_at: Micros,
    /// What is left of it.
    pub left: i64,
}

/// The credit of a wallet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credits {
    /// Expired: to be taken out of the wallet.
    pub lapsed: i64,
    /// Expired, and reserved by open holds.
    pub covered: i64,
    /// Not expired, first to expire first.
    pub open: Vec<Credit>,
}

impl Credits {
    /// All of it.
    pub fn sum(&self) -> i64 {
        self.lapsed + self.covered + self.unexpired()
    }

    /// What has not expired.
    pub fn unexpired(&self) -> i64 {
        self.open.iter().map(|credit| credit.left).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lapsed == 0 && self.covered == 0 && self.open.is_empty()
    }

    /// When some of it is to be taken out of the wallet, if any is: at once what has lapsed.
    pub fn due(&self) -> Option<Micros> {
        if self.lapsed > 0 { Some(Micros(0)) } else { self.open.first().map(|credit| credit.expires_at) }
    }

    /// Adds credit.
    pub(super) fn add(&mut self, amount: Amount, expires_at: Micros) -> Result<(), Rejection> {
        match self.open.binary_search_by_key(&expires_at, |credit| credit.expires_at) {
            Ok(at) => self.open[at].left += amount.units(),
            Err(_) if self.open.len() == CREDITS_MAX => {
                return Err(Rejection::LimitExceeded(Limit::Credits));
            }
            Err(at) => self.open.insert(at, Credit { expires_at, left: amount.units() }),
        }
        Ok(())
    }

    /// Expires what is due, of a wallet that holds this much. What holds do not reserve lapses.
    pub(super) fn settle(&mut self, held: i64, now: Micros) {
        let due = self.open.partition_point(|credit| credit.expires_at <= now);
        self.covered += self.open.drain(..due).map(|credit| credit.left).sum::<i64>();
        let lapsed = (self.covered - held).max(0);
        self.covered -= lapsed;
        self.lapsed += lapsed;
    }

    /// Spends up to this much, first to expire first.
    pub(super) fn spend(&mut self, mut units: i64) {
        for credit in &mut self.open {
            let part = credit.left.min(units);
            (credit.left, units) = (credit.left - part, units - part);
        }
        self.open.retain(|credit| credit.left > 0);
    }

    /// Spends up to this much of what a hold reserved: what has expired first.
    pub(super) fn capture(&mut self, units: i64) {
        let part = self.covered.min(units);
        self.covered -= part;
        self.spend(units - part);
    }
}
