//! What is paid for closed periods, in a store: what is read of it without a transaction, and a payment in bytes.
//!
//! A payment is found by its period; its prizes are among those of contests, by a number that it was given once. Not here: rules,
//! and the tables.

use crate::sqlite::codec::{Input, put_bytes, put_number, put_signed};
use crate::{StoreError, WindowKey};
use tally_rules::ledger::Uuid;
use tally_rules::period::Payment;
use tally_rules::{BoardId, Micros};

/// What can be read of payments without a transaction.
pub trait PaymentReads {
    /// What is paid for a period.
    fn payment(&self, key: WindowKey) -> Result<Option<Payment>, StoreError>;

    /// At most `limit` periods with a payment, from the first one after `after`: those whose prizes have not all had their turn, or
    /// all.
    fn payments(
        &self,
        open: bool,
        after: Option<WindowKey>,
        limit: usize,
    ) -> Result<Vec<WindowKey>, StoreError>;
}

/// The form of the bytes below. A released one is never changed; another one gets another number.
const FORM: u8 = 1;

/// A payment in bytes.
pub(crate) fn encode(payment: &Payment) -> Vec<u8> {
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
pub(crate) fn decode(bytes: &[u8]) -> Option<Payment> {
    let mut input = Input::new(bytes);
    if input.byte()? != FORM {
        return None;
    }
    let (no, board) = (Uuid(input.fixed()?), BoardId::new(input.text()?).ok()?);
    let period = input.text()?.to_owned();
    let (count, done, at) = (input.small()?, input.small()?, Micros(input.signed()?));
    input.is_empty().then_some(Payment { no, board, period, count, done, at })
}
