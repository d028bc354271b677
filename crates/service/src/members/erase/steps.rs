//! The rows that name an erased person, in bounded steps: scores, words of transfers and holds, names in contests, and names in the
//! audit log. Each step may be repeated, and may run on several servers at once.
//!
//! Words are those from before the erasure: a reversal that comes later has its own reason. A `reference` stays. It is the key of
//! the caller to books of its own, such as a payment of a provider. Blocks.

use super::end;
use crate::contests::of_player;
use crate::failure::Failure;
use crate::members::find;
use crate::players::erase as players;
use crate::servers;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError, TryLockError};
use tally_rules::audit::{AuditAction, AuditEntry, AuditId};
use tally_rules::contest::ContestId;
use tally_rules::ledger::erasure::{pseudonym, renamed_in_list};
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    EntryKind, Erasure, Hold, HoldId, Member, MemberId, ReversalLink, Transfer, TransferId, Uuid, WalletKey,
};
use tally_rules::{Micros, PlayerId};
use tally_store::{LedgerReadSet, LedgerWriteSet, Loaded, ReadSet, Redacted, ShardSet, WindowKey, WriteSet};

/// Rows of one step.
const ROWS: usize = 500;

/// Contests or periods of one step.
const NAMES: usize = 100;

/// Steps that a request waits for.
const STEPS_OF_REQUEST: usize = 60;

/// Before every row in a list that is newest first.
const NEWEST: Uuid = Uuid([0xff; 16]);

/// What comes next.
enum Stage {
    Scores,
    /// Wallets with the number below which their entries are left; the last one is next.
    Money(Vec<(WalletKey, u64)>),
    Holds(Uuid),
    Contests(Option<ContestId>),
    Periods(Option<WindowKey>),
    Audit(Uuid),
    Row,
    Done,
}

/// What the end of a step means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Next,
    /// Something else has to end first, such as the payments of a contest.
    Wait,
}

/// An erasure that runs.
pub(super) struct Steps {
    member: MemberId,
    row: Member,
    stage: Stage,
}

/// The first steps of an erasure, for its request. Another erasure that runs here keeps it from waiting: the task does them.
pub(super) fn first(tally: &Tally, member: MemberId) -> Result<(), Failure> {
    let _alone = match tally.members.erasing.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Ok(()),
    };
    let mut steps = Steps::new(tally, member)?;
    for _ in 0..STEPS_OF_REQUEST {
        if !steps.go_on(tally)? {
            break;
        }
    }
    Ok(())
}

/// All steps of an erasure, unless it is done.
pub(super) fn all(tally: &Tally, member: MemberId) -> Result<(), Failure> {
    let _alone = tally.members.erasing.lock().unwrap_or_else(PoisonError::into_inner);
    let mut steps = Steps::new(tally, member)?;
    if steps.row.erasure(member) == Some(Erasure::Running) {
        while steps.go_on(tally)? {}
    }
    Ok(())
}

impl Steps {
    fn new(tally: &Tally, member: MemberId) -> Result<Self, Failure> {
        Ok(Self { member, row: find::by_id(tally, member)?, stage: Stage::Scores })
    }

    /// Does the next step; returns whether another one follows.
    fn go_on(&mut self, tally: &Tally) -> Result<bool, Failure> {
        let (next, then) = self.step(tally)?;
        self.stage = next;
        Ok(then == Then::Next && !matches!(self.stage, Stage::Done))
    }

