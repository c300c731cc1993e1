//! Requests that were denied leave a trace: a warning in the log, and, for known tokens, an entry of the audit trail. Both are
//! bounded, and count what they left out.

use std::net::{IpAddr, Ipv4Addr};

use everbell::Everbell;
use everbell_core::Json;
use everbell_core::store::AuditEntry;
use serde_json::json;

use super::access::Actor;
use super::call::shown;
use super::limit::{Limiter, Rate, network};
use super::problem::{Kind, Problem};

/// How many warnings an address causes, and how many entries a token.
const WARNINGS: Rate = Rate::per_minute(20);
const ENTRIES: Rate = Rate::per_minute(10);

/// A request that was denied.
pub(crate) struct Denied<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) method: &'a str,
    /// As the table of routes spells it: `/api/v1/tokens/{name}`.
    pub(crate) route: &'a str,
    pub(crate) address: Option<IpAddr>,
    pub(crate) request_id: &'a str,
}

/// What was denied lately.
#[derive(Debug)]
pub(crate) struct Denials {
    warnings: Limiter<IpAddr>,
    entries: Limiter<String>,
}

impl Default for Denials {
    fn default() -> Denials {
        Denials { warnings: Limiter::new(WARNINGS), entries: Limiter::new(ENTRIES) }
    }
}

impl Denials {
    /// Writes down that a request was denied, if it was: other problems are passed over.
    pub(crate) async fn note(&self, bell: &Everbell, denied: &Denied<'_>, actor: Option<&Actor>) {
        let Problem { kind, detail, .. } = denied.problem;
        if !matches!(kind, Kind::Unauthenticated | Kind::Forbidden | Kind::RateLimited | Kind::Misdirected) {
            return;
        }
        let now = bell.clock().monotonic();
        let network = network(denied.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        if let Ok(quota) = self.warnings.take(&network, now) {
            tracing::warn!(
                request = denied.request_id,
                address = denied.address.map(tracing::field::display),
                method = %shown(denied.method),
                route = denied.route,
                status = denied.problem.status().as_u16(),
                actor = actor.map(|actor| actor.name.as_str()),
                reason = detail.as_str(),
                suppressed = (quota.refused > 0).then_some(quota.refused),
                "a request was denied"
            );
        }
        // Somebody who is not known has no entry: anybody could fill the trail.
        let Some(actor) = actor.filter(|actor| actor.token_hash().is_some()) else { return };
        let Ok(quota) = self.entries.take(&actor.name, now) else { return };
        let after = json!({ "status": denied.problem.status().as_u16(), "suppressed": quota.refused });
        let object = format!("route:{} {}", shown(denied.method), denied.route);
        let entry = AuditEntry {
            reason: Some(detail.clone()),
            after: Json::parse("audit", &after.to_string()).ok(),
            ..actor.entry("auth.denied", object, bell.now())
        };
        if let Err(error) = bell.store().append_audit(&entry).await {
            tracing::warn!(%error, "a denied request could not be written to the audit trail");
        }
    }
}
