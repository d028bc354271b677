//! The column beside the digest of a PIN: its number of digits, and above it the number of the secret that made it.
//!
//! That number is 0 in rows of earlier versions.

use tally_rules::ledger::member::Pin;

/// The column.
pub(crate) fn column(pin: &Pin) -> u8 {
    pin.digits | pin.secret << 4
}

/// A PIN of its columns.
pub(crate) fn pin(mac: [u8; 32], column: u8) -> Pin {
    Pin { mac, digits: column & 15, secret: column >> 4 }
}
