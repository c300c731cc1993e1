//! Sessions and cookies. A session is identified by a secret in a cookie that no script can read.
//!
//! The database holds the hash of the secret, the token that the person signed in with and when the session ends. Signing out
//! deletes it; a token that is revoked, expires or changes its role ends its sessions at once, on every instance. The value
//! that every form must send back is derived from the secret, so it belongs to the session.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use everbell_core::storable_text;
use everbell_core::store::{MAX_SESSION_AGE, NewSession};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use super::markup::url_part;
use everbell_http::access::{Actor, new_session_secret, token_hash};
use everbell_http::audit_entry;
use everbell_wire::secret::Secret;

/// Browsers keep the cookie for this many seconds. Whether its session has ended is known by the server.
const SESSION_COOKIE_SECS: u32 = MAX_SESSION_AGE.as_secs() as u32;
/// A longer name of a browser is cut.
const MAX_USER_AGENT_CHARS: usize = 200;
/// Display preferences are kept for a year.
const CHOICE_COOKIE_SECS: u32 = 365 * 24 * 3_600;

/// The length of what ties a form to its session.
const CSRF_BYTES: usize = 32;

/// Bytes under a pad, or, under the same pad again, as they were.
fn masked(bytes: [u8; CSRF_BYTES], pad: [u8; CSRF_BYTES]) -> [u8; CSRF_BYTES] {
    std::array::from_fn(|at| bytes[at] ^ pad[at])
}

/// The cookies of a request, and how to answer with others.
///
/// Browsers send cookies of one host to all its ports, so the port is a part of each name: two servers on one machine do
/// not sign each other's people out.
#[derive(Clone, Debug)]
pub(crate) struct Cookies {
    given: Vec<(String, String)>,
    suffix: String,
    /// Came through TLS.
    secure: bool,
}

/// A cookie that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cookie {
    Session,
    /// Display preferences, one cookie each, so that concurrent changes do not overwrite each other.
    Theme,
    Face,
    Mine,
    Live,
    /// A message that the next page shows once.
    Flash,
}

impl Cookie {
    const fn name(self) -> &'static str {
        match self {
            Cookie::Session => "everbell-session",
            Cookie::Theme => "everbell-theme",
            Cookie::Face => "everbell-face",
            Cookie::Mine => "everbell-mine",
            Cookie::Live => "everbell-live",
            Cookie::Flash => "everbell-flash",
        }
    }

    const fn max_age_secs(self) -> u32 {
        match self {
            Cookie::Session => SESSION_COOKIE_SECS,
            Cookie::Theme | Cookie::Face | Cookie::Mine | Cookie::Live => CHOICE_COOKIE_SECS,
            Cookie::Flash => 60,
        }
    }
}

impl Cookies {
    pub(crate) fn from_headers(headers: &HeaderMap, secure: bool) -> Cookies {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let host = text(header::HOST).unwrap_or("");
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
        Cookies {
            given: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            suffix: port.map_or_else(String::new, |port| format!("-{port}")),
            secure,
        }
    }

    /// The value of a cookie, decoded.
    pub(crate) fn get(&self, cookie: Cookie) -> Option<String> {
        let name = self.name(cookie);
        let value = self.given.iter().find(|(own, _)| *own == name).map(|(_, value)| value)?;
        everbell_wire::form::decoded(value)
    }

    /// A `Set-Cookie` header.
    pub(crate) fn set(&self, cookie: Cookie, value: &str) -> String {
        self.written(cookie, &url_part(value), cookie.max_age_secs())
    }

    /// A `Set-Cookie` header that forgets.
    pub(crate) fn forget(&self, cookie: Cookie) -> String {
        self.written(cookie, "", 0)
    }

    fn written(&self, cookie: Cookie, value: &str, max_age_secs: u32) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        let name = self.name(cookie);
        format!("{name}={value}; Path=/; Max-Age={max_age_secs}; HttpOnly; SameSite=Lax{secure}")
    }

    /// A browser takes a name that begins with `__Host-` only from this very host, and only through TLS.
    fn name(&self, cookie: Cookie) -> String {
        let prefix = if self.secure { "__Host-" } else { "" };
        format!("{prefix}{}{}", cookie.name(), self.suffix)
    }
}

