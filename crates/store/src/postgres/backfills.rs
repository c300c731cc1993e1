//! Backfills of any length, and the runs of their slots.

use async_trait::async_trait;
use everbell_core::backfill::{Backfill, SlotRun};
use everbell_core::change::BackfillWrite;
use everbell_core::store::{BackfillStore, Changed, DecideFn, JobRef, StoreError, StoreResult};
use everbell_core::{BackfillId, JobId, JobKey, OrgId, RunId};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Conn, on};
use super::job_changes::Wanted;
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::backfills::{
    BackfillColumns, SlotRunColumns, changed_meanwhile, check_backfills, check_looked_up, step_entry,
};
use crate::rows::binds::{bind_backfill, bind_new_backfill};
use crate::rows::{org_text, readable};

#[async_trait]
impl BackfillStore for PostgresStore {
    async fn advance_backfill(
        &self,
        job: &JobRef,
        org: Option<&OrgId>,
        decide: &DecideFn<'_>,
        now: Timestamp,
    ) -> StoreResult<Changed> {
        let wanted = Wanted { job, org, expected_revision: None, is_audited: false };
        self.decide_change(wanted, decide, &step_entry(now)).await
    }

    async fn get_backfill(&self, id: BackfillId) -> StoreResult<Backfill> {
        let query = sqlx::query_as(include_str!("sql/get_backfill.sql")).bind(id.as_uuid());
        let row: Option<BackfillColumns> =
            self.within("reading a backfill", query.fetch_optional_on(&self.pool)).await?;
        row.ok_or_else(|| StoreError::not_found("backfill", id))?.read()
    }

    async fn open_backfills(&self, job: Option<&JobKey>, limit: u32) -> StoreResult<Vec<Backfill>> {
        check_backfills(limit)?;
        let query = sqlx::query_as(include_str!("sql/open_backfills.sql"));
        let query = query.bind(job.map(ToString::to_string)).bind(i64::from(limit));
        let rows: Vec<BackfillColumns> = self.within("looking for backfills", query.fetch_all_on(&self.loops)).await?;
        Ok(readable(rows, |row| row.id, BackfillColumns::read).0)
    }

    async fn backfills_of(&self, job: &JobKey, limit: u32) -> StoreResult<Vec<Backfill>> {
        check_backfills(limit)?;
        let query = sqlx::query_as(include_str!("sql/backfills_of.sql")).bind(job.to_string()).bind(i64::from(limit));
        let rows: Vec<BackfillColumns> = self.within("listing backfills", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.id, BackfillColumns::read).0)
    }

    async fn look_up_runs(&self, runs: &[RunId]) -> StoreResult<Vec<SlotRun>> {
        check_looked_up(runs.len())?;
        let ids: Vec<Uuid> = runs.iter().map(RunId::as_uuid).collect();
        let query = sqlx::query_as(include_str!("sql/look_up_runs.sql")).bind(ids);
        let rows: Vec<SlotRunColumns> = self.within("looking up runs", query.fetch_all_on(&self.pool)).await?;
        rows.into_iter().map(SlotRunColumns::read).collect()
    }

    async fn runs_of_slots(&self, job: &JobKey, org: Option<&OrgId>, slots: &[Timestamp]) -> StoreResult<Vec<SlotRun>> {
        check_looked_up(slots.len())?;
        let slots: Vec<Micros> = slots.iter().copied().map(Micros::from).collect();
        let query = sqlx::query_as(include_str!("sql/runs_of_slots.sql"));
        let query = query.bind(job.to_string()).bind(org_text(org).to_owned()).bind(slots);
        let rows: Vec<SlotRunColumns> =
            self.within("looking up the runs of slots", query.fetch_all_on(&self.pool)).await?;
        rows.into_iter().map(SlotRunColumns::read).collect()
    }
}

/// Writes a backfill with the change of its job, and returns how many of its runs were withdrawn.
pub(super) async fn write_backfill(
    conn: Conn<'_, '_>,
    what: &str,
    job: JobId,
    write: BackfillWrite,
) -> StoreResult<u64> {
    let BackfillWrite { mut backfill, expected_revision, withdraws } = write;
    let mut withdrawn: Vec<Uuid> = Vec::new();
    if withdraws && !backfill.open.is_empty() {
        let open: Vec<Uuid> = backfill.open.iter().map(|open| open.id.as_uuid()).collect();
        let query = sqlx::query_scalar(include_str!("sql/withdraw_runs.sql")).bind(open);
        let query = query.bind(everbell_core::Trigger::Backfill(backfill.id).to_string());
        withdrawn = on(what, query.fetch_all_on(&mut *conn)).await?;
        let ids: Vec<RunId> = withdrawn.iter().copied().map(RunId::from_uuid).collect();
        backfill.withdraw(&ids);
    }
    if !withdrawn.is_empty() {
        let org = org_text(backfill.org.as_ref()).to_owned();
        let query = sqlx::query(include_str!("sql/forget_last_runs.sql"));
        on(what, query.bind(job.as_uuid()).bind(org).bind(withdrawn.clone()).execute_on(&mut *conn)).await?;
    }
    let query = match expected_revision {
        None => bind_new_backfill!(sqlx::query(include_str!("sql/insert_backfill.sql")), &backfill),
        Some(expected) => bind_backfill!(sqlx::query(include_str!("sql/update_backfill.sql")), &backfill, expected),
    };
    if on(what, query.execute_on(conn)).await?.rows_affected() == 0 {
        return Err(changed_meanwhile(&backfill));
    }
    Ok(withdrawn.len() as u64)
}
