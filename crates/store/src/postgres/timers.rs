//! Due timers: lock them, collect what each plan needs, write what the plans say. One short transaction.

use std::collections::{HashMap, HashSet};

use everbell_core::plan::REPLACER;
use everbell_core::store::{PlanDue, PlanFn, StoreError, StoreResult};
use everbell_core::{ActiveRun, Failure, JobId, MAX_FAILURE_MESSAGE_BYTES, Target, storable_text};
use jiff::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};
use uuid::Uuid;

use super::PostgresStore;
use super::audit::insert_audit;
use super::calendars::freezes_of;
use super::connect::{Conn, on};
use super::floors::{EARLIEST_TIME, Look, MIN_DEAD_ROWS, MIN_FOREIGN_TIMERS};
use super::org_timers::{facts_of, org_active_of};
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::{
    DueTimers, LoadedJobs, Owner, PlanBatch, PlanContext, RunValues, Starts, TimerColumns, active_by_owner, errored,
    owners_of, successes_by_key,
};

pub(super) const PLANNING: &str = "planning due timers";

/// A timer that is due, when the first of those fires that are not, and whether a job of the targets has a priority.
struct DueColumns {
    timer: TimerColumns,
    next_due_at: Option<Micros>,
    by_priority: bool,
}

impl FromRow<'_, PgRow> for DueColumns {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        // The last ones, by their places like those of the timer.
        let timer = TimerColumns::from_row(row)?;
        Ok(DueColumns { timer, next_due_at: row.try_get(row.len() - 2)?, by_priority: row.try_get(row.len() - 1)? })
    }
}

impl PostgresStore {
    pub(super) async fn plan_in(
        &self,
        tx: Conn<'_, '_>,
        request: &PlanDue<'_>,
        since: Micros,
        plan: &PlanFn<'_>,
    ) -> StoreResult<(PlanBatch, HashSet<Uuid>, Option<Micros>)> {
        let PlanDue { now, limit, limit_by_priority, targets, start } = *request;
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let query = sqlx::query_as(include_str!("sql/lock_due_timers.sql"))
            .bind(Micros::from(now))
            .bind(targets.clone())
            .bind(i64::from(limit))
            .bind(since)
            .bind(i64::from(limit_by_priority));
        let due: Vec<DueColumns> = on(PLANNING, query.fetch_all_on(&mut *tx)).await?;
        let mut batch = PlanBatch::default();
        let Some(first) = due.first() else {
            let query = sqlx::query_scalar(include_str!("sql/next_due.sql")).bind(Micros::from(now)).bind(targets);
            let next = on(PLANNING, query.fetch_optional_on(&mut *tx)).await?;
            return Ok((batch, HashSet::new(), next));
        };
        let next = first.next_due_at;
        batch.by_priority = first.by_priority;
        let mut timers: Vec<TimerColumns> = due.into_iter().map(|row| row.timer).collect();
        timers.sort_by(|a, b| (a.next_run_at, a.job_id, &a.org_id).cmp(&(b.next_run_at, b.job_id, &b.org_id)));
        self.ask(&mut *tx, timers, now, plan, &mut batch).await?;
        if let Some(start) = &start {
            batch.start(start);
        }
        let inserted = write(&mut *tx, PLANNING, &batch, REPLACER, now).await?;
        // The next fires of the others were read before these got their next times.
        let after = batch.timers.iter().filter_map(|(timer, _)| timer.next_run_at).filter(|at| *at > Micros::from(now));
        let next = after.chain(next).min();
        Ok((batch, inserted, next))
    }

    /// Finds where the next looks for due timers of these targets begin. The plan is committed by now, so a failure only
    /// means that the next look is a full one.
    pub(super) async fn find_timer_floors(&self, targets: &[Target], looks: &[Look], now: Timestamp) {
        let names = column(targets, Target::to_string);
        let due = Micros::from(now);
        let oldest = async {
            let (_, dead) = self.count_dead_rows().await?;
            let query = sqlx::query_scalar(include_str!("sql/count_foreign_timers.sql"))
                .bind(EARLIEST_TIME)
                .bind(due)
                .bind(names.clone());
            let foreign: i64 = self.within(PLANNING, query.fetch_one_on(&self.loops)).await?;
            if dead < MIN_DEAD_ROWS && foreign < MIN_FOREIGN_TIMERS {
                return Ok(None);
            }
            let query =
                sqlx::query_as(include_str!("sql/oldest_timer.sql")).bind(EARLIEST_TIME).bind(due).bind(names.clone());
            let rows: Vec<(String, Micros)> = self.within(PLANNING, query.fetch_all_on(&self.loops)).await?;
            Ok::<_, StoreError>(Some(rows.into_iter().collect::<HashMap<_, _>>()))
        };
        let Ok(oldest) = oldest.await else { return };
        for (target, look) in names.iter().zip(looks) {
            let at = oldest.as_ref().and_then(|oldest| oldest.get(target).copied());
            self.timer_floors.found(target, *look, at, due, oldest.is_some());
        }
    }

