//! A member: its handles, its credentials, and whether it was closed.
//!
//! A login, a phone number and a player each belong to at most one member; [`Handle`] makes them unique. A password is
//! stored as the text of its slow digest, a PIN as a keyed digest of few digits. Both are made and compared elsewhere.
//! Money depends only on the PIN's attempts (`pin`) and on being closed, which the home wallet repeats.

use super::id::MemberId;
use super::member_name::NameKey;
use super::pin::Attempts;
use crate::ids::{BadId, PlayerId};
use crate::instant::Micros;
use std::sync::Arc;

/// The longest login, in bytes.
pub const LOGIN_BYTES_MAX: usize = 128;

/// The longest text of a password's digest, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 255;

/// Digits of a phone number.
pub const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 4..=20;

/// The prefix that a stored phone number must not have.
const MISREAD: &str = "00";

/// The login of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Login(Arc<str>);

impl Login {
    /// Checks a login.
    pub fn new(text: &str) -> Result<Self, BadId> {
        if text.is_empty() || text.len() > LOGIN_BYTES_MAX || text.chars().any(char::is_control) {
            return Err(BadId("must be 1 to 128 bytes without control characters"));
        }
        Ok(Self(text.into()))
    }

    /// The login.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A phone number in its normal form: digits that do not begin with 00.
///
/// A number from a request is [parsed](Self::parse); a stored number is [read](Self::of_stored) as it is. Parsing a normal
/// form gives the same form, so both the number as sent and the number as shown find the member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phone(Arc<str>);

impl Phone {
    /// Parses a number as users write it. `country` is the prefix of the home country, such as `82`. A number that begins
    /// with it after `+` or `00` equals one that begins with a single 0.
    pub fn parse(text: &str, country: Option<&str>) -> Result<Self, BadId> {
        const BAD: BadId =
            BadId("must be 4 to 20 digits with spaces and dashes between them, after at most one + or 00");
        let text = text.trim();
        let (abroad, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        let digits: String = rest.chars().filter(|letter| !matches!(letter, ' ' | '-')).collect();
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BAD);
        }
        let whole = if abroad { Some(digits.as_str()) } else { digits.strip_prefix("00") };
        let at_home = country.and_then(|country| whole?.strip_prefix(country));
        let normal = match (at_home, whole) {
            (Some(rest), _) => format!("0{}", rest.trim_start_matches('0')),
            (None, Some(whole)) => whole.to_owned(),
            (None, None) => digits.clone(),
        };
        // No country prefix begins with 0. The normal form of such a number would have another normal form.
        if !PHONE_DIGITS.contains(&normal.len()) || normal.starts_with(MISREAD) {
            return Err(BAD);
        }
        Ok(Self(normal.into()))
    }

    /// Reads a stored number without normalising it again.
    pub fn of_stored(text: &str) -> Option<Self> {
        let is_one = PHONE_DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| Self(text.into()))
    }

    /// Whether no request can name the number. Earlier versions stored such numbers, and read them as others.
    pub fn is_misread(&self) -> bool {
        self.0.starts_with(MISREAD)
    }

    /// The number as which earlier versions read a misread number in the end, if it is valid. Other numbers are unchanged.
    pub fn corrected(&self, country: Option<&str>) -> Option<Self> {
        let mut rest = self.as_str();
        while let Some(shorter) = rest.strip_prefix(MISREAD) {
            rest = shorter;
        }
        if self.is_misread() { Self::parse(&format!("+{rest}"), country).ok() } else { Some(self.clone()) }
    }

    /// A value before all misread numbers in their order.
    pub fn before_misread() -> Self {
        Self(MISREAD.into())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// A name, which finds every member that has it.
    Name,
    /// A login.
    Login,
    /// A phone number.
    Phone,
    /// A player.
    Player,
}

impl HandleKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Name, Self::Login, Self::Phone, Self::Player];

    /// The number that is stored. Names share that of logins, see [`NameKey`].
    pub fn number(self) -> u8 {
        match self {
            Self::Name | Self::Login => 1,
            Self::Phone => 2,
            Self::Player => 3,
        }
    }

    /// A value before all handles of this kind that begin with a text, and after all that are less. `None` if none can begin so.
    pub fn first(self, prefix: &str) -> Option<Handle> {
        match self {
            Self::Name => NameKey::first(prefix).map(Handle::Name),
            Self::Login => Login::new(prefix).ok().map(Handle::Login),
            Self::Phone => Some(Handle::Phone(Phone(prefix.into()))),
            Self::Player => PlayerId::new(prefix).ok().map(Handle::Player),
        }
    }
}

