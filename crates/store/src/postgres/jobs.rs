//! Jobs: finding, listing, inserting.

use std::collections::HashMap;

use everbell_core::JobId;
use everbell_core::change::NewJob;
use everbell_core::org::Work;
use everbell_core::store::{
    AuditEntry, Deed, JobFilter, JobRef, JobRow, JobSort, Page, PageRequest, StoreError, StoreResult, TargetCount,
};
use jiff::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use sqlx::{PgExecutor, Postgres};
use uuid::Uuid;

use super::changing::move_active;
use super::connect::{Conn, check_limit, on};
use super::{PostgresStore, sweeping};
use crate::micros::Micros;
use crate::rows::job_list::{cursor, key_of, label_text, micros_of};
use crate::rows::{JobListColumns, JobValues, RunColumns, TimerColumns, check_cap, target_counts};

impl PostgresStore {
    pub(super) async fn insert_new_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        let what = format!("creating job `{}`", job.definition.key);
        let mut tx = self.begin(&what).await?;
        let done = async {
            insert_job(&mut tx, &what, job, audit).await?;
            let deed = || Deed { job: Some(job.definition.id), ..Deed::default() };
            super::access::insert_audit_of(&mut tx, audit, deed).await
        };
        let done = done.await;
        self.settle(&what, tx, done, |()| true).await?;
        self.job_row(job.definition.id.as_uuid()).await
    }

    pub(super) async fn read_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        let id = find(&self.pool, job).await?;
        self.job_row(id).await
    }

    /// A job that is known to exist.
    pub(super) async fn job_row(&self, id: Uuid) -> StoreResult<JobRow> {
        let query = sqlx::query_as(include_str!("sql/read_job_rows.sql")).bind(vec![id]);
        let rows: Vec<JobListColumns> = self.within("reading a job", query.fetch_all(&self.pool)).await?;
        let row = rows.into_iter().next().ok_or_else(|| StoreError::not_found("job", id))?;
        let last_run = row.last_run_id;
        let last_run = match last_run {
            Some(id) => self.runs_of(&[id]).await?.remove(&id).map(RunColumns::read).transpose()?,
            None => None,
        };
        row.read(&self.known, last_run)
    }

    pub(super) async fn read_pauses(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        let query = sqlx::query_as(include_str!("sql/pauses_ending.sql")).bind(i64::from(limit));
        let rows: Vec<(Uuid, Micros)> = self.within("looking for pauses that end", query.fetch_all(&self.pool)).await?;
        Ok(rows.into_iter().map(|(id, until)| (JobId::from_uuid(id), until.into())).collect())
    }

    pub(super) async fn read_jobs_page(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        check_limit(page.limit)?;
        let query = listing(filter, page)?;
        let mut rows = self.within("listing jobs", query.fetch_all(&self.pool)).await?;
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let next = rows.last().filter(|_| more).map(|row| cursor(filter.sort, row));
        let last_runs: Vec<Uuid> = rows.iter().filter_map(|row| row.last_run_id).collect();
        let runs = self.runs_of(&last_runs).await?;
        let mut read = Page { items: Vec::with_capacity(rows.len()), next, unreadable: Vec::new() };
        for row in rows {
            let id = row.job.id;
            let run = row.last_run_id.and_then(|id| runs.get(&id).cloned()).map(RunColumns::read).transpose();
            match run.and_then(|run| row.read(&self.known, run)) {
                Ok(row) => read.items.push(row),
                Err(_) => read.unreadable.push(id.to_string()),
            }
        }
        Ok(read)
    }

    pub(super) async fn count_jobs_like(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        check_cap(cap)?;
        let query = sqlx::query_as(include_str!("sql/count_jobs_like.sql")).persistent(false);
        let query = filtered(query, filter).bind(i64::from(cap));
        let (jobs,): (i64,) = self.within("counting jobs", query.fetch_one(&self.pool)).await?;
        Ok(jobs as u32)
    }

    pub(super) async fn read_targets(&self) -> StoreResult<Vec<TargetCount>> {
        let query = sqlx::query_as(include_str!("sql/count_targets.sql"));
        let rows = self.within("counting jobs of targets", query.fetch_all(&self.pool)).await?;
        Ok(target_counts(rows))
    }

    /// Runs by their ids, in no order.
    pub(super) async fn runs_of(&self, ids: &[Uuid]) -> StoreResult<HashMap<Uuid, RunColumns>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let query = sqlx::query_as(include_str!("sql/get_runs.sql")).bind(ids.to_vec());
        let rows: Vec<RunColumns> = self.within("reading runs", query.fetch_all(&self.pool)).await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }
}

