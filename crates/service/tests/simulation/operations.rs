//! The requests of callers, and their replies.

use crate::check::{board_id, player_id};
use crate::contests::{self, ContestAct};
use crate::model::BOARDS;
use crate::world::{World, currency};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tally_rules::contest::{ContestState, Prize, PrizeTies};
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::member::Login;
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{Amount, HoldId, Member, MemberId, TransferKind, TransferRequest, WalletKey};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, Origin, PlayerId};
use tally_service::ledger::holds::NewHold;
use tally_service::ledger::transfers::NewTransfer;
use tally_service::ledger::{holds, transfers};
use tally_service::members::{self, NewMember};
use tally_service::players::erase::{ban, erase};
use tally_service::scores::import::{NewChunk, NewLine, import};
use tally_service::scores::remove::remove;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::{Failure, Fault, Tally, boards};

/// A request.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Submit {
        board: usize,
        player: usize,
        score: i64,
    },
    /// Lines of a file from that one on: player, score and instant of each; and whether the file ends there.
    Import {
        board: usize,
        file: u8,
        from: u64,
        lines: Vec<(usize, i64, i64)>,
        last: bool,
    },
    Ban {
        board: usize,
        player: usize,
        banned: bool,
    },
    Remove {
        board: usize,
        player: usize,
    },
    Erase {
        player: usize,
    },
    /// Makes a board, or changes how many closed periods are kept, when they begin and how long they stay open.
    Put {
        board: usize,
        periods: Periods,
    },
    Delete {
        board: usize,
    },
    Pay(Payment),
    Hold {
        member: usize,
        units: i64,
        expires_at: i64,
    },
    /// Ends the hold of that request by a void, or by a capture of this amount.
    End {
        hold: usize,
        taken: Option<i64>,
        to: usize,
    },
    /// An act on a contest, by its number.
    Contest(usize, ContestAct),
}

/// Daily periods of a board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Periods {
    pub(crate) keep: u32,
    /// They begin at that hour.
    pub(crate) hour: u32,
    pub(crate) grace_s: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Payment {
    Deposit { to: usize, units: i64 },
    Promotion { to: usize, units: i64, expires_at: i64 },
    Transfer { from: usize, to: usize, units: i64 },
}

/// The observed result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is done and durable. Of a submit the record: score and instant. Of a hold its id.
    Done {
        replayed: bool,
        record: Option<(i64, i64)>,
        hold: Option<HoldId>,
        /// Of a submit: whether it came too late for a period.
        late: bool,
        /// Of an act on a whole contest: the state in its reply.
        reached: Option<ContestState>,
    },
    Refused(String),
    /// Nothing was done.
    Failed(String),
    Unknown(String),
}

impl Fate {
    /// The same in each run of a seed, so without ids.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Done { replayed, record, .. } => {
                let record = record.map_or_else(String::new, |(score, at)| format!(" {score} at {at}"));
                format!("{}{record}", if *replayed { "replayed" } else { "done" })
            }
            Self::Refused(why) => format!("refused, {why}"),
            Self::Failed(why) => format!("failed, {why}"),
            Self::Unknown(why) => format!("unknown, {why}"),
        }
    }
}

const DONE: Fate = Fate::Done { replayed: false, record: None, hold: None, late: false, reached: None };

impl Operation {
    /// Whether it is one transaction of a lane, so that a fault says whether it was done.
    pub(crate) fn is_simple(&self) -> bool {
        match self {
            Self::Submit { .. }
            | Self::Remove { .. }
            | Self::Pay(_)
            | Self::Hold { .. }
            | Self::End { .. } => true,
            Self::Contest(_, act) => matches!(act, ContestAct::Score { .. }),
            _ => false,
        }
    }

    /// Whether it goes through the lane of scores.
    pub(crate) fn is_score(&self) -> bool {
        !matches!(self, Self::Pay(_) | Self::Hold { .. } | Self::End { .. })
    }

    /// Whether it may have an idempotency key.
    pub(crate) fn may_have_key(&self) -> bool {
        matches!(self, Self::Submit { .. } | Self::Pay(_) | Self::Hold { .. })
    }
}

/// The acting members, and the holds that are known by the numbers of their requests.
#[derive(Clone)]
pub(crate) struct Callers {
    pub(crate) members: Vec<MemberId>,
    pub(crate) holds: BTreeMap<usize, HoldId>,
}

/// The pending reply of a caller.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Fate>>>;

