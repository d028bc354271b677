//! A checkpoint in a file: what a verification of the ledger has proved, for the next one to begin at.
//!
//! It has the form of an archive's file, with a row for each wallet and one more at the end, the summary. No catalog knows its digest,
//! so that follows the index. Writing is beside the old file, and the name comes last: a crash leaves the old one.
//!
//! Not here: what is proved, and whether the store is the same one (`tally_service::verify`).

use super::sorted_file::{Row, Rows, SortedFile};
use super::writer::{Writer, Written};
use super::{UNFINISHED, fault, take_wallet_key, wallet_key};
use crate::StoreError;
use crate::codec::archives::{put_totals, take_totals};
use crate::codec::{Input, put_number, put_option, put_signed};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_disk::{Disk, SystemDisk, folder_of};
use tally_rules::Micros;
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::{Month, TransferId, Uuid, WalletKey};

/// The last bytes of a file, behind its digest.
const MAGIC: [u8; 8] = *b"tallyck1";

/// What follows the index: the digest, and those.
const TAIL: u64 = 40;

/// The format of a summary. A new one gets a new number.
const FORMAT: u8 = 1;

/// The key of the summary, after that of every wallet.
const SUMMARY: [u8; 25] = [0xff; 25];

/// What was proved of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvedWallet {
    /// Its balance.
    pub balance: i64,
    /// How many entries it has.
    pub sequence: u64,
    /// The most promotional credit that its entries leave.
    pub credit: i128,
}

/// What was proved of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The moment of it, by the clock of the verification.
    pub at: Micros,
    /// When the first of these proofs, which read all, was made. `None` if the first one began at an archived month.
    pub whole: Option<Micros>,
    /// No transfer of then has a later id.
    pub last: TransferId,
    /// The newest transfer that was read by any of these proofs.
    pub newest: Option<TransferId>,
    /// How many transfers there were.
    pub transfers: u64,
    /// How many entries.
    pub entries: u64,
    /// The sums of all transfers.
    pub totals: Vec<(AccountKey, Total)>,
    /// The last month that was in files, and its digest.
    pub archived: Option<(Month, [u8; 32])>,
}

/// A file that is read.
#[derive(Debug)]
pub struct CheckpointFile {
    file: Arc<SortedFile>,
    summary: Summary,
    digest: [u8; 32],
}

impl CheckpointFile {
    /// Opens a file, and reads all of it once: none of its bytes is another one.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let known = known(path)?;
        let file = Arc::new(SortedFile::open_before(path, &known, TAIL)?);
        let (mut summary, mut last) = (None, None);
        for row in file.from(&[]) {
            let row = row?;
            summary = read_summary(&row);
            let wallet = read_wallet(&row).map(|(wallet, _)| wallet);
            if wallet.is_some() == summary.is_some() || (wallet.is_some() && wallet <= last) {
                return Err(file.broken_row());
            }
            last = wallet.or(last);
        }
        let summary = summary.ok_or_else(|| file.broken_row())?;
        Ok(Self { file, summary, digest: known.digest })
    }

    /// What was proved of all wallets.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The digest of all of it.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The wallets, in order.
    pub fn wallets(&self) -> ProvedWallets {
        ProvedWallets(self.file.from(&[]))
    }
}

/// The wallets of a checkpoint.
pub struct ProvedWallets(Rows);

impl Iterator for ProvedWallets {
    type Item = Result<(WalletKey, ProvedWallet), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.next()? {
            // The summary ends them.
            Ok(row) => read_wallet(&row).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// What the end of a file says about it.
fn known(path: &Path) -> Result<Written, StoreError> {
    let read = || -> io::Result<_> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut tail = [0; TAIL as usize];
        if let Some(at) = bytes.checked_sub(TAIL) {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut tail)?;
        }
        Ok((bytes, tail))
    };
    let (bytes, tail) = read().map_err(|error| fault(path, &error))?;
    match tail.split_first_chunk() {
        Some((digest, end)) if *end == MAGIC => {
            Ok(Written { rows: 0, bytes: bytes.saturating_sub(TAIL), digest: *digest })
        }
        _ => Err(fault(path, &"it is no checkpoint, or not all of one")),
    }
}

