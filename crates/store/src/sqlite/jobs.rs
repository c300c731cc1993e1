//! Jobs: creating, changing, finding, listing.

use std::collections::HashMap;

use async_trait::async_trait;
use everbell_core::chain::{ChainLink, RunGroup};
use everbell_core::change::NewJob;
use everbell_core::org::OrgTask;
use everbell_core::store::{
    AuditEntry, Changed, Cursor, DecideFn, Deed, InboxAnswer, InboxRequest, JobFilter, JobRef, JobRow, JobSort,
    JobStore, Page, PageRequest, PurgedJob, RefusedRequest, StoreError, StoreResult, TargetCount,
};
use everbell_core::{JobId, JobKey, JobStatus, RunStatus, Source};
use jiff::Timestamp;
use uuid::Uuid;

use super::calendars::check_calendars;
use super::chains::check_links;
use super::job_changes::move_active;
use super::transaction::{Statement, Tx};
use super::{SqliteStore, audit, batch, org_timers};
use crate::micros::Micros;
use crate::rows::binds::{bind_job, bind_timer};
use crate::rows::job_list::{self, cursor, key_of, label_text, micros_of};
use crate::rows::placeholders::filled_sql;
use crate::rows::{JobListColumns, JobValues, RunColumns, TimerColumns, check_cap, check_limit, target_counts};

/// How many jobs are looked at together when SQLite cannot compare the text itself.
const SCAN_PAGE_ROWS: u32 = 1_000;

#[async_trait]
impl JobStore for SqliteStore {
    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        let mut held = self.writer(format!("creating job `{}`", job.definition.key)).await?;
        let mut tx = held.begin().await?;
        insert_job(&mut tx, job, audit).await?;
        let deed = || Deed { job: Some(job.definition.id), ..Deed::default() };
        audit::insert_audit_of(&mut tx, audit, deed).await?;
        let row = self.job_row(&mut tx, job.definition.id.as_uuid()).await?;
        tx.commit_and_wake().await?;
        Ok(row)
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
        self.decide_change(job, None, expected_revision, decide, audit).await
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
        let mut held = self.reader("reading a job").await?;
        let mut tx = held.begin().await?;
        let id = find(&mut tx, job).await?;
        self.job_row(&mut tx, id).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        check_limit(page.limit)?;
        let mut held = self.reader("listing jobs").await?;
        let mut tx = held.begin().await?;
        let mut rows = listed(&mut tx, filter, page.after.as_ref(), page.limit + 1).await?;
        let next = job_list::cut(&mut rows, page.limit, |row| cursor(filter.sort, row));
        let runs = runs_of(&mut tx, rows.iter().filter_map(|row| row.last_run_id)).await?;
        Ok(job_list::page(rows, next, &runs, &self.known))
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        let mut held = self.reader("counting jobs").await?;
        let mut tx = held.begin().await?;
        count(&mut tx, filter, cap).await
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        Ok(target_counts(
            self.read("counting jobs of targets", sqlx::query(include_str!("sql/count_targets.sql"))).await?,
        ))
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
        let rows: Vec<(Uuid, Micros)> = self
            .read("looking for pauses that end", sqlx::query(include_str!("sql/pauses_ending.sql")).bind(limit))
            .await?;
        Ok(rows.into_iter().map(|(id, until)| (JobId::from_uuid(id), until.into())).collect())
    }
}

impl SqliteStore {
    pub(super) async fn job_row(&self, tx: &mut Tx<'_>, id: Uuid) -> StoreResult<JobRow> {
        let query = sqlx::query(filled_sql!(include_str!("sql/read_job_rows.sql"))).bind(batch::ids([id]));
        let row: Option<JobListColumns> = tx.first(query).await?;
        let row = row.ok_or_else(|| StoreError::not_found("job", id))?;
        let last = row.last_run_id;
        let mut runs = runs_of(tx, last).await?;
        let last_run = last.and_then(|id| runs.remove(&id)).map(RunColumns::read).transpose()?;
        row.read(&self.known, last_run)
    }
}

