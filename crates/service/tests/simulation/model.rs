//! The required state: all-time records, bans, balances, holds and lines of files, in the plainest form.
//!
//! Written from the contract; no code is shared with the product. Prizes and fees are not predicted: wallets are without them.
//! So are credit and what expires of it: a balance is of other money, and fees may have spent either.

use crate::choose::FAR;
use crate::contests::FEES_MAX;
use crate::operations::{Operation, Payment};
use std::collections::{BTreeMap, BTreeSet};

/// The number of players; the first are members too.
pub(crate) const PLAYERS: usize = 20;
pub(crate) const MEMBERS: usize = 6;
pub(crate) const BOARDS: [&str; 4] = ["best", "latest", "sum", "prizes"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) score: i64,
    /// Nothing until the server has returned it.
    pub(crate) at: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Board {
    pub(crate) records: BTreeMap<usize, Record>,
    pub(crate) banned: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wallet {
    pub(crate) balance: i64,
    pub(crate) held: i64,
    /// The credit that it was given, by the time at which that expires.
    pub(crate) promoted: BTreeMap<i64, i64>,
}

/// A hold that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) member: usize,
    pub(crate) units: i64,
    pub(crate) expires_at: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) boards: [Option<Board>; BOARDS.len()],
    pub(crate) wallets: [Wallet; MEMBERS],
    /// By the number of the request that made it.
    pub(crate) holds: BTreeMap<usize, Hold>,
    /// The number of lines of a file on a board, of known files.
    pub(crate) files: BTreeMap<(usize, u8), u64>,
    /// The earliest times of requests with a key, by their numbers.
    pub(crate) keys: BTreeMap<usize, i64>,
}

/// The reply that the server must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Must {
    Do,
    Refuse,
    /// The model cannot know it.
    Either,
    /// It was done before: the first answer again.
    Replay,
}

impl Model {
    /// The required reply to an operation at this wall time, and the state after it.
    pub(crate) fn after(&self, operation: &Operation, number: usize, now: i64) -> (Must, Self) {
        let mut next = self.clone();
        let must = next.apply(operation, number, now);
        (must, next)
    }

    fn apply(&mut self, operation: &Operation, number: usize, now: i64) -> Must {
        match operation {
            Operation::Submit { board, player, score } => self.on(*board, |index, board| {
                board.submit(index, *player, Record { score: *score, at: None });
                Must::Do
            }),
            Operation::Import { board, file, from, lines, .. } => {
                let (done, to) = (self.files.get(&(*board, *file)).copied(), from + lines.len() as u64);
                if self.boards[*board].is_some() && done.unwrap_or(0) >= to {
                    return Must::Replay;
                }
                assert_eq!(done.unwrap_or(0), *from, "chunks come in order");
                self.files.insert((*board, *file), to);
                self.on(*board, |index, board| {
                    for (player, score, at) in lines {
                        board.submit(index, *player, Record { score: *score, at: Some(*at) });
                    }
                    Must::Do
                })
            }
            Operation::Ban { board, player, banned } => self.on(*board, |_, board| {
                if *banned {
                    board.banned.insert(*player)
                } else {
                    board.banned.remove(player)
                };
                Must::Do
            }),
            Operation::Remove { board, player } => self.on(*board, |_, board| {
                // A clock that was set back opens periods again, which may already have a record.
                if board.records.remove(player).is_some() { Must::Do } else { Must::Either }
            }),
            Operation::Erase { player } => {
                let mut known = false;
                for board in self.boards.iter_mut().flatten() {
                    known |= board.records.remove(player).is_some();
                    known |= board.banned.remove(player);
                }
                if known { Must::Do } else { Must::Either }
            }
            Operation::Put { board, .. } => {
                self.boards[*board].get_or_insert_default();
                Must::Do
            }
            Operation::Delete { board } => {
                self.files.retain(|(of, _), _| of != board);
                self.boards[*board].take().map_or(Must::Refuse, |_| Must::Do)
            }
            // They are no part of this model.
            Operation::Contest(..) => Must::Either,
            Operation::Pay(payment) => self.pay(*payment),
            Operation::Hold { member, units, expires_at } => {
                self.wallets[*member].held += units;
                let hold = Hold { member: *member, units: *units, expires_at: *expires_at };
                self.holds.insert(number, hold);
                self.covered(*member)
            }
            Operation::End { hold, taken, to } => {
                // The same end once more gets the stored result.
                let Some(open) = self.holds.remove(hold) else { return Must::Either };
                self.wallets[open.member].held -= open.units;
                if let Some(units) = taken {
                    self.wallets[open.member].balance -= units;
                    self.wallets[*to].balance += units;
                }
                match taken {
                    Some(_) if *to == open.member => Must::Refuse,
                    // The hold may reserve credit, which no other member gets.
                    Some(_) if self.covered(open.member) == Must::Either => Must::Either,
                    _ if open.expires_at > now => Must::Do,
                    _ => Must::Either,
                }
            }
        }
    }

