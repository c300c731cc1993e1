//! Who may do what: tokens, roles, and a bound on guessing.
//!
//! A token is `evb_` and 256 random bits. Only its SHA-256 is kept, and it is found by that: what an attacker can vary is
//! the hash of a guess, whose likeness to a stored one tells nothing about the token. Tokens that are configured are
//! compared in constant time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use everbell::Everbell;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::problem::{Kind, Problem};
use crate::secret::Secret;

/// How every token begins, so that it is known for what it is wherever it turns up.
pub(crate) const PREFIX: &str = "evb_";

/// So many failed attempts of an address in a minute are answered; what follows waits.
const FAILURES_PER_MINUTE: u32 = 20;
/// The most addresses that are remembered.
const MOST_ADDRESSES: usize = 10_000;

/// What somebody may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Reads.
    Viewer,
    /// Acts on jobs and runs: pause, resume, run now, cancel.
    Operator,
    /// Changes what jobs are, and who may do what.
    Admin,
}

impl Role {
    pub(crate) const WORDS: &[&str] = &["viewer", "operator", "admin"];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Role> {
        [Role::Viewer, Role::Operator, Role::Admin].into_iter().find(|role| role.as_str() == word)
    }
}

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    /// As the audit trail names it: `token:ops`.
    pub(crate) name: String,
    pub(crate) role: Role,
}

/// A new token from 256 random bits.
pub(crate) fn new_token() -> Secret {
    let mut bits = [0; 32];
    // Each of two random UUIDs has six bits that are not: both together are hashed with two more, so that no bit is known.
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(uuid::Uuid::new_v4().as_bytes());
    }
    bits.copy_from_slice(&hash.finalize());
    Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

/// What is kept of a token.
pub(crate) fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Lets in who brings a valid token.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The admin token that is configured, if one is.
    configured: Option<[u8; 32]>,
    failures: Mutex<HashMap<IpAddr, (i64, u32)>>,
}

impl Gate {
    pub(crate) fn new(admin_token: Option<&Secret>) -> Gate {
        Gate { configured: admin_token.map(|token| token_hash(token.reveal())), failures: Mutex::default() }
    }

    /// Whether an admin token is configured, which nobody can revoke.
    pub(crate) fn has_configured(&self) -> bool {
        self.configured.is_some()
    }

    /// Who this is, by the value of the `Authorization` header.
    pub(crate) async fn enter(
        &self,
        header: Option<&str>,
        from: Option<IpAddr>,
        bell: &Everbell,
    ) -> Result<Actor, Problem> {
        let Some(header) = header else {
            return Err(Problem::new(Kind::Unauthenticated, "There is no `Authorization: Bearer evb_…` header."));
        };
        let now = bell.now();
        let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let token = token.map(|(_, token)| token.trim()).filter(|token| token.starts_with(PREFIX));
        if let Some(token) = token {
            let hash = token_hash(token);
            if self.configured.is_some_and(|own| bool::from(own.ct_eq(&hash))) {
                return Ok(Actor { name: "token:admin".to_owned(), role: Role::Admin });
            }
            if let Some(found) = bell.store().find_token(&hash, now).await? {
                let role = Role::from_word(&found.role);
                let role = role.ok_or_else(|| Problem::new(Kind::Forbidden, "The role of this token is not known."))?;
                return Ok(Actor { name: format!("token:{}", found.name), role });
            }
        }
        match from.and_then(|from| self.failed(from, now)) {
            Some(seconds) => Err(Problem {
                retry_after: Some(seconds),
                ..Problem::new(Kind::RateLimited, "Too many requests with a token that is not valid.")
            }),
            None => Err(Problem::new(Kind::Unauthenticated, "The token is not known, has expired or was revoked.")),
        }
    }

    /// Counts a failed attempt. Too many: how many seconds to wait.
    fn failed(&self, from: IpAddr, now: Timestamp) -> Option<u64> {
        let minute = now.as_second().div_euclid(60);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MOST_ADDRESSES {
            failures.retain(|_, (then, _)| *then == minute);
        }
        if failures.len() >= MOST_ADDRESSES && !failures.contains_key(&from) {
            return None;
        }
        let (then, count) = failures.entry(from).or_insert((minute, 0));
        if *then != minute {
            (*then, *count) = (minute, 0);
        }
        *count += 1;
        (*count > FAILURES_PER_MINUTE).then(|| (60 - now.as_second().rem_euclid(60)) as u64)
    }
}

/// Refuses who may not.
pub(crate) fn expect_role(actor: &Actor, needed: Role) -> Result<(), Problem> {
    if actor.role >= needed {
        return Ok(());
    }
    let (own, needed) = (actor.role.as_str(), needed.as_str());
    let detail = format!("This needs the role `{needed}`; the token `{}` is of the role `{own}`.", actor.name);
    Err(Problem::new(Kind::Forbidden, detail).with("neededRole", needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let (one, two) = (new_token(), new_token());
        assert_ne!(one, two);
        assert!(one.reveal().starts_with("evb_") && one.reveal().len() == 4 + 43, "{}", one.reveal().len());
    }

    #[test]
    fn guessing_is_bounded_by_address_and_minute() {
        let gate = Gate::new(None);
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (a, b) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        for _ in 0..FAILURES_PER_MINUTE {
            assert_eq!(gate.failed(a, at("2026-11-15T12:00:10Z")), None);
        }
        assert_eq!(gate.failed(a, at("2026-11-15T12:00:15Z")), Some(45));
        assert_eq!(gate.failed(b, at("2026-11-15T12:00:15Z")), None);
        assert_eq!(gate.failed(a, at("2026-11-15T12:01:00Z")), None);
    }

    #[test]
    fn roles_are_ordered() {
        let actor = Actor { name: "token:ops".to_owned(), role: Role::Operator };
        assert!(expect_role(&actor, Role::Viewer).is_ok() && expect_role(&actor, Role::Operator).is_ok());
        let problem = expect_role(&actor, Role::Admin).unwrap_err();
        assert!(problem.kind == Kind::Forbidden && problem.detail.contains("the role `admin`"), "{problem:?}");
    }
}
