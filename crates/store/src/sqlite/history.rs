//! History: runs, gaps, what became of a slot, and what is old enough to go.

use everbell_core::store::{
    Cursor, GapFilter, Page, PageRequest, PruneBefore, Pruned, RunFilter, Session, SlotOutcome, StoreError, StoreResult,
};
use everbell_core::{Gap, GapReason, JobId, OrgId, Run, RunId, TriggerType};
use jiff::Timestamp;
use uuid::Uuid;

use super::connect::check_limit;
use super::transaction::{Statement, Tx};
use super::{SqliteStore, batch, jobs};
use crate::micros::Micros;
use crate::rows::scan::{self, Scan};
use crate::rows::{GapColumns, RunColumns, WholeRun, bad_cursor, check_cap, org_text, readable};

impl SqliteStore {
    pub(super) async fn read_run(&self, run: RunId) -> StoreResult<Run> {
        let mut held = self.reader("reading a run").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/get_run.sql")).bind(run.as_uuid());
        let found: Option<WholeRun> = tx.first(query).await?;
        found.ok_or_else(|| StoreError::not_found("run", run))?.read()
    }

    pub(super) async fn read_runs_page(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        check_limit(page.limit)?;
        let mut held = self.reader("listing runs").await?;
        // One transaction is one moment, so a run that ends while the scans go on is in exactly one of them.
        let mut tx = held.begin().await?;
        let mut rows: Vec<RunColumns> = Vec::new();
        for query in scans(&mut tx, filter, page, list_sql).await? {
            rows.extend(tx.all(query).await?);
        }
        Ok(scan::page(rows, page.limit))
    }

    /// A run is found by one of the scans only, so their counts add up.
    pub(super) async fn count_runs_like(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        check_cap(cap)?;
        let mut held = self.reader("counting runs").await?;
        let mut tx = held.begin().await?;
        let page = PageRequest { limit: cap - 1, after: None };
        let mut runs = 0;
        for query in scans(&mut tx, filter, &page, count_sql).await? {
            runs += tx.one::<(u32,)>(query).await?.0;
            if runs >= cap {
                break;
            }
        }
        Ok(runs.min(cap))
    }

    pub(super) async fn read_gaps_page(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let value = after.map(|cursor| cursor.value.parse().map(Micros)).transpose();
        let query = sqlx::query(include_str!("sql/list_gaps.sql"))
            .bind(filter.job_id.map(|job| job.as_uuid()))
            .bind(filter.org.as_ref().map(ToString::to_string))
            .bind(filter.reason.map(GapReason::as_str))
            .bind(filter.from.map(Micros::from))
            .bind(filter.to.map(Micros::from))
            .bind(value.map_err(|_| bad_cursor())?)
            .bind(after.map(|cursor| cursor.id))
            .bind(page.limit + 1)
            .bind(filter.job_key.as_ref().map(ToString::to_string));
        let mut held = self.reader("listing gaps").await?;
        let mut tx = held.begin().await?;
        let mut rows: Vec<GapColumns> = tx.all(query).await?;
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
        let mut held = self.reader("reading what became of a slot").await?;
        let mut tx = held.begin().await?;
        let id = RunId::for_slot(job, org, slot).as_uuid();
        if let Some(run) = jobs::runs_of(&mut tx, [id]).await?.remove(&id) {
            return Ok(Some(SlotOutcome::Run(Box::new(run.read()?))));
        }
        let query = sqlx::query(include_str!("sql/find_gap.sql"))
            .bind(job.as_uuid())
            .bind(org_text(org).to_owned())
            .bind(Micros::from(slot));
        let gap: Option<GapColumns> = tx.first(query).await?;
        gap.map(|gap| gap.read().map(|(_, _, gap)| SlotOutcome::Gap(gap))).transpose()
    }

