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
use uuid::Uuid;

use super::audit::insert_audit;
use super::transaction::{Statement, Tx};
use super::{SqliteStore, batch};
use crate::micros::Micros;
use crate::rows::alerts::{DeliveryColumns, EndValues, ProblemColumns, SuccessColumns};
use crate::rows::{check_limit, count, page_of, readable};

#[async_trait]
impl AlertStore for SqliteStore {
    async fn read_alerts(&self, closed_since: Timestamp) -> StoreResult<Alerts> {
        let mut held = self.reader("reading problems").await?;
        let mut tx = held.begin().await?;
        let state = sqlx::query(include_str!("sql/read_alert_state.sql"));
        let (generation, looked_at): (i64, Option<Micros>) = tx.one(state).await?;
        let query = sqlx::query(include_str!("sql/read_problems.sql")).bind(Micros::from(closed_since));
        let rows: Vec<ProblemColumns> = tx.all(query).await?;
        let problems = readable(rows, |row| row.id, ProblemColumns::read).0;
        Ok(Alerts { generation: count(generation), looked_at: looked_at.map(Into::into), problems })
    }

    async fn write_alerts(&self, generation: u64, write: &AlertWrite) -> StoreResult<bool> {
        let mut held = self.writer("writing problems").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/advance_alerts.sql"));
        let query = query.bind(generation as i64).bind(Micros::from(write.looked_at));
        if tx.run(query).await? == 0 {
            return Ok(false);
        }
        for problem in &write.problems {
            write_problem(&mut tx, problem).await?;
        }
        for delivery in &write.deliveries {
            tx.run(insert(delivery)).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    async fn change_problem(&self, problem: Uuid, change: &ProblemChange, audit: &AuditEntry) -> StoreResult<Problem> {
        let mut held = self.writer("changing a problem").await?;
        let mut tx = held.begin().await?;
        tx.run(sqlx::query(include_str!("sql/bump_alerts.sql"))).await?;
        let query = sqlx::query(include_str!("sql/find_problem.sql")).bind(problem);
        let row: Option<ProblemColumns> = tx.first(query).await?;
        let before = row.ok_or_else(|| StoreError::not_found("problem", problem))?.read()?;
        let after = ProblemColumns::new(&before.changed(change, audit.at)?).read()?;
        write_problem(&mut tx, &after).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await?;
        Ok(after)
    }

    async fn list_problems(&self, filter: &ProblemFilter, page: &PageRequest) -> StoreResult<Page<Problem>> {
        check_limit(page.limit)?;
        let query = sqlx::query(include_str!("sql/list_problems.sql"))
            .bind(filter.open)
            .bind(filter.kind.map(Kind::as_str))
            .bind(filter.job.as_ref().map(ToString::to_string))
            .bind(filter.org.as_ref().map(ToString::to_string))
            .bind(page.after.as_ref().map(|cursor| cursor.id))
            .bind(page.limit + 1);
        let rows: Vec<ProblemColumns> = self.read("listing problems", query).await?;
        let cursor = |row: &ProblemColumns| Cursor { value: String::new(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, ProblemColumns::read))
    }

    async fn insert_delivery(&self, delivery: &NewDelivery, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("writing a message").await?;
        let mut tx = held.begin().await?;
        tx.run(insert(delivery)).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    async fn claim_deliveries(
        &self,
        channels: &[String],
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Delivery>> {
        let query = sqlx::query(include_str!("sql/claim_deliveries.sql"))
            .bind(batch::rows(channels))
            .bind(Micros::from(now))
            .bind(Micros::from(lease_until))
            .bind(limit);
        let mut held = self.writer("taking messages").await?;
        let mut tx = held.begin().await?;
        let mut rows: Vec<DeliveryColumns> = tx.all(query).await?;
        if !rows.is_empty() {
            tx.note_written();
            tx.commit().await?;
        }
        rows.sort_unstable_by_key(|row| (row.next_attempt_at, row.id));
        Ok(readable(rows, |row| row.id, DeliveryColumns::read).0)
    }

    async fn end_delivery(&self, delivery: Uuid, attempt: u32, end: &DeliveryEnd, now: Timestamp) -> StoreResult<bool> {
        let EndValues { status, next_attempt_at, error, ended_at } = EndValues::new(end, now);
        let query = sqlx::query(include_str!("sql/end_delivery.sql"))
            .bind(delivery)
            .bind(attempt)
            .bind(status.as_str())
            .bind(next_attempt_at)
            .bind(error)
            .bind(ended_at);
        Ok(self.write("recording the end of a message", query).await? > 0)
    }

    async fn abandon_deliveries(
        &self,
        channels: &[String],
        stale_since: Timestamp,
        error: &str,
        now: Timestamp,
    ) -> StoreResult<u64> {
        let query = sqlx::query(include_str!("sql/abandon_deliveries.sql"))
            .bind(batch::rows(channels))
            .bind(Micros::from(stale_since))
            .bind(error.to_owned())
            .bind(Micros::from(now));
        self.write("giving up messages", query).await
    }

    async fn last_successes(&self, jobs: &[JobKey]) -> StoreResult<Vec<(JobKey, Timestamp)>> {
        let keys: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        let query = sqlx::query(include_str!("sql/last_successes.sql")).bind(batch::rows(&keys));
        let rows: Vec<SuccessColumns> = self.read("reading last successes", query).await?;
        rows.into_iter().filter_map(SuccessColumns::read).collect()
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter, page: &PageRequest) -> StoreResult<Page<Delivery>> {
        check_limit(page.limit)?;
        let query = sqlx::query(include_str!("sql/list_deliveries.sql"))
            .bind(filter.id)
            .bind(filter.channel.clone())
            .bind(filter.problem)
            .bind(filter.status.map(DeliveryStatus::as_str))
            .bind(page.after.as_ref().map(|cursor| cursor.id))
            .bind(page.limit + 1);
        let rows: Vec<DeliveryColumns> = self.read("listing messages", query).await?;
        let cursor = |row: &DeliveryColumns| Cursor { value: String::new(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, DeliveryColumns::read))
    }
}

async fn write_problem(tx: &mut Tx<'_>, problem: &Problem) -> StoreResult<()> {
    let ProblemColumns { id, kind, job_key, org_id, opened_at, closed_at, state } = ProblemColumns::new(problem);
    let query = sqlx::query(include_str!("sql/write_problem.sql")).bind(id).bind(kind).bind(job_key).bind(org_id);
    tx.run(query.bind(opened_at).bind(closed_at).bind(state)).await.map(drop)
}

fn insert(new: &NewDelivery) -> Statement {
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
