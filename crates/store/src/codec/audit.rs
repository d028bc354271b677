//! A row of the audit log.

use super::origins;
use super::{Input, put_bytes, put_option};
use tally_rules::audit::{AuditAction, AuditEntry};

/// The format of the bytes below. A released one is never changed; a new one gets a new number.
const FORMAT: u8 = 1;

/// Encodes a row.
pub(crate) fn encode(entry: &AuditEntry) -> Vec<u8> {
    let mut bytes = vec![FORMAT, entry.action.number()];
    origins::put(&entry.origin, &mut bytes);
    put_bytes(entry.subject.as_bytes(), &mut bytes);
    put_option(entry.detail.as_ref(), &mut bytes, |text, out| put_bytes(text.as_bytes(), out));
    bytes
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<AuditEntry> {
    let mut input = Input::new(bytes);
    if input.byte()? != FORMAT {
        return None;
    }
    let action = AuditAction::of_number(input.byte()?)?;
    let (origin, subject) = (origins::take(&mut input)?, input.text()?.into());
    let detail = input.option(|input| input.text().map(Into::into))?;
    input.is_empty().then_some(AuditEntry { origin, action, subject, detail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::{Actor, KeyId, Origin};

    #[test]
    fn the_stored_bytes_are_pinned() {
        let entry = |detail: Option<&str>| AuditEntry {
            origin: Origin { actor: Actor::Key(KeyId([7; 6])), reason: Some("r".into()), metadata: None },
            action: AuditAction::BoardDeleted,
            subject: "ä".into(),
            detail: detail.map(Into::into),
        };
        let head = [[1, 12, 1].as_slice(), &[7; 6], &[1, 1, b'r'], &[2, 0xc3, 0xa4]].concat();
        assert_eq!(encode(&entry(None)), [&head[..], &[0]].concat());
        assert_eq!(encode(&entry(Some("d"))), [&head[..], &[1, 1, b'd']].concat());
        for entry in [entry(None), entry(Some("d"))] {
            let bytes = encode(&entry);
            assert_eq!(decode(&bytes), Some(entry));
            assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
            assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        }
        assert!(decode(&[1, 12, 3, 0, 0, 0]).is_some());
        assert_eq!(decode(&[2, 12, 3, 0, 0, 0]), None, "another format");
        assert_eq!(decode(&[1, 3, 3, 0, 0, 0]), None, "an action that there is not");
    }
}
