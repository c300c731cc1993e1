//! A backfill for every org: a walk over them that makes the runs of each.

use everbell_core::org::{self, OrgFacts, OrgTask, OrgUpdate};
use everbell_core::store::{JobOrgFilter, JobRef, JobRow, PageRequest, StoreError, StoreResult};
use everbell_core::{BackfillId, Invalid};
use jiff::Timestamp;

use super::backfill::{ACTION, PAGE_ROWS, expect_bounded, facts_of};
use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::org_jobs::expect_per_org;
use super::org_updates::{self, OrgUpdateStarted};
use crate::engine::random;

/// A backfill for all orgs that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillOfAll {
    /// Its id.
    pub id: BackfillId,
    /// The org update that creates its runs.
    pub org_update: OrgUpdateStarted,
}

/// The size of a backfill for all orgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillSize {
    /// The number of orgs that were looked at: the first by id.
    pub looked_at: u64,
    /// Whether there are more.
    pub more: bool,
    /// The number of them with slots in the range.
    pub with_slots: u64,
    /// The number of these slots: the upper bound of the runs, because some slots may already have one.
    pub slots: u64,
}

impl Jobs {
    /// Creates a run for each slot in `[from, to]` that has none, for every org, a few at a time. The number of slots
    /// is checked in the job's own zone.
    pub async fn backfill_for_all(
        &self,
        job: impl IntoJobRef,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<BackfillOfAll> {
        let row = self.get(job).await?;
        let definition = &row.job.definition;
        let now = self.context.now();
        let before = self.backfill_before(definition).await?;
        if before.is_none() {
            expect_few(&row, from, to, now)?;
        }
        let id = before.unwrap_or_else(|| BackfillId::new(now, random()));
        let after = facts_of(id, from, to);
        let task = OrgTask::Backfill { id, from, to, trace_context: self.context.trace_context() };
        let org_update =
            org_updates::begin(&self.context, JobRef::Id(definition.id), None, ACTION, after, &task).await?;
        Ok(BackfillOfAll { id, org_update })
    }

    /// Returns the effect that [`Jobs::backfill_for_all`] would have, for the first thousand orgs.
    pub async fn plan_backfill_for_all(
        &self,
        job: impl IntoJobRef,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<BackfillSize> {
        let row = self.get(job).await?;
        expect_per_org(&row)?;
        expect_few(&row, from, to, self.context.now())?;
        let definition = &row.job.definition;
        let page = PageRequest { limit: PAGE_ROWS, after: None };
        let found = self.context.parts.store.job_orgs(definition.id, &JobOrgFilter::default(), &page).await?;
        let sizes = found.items.iter().map(|own| {
            let facts = OrgFacts {
                lifecycle: (&row.job.state).into(),
                place: own.org.place.clone(),
                override_: own.override_.clone(),
            };
            org::backfill_size(definition, &facts, own.timer.as_ref(), (from, to))
        });
        let sizes: Vec<u64> = sizes.collect();
        Ok(BackfillSize {
            looked_at: sizes.len() as u64,
            more: found.next.is_some(),
            with_slots: sizes.iter().filter(|size| **size > 0).count() as u64,
            slots: sizes.iter().sum(),
        })
    }

    /// Stops a backfill from creating more runs.
    pub(super) async fn stop_making(&self, id: BackfillId) -> StoreResult<()> {
        let org_updates = self.context.parts.store.list_org_updates().await?;
        let is_its =
            |org_update: &&OrgUpdate| matches!(org_update.task, OrgTask::Backfill { id: own, .. } if own == id);
        for org_update in org_updates.iter().filter(is_its) {
            match org_updates::stop(&self.context.repeatable(), org_update).await {
                // It came to its end meanwhile.
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Refuses a range with too many slots in the zone of the job, which represents the zones of all orgs.
fn expect_few(row: &JobRow, from: Timestamp, to: Timestamp, now: Timestamp) -> Result<(), Invalid> {
    let spec = row.job.definition.spec.as_ref().map_err(|broken| Invalid::new("schedule", broken.reason.clone()))?;
    expect_bounded(spec, now, from, to)
}