    fn step(&self, tally: &Tally) -> Result<(Stage, Then), Failure> {
        let player = &self.row.player;
        let next = match &self.stage {
            Stage::Scores => {
                if self.row.owns_player() {
                    players::of_member(tally, player)?;
                }
                let wallets = tally.store.ledger().list_wallets(self.member)?.rows.into_iter();
                let key = |currency| WalletKey { member: self.member, currency };
                Stage::Money(wallets.map(|(code, wallet)| (key(code), wallet.sequence + 1)).collect())
            }
            Stage::Money(wallets) => match wallets.split_last() {
                None => Stage::Holds(NEWEST),
                Some(((wallet, below), rest)) => {
                    let from = below.saturating_sub(ROWS as u64).max(1);
                    self.transfers(tally, *wallet, from..*below)?;
                    let more = (from > 1).then_some((*wallet, from));
                    Stage::Money(rest.iter().copied().chain(more).collect())
                }
            },
            Stage::Holds(before) => self.holds(tally, *before)?.map_or(Stage::Contests(None), Stage::Holds),
            Stage::Contests(after) => {
                let page = of_player::rename(tally, &self.subject(), after.as_ref(), NAMES)?;
                match page {
                    of_player::Renamed::Waits => return Ok((Stage::Contests(after.clone()), Then::Wait)),
                    of_player::Renamed::Upto(Some(last)) => Stage::Contests(Some(last)),
                    of_player::Renamed::Upto(None) => Stage::Periods(None),
                }
            }
            Stage::Periods(after) => {
                let last = of_player::rename_in_periods(tally, &self.subject(), *after, NAMES)?;
                last.map_or(Stage::Audit(NEWEST), |last| Stage::Periods(Some(last)))
            }
            Stage::Audit(before) => self.audit(tally, *before)?.map_or(Stage::Row, Stage::Audit),
            Stage::Row => {
                end(tally, self.member, Handle::Player(player.clone()))?;
                Stage::Done
            }
            Stage::Done => Stage::Done,
        };
        Ok((next, Then::Next))
    }

    fn subject(&self) -> of_player::Subject {
        let (player, owns_player) = (self.row.player.clone(), self.row.owns_player());
        of_player::Subject { member: self.member, player, owns_player }
    }

    /// Takes the words from the transfers of some entries of a wallet.
    fn transfers(
        &self,
        tally: &Tally,
        wallet: WalletKey,
        numbers: std::ops::Range<u64>,
    ) -> Result<(), Failure> {
        let entries = tally.store.ledger().list_entries(wallet, numbers)?.rows;
        let ids = tally_lanes::keys_to_load(entries.iter().map(|(_, entry)| entry.transfer));
        let ids: Vec<TransferId> =
            ids.into_iter().filter(|id| self.row.is_before_erasure(id.0.at())).collect();
        let found = tally.store.ledger().transfers(&ids)?;
        let rows = ids.into_iter().zip(found).filter_map(|(id, transfer)| Some((id, transfer?)));
        let has_words = |transfer: &Transfer| transfer.origin.has_words();
        // The reason of a reversal was in its link before.
        let has_link =
            |transfer: &Transfer| matches!(transfer.kind, EntryKind::ReversalOut | EntryKind::ReversalIn);
        let rows: Vec<_> = rows.filter(|(_, row)| has_words(row) || has_link(row)).collect();
        let reversals = rows.iter().filter(|(_, row)| has_link(row)).map(|(id, _)| *id).collect();
        let plan = LedgerReadSet { reversals, ..LedgerReadSet::default() };
        let silent = |(id, row): &(TransferId, Transfer)| {
            (*id, Transfer { origin: row.origin.without_words(), ..row.clone() })
        };
        let transfers: Vec<_> = rows.iter().filter(|(_, row)| has_words(row)).map(silent).collect();
        if rows.is_empty() {
            return Ok(());
        }
        run(tally, plan, |plan, loaded| {
            let links = plan.ledger.reversals.iter().zip(&loaded.ledger.reversals);
            let silent = links.filter_map(|(id, link)| match link {
                Some(ReversalLink::Reverses { original, reason: Some(_) }) => {
                    Some((*id, ReversalLink::Reverses { original: *original, reason: None }))
                }
                Some(_) | None => None,
            });
            let redacted = Redacted { transfers: transfers.clone(), ..Redacted::default() };
            let ledger = LedgerWriteSet { reversals: silent.collect(), ..LedgerWriteSet::default() };
            WriteSet { ledger, redacted, ..WriteSet::default() }
        })
    }

