//! Runs: planning, starting, recording, listing.

use std::collections::HashSet;

use async_trait::async_trait;
use everbell_core::settle::Transition;
use everbell_core::store::{
    AuditEntry, Bucket, Canceled, Claim, Cursor, Deed, GapFilter, Page, PageRequest, PlanDue, PlanFn, Planned,
    RecentRuns, Recorded, RunFilter, RunHistogram, RunStore, RunSummary, SlotOutcome, StartRuns, StoreError,
    StoreResult,
};
use everbell_core::{Gap, JobId, OrgId, OutputSoFar, Run, RunId, RunStatus};
use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::connect::{Conn, on};
use super::floors::EARLIEST_TIME;
use super::outcomes::MAX_DEADLOCK_ATTEMPTS;
use super::pooler::News;
use super::run_lists::{count_sql, list_sql};
use super::run_statistics::{counting, counting_of_jobs};
use super::statement::Statement;
use super::timers::{PLANNING, cancel, column, insert_runs};
use super::{PostgresStore, audit, errors};
use crate::micros::Micros;
use crate::rows::job_list::label_text;
use crate::rows::placeholders::filled_sql;
use crate::rows::summary::{self, RunSummaryColumns};
use crate::rows::{
    ClaimColumns, GapColumns, PlanBatch, Recording, RunColumns, RunValues, WholeRun, check_cap, check_limit,
    cursor_time, org_text, page_of, scan,
};

#[async_trait]
impl RunStore for PostgresStore {
    async fn plan_due(&self, request: &PlanDue<'_>, plan: &PlanFn<'_>) -> StoreResult<Planned> {
        let moment = Instant::now();
        let looks = column(request.targets, |target| self.timer_floors.look(target.as_str(), moment));
        // One look for all of them, so that the oldest of all come first.
        let since = looks.iter().map(|look| look.since).min().unwrap_or(EARLIEST_TIME);
        let mut tx = self.begin_loop(PLANNING).await?;
        let done = self.plan_in(&mut tx, request, since, plan).await;
        // An instance is woken only if there is work: a run waits for its start, or is asked to stop.
        let news = |batch: &PlanBatch, inserted: &HashSet<Uuid>| {
            let all_started = batch.starts.as_ref().is_some_and(|starts| starts.are_all);
            (!inserted.is_empty() && !all_started) || !batch.cancel.is_empty()
        };
        // A full batch without starts is followed by another, which notifies the others: notifications make commits wait
        // for each other. One with starts may be followed by none that has news.
        let full = |batch: &PlanBatch| {
            request.start.is_none() && batch.timers.len() >= request.limit_for(batch.by_priority) as usize
        };
        let tell = |(batch, inserted, _): &(PlanBatch, _, _)| {
            if news(batch, inserted) && !full(batch) { News::Planned } else { News::None }
        };
        let (batch, inserted, next) = self.finish_transaction_with(PLANNING, tx, done, tell).await?;
        if let Some(oldest) = batch.waiting().map(|run| run.scheduled_at).min() {
            self.run_floors.lower(oldest);
        }
        if looks.iter().any(|look| look.is_full) {
            self.find_timer_floors(request.targets, &looks, request.now).await;
        }
        if news(&batch, &inserted) {
            self.wake.notify_waiters();
        }
        let planned = batch.into_planned(&inserted, request.start.as_ref(), next);
        self.started.add(&planned.claims);
        Ok(planned)
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        const WHAT: &str = "starting runs";
        let moment = Instant::now();
        let looks = column(request.targets, |wanted| self.run_floors.look(wanted.target.as_str(), moment));
        let query = sqlx::query_as(include_str!("sql/start_runs.sql"))
            .bind(column(request.targets, |wanted| wanted.target.to_string()))
            .bind(column(request.targets, |wanted| i64::from(wanted.room)))
            .bind(i64::from(request.limit))
            .bind(Micros::from(request.now))
            .bind(request.instance.as_uuid())
            .bind(Micros::from(request.lease_until))
            .bind(column(&looks, |look| look.since))
            .bind(column(request.targets, |wanted| wanted.backfills));
        let rows: Vec<ClaimColumns> = self.alone(WHAT, query.fetch_all_on(&self.loops)).await?;
        self.find_run_floors(request, &looks).await;
        let learned = self.learn_apart(rows.iter().filter_map(|row| row.job_id)).await?;
        let claim = |row: ClaimColumns| {
            let id = row.job_id.map(JobId::from_uuid);
            let job = id.and_then(|id| learned.get(id));
            row.read(job, request.instance, request.now, request.lease_until)
        };
        let (mut claims, mut unreadable) = (Vec::with_capacity(rows.len()), None);
        for row in rows {
            match claim(row) {
                Ok(claim) => claims.push(claim),
                Err(error) => unreadable = Some(error),
            }
        }
        // A run that cannot be read must not block the others; the holder of the lease notices that it is unknown.
        if let Some(error) = unreadable.filter(|_| claims.is_empty()) {
            return Err(error);
        }
        // A claim is large, and is moved once like this.
        claims.sort_by_cached_key(Claim::start_order);
        self.started.add(&claims);
        Ok(claims)
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        const WHAT: &str = "recording runs";
        if transitions.is_empty() {
            return Ok(Vec::new());
        }
        let retires = self.started.remove(transitions).filter(|_| Recording::only_successes(transitions));
        let alone = retires.as_deref();
        for _ in 1..MAX_DEADLOCK_ATTEMPTS {
            match self.record_once(WHAT, transitions, now, alone).await {
                Err(error) if errors::is_deadlock(&error) => {}
                answer => return answer,
            }
        }
        self.record_once(WHAT, transitions, now, alone).await
    }

