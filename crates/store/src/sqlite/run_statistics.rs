//! Runs in small and in numbers, for charts.

use everbell_core::RunId;
use everbell_core::store::{Lags, RecentRuns, RunHistogram, StoreResult};
use serde::Deserialize;
use uuid::Uuid;

use super::SqliteStore;
use super::batch::{self, Hex};
use super::transaction::Statement;
use crate::micros::Micros;
use crate::rows::corrupt;
use crate::rows::from_row::by_name;
use crate::rows::summary::{self, RunSummaryColumns};

impl SqliteStore {
    pub(super) async fn versions(&self, recent_runs: &RecentRuns) -> StoreResult<Vec<VersionColumns>> {
        let (from, to) = summary::at_range(recent_runs.window());
        let query = sqlx::query(include_str!("sql/recent_runs.sql"))
            .bind(batch::rows(recent_runs.keys().iter().map(ToString::to_string)))
            .bind(recent_runs.each())
            .bind(from)
            .bind(to);
        self.read("reading recent runs", query).await
    }
}

/// A version of a job, and its runs as the text of an array.
pub(super) struct VersionColumns {
    job_id: Uuid,
    job_key: String,
    job_version: i32,
    runs: String,
}

by_name!(sqlx::sqlite::SqliteRow, VersionColumns { job_id, job_key, job_version, runs });

/// A run as the statement returns it: an array in this order.
#[derive(Deserialize)]
struct RunArray {
    id: Hex,
    trigger: String,
    scheduled_at: Micros,
    created_at: Micros,
    skip_reason: Option<String>,
    skip_detail: Option<String>,
    status: Option<String>,
    attempt: i32,
    started_at: Option<Micros>,
    finished_at: Option<Micros>,
    failure_code: Option<String>,
}

impl VersionColumns {
    pub(super) fn runs(self) -> StoreResult<Vec<RunSummaryColumns>> {
        let VersionColumns { job_id, job_key, job_version, runs } = self;
        let runs_of_job: Vec<RunArray> = serde_json::from_str(&runs).map_err(|why| corrupt("runs", job_id, why))?;
        let columns = |run: RunArray| RunSummaryColumns {
            id: run.id.0,
            job_id,
            job_key: job_key.clone(),
            job_version,
            trigger: run.trigger,
            scheduled_at: run.scheduled_at,
            created_at: run.created_at,
            skip_reason: run.skip_reason,
            skip_detail: run.skip_detail,
            status: run.status,
            attempt: run.attempt,
            started_at: run.started_at,
            finished_at: run.finished_at,
            failure_code: run.failure_code,
        };
        Ok(runs_of_job.into_iter().map(columns).collect())
    }
}

pub(super) fn counting(histogram: &RunHistogram) -> Statement {
    if let Some(key) = histogram.job_key() {
        let spans = histogram.bounds().windows(2).map(|pair| [summary::at_bound(pair[0]), summary::at_bound(pair[1])]);
        let spans = batch::rows(spans);
        if histogram.is_plain() {
            let ((from, to), id) = (histogram.window(), |bound| RunId::first_from(bound).as_uuid());
            let query = sqlx::query(include_str!("sql/count_plain_runs_by_time_of_job.sql")).bind(spans);
            return query.bind(key.to_string()).bind(id(from)).bind(id(to));
        }
        return with_times(sqlx::query(include_str!("sql/count_runs_by_time_of_job.sql")).bind(spans), histogram)
            .bind(key.to_string());
    }
    let id = |bound| batch::Hex(RunId::first_from(bound).as_uuid());
    let spans = batch::rows(histogram.bounds().windows(2).map(|pair| [id(pair[0]), id(pair[1])]));
    if histogram.is_plain() {
        return sqlx::query(include_str!("sql/count_plain_runs_by_time.sql")).bind(spans);
    }
    with_times(sqlx::query(include_str!("sql/count_runs_by_time.sql")).bind(spans), histogram)
}

fn with_times(query: Statement, histogram: &RunHistogram) -> Statement {
    let query = query.bind(histogram.target().map(ToString::to_string)).bind(histogram.has_times());
    Lags::EDGES.iter().fold(query, |query, edge| query.bind(Micros(edge.as_micros() as i64)))
}

#[cfg(test)]
mod tests {
    use everbell_core::JobKey;
    use everbell_core::store::RunStore;

    use super::*;

    /// A job for each org, and its runs for a thousand orgs at one instant.
    const CROWD: [&str; 2] = [
        "insert into everbell_jobs (id, job_key, version, target, payload, schedule_type, cron_expression, timezone, anchor_at,
           dst_gap, dst_fold, scope, policies, labels, description, source, content_hash, created_by, created_at, status,
           revision, updated_by, updated_at)
         values (zeroblob(16), 'orgs', 1, 'log', '{}', 'recurring', '0 1 * * *', 'UTC', 0, 'shift', 'first', 'per_org',
           '{}', '{}', '', 'api', x'00', 'ana', 0, 'active', 1, 'ana', 0)",
        "insert into everbell_runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
         with recursive n (n) as (select 1 union all select n + 1 from n where n < 1000)
         select unhex(printf('%012x%020x', 1000, n)), zeroblob(16), 'org-' || n, 1000000, 0, 1000000, 1000000,
           'schedule:0 1 * * *', 'log', 0, 0 from n",
    ];

    #[tokio::test]
    async fn no_more_runs_of_one_instant_are_read_than_are_asked_for() {
        let store = SqliteStore::in_memory().await.unwrap();
        {
            let mut held = store.writer("filling").await.unwrap();
            let mut tx = held.begin().await.unwrap();
            for sql in CROWD {
                tx.run(sqlx::query(sql)).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        let recent_runs = RecentRuns::new(vec![JobKey::new("orgs").unwrap()], 30).unwrap();
        let [version] = <[VersionColumns; 1]>::try_from(store.versions(&recent_runs).await.unwrap()).ok().unwrap();
        let mut read: Vec<Uuid> = version.runs().unwrap().into_iter().map(|run| run.id).collect();
        read.sort_unstable();
        let seen: Vec<Uuid> =
            store.recent_runs(&recent_runs).await.unwrap().iter().rev().map(|run| run.id.as_uuid()).collect();
        assert_eq!((read.len(), &read), (30, &seen), "the newest, by their ids");
        assert_eq!(read[29].as_u128() & 0xffff, 1_000);
    }
}
