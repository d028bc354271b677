//! The promotional credit of a wallet.

use super::{Input, put_number, put_signed};
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::ledger::credit::{Credit, Credits};

/// The format of the bytes below. A released one is never changed; a new one gets a new number.
const FORMAT: u8 = 1;

/// Encodes the credit of a wallet.
pub(crate) fn encode(credits: &Credits) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    put_signed(credits.lapsed, &mut bytes);
    put_signed(credits.covered, &mut bytes);
    put_number(credits.open.len() as u64, &mut bytes);
    for Credit { expires_at, left } in &credits.open {
        put_signed(expires_at.0, &mut bytes);
        put_signed(*left, &mut bytes);
    }
    bytes
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<Arc<Credits>> {
    let mut input = Input::new(bytes);
    if input.byte()? != FORMAT {
        return None;
    }
    let (lapsed, covered) = (input.signed()?, input.signed()?);
    let mut open = Vec::new();
    for _ in 0..input.number()? {
        open.push(Credit { expires_at: Micros(input.signed()?), left: input.signed()? });
    }
    let credits = Credits { lapsed, covered, open };
    let is_sound = input.is_empty()
        && !credits.is_empty()
        && credits.lapsed >= 0
        && credits.covered >= 0
        && credits.open.is_sorted_by(|a, b| a.expires_at < b.expires_at)
        && credits.open.iter().all(|credit| credit.left > 0);
    is_sound.then(|| Arc::new(credits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_bytes_are_pinned() {
        let credit = |at, left| Credit { expires_at: Micros(at), left };
        let credits = Credits { lapsed: 1, covered: 300, open: vec![credit(2, 3), credit(5, 64)] };
        let bytes = encode(&credits);
        assert_eq!(bytes, [1, 2, 0xd8, 4, 2, 4, 6, 10, 0x80, 1]);
        assert_eq!(decode(&bytes).as_deref(), Some(&credits));
        assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        for wrong in [
            Credits::default(),
            Credits { lapsed: -1, ..credits.clone() },
            Credits { covered: -1, ..credits.clone() },
            Credits { open: vec![credit(5, 1), credit(5, 1)], ..credits.clone() },
            Credits { open: vec![credit(5, 0)], ..credits },
        ] {
            assert_eq!(decode(&encode(&wrong)), None, "{wrong:?}");
        }
    }
}
