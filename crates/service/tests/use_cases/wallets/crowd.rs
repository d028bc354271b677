//! Many at once: opposite transfers, rings and a hot wallet never deadlock, and the books agree.

use crate::wallets::world::*;
use tally_rules::ledger::{MemberId, TransferKind};
use tally_rules::{Origin, Rejection};
use tally_service::Failure;
use tally_service::ledger::transfers::{self, NewTransfer};

const CALLERS: usize = 32;
const ROUNDS: usize = 8;

/// 32 callers at once; each transfer is done or refused for lack of money, and nothing else.
fn crowd(kind: Kind) {
    let world = World::new(kind);
    let members: Vec<MemberId> = (0..6).map(|number| world.member(&format!("m{number}"), 100)).collect();
    let (tally, all) = (&world.tally, &members);
    let (done, refused) = world.wait(async {
        let callers = (0..CALLERS).map(|caller| {
            let (tally, all) = (tally.clone(), all.clone());
            tokio::spawn(async move {
                let (mut done, mut refused) = (0, 0);
                for round in 0..ROUNDS {
                    // A ring, the same ring the other way, and all to one.
                    let at = caller % all.len();
                    let (from, to) = match caller % 3 {
                        0 => (all[at], all[(at + 1) % all.len()]),
                        1 => (all[(at + 1) % all.len()], all[at]),
                        _ => (all[1 + (caller + round) % (all.len() - 1)], all[0]),
                    };
                    let units = i64::try_from(1 + (caller * 7 + round) % 40).unwrap();
                    let idempotency = idempotency(&format!("{caller} {round}"), 1);
                    let order = order(TransferKind::Transfer { from, to }, units);
                    match transfers::post(
                        &tally,
                        NewTransfer { order, origin: Origin::default(), idempotency, mint_cap: None },
                    )
                    .await
                    {
                        Ok(_) => done += 1,
                        Err(Failure::Rejected(Rejection::InsufficientFunds { .. })) => refused += 1,
                        Err(failure) => panic!("{failure:?}"),
                    }
                }
                (done, refused)
            })
        });
        let callers: Vec<_> = callers.collect();
        let (mut done, mut refused) = (0, 0);
        for caller in callers {
            let (more, less) = caller.await.unwrap();
            (done, refused) = (done + more, refused + less);
        }
        (done, refused)
    });
    assert_eq!(done + refused, CALLERS * ROUNDS);
    assert!(done > CALLERS, "{done}");
    assert_eq!(world.tally.ledger_stats().retries, 0, "nothing was in the way of anything");
    let sum: i64 = members.iter().map(|member| world.balance(*member)).sum();
    assert_eq!(sum, 600);
    world.end(&members);
}

#[test]
fn concurrent_transfers_do_not_block_each_other_in_a_file() {
    crowd(Kind::Sqlite);
}

#[test]
fn concurrent_transfers_do_not_block_each_other_on_mariadb() {
    crowd(Kind::MariaDb);
}

#[test]
fn concurrent_transfers_do_not_block_each_other_on_mysql() {
    crowd(Kind::MySql);
}
