//! The contract of every store, as functions over the trait. `store_contract!` makes a test of each for a backend.
//!
//! A function says nothing of SQL, files or servers. Each begins by opening the store through [`open`], which asserts
//! that the backend answers that the test is named after. A conflict is a legal answer of a store, and is tried again
//! here as the lanes would. Not here: kills and full disks, which each backend suffers in its own way.

pub(crate) mod archives;
pub(crate) mod audit;
pub(crate) mod batches;
pub(crate) mod boards;
pub(crate) mod contests;
pub(crate) mod credit;
pub(crate) mod durability;
pub(crate) mod events;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod lists;
pub(crate) mod member_names;
pub(crate) mod model;
pub(crate) mod players;
pub(crate) mod redacted;
pub(crate) mod requests;
pub(crate) mod reversals;
pub(crate) mod scores;
pub(crate) mod snapshot;
pub(crate) mod webhooks;
pub(crate) mod windows;

use std::sync::Arc;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::role::Role;
use tally_rules::{BoardId, Definition, Micros, PlayerId, Record};
use tally_store::{
    BoardChange, BoardNo, BoardRow, Committed, KeyRow, Loaded, ReadSet, ScoreKey, Store, StoreError, Window,
    WriteSet,
};

/// One database of a backend, empty at first.
pub(crate) trait Backend {
    /// The name that the store must report.
    fn name(&self) -> &'static str;

    /// Another database of the same backend, empty.
    fn another(&self) -> Box<dyn Backend>;

    /// Opens the database; at most one store of it is open at a time.
    fn open(&self) -> Box<dyn Store>;
}

/// Makes a test of every function of the contract, in a module `contract`. In `store_contract!(fresh)`, `fresh` is a
/// function of the calling module that gives a backend with an empty database.
macro_rules! store_contract {
    ($fresh:ident) => {
        $crate::contract::store_contract!(@list $fresh,
            batches: [
                an_empty_store_has_nothing, nothing_is_done_when_the_last_row_is_refused,
                a_transaction_that_takes_long_is_listed_with_what_it_waited_for,
                a_store_goes_on_after_a_refused_row, a_panic_in_decide_does_nothing,
                what_was_acknowledged_is_there_after_reopening, concurrent_increments_lose_nothing,
                lists_are_answered_in_the_order_of_the_plan, decide_sees_what_the_transaction_before_wrote,
                a_thousand_rows_are_one_transaction, unsorted_plans_and_changes_are_bugs,
            ],
            scores: [
                extremes_read_back, a_record_replaces_all_of_the_one_before,
                a_removed_record_is_gone, windows_and_boards_do_not_mix,
                a_walk_goes_by_bytes, a_walk_goes_page_by_page, names_are_compared_as_bytes,
                counting_counts_one_part,
            ],
            boards: [
                a_created_board_reads_back, numbers_count_up_and_are_never_reused, a_name_has_one_live_board,
                a_redefined_board_has_its_new_periods_in_order, a_deleted_board_is_gone_and_its_name_free,
                what_is_not_there_cannot_be_changed, purging_is_bounded_and_leaves_others_alone,
                purging_goes_on_after_reopening, a_board_may_be_replaced_in_one_transaction,
            ],
            requests: [
                a_request_reads_back_with_its_outcome, a_request_is_replaced, scopes_keep_keys_apart,
                expiry_takes_only_the_old_and_at_most_the_limit, an_import_reads_back_and_moves_on,
                counts_past_the_range_are_refused,
            ],
            keys: [
                keys_read_back_in_order_of_creation, a_revoked_key_is_gone_and_its_id_taken,
                what_keys_have_made_reads_back_and_is_replaced, concurrent_counts_of_a_key_add_up,
                revoking_what_is_not_there_changes_nothing, remembered_values_read_back,
                gauges_have_different_names,
            ],
            windows: [
                periods_read_back_and_are_replaced, blocks_read_back_by_version,
                what_is_deleted_is_purged_and_nothing_else,
                a_window_waits_until_all_of_it_is_purged,
                a_window_that_is_used_again_loses_nothing_to_another_purge,
            ],
            players: [
                profiles_read_back_and_are_replaced, hidden_players_are_those_of_their_board,
                a_deleted_board_takes_its_bans_along,
            ],
            durability: [
                everything_acknowledged_is_seen_at_once_and_stays, order_holds_whatever_a_transaction_waits_for,
                settling_changes_nothing_and_can_be_repeated, what_no_table_could_hold_is_refused_at_once,
            ],
            ledger: [
                members_read_back_by_id_and_by_what_they_are_found_by, a_login_has_one_member,
                wallets_read_back_by_key_and_by_member, movements_read_back_with_their_entries,
                holds_read_back_and_are_found_when_they_are_due, totals_add_up,
                money_that_cannot_be_is_refused_at_once,
                transfers_from_all_sides_lose_nothing_and_never_conflict, random_money_agrees_with_its_entries,
            ],
            audit: [
                acts_read_back_newest_first,
                an_act_that_is_refused_leaves_no_row,
            ],
            archives: [
                archived_months_are_read_as_before, a_stopped_or_failed_attempt_leaves_no_files,
                of_two_attempts_one_is_kept, a_file_that_is_missing_or_changed_is_named,
            ],
            credit: [credit_reads_back_and_is_found_when_it_is_due],
            lists: [
                transfers_are_listed_newest_first, holds_are_listed_as_they_are,
                members_are_listed_newest_first,
            ],
            member_names: [names_of_members_are_found_by_their_beginnings],
            redacted: [redacted_rows_are_replaced_where_they_are],
            reversals: [
                links_of_reversals_read_back_and_are_changed,
                concurrent_reversals_never_exceed_their_original,
            ],
            snapshot: [
                every_row_is_walked_once_in_order_of_keys, books_stay_as_they_were_at_their_moment,
            ],
            contests: [
                contests_read_back_and_are_listed_by_state, applications_come_in_order_of_arrival,
                members_and_prizes_read_back_page_by_page,
                series_come_and_go_and_are_found_when_they_are_due,
                payments_read_back_and_are_found_while_they_are_open,
            ],
            events: [
                events_are_numbered_and_read_on_from_any_of_them,
                an_event_is_there_with_its_transaction_or_not_at_all, numbers_become_visible_in_their_order,
                old_events_go_and_numbers_go_on, a_deleted_board_takes_its_events_along,
                last_entries_are_those_of_the_wallets,
            ],
            webhooks: [
                webhooks_come_before_positions_and_read_back,
                a_transaction_reads_changes_and_removes_webhooks,
                recent_events_are_in_order_of_their_times,
            ],
            model: [random_operations_agree_with_a_model],
        );
    };
    (@list $fresh:ident, $($module:ident: [$($test:ident),+ $(,)?]),+ $(,)?) => {
        mod contract {
            $(mod $module {
                $(#[test]
                fn $test() {
                    $crate::contract::$module::$test(&super::super::$fresh());
                })+
            })+
        }
    };
}
pub(crate) use store_contract;

