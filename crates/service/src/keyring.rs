//! The secrets of a store that this process has: one makes, and while it is replaced, another one is accepted.
//!
//! A row of the store says which one makes (`rotation`), so that all servers agree. It may change while they run, so each request
//! asks here. What is stored has the number of the secret that made it, or is compared with both. Not here: that row.

use crate::rotation::{Known, RotationRow};
use crate::secret::{Secret, Use};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// In the roles: no second secret is accepted.
const NONE: u8 = u8::MAX;

/// A secret and the number that the store has for it.
#[derive(Clone, Copy, Debug)]
pub struct Numbered<'a> {
    /// The number, beside what the secret has made.
    pub number: u8,
    keys: &'a Keys,
}

/// The derived keys of a secret.
struct Keys {
    by_use: [[u8; 32]; Use::ALL.len()],
}

/// The secrets of this process, and their roles.
#[derive(Debug)]
pub struct Keyring {
    secrets: Vec<Keys>,
    /// Place and number of the secret that makes, and of the other one, a byte each: they change together.
    roles: AtomicU32,
}

/// What a process lacks of the secrets that the row of the store names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    Nothing,
    /// The one that is accepted beside the one that makes.
    Other,
    /// The one that makes.
    Active,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Numbered<'_> {
    /// The key for one use.
    pub fn key(&self, what: Use) -> &[u8; 32] {
        &self.keys.by_use[what as usize]
    }
}

impl Keyring {
    /// These secrets. The first one makes, and the other one is not accepted before a row says so.
    pub fn new(secrets: &[Secret]) -> Self {
        let keys = |secret: &Secret| Keys { by_use: Use::ALL.map(|what| secret.derive(what)) };
        Self { secrets: secrets.iter().map(keys).collect(), roles: AtomicU32::new(roles((0, 0), None)) }
    }

    /// The secret that makes.
    pub fn active(&self) -> Numbered<'_> {
        self.both().0
    }

    /// The secret that makes, and the one that is accepted as well.
    pub fn both(&self) -> (Numbered<'_>, Option<Numbered<'_>>) {
        let [at, number, other_at, other_number] = self.roles.load(Ordering::Acquire).to_le_bytes();
        let of = |at: u8, number| Some(Numbered { number, keys: self.secrets.get(usize::from(at))? });
        (of(at, number).expect("the place of a secret"), of(other_at, other_number))
    }

    /// The accepted secret of this number.
    pub fn of(&self, number: u8) -> Option<Numbered<'_>> {
        let (active, other) = self.both();
        [Some(active), other].into_iter().flatten().find(|one| one.number == number)
    }

    /// Takes the roles of the row, unless the secret that makes is missing here.
    pub(crate) fn follow(&self, row: &RotationRow) -> Lacks {
        let place = |known: &Known| {
            let is = |keys: &Keys| keys.by_use[Use::Fingerprint as usize] == known.fingerprint;
            Some((u8::try_from(self.secrets.iter().position(is)?).ok()?, known.number))
        };
        let Some(active) = place(&row.active) else { return Lacks::Active };
        let other = row.other.as_ref().and_then(place);
        self.roles.store(roles(active, other), Ordering::Release);
        if row.other.is_some() && other.is_none() { Lacks::Other } else { Lacks::Nothing }
    }
}

fn roles(active: (u8, u8), other: Option<(u8, u8)>) -> u32 {
    let (at, number) = other.unwrap_or((NONE, 0));
    u32::from_le_bytes([active.0, active.1, at, number])
}

impl From<Secret> for Arc<Keyring> {
    fn from(secret: Secret) -> Self {
        Arc::new(Keyring::new(&[secret]))
    }
}