    /// Dead rows of `active_runs` and of `timers`.
    pub(super) async fn count_dead_rows(&self) -> StoreResult<(i64, i64)> {
        let query = sqlx::query_as(include_str!("sql/count_dead_rows.sql"));
        self.within("counting dead rows", query.fetch_one_on(&self.loops)).await
    }

    /// Collects what each plan needs and what it says.
    pub(super) async fn ask(
        &self,
        conn: Conn<'_, '_>,
        timers: Vec<TimerColumns>,
        now: Timestamp,
        plan: &PlanFn<'_>,
        batch: &mut PlanBatch,
    ) -> StoreResult<()> {
        let learned = self.learn(conn, timers.iter().map(|timer| JobId::from_uuid(timer.job_id))).await?;
        let (jobs, owners) = owners_of(&timers);
        let mut context = PlanContext { active: active_of(conn, jobs).await?, ..PlanContext::default() };
        if !owners.is_empty() {
            context.active.extend(org_active_of(conn, &owners).await?);
            context.orgs = facts_of(conn, &owners).await?;
        }
        context.freezes = freezes_of(conn, &timers, now).await?;
        let due = DueTimers::new(timers, &learned, batch);
        context.upstream = upstream_of(conn, due.upstream_keys()).await?;
        due.plan(context, now, plan, batch);
        Ok(())
    }

    /// The definitions of these jobs; those that are not known yet are read.
    pub(super) async fn learn(&self, conn: Conn<'_, '_>, ids: impl Iterator<Item = JobId>) -> StoreResult<LoadedJobs> {
        let mut learned = self.known.look_up(ids);
        if !learned.missing().is_empty() {
            let query = sqlx::query_as(include_str!("sql/read_jobs.sql")).bind(learned.missing().to_vec());
            learned.add(on("reading jobs", query.fetch_all_on(&mut *conn)).await?, &self.known)?;
        }
        Ok(learned)
    }

    /// Reads the definitions that are not known yet, outside of a transaction; seldom there is one.
    pub(super) async fn learn_apart(&self, jobs: impl Iterator<Item = Uuid>) -> StoreResult<LoadedJobs> {
        const WHAT: &str = "reading jobs";
        let jobs: Vec<JobId> = jobs.map(JobId::from_uuid).collect();
        let learned = self.known.look_up(jobs.iter().copied());
        if learned.missing().is_empty() {
            return Ok(learned);
        }
        let mut tx = self.begin_loop(WHAT).await?;
        let done = self.learn(&mut tx, jobs.into_iter()).await;
        self.finish_transaction(WHAT, tx, done, |_| false).await
    }
}

/// The active runs of these jobs that belong to no org, oldest first.
pub(super) async fn active_of(conn: Conn<'_, '_>, jobs: Vec<Uuid>) -> StoreResult<HashMap<Owner, Vec<ActiveRun>>> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query_as(include_str!("sql/read_active.sql")).bind(jobs);
    Ok(active_by_owner(on("reading active runs", query.fetch_all_on(&mut *conn)).await?))
}

/// Returns when the jobs of these keys last succeeded.
pub(super) async fn upstream_of(conn: Conn<'_, '_>, mut keys: Vec<String>) -> StoreResult<HashMap<String, Timestamp>> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    keys.sort_unstable();
    keys.dedup();
    let query = sqlx::query_as(include_str!("sql/read_upstream.sql")).bind(keys);
    Ok(successes_by_key(on("reading successes", query.fetch_all_on(&mut *conn)).await?))
}