fn idempotency(number: usize) -> IdempotencyKey {
    let key = RequestKey { scope: "simulation".into(), key: number.to_string().into() };
    IdempotencyKey { key, fingerprint: Fingerprint([1; 16]).into() }
}

impl Callers {
    /// Makes the members.
    pub(crate) fn new(world: &World, count: usize) -> Self {
        let members = (0..count).map(|index| member(world, &player_id(index))).collect();
        Self { members, holds: BTreeMap::new() }
    }

    /// A request to the server that is made when this is polled. `key` is the number of the request, if it has a key.
    pub(crate) fn call(&self, tally: &Arc<Tally>, operation: &Operation, key: Option<usize>) -> Answer {
        let (callers, tally, operation) = (self.clone(), Arc::clone(tally), operation.clone());
        Box::pin(async move {
            match callers.answer(&tally, &operation, key.map(idempotency)).await {
                Ok(fate) => fate,
                // A detail may have ids, which are of this run alone.
                Err(Failure::Rejected(rejection)) => Fate::Refused(rejection.code().into()),
                Err(Failure::Fault(Fault::OutcomeUnknown(why))) => Fate::Unknown(why),
                Err(Failure::Fault(fault @ (Fault::Broken(_) | Fault::Damaged(_)))) => {
                    panic!("a disk that fails is no damage: {fault:?}")
                }
                // The rejection comes before any change.
                Err(Failure::Fault(fault @ Fault::NotClosed)) => Fate::Failed(fault.to_string()),
                Err(Failure::Fault(fault)) if !operation.is_simple() => Fate::Unknown(fault.to_string()),
                Err(Failure::Fault(fault)) => Fate::Failed(fault.to_string()),
            }
        })
    }

