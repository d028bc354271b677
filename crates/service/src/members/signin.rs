//! Signing in: a login and its password for a token.
//!
//! An unknown login, one without a password and a wrong password are told alike and take as long: something is compared
//! in any case. Who guesses is slowed down before and again when its turn has come, so that guesses at the same time
//! gain nothing. Not here: what a token may do.

use super::token::Said;
use super::{find, password};
use crate::failure::Failure;
use crate::tally::Tally;
use std::net::IpAddr;
use std::sync::Arc;
use tally_rules::ledger::member::{Handle, Login};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedIn {
    /// A token, and for how many seconds it is good.
    Token(String, u64),
    /// Login and password do not belong together.
    Wrong,
    /// Too many were wrong: not looked at for so many seconds.
    Wait(u32),
}

/// Signs in. Without a login, there is none that this text could be.
pub async fn sign_in(
    tally: &Arc<Tally>,
    (given, login): (&str, Option<Login>),
    password: String,
    from: IpAddr,
) -> Result<SignedIn, Failure> {
    let members = &tally.members;
    if let Some(seconds) = members.throttle.wait(given, from, tally.now()) {
        return Ok(SignedIn::Wait(seconds));
    }
    let (asked, name) = (Arc::clone(tally), given.to_owned());
    let judge = move || {
        let throttle = &asked.members.throttle;
        if let Some(seconds) = throttle.wait(&name, from, asked.now()) {
            return Ok(SignedIn::Wait(seconds));
        }
        let found = match login {
            Some(login) => find::by_handle(&asked, &Handle::Login(login))?,
            None => None,
        };
        let digest = found.as_ref().and_then(|(_, member)| member.password.clone());
        let right = password::is_right(&password, digest.as_ref().unwrap_or(&asked.members.nobodys));
        let Some((id, member)) = found.filter(|_| right && digest.is_some()) else {
            throttle.failed(&name, from, asked.now());
            return Ok(SignedIn::Wrong);
        };
        throttle.succeeded(&name, from);
        let tokens = &asked.members.tokens;
        let said = Said { member: id, tokens_from: member.tokens_from };
        Ok(SignedIn::Token(tokens.give(said, asked.now())?, tokens.seconds()))
    };
    members.digesting(judge).await?
}
