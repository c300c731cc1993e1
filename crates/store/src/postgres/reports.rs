//! Reports over all jobs, and absences of instances.

use async_trait::async_trait;
use everbell_core::org::OrgGroup;
use everbell_core::outage::{Absence, LateRange, LateSlots};
use everbell_core::store::{
    AuditEntry, Cursor, GapCount, MAX_LATE_SLOTS, OrgFires, Page, PageRequest, ReportStore, StoreResult,
};
use everbell_core::{JobId, JobKey, RunId};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::reports::{
    AbsenceColumns, GapCountColumns, LateSlotsColumns, OrgFiresColumns, OrgGroupColumns, check_absences,
    check_org_fires, check_org_groups, folded_until, gap_counts, job_key,
};
use crate::rows::{AuditColumns, check_limit, cursor_time, page_of, readable};

#[async_trait]
impl ReportStore for PostgresStore {
    async fn last_departure(&self) -> StoreResult<Option<Timestamp>> {
        let query = sqlx::query_scalar(include_str!("sql/last_departure.sql"));
        let at: Option<Micros> = self.within("reading heartbeats", query.fetch_optional_on(&self.loops)).await?;
        Ok(at.map(Into::into))
    }

    async fn add_absence(&self, absence: &Absence) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/add_absence.sql"));
        let query = query.bind(Micros::from(absence.from)).bind(Micros::from(absence.until));
        self.alone("writing an absence", query.execute_on(&self.loops)).await.map(drop)
    }

    async fn absences(&self, from: Option<Timestamp>, to: Option<Timestamp>, limit: u32) -> StoreResult<Vec<Absence>> {
        check_absences(limit)?;
        let query = sqlx::query_as(include_str!("sql/absences.sql"))
            .bind(from.map(Micros::from))
            .bind(to.map(Micros::from))
            .bind(i64::from(limit));
        let rows: Vec<AbsenceColumns> = self.within("reading absences", query.fetch_all_on(&self.pool)).await?;
        Ok(rows.into_iter().map(AbsenceColumns::read).collect())
    }

    async fn late_slots(&self, range: &LateRange) -> StoreResult<Vec<LateSlots>> {
        let folded_until = folded_until(range);
        let query = sqlx::query_as(include_str!("sql/late_slots.sql"))
            .bind(Micros::from(range.slots_from))
            .bind(Micros::from(range.until))
            .bind(Micros::from(range.decided_from))
            .bind(RunId::first_at(range.slots_from).as_uuid())
            .bind(RunId::first_from(folded_until).as_uuid())
            .bind(i64::from(MAX_LATE_SLOTS))
            .bind(Micros::from(range.gaps_from))
            .bind(Micros::from(range.decided_until))
            .bind(Micros::from(folded_until));
        let rows: Vec<LateSlotsColumns> = self.within("counting late slots", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.job_key.clone(), LateSlotsColumns::read).0)
    }

    async fn count_gaps(&self, from: Timestamp, to: Timestamp) -> StoreResult<Vec<GapCount>> {
        let query = sqlx::query_as(include_str!("sql/count_gaps.sql"));
        let query = query.bind(Micros::from(from)).bind(Micros::from(to));
        let rows: Vec<GapCountColumns> = self.within("counting gaps", query.fetch_all_on(&self.pool)).await?;
        Ok(gap_counts(rows))
    }

    async fn org_fires(&self, from: Timestamp, to: Timestamp, limit: u32) -> StoreResult<Vec<OrgFires>> {
        check_org_fires(limit)?;
        let query = sqlx::query_as(include_str!("sql/org_fires.sql"));
        let query = query.bind(Micros::from(from)).bind(Micros::from(to)).bind(i64::from(limit));
        let rows: Vec<OrgFiresColumns> = self.within("listing fires of orgs", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.job_id, OrgFiresColumns::read).0)
    }

    async fn org_groups(&self, limit: u32) -> StoreResult<Vec<OrgGroup>> {
        check_org_groups(limit)?;
        let query = sqlx::query_as(include_str!("sql/org_groups.sql")).bind(i64::from(limit));
        let rows: Vec<OrgGroupColumns> = self.within("grouping orgs", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.first_org.clone(), OrgGroupColumns::read).0)
    }

    async fn job_keys(&self, jobs: &[JobId]) -> StoreResult<Vec<(JobId, JobKey)>> {
        let ids: Vec<Uuid> = jobs.iter().map(JobId::as_uuid).collect();
        let query = sqlx::query_as(include_str!("sql/job_keys.sql")).bind(ids);
        let rows: Vec<(Uuid, String)> = self.within("reading keys of jobs", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |(id, _)| *id, job_key).0)
    }

    async fn list_backfill_entries(&self, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let query = sqlx::query_as(include_str!("sql/list_backfill_entries.sql"))
            .persistent(false)
            .bind(cursor_time(after)?)
            .bind(after.map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1);
        let rows: Vec<AuditColumns> = self.within("listing backfills", query.fetch_all_on(&self.pool)).await?;
        let cursor = |row: &AuditColumns| Cursor { value: row.at.0.to_string(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, AuditColumns::read))
    }
}