    async fn answer(
        &self,
        tally: &Arc<Tally>,
        operation: &Operation,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Fate, Failure> {
        match operation.clone() {
            Operation::Submit { board, player, score } => {
                let (board, player, score) = (board_id(board), player_id(player), ScoreInput::Int(score));
                let new = NewScore { board, player, score, subscore: None, at: None, idempotency };
                let (_, done) = submit(tally, new).await?;
                let record = Some((done.record.score, done.record.at.0));
                let late = !done.closed_periods.is_empty();
                Ok(Fate::Done { replayed: done.replayed, record, hold: None, late, reached: None })
            }
            Operation::Import { board, file, from, lines, last } => {
                let done = import(tally, chunk((board, file), from, &lines, last)).await?;
                assert_eq!(done.refused, [], "each line is right");
                Ok(Fate::Done {
                    replayed: done.replayed,
                    record: None,
                    hold: None,
                    late: false,
                    reached: None,
                })
            }
            Operation::Ban { board, player, banned } => {
                ban(tally, &board_id(board), player_id(player), banned, Origin::BACKGROUND, None)
                    .await
                    .map(|_| DONE)
            }
            Operation::Remove { board, player } => {
                let (board, player) = (board_id(board), player_id(player));
                remove(tally, &board, player, &Origin::BACKGROUND, None).await.map(|_| DONE)
            }
            Operation::Erase { player } => {
                erase(tally, player_id(player), Origin::BACKGROUND, None).await.map(|_| DONE)
            }
            Operation::Put { board, periods } => {
                boards::put(tally, &board_id(board), &spec(board, periods), &Origin::BACKGROUND, None)
                    .map(|_| DONE)
            }
            Operation::Delete { board } => {
                boards::delete(tally, &board_id(board), &Origin::BACKGROUND, None).map(|_| DONE)
            }
            Operation::Pay(payment) => {
                let new = NewTransfer {
                    order: self.order(payment),
                    origin: Origin::default(),
                    idempotency,
                    mint_cap: None,
                };
                let replayed = transfers::post(tally, new).await?.replayed;
                Ok(Fate::Done { replayed, record: None, hold: None, late: false, reached: None })
            }
            Operation::Hold { member, units, expires_at } => {
                let wallet = WalletKey { member: self.members[member], currency: currency() };
                let (amount, expires_at) = (Amount::new(units).unwrap(), Some(Micros(expires_at)));
                let done = holds::place(
                    tally,
                    NewHold { wallet, amount, expires_at, origin: Origin::default(), idempotency },
                )
                .await?;
                Ok(Fate::Done {
                    replayed: done.replayed,
                    record: None,
                    hold: Some(done.id),
                    late: false,
                    reached: None,
                })
            }
            Operation::End { hold, taken, to } => {
                let to = Some(self.members[to]);
                let ending = taken.map_or(Ending::Void, |units| Ending::Capture {
                    amount: Some(Amount::new(units).unwrap()),
                    to,
                });
                holds::end(tally, self.holds[&hold], ending, Origin::default(), None).await.map(|_| DONE)
            }
            Operation::Contest(number, act) => {
                let reached = contests::act(tally, number, &act).await?;
                Ok(Fate::Done { replayed: false, record: None, hold: None, late: false, reached })
            }
        }
    }

    fn order(&self, payment: Payment) -> TransferRequest {
        let (what, units) = match payment {
            Payment::Deposit { to, units } => (TransferKind::Deposit { to: self.members[to] }, units),
            Payment::Promotion { to, units, expires_at } => {
                (TransferKind::Promotion { to: self.members[to], expires_at: Micros(expires_at) }, units)
            }
            Payment::Transfer { from, to, units } => {
                (TransferKind::Transfer { from: self.members[from], to: self.members[to] }, units)
            }
        };
        // The reference of credit has its expiry, which no entry has.
        let reference = match what {
            TransferKind::Promotion { expires_at, .. } => Some(expires_at.0.to_string().into()),
            _ => None,
        };
        TransferRequest { what, currency: currency(), amount: Amount::new(units).unwrap(), reference }
    }

    /// Checks that both lanes work, by requests that are rejected.
    pub(crate) fn lanes_work(&self, world: &World, board: Option<usize>) -> bool {
        let tally = world.tally();
        let nobody = PlayerId::new("nobody").unwrap();
        let too_much = Payment::Transfer { from: 0, to: 1, units: 1 << 40 };
        let new = NewTransfer {
            order: self.order(too_much),
            origin: Origin::default(),
            idempotency: None,
            mint_cap: None,
        };
        let is_refused = |failure: Option<Failure>| matches!(failure, Some(Failure::Rejected(_)));
        let removed =
            board.map(|board| world.wait(remove(tally, &board_id(board), nobody, &Origin::BACKGROUND, None)));
        removed.is_none_or(|removed| is_refused(removed.err()))
            && is_refused(world.wait(transfers::post(tally, new)).err())
    }
}

fn member(world: &World, player: &PlayerId) -> MemberId {
    let member = Member {
        login: Login::new(player.as_str()).unwrap(),
        phone: None,
        player: player.clone(),
        name: player.as_str().into(),
        password: None,
        pin: None,
        attempts: Attempts::default(),
        tokens_from: Micros(0),
        closed_at: None,
    };
    let new = NewMember { member, player_is_id: false, idempotency: None };
    world.wait(members::create(world.tally(), new, &Origin::BACKGROUND)).unwrap().id
}

fn chunk((board, file): (usize, u8), from: u64, lines: &[(usize, i64, i64)], last: bool) -> NewChunk {
    let line = |(number, (player, score, at)): (u64, &(usize, i64, i64))| NewLine {
        line: number,
        player: player_id(*player),
        score: ScoreInput::Int(*score),
        at: Some(Micros(*at)),
    };
    NewChunk {
        board: board_id(board),
        digest: digest(file),
        lines_before: from,
        lines_after: from + lines.len() as u64,
        rows: (from + 1..).zip(lines).map(line).collect(),
        last,
    }
}

/// The digest of a file.
pub(crate) fn digest(file: u8) -> [u8; 32] {
    [file; 32]
}

/// The definition of a board: daily periods, of which few are kept.
fn spec(board: usize, Periods { keep, hour, grace_s }: Periods) -> BoardSpec {
    let update = match BOARDS[board] {
        "latest" => Update::Latest,
        "sum" => Update::Sum,
        _ => Update::Best,
    };
    let mut prizes = PeriodPrizes::default();
    if BOARDS[board] == "prizes" {
        let amount = Amount::new(100).unwrap();
        let table = vec![Prize { from: 1, to: 2, currency: currency(), amount }];
        prizes = PeriodPrizes { table, ties: PrizeTies::Split, from: None };
    }
    let (name, schedule, time_zone) = ("daily".into(), format!("0 {hour} * * *"), "UTC".into());
    let rule = PeriodRule { no: 0, name, schedule, time_zone, keep, grace_s, prizes };
    BoardSpec { update: Some(update), periods: Some(vec![rule]), ..BoardSpec::default() }
}
