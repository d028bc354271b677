//! The parts of the document, each read page by page: the member, scores, contests, money, and the audit log.
//!
//! Rows have the form of the list that has them, and the names of no other persons.

use super::document::{Document, Stopped};
use crate::http::audit_log;
use serde_json::{Value, json};
use std::sync::Arc;
use tally_rules::contest::Payout;
use tally_rules::ledger::{Member, MemberId, WalletKey};
use tally_service::audit;
use tally_service::boards::Board;
use tally_service::contests::of_player::{self, Entered, Subject};
use tally_service::ledger::{lists, read};
use tally_service::members::export;
use tally_service::players::profile;
use tally_service::scan::ListRange;
use tally_service::{Failure, Tally, blocking};
use tally_wire::api::contests::{ApplicationJson, write_member, write_payout};
use tally_wire::api::holds::HoldJson;
use tally_wire::api::wallets::{TransactionJson, WalletJson};
use tally_wire::api::{members, players};
use tally_wire::numbers::{Int64, ScoreOut};
use tally_wire::time;

/// Rows of one page, and contests or leaderboards of one.
const ROWS: usize = 200;

/// What is exported.
pub(super) struct Export {
    pub(super) tally: Arc<Tally>,
    pub(super) int64: Int64,
    pub(super) id: MemberId,
    pub(super) member: Member,
    /// Whether scores under the name of its player are its own.
    pub(super) owns_player: bool,
}

impl Export {
    /// Writes all of it.
    pub(super) async fn write(&self, out: &mut Document) -> Result<(), Stopped> {
        let (tally, player) = (Arc::clone(&self.tally), self.member.player.clone());
        out.field("exported_at", &time::format(tally.now()));
        out.field("member", &members::write(self.id, &self.member, tally.members.pins.has(&self.member)));
        let name = player.clone();
        let profile = match blocking(move || profile::get(&tally, &name)).await {
            Ok(profile) if self.owns_player => Some(players::write_player(player.as_str(), &profile)),
            Ok(_) | Err(Failure::Rejected(_)) => None,
            Err(failure) => return Err(failure.into()),
        };
        out.field("owns_player", &self.owns_player);
        out.field("profile", &profile);
        out.begin("leaderboards");
        if self.owns_player {
            self.leaderboards(out).await?;
        }
        out.end();
        self.contests(out).await?;
        self.period_prizes(out).await?;
        self.money(out).await?;
        self.holds(out).await?;
        self.audit(out).await?;
        out.complete().await
    }

    async fn leaderboards(&self, out: &mut Document) -> Result<(), Stopped> {
        let mut after = None;
        loop {
            let (tally, player) = (Arc::clone(&self.tally), self.member.player.clone());
            let page = blocking(move || {
                let boards = export::boards(&tally, after.as_ref(), ROWS);
                let of =
                    |board: &Arc<Board>| Ok((Arc::clone(board), export::records(&tally, board, &player)?));
                boards.iter().map(of).collect::<Result<Vec<_>, Failure>>()
            });
            let page = page.await?;
            for (board, records) in &page {
                let banned = board.is_banned(&self.member.player);
                if !records.is_empty() || banned {
                    out.item(&self.board(board, records, banned));
                }
            }
            out.page().await?;
            after = page.last().map(|(board, _)| board.id.clone());
            if page.len() < ROWS {
                return Ok(());
            }
        }
    }

    fn board(&self, board: &Board, records: &[export::PlayerRecord], banned: bool) -> Value {
        let definition = &board.definition;
        let record = |one: &export::PlayerRecord| {
            json!({
                "period": one.period,
                "score": ScoreOut::new(definition.score, one.record.score, self.int64),
                "subscore": ScoreOut::integer(one.record.subscore, self.int64),
                "at": time::format(one.record.at),
                "rank": one.rank,
            })
        };
        json!({"board": board.id.as_str(), "banned": banned, "records": records.iter().map(record).collect::<Vec<_>>()})
    }

    async fn contests(&self, out: &mut Document) -> Result<(), Stopped> {
        out.begin("contests");
        let mut after = None;
        loop {
            let (tally, subject) = (Arc::clone(&self.tally), self.subject());
            let page = blocking(move || {
                let page = of_player::page(&tally, &subject, after.as_ref(), ROWS)?;
                let with_payouts = |one: Entered| {
                    let no = one.record.no;
                    let its = one.enrolled.as_ref().map(|_| of_player::payouts(&tally, no, &subject));
                    Ok((one, its.transpose()?.unwrap_or_default()))
                };
                let rows = page.entered.into_iter().map(with_payouts).collect::<Result<Vec<_>, Failure>>()?;
                Ok((rows, page.damaged, page.next))
            });
            let (rows, damaged, next) = page.await?;
            rows.iter().for_each(|(one, payouts)| out.item(&self.contest(one, payouts)));
            out.leave_out(&damaged);
            out.page().await?;
            after = next;
            if after.is_none() {
                break;
            }
        }
        out.end();
        Ok(())
    }

