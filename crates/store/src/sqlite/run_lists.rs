//! The statements that list and count runs.

use everbell_core::store::{PageRequest, RunFilter, StoreResult};
use everbell_core::{JobId, RunId, TriggerType};
use uuid::Uuid;

use super::batch;
use super::transaction::{Statement, Tx};
use crate::micros::Micros;
use crate::rows::job_list::label_text;
use crate::rows::scan::{self, Scan, scan_statements};

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
pub(super) async fn scans(
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

scan_statements! {
    All => "sql/list_runs_all.sql",
    Active => "sql/list_runs_active.sql",
    Ended => "sql/list_runs_ended.sql",
    Bad => "sql/list_runs_bad.sql",
    Skipped => "sql/list_runs_skipped.sql",
    ByJob => "sql/list_runs_by_job.sql",
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
        .bind(filter.label.as_ref().map(label_text))
}
