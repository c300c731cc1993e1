//! [`Lease`]: how long a handler may go on unless the lease of its run is renewed.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::LeaseTerms;

use crate::clock::Clock;
use crate::run_signals::RunSignals;

/// The lease of a run, measured on the monotonic clock of its instance.
///
/// Heartbeats renew it. An instance that cannot renew it stops the handler before other instances may start the next run of
/// the job, unless the job says otherwise ([`OnLeaseLoss`](crate::OnLeaseLoss)) or no other instance could be cut off from
/// this one, as with SQLite. A target that starts something outside of this process can use it to end that by itself.
#[derive(Clone, Debug)]
pub struct Lease {
    signals: Arc<RunSignals>,
    /// The last renewal that [`Lease::renewed`] has reported.
    seen: Duration,
    terms: LeaseTerms,
    stops: bool,
    clock: Arc<dyn Clock>,
}

impl Lease {
    pub(crate) fn new(signals: Arc<RunSignals>, terms: LeaseTerms, stops: bool, clock: Arc<dyn Clock>) -> Lease {
        Lease { seen: signals.renewed(), signals, terms, stops, clock }
    }

    /// Returns how long until the handler is asked to stop unless the lease is renewed; `None` if a lost lease does not
    /// stop it.
    pub fn stops_in(&self) -> Option<Duration> {
        self.stops.then(|| self.left(self.terms.fence_after()))
    }

    /// Returns how long until the handler is dropped unless the lease is renewed; `None` if a lost lease does not stop
    /// it.
    pub fn gone_in(&self) -> Option<Duration> {
        self.stops.then(|| self.left(self.terms.gone_after()))
    }

    /// Resolves when the lease is renewed; never if a lost lease does not stop the handler.
    pub async fn renewed(&mut self) {
        if !self.stops {
            std::future::pending::<()>().await;
        }
        self.seen = self.signals.renewed_after(self.seen).await;
    }

    /// Whether too little of it is left to start anything, whatever the job's policy says. A target checks this right
    /// before it starts something outside of this process, which may have been suspended since the handler started.
    pub fn is_nearly_over(&self) -> bool {
        self.left(self.terms.fence_after()).is_zero()
    }

    /// Resolves when the handler has to stop.
    pub(crate) async fn must_stop(&self) {
        self.passed(self.terms.fence_after()).await;
    }

    /// Resolves when the handler has to be gone.
    pub(crate) async fn must_be_gone(&self) {
        self.passed(self.terms.gone_after()).await;
    }

    async fn passed(&self, after: Duration) {
        if !self.stops {
            std::future::pending::<()>().await;
        }
        // A renewal only moves the end, so it need not wake anything: a heartbeat that renews thousands of leases would
        // wake thousands of tasks.
        loop {
            let left = self.left(after);
            if left.is_zero() {
                return;
            }
            self.clock.sleep(left).await;
        }
    }

    fn left(&self, after: Duration) -> Duration {
        (self.signals.renewed() + after).saturating_sub(self.clock.monotonic())
    }
}
