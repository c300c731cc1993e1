//! [`CounterStore`]: counters of runs by hour, job and target.

use async_trait::async_trait;
use jiff::Timestamp;

use super::counters::{CounterGroup, RunCounters};
use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{Bucket, StoreResult};
use crate::counting::{CountingProgress, HourToCount};
use crate::ids::JobKey;

verbs! {
    /// Keeps counters by hour, job and target. No verb that records a run touches them: whole hours are counted later, see
    /// [`crate::counting`].
    pub trait CounterStore {
        /// The hours that are counted, and the end of the oldest run that is kept.
        async fn counting_progress(&self) -> StoreResult<CountingProgress>;

        /// Counts an hour and replaces its counters. Returns whether it did: not if the hour was counted since the
        /// decision.
        async fn count_hour(&self, hour: &HourToCount, now: Timestamp) -> StoreResult<bool>;

        /// Counts the runs that ended in `[from, to)` without the counters, of one job or of all. Skipped runs end at
        /// their slot. Runs without a job are left out. By group.
        async fn count_ended_runs(
            &self,
            from: Timestamp,
            to: Timestamp,
            job: Option<&JobKey>,
        ) -> StoreResult<Vec<(CounterGroup, RunCounters)>>;

        /// Adds up the counters of the hours that begin in `[from, to)`, of one job or of all. By group.
        async fn read_counters(
            &self,
            from: Timestamp,
            to: Timestamp,
            job: Option<&JobKey>,
        ) -> StoreResult<Vec<(CounterGroup, RunCounters)>>;

        /// Reads how many runs of a job ended in each hour that begins in `[from, to)`. In the order of the hours, without
        /// those that have none, without lags and durations.
        async fn read_hourly_counters(&self, from: Timestamp, to: Timestamp, job: &JobKey) -> StoreResult<Vec<Bucket>>;

        /// Deletes counters of hours before this time, at most `limit`. Returns how many.
        async fn prune_counters(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
    }
}