    /// Takes the words from holds of the member in the next part of the list; where the one after it begins, if there is one.
    fn holds(&self, tally: &Tally, before: Uuid) -> Result<Option<Uuid>, Failure> {
        let rows = tally.store.ledger().list_holds(HoldId(before), ROWS)?.rows;
        let has_words = |hold: &Hold| hold.origin.has_words() || hold.ended_by.has_words();
        let is_its = |id: HoldId, hold: &Hold| {
            hold.wallet.member == self.member && has_words(hold) && self.row.is_before_erasure(id.0.at())
        };
        let its = rows.iter().filter(|(id, hold)| is_its(*id, hold)).map(|(id, _)| *id);
        let holds = tally_lanes::keys_to_load(its);
        if !holds.is_empty() {
            // An open hold may end meanwhile, so it is read again.
            run(tally, LedgerReadSet { holds, ..LedgerReadSet::default() }, |plan, loaded| {
                let rows = plan.ledger.holds.iter().zip(&loaded.ledger.holds);
                let silent = |hold: &Hold| Hold {
                    origin: hold.origin.without_words(),
                    ended_by: hold.ended_by.without_words(),
                    ..hold.clone()
                };
                let holds = rows.filter_map(|(id, hold)| Some((*id, silent(hold.as_ref()?)))).collect();
                let ledger = LedgerWriteSet { holds, ..LedgerWriteSet::default() };
                WriteSet { ledger, ..WriteSet::default() }
            })?;
        }
        // A hold is not older than its member.
        let since = Member::created_at(self.member);
        let last = rows.last().map(|(id, _)| id.0).filter(|last| rows.len() == ROWS && last.at() >= since);
        Ok(last)
    }

    /// The player, if its name was that of the member at this instant.
    fn player_at(&self, at: Micros) -> Option<&PlayerId> {
        let was_its = self.row.owns_player() || self.row.closed_at.is_some_and(|closed| at <= closed);
        was_its.then_some(&self.row.player)
    }

    /// The same of rows of the audit log that name the member or its player.
    fn audit(&self, tally: &Tally, before: Uuid) -> Result<Option<Uuid>, Failure> {
        let rows = tally.store.list_audit(AuditId(before), ROWS)?.rows;
        let change = |(id, entry): &(AuditId, AuditEntry)| {
            Some((*id, redact(entry, self.member, self.player_at(id.0.at()))?))
        };
        let mut audit: Vec<_> = rows.iter().filter_map(change).collect();
        audit.sort_unstable_by_key(|(id, _)| *id);
        if !audit.is_empty() {
            // A row of an act on scores is where these are.
            let plan = ReadSet { shards: ShardSet::first(tally.store.shards()), ..ReadSet::default() };
            let redacted = Redacted { audit, ..Redacted::default() };
            commit(tally, &plan, &|_| WriteSet { redacted: redacted.clone(), ..WriteSet::default() })?;
        }
        Ok(rows.last().map(|(id, _)| id.0).filter(|_| rows.len() == ROWS))
    }
}

/// A row of the audit log without what names the person; `None` if nothing does. The player is `None` if its name was another's.
fn redact(entry: &AuditEntry, member: MemberId, player: Option<&PlayerId>) -> Option<AuditEntry> {
    let id = member.0.to_string();
    let is_its = match entry.action {
        // Its subject is the name that the player had when it won or paid the fee.
        AuditAction::PlayerPaid => entry.names_side(&id),
        AuditAction::MemberErased => false,
        action => {
            let of_player = player.is_some_and(|player| *entry.subject == *player.as_str());
            action.is_of_player() && of_player || *entry.subject == *id
        }
    };
    let after = if is_its {
        let detail = without_scores(entry);
        AuditEntry { origin: entry.origin.without_words(), subject: id.into(), detail, ..entry.clone() }
    } else if entry.names_side(&id) {
        AuditEntry { origin: entry.origin.without_words(), ..entry.clone() }
    } else {
        let detail = renamed_in_list(entry.detail.as_deref()?, player?.as_str(), &id)?;
        let alone = detail.starts_with("1 ");
        let origin = if alone { entry.origin.without_words() } else { entry.origin.clone() };
        AuditEntry { origin, detail: Some(detail.into()), ..entry.clone() }
    };
    (after != *entry).then_some(after)
}

/// The detail of an act on a player: of `arcade: all_time 9` and `arcade: 9 to 3` the leaderboard is left.
fn without_scores(entry: &AuditEntry) -> Option<Arc<str>> {
    let detail = entry.detail.as_ref()?;
    let has_scores = matches!(entry.action, AuditAction::PlayerRemoved | AuditAction::ScoreCorrected);
    // Scores are two words at least, so what has been left of a row stays.
    let scores = detail.rsplit_once(": ").filter(|(_, scores)| has_scores && scores.contains(' '));
    Some(scores.map_or_else(|| Arc::clone(detail), |(board, _)| board.into()))
}

