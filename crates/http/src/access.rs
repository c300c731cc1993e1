//! Access control: tokens, roles, and a limit on guessing.
//!
//! A token is `evb_` and 256 random bits. Only its SHA-256 is kept, and it is found by that: what an attacker can vary is
//! the hash of a guess, whose likeness to a stored one reveals nothing about the token. Tokens that are configured are
//! compared in constant time.

mod run_token;

use std::net::IpAddr;
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use everbell::{Calendars, Everbell, Jobs, Orgs, Runs, StoreResult};
use everbell_core::handover::Handover;
use everbell_core::store::{AuditEntry, Origin};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::limit::{Limiter, Rate, network};
use super::problem::{Kind, Problem};
use crate::audit_entry;
use everbell_wire::secret::Secret;

/// How every token begins, so that it is known for what it is wherever it turns up.
pub const PREFIX: &str = "evb_";

/// How the secret of every session begins.
const SESSION_PREFIX: &str = "evs_";

/// How long an event stream of a person whom the application has authenticated lasts. Then the browser asks again, and the
/// application decides again.
const USER_STREAM: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

/// The rate of failed attempts per address. Further attempts are refused.
const FAILED_ATTEMPTS: Rate = Rate::per_minute(20);

/// The admin token of the configuration in the audit trail. Stored tokens are `token:NAME`, so none has this name.
const CONFIGURED_ADMIN: &str = "config:admin";

/// The role of a token. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads only.
    Viewer,
    /// Acts on jobs and runs: pause, resume, run now, cancel.
    Operator,
    /// Manages jobs and tokens.
    Admin,
}

impl Role {
    pub(crate) const WORDS: &[&str] = &["viewer", "operator", "admin"];

    /// Returns the name of the role.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// Returns the role with this name.
    pub fn from_word(word: &str) -> Option<Role> {
        [Role::Viewer, Role::Operator, Role::Admin].into_iter().find(|role| role.as_str() == word)
    }
}

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// As the audit trail names it: `token:ops`.
    pub name: String,
    /// The role of the caller.
    pub role: Role,
    credential: Credential,
    /// The expiry of the token or session.
    pub expires_at: Option<Timestamp>,
    /// Where the request came from, for the audit trail.
    pub origin: Origin,
}

/// The credential that authenticated a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Credential {
    /// No credential, or the metrics token.
    None,
    /// The application around the API vouches for the caller.
    Application,
    /// A token, by its hash.
    Token([u8; 32]),
    /// A run token, and what it allows.
    Run(Handover),
    /// A session, and the token that it belongs to.
    Session { id: Uuid, hash: [u8; 32], token_hash: [u8; 32] },
}

impl Actor {
    /// A caller of a route that needs no token of a role.
    pub fn anonymous(name: &str) -> Actor {
        Actor::new(name.to_owned(), Role::Viewer, Credential::None, None)
    }

    /// A person whom the application around the API has authenticated.
    pub fn user(name: &str, role: Role, now: Timestamp) -> Actor {
        let expires_at = now.checked_add(USER_STREAM).ok();
        Actor::new(name.to_owned(), role, Credential::Application, expires_at)
    }

    fn new(name: String, role: Role, credential: Credential, expires_at: Option<Timestamp>) -> Actor {
        Actor { name, role, credential, expires_at, origin: Origin::default() }
    }

    /// Sets the origin of the current request.
    pub fn set_origin(&mut self, address: Option<IpAddr>, request_id: &str) {
        self.origin = Origin {
            address: address.map(|address| address.to_canonical().to_string()),
            request_id: Some(request_id.to_owned()),
            role: Some(self.role.as_str().to_owned()),
        };
    }

