//! A link between a transfer and its reversals.

use super::{Input, put_bytes, put_number, put_option, put_signed};
use tally_rules::ledger::{ReversalLink, TransferId, Uuid};

/// The formats of the bytes below. A released one is never changed; a new one gets a new number.
const REVERSED: u8 = 1;
const REVERSES: u8 = 2;

/// Encodes a link.
pub(crate) fn encode(link: &ReversalLink) -> Vec<u8> {
    match link {
        ReversalLink::Reversed(parts) => {
            let mut bytes = vec![REVERSED];
            put_number(parts.len() as u64, &mut bytes);
            for (id, amount) in parts {
                bytes.extend_from_slice(&id.0.0);
                put_signed(*amount, &mut bytes);
            }
            bytes
        }
        ReversalLink::Reverses { original, reason } => {
            let mut bytes = vec![REVERSES];
            bytes.extend_from_slice(&original.0.0);
            put_option(reason.as_ref(), &mut bytes, |text, out| put_bytes(text.as_bytes(), out));
            bytes
        }
    }
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<ReversalLink> {
    let mut input = Input::new(bytes);
    let link = match input.byte()? {
        REVERSED => {
            let count = input.number()?;
            let mut parts = Vec::new();
            for _ in 0..count {
                let (id, amount) = (TransferId(Uuid(input.fixed()?)), input.signed()?);
                parts.push((id, amount));
            }
            ReversalLink::Reversed(parts)
        }
        REVERSES => {
            let original = TransferId(Uuid(input.fixed()?));
            ReversalLink::Reverses { original, reason: input.option(|input| input.text().map(Into::into))? }
        }
        _ => return None,
    };
    (input.is_empty() && is_sound(&link)).then_some(link)
}

/// Whether a store could have written the link: the reversals of a transfer are some, each of an amount.
pub(crate) fn is_sound(link: &ReversalLink) -> bool {
    match link {
        ReversalLink::Reversed(parts) => !parts.is_empty() && parts.iter().all(|(_, amount)| *amount > 0),
        ReversalLink::Reverses { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_bytes_are_pinned() {
        let id = |number| TransferId(Uuid([number; 16]));
        let reversed = ReversalLink::Reversed(vec![(id(7), 1), (id(8), 300)]);
        let mut wanted = vec![1, 2];
        wanted.extend([[7; 16].as_slice(), &[2], &[8; 16], &[0xd8, 4]].concat());
        assert_eq!(encode(&reversed), wanted);
        let reverses =
            |reason: Option<&str>| ReversalLink::Reverses { original: id(9), reason: reason.map(Into::into) };
        assert_eq!(encode(&reverses(None)), [[2].as_slice(), &[9; 16], &[0]].concat());
        assert_eq!(encode(&reverses(Some("ä"))), [[2].as_slice(), &[9; 16], &[1, 2, 0xc3, 0xa4]].concat());
        for link in [reversed, reverses(None), reverses(Some("ä"))] {
            let bytes = encode(&link);
            assert_eq!(decode(&bytes), Some(link));
            assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
            assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(decode(&[1, 0]), None);
        assert_eq!(decode(&[[1, 1].as_slice(), &[7; 16], &[0]].concat()), None, "an amount of none");
        assert_eq!(decode(&[3]), None);
    }
}
