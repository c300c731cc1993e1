//! A look at a database that may not be ours yet, or any more.

use everbell_core::RunId;
use everbell_core::store::{Pruned, StoreResult};
use jiff::Timestamp;
use uuid::Uuid;

use super::connect::{Conn, look, on};
use super::statement::Statement;
use super::{migrate, moved};
use crate::inspection::{Content, Inspection, MAX_COUNTED_RUNS};
use crate::micros::Micros;
use crate::rows::{JobCountColumns, count, job_counts};

pub(crate) async fn inspect(url: &str) -> StoreResult<Inspection> {
    let (mut tx, schema) = look(url).await?;
    let status = sqlx::query_as(include_str!("sql/status.sql"));
    let (product, size, oldest): (String, i64, Option<Micros>) =
        on("reading the status", status.fetch_one_on(&mut tx)).await?;
    let migrate::FoundVersion { version: schema_version, old_layout } = migrate::found(&mut tx, &schema).await?;
    let known = schema_version == migrate::latest() && !old_layout;
    Ok(Inspection {
        product: format!("postgres {product}"),
        schema_version,
        needed_version: migrate::latest(),
        old_layout,
        size_bytes: u64::try_from(size).ok(),
        oldest_transaction_at: oldest.map(Into::into),
        moved: if known { moved::read_mark(&mut tx).await? } else { None },
        content: if known { Some(content(&mut tx).await?) } else { None },
    })
}

async fn content(tx: Conn<'_, '_>) -> StoreResult<Content> {
    const WHAT: &str = "counting";
    let jobs = sqlx::query_as(include_str!("sql/count_jobs_by_status.sql"));
    let jobs: Vec<JobCountColumns> = on(WHAT, jobs.fetch_all_on(&mut *tx)).await?;
    let runs = sqlx::query_as(include_str!("sql/count_some_runs.sql")).bind(MAX_COUNTED_RUNS as i64 + 1);
    let (runs, oldest): (i64, Option<Uuid>) = on(WHAT, runs.fetch_one_on(tx)).await?;
    Ok(Content::new(job_counts(jobs)?, count(runs), oldest.map(|id| RunId::from_uuid(id).time())))
}

pub(crate) async fn count_old(url: &str, before: Timestamp) -> StoreResult<Pruned> {
    let (mut tx, _) = look(url).await?;
    let query = sqlx::query_as(include_str!("sql/count_old.sql"));
    let query = query.bind(Micros::from(before)).bind(RunId::first_at(before).as_uuid());
    let (runs, gaps, audit, jobs, inbox): (i64, i64, i64, i64, i64) =
        on("counting", query.fetch_one_on(&mut tx)).await?;
    let (runs, gaps, audit, jobs, inbox) = (count(runs), count(gaps), count(audit), count(jobs), count(inbox));
    Ok(Pruned { runs, gaps, audit, answers: 0, jobs, inbox })
}