/// Writes plans, and returns which runs were new. Timers are already locked; then `active_runs`, then `jobs`.
pub(super) async fn write(
    conn: Conn<'_, '_>,
    what: &str,
    batch: &PlanBatch,
    by: &str,
    now: Timestamp,
) -> StoreResult<HashSet<Uuid>> {
    for entry in batch.entries(now) {
        insert_audit(&mut *conn, &entry).await?;
    }
    let now = Micros::from(now);
    let inserted = insert_runs(conn, what, &batch.runs, batch.starts.as_ref(), now).await?;
    insert_gaps(conn, what, batch, now).await?;
    let timers = batch.timers_after(&inserted);
    if !timers.is_empty() {
        let t = &timers;
        let query = sqlx::query(include_str!("sql/advance_timers.sql"))
            .bind(column(t, |t| t.timer.job_id))
            .bind(column(t, |t| t.timer.org_id.as_str()))
            .bind(column(t, |t| t.timer.next_run_at))
            .bind(column(t, |t| t.timer.last_slot_at))
            .bind(sparse(t, |t| t.timer.rescheduled_from))
            .bind(sparse(t, |t| t.timer.last_local_date.as_deref()))
            .bind(sparse(t, |t| t.last_run.map(|(at, _)| at)))
            .bind(sparse(t, |t| t.last_run.map(|(_, id)| id)));
        on(what, query.execute_on(&mut *conn)).await?;
    }
    if !batch.org_errors.is_empty() {
        let query = sqlx::query(include_str!("sql/set_timer_errors.sql"))
            .bind(column(&batch.org_errors, |error| error.job.id.as_uuid()))
            .bind(column(&batch.org_errors, |error| error.org.as_str()))
            .bind(column(&batch.org_errors, |error| error.why.as_str()));
        on(what, query.execute_on(&mut *conn)).await?;
    }
    if !batch.cancel.is_empty() {
        cancel(conn, what, &batch.cancel, now, by).await?;
    }
    if !batch.retire.is_empty() {
        let query = sqlx::query(include_str!("sql/retire_jobs.sql")).bind(batch.retire.clone()).bind(now);
        on(what, query.execute_on(&mut *conn)).await?;
    }
    if !batch.errors.is_empty() {
        let query = sqlx::query_as(include_str!("sql/set_job_errors.sql"))
            .bind(column(&batch.errors, |(id, _)| *id))
            .bind(column(&batch.errors, |(_, error)| error.clone()))
            .bind(now);
        let errored: Vec<(Uuid, String, String)> = on(what, query.fetch_all_on(&mut *conn)).await?;
        for (id, key, why) in errored {
            insert_audit(&mut *conn, &errored::of_job(JobId::from_uuid(id), &key, &why, now.into())).await?;
        }
    }
    Ok(inserted)
}

/// Ends pending runs, asks running ones to stop. Returns the number of each.
pub(super) async fn cancel(
    conn: Conn<'_, '_>,
    what: &str,
    runs: &[Uuid],
    now: Micros,
    by: &str,
) -> StoreResult<(u64, u64)> {
    let why = Failure::canceled(by).message;
    let query = sqlx::query_scalar(include_str!("sql/cancel_pending.sql")).bind(runs.to_vec()).bind(now).bind(why);
    let ended: Vec<Uuid> = on(what, query.fetch_all_on(&mut *conn)).await?;
    let by = storable_text(by, MAX_FAILURE_MESSAGE_BYTES);
    let query = sqlx::query(include_str!("sql/request_cancel.sql")).bind(runs.to_vec()).bind(by);
    let asked = on(what, query.execute_on(&mut *conn)).await?.rows_affected();
    let counted = (ended.len() as u64, asked);
    if !ended.is_empty() {
        // A one-time job whose only run will not happen has had its slot.
        let query = sqlx::query(include_str!("sql/retire_one_time.sql")).bind(ended).bind(now);
        on(what, query.execute_on(&mut *conn)).await?;
    }
    Ok(counted)
}

