//! Changes that operators make to a job: lock it, call the decision, write the change.

use std::collections::HashSet;

use everbell_core::change::{JobChange, JobView, PendingRuns};
use everbell_core::store::{AuditEntry, Changed, DecideFn, Deed, JobRef, StoreError, StoreResult};
use everbell_core::{Gap, Job, JobId, JobState, OrgId, Run, RunId};
use uuid::Uuid;

use super::backfills::write_backfill;
use super::connect::{Conn, on};
use super::org_timers::{self, facts_of, org_active_of};
use super::outcomes::MAX_DEADLOCK_ATTEMPTS;
use super::statement::Statement;
use super::timers::{active_of, cancel, upstream_of, write};
use super::{PostgresStore, audit, errors, jobs};
use crate::micros::Micros;
use crate::rows::binds::bind_job_state;
use crate::rows::{JobColumns, PlanBatch, RunColumns, TimerColumns, blank_timer, org_text};

/// The job to change, and the org whose timer is changed.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) job: &'a JobRef,
    pub(super) org: Option<&'a OrgId>,
    pub(super) expected_revision: Option<u64>,
    /// Whether the audit entry is written, and not only its time and actor used.
    pub(super) is_audited: bool,
}

impl PostgresStore {
    pub(super) async fn decide_change(
        &self,
        wanted: Wanted<'_>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        let what = format!("changing {}", audit.object);
        let done = self.decide_again(&what, wanted, decide, audit).await?;
        let runs = self.read_in_order(&done.new_ids()).await?;
        let successor = match done.successor {
            Some(id) => Some(self.job_row(id).await?),
            None => None,
        };
        Ok(Changed::new(self.job_row(done.id).await?).with(successor, runs, done.gaps, done.pending))
    }

    /// Decides in its own transaction, again after a deadlock: outcomes lock runs before jobs, and a pause locks them
    /// the other way around. The transaction that the server aborts has changed nothing.
    async fn decide_again(
        &self,
        what: &str,
        wanted: Wanted<'_>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Decided> {
        let mut attempt = 1;
        loop {
            let mut tx = self.begin(what).await?;
            let done = self.decide_in(&mut tx, what, wanted, decide, audit).await;
            match self.finish_transaction(what, tx, done, |_| true).await {
                Err(error) if errors::is_deadlock(&error) && attempt < MAX_DEADLOCK_ATTEMPTS => attempt += 1,
                answer => return answer,
            }
        }
    }

    pub(super) async fn decide_in(
        &self,
        tx: Conn<'_, '_>,
        what: &str,
        wanted: Wanted<'_>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Decided> {
        let Wanted { job, org, expected_revision, is_audited } = wanted;
        let id = jobs::find(&mut *tx, job).await?;
        let view = self.lock(&mut *tx, id, org).await?;
        let Job { definition, state, .. } = &view.job;
        StoreError::expect_revision("job", &definition.key, expected_revision, Some(state.revision))?;
        let JobChange { state, plan, successor, org_task, pending, backfill } = decide(&view)?;
        let mut batch = PlanBatch::default();
        let (gaps, wanted): (Vec<Gap>, Vec<Uuid>) =
            (plan.gaps.clone(), plan.runs.iter().map(|run| run.id.as_uuid()).collect());
        batch.add(&view.job.definition, plan);
        // The state first: a plan may find that the job is over, and has the last word.
        if state != view.job.state {
            update_state(&mut *tx, what, id, &state).await?;
        }
        let inserted = write(&mut *tx, what, &batch, &audit.actor, audit.at).await?;
        if let Some(new) = &successor {
            jobs::insert_job(&mut *tx, what, new, audit).await?;
        }
        if let Some(task) = &org_task {
            org_timers::begin(&mut *tx, what, &view.job.definition, task, audit).await?;
        }
        let successor = successor.map(|new| new.definition.id.as_uuid());
        let lanes: Vec<Uuid> = [id].into_iter().chain(successor).collect();
        let mut pending = change_pending(&mut *tx, what, &lanes, pending, audit).await?;
        if let Some(write) = backfill {
            pending += write_backfill(&mut *tx, what, view.job.definition.id, *write).await?;
        }
        let done = Decided { id, successor, wanted, inserted, gaps, pending };
        if is_audited {
            audit::insert_audit_of(&mut *tx, audit, || done.deed()).await?;
        }
        Ok(done)
    }

