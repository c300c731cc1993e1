//! Runs in small and in numbers, for charts.

use everbell_core::store::{Bucket, Glance, Lags, RunGlimpse, StoreResult, Tally};
use everbell_core::{JobKey, RunId};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::postgres::types::PgInterval;
use sqlx::query::QueryAs;
use uuid::Uuid;

use super::PostgresStore;
use crate::micros::Micros;
use crate::rows::summary::{self, GlimpseColumns, TallyColumns};

impl PostgresStore {
    pub(super) async fn read_glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>> {
        let (from, to) = summary::at_range(glance.window());
        let query = sqlx::query_as(include_str!("sql/glance.sql"))
            .bind(glance.keys().iter().map(ToString::to_string).collect::<Vec<_>>())
            .bind(i64::from(glance.each()))
            .bind(from)
            .bind(to);
        let rows: Vec<GlimpseColumns> = self.within("glancing at runs", query.fetch_all(&self.pool)).await?;
        Ok(summary::glimpses(rows, glance.each()))
    }

    pub(super) async fn read_tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>> {
        const WHAT: &str = "counting runs";
        let query = match tally.job_key().filter(|_| tally.is_plain()) {
            None => counting(tally),
            Some(key) => {
                let jobs = sqlx::query_scalar(include_str!("sql/find_job_versions.sql")).bind(key.to_string());
                counting_of_jobs(tally, self.within(WHAT, jobs.fetch_all(&self.pool)).await?)
            }
        };
        let rows = self.within(WHAT, query.fetch_all(&self.pool)).await?;
        Ok(summary::buckets(tally, &rows))
    }
}

type Counting = QueryAs<'static, Postgres, TallyColumns, PgArguments>;

fn first_id(bound: Timestamp) -> Uuid {
    RunId::first_from(bound).as_uuid()
}

fn at_bounds(tally: &Tally) -> Vec<Micros> {
    tally.bounds().iter().copied().map(summary::at_bound).collect()
}

/// Of the versions of a job, by how they ended. Their ids are values, so that the planner knows whether they are busy.
fn counting_of_jobs(tally: &Tally, jobs: Vec<Uuid>) -> Counting {
    let (from, to) = tally.window();
    sqlx::query_as(include_str!("sql/tally_counts_by_job.sql"))
        .persistent(false)
        .bind(at_bounds(tally))
        .bind(summary::at_bound(from))
        .bind(summary::at_bound(to))
        .bind(first_id(from))
        .bind(first_id(to))
        .bind(jobs)
}

fn counting(tally: &Tally) -> Counting {
    let (from, to) = tally.window();
    let ids = || tally.bounds().iter().copied().map(first_id).collect::<Vec<Uuid>>();
    // Planned anew for its values: how much of the history they are decides how to read it.
    let query = |sql| sqlx::query_as(sql).persistent(false);
    if let Some(key) = tally.job_key() {
        let query = query(include_str!("sql/tally_by_job.sql")).bind(at_bounds(tally));
        let query = query.bind(summary::at_bound(from)).bind(summary::at_bound(to));
        return with_times(query, tally).bind(JobKey::to_string(key));
    }
    if tally.is_plain() {
        return query(include_str!("sql/tally_counts.sql")).bind(ids()).bind(first_id(from)).bind(first_id(to));
    }
    let query = query(include_str!("sql/tally_all.sql")).bind(ids()).bind(first_id(from)).bind(first_id(to));
    with_times(query, tally)
}

fn with_times(query: Counting, tally: &Tally) -> Counting {
    let edge = |edge: std::time::Duration| PgInterval { months: 0, days: 0, microseconds: edge.as_micros() as i64 };
    query.bind(tally.target().map(ToString::to_string)).bind(tally.has_times()).bind(Lags::EDGES.map(edge).to_vec())
}
