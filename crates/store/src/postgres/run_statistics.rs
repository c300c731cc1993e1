//! Runs in small and in numbers, for charts.

use everbell_core::store::{Lags, RunHistogram};
use everbell_core::{JobKey, RunId};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::postgres::types::PgInterval;
use sqlx::query::QueryAs;
use uuid::Uuid;

use crate::micros::Micros;
use crate::rows::summary::{self, HistogramColumns};

type Counting = QueryAs<'static, Postgres, HistogramColumns, PgArguments>;

fn first_id(bound: Timestamp) -> Uuid {
    RunId::first_from(bound).as_uuid()
}

fn at_bounds(histogram: &RunHistogram) -> Vec<Micros> {
    histogram.bounds().iter().copied().map(summary::at_bound).collect()
}

/// Of the versions of a job, by how they ended. Their ids are values, so that the planner knows whether they are busy.
pub(super) fn counting_of_jobs(histogram: &RunHistogram, jobs: Vec<Uuid>) -> Counting {
    let (from, to) = histogram.window();
    sqlx::query_as(include_str!("sql/count_plain_runs_by_time_of_job.sql"))
        .persistent(false)
        .bind(at_bounds(histogram))
        .bind(summary::at_bound(from))
        .bind(summary::at_bound(to))
        .bind(first_id(from))
        .bind(first_id(to))
        .bind(jobs)
}

pub(super) fn counting(histogram: &RunHistogram) -> Counting {
    let (from, to) = histogram.window();
    let ids = || histogram.bounds().iter().copied().map(first_id).collect::<Vec<Uuid>>();
    // Planned for these values: their share of the history decides how to read it.
    let query = |sql| sqlx::query_as(sql).persistent(false);
    if let Some(key) = histogram.job_key() {
        let query = query(include_str!("sql/count_runs_by_time_of_job.sql")).bind(at_bounds(histogram));
        let query = query.bind(summary::at_bound(from)).bind(summary::at_bound(to));
        return with_times(query, histogram).bind(JobKey::to_string(key));
    }
    if histogram.is_plain() {
        return query(include_str!("sql/count_plain_runs_by_time.sql"))
            .bind(ids())
            .bind(first_id(from))
            .bind(first_id(to));
    }
    let query = query(include_str!("sql/count_runs_by_time.sql")).bind(ids()).bind(first_id(from)).bind(first_id(to));
    with_times(query, histogram)
}

fn with_times(query: Counting, histogram: &RunHistogram) -> Counting {
    let edge = |edge: std::time::Duration| PgInterval { months: 0, days: 0, microseconds: edge.as_micros() as i64 };
    query
        .bind(histogram.target().map(ToString::to_string))
        .bind(histogram.has_times())
        .bind(Lags::EDGES.map(edge).to_vec())
}
