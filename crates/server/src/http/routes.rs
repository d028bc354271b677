//! The only list of HTTP routes: path, method, permission or scope, operation.

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
    pub(super) run: fn(Call) -> OperationFuture,
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
    ($method:literal $path:literal $permission:ident $operation:path) => {
        Route {
            method: $method,
            path: $path,
            permission: permission!($permission),
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
    route!("GET" "/metrics" Observe service::metrics),
    route!("GET" "/v1/status" Observe service::status),
    route!("GET" "/v1/leaderboards" Read leaderboards::list::list),
    route!("PUT" "/v1/leaderboards/{board}" BoardsAdmin leaderboards::put::put),
    route!("GET" "/v1/leaderboards/{board}" Read leaderboards::get::get),
    route!("DELETE" "/v1/leaderboards/{board}" BoardsAdmin leaderboards::delete::delete),
    route!("POST" "/v1/leaderboards/{board}/scores" ScoresWrite leaderboards::submit::submit),
    route!("GET" "/v1/leaderboards/{board}/scores" Read leaderboards::page::page),
    route!("GET" "/v1/leaderboards/{board}/periods" Read leaderboards::periods::periods),
    route!("GET" "/v1/leaderboards/{board}/prizes" Read leaderboards::prizes::prizes),
    route!("POST" "/v1/leaderboards/{board}/prizes/repay" BoardsAdmin leaderboards::prizes::repay),
    route!("GET" "/v1/leaderboards/{board}/events" Read events::leaderboard),
    route!("GET" "/v1/leaderboards/{board}/players/{player}" Read leaderboards::player::player),
    route!("DELETE" "/v1/leaderboards/{board}/players/{player}" ScoresWrite leaderboards::remove::remove),
    route!("GET" "/v1/leaderboards/{board}/players/{player}/around" Read leaderboards::around::around),
    route!("GET" "/v1/leaderboards/{board}/bans" Read leaderboards::bans::bans),
    route!("POST" "/v1/leaderboards/{board}/players/{player}/correct" BoardsAdmin leaderboards::correct::correct),
    route!("POST" "/v1/leaderboards/{board}/players/{player}/ban" BoardsAdmin players::ban),
    route!("POST" "/v1/leaderboards/{board}/players/{player}/restore" BoardsAdmin players::restore),
    route!("POST" "/v1/leaderboards/{board}/among" Read leaderboards::among::among),
    route!("POST" "/v1/scores/batch" ScoresWrite leaderboards::batch::batch),
    route!("POST" "/v1/ranks" Read ranks::of_many),
    route!("GET" "/v1/players" Read players::search),
    route!("PUT" "/v1/players/{player}" ScoresWrite players::put),
    route!("GET" "/v1/players/{player}" Read players::get),
    route!("DELETE" "/v1/players/{player}" BoardsAdmin players::erase),
    route!("GET" "/v1/players/{player}/ranks" Read ranks::of_player),
    route!("GET" "/v1/players/{player}/contests" ContestsManage contests::members::of_player),
    route!("GET" "/v1/currencies" Read wallets::currencies::list),
    route!("GET" "/v1/wallets/{member}" MoneyRead wallets::read::wallets),
    route!("GET" "/v1/wallets/{member}/transactions" MoneyRead wallets::read::transactions),
    route!("POST" "/v1/deposits" MoneyMint wallets::post::deposit),
    route!("POST" "/v1/withdrawals" MoneyMove wallets::post::withdraw),
    route!("POST" "/v1/transfers" MoneyMove wallets::post::transfer),
    route!("POST" "/v1/transfers/batch" MoneyMove wallets::batch::batch),
    route!("POST" "/v1/holds" MoneyMove wallets::holds::place),
    route!("GET" "/v1/holds" MoneyRead wallets::lists::holds),
    route!("GET" "/v1/holds/{hold}" MoneyRead wallets::holds::get),
    route!("POST" "/v1/holds/{hold}/capture" MoneyMove wallets::holds::capture),
    route!("POST" "/v1/holds/{hold}/void" MoneyMove wallets::holds::void),
    route!("GET" "/v1/ledger/accounts" MoneyRead wallets::ledger::accounts),
    route!("GET" "/v1/ledger/trial-balance" MoneyRead wallets::ledger::trial_balance),
    route!("GET" "/v1/ledger/owed" MoneyRead wallets::ledger::owed),
    route!("GET" "/v1/ledger/transactions" MoneyRead wallets::lists::transactions),
    route!("GET" "/v1/ledger/transactions/{transaction}" MoneyRead wallets::ledger::transaction),
    route!("POST" "/v1/ledger/transactions/{transaction}/reverse" MoneyMove wallets::ledger::reverse),
    route!("POST" "/v1/contests" ContestsManage contests::change::create),
    route!("GET" "/v1/contests" Read contests::change::list),
    route!("GET" "/v1/contests/{contest}" Read contests::change::get),
    route!("PATCH" "/v1/contests/{contest}" ContestsManage contests::change::patch),
    route!("POST" "/v1/contests/{contest}/open" Play contests::actions::open),
    route!("POST" "/v1/contests/{contest}/start" Play contests::actions::start),
    route!("POST" "/v1/contests/{contest}/finish" Play contests::actions::finish),
    route!("POST" "/v1/contests/{contest}/settle" Play contests::actions::settle),
    route!("POST" "/v1/contests/{contest}/repay" Play contests::actions::repay),
    route!("POST" "/v1/contests/{contest}/cancel" Play contests::actions::cancel),
    route!("POST" "/v1/contests/{contest}/applications" Play contests::applications::apply),
    route!("GET" "/v1/contests/{contest}/applications" Play contests::applications::list),
    route!("POST" "/v1/contests/{contest}/applications/accept" Play contests::applications::accept),
    route!("POST" "/v1/contests/{contest}/applications/reject" Play contests::applications::reject),
    route!("DELETE" "/v1/contests/{contest}/applications/{player}" Play contests::applications::withdraw),
    route!("GET" "/v1/contests/{contest}/players" Read contests::members::members),
    route!("POST" "/v1/contests/{contest}/players/{player}/ban" Play contests::members::ban),
    route!("POST" "/v1/contests/{contest}/players/{player}/restore" Play contests::members::restore),
    route!("POST" "/v1/contests/{contest}/players/{player}/correct" Play contests::members::correct),
    route!("GET" "/v1/contests/{contest}/events" Read events::contest),
    route!("GET" "/v1/contests/{contest}/prizes" Read contests::members::prizes),
    route!("GET" "/v1/contests/{contest}/refunds" Read contests::members::refunds),
    route!("POST" "/v1/contest-series" ContestsManage contests::series::create),
    route!("GET" "/v1/contest-series" Read contests::series::list),
    route!("GET" "/v1/contest-series/{series}" Read contests::series::get),
    route!("PATCH" "/v1/contest-series/{series}" ContestsManage contests::series::patch),
    route!("DELETE" "/v1/contest-series/{series}" ContestsManage contests::series::delete),
    route!("GET" "/v1/imports/{board}/{digest}" ScoresWrite imports::progress),
    route!("POST" "/v1/imports" ScoresWrite imports::import),
    route!("POST" "/v1/imports/members" MembersWrite ledger_imports::members),
    route!("POST" "/v1/imports/transfers" MoneyMove ledger_imports::transfers),
    route!("POST" "/v1/members" MembersWrite members::create),
    route!("GET" "/v1/members" MembersRead members::search),
    route!("GET" "/v1/members/{member}" MembersRead members::get),
    route!("PATCH" "/v1/members/{member}" MembersWrite members::change),
    route!("POST" "/v1/members/{member}/close" MembersWrite members::close),
    route!("POST" "/v1/members/{member}/erase" Administer members::erase),
    route!("GET" "/v1/members/{member}/export" Administer export::of_member),
    route!("POST" "/v1/members/{member}/unlock-pin" MembersWrite members::unlock_pin),
    route!("POST" "/v1/members/{member}/sign-out" MembersWrite members::sign_out),
    route!("POST" "/auth/signin" Open me::sign_in),
    route!("GET" "/v1/me" Own me::profile),
    route!("GET" "/v1/me/wallet" Own wallets::read::own),
    route!("GET" "/v1/me/transactions" Own wallets::read::own_transactions),
    route!("GET" "/v1/me/ranks" Own me::ranks),
    route!("GET" "/v1/me/events" Own events::own),
    route!("POST" "/transfer/phone-num" Own me::transfer),
    route!("GET" "/v1/ledger/archives" Administer wallets::archives::list),
    route!("POST" "/v1/ledger/archives" Administer wallets::archives::create),
    route!("GET" "/v1/audit" AuditRead audit_log::list),
    route!("GET" "/v1/keys" Administer keys::list),
    route!("POST" "/v1/keys" Administer keys::create),
    route!("DELETE" "/v1/keys/{key}" Administer keys::revoke),
    route!("GET" "/v1/webhooks" Administer webhooks::list),
    route!("POST" "/v1/webhooks" Administer webhooks::create),
    route!("GET" "/v1/webhooks/{webhook}" Administer webhooks::get),
    route!("PATCH" "/v1/webhooks/{webhook}" Administer webhooks::patch),
    route!("DELETE" "/v1/webhooks/{webhook}" Administer webhooks::delete),
    route!("POST" "/v1/webhooks/{webhook}/secret" Administer webhooks::rotate),
    route!("GET" "/v1/webhooks/{webhook}/deliveries" Administer webhooks::list_deliveries),
    route!("POST" "/v1/webhooks/{webhook}/deliveries/{delivery}/send" Administer webhooks::send),
];
