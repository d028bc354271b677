//! How the name of a member finds it: a text that begins with the name in one form of its letters.
//!
//! Several members may have one name, so the text ends with the id of its member. It is stored under the number of logins, which
//! have no control characters: the text begins with one, so no login equals it, and it is before all of them. Not here: the other
//! handles (`member`).

use super::id::MemberId;
use super::member::LOGIN_BYTES_MAX;
use std::sync::Arc;

/// Before the name, and between the name and the id. No name has it in its one form.
const MARK: char = '\u{1}';

/// The id, in hexadecimal digits.
const ID_BYTES: usize = 32;

/// How many bytes of a name are compared. A handle has room for no more.
pub const COMPARED_BYTES_MAX: usize = LOGIN_BYTES_MAX - ID_BYTES - 2 * MARK.len_utf8();

/// What finds one member by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameKey(Arc<str>);

impl NameKey {
    /// That of a member with this name.
    pub fn new(name: &str, id: MemberId) -> Self {
        let digits = u128::from_be_bytes(id.0.0);
        Self(format!("{MARK}{}{MARK}{digits:032x}", one_form(name)).into())
    }

    /// Reads a stored one.
    pub fn of_stored(text: &str) -> Option<Self> {
        let (name, id) = text.strip_prefix(MARK)?.rsplit_once(MARK)?;
        let is_id = id.len() == ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_one = is_id && name.len() <= COMPARED_BYTES_MAX && !name.chars().any(char::is_control);
        is_one.then(|| Self(text.into()))
    }

    /// The beginning of all whose names begin with what was typed. `None` if only spaces were typed.
    pub fn prefix(typed: &str) -> Option<String> {
        let name = one_form(typed);
        (!name.is_empty()).then(|| format!("{MARK}{name}"))
    }

    /// A value before all that begin with a [prefix](Self::prefix). `None` if it is no prefix.
    pub(super) fn first(prefix: &str) -> Option<Self> {
        prefix.starts_with(MARK).then(|| Self(prefix.into()))
    }

    /// The name in its one form, as far as it is compared.
    pub fn name(&self) -> &str {
        self.0.strip_prefix(MARK).and_then(|text| text.rsplit_once(MARK)).map_or("", |(name, _)| name)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The beginning of a name in small letters, with one space between words.
fn one_form(name: &str) -> String {
    let is_between = |letter: char| letter.is_whitespace() || letter.is_control();
    let mut form = String::with_capacity(name.len());
    for word in name.split(is_between).filter(|word| !word.is_empty()) {
        if !form.is_empty() {
            form.push(' ');
        }
        // Small letters of the capitals: `ß` and `SS` are one, and so are both forms of a sigma.
        form.extend(word.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase));
    }
    form.truncate(form.floor_char_boundary(COMPARED_BYTES_MAX));
    form
}

#[cfg(test)]
mod tests {
    use super::super::id::Uuid;
    use super::super::member::{Handle, Login};
    use super::*;
    use proptest::prelude::*;

    const ID: MemberId = MemberId(Uuid([0xfe; 16]));

    fn finds(typed: &str, name: &str) -> bool {
        NameKey::prefix(typed).is_some_and(|prefix| NameKey::new(name, ID).as_str().starts_with(&prefix))
    }

    #[test]
    fn the_beginning_of_a_name_finds_it_in_any_letters() {
        for (typed, name) in [
            ("har", "Harry Kane"),
            ("HARRY  k", "Harry Kane"),
            (" harry\tkane ", "  Harry\u{a0}Kane"),
            ("김민", "김민준"),
            ("ÉL", "élodie"),
            ("strass", "Straße"),
            ("ΟΔΟΣ", "Οδος"),
            ("οδος", "ΟΔΟΣΑ"),
            ("a b", "a\u{1}b"),
        ] {
            assert!(finds(typed, name), "{typed:?} {name:?}");
        }
        for (typed, name) in
            [("arry", "Harry"), ("harryk", "Harry Kane"), ("harry", "Harr"), (" ", "a"), ("", "a")]
        {
            assert!(!finds(typed, name), "{typed:?} {name:?}");
        }
        // The end of a name does not go on with the id.
        assert!(!finds("ann f", "Ann"));
        // Past what is compared, all beginnings are one.
        let long = "준".repeat(80);
        assert!(finds(&long, &long) && finds(&long, &format!("{long}a")));
    }

    #[test]
    fn it_is_no_login_and_before_all_logins() {
        let (login, key) = (Login::new("!").unwrap(), NameKey::new("\u{10ffff}", ID));
        assert!(Login::new(key.as_str()).is_err());
        assert!(key.as_str() < login.as_str() && Handle::Name(key.clone()) < Handle::Login(login));
        let text = key.as_str();
        for bad in [
            "",
            "\u{1}",
            "ann",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}0"),
            "\u{1}a\u{2}\u{1}0",
        ] {
            assert_eq!(NameKey::of_stored(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_name_of_spaces_alone_is_an_empty_one() {
        for name in ["", " ", "\u{1}"] {
            let key = NameKey::new(name, ID);
            assert_eq!((key.name(), NameKey::of_stored(key.as_str())), ("", Some(key.clone())), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_has_a_key_that_is_stored_as_itself(name in any::<String>(), id in any::<[u8; 16]>()) {
            let key = NameKey::new(&name, MemberId(Uuid(id)));
            prop_assert!(key.as_str().len() <= LOGIN_BYTES_MAX);
            let prefix = NameKey::prefix(&name).unwrap_or_default();
            prop_assert_eq!(prefix.trim_start_matches(MARK), key.name());
            prop_assert_eq!(NameKey::of_stored(key.as_str()), Some(key.clone()));
            prop_assert_eq!(Handle::of_stored(1, key.as_str()), Some(Handle::Name(key)));
        }

        #[test]
        fn every_beginning_of_a_name_finds_it(name in "\\PC{0,100}", at in 0_usize..200) {
            let typed = &name[..name.floor_char_boundary(at)];
            prop_assert!(typed.trim().is_empty() || finds(typed, &name), "{:?} of {:?}", typed, name);
        }
    }
}