    /// The session that the actor is signed in with.
    pub fn session(&self) -> Option<Uuid> {
        match self.credential {
            Credential::Session { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Whether the caller proved who it is.
    pub fn is_known(&self) -> bool {
        self.credential != Credential::None
    }

    /// Whether the application around the API vouches for the caller.
    pub fn is_user(&self) -> bool {
        self.credential == Credential::Application
    }

    /// The hash of the token that the actor came in with.
    pub fn token_hash(&self) -> Option<[u8; 32]> {
        match self.credential {
            Credential::None | Credential::Application | Credential::Run(_) => None,
            Credential::Token(token_hash) | Credential::Session { token_hash, .. } => Some(token_hash),
        }
    }

    /// An entry of the audit trail about what the actor does now.
    pub fn entry(&self, action: &str, object: String, now: Timestamp) -> AuditEntry {
        AuditEntry { origin: self.origin.clone(), ..audit_entry::new_entry(&self.name, action, object, now) }
    }

    /// Returns the jobs client of the actor.
    pub fn jobs(&self, bell: &Everbell) -> Jobs {
        bell.jobs().by(&self.name).with_origin(self.origin.clone())
    }

    /// Returns the runs client of the actor.
    pub fn runs(&self, bell: &Everbell) -> Runs {
        bell.runs().by(&self.name).with_origin(self.origin.clone())
    }

    /// Returns the calendars client of the actor.
    pub fn calendars(&self, bell: &Everbell) -> Calendars {
        bell.calendars().by(&self.name).with_origin(self.origin.clone())
    }

    /// Returns the orgs client of the actor.
    pub fn orgs(&self, bell: &Everbell) -> Orgs {
        bell.orgs().by(&self.name).with_origin(self.origin.clone())
    }
}

/// A new token from 256 random bits.
pub fn new_token() -> Secret {
    new_secret(PREFIX)
}

/// The secret of a new session.
pub fn new_session_secret() -> Secret {
    new_secret(SESSION_PREFIX)
}

fn new_secret(prefix: &str) -> Secret {
    let mut bits = [0; 32];
    // Each of two random UUIDs has six bits that are not: both together are hashed with two more, so that no bit is known.
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(uuid::Uuid::new_v4().as_bytes());
    }
    bits.copy_from_slice(&hash.finalize());
    Secret::new(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bits)))
}

/// Returns why this is no token for an admin, if so.
pub fn bad_admin_token(token: &str) -> Option<&'static str> {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_good =
        token.strip_prefix(PREFIX).is_some_and(|rest| (32..=200).contains(&rest.len()) && rest.chars().all(is_sign));
    let reason = "must be `evb_` and 32 to 200 letters, digits, `_` or `-` after it; create one with `echo evb_$(openssl rand \
                  -hex 32)`";
    (!is_good).then_some(reason)
}

/// Returns the hash that is stored instead of the token.
pub fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Authenticates callers by token or session.
#[derive(Debug)]
pub struct Authenticator {
    /// The hash of the admin token that is configured, if one is.
    configured: RwLock<Option<[u8; 32]>>,
    failures: Limiter<IpAddr>,
}

impl Authenticator {
    pub(crate) fn new(admin_token: Option<&Secret>) -> Authenticator {
        Authenticator {
            configured: RwLock::new(admin_token.map(|token| token_hash(token.reveal()))),
            failures: Limiter::new(FAILED_ATTEMPTS),
        }
    }

    /// Takes this admin token from now on, instead of the one before. Sessions that began with that one end.
    pub(crate) fn configure(&self, admin_token: Option<&Secret>) {
        let hash = admin_token.map(|token| token_hash(token.reveal()));
        *self.configured.write().unwrap_or_else(PoisonError::into_inner) = hash;
    }

