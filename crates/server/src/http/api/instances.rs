//! Instances, and what the server is.

use everbell_core::{InstanceId, JobStatus, RunStatus, Zone};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::call::{Answer, Call, shown};
use crate::http::model::{InstanceDocument, Items, times};
use crate::http::problem::{Kind, Problem};

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let bell = &call.app.bell;
    let alive_since = bell.alive_since();
    let instances = bell.instances().await?;
    Answer::ok(&Items { items: instances.iter().map(|one| InstanceDocument::of(one, alive_since)).collect::<Vec<_>>() })
}

pub(crate) async fn drain(call: Call) -> Result<Answer, Problem> {
    set_draining(&call, true).await
}

pub(crate) async fn undrain(call: Call) -> Result<Answer, Problem> {
    set_draining(&call, false).await
}

async fn set_draining(call: &Call, draining: bool) -> Result<Answer, Problem> {
    let name = call.part("instanceId");
    let missing = || Problem::new(Kind::NotFound, format!("There is no instance `{}`.", shown(name)));
    let id: InstanceId = name.parse().map_err(|_| missing())?;
    let now = call.app.bell.now();
    let action = if draining { "instance.drain" } else { "instance.undrain" };
    let audit = call.actor.entry(action, format!("instance:{id}"), now);
    call.app.bell.store().drain_instance(id, draining, &audit).await?;
    Ok(Answer::nothing())
}

/// What this server is and how its database fares.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Status)]
pub(crate) struct StatusDocument {
    version: &'static str,
    /// The version of the IANA time zone data inside.
    tz_data: &'static str,
    now: String,
    /// Who asks, and with which role.
    actor: String,
    role: &'static str,
    database: String,
    schema_version: u32,
    size_bytes: Option<u64>,
    /// Living jobs: those that fire, those that are paused, and those whose schedule or timer cannot be read.
    active_jobs: u64,
    paused_jobs: u64,
    errored_jobs: u64,
    /// Orgs, and how often a job cannot fire for one of them; no more than 10,000 of each are counted.
    orgs: u32,
    errored_org_timers: u32,
    pending_runs: u64,
    running_runs: u64,
    /// Timers that are due but not planned, and since when the oldest of them is.
    due_timers: u64,
    oldest_due_at: Option<String>,
    /// The beginning of the oldest open transaction elsewhere.
    oldest_transaction_at: Option<String>,
    notes: Vec<String>,
}

pub(crate) async fn status(call: Call) -> Result<Answer, Problem> {
    let bell = &call.app.bell;
    let store = bell.store().status().await?;
    let counts = bell.store().counts(bell.now()).await?;
    let orgs = bell.orgs().counts().await?;
    let jobs = |status| counts.jobs.iter().filter(|count| count.status == status).map(|count| count.jobs).sum();
    let runs = |status| counts.active_runs.iter().filter(|count| count.status == status).map(|count| count.runs).sum();
    Answer::ok(&StatusDocument {
        version: env!("CARGO_PKG_VERSION"),
        tz_data: Zone::data_version(),
        now: bell.now().to_string(),
        actor: call.actor.name.clone(),
        role: call.actor.role.as_str(),
        database: store.product,
        schema_version: store.schema_version,
        size_bytes: store.size_bytes,
        active_jobs: jobs(JobStatus::Active),
        paused_jobs: jobs(JobStatus::Paused),
        errored_jobs: counts.errored_jobs,
        orgs: orgs.orgs,
        errored_org_timers: orgs.errored,
        pending_runs: runs(RunStatus::Pending),
        running_runs: runs(RunStatus::Running),
        due_timers: counts.due_timers,
        oldest_due_at: times(counts.oldest_due_at),
        oldest_transaction_at: times(store.oldest_transaction_at),
        notes: store.notes,
    })
}
