//! Jobs: creating, changing, finding, listing.

use std::collections::HashMap;

use async_trait::async_trait;
use everbell_core::chain::{ChainLink, RunGroup};
use everbell_core::change::NewJob;
use everbell_core::org::OrgTask;
use everbell_core::store::{
    AuditEntry, Changed, DecideFn, Deed, InboxAnswer, InboxRequest, JobFilter, JobRef, JobRow, JobSort, JobStore, Page,
    PageRequest, PurgedJob, RefusedRequest, StoreError, StoreResult, TargetCount,
};
use everbell_core::{JobId, JobKey};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use uuid::Uuid;

use super::calendars::check_calendars;
use super::chains::check_links;
use super::connect::{Conn, on};
use super::job_changes::{Wanted, move_active};
use super::statement::{Backend, Statement};
use super::{PostgresStore, audit, org_timers};
use crate::micros::Micros;
use crate::rows::binds::{bind_job, bind_timer};
use crate::rows::job_list::{self, cursor, key_of, label_text, micros_of};
use crate::rows::placeholders::filled_sql;
use crate::rows::{JobListColumns, JobValues, RunColumns, TimerColumns, check_cap, check_limit, target_counts};

#[async_trait]
impl JobStore for PostgresStore {
    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        let what = format!("creating job `{}`", job.definition.key);
        let mut tx = self.begin(&what).await?;
        let done = async {
            insert_job(&mut tx, &what, job, audit).await?;
            let deed = || Deed { job: Some(job.definition.id), ..Deed::default() };
            audit::insert_audit_of(&mut tx, audit, deed).await
        };
        let done = done.await;
        self.finish_transaction(&what, tx, done, |()| true).await?;
        self.job_row(job.definition.id.as_uuid()).await
    }

    async fn create_jobs(&self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
        self.insert_jobs(jobs, audit).await
    }

    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.decide_change(Wanted { job, org: None, expected_revision, is_audited: true }, decide, audit).await
    }

    async fn purge_job(
        &self,
        key: &JobKey,
        limit: u32,
        so_far: PurgedJob,
        audit: &AuditEntry,
    ) -> StoreResult<PurgedJob> {
        self.purge_step(key, limit, so_far, audit).await
    }

    async fn write_inbox(&self, request: &InboxRequest) -> StoreResult<i64> {
        self.add_to_inbox(request).await
    }

    async fn open_inbox(&self, limit: u32, without: &[i64]) -> StoreResult<Vec<InboxRequest>> {
        self.read_inbox(limit, without).await
    }

    async fn answer_inbox(&self, id: i64, answer: &InboxAnswer, audit: &AuditEntry) -> StoreResult<bool> {
        self.answer_once(id, answer, audit).await
    }

    async fn refused_inbox(&self, limit: u32) -> StoreResult<Vec<RefusedRequest>> {
        self.read_refusals(limit).await
    }

    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        let id = find(&self.pool, job).await?;
        self.job_row(id).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        check_limit(page.limit)?;
        let query = listing(filter, page)?;
        let mut rows = self.within("listing jobs", query.fetch_all_on(&self.pool)).await?;
        let next = job_list::cut(&mut rows, page.limit, |row| cursor(filter.sort, row));
        let last_runs: Vec<Uuid> = rows.iter().filter_map(|row| row.last_run_id).collect();
        let runs = self.runs_of(&last_runs).await?;
        Ok(job_list::page(rows, next, &runs, &self.known))
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        count(&self.pool, filter, cap).await
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        let query = sqlx::query_as(include_str!("sql/count_targets.sql"));
        let rows = self.within("counting jobs of targets", query.fetch_all_on(&self.pool)).await?;
        Ok(target_counts(rows))
    }

    async fn chain_links(&self, limit: u32) -> StoreResult<Vec<ChainLink>> {
        self.links(limit).await
    }

    async fn run_groups(&self, job: &JobKey, until: Option<Timestamp>, limit: u32) -> StoreResult<Vec<RunGroup>> {
        self.groups_of(job, until, limit).await
    }

    async fn expire_run_groups(&self, limit: u32, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        self.expire_groups(limit, now).await
    }

    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        let query = sqlx::query_as(include_str!("sql/pauses_ending.sql")).bind(i64::from(limit));
        let rows: Vec<(Uuid, Micros)> =
            self.within("looking for pauses that end", query.fetch_all_on(&self.pool)).await?;
        Ok(rows.into_iter().map(|(id, until)| (JobId::from_uuid(id), until.into())).collect())
    }
}

impl PostgresStore {
    /// A job that is known to exist.
    pub(super) async fn job_row(&self, id: Uuid) -> StoreResult<JobRow> {
        let query = sqlx::query_as(filled_sql!(include_str!("sql/read_job_rows.sql"))).bind(vec![id]);
        let rows: Vec<JobListColumns> = self.within("reading a job", query.fetch_all_on(&self.pool)).await?;
        let row = rows.into_iter().next().ok_or_else(|| StoreError::not_found("job", id))?;
        let last_run = row.last_run_id;
        let last_run = match last_run {
            Some(id) => self.runs_of(&[id]).await?.remove(&id).map(RunColumns::read).transpose()?,
            None => None,
        };
        row.read(&self.known, last_run)
    }

