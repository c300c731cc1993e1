//! Instances, and what the server is.

use everbell_core::{InstanceId, JobStatus, RunStatus, Zone};
use everbell_wire as wire;

use crate::excerpt::excerpt;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let bell = &request.app.bell;
    let alive_since = bell.alive_since();
    let instances = bell.instances().await?;
    ApiResponse::ok(&wire::Items {
        items: instances.iter().map(|one| wire::Instance::new(one, alive_since)).collect::<Vec<_>>(),
    })
}

pub(crate) async fn drain(request: ApiRequest) -> Result<ApiResponse, Problem> {
    set_draining(&request, true).await
}

pub(crate) async fn undrain(request: ApiRequest) -> Result<ApiResponse, Problem> {
    set_draining(&request, false).await
}

async fn set_draining(request: &ApiRequest, draining: bool) -> Result<ApiResponse, Problem> {
    let name = request.part("instanceId");
    let missing = || Problem::not_found("instance", &excerpt(name));
    let id: InstanceId = name.parse().map_err(|_| missing())?;
    let now = request.app.bell.now();
    let action = if draining { "instance.drain" } else { "instance.undrain" };
    let audit = request.actor.entry(action, format!("instance:{id}"), now);
    request.app.bell.store().drain_instance(id, draining, &audit).await?;
    Ok(ApiResponse::nothing())
}

/// Shows the version, the database and the time of the server.
pub async fn status(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let bell = &request.app.bell;
    let store = bell.store().status().await?;
    let counts = bell.store().counts(bell.now()).await?;
    let orgs = bell.orgs().counts().await?;
    let jobs = |status| counts.jobs.iter().filter(|count| count.status == status).map(|count| count.jobs).sum();
    let runs = |status| counts.active_runs.iter().filter(|count| count.status == status).map(|count| count.runs).sum();
    ApiResponse::ok(&wire::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tz_data: Zone::data_version().to_owned(),
        now: bell.now(),
        actor: request.actor.name.clone(),
        role: wire::Role::from_word(request.actor.role.as_str()),
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
        oldest_due_at: counts.oldest_due_at,
        oldest_transaction_at: store.oldest_transaction_at,
        notes: store.notes,
    })
}
