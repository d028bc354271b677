//! Settings of money: which currencies there are, and what may be transferred.
//!
//! Not here: that a filled store keeps its currencies (`service/src/wallets/lane.rs`).

use crate::config::{Config, Usage};
use crate::member_settings;
use crate::settings::CURRENCIES;
use std::collections::BTreeMap;
use tally_rules::contest::definition::Bounds;
use tally_rules::ledger::limits::Limits;
use tally_rules::ledger::money::DIGITS_MAX;
use tally_rules::ledger::{Currencies, Currency};
use tally_service::Settings;
use tally_service::wallets::LedgerSettings;

/// What the settings say of money.
pub(crate) fn ledger(config: &Config, settings: &Settings) -> Result<LedgerSettings, Usage> {
    let limits = Limits {
        per_transfer: amount_or_off(config, "wallet.transfer_max")?,
        per_day: amount_or_off(config, "wallet.day_max")?,
    };
    let pin = member_settings::pin(config)?;
    let lane = settings.lane;
    Ok(LedgerSettings { currencies: currencies(config)?, limits, pin, contests: contests(config)?, lane })
}

/// How large contests may be.
fn contests(config: &Config) -> Result<Bounds, Usage> {
    let count = |name: &'static str| {
        let what = "a whole number from 1 to 4294967295";
        let count: u32 = config.parse(name, what)?;
        if count > 0 { Ok(count) } else { Err(config.wrong(name, what)) }
    };
    let members_max = count("contests.members_max")?;
    // The bound of all is one of these too.
    let paying_members_max = count("contests.paying_members_max")?.min(members_max);
    Ok(Bounds { members_max, paying_members_max, applications_max: count("contests.applications_max")? })
}

/// An amount of money, or `off`.
fn amount_or_off(config: &Config, name: &'static str) -> Result<Option<i64>, Usage> {
    if config.text(name) == "off" {
        return Ok(None);
    }
    let what = "a whole number of the smallest unit, 1 or more, or `off`";
    let units: i64 = config.parse(name, what)?;
    if units > 0 { Ok(Some(units)) } else { Err(config.wrong(name, what)) }
}

/// The currencies there are.
fn currencies(config: &Config) -> Result<Currencies, Usage> {
    let code = |name: &str, text: &str| {
        let what = "the code of a currency: 1 to 8 of A to Z and 0 to 9";
        Currency::parse(text)
            .ok_or_else(|| Usage(format!("setting `{name}` has `{text}`, which must be {what}")))
    };
    let mut digits = BTreeMap::new();
    for (text, (value, _)) in &config.currencies {
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