    /// Runs by their ids, in no order.
    pub(super) async fn runs_of(&self, ids: &[Uuid]) -> StoreResult<HashMap<Uuid, RunColumns>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let query = sqlx::query_as(filled_sql!(include_str!("sql/get_runs.sql"))).bind(ids.to_vec());
        let rows: Vec<RunColumns> = self.within("reading runs", query.fetch_all_on(&self.pool)).await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }
}

/// How many jobs there are like this, up to `cap`.
pub(super) async fn count(backend: impl Backend, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
    check_cap(cap)?;
    let query = sqlx::query_as(filled_sql!(include_str!("sql/count_jobs.sql"))).persistent(false);
    let query = filtered(query, filter).bind(i64::from(cap));
    let (jobs,): (i64,) = on("counting jobs", query.fetch_one_on(backend)).await?;
    Ok(jobs as u32)
}

/// The id of a job that is named somehow.
pub(super) async fn find(backend: impl Backend, job: &JobRef) -> StoreResult<Uuid> {
    let (query, name) = match job {
        JobRef::Id(id) => return Ok(id.as_uuid()),
        JobRef::Key(key) => {
            (sqlx::query_scalar(include_str!("sql/find_job.sql")).bind(key.as_str().to_owned()), key.to_string())
        }
        JobRef::Version(key, version) => {
            let query = sqlx::query_scalar(include_str!("sql/find_job_version.sql"));
            (query.bind(key.as_str().to_owned()).bind(*version as i32), format!("{key}@{version}"))
        }
    };
    let found: Option<Uuid> = on("finding a job", query.fetch_optional_on(backend)).await?;
    found.ok_or_else(|| StoreError::not_found("job", name))
}

/// Writes a job and its timer, or starts the org update that creates one for each org.
pub(super) async fn insert_job(conn: Conn<'_, '_>, what: &str, job: &NewJob, audit: &AuditEntry) -> StoreResult<()> {
    check_calendars(&mut *conn, what, &job.definition).await?;
    check_links(&mut *conn, what, &job.definition).await?;
    let values = JobValues::new(&job.definition, &job.state);
    let target = values.columns.target.clone();
    let query = bind_job!(sqlx::query(include_str!("sql/insert_job.sql")), values);
    on(what, query.execute_on(&mut *conn)).await?;
    let before = job.definition.supersedes.map(|id| id.as_uuid());
    if let Some(before) = before {
        move_active(&mut *conn, what, before, job.definition.id, vec![String::new()]).await?;
    }
    let Some(timer) = job.timer.as_ref().map(TimerColumns::from) else {
        return org_timers::begin(conn, what, &job.definition, &OrgTask::Arm, audit).await;
    };
    let query = bind_timer!(sqlx::query(include_str!("sql/insert_timer.sql")), timer, target, before);
    on(what, query.execute_on(&mut *conn)).await?;
    Ok(())
}

type Reading<T> = QueryAs<'static, Postgres, T, PgArguments>;

/// With what lists and counts of jobs have in common.
fn filtered<T>(query: Reading<T>, filter: &JobFilter) -> Reading<T> {
    let words = |words: Vec<String>| (!words.is_empty()).then_some(words);
    query
        .bind(words(filter.status_words().into_iter().map(str::to_owned).collect()))
        .bind(words(filter.target.iter().map(ToString::to_string).collect()))
        .bind(filter.key.as_ref().map(ToString::to_string))
        .bind(filter.text.clone())
        .bind(filter.source.map(|source| source.to_string()))
        .bind(words(filter.last_status.iter().map(ToString::to_string).collect()))
        .bind(filter.errored)
        .bind(filter.failing)
        .bind(filter.one_time)
        .bind(filter.scheduled)
        .bind(filter.label.as_ref().map(label_text))
}

fn listing(filter: &JobFilter, page: &PageRequest) -> StoreResult<Reading<JobListColumns>> {
    let sql = match filter.sort {
        JobSort::Key => filled_sql!(include_str!("sql/list_jobs_by_key.sql")),
        JobSort::NextRunAt => filled_sql!(include_str!("sql/list_jobs_by_next.sql")),
        JobSort::CreatedAt => filled_sql!(include_str!("sql/list_jobs_by_created.sql")),
        JobSort::Target => filled_sql!(include_str!("sql/list_jobs_by_target.sql")),
        JobSort::LastRun => filled_sql!(include_str!("sql/list_jobs_by_last.sql")),
    };
    // Planned for these values: with a generic plan the optional filters would hide the indexes.
    let query = filtered(sqlx::query_as(sql).persistent(false), filter);
    let after = page.after.as_ref();
    let limit = i64::from(page.limit) + 1;
    Ok(match filter.sort {
        JobSort::Key => {
            let (version, key) = after.map(|cursor| key_of(&cursor.value)).transpose()?.unzip();
            query.bind(key).bind(version).bind(limit)
        }
        JobSort::NextRunAt | JobSort::CreatedAt | JobSort::LastRun => {
            let value = after.map(|cursor| micros_of(&cursor.value)).transpose()?.flatten();
            query.bind(value).bind(after.map(|cursor| cursor.id)).bind(limit)
        }
        JobSort::Target => {
            let (target, id) = after.map(|cursor| (cursor.value.clone(), cursor.id)).unzip();
            query.bind(target).bind(id).bind(limit)
        }
    })
}
