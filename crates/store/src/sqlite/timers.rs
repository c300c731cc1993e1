//! Due timers: read them, collect what each plan needs, write what the plans say. One short transaction.

use std::collections::{HashMap, HashSet};

use everbell_core::store::{PlanFn, StoreResult};
use everbell_core::{ActiveRun, Failure, JobId, MAX_FAILURE_MESSAGE_BYTES, storable_text};
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::SqliteStore;
use super::audit::insert_audit;
use super::batch::{self, Hex};
use super::calendars::freezes_of;
use super::org_timers::{facts_of, org_active_of};
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::{
    DueTimers, GapValues, LoadedJobs, Owner, PlanBatch, PlanContext, RunValues, TimerColumns, TimerValues,
    active_by_owner, errored, owners_of, successes_by_key,
};

impl SqliteStore {
    /// Collects what each plan needs and what it says.
    pub(super) async fn ask(
        &self,
        tx: &mut Tx<'_>,
        timers: Vec<TimerColumns>,
        now: Timestamp,
        plan: &PlanFn<'_>,
        batch: &mut PlanBatch,
    ) -> StoreResult<()> {
        if timers.is_empty() {
            return Ok(());
        }
        let learned = self.learn(tx, timers.iter().map(|timer| JobId::from_uuid(timer.job_id))).await?;
        let (jobs, owners) = owners_of(&timers);
        let mut context = PlanContext { active: active_of(tx, jobs).await?, ..PlanContext::default() };
        if !owners.is_empty() {
            context.active.extend(org_active_of(tx, &owners).await?);
            context.orgs = facts_of(tx, &owners).await?;
        }
        context.freezes = freezes_of(tx, &timers, now).await?;
        let due = DueTimers::new(timers, &learned, batch);
        context.upstream = upstream_of(tx, due.upstream_keys()).await?;
        due.plan(context, now, plan, batch);
        Ok(())
    }

    /// The definitions of these jobs; those that are not known yet are read.
    pub(super) async fn learn(&self, tx: &mut Tx<'_>, ids: impl Iterator<Item = JobId>) -> StoreResult<LoadedJobs> {
        let mut learned = self.known.look_up(ids);
        if !learned.missing().is_empty() {
            let missing = batch::ids(learned.missing().iter().copied());
            let query = sqlx::query(include_str!("sql/read_jobs.sql")).bind(missing);
            learned.add(tx.all(query).await?, &self.known)?;
        }
        Ok(learned)
    }
}

/// The active runs of these jobs that belong to no org, oldest first.
pub(super) async fn active_of(
    tx: &mut Tx<'_>,
    jobs: impl IntoIterator<Item = Uuid>,
) -> StoreResult<HashMap<Owner, Vec<ActiveRun>>> {
    let query = sqlx::query(include_str!("sql/read_active.sql")).bind(batch::ids(jobs));
    Ok(active_by_owner(tx.all(query).await?))
}

/// Returns when the jobs of these keys last succeeded.
pub(super) async fn upstream_of(tx: &mut Tx<'_>, mut keys: Vec<String>) -> StoreResult<HashMap<String, Timestamp>> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    keys.sort_unstable();
    keys.dedup();
    let query = sqlx::query(include_str!("sql/read_upstream.sql")).bind(batch::rows(keys));
    Ok(successes_by_key(tx.all(query).await?))
}

/// The rows of a batch that were new.
#[derive(Default)]
pub(super) struct Written {
    pub(super) runs: HashSet<Uuid>,
    pub(super) gaps: HashSet<Uuid>,
}

/// Writes plans, and returns which rows were new.
pub(super) async fn write(tx: &mut Tx<'_>, batch: &PlanBatch, by: &str, now: Timestamp) -> StoreResult<Written> {
    if !batch.cancel.is_empty() {
        cancel(tx, &batch.cancel, by, now).await?;
    }
    for entry in batch.entries(now) {
        insert_audit(tx, &entry).await?;
    }
    let now = Micros::from(now);
    let written = Written { runs: insert_runs(tx, &batch.runs, now).await?, gaps: insert_gaps(tx, batch, now).await? };
    if let Some(starts) = &batch.starts {
        let new = starts.ids.iter().filter(|id| written.runs.contains(id));
        let query = sqlx::query(include_str!("sql/start_runs.sql"))
            .bind(batch::ids(new.copied()))
            .bind(starts.instance)
            .bind(starts.now)
            .bind(starts.lease_until);
        tx.run(query).await?;
    }
    let timers = batch.timers_after(&written.runs);
    if !timers.is_empty() {
        let rows = batch::rows(timers.iter().map(timer_row));
        tx.run(sqlx::query(include_str!("sql/advance_timers.sql")).bind(rows)).await?;
    }
    if !batch.org_errors.is_empty() {
        let rows = batch.org_errors.iter().map(|error| (Hex(error.job.id.as_uuid()), &error.org, &error.why));
        tx.run(sqlx::query(include_str!("sql/set_timer_errors.sql")).bind(batch::rows(rows))).await?;
    }
    if !batch.retire.is_empty() {
        let ids = batch::ids(batch.retire.iter().copied());
        tx.run(sqlx::query(include_str!("sql/retire_jobs.sql")).bind(ids).bind(now)).await?;
    }
    if !batch.errors.is_empty() {
        let rows = batch::rows(batch.errors.iter().map(|(id, why)| (Hex(*id), why)));
        let query = sqlx::query(include_str!("sql/set_job_errors.sql")).bind(rows).bind(now);
        let errored: Vec<(Uuid, String, String)> = tx.all(query).await?;
        for (id, key, why) in errored {
            insert_audit(tx, &errored::of_job(JobId::from_uuid(id), &key, &why, now.into())).await?;
        }
    }
    Ok(written)
}