/// The id of a job that is named somehow.
pub(super) async fn find<'e>(executor: impl PgExecutor<'e>, job: &JobRef) -> StoreResult<Uuid> {
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
    let found: Option<Uuid> = on("finding a job", query.fetch_optional(executor)).await?;
    found.ok_or_else(|| StoreError::not_found("job", name))
}

/// Writes a job and its timer, or begins the sweep that makes one for each org.
pub(super) async fn insert_job(conn: Conn<'_, '_>, what: &str, job: &NewJob, audit: &AuditEntry) -> StoreResult<()> {
    let JobValues { columns: c, schedule_type, content_hash } = JobValues::new(&job.definition, &job.state);
    let target = c.target.clone();
    let query = sqlx::query(include_str!("sql/insert_job.sql"))
        .bind(c.id)
        .bind(c.job_key)
        .bind(c.version)
        .bind(c.target)
        .bind(c.payload)
        .bind(schedule_type)
        .bind(c.cron_expression)
        .bind(c.run_at)
        .bind(c.timezone)
        .bind(c.anchor_at)
        .bind(c.start_at)
        .bind(c.end_at)
        .bind(c.dst_gap)
        .bind(c.dst_fold)
        .bind(c.scope)
        .bind(c.policies)
        .bind(c.labels)
        .bind(c.description)
        .bind(c.source)
        .bind(content_hash)
        .bind(c.supersedes_job_id)
        .bind(c.created_by)
        .bind(c.created_at)
        .bind(c.status)
        .bind(c.error)
        .bind(c.pause_reason)
        .bind(c.paused_by)
        .bind(c.paused_at)
        .bind(c.paused_until)
        .bind(c.revision)
        .bind(c.consecutive_failures)
        .bind(c.updated_by)
        .bind(c.updated_at);
    on(what, query.execute(&mut *conn)).await?;
    let before = job.definition.supersedes.map(|id| id.as_uuid());
    if let Some(before) = before {
        move_active(&mut *conn, what, before, job.definition.id, vec![String::new()]).await?;
    }
    let Some(timer) = job.timer.as_ref().map(TimerColumns::from) else {
        return sweeping::begin(conn, what, &job.definition, &Work::Arm, audit).await;
    };
    let query = sqlx::query(include_str!("sql/insert_timer.sql"))
        .bind(timer.job_id)
        .bind(timer.org_id)
        .bind(target)
        .bind(timer.next_run_at)
        .bind(timer.last_slot_at)
        .bind(timer.rescheduled_from)
        .bind(timer.last_local_date)
        .bind(before);
    on(what, query.execute(&mut *conn)).await?;
    Ok(())
}

type Reading<T> = QueryAs<'static, Postgres, T, PgArguments>;

/// With what lists and counts of jobs have in common.
fn filtered<T>(query: Reading<T>, filter: &JobFilter) -> Reading<T> {
    let words = |words: Vec<String>| (!words.is_empty()).then_some(words);
    query
        .bind(words(filter.status.iter().map(ToString::to_string).collect()))
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
        JobSort::Key => include_str!("sql/list_jobs_by_key.sql"),
        JobSort::NextRunAt => include_str!("sql/list_jobs_by_next.sql"),
        JobSort::CreatedAt => include_str!("sql/list_jobs_by_created.sql"),
        JobSort::Target => include_str!("sql/list_jobs_by_target.sql"),
        JobSort::LastRun => include_str!("sql/list_jobs_by_last.sql"),
    };
    // Planned anew for its values: with a plan for any values the optional filters would hide the indexes.
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
