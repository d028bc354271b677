//! Money as JSON: amounts, transfers, wallets, their entries, holds and accounts.
//!
//! Replies contain amounts as text, because they have more digits than the numbers of many languages. A rule refuses an
//! invalid amount (422). A field of another type or a missing field is malformed (400) and takes precedence. An id of another
//! form belongs to nothing, and gets the reply of an id that does not exist. Not here: whether a transfer is made.

use crate::api::credits::{CreditJson, instant};
use crate::api::metadata::{metadata, shown};
use crate::api::row_key::take_row_key;
use crate::fields::{FieldError, Fields, boolean, text};
use crate::time;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::entry::REFERENCE_BYTES_MAX;
use tally_rules::ledger::{
    Amount, Currency, Entry, MemberId, TransferKind, TransferRequest, Uuid, Wallet, WalletKey,
};
use tally_rules::rejection::Limit;
use tally_rules::{Origin, Rejection};

/// The most digits of an amount.
const AMOUNT_DIGITS_MAX: usize = 16;

/// Why a body is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadBody {
    /// It is malformed.
    Fields(Vec<FieldError>),
    /// A rule refuses the value of a field.
    Rejected(&'static str, Rejection),
}

impl From<Vec<FieldError>> for BadBody {
    fn from(errors: Vec<FieldError>) -> Self {
        Self::Fields(errors)
    }
}

/// Reads an id. A text of another form becomes an id that nothing has.
pub fn read_id(text: &str) -> Uuid {
    Uuid::parse(text).unwrap_or(Uuid([0; 16]))
}

/// Reads an amount. The outer error is for values that are no amount at all.
pub fn read_amount(value: &Value) -> Result<Result<Amount, Rejection>, &'static str> {
    Ok(match value {
        Value::Null => return Err("must be a whole number of the smallest unit, or a string of one"),
        // As written: a point or an exponent makes it no integer.
        Value::Number(number) => amount_text(&number.to_string()),
        Value::String(text) => amount_text(text),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(Rejection::InvalidAmount),
    })
}

fn amount_text(text: &str) -> Result<Amount, Rejection> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || text.is_empty() || text.starts_with('0') {
        return Err(Rejection::InvalidAmount);
    }
    let (number, fits) = (text.parse().ok(), text.len() <= AMOUNT_DIGITS_MAX);
    number.filter(|_| fits).map_or(Err(Rejection::LimitExceeded(Limit::Amount(number))), Amount::new)
}

/// Reads the code of a currency.
pub fn read_currency(text: &str) -> Result<Currency, &'static str> {
    Currency::parse(text).ok_or("must be the code of a currency: 1 to 8 of A to Z and 0 to 9")
}

pub(super) fn member(value: &Value) -> Result<MemberId, &'static str> {
    Ok(MemberId(read_id(&text(value)?)))
}

pub(super) fn currency(value: &Value) -> Result<Currency, &'static str> {
    read_currency(&text(value)?)
}

/// Reads a reason, which is as long as a reference at most.
pub(super) fn read_reason(value: &Value) -> Result<Arc<str>, &'static str> {
    reference(value)
}

/// Reads a reference.
fn reference(value: &Value) -> Result<Arc<str>, &'static str> {
    let text = text(value)?;
    if text.len() > REFERENCE_BYTES_MAX {
        return Err("must be a string of at most 255 bytes");
    }
    Ok(text.into())
}

/// The request that a transfer is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    /// `POST /v1/deposits`
    Deposit,
    /// `POST /v1/withdrawals`
    Withdrawal,
    /// `POST /v1/transfers`, and rows of its batch.
    Transfer,
}

/// A transfer, and why it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRead {
    /// The transfer.
    pub order: TransferRequest,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// Data of the caller.
    pub metadata: Option<Arc<str>>,
}

/// Reads a transfer; `home` is the default currency.
pub fn read_order(body: Value, posting: Posting, home: Currency) -> Result<OrderRead, BadBody> {
    let mut fields = Fields::new("", body)?;
    let read = order(&mut fields, posting);
    fields.finish()?;
    read.expect("no field is wrong").at_home(home)
}

/// A row of a batch of transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRow {
    /// The transfer, and why.
    pub read: OrderRead,
    /// Its idempotency key.
    pub id: Option<String>,
    /// Whether it is linked to the next row.
    pub linked: bool,
}

/// Reads one row of a batch; pointers are relative to the row.
pub fn read_row(row: Value, home: Currency) -> Result<TransferRow, BadBody> {
    let mut fields = Fields::new("", row)?;
    let id = take_row_key(&mut fields);
    let read = order(&mut fields, Posting::Transfer);
    let linked = fields.optional("linked", boolean);
    fields.finish()?;
    let read = read.expect("no field is wrong").at_home(home)?;
    Ok(TransferRow { read, id, linked: linked.unwrap_or(false) })
}

