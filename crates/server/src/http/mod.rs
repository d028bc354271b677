//! HTTP: `listen` accepts connections, `dispatch` finds the route, `guard` authenticates the caller, `proxies` finds its
//! address. `forward` sends what a follower may not do to its leader. `call` is a request as its operation sees it; `response` and `problem` make responses. `routes`
//! names the function of each operation. The other files and folders have these functions, by subject.

mod as_of;
mod audit;
mod audit_log;
mod body;
mod call;
mod console;
mod contests;
mod dispatch;
mod events;
mod export;
pub mod follow;
pub mod forward;
mod guard;
mod guide;
mod imports;
mod keys;
mod leaderboards;
mod ledger_imports;
pub mod listen;
mod me;
mod members;
mod not_found;
mod openapi;
mod players;
mod problem;
pub mod proxies;
mod ranks;
mod response;
mod routes;
mod service;
mod span;
mod wallets;
mod webhooks;

pub(crate) use as_of::BEHIND_MAX;