fn read_wallet((key, value): &Row) -> Option<(WalletKey, ProvedWallet)> {
    let (mut key, mut value) = (Input::new(key), Input::new(value));
    let wallet = take_wallet_key(&mut key)?;
    let (balance, sequence) = (value.signed()?, value.number()?);
    let credit = i128::from_be_bytes(value.fixed()?);
    let is_all = key.is_empty() && value.is_empty();
    is_all.then_some((wallet, ProvedWallet { balance, sequence, credit }))
}

fn read_summary((key, value): &Row) -> Option<Summary> {
    let mut input = Input::new(value);
    if *key != SUMMARY || input.byte()? != FORMAT {
        return None;
    }
    let (at, whole) = (Micros(input.signed()?), input.option(|input| input.signed().map(Micros))?);
    let last = TransferId(Uuid(input.fixed()?));
    let newest = input.option(|input| input.fixed().map(|id| TransferId(Uuid(id))))?;
    let (transfers, entries, totals) = (input.number()?, input.number()?, take_totals(&mut input)?);
    let archived = input.option(|input| Some((Month(input.small()?), input.fixed()?)))?;
    input.is_empty().then_some(Summary { at, whole, last, newest, transfers, entries, totals, archived })
}

fn summary_bytes(summary: &Summary) -> Vec<u8> {
    let Summary { at, whole, last, newest, transfers, entries, totals, archived } = summary;
    let mut bytes = vec![FORMAT];
    put_signed(at.0, &mut bytes);
    put_option(*whole, &mut bytes, |at, out| put_signed(at.0, out));
    bytes.extend_from_slice(&last.0.0);
    put_option(newest.as_ref(), &mut bytes, |id, out| out.extend_from_slice(&id.0.0));
    put_number(*transfers, &mut bytes);
    put_number(*entries, &mut bytes);
    put_totals(totals, &mut bytes);
    put_option(archived.as_ref(), &mut bytes, |(month, digest), out| {
        put_number(month.0.into(), out);
        out.extend_from_slice(digest);
    });
    bytes
}

/// Removes a file that got no name.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename there is none.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Refuses a name whose file is anything but a checkpoint. A new one takes its place.
pub fn check_replaceable(path: &Path) -> Result<(), StoreError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fault(path, &error)),
        // A rename would replace a link, and not the file that it names.
        Ok(found) if !found.is_file() => Err(fault(path, &"it is no regular file")),
        Ok(_) => known(path).map(drop),
    }
}

/// Writes a checkpoint: its wallets in order, then the summary. Dropped before that, it leaves no file.
pub struct CheckpointWriter {
    path: PathBuf,
    writer: Writer,
    unfinished: Unfinished,
}

