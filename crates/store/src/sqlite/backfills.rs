//! Backfills of any length, and the runs of their slots.

use async_trait::async_trait;
use everbell_core::backfill::{Backfill, SlotRun};
use everbell_core::change::BackfillWrite;
use everbell_core::store::{BackfillStore, Changed, DecideFn, JobRef, StoreError, StoreResult};
use everbell_core::{BackfillId, JobId, JobKey, OrgId, RunId};
use jiff::Timestamp;
use uuid::Uuid;

use super::SqliteStore;
use super::batch;
use super::job_changes::Deciding;
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::backfills::{
    BackfillColumns, SlotRunColumns, changed_meanwhile, check_backfills, check_looked_up, step_entry,
};
use crate::rows::binds::{bind_backfill, bind_new_backfill};
use crate::rows::{org_text, readable};

#[async_trait]
impl BackfillStore for SqliteStore {
    async fn advance_backfill(
        &self,
        job: &JobRef,
        org: Option<&OrgId>,
        decide: &DecideFn<'_>,
        now: Timestamp,
    ) -> StoreResult<Changed> {
        let mut held = self.writer("taking a step of a backfill".to_owned()).await?;
        let mut tx = held.begin().await?;
        let changed = self.decide_in(&mut tx, job, org, None, decide, Deciding::Step(&step_entry(now))).await?;
        tx.commit_and_wake().await?;
        Ok(changed)
    }

    async fn get_backfill(&self, id: BackfillId) -> StoreResult<Backfill> {
        let query = sqlx::query(include_str!("sql/get_backfill.sql")).bind(id.as_uuid());
        let row: Option<BackfillColumns> = self.read_first("reading a backfill", query).await?;
        row.ok_or_else(|| StoreError::not_found("backfill", id))?.read()
    }

    async fn open_backfills(&self, job: Option<&JobKey>, limit: u32) -> StoreResult<Vec<Backfill>> {
        check_backfills(limit)?;
        let query = sqlx::query(include_str!("sql/open_backfills.sql"));
        let query = query.bind(job.map(ToString::to_string)).bind(limit);
        let rows: Vec<BackfillColumns> = self.read("looking for backfills", query).await?;
        Ok(readable(rows, |row| row.id, BackfillColumns::read).0)
    }

    async fn backfills_of(&self, job: &JobKey, limit: u32) -> StoreResult<Vec<Backfill>> {
        check_backfills(limit)?;
        let query = sqlx::query(include_str!("sql/backfills_of.sql")).bind(job.to_string()).bind(limit);
        let rows: Vec<BackfillColumns> = self.read("listing backfills", query).await?;
        Ok(readable(rows, |row| row.id, BackfillColumns::read).0)
    }

    async fn look_up_runs(&self, runs: &[RunId]) -> StoreResult<Vec<SlotRun>> {
        check_looked_up(runs.len())?;
        let ids = batch::ids(runs.iter().map(RunId::as_uuid));
        let query = sqlx::query(include_str!("sql/look_up_runs.sql")).bind(ids);
        let rows: Vec<SlotRunColumns> = self.read("looking up runs", query).await?;
        rows.into_iter().map(SlotRunColumns::read).collect()
    }

    async fn runs_of_slots(&self, job: &JobKey, org: Option<&OrgId>, slots: &[Timestamp]) -> StoreResult<Vec<SlotRun>> {
        check_looked_up(slots.len())?;
        let slots = batch::rows(slots.iter().copied().map(Micros::from));
        let query = sqlx::query(include_str!("sql/runs_of_slots.sql"));
        let query = query.bind(job.to_string()).bind(org_text(org).to_owned()).bind(slots);
        let rows: Vec<SlotRunColumns> = self.read("looking up the runs of slots", query).await?;
        rows.into_iter().map(SlotRunColumns::read).collect()
    }
}

/// Writes a backfill with the change of its job, and returns how many of its runs were withdrawn.
pub(super) async fn write_backfill(tx: &mut Tx<'_>, job: JobId, write: BackfillWrite) -> StoreResult<u64> {
    let BackfillWrite { mut backfill, expected_revision, withdraws } = write;
    let mut withdrawn: Vec<Uuid> = Vec::new();
    if withdraws && !backfill.open.is_empty() {
        let open = batch::ids(backfill.open.iter().map(|open| open.id.as_uuid()));
        let query = sqlx::query(include_str!("sql/withdraw_runs.sql")).bind(open);
        let query = query.bind(everbell_core::Trigger::Backfill(backfill.id).to_string());
        let gone: Vec<(Uuid,)> = tx.all(query).await?;
        withdrawn = gone.into_iter().map(|(id,)| id).collect();
        let ids: Vec<RunId> = withdrawn.iter().copied().map(RunId::from_uuid).collect();
        backfill.withdraw(&ids);
    }
    if !withdrawn.is_empty() {
        let (gone, org) = (batch::ids(withdrawn.iter().copied()), org_text(backfill.org.as_ref()).to_owned());
        tx.run(sqlx::query(include_str!("sql/delete_runs.sql")).bind(gone.clone())).await?;
        let query = sqlx::query(include_str!("sql/forget_last_runs.sql"));
        tx.run(query.bind(job.as_uuid()).bind(org).bind(gone)).await?;
        tx.note_written();
    }
    let query = match expected_revision {
        None => bind_new_backfill!(sqlx::query(include_str!("sql/insert_backfill.sql")), &backfill),
        Some(expected) => bind_backfill!(sqlx::query(include_str!("sql/update_backfill.sql")), &backfill, expected),
    };
    if tx.run(query).await? == 0 {
        return Err(changed_meanwhile(&backfill));
    }
    Ok(withdrawn.len() as u64)
}