/// A name, login, phone number or player that finds one member. Their order is that of the stored numbers and texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    /// Its name, together with its id.
    Name(NameKey),
    /// Its login.
    Login(Login),
    /// Its phone number.
    Phone(Phone),
    /// Its player.
    Player(PlayerId),
}

impl Handle {
    /// What it is.
    pub fn kind(&self) -> HandleKind {
        match self {
            Self::Name(_) => HandleKind::Name,
            Self::Login(_) => HandleKind::Login,
            Self::Phone(_) => HandleKind::Phone,
            Self::Player(_) => HandleKind::Player,
        }
    }

    /// The number that is stored.
    pub fn number(&self) -> u8 {
        self.kind().number()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Name(key) => key.as_str(),
            Self::Login(login) => login.as_str(),
            Self::Phone(phone) => phone.as_str(),
            Self::Player(player) => player.as_str(),
        }
    }

    /// Reads a stored handle.
    pub fn of_stored(number: u8, text: &str) -> Option<Self> {
        match number {
            1 => NameKey::of_stored(text).map(Self::Name).or_else(|| Login::new(text).ok().map(Self::Login)),
            2 => Phone::of_stored(text).map(Self::Phone),
            3 => PlayerId::new(text).ok().map(Self::Player),
            _ => None,
        }
    }
}

/// How many numbers secrets have; the first one has 0. One secret of a store has a number at a time.
pub const SECRET_NUMBERS: u8 = 16;

/// A stored PIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The keyed digest.
    pub mac: [u8; 32],
    /// The number of digits.
    pub digits: u8,
    /// The number of the secret that made it.
    pub secret: u8,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its login.
    pub login: Login,
    /// Its phone number.
    pub phone: Option<Phone>,
    /// Its player on leaderboards.
    pub player: PlayerId,
    /// Its display name.
    pub name: Arc<str>,
    /// The digest of its password; without one it cannot sign in.
    pub password: Option<Arc<str>>,
    /// Its PIN; without one it cannot transfer by itself.
    pub pin: Option<Pin>,
    /// Its PIN attempts.
    pub attempts: Attempts,
    /// Tokens issued before this instant are invalid.
    pub tokens_from: Micros,
    /// When it was closed. Its handles are kept here, and may belong to another member now.
    pub closed_at: Option<Micros>,
}

impl Member {
    /// The handles of the member with that id, in order. A closed one has none but the one that it keeps while it is being erased.
    pub fn handles(&self, id: MemberId) -> Vec<Handle> {
        if self.closed_at.is_some() { self.kept_handle().into_iter().collect() } else { self.names(id) }
    }

    /// The handles it has or had before it was closed, in order.
    pub fn names(&self, id: MemberId) -> Vec<Handle> {
        let name = Handle::Name(NameKey::new(&self.name, id));
        let phone = self.phone.clone().map(Handle::Phone);
        let player = Handle::Player(self.player.clone());
        let handles = [Some(name), Some(Handle::Login(self.login.clone())), phone, Some(player)];
        handles.into_iter().flatten().collect()
    }

    /// When the member was created.
    pub fn created_at(id: MemberId) -> Micros {
        id.0.at()
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::Uuid;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_normal_form_is_its_own_and_is_stored_as_itself(
            text in "[+]?0{0,6}[0-9 -]{0,22}",
            country in proptest::option::of("[1-9][0-9]{0,3}"),
        ) {
            if let Ok(phone) = Phone::parse(&text, country.as_deref()) {
                prop_assert_eq!(Phone::parse(phone.as_str(), country.as_deref()), Ok(phone.clone()));
                prop_assert_eq!(Phone::of_stored(phone.as_str()), Some(phone.clone()));
                prop_assert!(!phone.is_misread());
                prop_assert_eq!(phone.corrected(country.as_deref()), Some(phone));
            }
        }

        #[test]
        fn what_was_stored_before_is_mended_to_a_normal_form(
            text in "0{0,8}[0-9]{4,12}",
            country in proptest::option::of("[1-9][0-9]{0,3}"),
        ) {
            let corrected = Phone::of_stored(&text).expect("it has few digits").corrected(country.as_deref());
            prop_assert!(corrected.is_none_or(|phone| Phone::parse(phone.as_str(), country.as_deref()) == Ok(phone)));
        }
    }

