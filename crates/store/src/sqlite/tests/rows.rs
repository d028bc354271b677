//! Rows as input: a row that this program cannot have written is corrupt, and causes no panic. A corrupt row fails the read
//! of its key; a read of many rows leaves it out and records it.

use super::*;
use crate::BoardChange;
use crate::{Reads, Transactions};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::{Currency, HoldId, MemberId, TransferId, Uuid, WalletKey};

/// Opens a store whose file was changed by the statements, and calls `read`.
fn opened<T>(sql: &str, read: impl Fn(&SqliteStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let place = Place::new();
    drop(place.open().unwrap());
    place.sql(&format!("PRAGMA ignore_check_constraints = 1; {BOARD} {sql}"));
    place.open().and_then(|store| read(&store))
}

/// Checks that the read fails, and names the row.
fn damaged(sql: &str, read: impl Fn(&SqliteStore) -> Result<(), StoreError>) {
    match opened(sql, read) {
        Err(StoreError::CorruptRow(row)) => {
            assert!(!row.table.is_empty() && !row.key.is_empty() && !row.what.is_empty(), "{sql}: {row:?}");
        }
        other => panic!("{sql}: {other:?}"),
    }
}

/// Checks that the read fails as a whole.
fn corrupt(sql: &str, read: impl Fn(&SqliteStore) -> Result<(), StoreError>) {
    let read = opened(sql, read);
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{sql}: {read:?}");
}

/// Checks that the read returns no row, and that the row is recorded under that key.
fn left_out(sql: &str, key: &str, read: impl Fn(&SqliteStore) -> Result<usize, StoreError>) {
    let noted = opened(sql, |store| {
        assert_eq!(read(store)?, 0, "{sql}");
        Ok(store.corrupt_rows())
    });
    let noted = noted.unwrap();
    assert!(matches!(noted.as_slice(), [row] if row.key == key && !row.what.is_empty()), "{sql}: {noted:?}");
}

const BOARD: &str = "INSERT INTO boards VALUES (1, 'b', 'descending', 'best', 'ordinal', 'first', 'int64', 'none', \
     1, 0, 0, 0);";

/// Makes the table of scores hold values of any type, as corrupt pages do.
const LOOSE: &str = "PRAGMA writable_schema = ON; \
     UPDATE sqlite_schema SET sql = replace(sql, 'STRICT, ', '') WHERE name = 'scores'; \
     PRAGMA writable_schema = RESET;";

#[test]
fn boards_that_cannot_be_are_damage() {
    let rows = [
        "UPDATE boards SET \"order\" = 'sideways';",
        "UPDATE boards SET \"update\" = '';",
        "UPDATE boards SET ranking = 'Ordinal';",
        "UPDATE boards SET ties = CAST(x'ff' AS TEXT);",
        "UPDATE boards SET score = 'int32';",
        "UPDATE boards SET subscore = 'no';",
        "UPDATE boards SET all_time = 2;",
        "UPDATE boards SET all_time = 0;",
        "UPDATE boards SET no = 4294967296;",
        "UPDATE boards SET no = -1;",
        "UPDATE boards SET id = 'a@b';",
        "UPDATE boards SET \"update\" = 'sum', subscore = 'ascending';",
        "INSERT INTO periods VALUES (1, 0, 'Not A Name', '', '', 1, 1, 0, NULL);",
        "INSERT INTO periods VALUES (1, 0, 'week', '', '', -1, 1, 0, NULL);",
        "INSERT INTO periods VALUES (1, 0, 'week', '', '', 1, 4294967296, 0, NULL);",
        "INSERT INTO periods VALUES (1, 0, 'week', '', '', 1, 1, 0, x'01');",
    ];
    for sql in rows {
        let key = if sql.contains("a@b") { "a@b" } else { "b" };
        left_out(sql, key, |store| Ok(store.boards()?.len()));
        // Its name stays taken.
        let row = BoardRow {
            no: BoardNo(7),
            id: tally_rules::BoardId::new("b").unwrap(),
            definition: tally_rules::Definition::default(),
            created_at: Micros(0),
        };
        let create = WriteSet { boards: vec![BoardChange::Create(row)], ..WriteSet::default() };
        if key == "b" {
            damaged(sql, |store| store.run(&ReadSet::default(), &mut |_| create.clone()).map(drop));
        }
    }
}

#[test]
fn records_that_cannot_be_are_damage() {
    let walk = |store: &SqliteStore| store.scan_scores(BoardNo(1), Window(0), None, 9, &mut |_, _| {});
    left_out("INSERT INTO scores VALUES (1, 0, CAST(x'61ff' AS TEXT), 1, 1, 1);", "1/0/x'61ff'", walk);
    let long = "x".repeat(129);
    left_out(&format!("INSERT INTO scores VALUES (1, 0, '{long}', 1, 1, 1);"), &format!("1/0/{long}"), walk);
    let key = |player: &str| ScoreKey {
        board: BoardNo(1),
        window: Window(0),
        player: PlayerId::new(player).unwrap(),
    };
    let words = format!("{LOOSE} INSERT INTO scores VALUES (1, 0, 'a', 'many', 1, 1);");
    left_out(&words, "1/0/a", walk);
    damaged(&words, |store| store.records(&[key("a")]).map(drop));
    let plan = ReadSet { scores: vec![key("a")], ..ReadSet::default() };
    damaged(&words, |store| store.run(&plan, &mut |_| WriteSet::default()).map(drop));
    opened(&words, |store| {
        walk(store)?;
        assert!(store.is_corrupt(&key("a")) && !store.is_corrupt(&key("b")));
        Ok(())
    })
    .unwrap();
    // The other rows of the page are returned, for any position of the corrupt one.
    let others =
        ["0", "aa", "b", "c"].map(|player| format!("INSERT INTO scores VALUES (1, 0, '{player}', 1, 0, 1);"));
    opened(&format!("{words} {}", others.concat()), |store| {
        let (mut found, mut after) = (Vec::new(), None::<PlayerId>);
        while store.scan_scores(BoardNo(1), Window(0), after.clone().as_ref(), 1, &mut |player, _| {
            found.push(player.as_str().to_owned());
            after = Some(player);
        })? == 1
        {}
        assert_eq!(found, ["0", "aa", "b", "c"]);
        assert_eq!(store.corrupt_rows().len(), 1);
        Ok(())
    })
    .unwrap();
}

#[test]
fn requests_keys_imports_and_numbers_that_cannot_be_are_damage() {
    let request = tally_rules::idempotency::RequestKey { scope: "s".into(), key: "k".into() };
    let plan = ReadSet { requests: vec![request], ..ReadSet::default() };
    let read = |store: &SqliteStore| store.run(&plan, &mut |_| WriteSet::default()).map(drop);
    damaged("INSERT INTO requests VALUES ('s', 'k', zeroblob(16), 0, x'');", read);
    damaged("INSERT INTO requests VALUES ('s', 'k', zeroblob(16), 0, x'ff');", read);
    damaged("INSERT INTO requests VALUES ('s', 'k', zeroblob(15), 0, x'02');", read);
    let windows = |store: &SqliteStore| store.windows(BoardNo(1)).map(drop);
    damaged("INSERT INTO parts VALUES (1, -1, 0, 0, 1, 0, 0, 0, 0);", windows);
    damaged("INSERT INTO parts VALUES (1, 1, 0, 0, 1, 2, 0, 0, 0);", windows);
    damaged("INSERT INTO parts VALUES (1, 1, 0, 0, 1, 1, -1, 0, 0);", windows);
    let keys = |store: &SqliteStore| Ok(store.keys()?.len());
    for values in ["zeroblob(32), 'root', '', 0, NULL, NULL", "zeroblob(31), 'admin', '', 0, NULL, NULL"] {
        left_out(&format!("INSERT INTO keys VALUES (1, 'k', {values});"), "k", keys);
    }
    for granted in ["", "money:make", "admin server", "money:mint KRW=0"] {
        let words =
            format!("INSERT INTO keys VALUES (1, 'k', zeroblob(32), 'reader', '', 0, NULL, '{granted}');");
        left_out(&words, "k", keys);
    }
    let import = ImportKey { board: BoardNo(1), digest: [0; 32] };
    let progress = |store: &SqliteStore| store.import_progress(&import).map(drop);
    damaged("INSERT INTO imports VALUES (1, zeroblob(32), -1, 0, 0, 0);", progress);
    damaged("INSERT INTO imports VALUES (1, zeroblob(32), 0, 0, 0, 2);", progress);
    let plan = ReadSet { board_names: vec![tally_rules::BoardId::new("x").unwrap()], ..ReadSet::default() };
    let next = |store: &SqliteStore| store.run(&plan, &mut |_| WriteSet::default()).map(drop);
    corrupt("UPDATE meta SET value = x'ff';", next);
    corrupt("DELETE FROM meta;", next);
}

#[test]
fn money_that_cannot_be_is_damage() {
    let id = "zeroblob(16)";
    let member = MemberId(Uuid([0; 16]));
    let wallets = |store: &SqliteStore| store.ledger().wallets_of(member).map(drop);
    damaged(&format!("INSERT INTO wallets VALUES ({id}, 'krw', 0, 0, 0, 0, 0, 0, NULL, NULL);"), wallets);
    damaged(&format!("INSERT INTO wallets VALUES ({id}, 'KRW', 0, 0, -1, 0, 0, 0, NULL, NULL);"), wallets);
    damaged(&format!("INSERT INTO wallets VALUES ({id}, 'KRW', 0, 0, 0, 2, 0, 0, NULL, NULL);"), wallets);
    damaged(&format!("INSERT INTO wallets VALUES ({id}, 'KRW', 9, 0, 0, 0, 0, 0, x'01020002', 0);"), wallets);
    let transfer = |store: &SqliteStore| store.ledger().transfer(TransferId(Uuid([0; 16]))).map(drop);
    let moved = |kind: &str, end: &str| {
        format!("INSERT INTO transfers VALUES ({id}, {kind}, 'KRW', 1, NULL, NULL, {id}, {end}, NULL, NULL);")
    };
    damaged(&moved("9", "1, NULL"), transfer);
    damaged(&moved("1", "-1, NULL"), transfer);
    damaged(&moved("1", "1, x'09'"), transfer);
    let key =
        EntryKey { wallet: WalletKey { member, currency: Currency::parse("KRW").unwrap() }, sequence: 1 };
    let entry = |store: &SqliteStore| store.ledger().entries(&[key]).map(drop);
    damaged(&format!("INSERT INTO entries VALUES ({id}, 'KRW', 1, {id}, 0, 1, 1, NULL, NULL);"), entry);
    damaged(&format!("INSERT INTO entries VALUES ({id}, 'KRW', 1, x'00', 1, 1, 1, NULL, NULL);"), entry);
    let hold = |store: &SqliteStore| store.ledger().hold(HoldId(Uuid([0; 16]))).map(drop);
    let held = |row: &str, origins: &str| {
        format!("INSERT INTO holds VALUES ({id}, {id}, 'KRW', 1, NULL, {row}, {origins}, NULL);")
    };
    let unknown = "NULL, NULL, NULL, NULL";
    damaged(&held("1, NULL, NULL, NULL, NULL", unknown), hold);
    damaged(&held("2, NULL, NULL, NULL, NULL", unknown), hold);
    damaged(&held("4, NULL, NULL, NULL, 5", unknown), hold);
    damaged(&held("0, NULL, NULL, NULL, NULL", "NULL, NULL, x'02', NULL"), hold);
    // The lists leave out such a row, and name it.
    let (last, key) = (Uuid([0xff; 16]), format!("x'{}'", "00".repeat(16)));
    let moves = |store: &SqliteStore| Ok(store.ledger().list_transfers(TransferId(last), 9)?.rows.len());
    left_out(&moved("9", "1, NULL"), &key, moves);
    let holds = |store: &SqliteStore| Ok(store.ledger().list_holds(HoldId(last), 9)?.rows.len());
    left_out(&held("4, NULL, NULL, NULL, 5", unknown), &key, holds);
    let who = |store: &SqliteStore| store.ledger().member(member).map(drop);
    let row = |phone: &str, pin: &str| {
        format!("INSERT INTO members VALUES ({id}, 'l', {phone}, 'p', 'n', NULL, {pin}, 0, NULL, 0, NULL);")
    };
    damaged(&row("'+1'", "NULL, NULL"), who);
    damaged(&row("NULL", "zeroblob(32), NULL"), who);
    damaged(&row("NULL", "zeroblob(32), NULL"), |store| store.ledger().members(&[member]).map(drop));
    let totals = |store: &SqliteStore| store.ledger().totals().map(drop);
    damaged("INSERT INTO totals VALUES (6, 'KRW', '1', '1');", totals);
    damaged("INSERT INTO totals VALUES (1, 'KRW', '-1', '1');", totals);
}

#[test]
fn a_damaged_page_is_damage() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, (0..5000).map(|row| format!("{row}")), 1).unwrap();
    drop(store);
    let mut bytes = std::fs::read(place.path()).unwrap();
    let pages = bytes.len() / 4096;
    // Behind the first pages of all tables, which a start reads.
    bytes[60 * 4096..(pages - 1) * 4096].fill(0xab);
    std::fs::write(place.path(), bytes).unwrap();
    let store = place.open().unwrap();
    let walked = store.scan_scores(BoardNo(1), Window(0), None, usize::MAX, &mut |_, _| {});
    assert!(matches!(walked, Err(StoreError::Corrupt(_))), "{walked:?}");
}

