//! Changes that operators make to a job: read it, call the decision, write the change.

use everbell_core::change::{JobChange, JobView, PendingRuns};
use everbell_core::store::{AuditEntry, Changed, DecideFn, Deed, JobRef, StoreError, StoreResult};
use everbell_core::{Gap, Job, JobId, JobState, OrgId, Run, RunId};
use uuid::Uuid;

use super::backfills::write_backfill;
use super::org_timers::{self, facts_of, org_active_of};
use super::timers::{active_of, cancel, upstream_of, write};
use super::transaction::Tx;
use super::{SqliteStore, audit, batch, jobs};
use crate::rows::binds::bind_job_state;
use crate::rows::{JobColumns, PlanBatch, RunColumns, TimerColumns, blank_timer, org_text};

/// The audit entry of a change, which has its time and its actor.
#[derive(Clone, Copy)]
pub(super) enum Deciding<'a> {
    /// The entry is written with the change.
    Audited(&'a AuditEntry),
    /// The change is a step of a backfill, and the entry is not written.
    Step(&'a AuditEntry),
}

impl SqliteStore {
    pub(super) async fn decide_change(
        &self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        let mut held = self.writer(format!("changing {}", audit.object)).await?;
        let mut tx = held.begin().await?;
        let how = Deciding::Audited(audit);
        let changed = self.decide_in(&mut tx, job, org, expected_revision, decide, how).await?;
        tx.commit_and_wake().await?;
        Ok(changed)
    }

    pub(super) async fn decide_in(
        &self,
        tx: &mut Tx<'_>,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        how: Deciding<'_>,
    ) -> StoreResult<Changed> {
        let (Deciding::Audited(audit) | Deciding::Step(audit)) = how;
        let id = jobs::find(tx, job).await?;
        let view = self.view(tx, id, org).await?;
        let Job { definition, state, .. } = &view.job;
        StoreError::expect_revision("job", &definition.key, expected_revision, Some(state.revision))?;
        let JobChange { state, plan, successor, org_task, pending, backfill } = decide(&view)?;
        let mut batch = PlanBatch::default();
        let (gaps, runs) = (plan.gaps.clone(), plan.runs.iter().map(|run| run.id.as_uuid()).collect::<Vec<_>>());
        batch.add(&view.job.definition, plan);
        // The state first: a plan that retires the job or finds it unschedulable has the last word.
        update_state(tx, id, &state).await?;
        let written = write(tx, &batch, &audit.actor, audit.at).await?;
        if let Some(new) = &successor {
            jobs::insert_job(tx, new, audit).await?;
        }
        if let Some(task) = &org_task {
            org_timers::begin(tx, &view.job.definition, task, audit).await?;
        }
        let new: Vec<Uuid> = runs.into_iter().filter(|id| written.runs.contains(id)).collect();
        let gaps = gaps.into_iter().zip(&batch.gaps).filter(|(_, row)| written.gaps.contains(&row.id));
        let gaps: Vec<Gap> = gaps.map(|(gap, _)| gap).collect();
        let successor = successor.map(|new| new.definition.id.as_uuid());
        let lanes: Vec<Uuid> = [id].into_iter().chain(successor).collect();
        let mut pending = change_pending(tx, &lanes, pending, audit).await?;
        if let Some(write) = backfill {
            pending += write_backfill(tx, view.job.definition.id, *write).await?;
        }
        let deed = || Deed {
            job: Some(JobId::from_uuid(id)),
            successor: successor.map(JobId::from_uuid),
            runs: new.iter().copied().map(RunId::from_uuid).collect(),
            gaps: gaps.clone(),
            pending,
            ..Deed::default()
        };
        if matches!(how, Deciding::Audited(_)) {
            audit::insert_audit_of(tx, audit, deed).await?;
        }
        let successor = match successor {
            Some(new) => Some(self.job_row(tx, new).await?),
            None => None,
        };
        let runs = new_runs(tx, new).await?;
        Ok(Changed::new(self.job_row(tx, id).await?).with(successor, runs, gaps, pending))
    }

    /// Returns the current state of the job. There is no other writer, so it stays like this until the commit.
    async fn view(&self, tx: &mut Tx<'_>, id: Uuid, org: Option<&OrgId>) -> StoreResult<JobView> {
        let row: Option<JobColumns> = tx.first(sqlx::query(include_str!("sql/lock_job.sql")).bind(id)).await?;
        let Job { definition, state, .. } = row.ok_or_else(|| StoreError::not_found("job", id))?.read(&self.known)?;
        let owner = (id, org_text(org).to_owned());
        let query = sqlx::query(include_str!("sql/lock_timer.sql")).bind(id).bind(owner.1.clone());
        let timer: Option<TimerColumns> = tx.first(query).await?;
        let timer = match timer {
            Some(timer) => timer.read()?,
            None => blank_timer(definition.id, org, definition.created_at),
        };
        let (facts, mut active) = match org {
            None => (None, active_of(tx, [id]).await?),
            Some(org) => {
                let facts = facts_of(tx, std::slice::from_ref(&owner)).await?.remove(&owner);
                let facts = facts.filter(|facts| !facts.place.deleted);
                let facts = facts.ok_or_else(|| StoreError::not_found("org", org))?;
                (Some(facts), org_active_of(tx, std::slice::from_ref(&owner)).await?)
            }
        };
        let active = active.remove(&owner).unwrap_or_default();
        let on = definition.policies.depends_on.as_ref().map(|on| on.job_key.to_string());
        let upstream_succeeded_at = upstream_of(tx, on.into_iter().collect()).await?.into_values().next();
        Ok(JobView { job: Job::new(definition, state), timer, org: facts, active, upstream_succeeded_at })
    }
}

/// The runs that a change inserted, in the order of its plan.
async fn new_runs(tx: &mut Tx<'_>, ids: Vec<Uuid>) -> StoreResult<Vec<Run>> {
    let mut rows = jobs::runs_of(tx, ids.iter().copied()).await?;
    ids.iter().filter_map(|id| rows.remove(id)).map(RunColumns::read).collect()
}

/// Holds, releases or cancels the runs of these versions that have not begun, and counts them.
async fn change_pending(tx: &mut Tx<'_>, lanes: &[Uuid], pending: PendingRuns, audit: &AuditEntry) -> StoreResult<u64> {
    if pending == PendingRuns::Leave {
        return Ok(0);
    }
    let mut counted = 0;
    for lane in lanes {
        let hold = pending.holds();
        tx.run(sqlx::query(include_str!("sql/pause_runs.sql")).bind(*lane).bind(hold)).await?;
        let waiting: Vec<(Uuid,)> = tx.all(sqlx::query(include_str!("sql/pending_runs.sql")).bind(*lane)).await?;
        let waiting: Vec<Uuid> = waiting.into_iter().map(|(id,)| id).collect();
        if pending.cancels() && !waiting.is_empty() {
            cancel(tx, &waiting, &audit.actor, audit.at).await?;
        }
        counted += waiting.len() as u64;
    }
    Ok(counted)
}

/// Moves the active runs of a version, for these orgs, to the next version.
pub(super) async fn move_active<'a>(
    tx: &mut Tx<'_>,
    from: Uuid,
    to: JobId,
    orgs: impl IntoIterator<Item = &'a str>,
) -> StoreResult<()> {
    let query = sqlx::query(include_str!("sql/move_active.sql")).bind(from).bind(to.as_uuid()).bind(batch::rows(orgs));
    tx.run(query).await?;
    Ok(())
}

async fn update_state(tx: &mut Tx<'_>, id: Uuid, state: &JobState) -> StoreResult<()> {
    let query = bind_job_state!(sqlx::query(include_str!("sql/update_job_state.sql")), id, state);
    tx.run(query).await?;
    Ok(())
}