    async fn runs_after(&self, ended: RunId, finished_at: Timestamp, limit: u32) -> StoreResult<Vec<Run>> {
        check_limit(limit)?;
        self.started_after(ended, finished_at, limit).await
    }

    async fn save_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query_scalar(include_str!("sql/save_outputs.sql"))
            .bind(column(outputs, |output| output.run_id.as_uuid()))
            .bind(column(outputs, |output| output.attempt as i32))
            .bind(column(outputs, |output| output.text.clone()));
        let kept: Vec<Uuid> = self.alone("keeping what runs print", query.fetch_all_on(&self.loops)).await?;
        Ok(kept.into_iter().map(RunId::from_uuid).collect())
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "inserting a run";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            let values = RunValues::of_trial(run);
            if insert_runs(&mut tx, WHAT, &[values], None, Micros::from(run.created_at)).await?.is_empty() {
                return Err(StoreError::Conflict { what: format!("run `{}` already exists", run.id) });
            }
            let deed = || Deed { runs: vec![run.id], ..Deed::default() };
            audit::insert_audit_of(&mut tx, audit, deed).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| true).await
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        const WHAT: &str = "canceling a run";
        let mut tx = self.begin(WHAT).await?;
        let done = self.cancel_in(&mut tx, WHAT, run, by, now, audit).await;
        self.finish_transaction(WHAT, tx, done, |outcome| !matches!(outcome, Canceled::TooLate(_))).await
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        let query = sqlx::query_as(filled_sql!(include_str!("sql/get_run.sql"))).bind(run.as_uuid());
        let found: Option<WholeRun> = self.within("reading a run", query.fetch_optional_on(&self.pool)).await?;
        found.ok_or_else(|| StoreError::not_found("run", run))?.read()
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        check_limit(page.limit)?;
        let mut rows = Vec::new();
        for query in self.scans(filter, page, list_sql).await? {
            rows.extend(self.within("listing runs", query.fetch_all_on(&self.pool)).await?);
        }
        Ok(scan::page(rows, page.limit))
    }

    /// A run is found by one of the scans only, so their counts add up.
    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        check_cap(cap)?;
        let page = PageRequest { limit: cap - 1, after: None };
        let mut runs = 0;
        for query in self.scans(filter, &page, count_sql).await? {
            let (found,): (i64,) = self.within("counting runs", query.fetch_one_on(&self.pool)).await?;
            runs += found as u32;
            if runs >= cap {
                break;
            }
        }
        Ok(runs.min(cap))
    }

    async fn recent_runs(&self, recent_runs: &RecentRuns) -> StoreResult<Vec<RunSummary>> {
        let (from, to) = summary::at_range(recent_runs.window());
        let query = sqlx::query_as(include_str!("sql/recent_runs.sql"))
            .bind(recent_runs.keys().iter().map(ToString::to_string).collect::<Vec<_>>())
            .bind(i64::from(recent_runs.each()))
            .bind(from)
            .bind(to);
        let rows: Vec<RunSummaryColumns> = self.within("reading recent runs", query.fetch_all_on(&self.pool)).await?;
        Ok(summary::summaries(rows, recent_runs.each()))
    }

    async fn count_runs_by_time(&self, histogram: &RunHistogram) -> StoreResult<Vec<Bucket>> {
        const WHAT: &str = "counting runs";
        let query = match histogram.job_key().filter(|_| histogram.is_plain()) {
            None => counting(histogram),
            Some(key) => {
                let jobs = sqlx::query_scalar(include_str!("sql/find_job_versions.sql")).bind(key.to_string());
                counting_of_jobs(histogram, self.within(WHAT, jobs.fetch_all_on(&self.pool)).await?)
            }
        };
        let rows = self.within(WHAT, query.fetch_all_on(&self.pool)).await?;
        Ok(summary::buckets(histogram, &rows))
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let query = sqlx::query_as(include_str!("sql/list_gaps.sql"))
            // Planned for these values: with a generic plan the optional filters would hide the indexes.
            .persistent(false)
            .bind(filter.job_id.map(|job| job.as_uuid()))
            .bind(filter.org.as_ref().map(ToString::to_string))
            .bind(filter.reason.map(everbell_core::GapReason::as_str))
            .bind(filter.from.map(Micros::from))
            .bind(filter.to.map(Micros::from))
            .bind(cursor_time(after)?)
            .bind(after.map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1)
            .bind(filter.job_key.as_ref().map(ToString::to_string))
            .bind(filter.label.as_ref().map(label_text));
        let rows: Vec<GapColumns> = self.within("listing gaps", query.fetch_all_on(&self.pool)).await?;
        let cursor = |row: &GapColumns| Cursor { value: row.first_slot_at.0.to_string(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, GapColumns::read))
    }

    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        let id = RunId::for_slot(job, org, slot).as_uuid();
        if let Some(run) = self.runs_of(&[id]).await?.remove(&id) {
            return Ok(Some(SlotOutcome::Run(Box::new(run.read()?))));
        }
        let query = sqlx::query_as(include_str!("sql/find_gap.sql"))
            .bind(job.as_uuid())
            .bind(org_text(org).to_owned())
            .bind(Micros::from(slot));
        let gap: Option<GapColumns> = self.within("looking for a gap", query.fetch_optional_on(&self.pool)).await?;
        gap.map(|gap| gap.read().map(|(_, _, gap)| SlotOutcome::Gap(gap))).transpose()
    }
}

