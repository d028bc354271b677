//! The only list of HTTP routes: path, method, permission or scope, server, operation.

use super::call::Call;
use super::response::Response;
use super::{
    audit_log, contests, events, export, imports, keys, leaderboards, ledger_imports, me, members, players,
    ranks, service, wallets, webhooks,
};
use std::future::Future;
use std::pin::Pin;
use tally_rules::role::Permission;
use tally_rules::scope::Scope;
use tally_wire::Problem;

/// The result of an operation.
pub(super) type OperationFuture = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;

/// One operation.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) permission: Permission,
    pub(super) runs_on: RunsOn,
    pub(super) run: fn(Call) -> OperationFuture,
}

/// Which server runs an operation, if servers with ranks in memory follow another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunsOn {
    /// The one that got the request, whatever state it has: its own figures, and event streams, which end with their connection.
    Itself,
    /// The one that got the request, or the leader for a newer state: a read.
    Here,
    /// The leader: a change, or what its memory alone knows.
    Leader,
}

/// Which operations a listener has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// All.
    All,
    /// Those of operators: metrics, the status, keys, webhooks and the audit log.
    Operators,
}

impl Serves {
    pub(super) fn has(self, route: &Route) -> bool {
        use Permission::{Administer, Observe, Scope as Of};
        self == Self::All || matches!(route.permission, Observe | Administer | Of(Scope::AuditRead))
    }
}

/// A permission, or a scope.
macro_rules! permission {
    (Open) => {
        Permission::Open
    };
    (Observe) => {
        Permission::Observe
    };
    (Read) => {
        Permission::Read
    };
    (Own) => {
        Permission::Own
    };
    (Play) => {
        Permission::Play
    };
    (Administer) => {
        Permission::Administer
    };
    ($scope:ident) => {
        Permission::Scope(Scope::$scope)
    };
}

macro_rules! route {
    ($method:literal $path:literal $permission:ident $runs_on:ident $operation:path) => {
        Route {
            method: $method,
            path: $path,
            permission: permission!($permission),
            runs_on: RunsOn::$runs_on,
            run: |call| Box::pin($operation(call)),
        }
    };
}

/// Paths that need no authentication; `service` handles them.
pub(super) const OPEN_PATHS: [&str; 11] = [
    "/healthz",
    "/readyz",
    "/readyz/store",
    "/readyz/ranking",
    "/readyz/applications",
    "/openapi.json",
    "/docs",
    "/docs/docs.css",
    "/docs/docs.js",
    "/docs/docs_parts.js",
    "/docs/docs_try.js",
];

/// Those for health checks, which every listener has.
pub(super) const HEALTH_PATHS: &[&str] = OPEN_PATHS.split_at(5).0;

/// The path that Prometheus scrapes.
pub(super) const METRICS_PATH: &str = "/metrics";

/// Older paths, each with its present one. They do the same for one more version.
pub(super) const OLDER_PATHS: [(&str, &str); 4] = [
    ("/v1/contests/{contest}/members", "/v1/contests/{contest}/players"),
    ("/v1/contests/{contest}/members/{player}/ban", "/v1/contests/{contest}/players/{player}/ban"),
    ("/v1/contests/{contest}/members/{player}/restore", "/v1/contests/{contest}/players/{player}/restore"),
    ("/v1/contests/{contest}/members/{player}/correct", "/v1/contests/{contest}/players/{player}/correct"),
];

