//! Requests that were denied leave a trace: a warning in the log, and, for failed sign-ins and what a role may not do, an entry
//! of the audit trail. Both are bounded, and count what they left out.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use everbell::Everbell;
use everbell_core::store::{AuditEntry, Origin};

use super::access::Actor;
use super::denial_counter::{Added, Denial, DenialCounter, DenialKey};
use super::excerpt::excerpt;
use super::limit::{Limiter, Rate, network};
use super::problem::{Kind, Problem};
use crate::audit_entry;

/// How many warnings an address causes, and all of them together.
const WARNINGS: Rate = Rate::per_minute(20);
const ALL_WARNINGS: Rate = Rate::per_minute(600);
/// How many entries all who are not known cause together: one attacker may have many addresses.
const UNKNOWN_ENTRIES: Rate = Rate::per_minute(60);

/// The actor of entries about unknown callers.
const UNKNOWN: &str = "nobody";

/// The kind of a denied request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Any request or page.
    Request,
    /// To sign in to the web pages.
    SignIn,
}

/// A request that was denied.
pub struct Denied<'a> {
    /// The kind of attempt.
    pub attempt: Attempt,
    /// The reason of the denial.
    pub problem: &'a Problem,
    /// The method of the request.
    pub method: &'a str,
    /// As the table of routes spells it: `/api/v1/tokens/{name}`.
    pub route: &'a str,
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// The id of the request.
    pub request_id: &'a str,
    /// The caller, if known.
    pub actor: Option<&'a Actor>,
}

impl Denied<'_> {
    fn is_denied(&self) -> bool {
        let kinds = [Kind::Unauthenticated, Kind::Forbidden, Kind::RateLimited, Kind::Misdirected];
        kinds.contains(&self.problem.kind)
    }

    /// The action of its entry. Requests without a valid token have none: anybody could send millions of them.
    fn action(&self) -> Option<&'static str> {
        match (self.attempt, self.problem.kind) {
            (Attempt::SignIn, _) => Some("auth.failed"),
            (Attempt::Request, Kind::Forbidden) => Some("auth.denied"),
            (Attempt::Request, _) => None,
        }
    }

    fn known_actor(&self) -> Option<&Actor> {
        self.actor.filter(|actor| actor.is_known())
    }

    /// The address as limits count it.
    fn network(&self) -> IpAddr {
        network(self.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }

    fn entry(&self, action: &str, bell: &Everbell) -> AuditEntry {
        let object = format!("route:{} {}", excerpt(self.method), self.route);
        let (name, role) = match self.known_actor() {
            Some(actor) => (actor.name.as_str(), Some(actor.role.as_str().to_owned())),
            None => (UNKNOWN, None),
        };
        let origin = Origin {
            address: self.address.map(|address| address.to_canonical().to_string()),
            request_id: Some(self.request_id.to_owned()),
            role,
        };
        let reason = Some(self.problem.detail.clone());
        AuditEntry { reason, origin, ..audit_entry::new_entry(name, action, object, bell.now()) }
    }
}

/// Limits and counters of recent denials.
#[derive(Debug)]
pub struct Denials {
    warnings: Limiter<IpAddr>,
    all_warnings: Limiter<()>,
    unknown_entries: Limiter<()>,
    counter: DenialCounter,
}

impl Default for Denials {
    fn default() -> Denials {
        Denials {
            warnings: Limiter::new(WARNINGS),
            all_warnings: Limiter::new(ALL_WARNINGS),
            unknown_entries: Limiter::new(UNKNOWN_ENTRIES),
            counter: DenialCounter::default(),
        }
    }
}

impl Denials {
    /// Records a denied request. Other problems are ignored.
    pub async fn note(self: &Arc<Self>, bell: &Everbell, denied: &Denied<'_>) {
        if !denied.is_denied() {
            return;
        }
        self.warn(bell, denied);
        let Some(action) = denied.action() else { return };
        let entry = denied.entry(action, bell);
        let key = DenialKey { network: denied.network(), action, actor: entry.actor.clone() };
        let denial = Denial { entry, status: denied.problem.status().as_u16() };
        let now = bell.clock().monotonic();
        match self.counter.add(&key, denial, now) {
            Added::First(denial) => {
                let is_known = denied.known_actor().is_some();
                if is_known || self.unknown_entries.take(&(), now).is_ok() {
                    append(bell, &denial.counted(1)).await;
                }
            }
            Added::Counted { write_after: Some(wait) } => {
                let (denials, bell) = (Arc::clone(self), bell.clone());
                tokio::spawn(async move {
                    bell.clock().sleep(wait).await;
                    if let Some(entry) = denials.counter.take(&key) {
                        append(&bell, &entry).await;
                    }
                });
            }
            Added::Counted { write_after: None } | Added::Full => {}
        }
    }

    /// Writes what was counted and not yet written. To be called before the process ends.
    pub async fn flush(&self, bell: &Everbell) {
        for entry in self.counter.take_all() {
            append(bell, &entry).await;
        }
    }

    fn warn(&self, bell: &Everbell, denied: &Denied<'_>) {
        let now = bell.clock().monotonic();
        let Ok(own) = self.warnings.take(&denied.network(), now) else { return };
        let Ok(all) = self.all_warnings.take(&(), now) else { return };
        let suppressed = own.refused + all.refused;
        tracing::warn!(
            request = denied.request_id,
            address = denied.address.map(tracing::field::display),
            method = %excerpt(denied.method),
            route = denied.route,
            status = denied.problem.status().as_u16(),
            actor = denied.known_actor().map(|actor| actor.name.as_str()),
            role = denied.known_actor().map(|actor| actor.role.as_str()),
            reason = denied.problem.detail.as_str(),
            suppressed = (suppressed > 0).then_some(suppressed),
            "{}",
            if denied.attempt == Attempt::SignIn { "a sign-in failed" } else { "a request was denied" }
        );
    }
}

async fn append(bell: &Everbell, entry: &AuditEntry) {
    if let Err(error) = bell.store().append_audit(entry).await {
        tracing::warn!(%error, action = entry.action, "a denied request could not be written to the audit trail");
    }
}