    /// The job as it is, with its timer, or that of an org, and itself locked, in this order.
    async fn lock(&self, conn: Conn<'_, '_>, id: Uuid, org: Option<&OrgId>) -> StoreResult<JobView> {
        let query = sqlx::query_as(include_str!("sql/lock_timer.sql")).bind(id).bind(org_text(org).to_owned());
        let timer: Option<TimerColumns> = on("locking a timer", query.fetch_optional_on(&mut *conn)).await?;
        let query = sqlx::query_as(include_str!("sql/lock_job.sql")).bind(id);
        let row: Option<JobColumns> = on("locking a job", query.fetch_optional_on(&mut *conn)).await?;
        let row = row.ok_or_else(|| StoreError::not_found("job", id))?;
        let Job { definition, state, .. } = row.read(&self.known)?;
        let timer = match timer {
            Some(timer) => timer.read()?,
            None => blank_timer(definition.id, org, definition.created_at),
        };
        let owner = (id, org_text(org).to_owned());
        let (facts, mut active) = match org {
            None => (None, active_of(conn, vec![id]).await?),
            Some(org) => {
                let facts = facts_of(conn, std::slice::from_ref(&owner)).await?.remove(&owner);
                let facts = facts.filter(|facts| !facts.place.deleted);
                let facts = facts.ok_or_else(|| StoreError::not_found("org", org))?;
                (Some(facts), org_active_of(conn, std::slice::from_ref(&owner)).await?)
            }
        };
        let active = active.remove(&owner).unwrap_or_default();
        let key = definition.policies.depends_on.as_ref().map(|on| on.job_key.to_string());
        let upstream = upstream_of(conn, key.into_iter().collect()).await?.into_values().next();
        Ok(JobView { job: Job::new(definition, state), timer, org: facts, active, upstream_succeeded_at: upstream })
    }

    /// These runs, in this order.
    async fn read_in_order(&self, ids: &[Uuid]) -> StoreResult<Vec<Run>> {
        let mut rows = self.runs_of(ids).await?;
        ids.iter().filter_map(|id| rows.remove(id)).map(RunColumns::read).collect()
    }
}

/// The rows that a change wrote, to be read back.
pub(super) struct Decided {
    pub(super) id: Uuid,
    pub(super) successor: Option<Uuid>,
    wanted: Vec<Uuid>,
    inserted: HashSet<Uuid>,
    pub(super) gaps: Vec<Gap>,
    pub(super) pending: u64,
}

impl Decided {
    /// The runs that are new, in the order of the plan.
    pub(super) fn new_ids(&self) -> Vec<Uuid> {
        self.wanted.iter().copied().filter(|id| self.inserted.contains(id)).collect()
    }

    /// Returns the effects of the change, so that a repeated request can be answered.
    fn deed(&self) -> Deed {
        Deed {
            job: Some(JobId::from_uuid(self.id)),
            successor: self.successor.map(JobId::from_uuid),
            runs: self.new_ids().into_iter().map(RunId::from_uuid).collect(),
            gaps: self.gaps.clone(),
            pending: self.pending,
            ..Deed::default()
        }
    }
}

/// Holds, releases or cancels the runs of these versions that have not begun, and counts them.
async fn change_pending(
    conn: Conn<'_, '_>,
    what: &str,
    lanes: &[Uuid],
    pending: PendingRuns,
    audit: &AuditEntry,
) -> StoreResult<u64> {
    if pending == PendingRuns::Leave {
        return Ok(0);
    }
    let mut counted = 0;
    for lane in lanes {
        let hold = pending.holds();
        let query = sqlx::query(include_str!("sql/pause_runs.sql")).bind(*lane).bind(hold);
        on(what, query.execute_on(&mut *conn)).await?;
        let query = sqlx::query_scalar(include_str!("sql/pending_runs.sql")).bind(*lane);
        let waiting: Vec<Uuid> = on(what, query.fetch_all_on(&mut *conn)).await?;
        if pending.cancels() && !waiting.is_empty() {
            cancel(&mut *conn, what, &waiting, Micros::from(audit.at), &audit.actor).await?;
        }
        counted += waiting.len() as u64;
    }
    Ok(counted)
}

/// Moves the active runs of a version, for these orgs, to the next version.
pub(super) async fn move_active(
    conn: Conn<'_, '_>,
    what: &str,
    from: Uuid,
    to: JobId,
    orgs: Vec<String>,
) -> StoreResult<()> {
    let query = sqlx::query(include_str!("sql/move_active.sql")).bind(from).bind(to.as_uuid()).bind(orgs);
    on(what, query.execute_on(&mut *conn)).await?;
    Ok(())
}

async fn update_state(conn: Conn<'_, '_>, what: &str, id: Uuid, state: &JobState) -> StoreResult<()> {
    let query = bind_job_state!(sqlx::query(include_str!("sql/update_job_state.sql")), id, state);
    on(what, query.execute_on(&mut *conn)).await?;
    Ok(())
}
