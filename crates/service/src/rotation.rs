//! The rotation of the secret: the row of the store that names its secrets.
//!
//! 1. Every server gets both secrets, by a restart one after the other. The old one makes meanwhile, so that a server that does not
//!    have the new one accepts everything.
//! 2. The row names both. A server that lacks one objects in the row; without an objection the new one makes, at every server
//!    without a restart.
//! 3. The row forgets the old one. What it made is lost from then on.
//!
//! A store whose secret was never replaced has the fingerprint alone, as earlier versions wrote it. They refuse the longer row. Not
//! here: what a secret has made (`secret_loss`), files with secrets and commands (`tally secret`).

use crate::background::Next;
use crate::backoff::Backoff;
use crate::failure::{Failure, Fault};
use crate::keyring::{Keyring, Lacks};
use crate::secret::{SECRETS_MAX, Secret, Use, hex, unhex};
use crate::tally::Tally;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::Micros;
use tally_rules::ledger::member::SECRET_NUMBERS;
use tally_store::Store;

/// The name of the row.
const ROW: &str = "secret_fingerprint";
/// The pause between two checks of the row by a server.
const CHECK_PAUSE: Duration = Duration::from_secs(2);
/// How long a command waits for an objection: a busy server checks the row late.
pub const OBJECTION_TIME: Duration = Duration::from_secs(8);
/// Attempts to replace the row, which servers change as well.
const ATTEMPTS: usize = 8;

/// What a start says that has not the secret of its store.
const WRONG: &str = "the store has another secret than the given one: give the file `secret` that belongs to it (TALLY_SECRET or \
     --secret-file). If that is lost for good, `tally secret reset` says what is lost with it and makes a new one";
const NEEDS_BOTH: &str = "the secret before the present one is still accepted, and it is not given: give both, or end it with \
     `tally secret drop`, which says what is lost with it";

/// A secret as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number: 0 for the first one, and from the last one on 0 again.
    pub number: u8,
    /// Its fingerprint.
    pub fingerprint: [u8; 32],
}

/// The row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationRow {
    /// The secret that makes.
    pub active: Known,
    /// The one that is accepted as well: the one before, or the one that comes next.
    pub other: Option<Known>,
    /// Since when the active one makes; 0 for a first one.
    pub since: Micros,
    /// A running server lacks one of them.
    pub objected: bool,
    /// The fingerprint of the one that was dropped last.
    pub dropped: Option<[u8; 32]>,
}

impl Known {
    /// The first digits of its fingerprint, for people.
    pub fn shown(&self) -> String {
        hex(&self.fingerprint[..4])
    }

    /// Whether it is this secret.
    pub fn is(&self, secret: &Secret) -> bool {
        self.fingerprint == secret.derive(Use::Fingerprint)
    }

    fn after(&self, secret: &Secret) -> Self {
        let fingerprint = secret.derive(Use::Fingerprint);
        Self { number: (self.number + 1) % SECRET_NUMBERS, fingerprint }
    }
}

impl RotationRow {
    fn first(secret: &Secret) -> Self {
        let active = Known { number: 0, fingerprint: secret.derive(Use::Fingerprint) };
        Self { active, other: None, since: Micros(0), objected: false, dropped: None }
    }

    /// The secret before the active one, if it is still accepted.
    pub fn previous(&self) -> Option<&Known> {
        self.other.as_ref().filter(|other| !self.is_next(other))
    }

    /// The secret that comes next, if one is announced.
    pub fn next(&self) -> Option<&Known> {
        self.other.as_ref().filter(|other| self.is_next(other))
    }

    fn is_next(&self, other: &Known) -> bool {
        other.number == (self.active.number + 1) % SECRET_NUMBERS
    }

    /// The row that announces a secret.
    #[must_use]
    pub fn announcing(&self, secret: &Secret) -> Self {
        Self { other: Some(self.active.after(secret)), objected: false, ..self.clone() }
    }

    /// The row in which the announced secret makes.
    pub fn rotated(&self, now: Micros) -> Option<Self> {
        let (active, other) = (self.next()?.clone(), Some(self.active.clone()));
        Some(Self { active, other, since: now, objected: false, dropped: self.dropped })
    }

    /// The row without its second secret. One that was never used need not be remembered.
    #[must_use]
    pub fn dropping(&self) -> Self {
        let dropped = self.previous().map(|one| one.fingerprint).or(self.dropped);
        Self { other: None, objected: false, dropped, ..self.clone() }
    }