/// Which of the boards of the plan are live.
pub(crate) fn live(loaded: &Loaded) -> Vec<bool> {
    loaded.boards.iter().map(Option::is_some).collect()
}

/// Opens the database and checks the product behind it.
pub(crate) fn open(backend: &dyn Backend) -> Box<dyn Store> {
    let store = backend.open();
    assert_eq!(store.name(), backend.name());
    store
}

/// Runs until there is no conflict.
pub(crate) fn run(
    store: &dyn Store,
    plan: &ReadSet,
    decide: &mut dyn FnMut(&Loaded) -> WriteSet,
) -> Result<Committed, StoreError> {
    loop {
        match store.run(plan, decide) {
            Err(StoreError::Conflict(_)) => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// Writes without reading.
pub(crate) fn write(store: &dyn Store, changes: &WriteSet) -> Result<(), StoreError> {
    run(store, &ReadSet::default(), &mut |_| changes.clone()).map(drop)
}

/// Reads without writing.
pub(crate) fn load(store: &dyn Store, plan: &ReadSet) -> Loaded {
    let mut seen = None;
    run(store, plan, &mut |loaded| {
        seen = Some(loaded.clone());
        WriteSet::default()
    })
    .unwrap();
    seen.expect("decide was called")
}

/// Creates a board of that name and returns its number.
pub(crate) fn create(store: &dyn Store, name: &str, definition: &Definition) -> Result<BoardNo, StoreError> {
    let id = BoardId::new(name).unwrap();
    let plan = ReadSet { board_names: vec![id.clone()], ..ReadSet::default() };
    let mut no = BoardNo::default();
    run(store, &plan, &mut |loaded| {
        no = loaded.next_board;
        let row = BoardRow { no, id: id.clone(), definition: definition.clone(), created_at: Micros(5) };
        WriteSet { boards: vec![BoardChange::Create(row)], ..WriteSet::default() }
    })?;
    Ok(no)
}

/// Reads a whole window in pages.
pub(crate) fn walk(
    store: &dyn Store,
    board: BoardNo,
    window: Window,
    page: usize,
) -> Vec<(PlayerId, Record)> {
    let mut found: Vec<(PlayerId, Record)> = Vec::new();
    loop {
        let after = found.last().map(|(player, _)| player.clone());
        let before = found.len();
        let mut each = |player: PlayerId, record| {
            assert!(found.last().is_none_or(|(last, _)| *last < player), "{player:?} does not ascend");
            found.push((player, record));
        };
        let count = store.scan_scores(board, window, after.as_ref(), page, &mut each).unwrap();
        assert_eq!(count, found.len() - before);
        if count < page {
            return found;
        }
    }
}

pub(crate) fn key(board: u32, window: u64, player: &str) -> ScoreKey {
    ScoreKey { board: BoardNo(board), window: Window(window), player: PlayerId::new(player).unwrap() }
}

pub(crate) fn record(score: i64) -> Record {
    Record { score, subscore: -score.saturating_add(1), at: Micros(score.saturating_mul(3)) }
}

/// Changes of records alone, sorted here.
pub(crate) fn scores(mut rows: Vec<(ScoreKey, Option<Record>)>) -> WriteSet {
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    WriteSet { scores: rows, ..WriteSet::default() }
}

/// A plan of records alone, sorted here.
pub(crate) fn plan_of(mut keys: Vec<ScoreKey>) -> ReadSet {
    keys.sort();
    ReadSet { scores: keys, ..ReadSet::default() }
}

pub(crate) fn request(scope: &str, key: &str) -> RequestKey {
    RequestKey { scope: scope.into(), key: key.into() }
}

pub(crate) fn stored(print: u8, at: i64, outcome: Outcome) -> Stored {
    Stored { fingerprint: Fingerprint([print; 16]), at: Micros(at), outcome }
}

pub(crate) fn key_row(id: &str, at: i64) -> KeyRow {
    KeyRow {
        id: Arc::from(id),
        hash: [id.len() as u8; 32],
        grant: Role::Server.into(),
        name: format!("the key \"{id}\" of Zoë"),
        created_at: Micros(at),
    }
}
