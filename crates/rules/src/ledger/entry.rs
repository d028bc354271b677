//! The rows of a transfer: the transfer itself, and one entry in each wallet that it debits or credits.
//!
//! Both are immutable. An entry contains the balance after it, so a history is read without sums.

use super::account::Account;
use super::id::{MemberId, Side, TransferId, Uuid};
use super::money::Currency;
use super::wallet::WalletKey;
use crate::actor::Origin;
use crate::instant::Micros;
use crate::named;
use std::sync::Arc;

/// The longest reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 255;

/// The longest metadata of a transfer or a hold, in bytes of JSON.
pub const METADATA_BYTES_MAX: usize = 2_048;

/// Marks the stored number of a reversal.
const REVERSAL: u8 = 0x80;

named! {
    /// The kind of an entry, from the view of its wallet.
    pub enum EntryKind { /// From outside.
        Deposit = "deposit", /// To the outside.
        Withdrawal = "withdrawal", /// To another member.
        TransferOut = "transfer_out", /// From another member.
        TransferIn = "transfer_in", /// A captured hold.
        Capture = "capture", /// To the account `FEES`.
        Fee = "fee", /// From the account `PRIZES`.
        Prize = "prize", /// A refunded fee.
        Refund = "refund", /// Taken back by a reversal.
        ReversalOut = "reversal_out", /// Given back by a reversal.
        ReversalIn = "reversal_in", /// A prize of a pool, from the pool's wallet.
        PrizeOut = "prize_out", /// A refunded fee, from a pool's wallet.
        RefundOut = "refund_out", /// Promotional credit.
        Promotion = "promotion", /// Promotional credit that has expired.
        Expiry = "expiry" }
}

impl EntryKind {
    /// The side of its transfer.
    pub fn side(self) -> Side {
        match self {
            Self::Withdrawal | Self::TransferOut | Self::Capture | Self::Fee | Self::ReversalOut => Side::Out,
            Self::PrizeOut | Self::RefundOut | Self::Expiry => Side::Out,
            Self::Deposit | Self::TransferIn | Self::Prize | Self::Refund | Self::ReversalIn => Side::In,
            Self::Promotion => Side::In,
        }
    }

    /// The kind of a reversal, which debits a wallet or not.
    pub(super) fn of_reversal(debits: bool) -> Self {
        if debits { Self::ReversalOut } else { Self::ReversalIn }
    }

    /// The number that is stored.
    pub fn number(self) -> u8 {
        match self {
            Self::Deposit => 1,
            Self::Withdrawal => 2,
            Self::TransferOut => 3,
            Self::TransferIn => 4,
            Self::Capture => 5,
            Self::Fee => 6,
            Self::Prize => 7,
            Self::Refund => 8,
            Self::ReversalOut => 9,
            Self::ReversalIn => 10,
            Self::PrizeOut => 11,
            Self::RefundOut => 12,
            Self::Promotion => 13,
            Self::Expiry => 14,
        }
    }

    /// The kind of a stored number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.number() == number)
    }
}

/// The key of an entry: its wallet, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The wallet.
    pub wallet: WalletKey,
    /// From 1.
    pub sequence: u64,
}

/// One line of a wallet's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The transfer.
    pub transfer: TransferId,
    /// The kind.
    pub kind: EntryKind,
    /// The amount, always positive.
    pub amount: i64,
    /// The balance after it.
    pub after: i64,
    /// The member on the other side, if there is one.
    pub counterparty: Option<MemberId>,
    /// The caller's reference.
    pub reference: Option<Arc<str>>,
}

impl Entry {
    /// The id of the entry.
    pub fn id(&self) -> Uuid {
        self.transfer.entry(self.kind.side())
    }

    /// The balance before it.
    pub fn before(&self) -> i64 {
        self.after - self.change()
    }

    /// The change of the balance.
    pub fn change(&self) -> i64 {
        match self.kind.side() {
            Side::Out => -self.amount,
            Side::In => self.amount,
        }
    }

    /// When it happened.
    pub fn at(&self) -> Micros {
        self.transfer.0.at()
    }
}

/// A transfer: debit and credit of the same amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The kind of the debited wallet's entry, or of the credited one's if no wallet is debited.
    pub kind: EntryKind,
    /// The kind of the transfer that it reverses, if it is a reversal.
    pub reverses: Option<EntryKind>,
    /// The currency.
    pub currency: Currency,
    /// The amount.
    pub amount: i64,
    /// The debited wallet's member, and the number of its entry there.
    pub debit: Option<(MemberId, u64)>,
    /// The credited wallet's member, and the number of its entry there.
    pub credit: Option<(MemberId, u64)>,
    /// Its actor and its reason.
    pub origin: Origin,
}

