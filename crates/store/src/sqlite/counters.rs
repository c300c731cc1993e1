//! Counters of runs by hour, job and target.

use async_trait::async_trait;
use everbell_core::counting::{CountingProgress, HourToCount};
use everbell_core::store::{Bucket, CounterGroup, CounterStore, RunCounters, StoreResult};
use everbell_core::{JobKey, RunId};
use jiff::Timestamp;
use uuid::Uuid;

use super::SqliteStore;
use super::batch;
use super::transaction::Statement;
use crate::micros::Micros;
use crate::rows::counters::{CounterColumns, EndedColumns, counters, ended_runs, hours};

const COUNTING: &str = "counting an hour of runs";

#[async_trait]
impl CounterStore for SqliteStore {
    async fn counting_progress(&self) -> StoreResult<CountingProgress> {
        let mut held = self.reader("reading which hours are counted").await?;
        let mut tx = held.begin().await?;
        let hours: Vec<(Micros, Micros)> = tx.all(sqlx::query(include_str!("sql/counted_hours.sql"))).await?;
        let (ended, skipped): (Option<Micros>, Option<Uuid>) =
            tx.one(sqlx::query(include_str!("sql/oldest_end.sql"))).await?;
        let skipped = skipped.map(|id| RunId::from_uuid(id).time());
        let oldest = ended.map(Timestamp::from).into_iter().chain(skipped).min();
        let counted = hours.into_iter().map(|(hour, counted_at)| (hour.into(), counted_at.into())).collect();
        Ok(CountingProgress { counted, oldest })
    }

    async fn count_hour(&self, hour: &HourToCount, now: Timestamp) -> StoreResult<bool> {
        // Counted by a reader: a writer would keep others waiting for as long as it takes.
        let rows: Vec<EndedColumns> = { self.read(COUNTING, counting(hour.hour, hour.end(), None)).await? };
        let start = Micros::from(hour.hour);
        let mut held = self.writer(COUNTING).await?;
        let mut tx = held.begin().await?;
        let mark = sqlx::query(include_str!("sql/mark_counted_hour.sql")).bind(start).bind(Micros::from(now));
        if tx.run(mark.bind(hour.counted_at.map(Micros::from))).await? == 0 {
            return Ok(false);
        }
        tx.run(sqlx::query(include_str!("sql/delete_counters.sql")).bind(start)).await?;
        let rows = ended_runs(rows);
        let rows = rows.iter().map(|(key, counters)| array(CounterColumns::new(key, counters)));
        tx.run(sqlx::query(include_str!("sql/insert_counters.sql")).bind(start).bind(batch::rows(rows))).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn count_ended_runs(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> StoreResult<Vec<(CounterGroup, RunCounters)>> {
        Ok(ended_runs(self.read("counting ended runs", counting(from, to, job)).await?))
    }

    async fn read_counters(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> StoreResult<Vec<(CounterGroup, RunCounters)>> {
        let (from, to) = (Micros::from(from), Micros::from(to));
        let query = match job {
            None => sqlx::query(include_str!("sql/read_counters.sql")).bind(from).bind(to),
            Some(job) => {
                sqlx::query(include_str!("sql/read_job_counters.sql")).bind(from).bind(to).bind(job.to_string())
            }
        };
        Ok(counters(self.read("reading counters", query).await?))
    }

    async fn read_hourly_counters(&self, from: Timestamp, to: Timestamp, job: &JobKey) -> StoreResult<Vec<Bucket>> {
        let query = sqlx::query(include_str!("sql/read_hourly_counters.sql"));
        let query = query.bind(Micros::from(from)).bind(Micros::from(to)).bind(job.to_string());
        Ok(hours(self.read("reading counters by hour", query).await?))
    }

    async fn prune_counters(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let mut held = self.writer("pruning counters").await?;
        let mut tx = held.begin().await?;
        let before = Micros::from(before);
        let pruned = tx.run(sqlx::query(include_str!("sql/prune_counters.sql")).bind(before).bind(limit)).await?;
        let hours = tx.run(sqlx::query(include_str!("sql/forget_counted_hours.sql")).bind(before)).await?;
        if pruned + hours > 0 {
            tx.commit().await?;
        }
        Ok(pruned)
    }
}

fn counting(from: Timestamp, to: Timestamp, job: Option<&JobKey>) -> Statement {
    sqlx::query(include_str!("sql/count_ended_runs.sql"))
        .bind(Micros::from(from))
        .bind(Micros::from(to))
        .bind(RunId::first_from(from).as_uuid())
        .bind(RunId::first_from(to).as_uuid())
        .bind(job.map(ToString::to_string))
}

/// A row in the order that its statement reads.
fn array(row: CounterColumns) -> (String, String, [i64; 10], [String; 3]) {
    let numbers = [
        row.succeeded,
        row.failed,
        row.canceled,
        row.skipped,
        row.took_runs,
        row.took_total,
        row.took_longest,
        row.delay_runs,
        row.delay_total,
        row.delay_longest,
    ];
    (row.job_key, row.target, numbers, [row.took_places, row.delay_places, row.failures])
}