    /// The row in which a secret replaces all others.
    #[must_use]
    pub fn reset(&self, secret: &Secret, now: Micros) -> Self {
        let dropped = Some(self.active.fingerprint);
        Self { active: self.active.after(secret), other: None, since: now, objected: false, dropped }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { active, other, since, objected, dropped } = self;
        if *self == Self::of_first(active) {
            return active.fingerprint.to_vec();
        }
        let fingerprint = |one: Option<&[u8; 32]>| one.map_or_else(|| "-".to_owned(), |bytes| hex(bytes));
        let number = other.as_ref().map_or_else(|| "-".to_owned(), |one| one.number.to_string());
        let text = format!(
            "{} {} {} {} {number} {} {}",
            active.number,
            hex(&active.fingerprint),
            since.0,
            u8::from(*objected),
            fingerprint(other.as_ref().map(|one| &one.fingerprint)),
            fingerprint(dropped.as_ref()),
        );
        text.into_bytes()
    }

    fn of_first(active: &Known) -> Self {
        let active = Known { number: 0, ..active.clone() };
        Self { active, other: None, since: Micros(0), objected: false, dropped: None }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        if let Ok(fingerprint) = bytes.try_into() {
            return Some(Self::of_first(&Known { number: 0, fingerprint }));
        }
        let mut parts = std::str::from_utf8(bytes).ok()?.split(' ');
        let mut next = || parts.next();
        let number = |text: &str| text.parse().ok().filter(|number| *number < SECRET_NUMBERS);
        let active = Known { number: number(next()?)?, fingerprint: unhex(next()?)? };
        let (since, objected) = (Micros(next()?.parse().ok()?), next()? == "1");
        let other = match (next()?, next()?) {
            ("-", "-") => None,
            (text, fingerprint) => Some(Known { number: number(text)?, fingerprint: unhex(fingerprint)? }),
        };
        let dropped = match next()? {
            "-" => None,
            text => Some(unhex(text)?),
        };
        Some(Self { active, other, since, objected, dropped })
    }
}

/// The row of a store; a new store has none. Blocks on the store.
pub fn read(store: &dyn Store) -> Result<Option<RotationRow>, Failure> {
    Ok(read_bytes(store)?.map(|(_, row)| row))
}

fn read_bytes(store: &dyn Store) -> Result<Option<(Vec<u8>, RotationRow)>, Failure> {
    let Some(bytes) = store.meta(ROW)? else { return Ok(None) };
    let row = RotationRow::parse(&bytes)
        .ok_or_else(|| Fault::Broken(format!("the row `{ROW}` of the store cannot be read")))?;
    Ok(Some((bytes, row)))
}

fn replace(store: &dyn Store, old: Option<&[u8]>, new: &RotationRow) -> Result<bool, Failure> {
    let new = new.bytes();
    if store.id()?.is_none() {
        // Only this process writes to it.
        store.set_meta(ROW, &new)?;
        return Ok(true);
    }
    Ok(store.swap_meta(ROW, old, &new)? || store.meta(ROW)?.as_deref() == Some(&new))
}

/// Changes the row, however others change it meanwhile. `None` from the change leaves it. Returns the row of the end.
/// Blocks on the store.
pub fn change(
    store: &dyn Store,
    mut change: impl FnMut(&RotationRow) -> Option<RotationRow>,
) -> Result<RotationRow, Failure> {
    for _ in 0..ATTEMPTS {
        let (bytes, row) =
            read_bytes(store)?.ok_or_else(|| Fault::Broken("the store has no secret yet".into()))?;
        let Some(next) = change(&row) else { return Ok(row) };
        if next == row || replace(store, Some(&bytes), &next)? {
            return Ok(next);
        }
    }
    Err(Fault::Broken("other commands change the secrets of this store; try again".into()).into())
}

