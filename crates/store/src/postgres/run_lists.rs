//! The statements that list and count runs.

use everbell_core::store::{PageRequest, RunFilter, StoreResult};
use everbell_core::{JobId, RunId};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::{FromRow, Postgres};
use uuid::Uuid;

use super::PostgresStore;
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::job_list::label_text;
use crate::rows::scan::{self, Scan, scan_statements};

impl PostgresStore {
    /// The statements that together reach everything that the filter wants.
    pub(super) async fn scans<T>(
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
                self.within::<Vec<Uuid>>("finding versions", query.fetch_all_on(&self.pool)).await?
            }
        };
        jobs.retain(|job| filter.job_id.is_none_or(|wanted| wanted.as_uuid() == *job));
        Ok(jobs)
    }
}

type Reading<T> = QueryAs<'static, Postgres, T, PgArguments>;

scan_statements! {
    All => "sql/list_runs_all.sql",
    Active => "sql/list_runs_active.sql",
    Ended => "sql/list_runs_ended.sql",
    Bad => "sql/list_runs_bad.sql",
    Skipped => "sql/list_runs_skipped.sql",
    ByJob => "sql/list_runs_by_job.sql",
}

fn reading<T>(sql: &'static str, filter: &RunFilter, page: &PageRequest) -> Reading<T>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    let words = |words: Vec<String>| (!words.is_empty()).then_some(words);
    let (first, end) = scan::id_range(filter, page);
    sqlx::query_as(sql)
        // Planned for these values: with a generic plan the optional filters would hide the indexes.
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
        .bind(filter.label.as_ref().map(label_text))
}
