//! Whose rankings a Redis has: other generations and terms, copies, and the claim that keeps others out.

use crate::redis_faults::{KINDS, assert_whole, change, connect, impatient, load};
use std::time::Duration;
use tally_ranking::redis::{Claim, Owner, RankingError, RedisBackend};
use tally_rules::definition::Definition;
use tally_testkit::{ScratchRedis, wait_until};

fn owned(server: &ScratchRedis, owner: Owner) -> RedisBackend {
    let ranking = connect(server, &impatient());
    ranking.set_owner(owner);
    ranking
}

/// A copy of a store has its id. What another generation or an earlier term has loaded is not its own, and is loaded over.
#[test]
fn rankings_of_another_generation_or_term_are_lost() {
    for kind in KINDS {
        let server = ScratchRedis::start(kind, &[]);
        let first = Owner { store: [1; 16], generation: 7, term: 0 };
        let window = |owner| owned(&server, owner).window(1, 0, &Definition::default());
        load(&window(first), 1);
        assert_whole(&window(first));
        for other in [Owner { generation: 8, ..first }, Owner { term: 1, ..first }] {
            let other = window(other);
            assert_eq!(other.is_ready(), Ok(false));
            assert_eq!(
                other.publish(&[change(1, Some(99), 9)], |_, _| {}).map(drop),
                Err(RankingError::Lost)
            );
        }
        assert_whole(&window(first));
        let copy = window(Owner { generation: 8, ..first });
        load(&copy, 2);
        assert_whole(&copy);
        assert_eq!(window(first).is_ready(), Ok(false), "neither serves the rankings of the other");
    }
}

#[test]
fn a_claim_keeps_others_out_until_it_ends() {
    for kind in KINDS {
        let mut server = ScratchRedis::start(kind, &[]);
        let owner = Owner { store: [1; 16], generation: 7, term: 0 };
        let (first, beside) = (owned(&server, owner), owned(&server, Owner { term: 3, ..owner }));
        let long = Duration::from_secs(600);
        let Ok(Claim::Ours { process, used: false }) = first.claim(long, false) else {
            panic!("nobody has it")
        };
        let ours = |used| Ok(Claim::Ours { process: process.clone(), used });
        assert_eq!(beside.claim(long, true), ours(false), "they are servers of one generation");
        assert_eq!(first.claim(long, false), ours(true));
        let (copy, store) = (Owner { generation: 8, ..owner }, Owner { store: [2; 16], ..owner });
        for other in [copy, store] {
            assert_eq!(owned(&server, other).claim(long, true), Ok(Claim::Others));
        }
        // Who had the claim knows that its generation is over.
        first.set_owner(copy);
        assert_eq!(first.claim(long, false), ours(false));
        assert_eq!(beside.claim(long, false), Ok(Claim::Others));
        assert_eq!(first.claim(Duration::from_millis(1), false), ours(false));
        wait_until("the claim ends", || beside.claim(long, false) == ours(true));
        // A restart ends claims, and has another name.
        server.kill();
        server.restart();
        let is_new = |claim| matches!(claim, Ok(Claim::Ours { process: new, used: false }) if new != process);
        wait_until("it is claimed anew", || is_new(first.claim(long, false)));
        // A refusal fails everything but claims.
        let window = first.window(1, 0, &Definition::default());
        first.refuse(Some("others have it"));
        assert_eq!(window.total(), Err(RankingError::Unavailable("others have it".into())));
        assert!(matches!(first.claim(long, false), Ok(Claim::Ours { .. })));
        first.refuse(None);
        assert_eq!(window.is_ready(), Ok(false));
        first.reconnect();
        assert!(matches!(first.claim(long, false), Ok(Claim::Ours { .. })));
    }
}
