//! [`Timed`]: any store, with the time that each call takes.

use std::future::Future;
use std::sync::Arc;

use everbell::clock::{Host, HostTime};
use everbell_core::store::{AuditEntry, Call, Interceptor, Origin, Store, StoreResult};

use super::metrics::Metrics;

/// A store that counts how long it takes, by verb, and logs each audit entry. Calls that fail count too: they are the
/// slow ones.
#[derive(Debug)]
pub struct Timed {
    inner: Arc<dyn Store>,
    metrics: Metrics,
    host: Host,
}

impl Timed {
    /// For [`Builder::store`](everbell::Builder::store).
    pub fn new(inner: Arc<dyn Store>, metrics: &Metrics) -> Timed {
        Timed { inner, metrics: metrics.clone(), host: Host::default() }
    }
}

impl Interceptor for Timed {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn around<T: Send>(
        &self,
        call: Call<'_, T>,
        verb: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let begun = self.host.monotonic();
        let answer = verb.await;
        self.metrics.database(call.verb, self.host.monotonic().saturating_sub(begun));
        if let Some(audit) = answer.as_ref().ok().and_then(|answer| call.written_entry(answer)) {
            log_entry(audit);
        }
        answer
    }
}

fn log_entry(audit: &AuditEntry) {
    let AuditEntry { actor, action, object, reason, origin, .. } = audit;
    let Origin { address, request_id, role } = origin;
    tracing::info!(action, object, actor, role, reason, address, request = request_id, "audit");
}