    fn subject(&self) -> Subject {
        Subject { member: self.id, player: self.member.player.clone(), owns_player: self.owns_player }
    }

    fn contest(&self, one: &Entered, payouts: &[(u32, Payout)]) -> Value {
        let Entered { id, record, is_staff, application, enrolled } = one;
        let payout = |(no, payout): &(u32, Payout)| write_payout(payout, record.is_of_pool(*no), true, None);
        json!({
            "contest": id.as_str(),
            "state": record.state.as_str(),
            "staff": is_staff,
            "application": application.as_ref().map(|row| ApplicationJson::new(&self.member.player, row)),
            "entry": enrolled.as_ref().map(|row| {
                write_member(&row.player, &row.enrolled, (row.banned, row.attempts), true)
            }),
            "payouts": payouts.iter().map(payout).collect::<Vec<_>>(),
        })
    }

    async fn period_prizes(&self, out: &mut Document) -> Result<(), Stopped> {
        out.begin("period_prizes");
        let mut after = None;
        loop {
            let (tally, subject) = (Arc::clone(&self.tally), self.subject());
            let page = blocking(move || export::period_prizes(&tally, &subject, after, ROWS)).await?;
            for (payment, payouts) in &page.rows {
                for (_, payout) in payouts {
                    let mut item = write_payout(payout, false, true, None);
                    item["board"] = json!(payment.board.as_str());
                    item["period"] = json!(payment.period);
                    out.item(&item);
                }
            }
            out.page().await?;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        out.end();
        Ok(())
    }

    /// Wallets, and then their transactions, newest first.
    async fn money(&self, out: &mut Document) -> Result<(), Stopped> {
        let wallets = read::wallets(&self.tally, self.id).await?;
        let key = |currency| WalletKey { member: self.id, currency };
        out.begin("wallets");
        wallets.rows.iter().for_each(|(code, wallet)| out.item(&WalletJson::new(key(*code), wallet)));
        out.end();
        out.leave_out(&wallets.damaged);
        out.begin("transactions");
        for (code, _) in &wallets.rows {
            let mut below = None;
            loop {
                let page = read::history(&self.tally, key(*code), (below, ROWS), true).await?;
                for (entry, origin) in page.entries.rows.iter().zip(&page.origins) {
                    out.item(&TransactionJson::new(*code, entry).with_origin(origin));
                }
                out.leave_out(&page.entries.damaged);
                out.page().await?;
                below = page.more_below;
                if below.is_none() {
                    break;
                }
            }
        }
        out.end();
        Ok(())
    }

    async fn holds(&self, out: &mut Document) -> Result<(), Stopped> {
        out.begin("holds");
        // A hold is not older than its member.
        let from = Some(Member::created_at(self.id));
        let mut span = ListRange { from, limit: ROWS, ..ListRange::default() };
        loop {
            let (tally, member, part) = (Arc::clone(&self.tally), Some(self.id), span.clone());
            let time = tally.decision_time();
            let page = blocking(move || lists::holds(&tally, (member, None), &part, time)).await?;
            for (id, hold) in &page.rows {
                out.item(&HoldJson::new(tally_rules::ledger::HoldId(*id), hold, time));
            }
            out.leave_out(&page.damaged);
            out.page().await?;
            span.before = page.next;
            if span.before.is_none() {
                break;
            }
        }
        out.end();
        Ok(())
    }

    async fn audit(&self, out: &mut Document) -> Result<(), Stopped> {
        out.begin("audit");
        let mut span = ListRange { limit: ROWS, ..ListRange::default() };
        loop {
            let (tally, player, member, part) =
                (Arc::clone(&self.tally), self.member.player.clone(), self.id, span.clone());
            let player = self.owns_player.then_some(player);
            let page = blocking(move || audit::about(&tally, (member, player.as_ref()), &part)).await?;
            page.rows.iter().for_each(|(id, row)| out.item(&audit_log::shown(*id, row)));
            out.leave_out(&page.damaged);
            out.page().await?;
            span.before = page.next;
            if span.before.is_none() {
                break;
            }
        }
        out.end();
        Ok(())
    }
}
