//! [`ReportStore`]: what happened to all jobs together, and when nothing happened.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{AuditEntry, GapCount, OrgFires, Page, PageRequest, StoreResult};
use crate::ids::{JobId, JobKey};
use crate::org::OrgGroup;
use crate::outage::{Absence, LateRange, LateSlots};

/// The most absences that one list has.
pub const MAX_ABSENCES: u32 = 100;

/// The most rows that [`ReportStore::late_slots`] returns.
pub const MAX_LATE_SLOTS: u32 = 10_000;

/// The most timers of orgs that [`ReportStore::org_fires`] reads.
pub const MAX_ORG_FIRES: u32 = 10_000;

/// The most groups of orgs that [`ReportStore::org_groups`] returns.
pub const MAX_ORG_GROUPS: u32 = 10_000;

verbs! {
    /// Reports over all jobs, and absences of instances.
    pub trait ReportStore {
        /// The last heartbeat of the instances that left in good order or were found dead; those that are still known are
        /// in [`ClusterStore::list_instances`](super::ClusterStore::list_instances).
        async fn last_departure(&self) -> StoreResult<Option<Timestamp>>;

        /// Writes down a time in which no instance scheduled anything. One with the same beginning that is there already
        /// stays as it is, because another instance noticed the same.
        async fn add_absence(&self, absence: &Absence) -> StoreResult<()>;

        /// Absences that end at or after `from` and begin before `to`, the latest first, at most `limit`, which is 1 to
        /// [`MAX_ABSENCES`].
        async fn absences(
            &self,
            from: Option<Timestamp>,
            to: Option<Timestamp>,
            limit: u32,
        ) -> StoreResult<Vec<Absence>>;

        /// The slots of a range, by job and outcome: gaps that reach into it for the reasons `missed`, `coalesced` and
        /// `expired`, and count whole, and runs of its slots, if they were written in its time of decision. A run that slots
        /// were folded into may be of a slot up to a minute later, because it is planned a little after the first heartbeat.
        /// By job key and outcome, at most [`MAX_LATE_SLOTS`].
        async fn late_slots(&self, range: &LateRange) -> StoreResult<Vec<LateSlots>>;

        /// How many gaps and slots there are of each reason, of gaps that begin in `[from, to)`, by the word of the reason.
        async fn count_gaps(&self, from: Timestamp, to: Timestamp) -> StoreResult<Vec<GapCount>>;

        /// The next fires of timers of orgs in `[from, to)`, by job and time: the first org of each, and how many there are.
        /// Ordered by time and job; reads the earliest `limit` timers, which is 1 to [`MAX_ORG_FIRES`].
        async fn org_fires(&self, from: Timestamp, to: Timestamp, limit: u32) -> StoreResult<Vec<OrgFires>>;

        /// Enabled orgs by what decides their slots: by time zone, and those with overrides also by job, zone and override. The
        /// zones come first, by name; then overrides by job key, zone, whether they are on, and expression; those without an
        /// expression first. Returns the first `limit` groups, which is 1 to [`MAX_ORG_GROUPS`].
        async fn org_groups(&self, limit: u32) -> StoreResult<Vec<OrgGroup>>;

        /// The keys of these jobs, by id, at most 1,000; a job that does not exist is left out.
        async fn job_keys(&self, jobs: &[JobId]) -> StoreResult<Vec<(JobId, JobKey)>>;

        /// Entries of the audit trail about backfills that were asked for, newest first, a page at a time.
        async fn list_backfill_entries(&self, page: &PageRequest) -> StoreResult<Page<AuditEntry>>;
    }
}