/// The statements of contests.
const OF_CONTESTS: [&str; 23] = [
    contests::GET,
    contests::REMOVE,
    contests::GET_APPLICATION,
    contests::REMOVE_APPLICATION,
    contests::GET_MEMBER,
    contests::REMOVE_MEMBER,
    contests::REMOVE_PRIZE,
    contest_reads::LIST,
    contest_reads::LIST_STATE,
    contest_reads::IN_STATE,
    contest_reads::STATE,
    contest_reads::DUE,
    contest_reads::IN_STATUS,
    contest_reads::FIRST,
    contest_reads::MEMBERS,
    contest_reads::PRIZES,
    series::GET,
    series::REMOVE,
    series::LIST,
    series::DUE,
    payments::GET,
    payments::REMOVE,
    payments::OPEN,
];

/// The cost of a statement must not depend on what else is stored: each one searches by key.
#[test]
fn no_statement_of_a_transaction_scans_a_table() {
    let statements = [
        boards::PUT,
        boards::DELETE,
        boards::PERIODS,
        boards::DELETE_PERIODS,
        scores::GET,
        scores::REMOVE,
        scores::WALK,
        scores::COUNT,
        requests::GET,
        requests::OLD,
        requests::REMOVE,
        imports::GET,
        imports::REMOVE,
        meta::GET,
        keys::GET,
        keys::PUT,
        purge::SCORES,
        purge::IMPORTS,
        purge::BANS,
        purge::WINDOWS,
        purge::BLOCKS,
        purge::FIRST_OF_WINDOW,
        purge::WINDOW_SCORES,
        purge::WINDOW_BLOCKS,
        purge::VERSION_BLOCKS,
        purge::WINDOW_DONE,
        windows::OF_BOARD,
        windows::REMOVE,
        windows::BLOCK,
        windows::REMOVE_BLOCK,
        profiles::GET,
        profiles::REMOVE,
        bans::OF_BOARD,
        bans::REMOVE,
        purge::DONE,
        members::GET,
        members::REMOVE,
        members::GET_HANDLE,
        members::REMOVE_HANDLE,
        wallets::GET,
        wallets::OF_MEMBER,
        wallets::REMOVE,
        wallets::GET_TOTAL,
        wallets::REMOVE_TOTAL,
        transfers::GET,
        transfers::LIST,
        transfers::REMOVE,
        transfers::GET_ENTRY,
        transfers::HISTORY,
        transfers::REMOVE_ENTRY,
        holds::GET,
        holds::LIST,
        holds::REMOVE,
        holds::DUE,
        audit::LIST,
        reversals::GET,
        reversals::REMOVE,
        minted::GET,
        minted::REMOVE,
        webhooks::GET,
        webhooks::LIST,
        webhooks::RECENT,
        webhooks::REMOVE,
        archives::GET,
        archives::REMOVE,
    ];
    let place = Place::new();
    let store = place.open().unwrap();
    let tables = store.shared.tables();
    for sql in statements.into_iter().chain(OF_CONTESTS) {
        let mut statement = tables.connection().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let detail: String = row.get(3).unwrap();
            assert!(!detail.contains("SCAN") && !detail.contains("TEMP B-TREE"), "{sql}: {detail}");
        }
    }
}
