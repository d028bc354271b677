//! A month in the catalog of archives.

use super::{Input, put_bytes, put_number, put_option};
use crate::archive::{ArchivedMonth, MonthFiles, MonthState, Written};
use tally_rules::ledger::Currency;
use tally_rules::ledger::account::{Account, AccountKey, Total};

/// The format of the bytes below. A released one is never changed; a new one gets a new number.
const FORMAT: u8 = 1;

const WRITING: u8 = 1;
const DELETING: u8 = 2;
const DONE: u8 = 3;

/// Encodes a row.
pub(crate) fn encode(row: &ArchivedMonth) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    bytes.push(match row.state {
        MonthState::Writing => WRITING,
        MonthState::Deleting => DELETING,
        MonthState::Done => DONE,
    });
    bytes.extend_from_slice(&row.attempt.to_be_bytes());
    put_number(row.deleted, &mut bytes);
    put_option(row.files.as_ref(), &mut bytes, |files, out| {
        put_files(files, out);
        out.extend_from_slice(&files.digest);
    });
    bytes
}

/// Appends what the digest of a month is of, beside its name and the month before.
pub(crate) fn put_files(files: &MonthFiles, out: &mut Vec<u8>) {
    for file in [&files.transfers, &files.entries] {
        put_number(file.rows, out);
        put_number(file.bytes, out);
        out.extend_from_slice(&file.digest);
    }
    put_totals(&files.totals, out);
}

/// Appends sums of accounts.
pub(crate) fn put_totals(totals: &[(AccountKey, Total)], out: &mut Vec<u8>) {
    put_number(totals.len() as u64, out);
    for (key, total) in totals {
        out.push(key.account.number());
        put_bytes(key.currency.as_str().as_bytes(), out);
        out.extend_from_slice(&total.debits.to_be_bytes());
        out.extend_from_slice(&total.credits.to_be_bytes());
    }
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<ArchivedMonth> {
    let mut input = Input::new(bytes);
    if input.byte()? != FORMAT {
        return None;
    }
    let state = match input.byte()? {
        WRITING => MonthState::Writing,
        DELETING => MonthState::Deleting,
        DONE => MonthState::Done,
        _ => return None,
    };
    let (attempt, deleted) = (u64::from_be_bytes(input.fixed()?), input.number()?);
    let files = input.option(take_files)?;
    let fits = files.is_some() == (state != MonthState::Writing);
    (input.is_empty() && fits).then_some(ArchivedMonth { state, attempt, deleted, files })
}

fn take_files(input: &mut Input<'_>) -> Option<MonthFiles> {
    let mut file = || Some(Written { rows: input.number()?, bytes: input.number()?, digest: input.fixed()? });
    let (transfers, entries, totals) = (file()?, file()?, take_totals(input)?);
    Some(MonthFiles { transfers, entries, totals, digest: input.fixed()? })
}

/// Reads what [`put_totals`] wrote.
pub(crate) fn take_totals(input: &mut Input<'_>) -> Option<Vec<(AccountKey, Total)>> {
    let mut totals = Vec::new();
    for _ in 0..input.number()? {
        let account = Account::of_number(input.byte()?)?;
        let currency = Currency::parse(input.text()?)?;
        let mut sum = || input.fixed().map(u128::from_be_bytes);
        totals.push((AccountKey { account, currency }, Total { debits: sum()?, credits: sum()? }));
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_bytes_are_pinned() {
        let requested = ArchivedMonth::requested();
        assert_eq!(encode(&requested), [&[1, 1][..], &[0; 8], &[0, 0]].concat());
        let key = AccountKey { account: Account::BankAsset, currency: Currency::parse("KRW").unwrap() };
        let files = MonthFiles {
            transfers: Written { rows: 300, bytes: 5, digest: [7; 32] },
            entries: Written { rows: 2, bytes: 1, digest: [8; 32] },
            totals: vec![(key, Total { debits: 3, credits: 4 })],
            digest: [9; 32],
        };
        let done = ArchivedMonth { state: MonthState::Done, attempt: 1, deleted: 300, files: Some(files) };
        let wanted = [
            &[1, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0xac, 2, 1][..],
            &[0xac, 2, 5],
            &[7; 32],
            &[2, 1],
            &[8; 32],
            &[1, 1, 3],
            b"KRW",
            &3_u128.to_be_bytes(),
            &4_u128.to_be_bytes(),
            &[9; 32],
        ];
        assert_eq!(encode(&done), wanted.concat());
        for row in [requested, done] {
            let bytes = encode(&row);
            assert_eq!(decode(&bytes), Some(row));
            assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
            assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(decode(&[&[1, 3][..], &[0; 8], &[0, 0]].concat()), None, "done without files");
    }
}
