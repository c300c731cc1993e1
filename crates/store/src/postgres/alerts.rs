//! Problems, and the outbox of messages about them.

use async_trait::async_trait;
use everbell_core::JobKey;
use everbell_core::alert::{
    AlertWrite, Alerts, Delivery, DeliveryEnd, DeliveryStatus, Kind, NewDelivery, Problem, ProblemChange,
};
use everbell_core::store::{
    AlertStore, AuditEntry, Cursor, DeliveryFilter, Page, PageRequest, ProblemFilter, StoreError, StoreResult,
};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use uuid::Uuid;

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::on;
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::alerts::{DeliveryColumns, EndValues, ProblemColumns, SuccessColumns};
use crate::rows::{check_limit, count, page_of, readable};

#[async_trait]
impl AlertStore for PostgresStore {
    /// Reads the generation first: problems that change after that make it void.
    async fn read_alerts(&self, closed_since: Timestamp) -> StoreResult<Alerts> {
        const WHAT: &str = "reading problems";
        let state = sqlx::query_as(include_str!("sql/read_alert_state.sql")).fetch_one_on(&self.pool);
        let (generation, looked_at): (i64, Option<Micros>) = self.within(WHAT, state).await?;
        let query = sqlx::query_as(include_str!("sql/read_problems.sql")).bind(Micros::from(closed_since));
        let rows: Vec<ProblemColumns> = self.within(WHAT, query.fetch_all_on(&self.pool)).await?;
        let problems = readable(rows, |row| row.id, ProblemColumns::read).0;
        Ok(Alerts { generation: count(generation), looked_at: looked_at.map(Into::into), problems })
    }

    async fn write_alerts(&self, generation: u64, write: &AlertWrite) -> StoreResult<bool> {
        const WHAT: &str = "writing problems";
        let mut tx = self.begin(WHAT).await?;
        let query = sqlx::query(include_str!("sql/advance_alerts.sql"));
        let query = query.bind(generation as i64).bind(Micros::from(write.looked_at));
        let done = async {
            if on(WHAT, query.execute_on(&mut tx)).await?.rows_affected() == 0 {
                return Ok(false);
            }
            for problem in &write.problems {
                on(WHAT, write_problem(problem).execute_on(&mut tx)).await?;
            }
            for delivery in &write.deliveries {
                on(WHAT, insert(delivery).execute_on(&mut tx)).await?;
            }
            Ok(true)
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |_| false).await
    }

    async fn change_problem(&self, problem: Uuid, change: &ProblemChange, audit: &AuditEntry) -> StoreResult<Problem> {
        const WHAT: &str = "changing a problem";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            on(WHAT, sqlx::query(include_str!("sql/bump_alerts.sql")).execute_on(&mut tx)).await?;
            let query = sqlx::query_as(include_str!("sql/find_problem.sql")).bind(problem);
            let row: Option<ProblemColumns> = on(WHAT, query.fetch_optional_on(&mut tx)).await?;
            let before = row.ok_or_else(|| StoreError::not_found("problem", problem))?.read()?;
            let after = ProblemColumns::new(&before.changed(change, audit.at)?).read()?;
            on(WHAT, write_problem(&after).execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await?;
            Ok(after)
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |_| false).await
    }

    async fn list_problems(&self, filter: &ProblemFilter, page: &PageRequest) -> StoreResult<Page<Problem>> {
        check_limit(page.limit)?;
        let query = sqlx::query_as(include_str!("sql/list_problems.sql"))
            .persistent(false)
            .bind(filter.open)
            .bind(filter.kind.map(Kind::as_str))
            .bind(filter.job.as_ref().map(ToString::to_string))
            .bind(filter.org.as_ref().map(ToString::to_string))
            .bind(page.after.as_ref().map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1);
        let rows: Vec<ProblemColumns> = self.within("listing problems", query.fetch_all_on(&self.pool)).await?;
        let cursor = |row: &ProblemColumns| Cursor { value: String::new(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, ProblemColumns::read))
    }

