//! Settings of money: the currencies, and the rules of each.
//!
//! Not here: the check that a filled store keeps its currencies
//! (`service/src/ledger/currencies.rs`).

use crate::config::{Config, Usage};
use crate::member_settings;
use crate::settings::{
    BALANCE_MAX_OF, CURRENCIES, DAY_MAX_OF, TRANSFER_MAX_OF, TRANSFERS_OF, WITHDRAWALS_OF,
};
use std::collections::BTreeMap;
use tally_rules::contest::definition::ContestLimits;
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::money::DIGITS_MAX;
use tally_rules::ledger::{Currencies, Currency};
use tally_service::Settings;
use tally_service::ledger::LedgerSettings;

/// Parses the settings of money.
pub(crate) fn ledger(config: &Config, settings: &Settings) -> Result<LedgerSettings, Usage> {
    let currencies = currencies(config)?;
    let limits = limits(config, &currencies)?;
    let pin = member_settings::pin(config)?;
    let lane = settings.lane;
    Ok(LedgerSettings { currencies, limits, pin, contests: contests(config)?, lane })
}

/// The rules of each currency: its own, or those for all.
fn limits(config: &Config, currencies: &Currencies) -> Result<BTreeMap<Currency, CurrencyLimits>, Usage> {
    let mut all = CurrencyLimits::default();
    for (name, before) in RULES {
        set(&mut all, before, name, config.text(name))?;
    }
    let mut limits: BTreeMap<Currency, CurrencyLimits> = currencies.all().map(|code| (code, all)).collect();
    for (_, before) in RULES {
        for (code, value) in config.of_currencies(before) {
            let name = format!("{before}{code}");
            let own = Currency::parse(code).and_then(|code| limits.get_mut(&code));
            let own = own.ok_or_else(|| {
                Usage(format!(
                    "setting `{name}` is of a currency that is not configured: `{CURRENCIES}{code}`"
                ))
            })?;
            set(own, before, &name, value)?;
        }
    }
    Ok(limits)
}

/// Each rule: the setting for all currencies, and the name before the code of one.
const RULES: [(&str, &str); 5] = [
    ("wallet.transfer_max", TRANSFER_MAX_OF),
    ("wallet.day_max", DAY_MAX_OF),
    ("wallet.balance_max", BALANCE_MAX_OF),
    ("wallet.transfers", TRANSFERS_OF),
    ("wallet.withdrawals", WITHDRAWALS_OF),
];

/// Sets one rule of a currency.
fn set(rules: &mut CurrencyLimits, rule: &str, name: &str, value: &str) -> Result<(), Usage> {
    let amount = || amount_or_off(name, value);
    let is_off = || match value {
        "true" => Ok(false),
        "false" => Ok(true),
        _ => Err(Usage(format!("setting `{name}` is `{value}` and must be `true` or `false`"))),
    };
    match rule {
        TRANSFER_MAX_OF => rules.per_transfer = amount()?,
        DAY_MAX_OF => rules.per_day = amount()?,
        BALANCE_MAX_OF => rules.balance = amount()?,
        TRANSFERS_OF => rules.no_transfers = is_off()?,
        _ => rules.no_withdrawals = is_off()?,
    }
    Ok(())
}

/// The limits of contests.
fn contests(config: &Config) -> Result<ContestLimits, Usage> {
    let count = |name: &'static str| {
        let what = "a whole number from 1 to 4294967295";
        let count: u32 = config.parse(name, what)?;
        if count > 0 { Ok(count) } else { Err(config.wrong(name, what)) }
    };
    let members_max = count("contests.members_max")?;
    // The limit of all members also applies to paying ones.
    let paying_members_max = count("contests.paying_members_max")?.min(members_max);
    Ok(ContestLimits {
        members_max,
        paying_members_max,
        applications_max: count("contests.applications_max")?,
    })
}

/// How long leaderboards of ended contests are kept, in microseconds; `None` for `forever`.
pub(crate) fn contests_keep(config: &Config) -> Result<Option<i64>, Usage> {
    let keep = config.duration_or("contests.keep", "forever")?;
    Ok(keep.map(|time| i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
}

/// An amount of money, or `off`.
fn amount_or_off(name: &str, value: &str) -> Result<Option<i64>, Usage> {
    if value == "off" {
        return Ok(None);
    }
    let what = "a whole number of the smallest unit, 1 or more, or `off`";
    let units = value.parse().ok().filter(|units: &i64| *units > 0);
    units.map(Some).ok_or_else(|| Usage(format!("setting `{name}` is `{value}` and must be {what}")))
}

/// The configured currencies.
fn currencies(config: &Config) -> Result<Currencies, Usage> {
    let code = |name: &str, text: &str| {
        let what = "the code of a currency: 1 to 8 of A to Z and 0 to 9";
        Currency::parse(text)
            .ok_or_else(|| Usage(format!("setting `{name}` has `{text}`, which must be {what}")))
    };
    let mut digits = BTreeMap::new();
    for (text, value) in config.of_currencies(CURRENCIES) {
        let name = format!("{CURRENCIES}{text}");
        let known = value.parse().ok().filter(|digits| *digits <= DIGITS_MAX);
        let wrong = || {
            Usage(format!("setting `{name}` is `{value}` and must be its minor digits: 0 to {DIGITS_MAX}"))
        };
        digits.insert(code(&name, text)?, known.ok_or_else(wrong)?);
    }
    let home = code("wallet.currency", config.text("wallet.currency"))?;
    let of_home = digits.get(&home).copied().unwrap_or(0);
    Ok(Currencies::new((home, of_home), digits))
}