/// Whether a payout names a player that is not the pseudonym of its member.
pub(crate) fn is_named(player: &PlayerId, member: MemberId) -> bool {
    *player != pseudonym(member)
}

/// Reads and writes rows of members and money in one transaction.
pub(crate) fn run(
    tally: &Tally,
    ledger: LedgerReadSet,
    change: impl Fn(&ReadSet, &Loaded) -> WriteSet,
) -> Result<(), Failure> {
    let plan = ReadSet { ledger, shards: ShardSet::of(0), ..ReadSet::default() };
    commit(tally, &plan, &|loaded| change(&plan, loaded))
}

fn commit(tally: &Tally, plan: &ReadSet, change: &dyn Fn(&Loaded) -> WriteSet) -> Result<(), Failure> {
    servers::again(|| Ok(tally.store.run(plan, &mut |loaded| change(loaded)).map(drop)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::{Actor, Origin};

    #[test]
    fn a_row_of_the_audit_log_keeps_its_act_and_actor() {
        let (member, ann) = (MemberId(Uuid([7; 16])), PlayerId::new("ann").unwrap());
        let id = member.0.to_string();
        let entry = |action, subject: &str, detail: Option<&str>, reason: Option<&str>| AuditEntry {
            origin: Origin { actor: Actor::Local, reason: reason.map(Into::into), metadata: None },
            action,
            subject: subject.into(),
            detail: detail.map(Into::into),
        };
        let of = |entry: &AuditEntry| redact(entry, member, Some(&ann));
        use AuditAction::{
            BoardCreated, ContestAccepted, MemberChanged, MemberErased, MoneyTransferred, PlayerBanned,
            PlayerPaid, PlayerRemoved, ScoreCorrected,
        };
        let banned = entry(PlayerBanned, "ann", Some("goals"), Some("ann cheats"));
        assert_eq!(of(&banned), Some(entry(PlayerBanned, &id, Some("goals"), None)));
        assert_eq!(of(&of(&banned).unwrap()), None, "once");
        assert_eq!(redact(&banned, member, None), None, "another member has the name");
        for (action, detail, left) in [
            (PlayerRemoved, "arcade: all_time 9, weekly:2026-11-23 7", "arcade"),
            (ScoreCorrected, "contest:cup: none to 3", "contest:cup"),
            (ScoreCorrected, "arcade weekly:2026-11-23: 9/1 to 3/0", "arcade weekly:2026-11-23"),
        ] {
            let scores = entry(action, "ann", Some(detail), Some("ann cheats"));
            assert_eq!(of(&scores), Some(entry(action, &id, Some(left), None)));
            assert_eq!(of(&of(&scores).unwrap()), None, "once");
        }
        let changed = entry(MemberChanged, &id, Some("name"), Some("Ann has married"));
        assert_eq!(of(&changed), Some(entry(MemberChanged, &id, Some("name"), None)));
        let both = entry(ContestAccepted, "cup", Some("2 players: ann, bob"), Some("friends"));
        let renamed = format!("2 players: {id}, bob");
        assert_eq!(of(&both), Some(entry(ContestAccepted, "cup", Some(&renamed), Some("friends"))));
        let sides = format!("5 KRW from bob to {id}, transaction t");
        let moved = entry(MoneyTransferred, "bob", Some(&sides), Some("ann's rent"));
        assert_eq!(of(&moved), Some(entry(MoneyTransferred, "bob", Some(&sides), None)));
        let payment = format!("prize: 5 KRW to {id} of contest:cup, transaction t");
        let paid = entry(PlayerPaid, "annie", Some(&payment), Some("ann was annie"));
        assert_eq!(of(&paid), Some(entry(PlayerPaid, &id, Some(&payment), None)));
        assert_eq!(redact(&paid, member, None), of(&paid), "whatever name it had");
        let alone = entry(ContestAccepted, "cup", Some("1 player: ann"), Some("a friend"));
        assert_eq!(of(&alone).unwrap().origin.reason, None);
        for kept in [
            entry(MemberErased, &id, None, Some("letter 7")),
            entry(BoardCreated, "ann", None, Some("a leaderboard of this name")),
            entry(PlayerBanned, "bob", Some("goals"), Some("r")),
            entry(PlayerPaid, "ann", Some("prize: 5 KRW to another of contest:cup, transaction t"), None),
        ] {
            assert_eq!(of(&kept), None, "{kept:?}");
        }
    }
}