/// The fields of a transfer.
struct Read {
    what: TransferKind,
    currency: Option<Currency>,
    amount: Result<Amount, Rejection>,
    reference: Option<Arc<str>>,
    reason: Option<Arc<str>>,
    metadata: Option<Arc<str>>,
}

impl Read {
    fn at_home(self, home: Currency) -> Result<OrderRead, BadBody> {
        let amount = self.amount.map_err(|rejection| BadBody::Rejected("/amount", rejection))?;
        let currency = self.currency.unwrap_or(home);
        let order = TransferRequest { what: self.what, currency, amount, reference: self.reference };
        Ok(OrderRead { order, reason: self.reason, metadata: self.metadata })
    }
}

fn order(fields: &mut Fields, posting: Posting) -> Option<Read> {
    let from = (posting != Posting::Deposit).then(|| fields.required("from", member));
    let to = (posting != Posting::Withdrawal).then(|| fields.required("to", member));
    let currency = fields.optional("currency", currency);
    let amount = fields.required("amount", read_amount);
    let (reference, reason) = (fields.optional("reference", reference), reason(fields));
    let metadata = metadata(fields);
    let expires_at = match posting {
        Posting::Deposit => fields.optional("expires_at", instant),
        Posting::Withdrawal | Posting::Transfer => None,
    };
    let promotional = match posting {
        Posting::Withdrawal => fields.optional("promotional", boolean),
        Posting::Deposit | Posting::Transfer => None,
    };
    let what = match posting {
        Posting::Transfer => TransferKind::Transfer { from: from??, to: to?? },
        Posting::Withdrawal if promotional == Some(false) => TransferKind::PlainWithdrawal { from: from?? },
        Posting::Withdrawal => TransferKind::Withdrawal { from: from?? },
        Posting::Deposit => match expires_at {
            Some(expires_at) => TransferKind::Promotion { to: to??, expires_at },
            None => TransferKind::Deposit { to: to?? },
        },
    };
    Some(Read { what, currency, amount: amount?, reference, reason, metadata })
}

/// Takes the reason of a request.
pub(super) fn reason(fields: &mut Fields) -> Option<Arc<str>> {
    fields.optional("reason", read_reason)
}

/// The fields of a reversal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReversalRead {
    /// The amount. The default is what is left.
    pub amount: Option<Amount>,
    /// Why.
    pub reason: Option<Arc<str>>,
}

/// Reads the body of a reversal. Without a body, all that is left is reversed.
pub fn read_reversal(body: Option<Value>) -> Result<ReversalRead, BadBody> {
    let Some(body) = body else { return Ok(ReversalRead::default()) };
    let mut fields = Fields::new("", body)?;
    let amount = fields.optional("amount", read_amount);
    let reason = reason(&mut fields);
    fields.finish()?;
    let amount = amount.transpose().map_err(|rejection| BadBody::Rejected("/amount", rejection))?;
    Ok(ReversalRead { amount, reason })
}

/// A wallet.
#[derive(Clone, Debug, Serialize)]
pub struct WalletJson {
    member: String,
    currency: String,
    balance: String,
    held: String,
    available: String,
    #[serde(flatten)]
    credit: Option<CreditJson>,
}

impl WalletJson {
    /// A wallet in a reply.
    pub fn new(key: WalletKey, wallet: &Wallet) -> Self {
        Self {
            member: key.member.0.to_string(),
            currency: key.currency.to_string(),
            balance: wallet.balance.to_string(),
            held: wallet.held.to_string(),
            available: wallet.available().to_string(),
            credit: wallet.credits.as_deref().map(CreditJson::new),
        }
    }
}

/// An entry of a wallet.
#[derive(Clone, Debug, Serialize)]
pub struct TransactionJson {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    currency: String,
    amount: String,
    before: String,
    after: String,
    counterparty: Option<String>,
    #[serde(flatten)]
    name: Option<NameJson>,
    group_id: String,
    reference: Option<String>,
    status: &'static str,
    at: String,
    #[serde(flatten)]
    origin: Option<OriginJson>,
}

/// The name of the counterparty, in histories.
#[derive(Clone, Debug, Serialize)]
struct NameJson {
    counterparty_name: Option<String>,
}

/// The actor, the reason and the metadata of a transfer, for callers that may see them.
#[derive(Clone, Debug, Serialize)]
struct OriginJson {
    actor: String,
    reason: Option<String>,
    metadata: Option<Value>,
}