impl Transfer {
    /// The number that is stored for its kind: a reversal has that of its original, with a mark.
    pub fn kind_number(&self) -> u8 {
        self.reverses.map_or(self.kind.number(), |original| REVERSAL | original.number())
    }

    /// The kind of a stored number, and the kind of the original if it is a reversal; `debits` says whether a wallet is debited.
    pub fn kind_of_number(number: u8, debits: bool) -> Option<(EntryKind, Option<EntryKind>)> {
        let kind = EntryKind::of_number(number & !REVERSAL)?;
        if matches!(kind, EntryKind::ReversalOut | EntryKind::ReversalIn) {
            return None;
        }
        Some(if number & REVERSAL == 0 { (kind, None) } else { (EntryKind::of_reversal(debits), Some(kind)) })
    }

    /// The accounts that are debited and credited. A reversal has those of its original, exchanged.
    pub fn accounts(&self) -> (Account, Account) {
        if let Some(kind) = self.reverses {
            let (debit, credit) = (self.credit, self.debit);
            let original = Self { kind, reverses: None, debit, credit, ..self.clone() };
            let (debit, credit) = original.accounts();
            return (credit, debit);
        }
        let debit = match (self.debit, self.kind) {
            (Some(_), _) => Account::BankPayable,
            (None, EntryKind::Prize) => Account::Prizes,
            (None, EntryKind::Refund) => Account::Fees,
            (None, EntryKind::Promotion) => Account::Promotions,
            (None, _) => Account::BankAsset,
        };
        let credit = match (self.credit, self.kind) {
            (Some(_), _) => Account::BankPayable,
            (None, EntryKind::Withdrawal) => Account::BankAsset,
            (None, EntryKind::Expiry) => Account::Promotions,
            (None, _) => Account::Fees,
        };
        (debit, credit)
    }

    /// The key, kind and counterparty of the entry on each side.
    pub fn sides(&self) -> [Option<(EntryKey, EntryKind, Option<MemberId>)>; 2] {
        let arriving = match (self.debit, self.reverses, self.kind) {
            (None, ..) => self.kind,
            (Some(_), None, EntryKind::PrizeOut) => EntryKind::Prize,
            (Some(_), None, EntryKind::RefundOut) => EntryKind::Refund,
            (Some(_), None, _) => EntryKind::TransferIn,
            (Some(_), Some(_), _) => EntryKind::ReversalIn,
        };
        let [out, into] = self.entries();
        let member = |side: Option<(MemberId, u64)>| side.map(|(member, _)| member);
        [
            out.map(|key| (key, self.kind, member(self.credit))),
            into.map(|key| (key, arriving, member(self.debit))),
        ]
    }

