//! [`BackfillStore`]: backfills of any length, and the runs of their slots.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{Changed, DecideFn, JobRef, StoreResult};
use crate::backfill::{Backfill, SlotRun};
use crate::ids::{BackfillId, JobKey, OrgId, RunId};

/// The most backfills that one list has.
pub const MAX_BACKFILLS: u32 = 1_000;

/// The most runs that are looked up at once.
pub const MAX_LOOKED_UP: usize = 1_000;

verbs! {
    /// Keeps backfills. What begins and changes them is a change of their job:
    /// [`change_job`](super::JobStore::change_job), [`change_org_job`](super::OrgStore::change_org_job) and
    /// [`advance_backfill`](Self::advance_backfill) write the backfill of a [`JobChange`](crate::change::JobChange) in their
    /// transaction. One that has another revision by then is a [`StoreError::Conflict`](super::StoreError::Conflict).
    pub trait BackfillStore {
        /// Takes a step of a backfill in the name of everbell, without an audit entry: locks the job and its timer, or that of
        /// the org, asks `decide`, and commits the answer.
        async fn advance_backfill(
            &self,
            job: &JobRef,
            org: Option<&OrgId>,
            decide: &DecideFn<'_>,
            now: Timestamp,
        ) -> StoreResult<Changed>;

        /// Returns a backfill.
        async fn get_backfill(&self, id: BackfillId) -> StoreResult<Backfill>;

        /// Backfills that a loop has something to do for, the one that changed least recently first, at most `limit`, which is 1
        /// to [`MAX_BACKFILLS`]. With `job` only those of this job.
        async fn open_backfills(&self, job: Option<&JobKey>, limit: u32) -> StoreResult<Vec<Backfill>>;

        /// Backfills of a job, newest first, at most `limit`, which is 1 to [`MAX_BACKFILLS`].
        async fn backfills_of(&self, job: &JobKey, limit: u32) -> StoreResult<Vec<Backfill>>;

        /// Looks up at most [`MAX_LOOKED_UP`] runs by id. A run that does not exist is left out.
        async fn look_up_runs(&self, runs: &[RunId]) -> StoreResult<Vec<SlotRun>>;

        /// Looks up the runs of at most [`MAX_LOOKED_UP`] slots, of any version of the job, and of the org or no org.
        async fn runs_of_slots(
            &self,
            job: &JobKey,
            org: Option<&OrgId>,
            slots: &[Timestamp],
        ) -> StoreResult<Vec<SlotRun>>;
    }
}