    fn on(&mut self, index: usize, change: impl FnOnce(usize, &mut Board) -> Must) -> Must {
        self.boards[index].as_mut().map_or(Must::Refuse, |board| change(index, board))
    }

    fn pay(&mut self, payment: Payment) -> Must {
        match payment {
            Payment::Deposit { to, units } => {
                self.wallets[to].balance += units;
                Must::Do
            }
            Payment::Promotion { to, units, expires_at } => {
                *self.wallets[to].promoted.entry(expires_at).or_default() += units;
                if expires_at == FAR { Must::Do } else { Must::Either }
            }
            Payment::Transfer { from, to, units } => {
                self.wallets[from].balance -= units;
                self.wallets[to].balance += units;
                self.covered(from)
            }
        }
    }

    /// Whether a wallet covers the amount. Prizes may cover more than the model knows, and contests take their fees.
    fn covered(&self, member: usize) -> Must {
        let Wallet { balance, held, .. } = &self.wallets[member];
        if *balance >= held + FEES_MAX { Must::Do } else { Must::Either }
    }

    /// Learns the present record from the answer to a submit; returns whether that is possible.
    pub(crate) fn learn(&mut self, operation: &Operation, (score, at): (i64, i64)) -> bool {
        let Operation::Submit { board, player, .. } = operation else { return true };
        let record = self.boards[*board].as_mut().and_then(|board| board.records.get_mut(player));
        let Some(record) = record.filter(|record| record.score == score) else { return false };
        let fits = record.at.is_none_or(|known| known == at);
        record.at = Some(at);
        fits
    }

    /// Ends a hold whose time has run out.
    pub(crate) fn expire(&mut self, hold: usize) {
        let ended = self.holds.remove(&hold).unwrap();
        self.wallets[ended.member].held -= ended.units;
    }

    /// Whether this equals the observed state.
    pub(crate) fn is(&self, found: &Self) -> bool {
        let same = |(player, record): (&usize, &Record), found: &Board| {
            let other = found.records.get(player);
            other.is_some_and(|other| {
                other.score == record.score && record.at.is_none_or(|at| other.at == Some(at))
            })
        };
        let board = |(ours, found): (&Option<Board>, &Option<Board>)| match (ours, found) {
            (None, None) => true,
            (Some(ours), Some(found)) => {
                ours.banned == found.banned
                    && ours.records.len() == found.records.len()
                    && ours.records.iter().all(|record| same(record, found))
            }
            _ => false,
        };
        let file = |(key, lines): (&(usize, u8), &u64)| found.files.get(key).copied().unwrap_or(0) == *lines;
        self.wallets == found.wallets
            && self.boards.iter().zip(&found.boards).all(board)
            && self.files.iter().all(file)
    }
}

impl Board {
    fn submit(&mut self, index: usize, player: usize, new: Record) {
        let Some(old) = self.records.get_mut(&player) else {
            self.records.insert(player, new);
            return;
        };
        match BOARDS[index] {
            "latest" => {
                // A score of now comes after all others.
                let later = new.at.is_none_or(|at| old.at.is_some_and(|old| at >= old));
                if later && new.score != old.score {
                    *old = new;
                }
            }
            "sum" => {
                if new.score != 0 {
                    let at = old.at.zip(new.at).map(|(old, new)| old.max(new));
                    *old = Record { score: old.score + new.score, at };
                }
            }
            _ => {
                if new.score > old.score {
                    *old = new;
                }
            }
        }
    }
}