/// Appends runs; skips those whose slot already has one. Returns which were new.
pub(super) async fn insert_runs(
    conn: Conn<'_, '_>,
    what: &str,
    runs: &[RunValues],
    starts: Option<&Starts>,
    now: Micros,
) -> StoreResult<HashSet<Uuid>> {
    if runs.is_empty() {
        return Ok(HashSet::new());
    }
    let held: Vec<&RunValues> = runs.iter().filter(|run| run.held).collect();
    let beside: Vec<&RunValues> = runs.iter().filter(|run| run.max_concurrent != 1).collect();
    let ranked: Vec<&RunValues> = runs.iter().filter(|run| run.priority != 0).collect();
    let some = starts.filter(|starts| !starts.are_all);
    let query = sqlx::query_scalar(include_str!("sql/insert_runs.sql"))
        .bind(column(runs, |r| r.id))
        .bind(column(runs, |r| r.job_id))
        .bind(even(runs, |r| r.org_id.as_str()))
        .bind(even(runs, |r| r.at))
        .bind(even(runs, |r| r.nonce))
        .bind(even(runs, |r| r.scheduled_at))
        .bind(even(runs, |r| r.trigger.as_str()))
        .bind(even(runs, |r| r.target.as_str()))
        .bind(sparse(runs, |r| r.payload.as_deref()))
        .bind(sparse(runs, |r| r.skip_reason))
        .bind(sparse(runs, |r| r.skip_detail.as_deref()))
        .bind(even(runs, |r| r.catch_up))
        .bind(even(runs, |r| r.folded))
        .bind(sparse(runs, |r| r.local_date.as_deref()))
        .bind(column(&held, |r| r.id))
        .bind(column(&beside, |r| r.id))
        .bind(column(&beside, |r| r.max_concurrent))
        .bind(now)
        .bind(column(&ranked, |r| r.id))
        .bind(column(&ranked, |r| r.priority))
        .bind(sparse(runs, |r| r.trace_context.as_deref()))
        .bind(starts.map(|starts| starts.instance))
        .bind(starts.is_some_and(|starts| starts.are_all))
        .bind(some.map(|starts| starts.ids.clone()).unwrap_or_default())
        .bind(starts.map(|starts| starts.now))
        .bind(starts.map(|starts| starts.lease_until));
    let new: Option<Vec<Uuid>> = on(what, query.fetch_one_on(&mut *conn)).await?;
    Ok(new.map_or_else(|| runs.iter().map(|run| run.id).collect(), HashSet::from_iter))
}

async fn insert_gaps(conn: Conn<'_, '_>, what: &str, batch: &PlanBatch, now: Micros) -> StoreResult<()> {
    if batch.gaps.is_empty() {
        return Ok(());
    }
    let longer = extend_gaps(&mut *conn, what, batch, now).await?;
    let g: Vec<_> = batch.gaps.iter().filter(|gap| !longer.contains(&gap.id)).collect();
    if g.is_empty() {
        return Ok(());
    }
    let g = &g;
    let query = sqlx::query(include_str!("sql/insert_gaps.sql"))
        .bind(column(g, |g| g.id))
        .bind(column(g, |g| g.job_id))
        .bind(column(g, |g| g.org_id.clone()))
        .bind(column(g, |g| Micros::from(g.gap.first_slot_at)))
        .bind(column(g, |g| Micros::from(g.gap.last_slot_at)))
        .bind(column(g, |g| i64::try_from(g.gap.slots).unwrap_or(i64::MAX)))
        .bind(column(g, |g| g.gap.reason.as_str()))
        .bind(column(g, |g| g.gap.actor.clone()))
        .bind(now);
    on(what, query.execute_on(&mut *conn)).await?;
    Ok(())
}

/// Lets earlier gaps grow. Returns the ids of the gaps that need no row, because theirs did.
async fn extend_gaps(conn: Conn<'_, '_>, what: &str, batch: &PlanBatch, now: Micros) -> StoreResult<HashSet<Uuid>> {
    let g: Vec<_> = batch.longer_gaps().collect();
    if g.is_empty() {
        return Ok(HashSet::new());
    }
    let query = sqlx::query_scalar(include_str!("sql/extend_gaps.sql"))
        .bind(column(&g, |g| g.earlier))
        .bind(column(&g, |g| g.ended_at))
        .bind(column(&g, |g| g.last_slot_at))
        .bind(column(&g, |g| g.slots))
        .bind(now);
    let grown: Vec<Uuid> = on(what, query.fetch_all_on(&mut *conn)).await?;
    Ok(g.iter().filter(|g| grown.contains(&g.earlier)).map(|g| g.id).collect())
}

/// A column that often has one value for all rows, and then comes as that; the statement puts it in the place of null.
fn even<'a, R, T: PartialEq>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    let mut values = column(rows, value);
    if values.windows(2).all(|two| two[0] == two[1]) {
        values.truncate(1);
    }
    values
}

/// A column that is seldom filled: none at all if it is null everywhere, which `unnest` fills up with nulls.
pub(super) fn sparse<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> Option<T>) -> Vec<Option<T>> {
    let values = column(rows, value);
    if values.iter().all(Option::is_none) { Vec::new() } else { values }
}

/// One column of many rows, for `unnest`.
pub(super) fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
