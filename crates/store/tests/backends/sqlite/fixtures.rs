//! Files that earlier versions wrote: this one must open all of them.
//!
//! `tests/fixtures/v<schema>.db` was written by the last version with that schema, from [`fill`]. It is the state of a killed
//! process since there is a journal: some rows in the tables, others in a journal beside them. A released fixture is never
//! written again; with a new schema, run these tests once with `TALLY_WRITE_FIXTURE=1` to write the next one.

use super::fresh;
use crate::contract::{
    audit, boards, contests, create, credit, events, key, key_row, keys, ledger, load, open, players, record,
    request, reversals, scores, stored, walk, webhooks, write,
};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tally_rules::contest::ContestRecord;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::definition::ScoreType;
use tally_rules::ledger::account::{Account, AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{EntryKind, Hold, HoldId, Month, Transfer, TransferId, Uuid};
use tally_rules::outcome::Outcome;
use tally_rules::period::TimeSpan;
use tally_rules::{BoardId, Definition, Grant, Micros, Origin};
use tally_store::archive::ArchivedMonth;
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{
    Archived, BlockKey, BoardChange, BoardNo, ContestWriteSet, ImportKey, ImportRow, KeyChange, KeyRow,
    LedgerReadSet, LedgerWriteSet, ReadSet, Store, StoredBlock, Window, WindowKey, WindowRow, WriteSet,
};

pub(crate) const SCHEMA: u32 = 18;
/// A schema that no version was left with.
const NEVER: u32 = 7;
/// The parts of a file: its log, and its journal.
const BESIDE: [&str; 6] = ["", "-wal", ".journal-1", ".journal-1-wal", ".journal-2", ".journal-2-wal"];
/// The first schema with profiles and bans.
const WITH_PLAYERS: u32 = 2;
/// The first schema with members and money.
const WITH_LEDGER: u32 = 5;
/// The first schema with contests.
const WITH_CONTESTS: u32 = 6;
/// The first schema with series; contests before it had their applications in the store.
const WITH_SERIES: u32 = 8;
/// The first schema with events.
const WITH_EVENTS: u32 = 9;
/// The first schema with reversals.
const WITH_REVERSALS: u32 = 11;
/// The first schema with the origins of transfers and holds.
const WITH_ORIGINS: u32 = 12;
/// The first schema with the audit log.
const WITH_AUDIT: u32 = 13;
/// The first schema with scopes of keys.
const WITH_SCOPES: u32 = 14;

/// The first schema with metadata of transfers and holds.
const WITH_METADATA: u32 = 15;
/// The first schema with webhooks.
const WITH_WEBHOOKS: u32 = 16;
/// The first schema with promotional credit.
const WITH_CREDIT: u32 = 17;
/// The first schema with archives of the ledger.
const WITH_ARCHIVES: u32 = 18;

fn schemas() -> impl Iterator<Item = u32> {
    (1..=SCHEMA).filter(|schema| *schema != NEVER)
}

#[test]
fn files_of_every_schema_open_with_all_their_rows() {
    if std::env::var_os("TALLY_WRITE_FIXTURE").is_some() {
        let backend = fresh();
        let store = open(&backend);
        fill(&*store);
        copy(&backend.path(), &fixture(SCHEMA));
    }
    for schema in schemas() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.db");
        copy(&fixture(schema), &path);
        let store = SqliteStore::open(&path, &Options::default()).unwrap();
        verify(&store, schema);
        drop(store);
        verify(&SqliteStore::open(&path, &Options::default()).unwrap(), schema);
        let kept = folder.path().join(format!("old.db.v{schema}.bak"));
        assert_eq!(kept.exists(), schema < SCHEMA);
    }
}

/// A migrated file and a new one have the same tables, so that there is no third kind.
#[test]
fn a_new_file_has_the_tables_of_a_migrated_one() {
    let backend = fresh();
    drop(open(&backend));
    for schema in schemas() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.db");
        copy(&fixture(schema), &path);
        drop(SqliteStore::open(&path, &Options::default()).unwrap());
        assert_eq!(tables(&path), tables(&backend.path()), "schema {schema}");
    }
}