    pub(super) async fn prune_all(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        let mut held = self.writer("pruning history").await?;
        let mut tx = held.begin().await?;
        let bound = Micros::from(before.history);
        let runs = sqlx::query(include_str!("sql/prune_runs.sql"));
        let runs = runs.bind(bound).bind(limit).bind(RunId::first_at(before.history).as_uuid());
        let gaps = sqlx::query(include_str!("sql/prune_gaps.sql")).bind(bound).bind(limit);
        let audit = sqlx::query(include_str!("sql/prune_audit.sql")).bind(Micros::from(before.audit)).bind(limit);
        let answers =
            sqlx::query(include_str!("sql/prune_requests.sql")).bind(Micros::from(before.requests)).bind(limit);
        let sessions = sqlx::query(include_str!("sql/prune_sessions.sql"))
            .bind(Micros::from(before.requests))
            .bind(limit)
            .bind(Micros::from(Session::idle_since(before.requests)));
        let ended = tx.run(sessions).await?;
        let pruned = Pruned {
            runs: tx.run(runs).await?,
            gaps: tx.run(gaps).await?,
            audit: tx.run(audit).await?,
            answers: tx.run(answers).await?,
        };
        if pruned != Pruned::default() || ended > 0 {
            tx.commit().await?;
        }
        Ok(pruned)
    }
}

/// The versions whose runs are asked for.
async fn jobs_of(tx: &mut Tx<'_>, filter: &RunFilter) -> StoreResult<Vec<Uuid>> {
    let Some(key) = &filter.job_key else { return Ok(filter.job_id.iter().map(JobId::as_uuid).collect()) };
    let query = sqlx::query(include_str!("sql/find_job_versions.sql")).bind(key.to_string());
    let versions = tx.all::<(Uuid,)>(query).await?.into_iter().map(|(id,)| id);
    Ok(versions.filter(|id| filter.job_id.is_none_or(|wanted| wanted.as_uuid() == *id)).collect())
}

/// The first microsecond of the millisecond that an id begins with.
fn begin_of(id: Uuid) -> Micros {
    if id.is_nil() { Micros(i64::MIN) } else { RunId::from_uuid(id).time().into() }
}

/// The last microsecond of the millisecond that an id begins with.
fn end_of(id: Uuid) -> Micros {
    if id.is_max() { Micros(i64::MAX) } else { Micros(Micros::from(RunId::from_uuid(id).time()).0 + 999) }
}

/// The statements that together reach everything that the filter wants.
async fn scans(
    tx: &mut Tx<'_>,
    filter: &RunFilter,
    page: &PageRequest,
    sql: fn(Scan) -> &'static str,
) -> StoreResult<Vec<Statement>> {
    let (first, end) = scan::id_range(filter, page);
    let mut queries = Vec::new();
    let jobs = if scan::names_jobs(filter) { Some(jobs_of(tx, filter).await?) } else { None };
    for scan in Scan::choose(filter) {
        let query = || reading(sql(scan), filter, page);
        match scan {
            Scan::Active => queries.push(query().bind(jobs.clone().map(batch::ids))),
            Scan::All | Scan::Ended | Scan::Bad | Scan::Skipped => queries.push(query()),
            Scan::ByJob => {
                let jobs = jobs.iter().flatten();
                queries.extend(jobs.map(|job| query().bind(*job).bind(end_of(end)).bind(begin_of(first))));
            }
        }
    }
    Ok(queries)
}

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

fn reading(sql: &'static str, filter: &RunFilter, page: &PageRequest) -> Statement {
    let (first, end) = scan::id_range(filter, page);
    sqlx::query(sql)
        .bind(end)
        .bind(first)
        .bind(batch::wanted(&filter.status))
        .bind(batch::wanted(&filter.target))
        .bind(filter.trigger.map(TriggerType::as_str))
        .bind(filter.org.as_ref().map(ToString::to_string))
        .bind(filter.instance.map(|instance| instance.as_uuid()))
        .bind(filter.failure_code.clone())
        .bind(page.limit + 1)
}
