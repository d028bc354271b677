//! Signing in with a digest from another program. Not here: failures and waits (`members/throttle.rs`, and over HTTP).

use crate::wallets::world::*;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tally_rules::Origin;
use tally_rules::ledger::Member;
use tally_rules::ledger::member::Login;
use tally_service::members::change::{MemberChange, Set};
use tally_service::members::password::{self, Cost};
use tally_service::members::signin::{self, SignedIn};
use tally_service::members::{self, NewMember};

/// "password" as another program digests it, with parameters of its own.
const IMPORTED: &str =
    "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

fn sign_in(world: &World, password: &str) -> SignedIn {
    let login = Some(Login::new("ann").unwrap());
    let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
    world.wait(signin::sign_in(&world.tally, ("ann", login), password.to_owned(), from)).unwrap()
}

fn a_digest_becomes_like_all_others(kind: Kind) {
    let world = World::new(kind);
    let new = new_member("ann");
    let member = Member { password: Some(IMPORTED.into()), ..new.member };
    let ann = world.create(NewMember { member, ..new }).unwrap().id;
    let stored = || world.tally.store.ledger().member(ann).unwrap().unwrap();
    assert_eq!(sign_in(&world, "wrong"), SignedIn::Wrong);
    assert_eq!(stored().password.as_deref(), Some(IMPORTED));
    let SignedIn::Token(first, _) = sign_in(&world, "password") else { panic!("the password is right") };
    let anew = stored().password.unwrap();
    assert!(
        anew.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && password::is_right("password", &anew),
        "{anew}"
    );
    assert!(!password::is_outdated(&anew, Cost::default()));
    // No token ends by that, and the next time there is nothing to do.
    let said = world.tally.members.tokens.read(&first, world.now()).unwrap();
    assert_eq!(said.tokens_from, stored().tokens_from);
    assert!(matches!(sign_in(&world, "password"), SignedIn::Token(..)));
    assert_eq!(stored().password, Some(anew));
    world.end(&[ann]);
}

#[test]
fn a_digest_of_another_cost_is_made_anew_in_a_file() {
    a_digest_becomes_like_all_others(Kind::Sqlite);
}

#[test]
fn a_digest_of_another_cost_is_made_anew_on_mariadb() {
    a_digest_becomes_like_all_others(Kind::MariaDb);
}

/// A password that was changed while its old digest was upgraded stays.
#[test]
fn a_new_digest_of_an_old_password_does_not_come_back() {
    let world = World::new(Kind::Sqlite);
    let new = new_member("ann");
    let member = Member { password: Some("old".into()), ..new.member };
    let ann = world.create(NewMember { member, ..new }).unwrap().id;
    let change = |change| {
        world.wait(members::change(&world.tally, ann, change, Some(Origin::BACKGROUND), None)).unwrap()
    };
    let rehashed = |from: &str, to: &str| MemberChange {
        rehashed: Some(tally_service::members::change::Rehashed { from: from.into(), to: to.into() }),
        ..MemberChange::default()
    };
    let stored = || world.tally.store.ledger().member(ann).unwrap().unwrap().password;
    let to = |text: &str| Some(Arc::from(text));
    change(rehashed("old", "old again"));
    assert_eq!(stored(), to("old again"));
    change(MemberChange { password: Set::To(to("new")), ..MemberChange::default() });
    change(rehashed("old again", "old once more"));
    assert_eq!(stored(), to("new"));
    change(MemberChange { password: Set::To(None), ..MemberChange::default() });
    change(rehashed("new", "new again"));
    assert_eq!(stored(), None);
    world.end(&[ann]);
}