/// Words of the definitions, without the comments and spaces that SQLite keeps.
fn tables(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement =
        connection.prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name").unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let words = |sql: String| {
        let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    rows.map(|sql| words(sql.unwrap())).collect()
}

/// Copies a file and its journal, where it has one.
fn copy(from: &Path, to: &Path) {
    let beside = |path: &Path, more: &str| PathBuf::from(format!("{}{more}", path.display()));
    for more in BESIDE.iter().filter(|more| beside(from, more).exists()) {
        std::fs::copy(beside(from, more), beside(to, more)).unwrap();
    }
}

#[test]
fn the_fixture_with_a_journal_has_rows_in_both() {
    let journal = std::fs::read(format!("{}.journal-1-wal", fixture(4).display())).unwrap();
    let tables = std::fs::read(fixture(4)).unwrap();
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(&tables, "kept"));
    let of_a_profile = "{\"of\":\"Zoë\"}";
    assert!(holds(&journal, of_a_profile));
    assert!(!holds(&tables, of_a_profile));
}

fn fixture(schema: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{schema}.db"))
}

fn definition() -> Definition {
    let mut periods = vec![boards::period("week"), boards::period("season")];
    periods[1].no = 1;
    Definition { periods, rules_given: 2, ..boards::definitions()[2].clone() }
}

/// The first schema with periods of their own.
fn schedule(schema: u32) -> bool {
    schema >= 3
}

fn window() -> (WindowKey, WindowRow) {
    let key = WindowKey { board: BoardNo(1), window: Window(3) };
    let span = TimeSpan { start: Micros(-5), end: Micros(5) };
    (key, WindowRow { window: Window(3), rule: 0, span, closed: true, version: 1, stale: false, total: 4 })
}

fn import() -> (ImportKey, ImportRow) {
    let key = ImportKey { board: BoardNo(1), digest: [9; 32] };
    (key, ImportRow { lines: 101, taken: 99, refused: 1, finished: true })
}

const PLAYERS: [&str; 4] = ["ann", "bob\0", "zoë", "日本"];

fn money() -> LedgerWriteSet {
    let wallet = ledger::wallet_key(1, "KRW");
    let metadata = Some("{\"of\":\"Zoë\"}".into());
    let (origin, ended_by) = (Origin { metadata, ..ledger::origin(2) }, Origin::default());
    let expires_at = Some(Micros(9));
    let hold = Hold { wallet, amount: 5, expires_at, origin: origin.clone(), end: None, ended_by };
    let (kind, currency) = (EntryKind::Deposit, wallet.currency);
    let (reverses, credit) = (None, Some((wallet.member, 1)));
    let transfer = Transfer { kind, reverses, currency, amount: 50, debit: None, credit, origin };
    let account = AccountKey { account: Account::BankAsset, currency };
    let member = ledger::a_member("ann", true);
    LedgerWriteSet {
        handles: member
            .handles(wallet.member)
            .into_iter()
            .map(|handle| (handle, Some(wallet.member)))
            .collect(),
        members: vec![(wallet.member, member)],
        wallets: vec![
            (wallet, ledger::wallet(50, 1)),
            (ledger::wallet_key(2, "KRW"), credit::with_credit(1, 2, &[(30, 4)])),
        ],
        holds: vec![(HoldId(Uuid([2; 16])), hold)],
        reversals: reversals::links(),
        minted: vec![(keys::minted(7, "KRW"), Spent { day: 9, units: 8 })],
        archives: vec![(Month(1970 * 12), ArchivedMonth::requested())],
        archived: Archived::default(),
        transfers: vec![(TransferId(Uuid([3; 16])), transfer)],
        entries: vec![(EntryKey { wallet, sequence: 1 }, ledger::entry(3, 50, 50, true))],
        totals: vec![(account, Total { debits: 50, credits: 0 })],
        contests: ContestWriteSet {
            contests: vec![(contests::name("cup"), contests::row(1, true))],
            series: vec![(contests::name("series"), Some(contests::series_row(Some(5), true)))],
            ..ContestWriteSet::default()
        },
        webhooks: webhooks::rows_of_fixtures(),
        events: vec![(events::contest(1), events::event(7, 1))],
    }
}

