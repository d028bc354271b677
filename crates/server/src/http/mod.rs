//! HTTP: `listen` takes connections, `dispatch` finds the route, `guard` judges who asks, `proxies` where from, `call` is one request as
//! its operation sees it, `answer` and `problem` are what goes back. Each operation is one file.

mod answer;
mod audit;
mod body;
mod call;
mod console;
mod contests;
mod dispatch;
mod events;
mod guard;
mod imports;
mod keys;
mod leaderboards;
mod ledger_imports;
pub mod listen;
mod me;
mod members;
mod openapi;
mod players;
mod problem;
pub mod proxies;
mod routes;
mod service;
mod wallets;
