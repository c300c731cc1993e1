//! Counters of runs by hour, job and target.

use async_trait::async_trait;
use everbell_core::counting::{CountingProgress, HourToCount};
use everbell_core::store::{Bucket, CounterGroup, CounterStore, RunCounters, StoreResult, TimeCounts};
use everbell_core::{JobKey, RunId};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::{Query, QueryAs};
use uuid::Uuid;

use super::PostgresStore;
use super::connect::on;
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::counters::{CounterColumns, EndedColumns, counters, ended_runs, hours};

const COUNTING: &str = "counting an hour of runs";

#[async_trait]
impl CounterStore for PostgresStore {
    async fn counting_progress(&self) -> StoreResult<CountingProgress> {
        const WHAT: &str = "reading which hours are counted";
        let query = sqlx::query_as(include_str!("sql/counted_hours.sql"));
        let hours: Vec<(Micros, Micros)> = self.within(WHAT, query.fetch_all_on(&self.pool)).await?;
        let query = sqlx::query_as(include_str!("sql/oldest_end.sql"));
        let (ended, skipped): (Option<Micros>, Option<Uuid>) =
            self.within(WHAT, query.fetch_one_on(&self.pool)).await?;
        let skipped = skipped.map(|id| RunId::from_uuid(id).time());
        let oldest = ended.map(Timestamp::from).into_iter().chain(skipped).min();
        let counted = hours.into_iter().map(|(hour, counted_at)| (hour.into(), counted_at.into())).collect();
        Ok(CountingProgress { counted, oldest })
    }

    async fn count_hour(&self, hour: &HourToCount, now: Timestamp) -> StoreResult<bool> {
        let start = Micros::from(hour.hour);
        // Counted before the transaction, which is short then: another instance that wants the same hour waits for it, and
        // finds it counted.
        let counted = self.within(COUNTING, counting(hour.hour, hour.end(), None).fetch_all_on(&self.pool)).await?;
        let rows: Vec<CounterColumns> =
            ended_runs(counted).iter().map(|(key, counters)| CounterColumns::new(key, counters)).collect();
        let mut tx = self.begin(COUNTING).await?;
        let done = async {
            let mark = sqlx::query(include_str!("sql/mark_counted_hour.sql")).bind(start).bind(Micros::from(now));
            let mark = mark.bind(hour.counted_at.map(Micros::from));
            if on(COUNTING, mark.execute_on(&mut tx)).await?.rows_affected() == 0 {
                return Ok(false);
            }
            let delete = sqlx::query(include_str!("sql/delete_counters.sql")).bind(start);
            on(COUNTING, delete.execute_on(&mut tx)).await?;
            on(COUNTING, inserting(start, &rows).execute_on(&mut tx)).await?;
            Ok(true)
        };
        let done = done.await;
        self.finish_transaction(COUNTING, tx, done, |_| false).await
    }

    async fn count_ended_runs(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> StoreResult<Vec<(CounterGroup, RunCounters)>> {
        let rows = self.within("counting ended runs", counting(from, to, job).fetch_all_on(&self.pool)).await?;
        Ok(ended_runs(rows))
    }

    async fn read_counters(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> StoreResult<Vec<(CounterGroup, RunCounters)>> {
        let (from, to) = (Micros::from(from), Micros::from(to));
        let query = match job {
            None => sqlx::query_as(include_str!("sql/read_counters.sql")).bind(from).bind(to),
            Some(job) => {
                sqlx::query_as(include_str!("sql/read_job_counters.sql")).bind(from).bind(to).bind(job.to_string())
            }
        };
        let rows: Vec<CounterColumns> = self.within("reading counters", query.fetch_all_on(&self.pool)).await?;
        Ok(counters(rows))
    }

    async fn read_hourly_counters(&self, from: Timestamp, to: Timestamp, job: &JobKey) -> StoreResult<Vec<Bucket>> {
        let query = sqlx::query_as(include_str!("sql/read_hourly_counters.sql"));
        let query = query.bind(Micros::from(from)).bind(Micros::from(to)).bind(job.to_string());
        Ok(hours(self.within("reading counters by hour", query.fetch_all_on(&self.pool)).await?))
    }

    async fn prune_counters(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        const WHAT: &str = "pruning counters";
        let before = Micros::from(before);
        let query = sqlx::query(include_str!("sql/prune_counters.sql")).bind(before).bind(i64::from(limit));
        let pruned = self.alone(WHAT, query.execute_on(&self.pool)).await?.rows_affected();
        let query = sqlx::query(include_str!("sql/forget_counted_hours.sql")).bind(before);
        self.alone(WHAT, query.execute_on(&self.pool)).await?;
        Ok(pruned)
    }
}

/// Counts runs that ended in this time. Planned for these values: their share of the history decides how to read it.
fn counting(
    from: Timestamp,
    to: Timestamp,
    job: Option<&JobKey>,
) -> QueryAs<'static, Postgres, EndedColumns, PgArguments> {
    sqlx::query_as(include_str!("sql/count_ended_runs.sql"))
        .persistent(false)
        .bind(Micros::from(from))
        .bind(Micros::from(to))
        .bind(RunId::first_from(from).as_uuid())
        .bind(RunId::first_from(to).as_uuid())
        .bind(job.map(ToString::to_string))
        .bind(TimeCounts::EDGES.map(|edge| edge as i64).to_vec())
}

fn inserting(hour: Micros, rows: &[CounterColumns]) -> Query<'static, Postgres, PgArguments> {
    let texts = |of: fn(&CounterColumns) -> &str| rows.iter().map(|row| of(row).to_owned()).collect::<Vec<_>>();
    let numbers = |of: fn(&CounterColumns) -> i64| rows.iter().map(of).collect::<Vec<_>>();
    sqlx::query(include_str!("sql/insert_counters.sql"))
        .bind(hour)
        .bind(texts(|row| &row.job_key))
        .bind(texts(|row| &row.target))
        .bind(numbers(|row| row.succeeded))
        .bind(numbers(|row| row.failed))
        .bind(numbers(|row| row.canceled))
        .bind(numbers(|row| row.skipped))
        .bind(numbers(|row| row.took_runs))
        .bind(numbers(|row| row.took_total))
        .bind(numbers(|row| row.took_longest))
        .bind(numbers(|row| row.delay_runs))
        .bind(numbers(|row| row.delay_total))
        .bind(numbers(|row| row.delay_longest))
        .bind(texts(|row| &row.took_places))
        .bind(texts(|row| &row.delay_places))
        .bind(texts(|row| &row.failures))
}
