//! A player's profile: what is shown beside the rank. It decides nothing.

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// The longest address of a picture, in bytes.
pub const AVATAR_URL_BYTES_MAX: usize = 2_048;
/// The longest metadata, in bytes of JSON.
pub const METADATA_BYTES_MAX: usize = 8 * 1_024;

/// The profile of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The display name.
    pub name: Option<String>,
    /// The address of a picture.
    pub avatar_url: Option<String>,
    /// Further data of the game, as JSON text.
    pub metadata: Option<String>,
}

impl Profile {
    /// The invalid fields, each with the reason.
    pub fn check(&self) -> Vec<(&'static str, &'static str)> {
        let mut wrong = Vec::new();
        if self.name.as_ref().is_some_and(|name| {
            name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control)
        }) {
            wrong.push(("name", "must be 1 to 256 bytes without control characters"));
        }
        if self.avatar_url.as_ref().is_some_and(|url| !is_web_address(url)) {
            wrong.push(("avatar_url", "must be an http:// or https:// address of at most 2048 bytes"));
        }
        if self.metadata.as_ref().is_some_and(|metadata| metadata.len() > METADATA_BYTES_MAX) {
            wrong.push(("metadata", "must be at most 8 KiB of JSON"));
        }
        wrong
    }
}

/// Whether a page can safely use the address as the source of a picture: no scripts, no spaces, no quotes.
fn is_web_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\`".contains(&byte);
    url.len() <= AVATAR_URL_BYTES_MAX && rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_pictures() {
        for (url, allowed) in [
            ("https://example.com/a.png?x=1", true),
            ("http://10.0.0.1/a", true),
            ("javascript:alert(1)", false),
            ("https://", false),
            ("https://a b", false),
            ("https://a\"onerror=", false),
        ] {
            let profile = Profile { avatar_url: Some(url.into()), ..Profile::default() };
            assert_eq!(profile.check().is_empty(), allowed, "{url}");
        }
    }

    #[test]
    fn bounds_are_in_bytes_and_every_wrong_field_is_told() {
        let profile = Profile {
            name: Some("ä".repeat(129)),
            avatar_url: Some("x".into()),
            metadata: Some("x".repeat(METADATA_BYTES_MAX + 1)),
        };
        let fields: Vec<_> = profile.check().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["name", "avatar_url", "metadata"]);
        assert!(Profile::default().check().is_empty());
    }
}
