//! A payment of a closed period.

use super::{Input, put_bytes, put_number, put_signed};
use tally_rules::ledger::Uuid;
use tally_rules::period::PeriodPayment;
use tally_rules::{BoardId, Micros};

/// The format of the bytes below. A released one is never changed; a new one gets a new number.
const FORM: u8 = 1;

/// Encodes a payment.
pub(crate) fn encode(payment: &PeriodPayment) -> Vec<u8> {
    let mut bytes = vec![FORM];
    let out = &mut bytes;
    out.extend_from_slice(&payment.no.0);
    put_bytes(payment.board.as_str().as_bytes(), out);
    put_bytes(payment.period.as_bytes(), out);
    put_number(payment.count.into(), out);
    put_number(payment.done.into(), out);
    put_signed(payment.at.0, out);
    bytes
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<PeriodPayment> {
    let mut input = Input::new(bytes);
    if input.byte()? != FORM {
        return None;
    }
    let (no, board) = (Uuid(input.fixed()?), BoardId::new(input.text()?).ok()?);
    let period = input.text()?.to_owned();
    let (count, done, at) = (input.small()?, input.small()?, Micros(input.signed()?));
    input.is_empty().then_some(PeriodPayment { no, board, period, count, done, at })
}
