//! [`AlertStore`]: problems, and the outbox of messages about them.

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{AuditEntry, Page, PageRequest, StoreResult};
use crate::alert::{
    AlertWrite, Alerts, Delivery, DeliveryEnd, DeliveryStatus, Kind, NewDelivery, Problem, ProblemChange,
};
use crate::ids::{JobKey, OrgId};

verbs! {
    /// Keeps problems and the messages about them.
    pub trait AlertStore {
        /// Returns all open problems and those that closed at `closed_since` or later, by id, with the generation that
        /// [`write_alerts`](Self::write_alerts) asks for.
        async fn read_alerts(&self, closed_since: Timestamp) -> StoreResult<Alerts>;

        /// Writes a decision, unless another one was written since `generation` was read: then nothing is written, and
        /// the answer is `false`. Problems are inserted, or replaced by id. A second open problem of the same kind and
        /// job is a [`StoreError::Conflict`](super::StoreError::Conflict). A delivery whose id exists is passed over.
        async fn write_alerts(&self, generation: u64, write: &AlertWrite) -> StoreResult<bool>;

        /// Carries out what an operator does to a problem, as [`Problem::changed`] decides, and makes decisions that did
        /// not see it void. The time of the entry is that of the change.
        async fn change_problem(&self, problem: Uuid, change: &ProblemChange, audit: &AuditEntry) -> StoreResult<Problem>;

        /// Problems, a page at a time, newest first.
        async fn list_problems(&self, filter: &ProblemFilter, page: &PageRequest) -> StoreResult<Page<Problem>>;

        /// Adds a message to the outbox that belongs to no problem: a test of a channel.
        async fn insert_delivery(&self, delivery: &NewDelivery, audit: &AuditEntry) -> StoreResult<()>;

        /// Takes pending messages for these channels that are due at `now` and that no other instance is sending: their attempt
        /// grows, and no one else takes them until `lease_until`. Oldest first, at most `limit`. A message waits while an
        /// earlier one about the same problem is pending for the same channel.
        async fn claim_deliveries(
            &self,
            channels: &[String],
            now: Timestamp,
            lease_until: Timestamp,
            limit: u32,
        ) -> StoreResult<Vec<Delivery>>;

        /// Records the end of an attempt, guarded by its number, and returns whether it did: `false` if the message was
        /// taken again since, or has ended.
        async fn end_delivery(&self, delivery: Uuid, attempt: u32, end: &DeliveryEnd, now: Timestamp) -> StoreResult<bool>;

        /// Gives up pending messages for channels that no instance has any more, and returns how many. `channels` are those that
        /// are known. No instance takes the messages of another one if all that are pending have been due since before `stale_since`,
        /// and none is being sent at `now`: an instance that knows it would have tried.
        async fn abandon_deliveries(
            &self,
            channels: &[String],
            stale_since: Timestamp,
            error: &str,
            now: Timestamp,
        ) -> StoreResult<u64>;

        /// Returns the end of the newest run, by id, of each of these jobs that succeeded, all versions of it. By key; a job
        /// without one is left out.
        async fn last_successes(&self, jobs: &[JobKey]) -> StoreResult<Vec<(JobKey, Timestamp)>>;

        /// Messages, a page at a time, newest first.
        async fn list_deliveries(&self, filter: &DeliveryFilter, page: &PageRequest) -> StoreResult<Page<Delivery>>;
    }
}

/// A filter of problems. A problem must fit every member that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemFilter {
    /// Only open ones, or only closed ones.
    pub open: Option<bool>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Of this job.
    pub job: Option<JobKey>,
    /// Of the runs for this org.
    pub org: Option<OrgId>,
}

/// A filter of messages. A message must fit every member that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// The one with this id.
    pub id: Option<Uuid>,
    /// For this channel.
    pub channel: Option<String>,
    /// About this problem.
    pub problem: Option<Uuid>,
    /// With this status.
    pub status: Option<DeliveryStatus>,
}