impl CheckpointWriter {
    /// Begins beside the file of this name. Two processes do not meet: in containers both may have the same number.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| StoreError::Unavailable(format!("no random numbers: {error}")))?;
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(format!(".{:016x}{UNFINISHED}", u64::from_be_bytes(random)));
        let unfinished = PathBuf::from(unfinished);
        File::create_new(&unfinished).map_err(|error| fault(&unfinished, &error))?;
        let unfinished = Unfinished(unfinished);
        let writer = Writer::create(&SystemDisk, &unfinished.0)?;
        Ok(Self { path: path.to_owned(), writer, unfinished })
    }

    /// Adds a wallet after all others.
    pub fn add(&mut self, wallet: &WalletKey, proved: &ProvedWallet) -> Result<(), StoreError> {
        let mut value = Vec::new();
        put_signed(proved.balance, &mut value);
        put_number(proved.sequence, &mut value);
        value.extend_from_slice(&proved.credit.to_be_bytes());
        self.writer.add(&wallet_key(wallet), &value)
    }

    /// Gives the file its name once all of it is on the disk; returns its digest.
    pub fn finish(self, summary: &Summary) -> Result<[u8; 32], StoreError> {
        let Self { path, mut writer, unfinished } = self;
        writer.add(&SUMMARY, &summary_bytes(summary))?;
        let written = writer.finish_with(|digest| [&digest[..], &MAGIC].concat())?;
        SystemDisk.rename(&unfinished.0, &path).map_err(|error| fault(&path, &error))?;
        let folder = folder_of(&path);
        SystemDisk.sync_folder(folder).map_err(|error| fault(folder, &error))?;
        Ok(written.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::ledger::account::Account;
    use tally_rules::ledger::{Currency, MemberId};

    fn wallets(count: u32) -> Vec<(WalletKey, ProvedWallet)> {
        let currency = Currency::parse("KRW").unwrap();
        let key = |number: u32| MemberId(Uuid(u128::from(number * 2 + 1).to_be_bytes()));
        let proved = |number: u32| ProvedWallet {
            balance: i64::from(number) * 1_000_003,
            sequence: u64::from(number % 77),
            credit: i128::from(number),
        };
        let one = |number| (WalletKey { member: key(number), currency }, proved(number));
        (0..count).map(one).collect()
    }

    fn summary() -> Summary {
        let key = AccountKey { account: Account::BankPayable, currency: Currency::parse("KRW").unwrap() };
        Summary {
            at: Micros(1_800_000_000_000_000),
            whole: Some(Micros(7)),
            last: TransferId(Uuid([9; 16])),
            newest: Some(TransferId(Uuid([8; 16]))),
            transfers: 12,
            entries: 20,
            totals: vec![(key, Total { debits: 3, credits: 8 })],
            archived: Some((Month(24_373), [5; 32])),
        }
    }

    fn write(path: &Path, count: u32) -> [u8; 32] {
        let mut writer = CheckpointWriter::create(path).unwrap();
        wallets(count).iter().for_each(|(key, proved)| writer.add(key, proved).unwrap());
        writer.finish(&summary()).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        std::fs::read_dir(folder).unwrap().map(name).collect()
    }

    #[test]
    fn a_checkpoint_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        for count in [0, 1, 5_000] {
            let digest = write(&path, count);
            let file = CheckpointFile::open(&path).unwrap();
            assert_eq!((file.summary(), file.digest()), (&summary(), digest));
            assert_eq!(file.wallets().map(Result::unwrap).collect::<Vec<_>>(), wallets(count));
            assert_eq!(names(folder.path()), ["proof"]);
        }
    }

    #[test]
    fn one_that_is_not_finished_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        let digest = write(&path, 3);
        let mut writer = CheckpointWriter::create(&path).unwrap();
        wallets(2).iter().for_each(|(key, proved)| writer.add(key, proved).unwrap());
        drop(writer);
        assert_eq!(CheckpointFile::open(&path).unwrap().digest(), digest);
        assert_eq!(names(folder.path()), ["proof"]);
    }

    #[test]
    fn two_writers_of_one_file_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        let mut writers = [(); 2].map(|()| CheckpointWriter::create(&path).unwrap());
        assert_eq!(names(folder.path()).len(), 2);
        writers
            .iter_mut()
            .for_each(|writer| wallets(2).iter().for_each(|(key, of)| writer.add(key, of).unwrap()));
        for writer in writers {
            let digest = writer.finish(&summary()).unwrap();
            assert_eq!(CheckpointFile::open(&path).unwrap().digest(), digest);
        }
        assert_eq!(names(folder.path()), ["proof"]);
    }

    #[test]
    fn only_a_checkpoint_or_no_file_may_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        check_replaceable(&path).unwrap();
        write(&path, 3);
        check_replaceable(&path).unwrap();
        for bytes in [&b""[..], b"SQLite format 3", &[7; 100], b"tallyck1"] {
            std::fs::write(&path, bytes).unwrap();
            check_replaceable(&path).unwrap_err();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        check_replaceable(folder.path()).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        write(&path, 5_000);
        let file = CheckpointFile::open(&path).unwrap();
        write(&path, 3);
        assert_eq!(file.wallets().map(Result::unwrap).collect::<Vec<_>>(), wallets(5_000));
    }

    #[test]
    fn any_other_byte_and_any_other_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        write(&path, 3_000);
        let whole = std::fs::read(&path).unwrap();
        let is_refused = |what: String| {
            let opened = CheckpointFile::open(&path);
            assert!(matches!(opened, Err(StoreError::Archive { file, .. }) if file == "proof"), "{what}");
        };
        let end = whole.len() - 400;
        for at in (0..whole.len()).filter(|at| *at < 16 || *at > end || at % 997 == 0) {
            let mut other = whole.clone();
            other[at] ^= 1 << (at % 8);
            std::fs::write(&path, &other).unwrap();
            is_refused(format!("byte {at}"));
        }
        for length in [0, 1, 39, 40, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            is_refused(format!("{length} bytes"));
        }
        std::fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
        is_refused("a byte more".into());
        std::fs::remove_file(&path).unwrap();
        is_refused("no file".into());
    }
}