fn verify_money(store: &dyn Store, schema: u32) {
    let (money, there) = (money(), schema >= WITH_LEDGER);
    let read = store.ledger();
    let (wallet, held) = money.wallets[0].clone();
    let wallets = read.wallets_of(wallet.member).unwrap();
    assert_eq!(wallets, if there { vec![(wallet.currency, held)] } else { Vec::new() });
    let (wallet_of_credit, credit) = money.wallets[1].clone();
    let wallets = read.wallets_of(wallet_of_credit.member).unwrap();
    let wanted = (wallet_of_credit.currency, credit);
    assert_eq!(wallets, if schema >= WITH_CREDIT { vec![wanted] } else { Vec::new() });
    assert_eq!(read.member(wallet.member).unwrap(), there.then(|| money.members[0].1.clone()));
    for (handle, member) in &money.handles {
        assert_eq!(read.member_of(handle).unwrap(), member.filter(|_| there));
    }
    let (entry, mut transfer, mut hold) =
        (&money.entries[0], money.transfers[0].clone(), money.holds[0].clone());
    if schema < WITH_METADATA {
        (transfer.1.origin.metadata, hold.1.origin.metadata) = (None, None);
    }
    if schema < WITH_ORIGINS {
        (transfer.1.origin, hold.1.origin) = <(Origin, Origin)>::default();
    }
    assert_eq!(read.entries(&[entry.0]).unwrap(), [there.then(|| entry.1.clone())]);
    assert_eq!(read.transfer(transfer.0).unwrap(), there.then_some(transfer.1));
    assert_eq!(read.hold(hold.0).unwrap(), there.then_some(hold.1));
    for (id, link) in money.reversals {
        assert_eq!(read.reversal(id).unwrap(), Some(link).filter(|_| schema >= WITH_REVERSALS));
    }
    let minted = vec![money.minted[0].0];
    let minted = ledger::read(store, LedgerReadSet { minted, ..LedgerReadSet::default() }).minted;
    assert_eq!(minted, [Some(money.minted[0].1).filter(|_| schema >= WITH_SCOPES)]);
    assert_eq!(read.totals().unwrap(), if there { money.totals } else { Vec::new() });
    let (id, contest) = &money.contests.contests[0];
    let kept = if schema < WITH_SERIES { ApplicationLocation::Store } else { contest.kept };
    let contest = ContestRecord { kept, ..contest.clone() };
    assert_eq!(read.contest(id).unwrap(), (schema >= WITH_CONTESTS).then_some(contest));
    let (id, series) = &money.contests.series[0];
    assert_eq!(read.series(id).unwrap(), series.clone().filter(|_| schema >= WITH_SERIES));
    let webhooks = read.list_webhook_rows(None, 9).unwrap().rows.into_iter();
    let wanted = if schema >= WITH_WEBHOOKS { money.webhooks } else { Vec::new() };
    assert_eq!(webhooks.map(|(key, row)| (key, Some(row))).collect::<Vec<_>>(), wanted);
    let months = read.archived_months().unwrap();
    assert_eq!(months, if schema >= WITH_ARCHIVES { money.archives } else { Vec::new() });
    let (topic, event) = &money.events[0];
    let found = read.events(*topic, 0, 9).unwrap();
    assert_eq!(found, if schema >= WITH_EVENTS { vec![(1, event.clone())] } else { Vec::new() });
}

/// A key with scopes and a cap.
fn scoped_key() -> KeyRow {
    KeyRow { grant: Grant::parse("money:mint audit:read KRW=5").unwrap(), ..key_row("scoped", 3) }
}