/// The secret of a session, as a cookie brings it.
#[derive(Clone)]
pub(crate) struct Session {
    secret: Secret,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session { secret: new_session_secret() }
    }

    pub(crate) fn from_cookies(cookies: &Cookies) -> Option<Session> {
        let value = cookies.get(Cookie::Session).filter(|value| !value.is_empty())?;
        Some(Session { secret: Secret::new(value) })
    }

    /// The value of its cookie.
    pub(crate) fn value(&self) -> &str {
        self.secret.reveal()
    }

    /// Returns the session record of an actor who has just signed in. `None` if the actor has no token.
    pub(crate) fn to_new_session(&self, actor: &Actor, headers: &HeaderMap, now: Timestamp) -> Option<NewSession> {
        let end = now.checked_add(MAX_SESSION_AGE).unwrap_or(now);
        let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        Some(NewSession {
            id: audit_entry::new_id(now),
            hash: token_hash(self.secret.reveal()),
            token_hash: actor.token_hash()?,
            actor: actor.name.clone(),
            role: actor.role.as_str().to_owned(),
            created_at: now,
            expires_at: actor.expires_at.map_or(end, |at| at.min(end)),
            address: actor.origin.address.clone(),
            user_agent: agent.map(|agent| storable_text(agent, MAX_USER_AGENT_CHARS)),
        })
    }

    /// Returns a token that every form of this session sends back. It is another one each time, so that the length of a
    /// compressed page reveals nothing about it: a random pad, and what belongs to the session under that pad.
    pub(crate) fn csrf_token(&self) -> String {
        // Some bits of a random UUID are fixed; those of a hash of two are not.
        let random = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(uuid::Uuid::into_bytes).concat();
        let pad: [u8; CSRF_BYTES] = Sha256::digest(random).into();
        let Some(own) = self.csrf_bytes() else { return String::new() };
        URL_SAFE_NO_PAD.encode([pad, masked(own, pad)].concat())
    }

    /// Whether a form was rendered for this session.
    pub(crate) fn verify_csrf(&self, given: &str) -> bool {
        let given = URL_SAFE_NO_PAD.decode(given).unwrap_or_default();
        let (Some(own), Some((pad, rest))) = (self.csrf_bytes(), given.split_first_chunk()) else { return false };
        bool::from(masked(own, *pad).as_slice().ct_eq(rest))
    }

    fn csrf_bytes(&self) -> Option<[u8; CSRF_BYTES]> {
        // Any length is a key.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.reveal().as_bytes()).ok()?;
        mac.update(b"form");
        Some(mac.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn cookies(host: &str, line: &str) -> Cookies {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        headers.insert(header::COOKIE, HeaderValue::from_str(line).unwrap());
        Cookies::from_headers(&headers, host.starts_with("proxied"))
    }

    #[test]
    fn a_session_comes_back_as_it_went() {
        let session = Session::new();
        let set = cookies("localhost:7070", "").set(Cookie::Session, session.value());
        assert!(set.starts_with("everbell-session-7070=evs_") && set.contains("HttpOnly; SameSite=Lax"), "{set}");
        assert!(!set.contains("Secure"), "{set}");
        let line = set.split(';').next().unwrap();
        let back = Session::from_cookies(&cookies("localhost:7070", &format!("a=b; {line}; c=d"))).unwrap();
        assert_eq!(back.value(), session.value());
        assert!(
            back.verify_csrf(&session.csrf_token())
                && !back.verify_csrf(&Session::new().csrf_token())
                && !back.verify_csrf("")
        );
        // That of another port is not this one's.
        assert!(Session::from_cookies(&cookies("localhost:7071", line)).is_none());
        let secure = cookies("proxied.example", "").set(Cookie::Flash, "a b;c");
        assert!(secure.starts_with("__Host-everbell-flash=") && secure.ends_with("; Secure"), "{secure}");
    }

    #[test]
    fn a_csrf_token_is_another_one_each_time() {
        let session = Session::new();
        let tokens = [session.csrf_token(), session.csrf_token()];
        assert_ne!(tokens[0], tokens[1]);
        assert!(tokens.iter().all(|token| session.verify_csrf(token)));
        let bytes = URL_SAFE_NO_PAD.decode(&tokens[0]).unwrap();
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1;
            assert!(!session.verify_csrf(&URL_SAFE_NO_PAD.encode(forged)), "{at}");
            assert!(!session.verify_csrf(&URL_SAFE_NO_PAD.encode(&bytes[..at])), "{at}");
        }
        assert!(!session.verify_csrf(&URL_SAFE_NO_PAD.encode([bytes, vec![0]].concat())));
    }

    #[test]
    fn what_is_no_session_is_none() {
        for line in ["", "everbell-session=", "everbell-session=%zz"] {
            assert!(Session::from_cookies(&cookies("host", line)).is_none(), "{line}");
        }
    }
}
