//! History: runs, gaps, what became of a slot, and what is old enough to go.

use everbell_core::store::{
    Cursor, GapFilter, Page, PageRequest, PruneBefore, Pruned, RunFilter, Session, SlotOutcome, StoreError, StoreResult,
};
use everbell_core::{Gap, JobId, OrgId, Run, RunId};
use jiff::Timestamp;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::{FromRow, Postgres};
use uuid::Uuid;

use super::PostgresStore;
use super::connect::check_limit;
use crate::micros::Micros;
use crate::rows::scan::{self, Scan};
use crate::rows::{GapColumns, WholeRun, bad_cursor, check_cap, org_text, readable};

impl PostgresStore {
    pub(super) async fn read_run(&self, run: RunId) -> StoreResult<Run> {
        let query = sqlx::query_as(include_str!("sql/get_run.sql")).bind(run.as_uuid());
        let found: Option<WholeRun> = self.within("reading a run", query.fetch_optional(&self.pool)).await?;
        found.ok_or_else(|| StoreError::not_found("run", run))?.read()
    }

    pub(super) async fn read_runs_page(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        check_limit(page.limit)?;
        let mut rows = Vec::new();
        for query in self.scans(filter, page, list_sql).await? {
            rows.extend(self.within("listing runs", query.fetch_all(&self.pool)).await?);
        }
        Ok(scan::page(rows, page.limit))
    }

    /// A run is found by one of the scans only, so their counts add up.
    pub(super) async fn count_runs_like(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        check_cap(cap)?;
        let page = PageRequest { limit: cap - 1, after: None };
        let mut runs = 0;
        for query in self.scans(filter, &page, count_sql).await? {
            let (found,): (i64,) = self.within("counting runs", query.fetch_one(&self.pool)).await?;
            runs += found as u32;
            if runs >= cap {
                break;
            }
        }
        Ok(runs.min(cap))
    }

    /// The statements that together reach everything that the filter wants.
    async fn scans<T>(
        &self,
        filter: &RunFilter,
        page: &PageRequest,
        sql: fn(Scan) -> &'static str,
    ) -> StoreResult<Vec<Reading<T>>>
    where
        T: for<'r> FromRow<'r, PgRow>,
    {
        let mut queries = Vec::new();
        let jobs = if scan::names_jobs(filter) { Some(self.jobs_of(filter).await?) } else { None };
        for scan in Scan::choose(filter) {
            let query = || reading(sql(scan), filter, page);
            match scan {
                Scan::Active => queries.push(query().bind(jobs.clone())),
                Scan::All | Scan::Ended | Scan::Bad | Scan::Skipped => queries.push(query()),
                Scan::ByJob => {
                    let range = scan::id_range(filter, page);
                    let (first, end) = (RunId::from_uuid(range.0).time(), RunId::from_uuid(range.1).time());
                    let end = Micros::from(end.min(everbell_core::LATEST));
                    let jobs = jobs.iter().flatten();
                    queries.extend(jobs.map(|job| query().bind(*job).bind(end).bind(Micros::from(first))));
                }
            }
        }
        Ok(queries)
    }

    /// The versions whose runs are asked for.
    async fn jobs_of(&self, filter: &RunFilter) -> StoreResult<Vec<Uuid>> {
        let mut jobs = match &filter.job_key {
            None => return Ok(filter.job_id.iter().map(JobId::as_uuid).collect()),
            Some(key) => {
                let query = sqlx::query_scalar(include_str!("sql/find_job_versions.sql")).bind(key.as_str().to_owned());
                self.within::<Vec<Uuid>>("finding versions", query.fetch_all(&self.pool)).await?
            }
        };
        jobs.retain(|job| filter.job_id.is_none_or(|wanted| wanted.as_uuid() == *job));
        Ok(jobs)
    }

    pub(super) async fn read_gaps_page(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let value = after.map(|cursor| cursor.value.parse().map(Micros)).transpose();
        let query = sqlx::query_as(include_str!("sql/list_gaps.sql"))
            .bind(filter.job_id.map(|job| job.as_uuid()))
            .bind(filter.org.as_ref().map(ToString::to_string))
            .bind(filter.reason.map(everbell_core::GapReason::as_str))
            .bind(filter.from.map(Micros::from))
            .bind(filter.to.map(Micros::from))
            .bind(value.map_err(|_| bad_cursor())?)
            .bind(after.map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1)
            .bind(filter.job_key.as_ref().map(ToString::to_string));
        let mut rows: Vec<GapColumns> = self.within("listing gaps", query.fetch_all(&self.pool)).await?;
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let cursor = |row: &GapColumns| Cursor { value: row.first_slot_at.0.to_string(), id: row.id };
        let next = rows.last().filter(|_| more).map(cursor);
        let (items, unreadable) = readable(rows, |row| row.id, GapColumns::read);
        Ok(Page { items, next, unreadable })
    }

