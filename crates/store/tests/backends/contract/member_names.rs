//! Names of members: handles that several members may share, found by their beginnings.
//!
//! Not here: the other handles (`ledger`), and when a name is written (the service).

use super::ledger::{change, member_id, twice};
use super::*;
use tally_rules::ledger::member::{Handle, HandleKind, Login};
use tally_rules::ledger::{MemberId, NameKey};
use tally_store::LedgerWriteSet;

fn key(name: &str, member: u8) -> Handle {
    Handle::Name(NameKey::new(name, member_id(member)))
}

fn put(store: &dyn Store, mut handles: Vec<(Handle, Option<MemberId>)>) {
    handles.sort();
    change(store, LedgerWriteSet { handles, ..LedgerWriteSet::default() });
}

/// The members whose names begin so, in their order.
fn found(store: &dyn Store, typed: &str, limit: usize) -> Vec<MemberId> {
    let prefix = NameKey::prefix(typed).unwrap();
    let found = store.ledger().list_handles(HandleKind::Name, &prefix, limit).unwrap();
    found.rows.into_iter().map(|(_, member)| member).collect()
}

pub(crate) fn names_of_members_are_found_by_their_beginnings(backend: &dyn Backend) {
    let store = open(backend);
    let [first, second, third, last] = [1, 2, 3, 0xff].map(member_id);
    let login = Handle::Login(Login::new("zoë").unwrap());
    put(
        &*store,
        vec![
            (key("Zoë 日本", 0xff), Some(last)),
            (key("ZOË  日本", 1), Some(first)),
            (key("Zoe", 2), Some(second)),
            (login.clone(), Some(third)),
        ],
    );
    let store = twice(backend, store, |store| {
        assert_eq!(found(store, "zoë", 9), [first, last]);
        assert_eq!(found(store, "ZOË 日", 1), [first]);
        assert_eq!(found(store, "zo", 9), [second, first, last]);
        assert_eq!(found(store, "日本", 9), []);
        // A login is no name, and a name no login.
        let logins = store.ledger().list_handles(HandleKind::Login, "zo", 9).unwrap();
        assert_eq!(logins.rows, [(login.clone(), third)]);
        assert_eq!(store.ledger().member_of(&key("zoë 日本", 1)).unwrap(), Some(first));
    });
    // One gets another name, and one goes.
    let gone = [(key("Zoë 日本", 1), None), (key("Zoe", 2), None)];
    put(&*store, [vec![(key("Chloë", 1), Some(first))], gone.to_vec()].concat());
    twice(backend, store, |store| {
        assert_eq!(found(store, "zo", 9), [last]);
        assert_eq!(found(store, "CHLOË", 9), [first]);
        assert_eq!(store.ledger().member_of(&login).unwrap(), Some(third));
    });
}
