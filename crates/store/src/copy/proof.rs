//! What is compared at the end of a copy: of each table the rows, the sums of money, and a digest.

use super::tables::{CopiedTable, TABLES};
use super::values::CopiedRow;
use super::{CopySide, is_carried};
use crate::StoreError;
use std::collections::BTreeMap;
use std::fmt;

/// What a table is compared by. The digest depends on the order of the rows, which is that of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) rows: u64,
    /// The sums of amounts, by the currency as it is stored.
    pub(super) sums: BTreeMap<String, i128>,
    digest: [u8; 32],
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.rows)?;
        self.sums.iter().try_for_each(|(currency, sum)| write!(f, ", {sum} {currency}"))?;
        write!(f, ", digest {}", blake3::Hash::from_bytes(self.digest).to_hex())
    }
}

/// Reads all tables of a store. `each` gets the number of rows read, and ends the reading early by returning false.
pub(super) fn read(
    side: &dyn CopySide,
    left_out: &[&str],
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<(&'static str, Proof)>, StoreError> {
    let (mut proofs, mut before) = (Vec::new(), 0);
    for table in TABLES {
        let proof = read_table(side, table, left_out, &mut |rows| each(before + rows))?;
        before += proof.rows;
        proofs.push((table.name, proof));
    }
    Ok(proofs)
}

fn read_table(
    side: &dyn CopySide,
    table: &CopiedTable,
    left_out: &[&str],
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<Proof, StoreError> {
    let (mut rows, mut sums, mut digest) = (0, BTreeMap::new(), blake3::Hasher::new());
    let (mut after, mut bytes): (Option<CopiedRow>, Vec<u8>) = (None, Vec::new());
    loop {
        let batch = side.read(table, after.as_deref())?;
        for row in batch.iter().filter(|row| is_carried(table, row, left_out)) {
            rows += 1;
            row.iter().for_each(|cell| cell.put(&mut bytes));
            digest.update(&bytes);
            bytes.clear();
            if let Some((currency, amount)) = table.money {
                let super::CopiedValue::Text(currency) = &row[currency] else { continue };
                let sum: &mut i128 = sums.entry(currency.clone()).or_default();
                *sum = sum.saturating_add(row[amount].amount());
            }
        }
        match batch.last() {
            Some(last) if batch.len() == table.rows && each(rows) => {
                after = Some(last[..table.keys].to_vec());
            }
            _ => break,
        }
    }
    each(rows);
    Ok(Proof { rows, sums, digest: *digest.finalize().as_bytes() })
}