impl PostgresStore {
    async fn cancel_in(
        &self,
        tx: Conn<'_, '_>,
        what: &str,
        run: RunId,
        by: &str,
        now: Timestamp,
        audit: &AuditEntry,
    ) -> StoreResult<Canceled> {
        let done = cancel(&mut *tx, what, &[run.as_uuid()], Micros::from(now), by).await?;
        let outcome = match done {
            (0, 0) => {
                // On the same connection: waiting for a second one while holding the first could deadlock the pool.
                let query = sqlx::query_as(filled_sql!(include_str!("sql/get_runs.sql"))).bind(vec![run.as_uuid()]);
                let found: Option<RunColumns> = on(what, query.fetch_optional_on(&mut *tx)).await?;
                match found.ok_or_else(|| StoreError::not_found("run", run))?.read()?.status {
                    RunStatus::Pending | RunStatus::Running => return Err(moving(run)),
                    status => return Ok(Canceled::TooLate(status)),
                }
            }
            (0, _) => Canceled::Requested,
            _ => Canceled::AtOnce,
        };
        let deed = || Deed { runs: vec![run], ..Deed::default() };
        audit::insert_audit_of(&mut *tx, audit, deed).await?;
        Ok(outcome)
    }
}

/// It was neither pending nor running a moment ago, and is now: the caller looks again.
fn moving(run: RunId) -> StoreError {
    StoreError::Conflict { what: format!("run `{run}` is changing at this moment") }
}
