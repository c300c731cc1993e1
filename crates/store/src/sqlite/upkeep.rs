//! A look at a database that may not be ours yet, or any more.

use std::path::Path;

use everbell_core::RunId;
use everbell_core::store::{Pruned, StoreError, StoreResult};
use jiff::Timestamp;
use sqlx::{ConnectOptions, SqliteConnection};
use uuid::Uuid;

use super::{connect, errors, migrate, moved};
use crate::inspection::{Content, Inspection, MAX_COUNTED_RUNS};
use crate::micros::Micros;
use crate::rows::{JobCountColumns, count, job_counts};

pub(crate) async fn inspect(path: &Path) -> StoreResult<Inspection> {
    let mut connection = look(path).await?;
    let failed = |error| errors::from_sqlx("reading the status", error);
    let status = sqlx::query_as(include_str!("sql/status.sql"));
    let (product, size): (String, i64) = status.fetch_one(&mut connection).await.map_err(failed)?;
    let migrate::FoundVersion { version: schema_version, old_layout } = migrate::found(&mut connection).await?;
    let known = schema_version == migrate::latest() && !old_layout;
    Ok(Inspection {
        product: format!("sqlite {product}"),
        schema_version,
        needed_version: migrate::latest(),
        old_layout,
        size_bytes: u64::try_from(size).ok(),
        oldest_transaction_at: None,
        moved: if known { moved::read_mark(&mut connection).await? } else { None },
        content: if known { Some(content(&mut connection).await?) } else { None },
    })
}

async fn content(connection: &mut SqliteConnection) -> StoreResult<Content> {
    let failed = |error| errors::from_sqlx("counting", error);
    let jobs = sqlx::query_as(include_str!("sql/count_jobs_by_status.sql"));
    let jobs: Vec<JobCountColumns> = jobs.fetch_all(&mut *connection).await.map_err(failed)?;
    let runs = sqlx::query_as(include_str!("sql/count_some_runs.sql")).bind(MAX_COUNTED_RUNS as i64 + 1);
    let (runs, oldest): (i64, Option<Uuid>) = runs.fetch_one(connection).await.map_err(failed)?;
    Ok(Content::new(job_counts(jobs)?, count(runs), oldest.map(|id| RunId::from_uuid(id).time())))
}

pub(crate) async fn count_old(path: &Path, before: Timestamp) -> StoreResult<Pruned> {
    let query = sqlx::query_as(include_str!("sql/count_old.sql"));
    let query = query.bind(Micros::from(before)).bind(RunId::first_at(before).as_uuid());
    let counted = query.fetch_one(&mut look(path).await?).await;
    let (runs, gaps, audit, jobs, inbox): (i64, i64, i64, i64, i64) =
        counted.map_err(|error| errors::from_sqlx("counting", error))?;
    let (runs, gaps, audit, jobs, inbox) = (count(runs), count(gaps), count(audit), count(jobs), count(inbox));
    Ok(Pruned { runs, gaps, audit, answers: 0, jobs, inbox })
}

/// A connection that cannot write, to a file that exists.
async fn look(path: &Path) -> StoreResult<SqliteConnection> {
    exists(path)?;
    let options = connect::options().filename(path).create_if_missing(false).pragma("query_only", "on");
    options.connect().await.map_err(|error| errors::from_sqlx(&format!("opening {}", path.display()), error))
}

pub(super) fn exists(path: &Path) -> StoreResult<()> {
    if path.exists() { Ok(()) } else { Err(StoreError::not_found("database file", path.display())) }
}