    async fn insert_delivery(&self, delivery: &NewDelivery, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "writing a message";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            on(WHAT, insert(delivery).execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| false).await
    }

    async fn claim_deliveries(
        &self,
        channels: &[String],
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Delivery>> {
        let query = sqlx::query_as(include_str!("sql/claim_deliveries.sql"))
            .bind(channels.to_vec())
            .bind(Micros::from(now))
            .bind(Micros::from(lease_until))
            .bind(i64::from(limit));
        let mut rows: Vec<DeliveryColumns> = self.alone("taking messages", query.fetch_all_on(&self.pool)).await?;
        rows.sort_unstable_by_key(|row| (row.next_attempt_at, row.id));
        Ok(readable(rows, |row| row.id, DeliveryColumns::read).0)
    }

    async fn end_delivery(&self, delivery: Uuid, attempt: u32, end: &DeliveryEnd, now: Timestamp) -> StoreResult<bool> {
        let EndValues { status, next_attempt_at, error, ended_at } = EndValues::new(end, now);
        let query = sqlx::query(include_str!("sql/end_delivery.sql"))
            .bind(delivery)
            .bind(i64::from(attempt))
            .bind(status.as_str())
            .bind(next_attempt_at)
            .bind(error)
            .bind(ended_at);
        Ok(self.alone("recording the end of a message", query.execute_on(&self.pool)).await?.rows_affected() > 0)
    }

    async fn abandon_deliveries(
        &self,
        channels: &[String],
        stale_since: Timestamp,
        error: &str,
        now: Timestamp,
    ) -> StoreResult<u64> {
        let query = sqlx::query(include_str!("sql/abandon_deliveries.sql"))
            .bind(channels.to_vec())
            .bind(Micros::from(stale_since))
            .bind(error.to_owned())
            .bind(Micros::from(now));
        Ok(self.alone("giving up messages", query.execute_on(&self.pool)).await?.rows_affected())
    }

    async fn last_successes(&self, jobs: &[JobKey]) -> StoreResult<Vec<(JobKey, Timestamp)>> {
        let query = sqlx::query_as(include_str!("sql/last_successes.sql"))
            .bind(jobs.iter().map(ToString::to_string).collect::<Vec<_>>());
        let rows: Vec<SuccessColumns> = self.within("reading last successes", query.fetch_all_on(&self.pool)).await?;
        rows.into_iter().filter_map(SuccessColumns::read).collect()
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter, page: &PageRequest) -> StoreResult<Page<Delivery>> {
        check_limit(page.limit)?;
        let query = sqlx::query_as(include_str!("sql/list_deliveries.sql"))
            .persistent(false)
            .bind(filter.id)
            .bind(filter.channel.clone())
            .bind(filter.problem)
            .bind(filter.status.map(DeliveryStatus::as_str))
            .bind(page.after.as_ref().map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1);
        let rows: Vec<DeliveryColumns> = self.within("listing messages", query.fetch_all_on(&self.pool)).await?;
        let cursor = |row: &DeliveryColumns| Cursor { value: String::new(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, DeliveryColumns::read))
    }
}

fn write_problem(problem: &Problem) -> Query<'static, Postgres, PgArguments> {
    let ProblemColumns { id, kind, job_key, org_id, opened_at, closed_at, state } = ProblemColumns::new(problem);
    let query = sqlx::query(include_str!("sql/write_problem.sql")).bind(id).bind(kind).bind(job_key).bind(org_id);
    query.bind(opened_at).bind(closed_at).bind(state)
}

fn insert(new: &NewDelivery) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(include_str!("sql/insert_delivery.sql"))
        .bind(new.id)
        .bind(new.problem)
        .bind(new.rule.clone())
        .bind(new.channel.clone())
        .bind(new.change.as_str())
        .bind(new.message.to_string())
        .bind(Micros::from(new.created_at))
        .bind(Micros::from(new.available_at))
}
