//! Org updates: tasks for every org of a job, in small steps, each by the first instance that is free.

use everbell_core::change::{self, JobView};
use everbell_core::org::{OrgTask, OrgUpdate};
use everbell_core::store::{Changed, JobRef, JobRow, StoreError, StoreResult};
use everbell_core::{Definition, Scope};
use serde_json::json;
use tracing::warn;
use uuid::Uuid;

use super::names::IntoJobRef;
use super::orgs::Orgs;
use super::{Context, Facts};
use crate::engine::{Keys, MAX_ORGS_PER_STEP, into_events};
use crate::parts::Parts;

/// The most steps that are carried out at once. The engine does the rest.
const MAX_STEPS_AT_ONCE: usize = 4;

/// An org update that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrgUpdateStarted {
    /// Its id, which is also the id of its audit entry.
    pub id: Uuid,
    /// The job.
    pub job: JobRow,
    /// Whether every org has had its turn. If not, the engine continues.
    pub done: bool,
}

impl Orgs {
    /// Lists the org updates that are under way, oldest first.
    pub async fn org_updates(&self) -> StoreResult<Vec<OrgUpdate>> {
        self.context.parts.store.list_org_updates().await
    }

    /// Rebuilds the timers of a job for every org. They should be right already: this is for operators who want to make
    /// sure.
    pub async fn rebuild(&self, job: impl IntoJobRef) -> StoreResult<OrgUpdateStarted> {
        begin(&self.context, job.into_job_ref()?, None, "job.rebuild", Facts::new(), &OrgTask::Arm).await
    }
}

impl Orgs {
    /// Stops an org update of a job before every org had its turn, and returns how far it got. Its runs stay. Refused
    /// if timers depend on it.
    pub async fn stop_org_update(&self, job: impl IntoJobRef, org_update: Uuid) -> StoreResult<OrgUpdate> {
        let row = self.context.parts.store.get_job(&job.into_job_ref()?).await?;
        let key = &row.job.definition.key;
        let own = self.org_updates().await?.into_iter().find(|own| own.id == org_update && own.job_key == *key);
        stop(&self.context, &own.ok_or_else(|| StoreError::not_found("org update", org_update))?).await
    }
}

/// Stops an org update in the name of the actor.
pub(super) async fn stop(context: &Context, org_update: &OrgUpdate) -> StoreResult<OrgUpdate> {
    let after = Facts::from_iter([
        ("sweepId".to_owned(), json!(org_update.id.to_string())),
        ("work".to_owned(), json!(org_update.task.as_str())),
    ]);
    let object = format!("job:{}", org_update.job_key);
    let audit = context.entry("job.stop_sweep", object, context.now(), None, Some(&after));
    context.parts.store.stop_org_update(org_update.id, &audit).await
}

/// Starts a task for every org of a job, and carries out the first steps at once.
pub(super) async fn begin(
    context: &Context,
    job: JobRef,
    if_revision: Option<u64>,
    action: &str,
    mut after: Facts,
    task: &OrgTask,
) -> StoreResult<OrgUpdateStarted> {
    let store = &context.parts.store;
    if let Some(deed) = context.done_before().await? {
        let job = store.get_job(&deed.job.map_or(job, JobRef::Id)).await?;
        let done = store.list_org_updates().await?.iter().all(|org_update| org_update.id != deed.entry);
        return Ok(OrgUpdateStarted { id: deed.entry, job, done });
    }
    let row = store.get_job(&job).await?;
    after.insert("orgs".to_owned(), json!("all"));
    let object = format!("job:{}", row.job.definition.key);
    let audit = context.entry(action, object, context.now(), None, Some(&after));
    let decide = |view: &JobView| {
        if let OrgTask::RunNow { payload, .. } = task {
            context.parts.check_run_payload(&view.job.definition, payload.as_ref())?;
        }
        change::for_all_orgs(view, task.clone())
    };
    let changed = store.change_job(&JobRef::Id(row.job.definition.id), if_revision, &decide, &audit).await?;
    context.parts.follow().await;
    let done = store.list_org_updates().await?.iter().all(|org_update| org_update.id != audit.id);
    Ok(OrgUpdateStarted { id: audit.id, job: changed.job, done })
}

impl Parts {
    /// Reconciles the timers of orgs with a change that was just written, if that is little work, so that the writer
    /// finds them up to date. The engine does the rest.
    pub(crate) async fn follow(&self) {
        for _ in 0..MAX_STEPS_AT_ONCE {
            match self.store.reconcile_orgs(self.clock.now(), MAX_ORGS_PER_STEP).await {
                Ok(progress) => {
                    into_events(progress.planned, &Keys::new()).for_each(|event| self.events.publish(event));
                    if !progress.more {
                        return;
                    }
                }
                Err(error) => {
                    warn!(%error, "timers of orgs are not up to date yet; the reconciler will update them");
                    return;
                }
            }
        }
    }

    /// Like `follow`, after a job was created, if it is a per-org job.
    pub(crate) async fn follow_job(&self, job: &Definition) {
        if job.scope == Scope::PerOrg {
            self.follow().await;
        }
    }

    /// Like `follow`, after a job was changed or replaced.
    pub(crate) async fn follow_change(&self, changed: &Changed) {
        let mut rows = [Some(&changed.job), changed.successor.as_ref()].into_iter().flatten();
        if rows.any(|row| row.job.definition.scope == Scope::PerOrg) {
            self.follow().await;
        }
    }
}
