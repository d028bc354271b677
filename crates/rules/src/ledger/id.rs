//! Ids that ascend with time: new rows of a ledger go to the end of their table, and an id contains its instant.
//!
//! They are version 7 of RFC 9562: 48 bits of milliseconds, then the microseconds within them (its method 3), then 60
//! random bits. The random bits are constant while a server runs. A server gives each instant once, so its ids are unique; two
//! servers differ in the random bits. The last two bits name the sides of a transfer, so the ids of its entries need not be
//! stored.
//!
//! Not here: the clock and the random bits, which are arguments.

use crate::instant::Micros;
use std::fmt;

/// 128 bits in the text form of a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

const VERSION: u128 = 7 << 76;
const VARIANT: u128 = 2 << 62;
/// The bits of the node; the two below them are those of the side.
const NODE: u128 = ((1 << 62) - 1) & !SIDES;
const SIDES: u128 = 3;
/// The bit that marks the hold of a contest's fee, one of the two bits that the microseconds leave free.
const FEE: u128 = 1 << 64;
/// The other of them marks the account of a contest's pool.
const POOL: u128 = 1 << 65;

impl Uuid {
    /// The id of an instant on one server.
    pub fn new(at: Micros, node: u64) -> Self {
        let at = at.0.max(0).unsigned_abs();
        let (millis, micros) = (u128::from(at / 1000), u128::from(at % 1000));
        // Twelve bits hold the thousand microseconds; the lowest two are free.
        let bits = (millis << 80) | VERSION | (micros << 66) | VARIANT | (u128::from(node) & NODE);
        Self(bits.to_be_bytes())
    }

    /// The instant of the id.
    pub fn at(self) -> Micros {
        let bits = u128::from_be_bytes(self.0);
        let (millis, micros) = ((bits >> 80) as i64, ((bits >> 66) & 0x3ff) as i64);
        Micros(millis * 1000 + micros)
    }

    /// Reads the text form, in letters of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = 0_usize;
        let mut bits = 0_u128;
        for (place, letter) in text.bytes().enumerate() {
            let dash = matches!(place, 8 | 13 | 18 | 23);
            match (letter, dash) {
                (b'-', true) => continue,
                (_, true) => return None,
                (letter, false) => bits = (bits << 4) | u128::from(char::from(letter).to_digit(16)?),
            }
            digits += 1;
            if digits > 32 {
                return None;
            }
        }
        (digits == 32).then(|| Self(bits.to_be_bytes()))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// The id of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub Uuid);

impl MemberId {
    /// The id under which the pool of the contest with this number has its wallet. No member has it.
    pub fn of_pool(contest: Uuid) -> Self {
        Self(Uuid((u128::from_be_bytes(contest.0) | POOL).to_be_bytes()))
    }

    /// Whether it is the account of a pool.
    pub fn is_pool(self) -> bool {
        let bits = u128::from_be_bytes(self.0.0);
        bits & POOL != 0 && bits & (0xf << 76) == VERSION
    }
}

/// The id of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub Uuid);

impl HoldId {
    /// The id of the hold of a contest's fee.
    pub fn of_fee(id: Uuid) -> Self {
        Self(Uuid((u128::from_be_bytes(id.0) | FEE).to_be_bytes()))
    }

    /// Whether the hold is for a contest's fee. Holds from before this mark lack it.
    pub fn is_of_fee(self) -> bool {
        u128::from_be_bytes(self.0.0) & FEE != 0
    }
}

/// The id of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub Uuid);

/// The side of a transfer that an entry is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Debit: the money leaves the wallet.
    Out,
    /// Credit: the money arrives in the wallet.
    In,
}

impl TransferId {
    /// The id of the entry on this side.
    pub fn entry(self, side: Side) -> Uuid {
        let side = match side {
            Side::Out => 1,
            Side::In => 2,
        };
        Uuid((u128::from_be_bytes(self.0.0) | side).to_be_bytes())
    }

    /// The transfer of an id, which is its own or that of an entry.
    pub fn of(id: Uuid) -> Self {
        Self(Uuid((u128::from_be_bytes(id.0) & !SIDES).to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_is_a_uuid_of_version_7() {
        let id = Uuid::new(Micros(1_645_557_742_000_123), 0x0123_4567_89ab_cdef);
        assert_eq!(id.to_string(), "017f22e2-79b0-71ec-8123-456789abcdec");
        assert_eq!(Uuid::parse("017F22E2-79b0-71ec-8123-456789abcdec"), Some(id));
        for bad in
            ["", "017f22e2", "017f22e2-79b0-71ec-8123-456789abcdec0", "017f22e279b071ec8123456789abcdec"]
        {
            assert_eq!(Uuid::parse(bad), None, "{bad}");
        }
        assert_eq!(Uuid::parse("017f22e2-79b0-71ec-8123-456789abcdeg"), None);
        assert_eq!(Uuid::parse("017f22e2-79b0-71ec-8123-456789abcd-c"), None);
    }

    #[test]
    fn entries_are_told_from_their_transfer() {
        let transfer = TransferId(Uuid::new(Micros(7), u64::MAX));
        let sides = [transfer.entry(Side::Out), transfer.entry(Side::In)];
        assert!(transfer.0 < sides[0] && sides[0] < sides[1]);
        assert!(sides.iter().all(|id| TransferId::of(*id) == transfer));
        assert_eq!(TransferId::of(transfer.0), transfer);
    }

    #[test]
    fn the_account_of_a_pool_is_that_of_no_member_and_no_other_contest() {
        let [one, other] = [7, 8].map(|at| Uuid::new(Micros(at), u64::MAX));
        let pool = MemberId::of_pool(one);
        assert!(pool.is_pool() && !MemberId(one).is_pool() && !MemberId(HoldId::of_fee(one).0).is_pool());
        assert!(pool != MemberId::of_pool(other) && pool.0.at() == Micros(7));
    }

    #[test]
    fn a_hold_for_a_fee_says_so_and_keeps_its_instant_and_place() {
        let [id, later] = [999, 1000].map(|at| Uuid::new(Micros(at), u64::MAX));
        let fee = HoldId::of_fee(id);
        assert!(fee.is_of_fee() && !HoldId(id).is_of_fee() && !HoldId(later).is_of_fee());
        assert_eq!(fee.0.at(), Micros(999));
        assert!(id < fee.0 && fee.0 < later);
    }

    proptest! {
        #[test]
        fn ids_ascend_with_time_and_tell_it(at in 0_i64..1 << 47, later in 1_i64..1 << 40, nodes in any::<[u64; 2]>()) {
            let (first, second) = (Uuid::new(Micros(at), nodes[0]), Uuid::new(Micros(at + later), nodes[1]));
            prop_assert!(first < second);
            prop_assert_eq!(first.at(), Micros(at));
            prop_assert_eq!(Uuid::parse(&second.to_string()), Some(second));
        }
    }
}