    #[test]
    fn a_phone_number_has_one_normal_form() {
        let rows = [
            ("010-1234-5678", Some("82"), Some("01012345678")),
            (" 010 1234 5678 ", None, Some("01012345678")),
            ("+82 10-1234-5678", Some("82"), Some("01012345678")),
            ("+82 010 1234 5678", Some("82"), Some("01012345678")),
            ("0082 10 1234 5678", Some("82"), Some("01012345678")),
            ("+82 10 1234 5678", None, Some("821012345678")),
            ("+49 30 123456", Some("82"), Some("4930123456")),
            ("0049 30 123456", Some("82"), Some("4930123456")),
            ("123", None, None),
            ("123456789012345678901", None, None),
            ("+", None, None),
            ("", None, None),
            ("010 1234 567x", None, None),
            ("01+2345678", None, None),
            ("0000123456", None, None),
            ("+00123456", Some("82"), None),
            ("00 00 82 10 1234", Some("82"), None),
            ("+0123456", None, Some("0123456")),
            ("000123456", None, Some("0123456")),
            ("٠١٠١٢٣٤", None, None),
        ];
        for (text, country, wanted) in rows {
            let got = Phone::parse(text, country).ok();
            assert_eq!(got.as_ref().map(Phone::as_str), wanted, "{text:?} in {country:?}");
        }
    }

    #[test]
    fn a_stored_number_is_read_as_it_is_and_a_misread_one_has_a_normal_form() {
        let rows = [
            ("01012345678", None, Some("01012345678")),
            ("821012345678", Some("82"), Some("821012345678")),
            ("00123456", None, Some("123456")),
            ("0000123456", None, Some("123456")),
            ("000123456", None, Some("0123456")),
            ("00821012345678", Some("82"), Some("01012345678")),
            ("00000", None, None),
            ("00123", None, None),
        ];
        for (text, country, wanted) in rows {
            let stored = Phone::of_stored(text).unwrap();
            assert_eq!((stored.as_str(), stored.is_misread()), (text, text.starts_with("00")));
            let corrected = stored.corrected(country);
            assert_eq!(corrected.as_ref().map(Phone::as_str), wanted, "{text:?} in {country:?}");
            assert!(corrected.is_none_or(|phone| Phone::parse(phone.as_str(), country) == Ok(phone)));
            assert!(Phone::before_misread() < stored);
        }
        for text in ["", "123", "010-1234", "+1234", "123456789012345678901", "١٢٣٤"] {
            assert_eq!(Phone::of_stored(text), None, "{text:?}");
        }
    }

    #[test]
    fn handles_read_back_from_what_is_stored() {
        let member = Member {
            login: Login::new("ann@example.org").unwrap(),
            phone: Some(Phone::parse("010-1234", None).unwrap()),
            player: PlayerId::new("ann").unwrap(),
            name: "Ann".into(),
            password: None,
            pin: None,
            attempts: Attempts::default(),
            tokens_from: Micros(0),
            closed_at: None,
        };
        let id = MemberId(Uuid([3; 16]));
        let handles = member.handles(id);
        assert!(handles.len() == 4 && handles.is_sorted());
        for ((handle, kind), number) in handles.iter().zip(HandleKind::ALL).zip([1, 1, 2, 3]) {
            assert_eq!((handle.kind(), handle.number()), (kind, number));
            assert_eq!(Handle::of_stored(number, handle.as_str()).as_ref(), Some(handle));
        }
        let closed = Member { closed_at: Some(Micros(1)), ..member };
        assert_eq!((closed.handles(id), closed.names(id)), (vec![], handles));
        assert_eq!(Handle::of_stored(2, "010-1234"), None);
        assert_eq!(Handle::of_stored(4, "ann"), None);
        assert!(Login::new("a\nb").is_err() && Login::new("").is_err());
    }
}