/// The keyring of a server. Refuses a secret that is not the store's; a new store takes the first one. Blocks on the store.
pub fn open(store: &dyn Store, given: &[Secret]) -> Result<Keyring, Failure> {
    debug_assert!((1..=SECRETS_MAX).contains(&given.len()));
    let row = match read(store)? {
        Some(row) => row,
        None => {
            let first = given.first().ok_or_else(|| Fault::Broken(WRONG.into()))?;
            replace(store, None, &RotationRow::first(first))?;
            read(store)?.ok_or_else(|| Fault::Broken(WRONG.into()))?
        }
    };
    let ring = Keyring::new(given);
    match ring.follow(&row) {
        Lacks::Active => return Err(Fault::Broken(WRONG.into()).into()),
        Lacks::Other if row.previous().is_some() => return Err(Fault::Broken(NEEDS_BOTH.into()).into()),
        // It objects as soon as it runs.
        Lacks::Other => {}
        Lacks::Nothing => {
            let is_ended = |secret: &&Secret| row.dropped == Some(secret.derive(Use::Fingerprint));
            if given.iter().any(|secret| is_ended(&secret)) {
                tracing::warn!(
                    "a secret that was dropped is still given; remove it from the file or the variable"
                );
            }
        }
    }
    Ok(ring)
}