    pub(super) async fn read_slot(
        &self,
        job: JobId,
        org: Option<&OrgId>,
        slot: Timestamp,
    ) -> StoreResult<Option<SlotOutcome>> {
        let id = RunId::for_slot(job, org, slot).as_uuid();
        if let Some(run) = self.runs_of(&[id]).await?.remove(&id) {
            return Ok(Some(SlotOutcome::Run(Box::new(run.read()?))));
        }
        let query = sqlx::query_as(include_str!("sql/find_gap.sql"))
            .bind(job.as_uuid())
            .bind(org_text(org).to_owned())
            .bind(Micros::from(slot));
        let gap: Option<GapColumns> = self.within("looking for a gap", query.fetch_optional(&self.pool)).await?;
        gap.map(|gap| gap.read().map(|(_, _, gap)| SlotOutcome::Gap(gap))).transpose()
    }

    pub(super) async fn prune_all(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        let (bound, limit) = (Micros::from(before.history), i64::from(limit));
        let runs = sqlx::query(include_str!("sql/prune_runs.sql"))
            .bind(bound)
            .bind(limit)
            .bind(RunId::first_at(before.history).as_uuid());
        let gaps = sqlx::query(include_str!("sql/prune_gaps.sql")).bind(bound).bind(limit);
        let audit = sqlx::query(include_str!("sql/prune_audit.sql")).bind(Micros::from(before.audit)).bind(limit);
        let answers =
            sqlx::query(include_str!("sql/prune_requests.sql")).bind(Micros::from(before.requests)).bind(limit);
        let sessions = sqlx::query(include_str!("sql/prune_sessions.sql"))
            .bind(Micros::from(before.requests))
            .bind(limit)
            .bind(Micros::from(Session::idle_since(before.requests)));
        self.alone("pruning sessions", sessions.execute(&self.pool)).await?;
        // Each on its own, so that no lock outlives its statement.
        Ok(Pruned {
            runs: self.alone("pruning runs", runs.execute(&self.pool)).await?.rows_affected(),
            gaps: self.alone("pruning gaps", gaps.execute(&self.pool)).await?.rows_affected(),
            audit: self.alone("pruning the audit trail", audit.execute(&self.pool)).await?.rows_affected(),
            answers: self.alone("pruning answers", answers.execute(&self.pool)).await?.rows_affected(),
        })
    }
}

type Reading<T> = QueryAs<'static, Postgres, T, PgArguments>;

/// The statement of each way through history.
fn list_sql(scan: Scan) -> &'static str {
    match scan {
        Scan::All => include_str!("sql/list_runs_all.sql"),
        Scan::Active => include_str!("sql/list_runs_active.sql"),
        Scan::Ended => include_str!("sql/list_runs_ended.sql"),
        Scan::Bad => include_str!("sql/list_runs_bad.sql"),
        Scan::Skipped => include_str!("sql/list_runs_skipped.sql"),
        Scan::ByJob => include_str!("sql/list_runs_by_job.sql"),
    }
}

/// The same statements, for the number of their rows.
fn count_sql(scan: Scan) -> &'static str {
    macro_rules! counted {
        ($list:literal) => {
            concat!("select count(*) from (", include_str!($list), ") as few")
        };
    }
    match scan {
        Scan::All => counted!("sql/list_runs_all.sql"),
        Scan::Active => counted!("sql/list_runs_active.sql"),
        Scan::Ended => counted!("sql/list_runs_ended.sql"),
        Scan::Bad => counted!("sql/list_runs_bad.sql"),
        Scan::Skipped => counted!("sql/list_runs_skipped.sql"),
        Scan::ByJob => counted!("sql/list_runs_by_job.sql"),
    }
}

fn reading<T>(sql: &'static str, filter: &RunFilter, page: &PageRequest) -> Reading<T>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    let words = |words: Vec<String>| (!words.is_empty()).then_some(words);
    let (first, end) = scan::id_range(filter, page);
    sqlx::query_as(sql)
        // Planned anew for its values: with a plan for any values the optional filters would hide the indexes.
        .persistent(false)
        .bind(end)
        .bind(first)
        .bind(words(filter.status.iter().map(ToString::to_string).collect()))
        .bind(words(filter.target.iter().map(ToString::to_string).collect()))
        .bind(filter.trigger.map(everbell_core::TriggerType::as_str))
        .bind(filter.org.as_ref().map(ToString::to_string))
        .bind(filter.instance.map(|instance| instance.as_uuid()))
        .bind(filter.failure_code.clone())
        .bind(i64::from(page.limit) + 1)
}
