//! Invariants for any text of a client: bodies, cursors, queries and hosts.
//!
//! The fuzz targets and the property tests run these functions, so that they also run without a fuzzer.
//!
//! Not here: the meaning of each text; tables beside the code have that.

use serde_json::Value;
use tally_rules::ledger::{Currency, MemberId, Uuid, WalletKey};
use tally_rules::{Micros, PlayerId, Record};
use tally_wire::api::wallets::Posting;
use tally_wire::api::{
    contests, holds, imports, keys, leaderboards, ledger_imports, members, players, scores, wallets,
};
use tally_wire::cursor::{self, Names, ScoreCursor};
use tally_wire::fields::FieldError;
use tally_wire::{Query, host};

/// Any JSON is read by each operation without a panic, and its errors have positions.
pub(crate) fn bodies(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let home = Currency::parse("KRW").expect("it is a code");
    let one = || value.clone();
    said(scores::read_submit(one()));
    said(scores::read_row(one()));
    said(leaderboards::read_definition(one()));
    said(players::read_profile(one()));
    said(keys::read_create(one()));
    said(contests::read_new(one()));
    said(contests::read_patch(one()));
    said(contests::read_application(Some(one())));
    said(contests::read_players(one()));
    said(contests::read_new_series(one()));
    said(contests::read_series_patch(one()));
    for country in [None, Some("82")] {
        let rules = members::MemberRules { country, password_length_min: 8 };
        said(members::read_new(one(), rules));
        said(members::read_change(one(), rules));
        said(members::read_payment(one(), country));
    }
    said(members::read_close(Some(one())));
    said(members::read_sign_in(one()));
    for posting in [Posting::Deposit, Posting::Withdrawal, Posting::Transfer] {
        drop(wallets::read_order(one(), posting, home));
    }
    drop(wallets::read_row(one(), home));
    drop(holds::read_hold(one(), home));
    drop(holds::read_capture(Some(one())));
    drop(holds::read_void(Some(one())));
    drop(wallets::read_reversal(Some(one())));
    said(imports::read_head(one()));
    said(imports::read_row(2, one()));
    said(ledger_imports::read_head(one()));
    said(ledger_imports::read_member(2, one()));
    said(ledger_imports::read_transfer(2, one()));
}

#[track_caller]
fn said<T>(read: Result<T, Vec<FieldError>>) {
    let Err(errors) = read else { return };
    assert!(!errors.is_empty(), "a rejection says why");
    for error in errors {
        assert!(!error.detail.is_empty() && !error.code.is_empty(), "{error:?}");
        assert!(error.pointer.is_empty() || error.pointer.starts_with('/'), "{error:?}");
    }
}

/// Any text is a cursor or is not, and a cursor reads back for its own list alone.
pub(crate) fn cursors(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let wallet = WalletKey {
        member: MemberId(Uuid([7; 16])),
        currency: Currency::parse("KRW").expect("it is a code"),
    };
    drop(ScoreCursor::decode(&text, 0));
    let _ = cursor::decode_history(wallet, &text)
        .map(|last| assert_eq!(cursor::encode_history(wallet, last), text));
    for list in [Names::Keys, Names::Contests, Names::Entrants] {
        if let Some(name) = cursor::decode_name(list, &text) {
            assert_eq!(cursor::decode_name(list, &cursor::encode_name(list, &name)).as_ref(), Some(&name));
        }
        drop(cursor::decode_name_of(list, "cup", &text));
    }
    let number =
        |at: usize| bytes.iter().skip(at).take(8).fold(0_i64, |sum, byte| sum << 8 | i64::from(*byte));
    if let Ok(player) = PlayerId::new(&text) {
        let record = Record { score: number(0), subscore: number(8), at: Micros(number(16)) };
        let cursor = ScoreCursor { list: number(24).cast_unsigned(), record, player };
        assert_eq!(ScoreCursor::decode(&cursor.encode(), cursor.list), Some(cursor.clone()));
        assert_eq!(ScoreCursor::decode(&cursor.encode(), !cursor.list), None);
    }
}

/// Any query is read without a panic; a value that was encoded decodes to itself, and every unknown parameter is reported.
pub(crate) fn queries(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut query = Query::parse(&text);
    let _ = (query.limit(), query.text("cursor"), query.score("score"), query.flag("force"));
    let _ = query.number("offset", 0, 10);
    if let Err(errors) = query.finish() {
        assert!(!errors.is_empty());
    }
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut query = Query::parse(&format!("cursor={encoded}"));
    assert_eq!(query.text("cursor").as_deref(), Some(&*text));
    assert!(query.finish().is_ok());
    assert_eq!(tally_wire::query::decode_segment(&encoded).as_deref(), Some(&*text));
}

/// A host has one name or none, with and without a port.
pub(crate) fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some(name) = host::name(&text) else { return };
    assert!(!name.is_empty() && text.starts_with(name));
    assert!(!name.contains(['@', '/', '\\', ' ', ',', '\0']), "{name:?}");
    assert!(name.starts_with('[') || !name.contains(':'), "{name:?}");
    assert_eq!(host::name(name), Some(name));
    assert_eq!(host::name(&format!("{name}:8420")), Some(name));
    for more in [":8420:1", ".:x", "@evil.example", "/", " "] {
        assert_ne!(host::name(&format!("{name}:1{more}")), Some(name));
    }
}
