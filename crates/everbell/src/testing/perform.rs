//! Handlers that a test calls alone.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::Outcome;
use everbell_core::store::{Claim, JobRef, StoreError};
use everbell_core::{JobKey, Json, OrgId, RunStatus, Target, TraceContext, Trigger, Zone};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::Instrument;

use super::bell::{IntoTime, TestBell};
use crate::client::ad_hoc;
use crate::clock::{Clock, later};
use crate::error::RunError;
use crate::lease::Lease;
use crate::run::Run;
use crate::run_signals::RunSignals;

/// Facts about the run that a handler gets from [`TestBell::perform_with`].
///
/// ```
/// use everbell::testing::{RunSetup, TestBell};
/// use everbell::{Everbell, Run, RunError};
///
/// async fn digest(run: Run) -> Result<String, RunError> {
///     let org = run.org().ok_or(RunError::fail("no_org", "this handler is for orgs").fatal())?;
///     Ok(format!("{org} {} attempt {}", run.local_date().unwrap_or_default(), run.attempt()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let test = TestBell::start(Everbell::builder().target("digest", digest), "2027-01-01T00:00:00Z").await;
/// test.org("acme", "Asia/Tokyo").await;
/// let setup = RunSetup::new().org("acme").slot("2027-01-01T23:00:00Z").attempt(2);
/// let said: String = test.perform_with("digest", (), setup).await.unwrap();
/// assert_eq!(said, "acme 2027-01-02 attempt 2");
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RunSetup {
    job: Option<String>,
    org: Option<String>,
    slot: Option<Timestamp>,
    attempt: Option<u32>,
    trace_context: Option<TraceContext>,
}

impl RunSetup {
    /// A first attempt without a job, an org or a slot.
    pub fn new() -> RunSetup {
        RunSetup::default()
    }

    /// Sets the job, which must exist.
    #[must_use]
    pub fn job(self, key: impl Into<String>) -> RunSetup {
        RunSetup { job: Some(key.into()), ..self }
    }

    /// Sets the org. The run has the local date of its slot in the zone of the org, or in UTC if the org does not exist.
    #[must_use]
    pub fn org(self, id: impl Into<String>) -> RunSetup {
        RunSetup { org: Some(id.into()), ..self }
    }

    /// Sets the slot.
    #[must_use]
    #[track_caller]
    pub fn slot(self, slot: impl IntoTime) -> RunSetup {
        RunSetup { slot: Some(slot.into_time()), ..self }
    }

    /// Sets the number of the attempt, from 1.
    #[must_use]
    #[track_caller]
    pub fn attempt(self, attempt: u32) -> RunSetup {
        assert!(attempt > 0, "attempts are counted from 1");
        RunSetup { attempt: Some(attempt), ..self }
    }

    /// Sets the trace that the run continues.
    #[must_use]
    pub fn trace_context(self, context: TraceContext) -> RunSetup {
        RunSetup { trace_context: Some(context), ..self }
    }
}

impl TestBell {
    /// Calls the handler of a target, without a job or a run in the store. Returns its result as it would be stored.
    pub async fn perform<T: DeserializeOwned>(&self, target: &str, payload: impl Serialize) -> Result<T, RunError> {
        self.perform_with(target, payload, RunSetup::new()).await
    }

    /// Like [`TestBell::perform`], with facts about the run.
    pub async fn perform_with<T: DeserializeOwned>(
        &self,
        target: &str,
        payload: impl Serialize,
        setup: RunSetup,
    ) -> Result<T, RunError> {
        let label = Target::new(target).unwrap_or_else(|error| panic!("{error}"));
        let targets = self.engine.shared.targets.now();
        let served = targets.action_of(&label);
        let action = &served.unwrap_or_else(|| panic!("there is no target `{target}`")).action;
        let text = serde_json::to_string(&payload).unwrap_or_else(|error| panic!("the payload is not JSON: {error}"));
        let payload = Json::parse("payload", &text).unwrap_or_else(|error| panic!("{error}"));
        let claim = self.claim(label, payload, setup).await;
        let signals = RunSignals::new(self.clock.monotonic());
        let shared = &self.engine.shared;
        let lease = Lease::new(Arc::clone(&signals), shared.options.lease, false, Arc::clone(&shared.clock));
        let run = Run::new(claim, Vec::new(), shared.events.clone(), signals, lease, targets.tracing.clone());
        let span = run.span().clone();
        // The call is inside of the span, as in the executor.
        match async { action(run).await }.instrument(span).await {
            Outcome::Succeeded { result } => {
                let text = result.as_ref().map_or("null", Json::as_str);
                Ok(serde_json::from_str(text).unwrap_or_else(|error| panic!("the result is {text}: {error}")))
            }
            Outcome::Failed { failure, then } => Err(RunError::from_parts(failure, then)),
            other => panic!("a handler ended with {other:?}"),
        }
    }

    /// A run as an executor receives it.
    async fn claim(&self, target: Target, payload: Json, setup: RunSetup) -> Claim {
        let now = self.now();
        let lease_until = later(now, Duration::from_secs(30));
        let mut run = ad_hoc(target, payload, "test", now);
        run.status = RunStatus::Running;
        run.attempt = setup.attempt.unwrap_or(1);
        (run.started_at, run.lease_until) = (Some(now), Some(lease_until));
        run.trace_context = setup.trace_context;
        if let Some(slot) = setup.slot {
            (run.slot_at, run.scheduled_at) = (Some(slot), slot);
            run.trigger = Trigger::Schedule("test".to_owned());
        }
        if let Some(org) = setup.org {
            let org = OrgId::new(&org).unwrap_or_else(|error| panic!("{error}"));
            run.local_date = Some(self.zone_of(&org).await.as_jiff().to_datetime(run.scheduled_at).date());
            run.org = Some(org);
        }
        let Some(key) = setup.job else { return Claim { run, job: None, lease_until } };
        let key = JobKey::new(&key).unwrap_or_else(|error| panic!("{error}"));
        self.expect_job(&key).await;
        let row = self.store.get_job(&JobRef::Key(key)).await.unwrap_or_else(|error| panic!("{error}"));
        let job = row.job.definition;
        (run.job_id, run.job_key, run.job_version) = (Some(job.id), Some(job.key.clone()), Some(job.version));
        Claim { run, job: Some(job), lease_until }
    }

    async fn zone_of(&self, org: &OrgId) -> Zone {
        match self.store.get_org(org).await {
            Ok(org) => Zone::get(&org.place.timezone).unwrap_or_else(|error| panic!("{error}")),
            Err(StoreError::NotFound { .. }) => Zone::utc(),
            Err(error) => panic!("{error}"),
        }
    }
}
