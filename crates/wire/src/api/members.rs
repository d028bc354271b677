//! Members as JSON.

use crate::api::wallets::read_amount;
use crate::fields::{FieldError, Fields, boolean, text};
use crate::time;
use serde_json::{Value, json};
use tally_rules::ledger::member::{Login, Phone};
use tally_rules::ledger::pin::{Given, is_pin};
use tally_rules::ledger::{Amount, Member, MemberId};
use tally_rules::{PlayerId, Rejection};

/// The longest name of a member, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The longest text that is compared with a login or a password, in bytes.
const GIVEN_BYTES_MAX: usize = 1_024;

/// The longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 256;

/// The body of `POST /v1/members`. Secrets are as they were sent.
pub struct NewMember {
    /// The login.
    pub login: Login,
    /// The password.
    pub password: Option<String>,
    /// The PIN that confirms transfers: 4 to 8 digits.
    pub pin: Option<String>,
    /// Its phone number.
    pub phone: Option<Phone>,
    /// The display name.
    pub name: String,
    /// Its player; the default is its id.
    pub player: Option<PlayerId>,
}

/// The rules from the settings for the fields of a member.
#[derive(Clone, Copy, Debug)]
pub struct MemberRules<'a> {
    /// The prefix of the home country.
    pub country: Option<&'a str>,
    /// The fewest characters of a new password.
    pub password_length_min: usize,
}

/// Reads the body of `POST /v1/members`.
pub fn read_new(body: Value, rules: MemberRules<'_>) -> Result<NewMember, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let login = fields.required("login_id", login);
    let password = fields.optional("password", |value| password(value, rules.password_length_min));
    let pin = fields.optional("pin", new_pin);
    let phone = fields.optional("phone_number", |value| phone(value, rules.country));
    let name = fields.required("name", name);
    let player = fields.optional("player", player);
    fields.finish()?;
    let (login, name) = login.zip(name).expect("no field is wrong");
    Ok(NewMember { login, password, pin, phone, name, player })
}

/// A field of a change: left out, a value, or `null` for none.
pub enum FieldChange<T> {
    /// It was left out.
    Unchanged,
    /// The new value, or none.
    To(Option<T>),
}

/// The body of `PATCH /v1/members/{member}`.
pub struct MemberChange {
    /// The display name.
    pub name: Option<String>,
    /// Its player.
    pub player: Option<PlayerId>,
    /// Its phone number.
    pub phone: FieldChange<Phone>,
    /// The password.
    pub password: FieldChange<String>,
    /// The PIN.
    pub pin: FieldChange<String>,
}

/// Reads the body of `PATCH /v1/members/{member}`.
pub fn read_change(body: Value, rules: MemberRules<'_>) -> Result<MemberChange, Vec<FieldError>> {
    fn or_null<T, E: Into<String>>(
        fields: &mut Fields,
        name: &'static str,
        read: impl FnOnce(&Value) -> Result<T, E>,
    ) -> FieldChange<T> {
        let given = fields.optional(name, |value| match value {
            Value::Null => Ok(None),
            value => read(value).map(Some),
        });
        given.map_or(FieldChange::Unchanged, FieldChange::To)
    }
    let mut fields = Fields::new("", body)?;
    let change = MemberChange {
        name: fields.optional("name", name),
        player: fields.optional("player", player),
        phone: or_null(&mut fields, "phone_number", |value| phone(value, rules.country)),
        password: or_null(&mut fields, "password", |value| password(value, rules.password_length_min)),
        pin: or_null(&mut fields, "pin", new_pin),
    };
    fields.finish()?;
    Ok(change)
}

/// Reads the body of `POST …/close`: whether to close a member with money in its wallets.
pub fn read_close(body: Option<Value>) -> Result<bool, Vec<FieldError>> {
    let Some(body) = body else { return Ok(false) };
    let mut fields = Fields::new("", body)?;
    let force = fields.optional("force", boolean);
    fields.finish()?;
    Ok(force.unwrap_or(false))
}

/// Reads the body of `POST /auth/signin`. Any text may be a login, even of no member.
pub fn read_sign_in(body: Value) -> Result<(String, String), Vec<FieldError>> {
    let short = |value: &Value| {
        text(value).and_then(|text| {
            if text.len() <= GIVEN_BYTES_MAX { Ok(text) } else { Err("must be at most 1024 bytes") }
        })
    };
    let mut fields = Fields::new("", body)?;
    let login = fields.required("loginId", short);
    let password = fields.required("password", short);
    fields.finish()?;
    Ok(login.zip(password).expect("no field is wrong"))
}

/// The body of `POST /transfer/phone-num`.
pub struct PaymentBody {
    /// The phone number of the recipient.
    pub phone: Phone,
    /// The amount.
    pub amount: Result<Amount, Rejection>,
    /// The PIN in the request.
    pub pin: Given,
}

/// Reads the body of `POST /transfer/phone-num`.
pub fn read_payment(body: Value, country: Option<&str>) -> Result<PaymentBody, Vec<FieldError>> {
    let mut fields = Fields::new("", body)?;
    let phone = fields.required("phoneNumber", |value| phone(value, country));
    let amount = fields.required("amount", read_amount);
    let pin = fields.required("password", given_pin);
    fields.finish()?;
    let ((phone, amount), pin) = phone.zip(amount).zip(pin).expect("no field is wrong");
    Ok(PaymentBody { phone, amount, pin })
}

