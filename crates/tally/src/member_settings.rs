//! Parses the settings of members.

use crate::config::{Config, Usage};
use tally_rules::ledger::pin::{ATTEMPTS_MAX, PinRule};
use tally_server::Network;
use tally_service::members::MemberSettings;
use tally_service::members::cache::{CacheSettings, Policy};
use tally_service::members::password::Cost;

/// Settings of sign-in, phone numbers and caches.
pub(crate) fn members(config: &Config) -> Result<MemberSettings, Usage> {
    let country = config.text("members.phone_country");
    if !country.bytes().all(|byte| byte.is_ascii_digit()) || country.starts_with('0') || country.len() > 4 {
        return Err(config.wrong("members.phone_country", "1 to 4 digits that do not begin with 0, or empty"));
    }
    let memory = config.parse("members.password_memory_kib", "a whole number")?;
    let passes = config.parse("members.password_passes", "a whole number")?;
    let cost = Cost::new(memory, passes).ok_or_else(|| {
        let what = "8 to 262144, and `members.password_passes` 1 to 16";
        config.wrong("members.password_memory_kib", what)
    })?;
    let password_length_min = config.count("members.password_length_min")?;
    if password_length_min > 64 {
        return Err(config.wrong("members.password_length_min", "1 to 64"));
    }
    let passwords_at_once = match config.text("members.passwords_at_once") {
        "auto" => std::thread::available_parallelism().map_or(1, |count| count.get().div_ceil(2)),
        _ => config.count("members.passwords_at_once")?,
    };
    let policy = match config.text("members.cache_policy") {
        "s3-fifo" => Policy::S3Fifo,
        "lru" => Policy::Lru,
        _ => return Err(config.wrong("members.cache_policy", "s3-fifo or lru")),
    };
    let phone_country = Some(country).filter(|country| !country.is_empty()).map(Into::into);
    Ok(MemberSettings {
        phone_country,
        password_length_min,
        cost,
        passwords_at_once,
        passwords_waiting_max: config.count("members.passwords_waiting_max")?,
        token_time: config.duration("auth.token_ttl")?,
        cache: CacheSettings {
            entries: config.bound("members.cache_entries")?,
            policy,
            time: config.duration("members.cache_time")?,
            shared_time: config.duration("members.cache_shared_time")?,
        },
    })
}

/// Proxies that pass the address of a client that signs in.
pub(crate) fn trusted_proxies(config: &Config) -> Result<Vec<Network>, Usage> {
    const NAME: &str = "http.trusted_proxies";
    let wrong = |()| config.wrong(NAME, "addresses or networks such as 10.0.0.0/8, comma-separated");
    config.list(NAME).iter().map(|text| text.parse().map_err(wrong)).collect()
}

/// How many wrong PINs lock a wallet, and for how long.
pub(crate) fn pin(config: &Config) -> Result<PinRule, Usage> {
    let attempts = config.count("pin.attempts")?;
    let attempts = u8::try_from(attempts).ok().filter(|attempts| *attempts <= ATTEMPTS_MAX);
    let attempts = attempts.ok_or_else(|| config.wrong("pin.attempts", "1 to 20"))?;
    let lock_micros = i64::try_from(config.duration("pin.lock")?.as_micros()).unwrap_or(i64::MAX);
    Ok(PinRule { attempts, lock_micros })
}