/// Something in every table.
pub(crate) fn fill(store: &dyn Store) {
    for name in ["kept", "deleted"] {
        let no = create(store, name, &definition()).unwrap();
        for window in [0, 3] {
            let rows = PLAYERS.iter().enumerate();
            let rows =
                rows.map(|(row, name)| (key(no.0, window, name), Some(record(i64::MAX / (row as i64 + 1)))));
            write(store, &scores(rows.collect())).unwrap();
        }
    }
    store.set_meta("secret", &[0, 1, 255]).unwrap();
    // Later rows stay in the journal.
    store.checkpoint().unwrap();
    let outcome = Outcome::Submitted {
        record: record(1),
        previous: Some(record(-1)),
        changed: true,
        score: ScoreType::Int64,
        subscore: false,
    };
    let changes = WriteSet {
        requests: vec![
            (request("s", "k"), stored(7, 8, outcome)),
            (request("t", "k"), stored(9, 10, Outcome::Removed)),
        ],
        imports: vec![import()],
        boards: vec![BoardChange::Delete(BoardNo(2))],
        keys: vec![
            KeyChange::Create(key_row("live", 1)),
            KeyChange::Create(key_row("revoked", 2)),
            KeyChange::Create(scoped_key()),
        ],
        profiles: vec![(players::player("zoë"), Some(players::profile("Zoë")))],
        bans: vec![players::ban(1, "ann", true)],
        windows: vec![(window().0, Some(window().1))],
        blocks: vec![(
            BlockKey { window: window().0, version: 1, block: 0 },
            StoredBlock { distinct_better: 3, entries: vec![1, 2, 3] },
        )],
        audit: audit::rows_of_fixtures(),
        ledger: money(),
        ..WriteSet::default()
    };
    write(store, &changes).unwrap();
    let keys = vec![KeyChange::Revoke("revoked".into(), Micros(3))];
    write(store, &WriteSet { keys, ..WriteSet::default() }).unwrap();
}

pub(crate) fn verify(store: &dyn Store, schema: u32) {
    let boards = store.boards().unwrap();
    assert_eq!(boards.len(), 1);
    assert_eq!(
        (boards[0].no, boards[0].id.as_str(), &boards[0].definition),
        (BoardNo(1), "kept", &definition())
    );
    let (part_key, row) = window();
    let windows = if schedule(schema) { vec![row] } else { Vec::new() };
    assert_eq!(store.windows(BoardNo(1)).unwrap(), windows);
    let block = store.block(&BlockKey { window: part_key, version: 1, block: 0 }).unwrap();
    assert_eq!(block, schedule(schema).then(|| StoredBlock { distinct_better: 3, entries: vec![1, 2, 3] }));
    for window in [0, 3] {
        let rows = PLAYERS.iter().enumerate();
        let wanted: Vec<_> =
            rows.map(|(row, name)| (key(0, 0, name).player, record(i64::MAX / (row as i64 + 1)))).collect();
        assert_eq!(walk(store, BoardNo(1), Window(window), 3), wanted);
        assert_eq!(walk(store, BoardNo(2), Window(window), 3), wanted, "not yet purged");
    }
    let outcome = Outcome::Submitted {
        record: record(1),
        previous: Some(record(-1)),
        changed: true,
        score: ScoreType::Int64,
        subscore: false,
    };
    let plan = ReadSet {
        board_names: vec![BoardId::new("deleted").unwrap()],
        requests: vec![request("s", "k"), request("t", "k")],
        imports: vec![import().0],
        ..ReadSet::default()
    };
    let loaded = load(store, &plan);
    assert_eq!((loaded.board_names, loaded.next_board), (vec![None], BoardNo(3)));
    assert_eq!(loaded.requests, [Some(stored(7, 8, outcome)), Some(stored(9, 10, Outcome::Removed))]);
    assert_eq!(loaded.imports, [Some(import().1)]);
    let profile = store.profiles(&[players::player("zoë")]).unwrap().remove(0).unwrap();
    assert_eq!(profile, (schema >= WITH_PLAYERS).then(|| players::profile("Zoë")));
    let bans = if schema >= WITH_PLAYERS { vec![players::player("ann")] } else { Vec::new() };
    assert_eq!(store.bans(BoardNo(1)).unwrap(), bans);
    let mut of_keys = vec![key_row("live", 1), scoped_key()];
    of_keys.truncate(if schema >= WITH_SCOPES { 2 } else { 1 });
    assert_eq!(store.keys().unwrap(), of_keys);
    assert_eq!(store.meta("secret").unwrap(), Some(vec![0, 1, 255]));
    let mut acts = audit::rows_of_fixtures();
    acts.reverse();
    let found = store.list_audit(audit::LAST, 99).unwrap().rows;
    assert_eq!(found, if schema >= WITH_AUDIT { acts } else { Vec::new() });
    verify_money(store, schema);
}