/// A PIN as a user types it, or as a script sends it.
fn given_pin(value: &Value) -> Result<Given, &'static str> {
    const WRONG: &str = "must be a PIN: 4 to 8 digits, as a string or as a number";
    match value {
        Value::String(text) if is_pin(text) => Ok(Given::Digits(text.clone())),
        Value::Number(number) => {
            let number = number.as_u64().filter(|number| *number <= 99_999_999).ok_or(WRONG)?;
            u32::try_from(number).map(Given::Number).map_err(|_| WRONG)
        }
        _ => Err(WRONG),
    }
}

/// Reads a login.
pub fn login(value: &Value) -> Result<Login, &'static str> {
    Login::new(&text(value)?).map_err(|bad| bad.0)
}

/// Reads a phone number; `country` is the prefix of the home country.
pub fn phone(value: &Value, country: Option<&str>) -> Result<Phone, &'static str> {
    Phone::parse(&text(value)?, country).map_err(|bad| bad.0)
}

/// Reads a new password.
fn password(value: &Value, length_min: usize) -> Result<String, String> {
    let text = text(value)?;
    check_password(&text, length_min).map(|()| text)
}

/// Checks a new password. The minimum is in characters, because users count characters.
pub fn check_password(text: &str, length_min: usize) -> Result<(), String> {
    if text.len() > PASSWORD_BYTES_MAX {
        return Err(format!("must be at most {PASSWORD_BYTES_MAX} bytes"));
    }
    if text.chars().count() < length_min {
        return Err(format!(
            "must have at least {length_min} characters (setting `members.password_length_min`)"
        ));
    }
    Ok(())
}

fn player(value: &Value) -> Result<PlayerId, &'static str> {
    PlayerId::new(&text(value)?).map_err(|bad| bad.0)
}

/// Reads a display name.
fn name(value: &Value) -> Result<String, &'static str> {
    let text = text(value)?;
    let possible = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if possible { Ok(text) } else { Err("must be 1 to 256 bytes without control characters") }
}

/// Reads a new PIN. A number has no leading zeros, so it must have all digits itself.
fn new_pin(value: &Value) -> Result<String, &'static str> {
    const WRONG: &str = "must be 4 to 8 digits; one that begins with 0 must be a string";
    let digits = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().ok_or(WRONG)?.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(WRONG),
    };
    if is_pin(&digits) { Ok(digits) } else { Err(WRONG) }
}

/// A member. `has_pin` says whether its PIN can be checked.
pub fn write(id: MemberId, member: &Member, has_pin: bool) -> Value {
    let mut answer = json!({
        "id": id.0.to_string(),
        "login_id": member.login.as_str(),
        "name": &*member.name,
        "player": member.player.as_str(),
        "has_password": member.password.is_some(),
        "has_pin": has_pin,
        "created_at": time::format(Member::created_at(id)),
    });
    if let Some(phone) = &member.phone {
        answer["phone_number"] = json!(phone.as_str());
    }
    if let Some(at) = member.attempts.locked_until {
        answer["pin_locked_until"] = json!(time::format(at));
    }
    if let Some(at) = member.closed_at {
        answer["closed_at"] = json!(time::format(at));
    }
    if let Some(erasure) = member.erasure(id) {
        answer["erasure"] = json!(erasure.as_str());
    }
    answer
}

/// A member as a search shows it.
pub fn write_found(id: MemberId, member: &Member) -> Value {
    let mut answer =
        json!({"id": id.0.to_string(), "login_id": member.login.as_str(), "name": &*member.name});
    if let Some(phone) = &member.phone {
        answer["phone_number"] = json!(phone.as_str());
    }
    if let Some(at) = member.closed_at {
        answer["closed_at"] = json!(time::format(at));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_field_is_named_and_what_is_right_is_in_its_normal_form() {
        let body = json!({"login_id": "", "password": "", "pin": 42, "phone_number": "1", "name": "", "player": "", "x": 1});
        let rules = |country| MemberRules { country, password_length_min: 8 };
        let errors = read_new(body, rules(None)).err().unwrap();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/login_id", "/password", "/pin", "/phone_number", "/name", "/player", "/x"]);
        let body = json!({"login_id": "ann", "pin": 1234, "phone_number": "+82 10-1234-5678", "name": "Ann"});
        let new = read_new(body, rules(Some("82"))).ok().unwrap();
        assert_eq!(new.phone.unwrap().as_str(), "01012345678");
        assert_eq!((new.pin.as_deref(), new.password, new.player), (Some("1234"), None, None));
    }

    #[test]
    fn a_new_password_has_a_least_length_in_characters() {
        for (text, wanted) in
            [("", false), ("1234567", false), ("12345678", true), ("ééééééé", false), ("éééééééé", true)]
        {
            assert_eq!(check_password(text, 8).is_ok(), wanted, "{text}");
        }
        assert!(check_password(&"x".repeat(256), 8).is_ok() && check_password(&"x".repeat(257), 8).is_err());
    }

    #[test]
    fn a_new_pin_has_all_its_digits() {
        for (value, wanted) in [
            (json!("0042"), Some("0042")),
            (json!("12345678"), Some("12345678")),
            (json!(1234), Some("1234")),
            (json!(42), None),
            (json!(-1234), None),
            (json!(1234.5), None),
            (json!("12a4"), None),
            (json!("123456789"), None),
            (json!(null), None),
        ] {
            assert_eq!(new_pin(&value).ok().as_deref(), wanted, "{value}");
        }
    }
}