/// Ends pending runs, asks running ones to stop. Returns the number of each.
pub(super) async fn cancel(tx: &mut Tx<'_>, runs: &[Uuid], by: &str, now: Timestamp) -> StoreResult<(usize, usize)> {
    let ids = batch::ids(runs.iter().copied());
    let query = sqlx::query(include_str!("sql/cancel_pending.sql"));
    let query = query.bind(ids.clone()).bind(Micros::from(now)).bind(Failure::canceled(by).message);
    let ended: Vec<(Uuid,)> = tx.all(query).await?;
    let by = storable_text(by, MAX_FAILURE_MESSAGE_BYTES);
    let asked: Vec<(Uuid,)> = tx.all(sqlx::query(include_str!("sql/request_cancel.sql")).bind(ids).bind(by)).await?;
    if !ended.is_empty() {
        // A one-time job whose only run will not happen has had its slot.
        let ids = batch::ids(ended.iter().map(|(id,)| *id));
        tx.run(sqlx::query(include_str!("sql/retire_one_time.sql")).bind(ids).bind(Micros::from(now))).await?;
    }
    Ok((ended.len(), asked.len()))
}

/// Appends runs; skips those whose slot already has one. Returns which were new.
pub(super) async fn insert_runs(tx: &mut Tx<'_>, runs: &[RunValues], now: Micros) -> StoreResult<HashSet<Uuid>> {
    if runs.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = batch::rows(runs.iter().map(run_row));
    let query = sqlx::query(include_str!("sql/insert_runs.sql")).bind(rows).bind(now);
    let new: HashSet<Uuid> = tx.all::<(Uuid,)>(query).await?.into_iter().map(|(id,)| id).collect();
    let held: Vec<_> = runs.iter().filter(|run| new.contains(&run.id)).filter_map(hold_row).collect();
    if !held.is_empty() {
        tx.run(sqlx::query(include_str!("sql/hold_runs.sql")).bind(batch::rows(&held))).await?;
    }
    Ok(new)
}

async fn insert_gaps(tx: &mut Tx<'_>, batch: &PlanBatch, now: Micros) -> StoreResult<HashSet<Uuid>> {
    if batch.gaps.is_empty() {
        return Ok(HashSet::new());
    }
    let mut written = extend_gaps(tx, batch, now).await?;
    let rows: Vec<_> = batch.gaps.iter().filter(|gap| !written.contains(&gap.id)).map(gap_row).collect();
    if !rows.is_empty() {
        let query = sqlx::query(include_str!("sql/insert_gaps.sql")).bind(batch::rows(rows)).bind(now);
        written.extend(tx.all::<(Uuid,)>(query).await?.into_iter().map(|(id,)| id));
    }
    Ok(written)
}

/// Lets earlier gaps grow. Returns the ids of the gaps that need no row, because theirs did.
async fn extend_gaps(tx: &mut Tx<'_>, batch: &PlanBatch, now: Micros) -> StoreResult<HashSet<Uuid>> {
    let longer: Vec<_> = batch.longer_gaps().collect();
    if longer.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = longer.iter().map(|g| (Hex(g.earlier), g.ended_at, g.last_slot_at, g.slots));
    let query = sqlx::query(include_str!("sql/extend_gaps.sql")).bind(batch::rows(rows)).bind(now);
    let grown: Vec<(Uuid,)> = tx.all(query).await?;
    Ok(longer.iter().filter(|g| grown.contains(&(g.earlier,))).map(|g| g.id).collect())
}

// The rows of the batches, in the order of their statements.

fn timer_row<'a>(TimerValues { timer: t, last_run }: &TimerValues<'a>) -> impl Serialize + 'a {
    let (last_run_at, last_run_id) = last_run.map(|(at, id)| (at, Hex(id))).unzip();
    let TimerColumns { next_run_at, last_slot_at, rescheduled_from, .. } = **t;
    (
        Hex(t.job_id),
        &t.org_id,
        next_run_at,
        last_slot_at,
        rescheduled_from,
        &t.last_local_date,
        last_run_at,
        last_run_id,
    )
}

fn run_row(r: &RunValues) -> impl Serialize + '_ {
    (
        Hex(r.id),
        r.job_id.map(Hex),
        &r.org_id,
        r.at,
        r.nonce,
        r.scheduled_at,
        &r.trigger,
        &r.target,
        &r.payload,
        r.skip_reason,
        &r.skip_detail,
        r.catch_up,
        r.folded,
        &r.local_date,
        &r.trace_context,
    )
}

/// Of a run that will start, what is not as the trigger writes it.
fn hold_row(r: &RunValues) -> Option<impl Serialize + Send + Sync + use<>> {
    let differs = r.held || r.max_concurrent != 1 || r.priority != 0 || r.backfill;
    (r.skip_reason.is_none() && differs).then_some((Hex(r.id), r.held, r.max_concurrent, r.priority, r.backfill))
}

fn gap_row(g: &GapValues) -> impl Serialize + '_ {
    let (first, last) = (Micros::from(g.gap.first_slot_at), Micros::from(g.gap.last_slot_at));
    let slots = i64::try_from(g.gap.slots).unwrap_or(i64::MAX);
    (Hex(g.id), Hex(g.job_id), &g.org_id, first, last, slots, g.gap.reason.as_str(), &g.gap.actor)
}