/// Runs by their ids, in no order.
pub(super) async fn runs_of(
    tx: &mut Tx<'_>,
    ids: impl IntoIterator<Item = Uuid>,
) -> StoreResult<HashMap<Uuid, RunColumns>> {
    let ids: Vec<Uuid> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<RunColumns> =
        tx.all(sqlx::query(filled_sql!(include_str!("sql/get_runs.sql"))).bind(batch::ids(ids))).await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// How many jobs there are like this, up to `cap`.
pub(super) async fn count(tx: &mut Tx<'_>, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
    check_cap(cap)?;
    if foreign_text(filter).is_some() {
        return Ok(listed(tx, filter, None, cap).await?.len() as u32);
    }
    let query = filtered(filled_sql!(include_str!("sql/count_jobs.sql")), filter, lower_text(filter)).bind(cap);
    let (jobs,): (u32,) = tx.one(query).await?;
    Ok(jobs)
}

/// The id of a job that is named somehow.
pub(super) async fn find(tx: &mut Tx<'_>, job: &JobRef) -> StoreResult<Uuid> {
    let (query, name) = match job {
        JobRef::Id(id) => return Ok(id.as_uuid()),
        JobRef::Key(key) => (sqlx::query(include_str!("sql/find_job.sql")).bind(key.to_string()), key.to_string()),
        JobRef::Version(key, version) => {
            let query = sqlx::query(include_str!("sql/find_job_version.sql")).bind(key.to_string());
            (query.bind(i64::from(*version)), format!("{key}@{version}"))
        }
    };
    let found: Option<(Uuid,)> = tx.first(query).await?;
    found.map(|(id,)| id).ok_or_else(|| StoreError::not_found("job", name))
}

/// Writes a job and its timer, or starts the org update that creates one for each org.
pub(super) async fn insert_job(tx: &mut Tx<'_>, job: &NewJob, audit: &AuditEntry) -> StoreResult<()> {
    check_calendars(tx, &job.definition).await?;
    check_links(tx, &job.definition).await?;
    let values = JobValues::new(&job.definition, &job.state);
    let target = values.columns.target.clone();
    let query = bind_job!(sqlx::query(include_str!("sql/insert_job.sql")), values);
    tx.run(query).await?;
    let before = job.definition.supersedes.map(|id| id.as_uuid());
    if let Some(before) = before {
        move_active(tx, before, job.definition.id, [""]).await?;
    }
    let Some(timer) = job.timer.as_ref().map(TimerColumns::from) else {
        return org_timers::begin(tx, &job.definition, &OrgTask::Arm, audit).await;
    };
    let query = bind_timer!(sqlx::query(include_str!("sql/insert_timer.sql")), timer, target, before);
    tx.run(query).await?;
    Ok(())
}

/// Returns the rows after a cursor, up to a limit.
///
/// SQLite folds the case of ASCII letters only, so a text with other letters is searched by its ASCII part, and the
/// results are compared here, some jobs at a time.
async fn listed(
    tx: &mut Tx<'_>,
    filter: &JobFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> StoreResult<Vec<JobListColumns>> {
    let Some(text) = foreign_text(filter) else {
        return tx.all(listing(filter, lower_text(filter), after, limit)?).await;
    };
    let mut found = Vec::new();
    let mut after = after.cloned();
    loop {
        let query = listing(filter, ascii_part(&text), after.as_ref(), SCAN_PAGE_ROWS)?;
        let rows: Vec<JobListColumns> = tx.all(query).await?;
        after = rows.last().map(|row| cursor(filter.sort, row));
        let at_end = rows.len() < SCAN_PAGE_ROWS as usize;
        found.extend(rows.into_iter().filter(|row| contains(row, &text)));
        if at_end || found.len() >= limit as usize {
            found.truncate(limit as usize);
            return Ok(found);
        }
    }
}

/// Whether few jobs are expected to pass, so that it costs less to read all of them than to look for those in an order.
fn is_narrow(filter: &JobFilter) -> bool {
    let JobFilter { status, last_status, .. } = filter;
    filter.key.is_some()
        || filter.text.is_some()
        || filter.errored == Some(true)
        || filter.failing == Some(true)
        || filter.one_time == Some(true)
        || filter.scheduled == Some(false)
        || !(status.is_empty() || status.contains(&JobStatus::Active))
        || !(last_status.is_empty() || last_status.contains(&RunStatus::Succeeded))
}

fn lower_text(filter: &JobFilter) -> Option<String> {
    filter.text.as_ref().map(|text| text.to_lowercase())
}

/// A text that SQLite cannot compare.
fn foreign_text(filter: &JobFilter) -> Option<String> {
    lower_text(filter).filter(|text| !text.is_ascii())
}

/// The longest part of a text that SQLite can compare.
fn ascii_part(text: &str) -> Option<String> {
    let longest = text.split(|c: char| !c.is_ascii()).max_by_key(|part| part.len());
    longest.filter(|part| !part.is_empty()).map(str::to_owned)
}

fn contains(row: &JobListColumns, text: &str) -> bool {
    [&row.job.job_key, &row.job.target, &row.job.description].iter().any(|own| own.to_lowercase().contains(text))
}

/// With what lists and counts of jobs have in common.
fn filtered(sql: &'static str, filter: &JobFilter, text: Option<String>) -> Statement {
    sqlx::query(sql)
        .bind(batch::wanted(&filter.status_words()))
        .bind(batch::wanted(&filter.target))
        .bind(filter.key.as_ref().map(ToString::to_string))
        .bind(text)
        .bind(filter.source.map(Source::as_str))
        .bind(batch::wanted(&filter.last_status))
        .bind(filter.errored)
        .bind(filter.failing)
        .bind(filter.one_time)
        .bind(filter.scheduled)
        .bind(filter.label.as_ref().map(label_text))
}

fn listing(filter: &JobFilter, text: Option<String>, after: Option<&Cursor>, limit: u32) -> StoreResult<Statement> {
    let sql = match filter.sort {
        JobSort::Key => filled_sql!(include_str!("sql/list_jobs_by_key.sql")),
        JobSort::NextRunAt if is_narrow(filter) => filled_sql!(include_str!("sql/list_few_jobs_by_next.sql")),
        JobSort::NextRunAt => filled_sql!(include_str!("sql/list_jobs_by_next.sql")),
        JobSort::CreatedAt => filled_sql!(include_str!("sql/list_jobs_by_created.sql")),
        JobSort::Target => filled_sql!(include_str!("sql/list_jobs_by_target.sql")),
        JobSort::LastRun => filled_sql!(include_str!("sql/list_jobs_by_last.sql")),
    };
    let query = filtered(sql, filter, text);
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