    /// The keys of its entries: debit, credit.
    pub fn entries(&self) -> [Option<EntryKey>; 2] {
        [self.debit, self.credit].map(|side| {
            let (member, sequence) = side?;
            Some(EntryKey { wallet: WalletKey { member, currency: self.currency }, sequence })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Account::{BankAsset, BankPayable, Fees, Prizes, Promotions};

    #[test]
    fn the_stored_numbers_are_pinned() {
        let numbers: Vec<u8> = EntryKind::ALL.iter().map(|one| one.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert!(EntryKind::ALL.iter().all(|one| EntryKind::of_number(one.number()) == Some(*one)));
        assert_eq!(EntryKind::of_number(15), None);
    }

    #[test]
    fn what_each_kind_debits_and_credits() {
        let member = Some((MemberId(Uuid([1; 16])), 1));
        let rows = [
            (EntryKind::Deposit, None, member, (BankAsset, BankPayable)),
            (EntryKind::Withdrawal, member, None, (BankPayable, BankAsset)),
            (EntryKind::TransferOut, member, member, (BankPayable, BankPayable)),
            (EntryKind::Capture, member, member, (BankPayable, BankPayable)),
            (EntryKind::Capture, member, None, (BankPayable, Fees)),
            (EntryKind::Fee, member, None, (BankPayable, Fees)),
            (EntryKind::Prize, None, member, (Prizes, BankPayable)),
            (EntryKind::Refund, None, member, (Fees, BankPayable)),
            (EntryKind::Promotion, None, member, (Promotions, BankPayable)),
            (EntryKind::Expiry, member, None, (BankPayable, Promotions)),
            // Of pools: their wallets are wallets.
            (EntryKind::Fee, member, member, (BankPayable, BankPayable)),
            (EntryKind::PrizeOut, member, member, (BankPayable, BankPayable)),
            (EntryKind::RefundOut, member, member, (BankPayable, BankPayable)),
        ];
        for (kind, debit, credit, wanted) in rows {
            let origin = Origin::default();
            let transfer =
                Transfer { kind, reverses: None, currency: krw(), amount: 1, debit, credit, origin };
            assert_eq!(transfer.accounts(), wanted, "{kind}");
            // Its reversal exchanges wallets and accounts.
            let kind_back = EntryKind::of_reversal(credit.is_some());
            let reverses = Some(kind);
            let back =
                Transfer { kind: kind_back, reverses, debit: credit, credit: debit, ..transfer.clone() };
            assert_eq!(back.accounts(), (wanted.1, wanted.0), "reversal of {kind}");
            for one in [transfer, back] {
                let read = Transfer::kind_of_number(one.kind_number(), one.debit.is_some());
                assert_eq!(read, Some((one.kind, one.reverses)), "{kind}");
            }
        }
    }

    fn krw() -> Currency {
        Currency::parse("KRW").unwrap()
    }

    #[test]
    fn the_entries_of_a_reversal_say_that_they_are_of_one() {
        let (ann, bob) = (MemberId(Uuid([1; 16])), MemberId(Uuid([2; 16])));
        let kinds = |debit: Option<MemberId>, credit: Option<MemberId>| {
            let [debit, credit] = [debit, credit].map(|member| member.map(|member| (member, 1)));
            let (kind, reverses) = (EntryKind::of_reversal(debit.is_some()), Some(EntryKind::Capture));
            let origin = Origin::default();
            let back = Transfer { kind, reverses, currency: krw(), amount: 1, debit, credit, origin };
            back.sides().map(|side| side.map(|(_, kind, other)| (kind, other)))
        };
        let (out, into) = (EntryKind::ReversalOut, EntryKind::ReversalIn);
        assert_eq!(kinds(Some(ann), Some(bob)), [Some((out, Some(bob))), Some((into, Some(ann)))]);
        assert_eq!(kinds(Some(ann), None), [Some((out, None)), None]);
        assert_eq!(kinds(None, Some(bob)), [None, Some((into, None))]);
        assert_eq!((out.side(), into.side()), (Side::Out, Side::In));
    }

    #[test]
    fn what_a_pool_pays_arrives_as_what_it_is() {
        let [pool, ann] = [1, 2].map(|n| Some((MemberId(Uuid([n; 16])), 1)));
        let origin = Origin::default();
        let of = |kind| Transfer {
            kind,
            reverses: None,
            currency: krw(),
            amount: 1,
            debit: pool,
            credit: ann,
            origin: origin.clone(),
        };
        let kinds = |kind| of(kind).sides().map(|side| side.map(|(_, kind, _)| kind));
        assert_eq!(kinds(EntryKind::PrizeOut), [Some(EntryKind::PrizeOut), Some(EntryKind::Prize)]);
        assert_eq!(kinds(EntryKind::RefundOut), [Some(EntryKind::RefundOut), Some(EntryKind::Refund)]);
        assert_eq!(kinds(EntryKind::Fee), [Some(EntryKind::Fee), Some(EntryKind::TransferIn)]);
    }

    #[test]
    fn no_stored_number_is_a_reversal_of_nothing_or_of_a_reversal() {
        for number in [0, 9, 10, 15, 0x80, 0x89, 0x8a, 0x8f, 0xff] {
            assert_eq!(Transfer::kind_of_number(number, true), None, "{number}");
        }
    }

    #[test]
    fn an_entry_knows_the_balance_before_it() {
        let entry = |kind| Entry {
            transfer: TransferId(Uuid::new(Micros(9), 4)),
            kind,
            amount: 30,
            after: 100,
            counterparty: None,
            reference: None,
        };
        assert_eq!((entry(EntryKind::Deposit).before(), entry(EntryKind::Fee).before()), (70, 130));
        assert_eq!(entry(EntryKind::Deposit).at(), Micros(9));
        assert_ne!(entry(EntryKind::TransferIn).id(), entry(EntryKind::TransferOut).id());
    }
}
