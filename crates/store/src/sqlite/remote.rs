//! Runs in the hands of their remote sides.

use async_trait::async_trait;
use everbell_core::handover::Handover;
use everbell_core::remote::HeldRun;
use everbell_core::store::{RemoteStore, RemoteUpdate, StoreResult};
use everbell_core::{InstanceId, JobId};
use jiff::Timestamp;
use uuid::Uuid;

use super::SqliteStore;
use crate::micros::Micros;
use crate::rows::remote::{HeldRunColumns, held_runs, key, to_milliseconds};

#[async_trait]
impl RemoteStore for SqliteStore {
    async fn run_token_key(&self, candidate: &[u8; 32]) -> StoreResult<[u8; 32]> {
        let mut held = self.writer("reading the key of run tokens").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/run_token_key.sql")).bind(candidate.to_vec());
        let (stored,): (Vec<u8>,) = tx.one(query).await?;
        tx.commit().await?;
        key(stored)
    }

    async fn hand_over(&self, handover: &Handover, lease_until: Timestamp, output: Option<&str>) -> StoreResult<bool> {
        let mut held = self.writer("handing over a run").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/hand_over.sql"))
            .bind(handover.run.as_uuid())
            .bind(handover.attempt)
            .bind(InstanceId::REMOTE.as_uuid())
            .bind(Micros::from(lease_until))
            .bind(to_milliseconds(handover.lease))
            .bind(Micros::from(handover.deadline))
            .bind(output.map(str::to_owned));
        let written: Option<(Uuid,)> = tx.first(query).await?;
        tx.commit().await?;
        Ok(written.is_some())
    }

    async fn update_remote(&self, update: &RemoteUpdate) -> StoreResult<bool> {
        let (progress, output) = (update.progress.as_ref(), update.output.as_ref());
        let mut held = self.writer("writing a sign of life").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/update_remote.sql"))
            .bind(update.run.as_uuid())
            .bind(update.attempt)
            .bind(InstanceId::REMOTE.as_uuid())
            .bind(update.lease_until.map(Micros::from))
            .bind(progress.is_some())
            .bind(progress.and_then(|progress| progress.permille).map(i32::from))
            .bind(progress.and_then(|progress| progress.message.clone()))
            .bind(output.is_some())
            .bind(output.and_then(|output| output.before.clone()))
            .bind(output.map(|output| output.after.clone()));
        let written: Option<(Uuid,)> = tx.first(query).await?;
        tx.commit().await?;
        Ok(written.is_some())
    }

    async fn remote_runs(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<HeldRun>> {
        let mut held = self.reader("looking for runs that were handed over").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/remote_runs.sql"))
            .bind(InstanceId::REMOTE.as_uuid())
            .bind(Micros::from(before))
            .bind(limit);
        let rows: Vec<HeldRunColumns> = tx.all(query).await?;
        let jobs = rows.iter().filter_map(HeldRunColumns::job_id).map(JobId::from_uuid);
        let learned = self.learn(&mut tx, jobs).await?;
        Ok(held_runs(rows, &learned))
    }
}
