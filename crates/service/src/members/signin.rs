//! Signing in: a login and its password for a token.
//!
//! An unknown login, one without a password and a wrong password get the same reply and take as long: a digest is compared in
//! any case. Guesses are slowed down before they queue and again when they leave the queue, so that guesses at the same time
//! gain nothing. A correct password renews a digest of another cost, from an import or an earlier setting. Otherwise its time
//! would identify its member. Not here: what a token may do.

use super::token::TokenSubject;
use super::{find, password};
use crate::failure::Failure;
use crate::members::change::{MemberChange, Rehashed};
use crate::tally::Tally;
use std::net::IpAddr;
use std::sync::Arc;
use tally_rules::ledger::member::{Handle, Login};

/// The reply to an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedIn {
    /// A token, and for how many seconds it is good.
    Token(String, u64),
    /// Invalid login or password.
    Wrong,
    /// Too many attempts were wrong: none is made for so many seconds.
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
    let attempt = match members.throttle.begin(given, from, tally.now()) {
        Ok(attempt) => attempt,
        Err(seconds) => return Ok(SignedIn::Wait(seconds)),
    };
    let shared = Arc::clone(tally);
    let check = move || -> Result<_, Failure> {
        let throttle = &shared.members.throttle;
        if let Some(seconds) = throttle.wait(&attempt, shared.now()) {
            return Ok((SignedIn::Wait(seconds), None));
        }
        let found = match login {
            Some(login) => find::by_handle(&shared, &Handle::Login(login))?,
            None => None,
        };
        let digest = found.as_ref().and_then(|(_, member)| member.password.clone());
        let right =
            password::is_right(&password, digest.as_ref().unwrap_or(&shared.members.placeholder_digest));
        let Some((id, member)) = found.filter(|_| right && digest.is_some()) else {
            throttle.failed(&attempt, shared.now());
            return Ok((SignedIn::Wrong, None));
        };
        throttle.succeeded(&attempt);
        let cost = shared.members.settings.cost;
        let rehashed = match digest {
            Some(from) if password::is_outdated(&from, cost) => {
                Some(Rehashed { to: password::digest(&password, cost)?, from })
            }
            _ => None,
        };
        let tokens = &shared.members.tokens;
        let subject = TokenSubject { member: id, tokens_from: member.tokens_from };
        let token = SignedIn::Token(tokens.give(subject, shared.now())?, tokens.seconds());
        Ok((token, rehashed.map(|rehashed| (id, rehashed))))
    };
    let (signed_in, rehashed) = members.signing_in.run(check).await??;
    if let Some((id, rehashed)) = rehashed {
        let change = MemberChange { rehashed: Some(rehashed), ..MemberChange::default() };
        // The password was correct even if this fails; the next sign-in tries again.
        if let Err(failure) = super::change(tally, id, change, None, None).await {
            tracing::warn!(%failure, member = %id.0, "store a password digest of the present cost");
        }
    }
    Ok(signed_in)
}