/// Every operation.
pub(super) const ROUTES: &[Route] = &[
    route!("GET" "/metrics" Observe Itself service::metrics),
    route!("GET" "/v1/status" Observe Itself service::status),
    route!("GET" "/v1/leaderboards" Read Here leaderboards::list::list),
    route!("PUT" "/v1/leaderboards/{board}" BoardsAdmin Leader leaderboards::put::put),
    route!("GET" "/v1/leaderboards/{board}" Read Here leaderboards::get::get),
    route!("DELETE" "/v1/leaderboards/{board}" BoardsAdmin Leader leaderboards::delete::delete),
    route!("POST" "/v1/leaderboards/{board}/scores" ScoresWrite Leader leaderboards::submit::submit),
    route!("GET" "/v1/leaderboards/{board}/scores" Read Here leaderboards::page::page),
    route!("GET" "/v1/leaderboards/{board}/periods" Read Here leaderboards::periods::periods),
    route!("GET" "/v1/leaderboards/{board}/prizes" Read Here leaderboards::prizes::prizes),
    route!("POST" "/v1/leaderboards/{board}/prizes/repay" BoardsAdmin Leader leaderboards::prizes::repay),
    route!("GET" "/v1/leaderboards/{board}/events" Read Itself events::leaderboard),
    route!("GET" "/v1/leaderboards/{board}/players/{player}" Read Here leaderboards::player::player),
    route!("DELETE" "/v1/leaderboards/{board}/players/{player}" ScoresWrite Leader leaderboards::remove::remove),
    route!("GET" "/v1/leaderboards/{board}/players/{player}/around" Read Here leaderboards::around::around),
    route!("GET" "/v1/leaderboards/{board}/bans" Read Here leaderboards::bans::bans),
    route!("POST" "/v1/leaderboards/{board}/players/{player}/correct" BoardsAdmin Leader leaderboards::correct::correct),
    route!("POST" "/v1/leaderboards/{board}/players/{player}/ban" BoardsAdmin Leader players::ban),
    route!("POST" "/v1/leaderboards/{board}/players/{player}/restore" BoardsAdmin Leader players::restore),
    route!("POST" "/v1/leaderboards/{board}/among" Read Here leaderboards::among::among),
    route!("POST" "/v1/scores/batch" ScoresWrite Leader leaderboards::batch::batch),
    route!("POST" "/v1/ranks" Read Here ranks::of_many),
    route!("GET" "/v1/players" Read Here players::search),
    route!("PUT" "/v1/players/{player}" ScoresWrite Leader players::put),
    route!("GET" "/v1/players/{player}" Read Here players::get),
    route!("DELETE" "/v1/players/{player}" BoardsAdmin Leader players::erase),
    route!("GET" "/v1/players/{player}/ranks" Read Here ranks::of_player),
    route!("GET" "/v1/players/{player}/contests" ContestsManage Here contests::members::of_player),
    route!("GET" "/v1/currencies" Read Here wallets::currencies::list),
    route!("GET" "/v1/wallets/{member}" MoneyRead Here wallets::read::wallets),
    route!("GET" "/v1/wallets/{member}/transactions" MoneyRead Here wallets::read::transactions),
    route!("POST" "/v1/deposits" MoneyMint Leader wallets::post::deposit),
    route!("POST" "/v1/withdrawals" MoneyMove Leader wallets::post::withdraw),
    route!("POST" "/v1/transfers" MoneyMove Leader wallets::post::transfer),
    route!("POST" "/v1/transfers/batch" MoneyMove Leader wallets::batch::batch),
    route!("POST" "/v1/holds" MoneyMove Leader wallets::holds::place),
    route!("GET" "/v1/holds" MoneyRead Here wallets::lists::holds),
    route!("GET" "/v1/holds/{hold}" MoneyRead Here wallets::holds::get),
    route!("POST" "/v1/holds/{hold}/capture" MoneyMove Leader wallets::holds::capture),
    route!("POST" "/v1/holds/{hold}/void" MoneyMove Leader wallets::holds::void),
    route!("GET" "/v1/ledger/accounts" MoneyRead Here wallets::ledger::accounts),
    route!("GET" "/v1/ledger/trial-balance" MoneyRead Here wallets::ledger::trial_balance),
    route!("GET" "/v1/ledger/owed" MoneyRead Here wallets::ledger::owed),
    route!("GET" "/v1/ledger/transactions" MoneyRead Here wallets::lists::transactions),
    route!("GET" "/v1/ledger/transactions/{transaction}" MoneyRead Here wallets::ledger::transaction),
    route!("POST" "/v1/ledger/transactions/{transaction}/reverse" MoneyMove Leader wallets::ledger::reverse),
    route!("POST" "/v1/contests" ContestsManage Leader contests::change::create),
    route!("GET" "/v1/contests" Read Here contests::change::list),
    route!("GET" "/v1/contests/{contest}" Read Here contests::change::get),
    route!("PATCH" "/v1/contests/{contest}" ContestsManage Leader contests::change::patch),
    route!("POST" "/v1/contests/{contest}/open" Play Leader contests::actions::open),
    route!("POST" "/v1/contests/{contest}/start" Play Leader contests::actions::start),
    route!("POST" "/v1/contests/{contest}/finish" Play Leader contests::actions::finish),
    route!("POST" "/v1/contests/{contest}/settle" Play Leader contests::actions::settle),
    route!("POST" "/v1/contests/{contest}/repay" Play Leader contests::actions::repay),
    route!("POST" "/v1/contests/{contest}/cancel" Play Leader contests::actions::cancel),
    route!("POST" "/v1/contests/{contest}/applications" Play Leader contests::applications::apply),
    route!("GET" "/v1/contests/{contest}/applications" Play Here contests::applications::list),
    route!("POST" "/v1/contests/{contest}/applications/accept" Play Leader contests::applications::accept),
    route!("POST" "/v1/contests/{contest}/applications/reject" Play Leader contests::applications::reject),
    route!("DELETE" "/v1/contests/{contest}/applications/{player}" Play Leader contests::applications::withdraw),
    route!("GET" "/v1/contests/{contest}/players" Read Here contests::members::members),
    route!("POST" "/v1/contests/{contest}/players/{player}/ban" Play Leader contests::members::ban),
    route!("POST" "/v1/contests/{contest}/players/{player}/restore" Play Leader contests::members::restore),
    route!("POST" "/v1/contests/{contest}/players/{player}/correct" Play Leader contests::members::correct),
    route!("GET" "/v1/contests/{contest}/events" Read Itself events::contest),
    route!("GET" "/v1/contests/{contest}/prizes" Read Here contests::members::prizes),
    route!("GET" "/v1/contests/{contest}/refunds" Read Here contests::members::refunds),
    route!("POST" "/v1/contest-series" ContestsManage Leader contests::series::create),
    route!("GET" "/v1/contest-series" Read Here contests::series::list),
    route!("GET" "/v1/contest-series/{series}" Read Here contests::series::get),
    route!("PATCH" "/v1/contest-series/{series}" ContestsManage Leader contests::series::patch),
    route!("DELETE" "/v1/contest-series/{series}" ContestsManage Leader contests::series::delete),
    route!("GET" "/v1/imports/{board}/{digest}" ScoresWrite Here imports::progress),
    route!("POST" "/v1/imports" ScoresWrite Leader imports::import),
    route!("POST" "/v1/imports/members" MembersWrite Leader ledger_imports::members),
    route!("POST" "/v1/imports/transfers" MoneyMove Leader ledger_imports::transfers),
    route!("POST" "/v1/members" MembersWrite Leader members::create),
    route!("GET" "/v1/members" MembersRead Here members::search),
    route!("GET" "/v1/members/{member}" MembersRead Here members::get),
    route!("PATCH" "/v1/members/{member}" MembersWrite Leader members::change),
    route!("POST" "/v1/members/{member}/close" MembersWrite Leader members::close),
    route!("POST" "/v1/members/{member}/erase" Administer Leader members::erase),
    route!("GET" "/v1/members/{member}/export" Administer Leader export::of_member),
    route!("POST" "/v1/members/{member}/unlock-pin" MembersWrite Leader members::unlock_pin),
    route!("POST" "/v1/members/{member}/sign-out" MembersWrite Leader members::sign_out),
    route!("POST" "/auth/signin" Open Leader me::sign_in),
    route!("GET" "/v1/me" Own Here me::profile),
    route!("GET" "/v1/me/wallet" Own Here wallets::read::own),
    route!("GET" "/v1/me/transactions" Own Here wallets::read::own_transactions),
    route!("GET" "/v1/me/ranks" Own Here me::ranks),
    route!("GET" "/v1/me/events" Own Itself events::own),
    route!("POST" "/transfer/phone-num" Own Leader me::transfer),
    route!("GET" "/v1/ledger/archives" Administer Here wallets::archives::list),
    route!("POST" "/v1/ledger/archives" Administer Leader wallets::archives::create),
    route!("GET" "/v1/audit" AuditRead Here audit_log::list),
    route!("GET" "/v1/keys" Administer Here keys::list),
    route!("POST" "/v1/keys" Administer Leader keys::create),
    route!("DELETE" "/v1/keys/{key}" Administer Leader keys::revoke),
    route!("GET" "/v1/webhooks" Administer Here webhooks::list),
    route!("POST" "/v1/webhooks" Administer Leader webhooks::create),
    route!("GET" "/v1/webhooks/{webhook}" Administer Here webhooks::get),
    route!("PATCH" "/v1/webhooks/{webhook}" Administer Leader webhooks::patch),
    route!("DELETE" "/v1/webhooks/{webhook}" Administer Leader webhooks::delete),
    route!("POST" "/v1/webhooks/{webhook}/secret" Administer Leader webhooks::rotate),
    route!("GET" "/v1/webhooks/{webhook}/deliveries" Administer Here webhooks::list_deliveries),
    route!("POST" "/v1/webhooks/{webhook}/deliveries/{delivery}/send" Administer Leader webhooks::send),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A read that the audit log has.
    const AUDITED: &str = "/v1/members/{member}/export";
    /// Requests that read, although a body says what.
    const READS: [&str; 2] = ["/v1/leaderboards/{board}/among", "/v1/ranks"];

    /// A change that a follower runs is refused by its store; a read that it forwards costs the leader what a follower saves.
    #[test]
    fn the_leader_runs_what_changes_something_and_nothing_else() {
        for route in ROUTES {
            let reads = route.method == "GET" && route.path != AUDITED
                || route.method == "POST" && READS.contains(&route.path);
            let of_itself = route.permission == Permission::Observe || route.path.ends_with("/events");
            let wanted = match (reads, of_itself) {
                (true, true) => RunsOn::Itself,
                (true, false) => RunsOn::Here,
                (false, _) => RunsOn::Leader,
            };
            assert_eq!(route.runs_on, wanted, "{} {}", route.method, route.path);
            let may_change = !matches!(route.permission, Permission::Read | Permission::Observe);
            assert!(
                reads || may_change,
                "{} {} changes something by a right to read",
                route.method,
                route.path
            );
        }
        assert_eq!(ROUTES.iter().filter(|route| READS.contains(&route.path)).count(), READS.len());
    }
}