    fn configured(&self) -> Option<[u8; 32]> {
        *self.configured.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an admin token is configured. It cannot be revoked.
    pub fn has_configured(&self) -> bool {
        self.configured().is_some()
    }

    /// Authenticates a caller by the value of the `Authorization` header.
    pub async fn authenticate(
        &self,
        header: Option<&str>,
        from: Option<IpAddr>,
        bell: &Everbell,
    ) -> Result<Actor, Problem> {
        let Some(header) = header else {
            return Err(Problem::new(
                Kind::Unauthenticated,
                "The request has no `Authorization: Bearer evb_…` header.",
            ));
        };
        if let Some(token) = bearer(header).filter(|token| token.starts_with(PREFIX))
            && let Some(actor) = self.holder(token_hash(token), bell).await?
        {
            return Ok(actor);
        }
        let why = Problem::new(Kind::Unauthenticated, "The token is unknown, expired or revoked.");
        Err(self.count_failure(from, bell, why))
    }

    /// Returns the actor of a valid token.
    async fn holder(&self, hash: [u8; 32], bell: &Everbell) -> Result<Option<Actor>, Problem> {
        let credential = Credential::Token(hash);
        if self.is_configured(&hash) {
            return Ok(Some(Actor::new(CONFIGURED_ADMIN.to_owned(), Role::Admin, credential, None)));
        }
        let Some(found) = bell.store().find_token(&hash, bell.now()).await? else { return Ok(None) };
        let role = Role::from_word(&found.role);
        let role = role.ok_or_else(|| Problem::new(Kind::Forbidden, "This token has an unknown role."))?;
        let name = format!("token:{}", found.name);
        Ok(Some(Actor::new(name, role, credential, found.expires_at)))
    }

    /// Authenticates a caller by the secret of a session. The session is valid while its token is valid and has the
    /// same role.
    pub async fn resume(&self, secret: &str, from: Option<IpAddr>, bell: &Everbell) -> Result<Actor, Problem> {
        let hash = token_hash(secret);
        let found =
            if secret.starts_with(SESSION_PREFIX) { bell.store().find_session(&hash, bell.now()).await? } else { None };
        if let Some(session) = found
            && let Some(holder) = self.holder(session.token_hash, bell).await?
            && holder.role.as_str() == session.role
        {
            let credential = Credential::Session { id: session.id, hash, token_hash: session.token_hash };
            let expires_at = holder.expires_at.map_or(session.expires_at, |at| at.min(session.expires_at));
            return Ok(Actor { credential, expires_at: Some(expires_at), ..holder });
        }
        let why = Problem::new(Kind::Unauthenticated, "Your session has ended. Sign in again.");
        Err(self.count_failure(from, bell, why))
    }

    fn is_configured(&self, hash: &[u8; 32]) -> bool {
        self.configured().is_some_and(|own| bool::from(own.ct_eq(hash)))
    }

    /// Whether the credential of an actor is still valid.
    pub async fn is_still_valid(&self, actor: &Actor, bell: &Everbell) -> StoreResult<bool> {
        match actor.credential {
            Credential::None | Credential::Application | Credential::Run(_) => Ok(true),
            Credential::Token(hash) => self.is_token_valid(&hash, actor.role, bell).await,
            Credential::Session { hash, token_hash, .. } => {
                let exists = bell.store().find_session(&hash, bell.now()).await?.is_some();
                Ok(exists && self.is_token_valid(&token_hash, actor.role, bell).await?)
            }
        }
    }

    /// Whether the token of this hash is valid and of this role.
    async fn is_token_valid(&self, hash: &[u8; 32], role: Role, bell: &Everbell) -> StoreResult<bool> {
        if self.is_configured(hash) {
            return Ok(role == Role::Admin);
        }
        let found = bell.store().find_token(hash, bell.now()).await?;
        Ok(found.is_some_and(|token| token.role == role.as_str()))
    }

    /// Counts a failed attempt of this address. Returns its problem, or a rate limit problem after too many attempts.
    pub fn count_failure(&self, from: Option<IpAddr>, bell: &Everbell, why: Problem) -> Problem {
        let Some(from) = from else { return why };
        match self.failures.take(&network(from), bell.clock().monotonic()) {
            Ok(_) => why,
            Err(refused) => Problem {
                retry_after: Some(refused.wait),
                ..Problem::new(Kind::RateLimited, "Too many requests with an invalid token.")
            },
        }
    }
}

/// The token of an `Authorization` header of the scheme `Bearer`.
pub fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The password of an `Authorization` header of the scheme `Basic`.
pub fn basic_password(header: &str) -> Option<String> {
    let (scheme, credentials) = header.split_once(' ')?;
    let credentials = STANDARD.decode(credentials.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    String::from_utf8(credentials).ok()?.split_once(':').map(|(_, password)| password.to_owned())
}

/// Fails if the actor lacks this role.
pub fn expect_role(actor: &Actor, needed: Role) -> Result<(), Problem> {
    if actor.role >= needed {
        return Ok(());
    }
    let (own, needed) = (actor.role.as_str(), needed.as_str());
    let detail = format!("This requires the role `{needed}`; `{}` has the role `{own}`.", actor.name);
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
    fn only_bearer_tokens_are_taken() {
        assert_eq!((bearer("Bearer  a "), bearer("bEARER a")), (Some("a"), Some("a")));
        assert_eq!((bearer("Basic a"), bearer("a"), bearer("")), (None, None, None));
    }

    #[test]
    fn the_password_of_any_name_is_read() {
        let read = |credentials: &str| basic_password(&format!("basic {}", STANDARD.encode(credentials)));
        assert_eq!(read("calendar:evb_a").as_deref(), Some("evb_a"));
        assert_eq!((read(":a:b").as_deref(), read("evb_a")), (Some("a:b"), None));
        assert_eq!((basic_password("Basic é"), basic_password("Bearer YTpi")), (None, None));
    }

    #[test]
    fn roles_are_ordered() {
        let actor = Actor { role: Role::Operator, ..Actor::anonymous("token:ops") };
        assert!(expect_role(&actor, Role::Viewer).is_ok() && expect_role(&actor, Role::Operator).is_ok());
        let problem = expect_role(&actor, Role::Admin).unwrap_err();
        assert!(problem.kind == Kind::Forbidden && problem.detail.contains("the role `admin`"), "{problem:?}");
    }
}