impl TransactionJson {
    /// An entry of a wallet in this currency.
    pub fn new(currency: Currency, entry: &Entry) -> Self {
        Self {
            id: entry.id().to_string(),
            kind: entry.kind.as_str(),
            currency: currency.to_string(),
            amount: entry.amount.to_string(),
            before: entry.before().to_string(),
            after: entry.after.to_string(),
            counterparty: entry.counterparty.map(|member| member.0.to_string()),
            name: None,
            group_id: entry.transfer.0.to_string(),
            reference: entry.reference.as_deref().map(str::to_owned),
            status: "posted",
            at: time::format(entry.at()),
            origin: None,
        }
    }

    /// The same with the name of the counterparty.
    pub fn with_name(self, name: Option<&Arc<str>>) -> Self {
        let counterparty_name = name.map(|name| name.to_string());
        Self { name: Some(NameJson { counterparty_name }), ..self }
    }

    /// The same with the origin of its transfer.
    pub fn with_origin(self, origin: &Origin) -> Self {
        let (actor, reason) = (origin.actor.to_string(), origin.reason.as_deref().map(str::to_owned));
        Self { origin: Some(OriginJson { actor, reason, metadata: shown(origin) }), ..self }
    }
}

/// The total of an account.
#[derive(Clone, Debug, Serialize)]
pub struct AccountJson {
    account: &'static str,
    currency: String,
    debits: String,
    credits: String,
}

impl AccountJson {
    /// An account in a reply.
    pub fn new(key: &AccountKey, total: &Total) -> Self {
        Self {
            account: Account::as_str(key.account),
            currency: key.currency.to_string(),
            debits: total.debits.to_string(),
            credits: total.credits.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_amount_is_a_whole_number_as_number_or_text() {
        let none: &str = "malformed";
        for (text, wanted) in [
            ("1", "1"),
            ("\"1\"", "1"),
            ("1000000000000000", "1000000000000000"),
            ("\"1000000000000000\"", "1000000000000000"),
            ("1000000000000001", "limit_exceeded"),
            ("\"9999999999999999\"", "limit_exceeded"),
            ("\"10000000000000000\"", "limit_exceeded"),
            ("\"99999999999999999999999999\"", "limit_exceeded"),
            ("9223372036854775807", "limit_exceeded"),
            ("18446744073709551615", "limit_exceeded"),
            ("99999999999999999999999", "limit_exceeded"),
            ("1e30", "invalid_amount"),
            ("1e400", "invalid_amount"),
            ("0", "invalid_amount"),
            ("-0", "invalid_amount"),
            ("-1", "invalid_amount"),
            ("-99999999999999999999999", "invalid_amount"),
            ("100.0", "invalid_amount"),
            ("1.5", "invalid_amount"),
            ("1e2", "invalid_amount"),
            ("true", "invalid_amount"),
            ("[]", "invalid_amount"),
            ("{}", "invalid_amount"),
            ("\"\"", "invalid_amount"),
            ("\"0\"", "invalid_amount"),
            ("\"-1\"", "invalid_amount"),
            ("\"+1\"", "invalid_amount"),
            ("\"01\"", "invalid_amount"),
            ("\" 1\"", "invalid_amount"),
            ("\"1.0\"", "invalid_amount"),
            ("\"1e2\"", "invalid_amount"),
            ("\"0x10\"", "invalid_amount"),
            ("\"1,000\"", "invalid_amount"),
            ("\"١\"", "invalid_amount"),
            ("null", none),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let got = match read_amount(&value) {
                Ok(Ok(amount)) => amount.units().to_string(),
                Ok(Err(rejection)) => rejection.code().to_owned(),
                Err(_) => none.to_owned(),
            };
            assert_eq!(got, wanted, "{text}");
        }
    }

    #[test]
    fn what_is_malformed_comes_before_what_is_refused() {
        let home = Currency::parse("KRW").unwrap();
        let body = json!({"from": 1, "amount": 0, "currency": "krw", "reference": "x".repeat(256), "reason": 1, "metadata": 1, "x": 1});
        let Err(BadBody::Fields(errors)) = read_order(body, Posting::Transfer, home) else { panic!("it is") };
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/from", "/to", "/currency", "/reference", "/reason", "/metadata", "/x"]);
        let body = json!({"from": "a", "to": "b", "amount": 0});
        let wanted = BadBody::Rejected("/amount", Rejection::InvalidAmount);
        assert_eq!(read_order(body, Posting::Transfer, home), Err(wanted));
        for posting in [Posting::Deposit, Posting::Withdrawal] {
            assert!(matches!(read_order(json!({"amount": 1}), posting, home), Err(BadBody::Fields(_))));
        }
    }
}