/// Checks the row, and objects to a secret that this process lacks.
fn check_row(store: &dyn Store, ring: &Keyring) -> Result<Lacks, Failure> {
    let Some((bytes, row)) = read_bytes(store)? else { return Ok(Lacks::Nothing) };
    let lacks = ring.follow(&row);
    if lacks != Lacks::Nothing && row.other.is_some() && !row.objected {
        // The next check does it if another server was faster.
        replace(store, Some(&bytes), &RotationRow { objected: true, ..row })?;
    }
    Ok(lacks)
}

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let (mut backoff, mut before) = (Backoff::new("read which secret makes"), Lacks::Nothing);
    tally.tasks.secret.start("secret", tally, Next::After(Duration::ZERO), move |tally| {
        match check_row(&*tally.store, tally.keys.ring()) {
            Ok(lacks) => {
                backoff.note(None);
                let logged = std::mem::replace(&mut before, lacks);
                match lacks {
                    Lacks::Active if logged != lacks => tracing::error!(
                        "this store has another secret now, which this server does not have: restart it with that one"
                    ),
                    Lacks::Other if logged != lacks => tracing::warn!(
                        "a new secret is announced, which this server does not have: restart it with both"
                    ),
                    _ => {}
                }
                Next::After(CHECK_PAUSE)
            }
            Err(failure) => Next::After(backoff.note(Some(&failure)).max(CHECK_PAUSE)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::pin::Pins;
    use crate::members::token::{TokenSubject, Tokens};
    use tally_rules::ledger::member::Login;
    use tally_rules::ledger::pin::Given;
    use tally_rules::ledger::{MemberId, Uuid};
    use tally_store::sqlite::{Options, SqliteStore};

    const NOW: Micros = Micros(1_700_000_000_000_000);

    fn secret(byte: u8) -> Secret {
        Secret::new([byte; 32])
    }

    fn store(folder: &tempfile::TempDir) -> SqliteStore {
        SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap()
    }

    #[test]
    fn a_row_reads_back_and_a_first_one_is_that_of_earlier_versions() {
        let first = RotationRow::first(&secret(1));
        assert_eq!(first.bytes(), secret(1).derive(Use::Fingerprint));
        let announced = first.announcing(&secret(2));
        let rotated = announced.rotated(NOW).unwrap();
        let dropped = rotated.dropping();
        let reset = dropped.reset(&secret(3), NOW);
        let objected = RotationRow { objected: true, ..announced.clone() };
        for row in [&first, &announced, &rotated, &dropped, &reset, &objected] {
            assert_eq!(RotationRow::parse(&row.bytes()).as_ref(), Some(row));
        }
        assert_eq!((first.next(), first.previous()), (None, None));
        assert!(announced.next().unwrap().is(&secret(2)) && announced.previous().is_none());
        assert!(rotated.active.is(&secret(2)) && rotated.previous().unwrap().is(&secret(1)));
        assert_eq!((dropped.other.as_ref(), dropped.dropped), (None, Some(first.active.fingerprint)));
        assert_eq!(announced.dropping(), first, "one that made nothing leaves no trace");
        assert_eq!((reset.active.number, rotated.rotated(NOW)), (2, None));
        for bad in ["", "0", "16 00 0 0 - - -"] {
            assert_eq!(RotationRow::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn numbers_begin_again() {
        let mut row = RotationRow::first(&secret(1));
        for byte in 2..40 {
            row = row.dropping().announcing(&secret(byte));
            assert!(row.next().is_some() && row.previous().is_none());
            row = row.rotated(NOW).unwrap();
            assert!(row.next().is_none() && row.previous().is_some());
            assert_eq!(row.active.number, (byte - 1) % SECRET_NUMBERS);
        }
    }

    #[test]
    fn a_start_needs_the_secrets_of_the_row() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let opens = |secrets: &[u8]| {
            let given: Vec<Secret> = secrets.iter().map(|byte| secret(*byte)).collect();
            open(&store, &given).map(|ring| ring.active().number).map_err(|failure| failure.to_string())
        };
        assert_eq!((opens(&[1]), opens(&[1, 2]), opens(&[2, 1])), (Ok(0), Ok(0), Ok(0)));
        assert!(opens(&[2]).unwrap_err().contains("tally secret reset"));
        change(&store, |row| Some(row.announcing(&secret(2)))).unwrap();
        assert_eq!(
            (opens(&[1]), opens(&[2, 1])),
            (Ok(0), Ok(0)),
            "the old one suffices until the new one makes"
        );
        assert!(opens(&[2]).is_err());
        change(&store, |row| row.rotated(NOW)).unwrap();
        assert_eq!(opens(&[2, 1]), Ok(1));
        assert!(opens(&[1]).unwrap_err().contains("tally secret reset"));
        assert!(opens(&[2]).unwrap_err().contains("tally secret drop"));
        change(&store, |row| Some(row.dropping())).unwrap();
        assert_eq!((opens(&[2]), opens(&[1, 2])), (Ok(1), Ok(1)));
        assert!(opens(&[1]).is_err());
    }

    /// Two servers with both secrets and one with the old one, at each step of the row.
    #[test]
    fn servers_accept_what_the_others_make() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let ring = |secrets: &[Secret]| Arc::new(open(&store, secrets).unwrap());
        let [old, one, two] =
            [ring(&[secret(1)]), ring(&[secret(1), secret(2)]), ring(&[secret(2), secret(1)])];
        let (ann, given) = (Login::new("ann").unwrap(), Given::Digits("0042".into()));
        let subject = TokenSubject { member: MemberId(Uuid([7; 16])), tokens_from: NOW };
        let tokens = |ring: &Arc<Keyring>| Tokens::new(Arc::clone(ring), Duration::from_secs(60));
        let accepts = |by: &Arc<Keyring>, at: &Arc<Keyring>| {
            let pins = |ring: &Arc<Keyring>| Pins::new(Arc::clone(ring));
            let token = tokens(by).give(subject, NOW).unwrap();
            let pin = pins(at).guess(&ann, &given).is(&pins(by).pin(&ann, "0042"));
            assert_eq!(tokens(at).read(&token, NOW).is_some(), pin, "both are accepted, or neither");
            pin
        };
        assert!(accepts(&one, &old) && accepts(&old, &two));
        let first = Pins::new(Arc::clone(&old)).pin(&ann, "0042");
        change(&store, |row| Some(row.announcing(&secret(2)))).unwrap();
        assert_eq!([&one, &two].map(|ring| check_row(&store, ring).unwrap()), [Lacks::Nothing; 2]);
        assert!(!read(&store).unwrap().unwrap().objected);
        assert!(accepts(&one, &old) && accepts(&old, &two), "the old one still makes");
        assert_eq!(check_row(&store, &old).unwrap(), Lacks::Other);
        assert!(read(&store).unwrap().unwrap().objected, "one that lacks it says so");
        change(&store, |row| row.rotated(NOW)).unwrap();
        check_row(&store, &one).unwrap();
        assert!(accepts(&one, &two) && accepts(&two, &one), "one has seen the row, the other has not");
        check_row(&store, &two).unwrap();
        assert!(accepts(&two, &one) && accepts(&old, &one));
        assert_eq!(check_row(&store, &old).unwrap(), Lacks::Active);
        let pins = Pins::new(Arc::clone(&one));
        let renewed = pins.guess(&ann, &given).renewed(&first).unwrap();
        assert_eq!((renewed, first.secret), (pins.pin(&ann, "0042"), 0), "its next use makes a PIN anew");
        assert_eq!(pins.guess(&ann, &given).renewed(&renewed), None);
        change(&store, |row| Some(row.dropping())).unwrap();
        check_row(&store, &one).unwrap();
        assert!(!pins.guess(&ann, &given).is(&first) && pins.guess(&ann, &given).is(&renewed));
        assert!(!accepts(&old, &one));
    }
}
